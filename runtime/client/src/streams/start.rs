//! What a stream needs to begin: an address.

use url::Url;
use windvane_protocol::route::Surface;

use crate::budget::polling::PollingError;
use crate::settings::Settings;

/// A stream that cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamStartError {
    /// The settings hold no WebSocket address.
    #[error("no WebSocket address of {0} is configured")]
    NoAddress(Surface),
    /// The surface has no streams.
    #[error("{0} has no streams; spot and futures have")]
    NoStreams(Surface),
    /// Nothing to subscribe.
    #[error("a market stream needs at least one topic")]
    NoTopics,
    /// The settings allow documented streams only.
    #[error(
        "topic {0} is no stream of documents 1 to 3 and market_data is \"documented\": take a \
         feed, which polls it, or tradepro"
    )]
    NotDocumented(String),
    /// What has to be polled cannot be.
    #[error("market_data is \"documented\", so it has to be polled: {0}")]
    Polling(#[from] PollingError),
}

pub(super) fn address(settings: &Settings, surface: Surface) -> Result<&Url, StreamStartError> {
    if !matches!(surface, Surface::Spot | Surface::Futures) {
        return Err(StreamStartError::NoStreams(surface));
    }
    let address = settings.addresses.ws_of(surface);
    address.ok_or(StreamStartError::NoAddress(surface))
}
