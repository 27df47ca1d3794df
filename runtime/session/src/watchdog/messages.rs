//! The messages between a run and its watchdog process.

use serde::{Deserialize, Serialize};

/// A message of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMessage {
    /// A heartbeat.
    #[serde(rename = "beat")]
    Heartbeat {
        /// Increases by one each time.
        number: u64,
        /// How long the venue wants no requests at all, in milliseconds.
        stopped_ms: u64,
    },
    /// The run stops in an orderly way: nothing must be cancelled.
    End,
}

/// A message of the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchdogMessage {
    /// The venue accepted its key, and its clock was read.
    Armed,
    /// A heartbeat was received.
    #[serde(rename = "heard")]
    Acknowledged {
        /// Its number.
        number: u64,
    },
    /// It cancels orders.
    Acting,
}
