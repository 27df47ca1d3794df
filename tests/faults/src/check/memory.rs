//! A strategy continues from the state of its last sent order, or from a later one. Otherwise it
//! would send an order again that its state already contains. The states of the samples are small;
//! larger states may be older (`docs/internals/live-run.md#saved-states`).

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Memory {
    strategies: BTreeMap<String, Known>,
    /// Orders of this process, with the index of their strategy's state.
    meant: BTreeMap<String, usize>,
    /// Strategies that got their state in this process.
    given: BTreeSet<String>,
    process: u32,
}

/// The observed states of a strategy.
#[derive(Debug, Default)]
struct Known {
    states: Vec<u64>,
    /// The index of the state at which the last sent order was intended, and that order.
    left: Option<(usize, String)>,
    quarantined: bool,
}

impl Check for Memory {
    fn rule(&self) -> &'static str {
        "a strategy goes on from what it knew"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { process }) => {
                self.process = *process;
                self.meant.clear();
                self.given.clear();
            }
            // After a rolled back journal the earlier states are unknown.
            WitnessEvent::Process(ProcessEvent::Running { journal, .. })
                if !["clean", "torn"].contains(&journal.as_str()) =>
            {
                self.strategies
                    .values_mut()
                    .for_each(|known| known.left = None);
            }
            WitnessEvent::Quarantined { strategy } => self.known(strategy).quarantined = true,
            WitnessEvent::Knew {
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
            WitnessEvent::Given { strategy, state } => return self.give(strategy, *state),
            WitnessEvent::Sent(request) => {
                if let RequestKind::Place(orders) = wire::request_kind(request) {
                    for placed in orders {
                        self.sent(placed.id);
                    }
                }
            }
            _ => {}
        }
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

    /// Only the first state that a strategy gets in a process is checked. States at later reloads
    /// come from the running strategy itself.
    fn give(&mut self, strategy: &str, state: u64) -> Result<(), String> {
        if !self.given.insert(strategy.to_owned()) {
            return Ok(());
        }
        let known = self.known(strategy);
        known.quarantined = false;
        let place = known.states.iter().rposition(|known| *known == state);
        match (&known.left, place) {
            (Some((left, id)), place) if place.is_none_or(|place| place < *left) => {
                Err(format!("{strategy} gets a state from before it sent {id}"))
            }
            _ => Ok(()),
        }
    }

    /// A strategy that sent an order must not start without a state.
    fn is_given(&mut self, strategy: &str) -> Result<(), String> {
        let given = self.given.contains(strategy);
        let process = self.process;
        let known = self.known(strategy);
        match &known.left {
            Some((_, id)) if !given && process > 1 && !known.quarantined => Err(format!(
                "{strategy} starts without a state, as if it had not sent {id}"
            )),
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

    /// An order that was sent by a strategy in state 2.
    fn left() -> Log {
        Log::new()
            .start()
            .knew("mm", 1, None)
            .knew("mm", 2, Some("mm.a.1"))
            .place("mm.a.1")
    }

    #[test]
    fn the_state_of_the_last_order_or_a_later_one_is_accepted() {
        for state in [2, 3] {
            let sound = left().knew("mm", 3, None).start().given("mm", state);
            assert_eq!(verdict(Memory::default(), &sound), Ok(()));
        }
    }

    #[test]
    fn an_older_state_is_found() {
        let broken = left().start().given("mm", 1);
        assert!(verdict(Memory::default(), &broken).is_err());
    }

    #[test]
    fn a_start_without_a_state_is_found() {
        let broken = left().start().knew("mm", 1, None);
        assert!(verdict(Memory::default(), &broken).is_err());
    }

    #[test]
    fn an_order_that_never_left_may_be_forgotten() {
        let sound = Log::new()
            .start()
            .knew("mm", 1, None)
            .knew("mm", 2, Some("mm.a.1"))
            .start()
            .given("mm", 1);
        assert_eq!(verdict(Memory::default(), &sound), Ok(()));
    }
}
