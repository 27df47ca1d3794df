//! What an operator may tell a running instance, and what comes back.
//!
//! Nothing that moves money to another account is here, and never will be (promise 9).

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::view::{State, Strategy};

/// Building modules takes so long at most.
const RELOAD_WITHIN: Duration = Duration::from_mins(10);

/// A command of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// No new exposure; cancels and reducing orders pass.
    Pause,
    /// Ends a pause or a halt.
    Resume,
    /// Cancel own orders; latched across restarts.
    Halt,
    /// Halt, then close own positions.
    Flatten,
    /// Load changed modules, and what of the configuration may change while running.
    Reload,
}

impl Command {
    /// All commands.
    pub const ALL: [Self; 5] = [
        Self::Pause,
        Self::Resume,
        Self::Halt,
        Self::Flatten,
        Self::Reload,
    ];

    /// Whether it latches, so that it holds across restarts once it is durable.
    pub const fn latches(self) -> bool {
        match self {
            Self::Pause | Self::Halt | Self::Flatten => true,
            Self::Resume | Self::Reload => false,
        }
    }

    /// How long an answer may take where others have `others`: a reload builds modules.
    pub(crate) fn answer_within(self, others: Duration) -> Duration {
        match self {
            Self::Reload => RELOAD_WITHIN.max(others),
            Self::Pause | Self::Resume | Self::Halt | Self::Flatten => others,
        }
    }

    /// The verb, which is also the last part of the route.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Halt => "halt",
            Self::Flatten => "flatten",
            Self::Reload => "reload",
        }
    }
}

/// A command on its way to the engine's loop.
#[derive(Debug)]
pub struct Steer {
    /// What.
    pub command: Command,
    /// For one strategy; for all when absent.
    pub strategy: Option<String>,
    /// The configuration that whoever asks for a reload means; the one of the start when absent.
    pub config: Option<PathBuf>,
    /// Where the answer goes, once what it says is published.
    pub answer: oneshot::Sender<Result<Applied, Refused>>,
}

impl Steer {
    /// Whether it is still to be carried out. Who asked for less risk and lost patience wants it
    /// all the same; trading that begins minutes after somebody gave up waiting is nobody's wish.
    pub fn is_wanted(&self) -> bool {
        self.command.latches() || !self.answer.is_closed()
    }
}

/// A command that was taken, and what is now the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// State after it.
    pub state: State,
    /// Why it is in this state.
    pub reason: String,
    /// When it entered the state, Unix milliseconds.
    pub since_ms: i64,
    /// What is still under way, such as positions that are being closed; empty when nothing is.
    pub pending: String,
    /// The strategy that was commanded; `null` when all were.
    pub strategy: Option<Strategy>,
    /// What a reload changed, in words; empty for other commands.
    pub changes: Vec<String>,
}

impl Applied {
    /// How [`Self::pending`] says that a restart may not know of the command.
    pub const NOT_DURABLE: &str = "the latch is not durable";

    /// Whether a restart knows of it.
    pub fn is_durable(&self) -> bool {
        !self.pending.contains(Self::NOT_DURABLE)
    }
}

/// A command that was not taken; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What is wrong, and by which rule.
    pub error: String,
    /// What to do next.
    pub what_to_do: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lessens_risk_outlives_its_asker_and_the_rest_does_not() {
        for command in Command::ALL {
            let (answer, asker) = oneshot::channel();
            let strategy = None;
            let steer = Steer {
                command,
                strategy,
                config: None,
                answer,
            };
            assert!(steer.is_wanted());
            drop(asker);
            assert_eq!(steer.is_wanted(), command.latches(), "{command:?}");
        }
    }
}
