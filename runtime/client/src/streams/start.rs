//! Checks the requirements of a stream: surface and address.

use url::Url;
use windvane_protocol::route::Surface;

use crate::budget::polling::PollingError;
use crate::settings::Settings;

/// The stream cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamStartError {
    /// The settings have no WebSocket address.
    #[error("no WebSocket address of {0} is configured")]
    NoAddress(Surface),
    /// The surface has no streams.
    #[error("{0} has no streams; use spot or futures")]
    NoStreams(Surface),
    /// There is nothing to subscribe to.
    #[error("a market stream needs at least one topic")]
    NoTopics,
    /// The settings allow documented streams only.
    #[error(
        "topic {0} is not in the core interface (docs/interface/README.md#core-and-public-facts), \
         but market_data is \"documented\": use a feed, which polls the topic, or tradepro"
    )]
    NotDocumented(String),
    /// A topic that must be polled cannot be polled.
    #[error("market_data is \"documented\", so the topic must be polled: {0}")]
    Polling(#[from] PollingError),
}

/// The address of a surface's public streams.
pub(super) fn address(settings: &Settings, surface: Surface) -> Result<&Url, StreamStartError> {
    checked(surface, settings.addresses.ws_of(surface))
}

/// The address of a surface's user stream.
pub(super) fn user_address(
    settings: &Settings,
    surface: Surface,
) -> Result<&Url, StreamStartError> {
    checked(surface, settings.addresses.user_ws_of(surface))
}

/// The address that serves a path. Only the path of a user stream continues after `/ws`: with its
/// listen key.
pub(super) fn address_for<'a>(
    settings: &'a Settings,
    surface: Surface,
    path: &str,
) -> Result<&'a Url, StreamStartError> {
    if path.starts_with("/ws/") {
        user_address(settings, surface)
    } else {
        address(settings, surface)
    }
}

fn checked(surface: Surface, address: Option<&Url>) -> Result<&Url, StreamStartError> {
    if !matches!(surface, Surface::Spot | Surface::Futures) {
        return Err(StreamStartError::NoStreams(surface));
    }
    address.ok_or(StreamStartError::NoAddress(surface))
}

#[cfg(test)]
mod tests {
    use windvane_client_core::streams::MarketPath;
    use windvane_protocol::Brand;
    use windvane_protocol::sign::{Credentials, Dialect, Network};

    use super::*;
    use crate::settings::Addresses;

    #[test]
    fn the_path_of_a_listen_key_selects_the_user_streams_address() {
        let surface = Surface::Futures;
        let addresses = Addresses::default()
            .ws(surface, "wss://all")
            .and_then(|addresses| addresses.user_ws(surface, "wss://own"))
            .unwrap();
        let dialect = Dialect {
            brand: Brand::new("svc").unwrap(),
            network: Network::Mainnet,
            recv_window_ms: None,
        };
        let settings = Settings::new(addresses, dialect, Credentials::default());
        let host = |path: &str| {
            let address = address_for(&settings, surface, path).unwrap();
            address.host_str().map(str::to_owned).unwrap()
        };
        assert_eq!(host("/ws/a-listen-key"), "own");
        for path in [MarketPath::Combined, MarketPath::Raw] {
            assert_eq!(host(path.path()), "all");
        }
        let refused = address_for(&settings, Surface::Rpc, "/ws");
        assert_eq!(refused, Err(StreamStartError::NoStreams(Surface::Rpc)));
    }
}
