//! The operator's commands to a running instance, and their answers.
//!
//! No command moves money to another account, and none ever will
//! (`docs/promises.md#9-strategies-have-only-intents`).

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::view::{State, Strategy};

/// The maximum time of a reload, which builds modules.
const RELOAD_WITHIN: Duration = Duration::from_mins(10);

/// A command of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Send no order that adds exposure. Cancels and reducing orders are still sent.
    Pause,
    /// End a pause or a halt.
    Resume,
    /// Cancel own orders and send none. The halt survives restarts.
    Halt,
    /// Halt, then close own positions.
    Flatten,
    /// Load changed modules and the settings that may change while running.
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

    /// Whether it sets a kill switch, which survives restarts once it is durable.
    pub const fn sets_kill_switch(self) -> bool {
        match self {
            Self::Pause | Self::Halt | Self::Flatten => true,
            Self::Resume | Self::Reload => false,
        }
    }

    /// The time limit of the answer. `others` is the limit of commands other than reload, which
    /// builds modules.
    pub(crate) fn answer_within(self, others: Duration) -> Duration {
        match self {
            Self::Reload => RELOAD_WITHIN.max(others),
            Self::Pause | Self::Resume | Self::Halt | Self::Flatten => others,
        }
    }

    /// The verb of the command line, also the last part of the route.
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

/// A command for the engine's loop.
#[derive(Debug)]
pub struct Steer {
    /// The command.
    pub command: Command,
    /// The strategy; `None` means all strategies.
    pub strategy: Option<String>,
    /// For a reload, the file that the caller expects to be read; `None` means the file of the
    /// start.
    pub config: Option<PathBuf>,
    /// Receives the answer after its effect is published.
    pub answer: oneshot::Sender<Result<Applied, Refused>>,
}

impl Steer {
    /// Whether the command must still be carried out. A risk-reducing command runs even if the
    /// caller disconnected. Any other command does not: the caller no longer expects trading to
    /// start.
    pub fn is_wanted(&self) -> bool {
        self.command.sets_kill_switch() || !self.answer.is_closed()
    }
}

/// A command that was carried out, and the state after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The state after the command.
    pub state: State,
    /// Why it is in this state.
    pub reason: String,
    /// When it entered the state, Unix milliseconds.
    pub since_ms: i64,
    /// Work that is not finished, such as positions that are being closed; else empty.
    pub pending: String,
    /// The strategy of the command; `null` if it was for all.
    pub strategy: Option<Strategy>,
    /// The changes of a reload, as text; empty for other commands.
    pub changes: Vec<String>,
}

impl Applied {
    /// The text in [`Self::pending`] if a restart may not know the command.
    pub const NOT_DURABLE: &str = "the kill switch is not durable";

    /// Whether the command survives a restart.
    pub fn is_durable(&self) -> bool {
        // An instance of an earlier version says "the latch is not durable".
        !self.pending.contains("is not durable")
    }
}

/// A command that was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The error, with the rule that refused the command.
    pub error: String,
    /// The next step for the operator.
    pub what_to_do: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_risk_reducing_commands_run_after_a_disconnect() {
        for command in Command::ALL {
            let (answer, caller) = oneshot::channel();
            let strategy = None;
            let steer = Steer {
                command,
                strategy,
                config: None,
                answer,
            };
            assert!(steer.is_wanted());
            drop(caller);
            assert_eq!(steer.is_wanted(), command.sets_kill_switch(), "{command:?}");
        }
    }
}
