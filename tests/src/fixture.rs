//! Data folders that earlier versions of the program left behind, as archives in `tests/fixtures`.
//! Each new version must open them, recover from them and continue to trade.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::binary;
use crate::venue::Venue;

/// Seed of the venue; it always gives the same test keys.
pub const SEED: &str = "12";

/// A recorded data folder, with the state of the run when its process was killed.
#[derive(Debug)]
pub struct Fixture {
    folder: PathBuf,
    /// The content of `fixture.json`.
    pub manifest: Value,
}

/// All fixtures, sorted by name.
///
/// # Panics
/// If the folder cannot be read.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn all() -> Vec<Fixture> {
    let entries = std::fs::read_dir(folder()).expect("there are fixtures");
    let folders = entries.map(|entry| entry.expect("an entry is readable").path());
    let mut folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.into_iter().map(Fixture::read).collect()
}

/// The folder of the fixtures.
pub fn folder() -> PathBuf {
    binary::root().join("tests/fixtures")
}

impl Fixture {
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    fn read(folder: PathBuf) -> Self {
        let text = std::fs::read(folder.join("fixture.json")).expect("a fixture has a manifest");
        let manifest = serde_json::from_slice(&text).expect("a manifest is JSON");
        Self { folder, manifest }
    }

    /// The fixture's folder name.
    pub fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The configuration of a run: `live` or `paper`.
    pub fn config(&self, run: &str) -> PathBuf {
        self.folder.join(run).with_extension("toml")
    }

    /// Unpacks the data folder of a run (`live` or `paper`) into this folder.
    ///
    /// # Panics
    /// If it cannot be unpacked.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn unpack(&self, run: &str, into: &Path) {
        std::fs::create_dir_all(into).expect("a folder for the data");
        let status = Command::new("tar")
            .arg("-xzf")
            .arg(self.folder.join(run).with_extension("tar.gz"))
            .arg("-C")
            .arg(into)
            .status();
        assert!(
            status.expect("tar starts").success(),
            "tar unpacks the archive"
        );
    }

    /// Starts a venue with the account that the live run left: the same keys, positions and open
    /// orders.
    ///
    /// # Panics
    /// If the venue does not start, or rejects an order.
    pub fn venue(&self) -> Venue {
        let venue = Venue::start(&["--seed", SEED]);
        let left = &self.manifest["live"]["venue"];
        venue.control(
            "/act",
            &json!({"act": "ids", "order_id": left["next_order_id"],
                "trade_id": left["next_trade_id"]}),
        );
        for order in rows(&left["orders"]) {
            venue.control(
                "/act",
                &json!({
                    "act": "place", "symbol": order["symbol"], "side": order["side"],
                    "price": order["price"], "quantity": order["qty"],
                    "client_order_id": order["client_order_id"],
                }),
            );
        }
        for position in rows(&left["positions"]) {
            let text = position["qty"].as_str().unwrap_or_default();
            let (side, quantity) = match text.strip_prefix('-') {
                Some(short) => ("SELL", short),
                None => ("BUY", text),
            };
            venue.control(
                "/act",
                &json!({
                    "act": "place", "symbol": position["symbol"], "side": side, "type": "MARKET",
                    "quantity": quantity,
                }),
            );
        }
        venue
    }
}

/// The rows of a list.
pub fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
