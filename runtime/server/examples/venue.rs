//! Runs a simulated venue with default settings and prints its addresses and keys, for trying
//! clients by hand: `cargo run -p windvane-server --example venue [PORT] [BRAND]`.

use std::error::Error;

use windvane_server::{Settings, start};
use windvane_venue::Brand;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    let brand = std::env::args().nth(2).unwrap_or("svc".to_owned());
    let settings = Settings {
        port,
        brand: Brand::new(&brand)?,
        ..Settings::default()
    };
    let running = start(settings).await?;
    println!("{:#?}", running.addresses);
    println!("{:#?}", running.accounts);
    running.wait().await;
    Ok(())
}
