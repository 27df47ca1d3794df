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

pub(super) fn address(settings: &Settings, surface: Surface) -> Result<&Url, StreamStartError> {
    if !matches!(surface, Surface::Spot | Surface::Futures) {
        return Err(StreamStartError::NoStreams(surface));
    }
    let address = settings.addresses.ws_of(surface);
    address.ok_or(StreamStartError::NoAddress(surface))
}
