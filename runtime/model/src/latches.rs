//! What is latched and why, as it is kept beside the journal. It holds even where the journal is lost.

use std::collections::BTreeMap;

/// What must hold across restarts until it is taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Latch {
    /// Nothing is latched.
    #[default]
    Clear,
    /// No new exposure.
    Paused {
        /// Why, in words, on one line.
        reason: String,
    },
    /// Own orders cancelled, nothing sent.
    Halted {
        /// Why, in words, on one line.
        reason: String,
    },
}

/// What is latched for one strategy, beside what holds for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrategyLatch {
    /// The operator's word.
    pub latch: Latch,
    /// Its quarantine: the fault in one word, and why, on one line.
    pub quarantine: Option<(String, String)>,
    /// Its positions are to be closed, by the operator's word, and are not yet.
    pub flatten: bool,
}

/// Everything that is latched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latches {
    /// For all.
    pub account: Latch,
    /// By strategy; what is clear may be left out.
    pub strategies: BTreeMap<String, StrategyLatch>,
    /// The venue called for margin, and nobody resumed since.
    pub margin_call: bool,
    /// All positions are to be closed, by the operator's word, and are not yet.
    pub flatten: bool,
}

impl Latch {
    /// The latch in one word and why; `None` where nothing is latched.
    pub fn words(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Clear => None,
            Self::Paused { reason } => Some(("paused", reason)),
            Self::Halted { reason } => Some(("halted", reason)),
        }
    }

    /// The latch of this word; `None` for a word that is not known.
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
