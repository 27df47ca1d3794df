//! Runs a simulated venue and prints its addresses and keys, for manual tests of clients and for
//! measurements: `cargo run -p windvane-sim-server --example venue [PORT] [BRAND] [PER_SECOND]`.
//!
//! `PER_SECOND` is the number of market actions per second and symbol. If it is given, weights are
//! not limited.

use std::error::Error;

use windvane_protocol::Brand;
use windvane_sim_server::{LimitSettings, Settings, Source, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let brand = arguments.next().unwrap_or("svc".to_owned());
    let mut settings = Settings {
        port,
        brand: Brand::new(&brand)?,
        ..Settings::default()
    };
    if let Some(per_second) = arguments.next() {
        let per_second = per_second.parse()?;
        settings.source = Source::Seeded { per_second };
        settings.limits = LimitSettings {
            spot_weight: u32::MAX,
            futures_weight: u32::MAX,
            ..settings.limits
        };
    }
    let running = start(settings).await?;
    println!("{:#?}", running.addresses);
    println!("{:#?}", running.accounts);
    running.wait().await;
    Ok(())
}
