//! Counts what happened in a life and what failed: a life in which nothing happens proves nothing.

use std::collections::BTreeMap;

use crate::witness::WitnessEvent;

/// Kills that tore the block that was being written.
pub const TORN: &str = "torn";
/// Kills that lost durable blocks.
pub const ROLLED_BACK: &str = "rolled-back";

/// Orderly stops that completed `on_stop`.
pub const STOPPED: &str = "stopped";
/// Orderly stops that did not complete it.
pub const HURRIED: &str = "hurried";
/// Starts during a ban that an earlier process was notified of.
pub const BAN_HEEDED: &str = "ban-heeded";
/// Times that a spot watchdog process cancelled orders.
pub const WATCHDOG_ACTS: &str = "watchdog-acts";
/// Watchdog processes that did not respond, so that their run killed them.
pub const WATCHDOG_KILLED: &str = "watchdog-killed";
/// Changes of an account mode that the venue accepted.
pub const MODE_CHANGED: &str = "mode-changed";
/// Reloads that found other parameters or modules.
pub const CHANGED: &str = "changed";

/// The counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Orders that were sent.
    pub orders: u64,
    /// Executions at the venue.
    pub fills: u64,
    /// Intents that the runtime rejected because of a rule or a limit.
    pub refused: u64,
    /// Faults by their kind (`src/fault_plan.rs` names the kinds). Kills that damaged the journal are also
    /// counted by their damage.
    pub faults: BTreeMap<&'static str, u64>,
    /// Lives in which the venue had a value other than the default, by point and value.
    pub choices: BTreeMap<(&'static str, &'static str), u64>,
}

impl Tally {
    /// Counts a witness entry.
    pub fn see(&mut self, seen: &WitnessEvent) {
        match seen {
            WitnessEvent::Sent(request) if request.route.ends_with(".new_order") => {
                self.orders += 1;
            }
            WitnessEvent::Executed { .. } => self.fills += 1,
            WitnessEvent::Refused { .. } => self.refused += 1,
            _ => {}
        }
    }

    /// Counts a fault.
    pub fn count(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }

    /// Adds the counts of another tally.
    pub fn add(&mut self, other: &Self) {
        self.orders += other.orders;
        self.fills += other.fills;
        self.refused += other.refused;
        for (kind, count) in &other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (choice, count) in &other.choices {
            *self.choices.entry(*choice).or_default() += count;
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            orders,
            fills,
            refused,
            faults,
            choices,
        } = self;
        write!(f, "{orders} orders, {fills} fills, {refused} refused here")?;
        if faults.is_empty() {
            write!(f, "; no faults")?;
        } else {
            let each = faults.iter().map(|(kind, count)| format!("{kind} {count}"));
            write!(f, "; faults: {}", each.collect::<Vec<_>>().join(", "))?;
        }
        if choices.is_empty() {
            return Ok(());
        }
        let each = choices.iter();
        let each = each.map(|((point, value), count)| format!("{point}={value} {count}"));
        write!(f, "; open points: {}", each.collect::<Vec<_>>().join(", "))
    }
}
