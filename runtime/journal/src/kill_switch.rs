//! The kill switch file (`latch`). It is separate from the journal, so that a halt survives even
//! the loss of the journal.

use std::fmt::Write as _;
use std::path::Path;

use windvane_model::kill_switch::{StoredKillSwitch, StoredKillSwitches};

use crate::small_file::{self, SmallFileError};

const KIND: &str = "latch";

/// Makes the kill switches durable. Control characters in reasons become spaces.
pub(crate) fn write(kill_switches: &StoredKillSwitches, path: &Path) -> Result<(), SmallFileError> {
    let one_line = |text: &str| text.replace(char::is_control, " ");
    let (state, reason) = kill_switches.account.words().unwrap_or(("clear", ""));
    let mut lines = format!("state {state}\nreason {}", one_line(reason));
    if kill_switches.margin_call {
        lines.push_str("\nmargin call");
    }
    if kill_switches.flatten {
        lines.push_str("\nflatten");
    }
    for (name, strategy) in &kill_switches.strategies {
        let quarantine = strategy.quarantine.as_ref();
        let entries = [
            strategy.switch.words(),
            quarantine.map(|(fault, reason)| (fault.as_str(), reason.as_str())),
            strategy.flatten.then_some(("owed", "")),
        ];
        for (kind, entry) in ["latch", "fault", "flatten"].iter().zip(entries) {
            if let Some((word, reason)) = entry {
                let reason = one_line(reason);
                // Writing to a string cannot fail.
                let _ = write!(lines, "\n{kind} {name} {word} {reason}");
            }
        }
    }
    small_file::write(path, KIND, &lines)
}

/// The stored kill switches; empty without a file. A file that cannot be read counts as a halt,
/// because it may have contained one.
pub(crate) fn read(path: &Path) -> StoredKillSwitches {
    let lines = match small_file::read(path, KIND) {
        Ok(None) => return StoredKillSwitches::default(),
        Ok(Some(lines)) => lines,
        Err(error) => return unreadable(&error),
    };
    parse(&lines).unwrap_or_else(|| unreadable(&small_file::damaged(path)))
}

fn unreadable(error: &SmallFileError) -> StoredKillSwitches {
    let reason = format!("the kill switch file could not be read, which counts as a halt: {error}");
    StoredKillSwitches {
        account: StoredKillSwitch::Halted { reason },
        ..StoredKillSwitches::default()
    }
}

fn parse(text: &str) -> Option<StoredKillSwitches> {
    let mut lines = text.split('\n');
    let state = lines.next()?.strip_prefix("state ")?;
    let reason = lines.next()?.strip_prefix("reason ")?;
    let mut kill_switches = StoredKillSwitches {
        account: StoredKillSwitch::of(state, reason)?,
        ..StoredKillSwitches::default()
    };
    for line in lines {
        if line == "margin call" {
            kill_switches.margin_call = true;
            continue;
        }
        if line == "flatten" {
            kill_switches.flatten = true;
            continue;
        }
        let (kind, rest) = line.split_once(' ')?;
        let (name, rest) = rest.split_once(' ')?;
        let (word, reason) = rest.split_once(' ')?;
        let strategy = kill_switches.strategies.entry(name.to_owned()).or_default();
        match kind {
            "latch" => strategy.switch = StoredKillSwitch::of(word, reason)?,
            "fault" => strategy.quarantine = Some((word.to_owned(), reason.to_owned())),
            "flatten" => strategy.flatten = true,
            _ => return None,
        }
    }
    Some(kill_switches)
}

#[cfg(test)]
mod tests {
    use windvane_model::kill_switch::StrategyKillSwitch;

    use super::*;

    fn of_account(account: StoredKillSwitch) -> StoredKillSwitches {
        StoredKillSwitches {
            account,
            ..StoredKillSwitches::default()
        }
    }

    #[test]
    fn an_unreadable_kill_switch_file_counts_as_a_halt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latch");
        assert_eq!(read(&path), StoredKillSwitches::default());
        let halted = |reason: &str| {
            let reason = reason.to_owned();
            of_account(StoredKillSwitch::Halted { reason })
        };
        let kill_switches = halted("max_daily_loss: -501 of 500, \u{e4}\ncheck 00");
        write(&kill_switches, &path).unwrap();
        let wanted = halted("max_daily_loss: -501 of 500, \u{e4} check 00");
        assert_eq!(read(&path), wanted);
        let paused = StoredKillSwitch::Paused {
            reason: String::new(),
        };
        for kill_switches in [of_account(paused), StoredKillSwitches::default()] {
            write(&kill_switches, &path).unwrap();
            assert_eq!(read(&path), kill_switches);
        }
        std::fs::write(&path, "state clear").unwrap();
        let account = read(&path).account;
        assert!(matches!(account, StoredKillSwitch::Halted { .. }));
    }

    #[test]
    fn the_kill_switch_of_a_strategy_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latch");
        let halted = StrategyKillSwitch {
            switch: StoredKillSwitch::Halted {
                reason: "the operator asked for it".to_owned(),
            },
            quarantine: Some(("fuel".to_owned(), String::new())),
            flatten: true,
        };
        let faulty = StrategyKillSwitch {
            quarantine: Some(("trap".to_owned(), "wasm\ttrap: unreachable".to_owned())),
            ..StrategyKillSwitch::default()
        };
        let strategies = [("mm".to_owned(), halted), ("x".to_owned(), faulty)];
        let mut kill_switches = StoredKillSwitches {
            account: StoredKillSwitch::Clear,
            strategies: strategies.into(),
            margin_call: true,
            flatten: true,
        };
        write(&kill_switches, &path).unwrap();
        let reason = "wasm trap: unreachable".to_owned();
        let faulty = kill_switches.strategies.get_mut("x").unwrap();
        faulty.quarantine = Some(("trap".to_owned(), reason));
        assert_eq!(read(&path), kill_switches);
    }
}
