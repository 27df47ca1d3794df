//! This project's client of a server of this project.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared by tests, each with its own part; a panic is how a test fails"
)]

use windvane_client::{Addresses, Outcome, Settings};
use windvane_protocol::Brand;
use windvane_protocol::route::Surface;
use windvane_protocol::sign::{Credentials, Dialect, Network};
use windvane_sim_server::Running;

/// The settings of a client with these credentials.
pub fn settings(running: &Running, brand: Brand, credentials: Credentials) -> Settings {
    let at = running.addresses;
    let mut addresses = Addresses::default();
    for (surface, address) in [
        (Surface::Spot, at.spot),
        (Surface::Futures, at.futures),
        (Surface::Chain, at.chain),
        (Surface::Rpc, at.rpc),
    ] {
        let (rest, ws) = (format!("http://{address}"), format!("ws://{address}"));
        addresses = addresses.rest(surface, &rest).unwrap();
        addresses = addresses.ws(surface, &ws).unwrap();
    }
    let dialect = Dialect {
        brand,
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    Settings::new(addresses, dialect, credentials)
}

#[track_caller]
pub fn done<T: std::fmt::Debug>(outcome: Outcome<T>) -> T {
    match outcome.into_result() {
        Ok(answer) => answer,
        Err(other) => panic!("{other}"),
    }
}
