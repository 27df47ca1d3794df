//! Kill switches (pauses and halts) with their reasons, as they are stored beside the journal. They
//! survive the loss of the journal.

use std::collections::BTreeMap;

/// A restriction that survives restarts until the operator clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoredKillSwitch {
    /// No restriction.
    #[default]
    Clear,
    /// Orders that add exposure are rejected.
    Paused {
        /// The reason as text on one line.
        reason: String,
    },
    /// Own orders are cancelled, and no new order is sent.
    Halted {
        /// The reason as text on one line.
        reason: String,
    },
}

/// The kill switches of one strategy, in addition to those of the account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrategyKillSwitch {
    /// The pause or halt by the operator.
    pub switch: StoredKillSwitch,
    /// Its quarantine: the fault as one word, and the reason on one line.
    pub quarantine: Option<(String, String)>,
    /// The operator ordered to close its positions, and they are not all closed yet.
    pub flatten: bool,
}

/// All kill switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredKillSwitches {
    /// The kill switch of the account.
    pub account: StoredKillSwitch,
    /// The kill switches by strategy name. Strategies without a kill switch may be missing.
    pub strategies: BTreeMap<String, StrategyKillSwitch>,
    /// The venue sent a margin call, and the operator has not resumed since.
    pub margin_call: bool,
    /// The operator ordered to close all positions, and they are not all closed yet.
    pub flatten: bool,
}

impl StoredKillSwitch {
    /// The kill switch as one word, with its reason; `None` if it is clear.
    pub fn words(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Clear => None,
            Self::Paused { reason } => Some(("paused", reason)),
            Self::Halted { reason } => Some(("halted", reason)),
        }
    }

    /// The kill switch that this word names; `None` for an unknown word.
    pub fn of(word: &str, reason: &str) -> Option<Self> {
        let reason = reason.to_owned();
        match word {
            "clear" => Some(Self::Clear),
            "paused" => Some(Self::Paused { reason }),
            "halted" => Some(Self::Halted { reason }),
            _ => None,
        }
    }
}
