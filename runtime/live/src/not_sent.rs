//! Explains, for the trading status, why this program holds orders back: it has no request weight
//! left, or no connection. The engine has the number of these orders. This file makes no decisions.

use std::collections::BTreeMap;

use windvane_admin::view;
use windvane_client::budget::ORDERS_USED_UP;
use windvane_engine::Engine;
use windvane_model::effect::Notice;
use windvane_model::{Surface, Time};

/// Fewer orders in a row than this are not worth showing.
const IN_A_ROW: u64 = 3;
/// A series ends after this time without a further order. Strategies try again within five seconds.
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
    /// Counts an order that was not sent. An accepted order ends the series.
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

    /// The accounts whose orders are not sent at this time, one row for each surface.
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

/// The advice for a reason. The venue's order limit counts the orders of the account, not the
/// requests of this address.
fn what_to_do(reason: &str) -> &'static str {
    if reason.starts_with(ORDERS_USED_UP) {
        "the venue's order limit was reached: make strategies send fewer orders, with a lower \
         max_orders_per_minute. Cancels and renewals are sent; orders are sent again in the next \
         interval"
    } else {
        "look for other programs on this address, or for strategies that order too often. \
         Cancels, closes and renewals are sent. Orders are tried again every few seconds"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_for_the_order_limit_names_no_other_programs() {
        let mut not_sent = NotSent::default();
        let reason = format!("{ORDERS_USED_UP}: wait 40000 ms at least");
        for ms in [0, 1, 2] {
            not_sent.count(Surface::Futures, Time::from_millis(ms), &reason);
        }
        let rows: Vec<_> = not_sent.rows(Time::from_millis(10_000)).collect();
        let advice = rows[0].what_to_do.as_ref().unwrap();
        assert!(advice.contains("order limit"), "{advice}");
        assert!(!advice.contains("other programs"), "{advice}");
        not_sent.count(Surface::Futures, Time::from_millis(11_000), "no weight");
        let rows: Vec<_> = not_sent.rows(Time::from_millis(11_000)).collect();
        let advice = rows[0].what_to_do.as_ref().unwrap();
        assert!(advice.contains("other programs"), "{advice}");
    }

    #[test]
    fn three_unsent_orders_in_a_row_block_the_account() {
        let mut not_sent = NotSent::default();
        let at = Time::from_millis;
        let rows_at = |not_sent: &NotSent, ms| not_sent.rows(at(ms)).collect::<Vec<_>>();
        for ms in [0, 1_000] {
            not_sent.count(Surface::Futures, at(ms), "no weight");
        }
        assert_eq!(
            rows_at(&not_sent, 1_000),
            [],
            "two orders in a row are not shown"
        );
        not_sent.count(Surface::Futures, at(6_000), "no weight");
        let [row] = &rows_at(&not_sent, 20_000)[..] else {
            panic!("the account is shown")
        };
        assert_eq!((row.what.as_str(), row.open), ("futures account", false));
        assert_eq!((row.since_ms, row.not_sent), (Some(0), 3));
        assert!(row.reason.as_ref().unwrap().contains("no weight"));
        assert_eq!(
            rows_at(&not_sent, 22_000),
            [],
            "no order was tried for a while"
        );
        not_sent.count(Surface::Futures, at(30_000), "no weight");
        assert_eq!(rows_at(&not_sent, 30_000), [], "another series starts");
    }
}
