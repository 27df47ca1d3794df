//! What was done in a life and what went wrong in it, counted: a life in which nothing happens
//! proves nothing.

use std::collections::BTreeMap;

use crate::witness::Seen;

/// Kills that tore the block that was being written.
pub const TORN: &str = "torn";
/// Kills that took durable blocks along.
pub const ROLLED_BACK: &str = "rolled-back";

/// Orderly stops that ended with everything done.
pub const STOPPED: &str = "stopped";
/// Those that did not.
pub const HURRIED: &str = "hurried";
/// Starts within a ban that a process before was told of.
pub const BAN_HEEDED: &str = "ban-heeded";
/// Times that the watchdog process of spot cancelled.
pub const WATCHDOG_ACTS: &str = "watchdog-acts";
/// Watchdog processes that did not answer, and were killed by their run.
pub const WATCHDOG_KILLED: &str = "watchdog-killed";
/// Modes of the account that the venue let somebody change.
pub const MODE_CHANGED: &str = "mode-changed";
/// Reloads that found other parameters or modules.
pub const CHANGED: &str = "changed";

/// The counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Orders that left.
    pub orders: u64,
    /// Times that the venue executed something of one.
    pub fills: u64,
    /// Intents that broke a rule or a limit of ours.
    pub refused: u64,
    /// Faults, by their kind (`src/mix.rs` names them); kills that damaged the journal also by the
    /// damage.
    pub faults: BTreeMap<&'static str, u64>,
    /// Lives in which the venue had a value other than the default, by point and value.
    pub choices: BTreeMap<(&'static str, &'static str), u64>,
}

impl Tally {
    /// Something was seen.
    pub fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Sent(request) if request.route.ends_with(".new_order") => self.orders += 1,
            Seen::Executed { .. } => self.fills += 1,
            Seen::Refused { .. } => self.refused += 1,
            _ => {}
        }
    }

    /// A fault happened.
    pub fn count(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }

    /// Adds another.
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
