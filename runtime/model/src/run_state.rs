//! The state of a run: whether new orders may be sent, and the kill switch that a person or a limit
//! has set.

use serde::{Deserialize, Serialize};

/// Whether new orders may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum RunState {
    /// New orders may be sent.
    Ready = 0,
    /// At least one degraded reason holds: no order may add exposure.
    Degraded = 1,
    /// Halted: own orders are cancelled, and no new order is sent until `resume`.
    Halted = 2,
    /// Paused: no order may add exposure.
    Paused = 3,
    /// The engine compares its state with the venue: no order is sent.
    Syncing = 4,
    /// The driver restores the journal: no order is sent.
    Booting = 5,
}

impl RunState {
    /// The state as one word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Halted => "halted",
            Self::Paused => "paused",
            Self::Syncing => "syncing",
            Self::Booting => "booting",
        }
    }

    /// The state that strategies see. Until a run is ready, `Syncing` and `Booting` appear as
    /// `Degraded`.
    pub const fn as_seen_by_strategies(self) -> i64 {
        match self {
            Self::Syncing | Self::Booting => Self::Degraded as i64,
            state => state as i64,
        }
    }

    /// The state for a strategy with a kill switch of its own: the stricter of the two.
    #[must_use]
    pub const fn under(self, kill_switch: KillSwitch) -> Self {
        match (kill_switch, self) {
            (KillSwitch::Halted, _) => Self::Halted,
            (KillSwitch::Paused, Self::Ready) => Self::Paused,
            (_, state) => state,
        }
    }
}

/// The kill switch that the operator or a loss limit has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillSwitch {
    /// No restriction.
    Clear,
    /// Pause.
    Paused,
    /// Halt.
    Halted,
}

impl KillSwitch {
    /// The state of a run that nothing else holds back.
    pub const fn alone(self) -> RunState {
        match self {
            Self::Clear => RunState::Ready,
            Self::Paused => RunState::Paused,
            Self::Halted => RunState::Halted,
        }
    }
}
