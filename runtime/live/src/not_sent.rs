//! Orders that this runtime keeps back, for want of request weight or of a connection. The engine knows
//! how many there are. Here is why, for the trading status. Decides nothing.

use std::collections::BTreeMap;

use windvane_admin::view;
use windvane_client::budget::ORDERS_USED_UP;
use windvane_engine::Engine;
use windvane_model::effect::Notice;
use windvane_model::{Surface, Time};

/// So many in a row are more than a moment's.
const IN_A_ROW: u64 = 3;
/// A row is over after this without a further one. Strategies try again within five seconds.
const OVER_MS: i64 = 15_000;

/// Orders in a row that were not sent, by surface.
#[derive(Debug, Default)]
pub struct NotSent(BTreeMap<Surface, Row>);

#[derive(Debug)]
struct Row {
    since: Time,
    last: Time,
    count: u64,
    reason: String,
}

impl NotSent {
    /// Counts an order that was not sent. One that was accepted ends the row.
    pub fn notice(&mut self, engine: &Engine, notice: &Notice) {
        match notice {
            Notice::NotPlaced { time, order, words } if !words.sent => {
                let rules = engine.instrument(order.instrument());
                let Some(surface) = rules.map(|rules| rules.surface) else {
                    return;
                };
                self.count(surface, *time, &words.reason);
            }
            Notice::RefusalsOver { instrument, .. } => {
                if let Some(rules) = engine.instrument(*instrument) {
                    self.0.remove(&rules.surface);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, surface: Surface, now: Time, reason: &str) {
        let row = self.0.entry(surface).or_insert_with(|| Row {
            since: now,
            last: now,
            count: 0,
            reason: String::new(),
        });
        if now > row.last.plus_ms(OVER_MS) {
            (row.since, row.count) = (now, 0);
        }
        row.last = now;
        row.count += 1;
        reason.clone_into(&mut row.reason);
    }

    /// The account of each surface whose orders are not sent at this time.
    pub fn rows(&self, now: Time) -> impl Iterator<Item = view::Trading> {
        let lasting = move |row: &&Row| row.count >= IN_A_ROW && now <= row.last.plus_ms(OVER_MS);
        let rows = self.0.iter().filter(move |(_, row)| lasting(row));
        rows.map(|(surface, row)| view::Trading {
            what: format!("{surface} account"),
            scope: view::Scope::Account,
            open: false,
            reason: Some(format!("new orders are not sent: {}", row.reason)),
            what_to_do: Some(what_to_do(&row.reason).to_owned()),
            since_ms: Some(row.since.millis()),
            not_sent: row.count,
            ..view::Trading::default()
        })
    }
}

/// Advice to a person. The order limit counts the orders of the account, not the requests of the address.
fn what_to_do(reason: &str) -> &'static str {
    if reason.starts_with(ORDERS_USED_UP) {
        "the venue's order limit was reached: let strategies send fewer orders, with a lower \
         max_orders_per_minute. Cancels and renewals are sent, and orders again in the next interval"
    } else {
        "look for other programs on this address, or for strategies that order too often. \
         Cancels, closes and renewals are sent. Orders are tried again every few seconds"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_wait_for_the_order_limit_are_not_blamed_on_other_programs() {
        let mut not_sent = NotSent::default();
        let reason = format!("{ORDERS_USED_UP}: wait 40000 ms at least");
        for ms in [0, 1, 2] {
            not_sent.count(Surface::Futures, Time::from_millis(ms), &reason);
        }
        let rows: Vec<_> = not_sent.rows(Time::from_millis(10_000)).collect();
        let words = rows[0].what_to_do.as_ref().unwrap();
        assert!(words.contains("order limit"), "{words}");
        assert!(!words.contains("other programs"), "{words}");
        not_sent.count(Surface::Futures, Time::from_millis(11_000), "no weight");
        let rows: Vec<_> = not_sent.rows(Time::from_millis(11_000)).collect();
        let words = rows[0].what_to_do.as_ref().unwrap();
        assert!(words.contains("other programs"), "{words}");
    }

    #[test]
    fn orders_in_a_row_that_are_not_sent_block_the_account_of_their_surface() {
        let mut not_sent = NotSent::default();
        let at = Time::from_millis;
        let told = |not_sent: &NotSent, ms| not_sent.rows(at(ms)).collect::<Vec<_>>();
        for ms in [0, 1_000] {
            not_sent.count(Surface::Futures, at(ms), "no weight");
        }
        assert_eq!(told(&not_sent, 1_000), [], "two are a moment's");
        not_sent.count(Surface::Futures, at(6_000), "no weight");
        let [row] = &told(&not_sent, 20_000)[..] else {
            panic!("the account is told")
        };
        assert_eq!((row.what.as_str(), row.open), ("futures account", false));
        assert_eq!((row.since_ms, row.not_sent), (Some(0), 3));
        assert!(row.reason.as_ref().unwrap().contains("no weight"));
        assert_eq!(told(&not_sent, 22_000), [], "nobody tried for a while");
        not_sent.count(Surface::Futures, at(30_000), "no weight");
        assert_eq!(told(&not_sent, 30_000), [], "another row begins");
    }
}
