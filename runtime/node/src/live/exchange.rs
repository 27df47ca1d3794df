//! The exchange of a configuration: the one place of a run, of `check` and of the watchdog that names which
//! exchange it is. A second exchange is chosen here, and is a crate of its own beside
//! `windvane_session::Exchange`.

use windvane_client_core::Gateway;
use windvane_client_core::streams::feed::{FeedError, FeedTerms};
use windvane_engine::Surface;
use windvane_session::{Capabilities, Documented, DocumentedFeed, Exchange, PublicFeed, Signing};
use windvane_venue::speak::Names;

use crate::config::{Config, MarketData};

/// What it can do.
pub const CAPABILITIES: Capabilities = Documented::CAPABILITIES;

/// The exchange behind a gateway, whose keys sign.
pub fn exchange(config: &Config, gateway: Gateway) -> Box<dyn Exchange> {
    signed(config, gateway, Signing::Here)
}

/// The exchange behind a gateway. `signing` says where its calls are signed.
pub fn signed(config: &Config, gateway: Gateway, signing: Signing) -> Box<dyn Exchange> {
    let only_documents = config.venue.market_data == MarketData::Documented;
    Box::new(Documented::new(gateway, only_documents, signing))
}

/// Its public feed of a surface.
///
/// # Errors
/// What has to be polled cannot be.
pub fn public_feed(
    surface: Surface,
    terms: FeedTerms,
    names: Names,
) -> Result<Box<dyn PublicFeed>, FeedError> {
    Ok(Box::new(DocumentedFeed::new(surface, terms, names)?))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// What only this file may name, of the run, of `check` and of the watchdog.
    const OF_ONE_EXCHANGE: [&str; 4] = [
        "Documented::new",
        "Documented::CAP",
        "DocumentedFeed",
        "Speaker",
    ];

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| match path.is_dir() {
                true => sources(&path),
                false => vec![path],
            })
            .collect()
    }

    #[test]
    fn no_other_file_of_a_run_names_its_exchange() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let files = ["live", "watchdog", "cli"].map(|folder| sources(&src.join(folder)));
        let files = files.concat();
        assert!(files.len() > 60, "only {} sources were found", files.len());
        for path in files {
            if path.ends_with("live/exchange.rs") {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            for word in OF_ONE_EXCHANGE {
                assert!(!source.contains(word), "{} names {word}", path.display());
            }
        }
    }
}
