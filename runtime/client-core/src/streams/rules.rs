//! Converts the settings of streams into the rules of a machine.

use std::time::Duration;

use super::machine::{KeyRules, LinkRules, Rules};
use super::settings::StreamSettings;

/// The lifetime of a listen key that is not renewed (docs/interface/user-stream.md#listen-keys).
const KEY_LIFE: Duration = Duration::from_hours(1);
/// A connection that lived this long resets the count of failures.
const GOOD_AFTER: Duration = Duration::from_mins(1);
/// How long a SUBSCRIBE may stay unanswered.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Rules of one connection, without a listen key; `salt` gives each connection different pauses.
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

/// Rules for renewing listen keys.
pub fn key_rules(settings: &StreamSettings) -> KeyRules {
    KeyRules {
        renew_every_ms: millis(settings.renew_every),
        life_ms: millis(KEY_LIFE),
    }
}

/// A duration in whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
