//! What a stream needs to begin: an address, and the rules of its machine.

use std::time::Duration;

use url::Url;
use windvane_venue::route::Surface;

use crate::budget::polling::PollingError;
use crate::settings::Settings;

use super::link::LinkRules;
use super::machine::{KeyRules, Rules};
use super::settings::StreamSettings;

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

/// The life of a listen key that is not renewed (spec 1, Listen key).
const KEY_LIFE: Duration = Duration::from_hours(1);
/// A connection that stood so long does not count as another failure.
const GOOD_AFTER: Duration = Duration::from_mins(1);
/// How long a SUBSCRIBE may stay unanswered.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn address(settings: &Settings, surface: Surface) -> Result<&Url, StreamStartError> {
    if !matches!(surface, Surface::Spot | Surface::Futures) {
        return Err(StreamStartError::NoStreams(surface));
    }
    let address = settings.addresses.ws_of(surface);
    address.ok_or(StreamStartError::NoAddress(surface))
}

/// Rules of one connection, without a listen key; `salt` keeps the pauses of several apart.
pub fn rules(settings: &StreamSettings, salt: u64) -> Rules {
    Rules {
        link: LinkRules {
            ping_every_ms: millis(settings.ping_every),
            pong_within_ms: millis(settings.pong_within),
            silence_max_ms: None,
            answer_within_ms: millis(ANSWER_WITHIN),
            messages_per_s: settings.messages_per_s,
        },
        backoff_ms: (millis(settings.backoff.0), millis(settings.backoff.1)),
        age_max_ms: millis(settings.age_max),
        overlap_ms: millis(settings.overlap),
        connect_within_ms: millis(settings.connect_within),
        good_after_ms: millis(GOOD_AFTER),
        key: None,
        commands: Vec::new(),
        seed: settings.seed.wrapping_add(salt),
    }
}

/// How listen keys are kept.
pub fn key_rules(settings: &StreamSettings) -> KeyRules {
    KeyRules {
        renew_every_ms: millis(settings.renew_every),
        life_ms: millis(KEY_LIFE),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
