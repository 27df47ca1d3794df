//! A strategy goes on from what it knew when it ordered, or later: of two orders that its state
//! tells apart, the first would be sent again. States of the samples are small; larger ones may
//! be older (`ARCHITECTURE`, The live run).

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, Asked};
use crate::witness::{Entry, ProcessSeen, Rest, Seen};

/// The rule.
#[derive(Debug, Default)]
pub struct Memory {
    strategies: BTreeMap<String, Known>,
    /// Orders of this process, with the place of what their strategy knew.
    meant: BTreeMap<String, usize>,
    /// Strategies that were given their state in this process.
    given: BTreeSet<String>,
    process: u32,
}

/// What a strategy was seen to know.
#[derive(Debug, Default)]
struct Known {
    states: Vec<u64>,
    /// The place of what it knew when the last order that left was meant, and that order.
    left: Option<(usize, String)>,
    quarantined: bool,
}

impl Check for Memory {
    fn rule(&self) -> &'static str {
        "a strategy goes on from what it knew"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            Seen::Process(ProcessSeen::Started { process }) => {
                self.process = *process;
                self.meant.clear();
                self.given.clear();
            }
            // What a folder that was rolled back forgot, nobody knows any more.
            Seen::Process(ProcessSeen::Running { journal, .. })
                if !["clean", "torn"].contains(&journal.as_str()) =>
            {
                self.strategies
                    .values_mut()
                    .for_each(|known| known.left = None);
            }
            Seen::Quarantined { strategy } => self.known(strategy).quarantined = true,
            Seen::Knew {
                strategy,
                client_order_id,
                state,
            } => {
                self.is_given(strategy)?;
                let known = self.known(strategy);
                known.states.push(*state);
                let place = known.states.len() - 1;
                if let Some(id) = client_order_id {
                    self.meant.insert(id.clone(), place);
                }
            }
            Seen::Given { strategy, state } => return self.give(strategy, *state),
            Seen::Sent(request) => {
                if let Asked::Place(orders) = wire::asked(request) {
                    for placed in orders {
                        self.sent(placed.id);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
        Ok(())
    }
}

impl Memory {
    fn known(&mut self, strategy: &str) -> &mut Known {
        self.strategies.entry(strategy.to_owned()).or_default()
    }

    fn sent(&mut self, id: String) {
        let strategy = id.split('.').next().unwrap_or_default().to_owned();
        if let Some(place) = self.meant.remove(&id) {
            self.known(&strategy).left = Some((place, id));
        }
    }

    /// The first state that a process gives; a reload within it carries its own over.
    fn give(&mut self, strategy: &str, state: u64) -> Result<(), String> {
        if !self.given.insert(strategy.to_owned()) {
            return Ok(());
        }
        let known = self.known(strategy);
        known.quarantined = false;
        let place = known.states.iter().rposition(|known| *known == state);
        match (&known.left, place) {
            (Some((left, id)), place) if place.is_none_or(|place| place < *left) => Err(format!(
                "{strategy} is given what it knew before it sent {id}"
            )),
            _ => Ok(()),
        }
    }

    /// One that sent an order does not begin without a state.
    fn is_given(&mut self, strategy: &str) -> Result<(), String> {
        let given = self.given.contains(strategy);
        let process = self.process;
        let known = self.known(strategy);
        match &known.left {
            Some((_, id)) if !given && process > 1 && !known.quarantined => {
                Err(format!("{strategy} begins as if it had not sent {id}"))
            }
            _ => {
                self.given.insert(strategy.to_owned());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    /// An order that left, meant by a strategy that knew 2.
    fn left() -> Log {
        Log::new()
            .start()
            .knew("mm", 1, None)
            .knew("mm", 2, Some("mm.a.1"))
            .place("mm.a.1")
    }

    #[test]
    fn a_strategy_may_be_given_what_it_knew_then_or_later() {
        for state in [2, 3] {
            let sound = left().knew("mm", 3, None).start().given("mm", state);
            assert_eq!(verdict(Memory::default(), &sound), Ok(()));
        }
    }

    #[test]
    fn what_it_knew_before_is_found() {
        let broken = left().start().given("mm", 1);
        assert!(verdict(Memory::default(), &broken).is_err());
    }

    #[test]
    fn nothing_at_all_is_found() {
        let broken = left().start().knew("mm", 1, None);
        assert!(verdict(Memory::default(), &broken).is_err());
    }

    #[test]
    fn an_order_that_never_left_needs_no_memory() {
        let sound = Log::new()
            .start()
            .knew("mm", 1, None)
            .knew("mm", 2, Some("mm.a.1"))
            .start()
            .given("mm", 1);
        assert_eq!(verdict(Memory::default(), &sound), Ok(()));
    }
}
