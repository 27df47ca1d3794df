//! Runs a simulated venue with default settings and prints its addresses and keys, for trying
//! clients by hand: `cargo run -p windvane-server --example venue [PORT]`.

use std::error::Error;

use windvane_server::{Settings, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |text| text.parse())?;
    let settings = Settings {
        port,
        ..Settings::default()
    };
    let running = start(settings).await?;
    println!("{:#?}", running.addresses);
    println!("{:#?}", running.accounts);
    running.wait().await;
    Ok(())
}
