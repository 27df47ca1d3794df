//! Builds the exchange of a configuration. This is the only file of this crate that names an
//! exchange (the test below checks it), so a second exchange is added here.
//!
//! This file must not call an exchange. The session does that itself.

use windvane_client_core::Gateway;
use windvane_client_core::streams::feed::{FeedError, FeedTerms};
use windvane_model::Surface;
use windvane_protocol::adapter::Names;
use windvane_session::{Capabilities, Documented, DocumentedFeed, Exchange, PublicFeed, Signing};

use windvane_config::{Config, MarketData};

/// The exchange behind a gateway. The gateway's keys sign the requests.
pub fn exchange(config: &Config, gateway: Gateway) -> Box<dyn Exchange> {
    signed(config, gateway, Signing::Here)
}

/// The exchange behind a gateway. `signing` says where its requests are signed.
pub fn signed(config: &Config, gateway: Gateway, signing: Signing) -> Box<dyn Exchange> {
    let only_documents = config.venue.market_data == MarketData::Documented;
    Box::new(Documented::new(gateway, only_documents, signing))
}

/// The capabilities of the exchange, known before a gateway exists.
pub const fn capabilities(_config: &Config) -> Capabilities {
    Documented::CAPABILITIES
}

/// The public data of a surface.
///
/// # Errors
/// A topic that must be polled cannot be polled.
pub fn public_feed(
    _config: &Config,
    surface: Surface,
    (terms, names): (FeedTerms, Names),
) -> Result<Box<dyn PublicFeed>, FeedError> {
    Ok(Box::new(DocumentedFeed::new(surface, terms, names)?))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// Types of one exchange.
    const OF_AN_EXCHANGE: &[&str] = &["Documented", "Adapter"];
    /// Settings of the configuration that contain the same name.
    const SETTINGS: &[&str] = &["MarketData::Documented", "FindAccount::Documented"];
    /// Calls and names that only the exchange may use.
    const PAST_THE_SEAM: &[&str] = &[
        "route::named",
        "route.name ==",
        ".sync_clock(",
        "client.call(",
        "client.user_stream(",
        ".call_stamped(",
        ".send_stamped(",
        ".spot()",
        ".futures()",
        "exchange_info",
        "user_stream::decode",
        "market_stream::decode",
        "MarketReader",
        "serverTime",
        "listenKey",
        "[\"positions\"]",
    ];

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut folders = vec![folder.to_owned()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path);
                }
            }
        }
        files
    }

    #[test]
    fn an_exchange_is_named_in_one_file() {
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut live = 0;
        for package in [
            "backtest",
            "build",
            "cli",
            "live",
            "recording",
            "replay",
            "report",
        ] {
            for path in sources(&runtime.join(package).join("src")) {
                if path.ends_with("live/src/exchange.rs") || path.ends_with("tests.rs") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
                let settings = SETTINGS.iter();
                let code = settings.fold(code.to_owned(), |code, word| code.replace(word, ""));
                for word in OF_AN_EXCHANGE {
                    assert!(!code.contains(word), "{} names {word}", path.display());
                }
                if package == "live" {
                    live += 1;
                    for word in PAST_THE_SEAM {
                        assert!(!code.contains(word), "{} names {word}", path.display());
                    }
                }
            }
        }
        assert!(live > 40, "only {live} sources of the live run were found");
    }
}
