//! No more orders in any minute than allowed, for a strategy and for the account. Sent orders count
//! at the time of their intent. A new process may start a new count, because its clock may differ
//! from the last one's. The runtime's own closing orders are never limited.

use std::collections::BTreeMap;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, Terms, WitnessEvent};

/// A minute minus the tolerance for reading the clock.
const MINUTE_NS: i64 = 60_000_000_000 - 1_000_000;

/// The rule.
#[derive(Debug)]
pub struct Rates {
    /// Limits by strategy; the account's limit has an empty name.
    limits: BTreeMap<String, u32>,
    /// Times of the intents of orders that were not sent yet.
    intended: BTreeMap<String, i64>,
    /// Times of the intents of sent orders.
    sent: BTreeMap<String, Vec<i64>>,
}

impl Rates {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        let strategies = terms.strategies.iter().map(|s| (s.id.clone(), &s.limits));
        let all = strategies.chain([(String::new(), &terms.limits)]);
        Self {
            limits: all
                .filter_map(|(who, limits)| Some((who, limits.max_orders_per_minute?)))
                .collect(),
            intended: BTreeMap::new(),
            sent: BTreeMap::new(),
        }
    }

    fn sent(&mut self, id: &str) -> Result<(), String> {
        let Some(at_ns) = self.intended.remove(id) else {
            return Ok(());
        };
        for who in [wire::strategy(id), ""] {
            let Some(max) = self.limits.get(who) else {
                continue;
            };
            let times = self.sent.entry(who.to_owned()).or_default();
            times.push(at_ns);
            times.retain(|time| *time > at_ns - 2 * MINUTE_NS);
            let within = |time: &&i64| **time > at_ns - MINUTE_NS && **time <= at_ns;
            let count = times.iter().filter(within).count();
            if count > *max as usize {
                let who = if who.is_empty() { "the account" } else { who };
                return Err(format!(
                    "{id} is order {count} of {who} within a minute, but only {max} are allowed"
                ));
            }
        }
        Ok(())
    }
}

impl Check for Rates {
    fn rule(&self) -> &'static str {
        "no more orders a minute than allowed"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.intended.clear();
                self.sent.clear();
            }
            WitnessEvent::Intended {
                client_order_id, ..
            } => {
                self.intended.insert(client_order_id.clone(), entry.at_ns);
            }
            WitnessEvent::Sent(request) => {
                if let RequestKind::Place(orders) = wire::request_kind(request) {
                    return orders.iter().try_for_each(|placed| self.sent(&placed.id));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    fn limited(own: Option<u32>, all: Option<u32>) -> Rates {
        let mut terms = terms();
        terms.strategies[0].limits.max_orders_per_minute = own;
        terms.limits.max_orders_per_minute = all;
        Rates::new(&terms)
    }

    fn three(apart_ms: i64) -> Log {
        let order = |log: Log, id: &str| log.intend(id).place(id).later_ms(apart_ms);
        ["mm.a.1", "mm.a.2", "mm.a.3"]
            .into_iter()
            .fold(Log::new(), order)
    }

    #[test]
    fn the_minute_is_a_sliding_window() {
        assert_eq!(verdict(limited(Some(2), None), &three(30_000)), Ok(()));
        assert!(verdict(limited(Some(2), None), &three(29_000)).is_err());
    }

    #[test]
    fn the_account_limit_counts_all_strategies() {
        let other = || Log::new().intend("ema.a.1").place("ema.a.1");
        let both = other().intend("mm.a.2").place("mm.a.2");
        assert!(verdict(limited(None, Some(1)), &both).is_err());
        assert_eq!(verdict(limited(Some(1), None), &both), Ok(()));
    }

    #[test]
    fn orders_count_at_the_time_of_the_intent() {
        let meant = Log::new()
            .intend("mm.a.1")
            .later_ms(60_000)
            .intend("mm.a.2");
        let sound = meant.place("mm.a.1").place("mm.a.2");
        assert_eq!(verdict(limited(Some(1), None), &sound), Ok(()));
    }
}
