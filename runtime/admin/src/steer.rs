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
pub(crate) const RELOAD_WITHIN: Duration = Duration::from_mins(10);
/// The maximum time of the start of a strategy that is resumed.
pub(crate) const START_WITHIN: Duration = Duration::from_secs(70);
/// The longest time that a command may wait for the end of own orders.
pub const WAIT_MAX: Duration = Duration::from_mins(1);

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

    /// Whether it cancels own orders, and can wait until the venue confirmed that.
    pub const fn cancels_orders(self) -> bool {
        matches!(self, Self::Halt | Self::Flatten)
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
    /// For a halt or flatten, how long the answer waits until no order that it cancels is open any
    /// more. Zero answers once the kill switch is durable.
    pub wait: Duration,
    /// Receives the answer after its effect is published.
    pub answer: oneshot::Sender<Result<Applied, Refused>>,
}

impl Steer {
    /// A command for all strategies that does not wait.
    pub const fn new(command: Command, answer: oneshot::Sender<Result<Applied, Refused>>) -> Self {
        Self {
            command,
            strategy: None,
            config: None,
            wait: Duration::ZERO,
            answer,
        }
    }

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
    /// Whether the command survives a restart: its kill switch is on the disk. `null` for commands
    /// without a kill switch, and from instances of earlier versions.
    #[serde(default)]
    pub durable: Option<bool>,
    /// What a halt or flatten did with own orders; `null` for other commands.
    #[serde(default)]
    pub cancels: Option<Cancels>,
}

/// The own orders that a halt or flatten cancels: those that may have been open at the venue when it
/// was carried out, and the results so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancels {
    /// All of them.
    pub orders: u64,
    /// Orders that the venue confirmed as cancelled.
    pub cancelled: u64,
    /// Orders that were executed completely before the cancel arrived.
    pub filled: u64,
    /// Orders that ended otherwise, such as expired ones, or ones that the venue does not know.
    pub ended: u64,
    /// Orders that may still be open at the venue. The run goes on cancelling them.
    pub open: u64,
    /// The first of the open orders, at most [`Cancels::LISTED_MAX`].
    pub still_open: Vec<StillOpen>,
}

impl Cancels {
    /// How many open orders are listed.
    pub const LISTED_MAX: usize = 20;
}

/// An order that a halt or flatten cancels, and that may still be open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StillOpen {
    /// Its id, chosen by this program.
    pub client_order_id: String,
    /// Its instrument.
    pub instrument: String,
    /// Its strategy.
    pub strategy: String,
    /// `BUY` or `SELL`.
    pub side: String,
}

impl Applied {
    /// The text in [`Self::pending`] if a restart may not know the command.
    pub const NOT_DURABLE: &str = "the kill switch is not durable";

    /// Whether the command survives a restart.
    pub fn is_durable(&self) -> bool {
        // An instance of an earlier version has only the text, and may call the kill switch a latch.
        let by_text = || !self.pending.contains("is not durable");
        self.durable.unwrap_or_else(by_text)
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
            let steer = Steer::new(command, answer);
            assert!(steer.is_wanted());
            drop(caller);
            assert_eq!(steer.is_wanted(), command.sets_kill_switch(), "{command:?}");
        }
    }

    #[test]
    fn durability_is_a_field_and_older_instances_say_it_in_the_text() {
        let text = |pending: &str, durable| Applied {
            pending: pending.to_owned(),
            durable,
            ..Applied::default()
        };
        assert!(!text("the latch is not durable", None).is_durable());
        assert!(text("", None).is_durable());
        assert!(!text("", Some(false)).is_durable());
        assert!(text("a strategy named is not durable", Some(true)).is_durable());
    }
}
