//! Exposure is never over a strategy's limits, with every order counted that may be open: computed
//! from what the venue said of our orders alone, to whomever.
//!
//! Positions that came from elsewhere, or from before a journal was lost, are nobody's, so that a
//! life whose journal was lost is not judged after that.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::Check;
use super::orders::Orders;
use super::wire::{self, Asked, Placed};
use crate::witness::{Entry, LimitTerms, ProcessSeen, Rest, Seen, Terms};

/// Prices move between the intent and the sending, and the runtime counts at the mark: parts of a
/// hundred of the limit that are let go.
const SLACK: i64 = 5;

/// The rule.
#[derive(Debug)]
pub struct Exposure {
    limits: BTreeMap<String, LimitTerms>,
    orders: Orders,
    bids: BTreeMap<String, Decimal>,
    lost: bool,
}

/// What the orders of a strategy in an instrument may lead to.
struct Worst {
    position: Decimal,
    buys: Decimal,
    sells: Decimal,
}

impl Worst {
    fn qty(&self) -> Decimal {
        let long = (self.position + self.buys).abs();
        let short = (self.position - self.sells).abs();
        long.max(short)
    }

    fn add(&mut self, buys: bool, qty: Decimal) {
        if buys {
            self.buys += qty;
        } else {
            self.sells += qty;
        }
    }
}

impl Exposure {
    /// On these terms.
    pub fn new(terms: &Terms) -> Self {
        let limits = terms.strategies.iter();
        Self {
            limits: limits.map(|s| (s.id.clone(), s.limits.clone())).collect(),
            orders: Orders::new(terms),
            bids: BTreeMap::new(),
            lost: false,
        }
    }

    fn judge(&self, new: &Placed) -> Result<(), String> {
        let strategy = wire::strategy(&new.id);
        let Some(limits) = self.limits.get(strategy) else {
            return Ok(());
        };
        let own = |id: &str| wire::strategy(id) == strategy;
        let live = self.orders.live().filter(|order| own(&order.placed.id));
        let open = live.clone().count() + 1;
        if let Some(max) = limits.max_open_orders.filter(|max| open > *max as usize) {
            return Err(format!(
                "{} is sent: {strategy} may have {open} orders open, {max} are allowed",
                new.id
            ));
        }
        let bid = self.bids.get(&new.instrument).copied();
        let Some(price) = new.price.or(bid) else {
            return Ok(());
        };
        let over = |qty: Decimal, max: &Option<String>| {
            let max = max.as_deref().map(wire::decimal);
            max.is_some_and(|max| qty * price > max * Decimal::new(100 + SLACK, 2))
        };
        if over(new.qty, &limits.max_order_notional) {
            return Err(format!(
                "{}: {} at {price} is over the limit",
                new.id, new.qty
            ));
        }
        let mut worst = Worst {
            position: self.orders.position(strategy, &new.instrument),
            buys: Decimal::ZERO,
            sells: Decimal::ZERO,
        };
        for order in live.filter(|order| order.placed.instrument == new.instrument) {
            worst.add(order.placed.buys, order.left());
        }
        let before = worst.qty();
        worst.add(new.buys, new.qty);
        if worst.qty() > before && over(worst.qty(), &limits.max_position_notional) {
            return Err(format!(
                "{} is sent: with position {}, {} to buy and {} to sell, unknown orders included, \
                 {strategy} may come to {} {} at {price}",
                new.id,
                worst.position,
                worst.buys,
                worst.sells,
                worst.qty(),
                new.instrument
            ));
        }
        Ok(())
    }
}

impl Check for Exposure {
    fn rule(&self) -> &'static str {
        "exposure with unknown orders is never over a limit"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            Seen::Top {
                instrument, bid, ..
            } => {
                self.bids.insert(instrument.clone(), wire::decimal(bid));
            }
            Seen::Process(ProcessSeen::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            Seen::Sent(request) if !self.lost => {
                if let Asked::Place(orders) = wire::asked(request) {
                    for placed in orders.iter().filter(|placed| !placed.reduces) {
                        self.judge(placed)?;
                    }
                }
            }
            _ => {}
        }
        self.orders.see(entry);
        Ok(())
    }

    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    /// Orders of 1 at a price of 100; the limit is 200.
    fn rule() -> Exposure {
        let mut terms = terms();
        terms.strategies[0].limits.max_position_notional = Some("200".to_owned());
        terms.strategies[0].limits.max_open_orders = Some(3);
        Exposure::new(&terms)
    }

    #[test]
    fn orders_up_to_the_limit_are_right() {
        let sound = Log::new()
            .place("mm.a.1")
            .place("mm.a.2")
            .place_sell("mm.a.3");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn an_order_of_unknown_outcome_counts() {
        let sent = Log::new().place("mm.a.1").unheard().place("mm.a.2");
        let broken = sent.place("mm.a.3");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn an_order_that_ended_counts_no_more() {
        let ended = Log::new().place("mm.a.1").place("mm.a.2");
        let sound = ended.order_event("mm.a.1", "CANCELED", "0").place("mm.a.3");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn what_was_filled_is_a_position() {
        let filled = Log::new().place("mm.a.1").place("mm.a.2");
        let broken = filled.order_event("mm.a.1", "FILLED", "1").place("mm.a.3");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn sells_count_as_buys_do() {
        let broken = Log::new()
            .place_sell("mm.a.1")
            .place_sell("mm.a.2")
            .place_sell("mm.a.3");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn more_open_orders_than_allowed_are_found() {
        let three = Log::new()
            .place("mm.a.1")
            .place_sell("mm.a.2")
            .place("mm.a.3");
        let broken = three.place_sell("mm.a.4");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn absence_counts_once_the_order_can_no_longer_arrive() {
        let absent = |wait_ms| {
            let sent = Log::new()
                .place("mm.a.1")
                .unheard()
                .place("mm.a.2")
                .later_ms(wait_ms);
            let asked = sent.ask(
                "GET",
                "/fapi/v1/order",
                &[("origClientOrderId", "mm.a.1".to_owned())],
            );
            asked
                .heard(400, &[], r#"{"code":-2013,"msg":""}"#)
                .place("mm.a.3")
        };
        assert_eq!(verdict(rule(), &absent(5_000)), Ok(()));
        assert!(verdict(rule(), &absent(4_000)).is_err());
    }
}
