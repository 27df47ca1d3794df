//! Exposure never exceeds the limits of a strategy or of the account. Every order that may be open
//! counts. The rule computes exposure only from what the venue reported about own orders, to any
//! receiver.
//!
//! Positions from other sources, or from before a lost journal, are unowned. A life is not judged
//! after its journal was lost. If others trade on the account, its position is not the sum of our
//! orders: from then on the account's limits are not judged.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::Check;
use super::orders::{Orders, Own};
use super::wire::{self, Placed, RequestKind};
use crate::witness::{Entry, LimitTerms, ProcessEvent, Terms, WitnessEvent};

/// Tolerance in hundredths of the limit: prices move between the intent and the sending, and the
/// runtime values positions at the mark price.
const SLACK: i64 = 5;
/// An order that was accepted before a reload is sent within this time or never: nanoseconds.
const ON_ITS_WAY_NS: i64 = 5_000_000_000;

/// The rule.
#[derive(Debug)]
pub struct Exposure {
    limits: BTreeMap<String, LimitTerms>,
    /// Limits before a reload, and until when orders that were accepted under them may be sent.
    before: BTreeMap<String, (i64, LimitTerms)>,
    account: LimitTerms,
    orders: Orders,
    /// Orders that strategies intended. The runtime's own closing orders are never limited.
    intended: BTreeSet<String>,
    /// The entry number at which each order was released; it is signed and sent after that.
    released: BTreeMap<String, u64>,
    /// The entry number at which outside orders last closed a part of a strategy's position.
    closed_outside: BTreeMap<String, u64>,
    bids: BTreeMap<String, Decimal>,
    /// Others trade on the account.
    mixed: bool,
    lost: bool,
}

/// The owner of the judged limits: a strategy, or the account.
#[derive(Clone, Copy)]
struct Party<'a> {
    strategy: Option<&'a str>,
    limits: &'a LimitTerms,
}

impl Party<'_> {
    fn owns(self, strategy: &str) -> bool {
        self.strategy.is_none_or(|own| own == strategy)
    }

    fn name(&self) -> &str {
        self.strategy.unwrap_or("the account")
    }
}

/// The worst result of the orders of a strategy in an instrument.
struct Worst {
    position: Decimal,
    buys: Decimal,
    sells: Decimal,
}

impl Worst {
    fn qty(&self) -> Decimal {
        self.side(true).abs().max(self.side(false).abs())
    }

    /// The position if only the orders of one side fill; negative if it is still on the other side.
    fn side(&self, buys: bool) -> Decimal {
        if buys {
            self.position + self.buys
        } else {
            self.sells - self.position
        }
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
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        let limits = terms.strategies.iter();
        Self {
            limits: limits.map(|s| (s.id.clone(), s.limits.clone())).collect(),
            before: BTreeMap::new(),
            account: terms.limits.clone(),
            orders: Orders::new(terms),
            intended: BTreeSet::new(),
            released: BTreeMap::new(),
            closed_outside: BTreeMap::new(),
            bids: BTreeMap::new(),
            mixed: false,
            lost: false,
        }
    }

    /// A reload may change the limit of open orders. An order that was accepted before may still be
    /// in flight.
    fn configured(&mut self, now_ns: i64, max_open_orders: &[(String, Option<u32>)]) {
        for (strategy, max) in max_open_orders {
            let Some(limits) = self.limits.get_mut(strategy) else {
                continue;
            };
            if limits.max_open_orders != *max {
                let before = limits.clone();
                limits.max_open_orders = *max;
                let until_ns = now_ns + ON_ITS_WAY_NS;
                self.before.insert(strategy.clone(), (until_ns, before));
            }
        }
    }

    fn sent(&self, now_ns: i64, new: &Placed) -> Result<(), String> {
        let name = wire::strategy(&new.id);
        if let Some(limits) = self.limits.get(name) {
            let strategy = Some(name);
            let judged = self.judge(new, Party { strategy, limits });
            let before = self.before.get(name);
            match before.filter(|(until_ns, _)| now_ns <= *until_ns) {
                Some((_, limits)) if judged.is_err() => {
                    self.judge(new, Party { strategy, limits })?;
                }
                _ => judged?,
            }
        }
        if self.mixed {
            return Ok(());
        }
        let account = Party {
            strategy: None,
            limits: &self.account,
        };
        self.judge(new, account)
    }

    /// Whether others closed the position that an order reduces, after its release and before it
    /// was sent.
    fn is_overtaken(&self, new: &Placed) -> bool {
        let released = self.released.get(&new.id);
        let closed = self.closed_outside.get(wire::strategy(&new.id));
        matches!((released, closed), (Some(released), Some(closed)) if closed > released)
    }

    fn judge(&self, new: &Placed, party: Party<'_>) -> Result<(), String> {
        let (id, limits) = (&new.id, party.limits);
        let open = self.live(party).count() + 1;
        if let Some(max) = limits.max_open_orders.filter(|max| open > *max as usize) {
            return Err(format!(
                "{id} is sent: {} may have {open} open orders, but only {max} are allowed",
                party.name()
            ));
        }
        let Some(price) = new
            .price
            .or_else(|| self.bids.get(&new.instrument).copied())
        else {
            return Ok(());
        };
        let over = |notional: Decimal, max: &Option<String>| {
            let max = max.as_deref().map(wire::decimal);
            max.is_some_and(|max| notional > max * Decimal::new(100 + SLACK, 2))
        };
        if over(new.qty * price, &limits.max_order_notional) {
            return Err(format!(
                "{id}: {} at {price} is over the limit of {}",
                new.qty,
                party.name()
            ));
        }
        let book = new.book();
        let mut worst = self.worst(party, &book);
        worst.add(new.buys, new.qty);
        // The possible result of the other side does not cover the order: that side may end without
        // a fill.
        let side = worst.side(new.buys);
        let total = side * price + self.elsewhere(party, &book);
        if side > Decimal::ZERO && over(total, &limits.max_position_notional) {
            return Err(format!(
                "{id} is sent: with position {}, {} to buy and {} to sell, unknown orders included, \
                 {} may reach {} {} at {price}, {total} in total",
                worst.position,
                worst.buys,
                worst.sells,
                party.name(),
                side,
                book
            ));
        }
        Ok(())
    }

    fn live(&self, party: Party<'_>) -> impl Iterator<Item = &Own> {
        let own = move |order: &&Own| party.owns(wire::strategy(&order.placed.id));
        self.orders.live().filter(own)
    }

    fn worst(&self, party: Party<'_>, book: &str) -> Worst {
        let all = self.orders.positions();
        let held = all.filter(|(who, what, _)| party.owns(who) && *what == book);
        let mut worst = Worst {
            position: held.map(|(.., qty)| qty).sum(),
            buys: Decimal::ZERO,
            sells: Decimal::ZERO,
        };
        for order in self.live(party) {
            if order.placed.book() == book {
                worst.add(order.placed.buys, order.left());
            }
        }
        worst
    }

    /// The worst value of all other positions whose price was ever seen.
    fn elsewhere(&self, party: Party<'_>, but: &str) -> Decimal {
        let all = self.bids.iter().flat_map(|(instrument, bid)| {
            let books = wire::books(instrument).into_iter();
            books.map(move |book| (book, bid))
        });
        let others = all.filter(|(book, _)| book != but);
        others
            .map(|(book, bid)| self.worst(party, &book).qty() * bid)
            .sum()
    }
}

impl Check for Exposure {
    fn rule(&self) -> &'static str {
        "exposure with unknown orders is never over a limit"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Configured {
                max_open_orders, ..
            } => self.configured(entry.at_ns, max_open_orders),
            WitnessEvent::Top {
                instrument, bid, ..
            } => {
                self.bids.insert(instrument.clone(), wire::decimal(bid));
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            WitnessEvent::Intended {
                client_order_id, ..
            } => {
                self.intended.insert(client_order_id.clone());
            }
            WitnessEvent::Released {
                client_order_id, ..
            } => {
                self.released.insert(client_order_id.clone(), entry.number);
            }
            WitnessEvent::ClosedOutside { strategy, .. } => {
                self.closed_outside.insert(strategy.clone(), entry.number);
            }
            WitnessEvent::Act { act, done: true } => {
                let word = act.get("act").and_then(serde_json::Value::as_str);
                self.mixed |= matches!(word, Some("place" | "close" | "adl" | "liquidate"));
            }
            WitnessEvent::Sent(request) if !self.lost => {
                if let RequestKind::Place(orders) = wire::request_kind(request) {
                    let opens =
                        |placed: &&Placed| !placed.reduces && self.intended.contains(&placed.id);
                    for placed in orders.iter().filter(opens) {
                        if !self.is_overtaken(placed) {
                            self.sent(entry.at_ns, placed)?;
                        }
                    }
                }
            }
            _ => {}
        }
        self.orders.see(entry);
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

    /// Only the account has limits, the strategy has none.
    fn account(limits: LimitTerms) -> Exposure {
        let mut terms = terms();
        terms.limits = limits;
        Exposure::new(&terms)
    }

    #[test]
    fn the_account_is_judged_over_all_strategies() {
        let limits = || LimitTerms {
            max_position_notional: Some("200".to_owned()),
            ..LimitTerms::default()
        };
        let two = || Log::new().order("mm.a.1").order("ema.a.2");
        assert_eq!(verdict(account(limits()), &two()), Ok(()));
        let three = two().order("ema.a.3");
        assert!(verdict(account(limits()), &three).is_err());
        let mixed = Log::new().act(serde_json::json!({"act": "place"}));
        let mixed = mixed.order("mm.a.1").order("ema.a.2").order("ema.a.3");
        assert_eq!(
            verdict(account(limits()), &mixed),
            Ok(()),
            "others trade on the account"
        );
    }

    #[test]
    fn outside_closes_reduce_the_position() {
        let held = || {
            let log = Log::new().order("mm.a.1").order("mm.a.2");
            let log = log.order_event("mm.a.1", "FILLED", "1");
            log.order_event("mm.a.2", "FILLED", "1")
        };
        assert!(verdict(rule(), &held().order("mm.a.3")).is_err());
        let closed = |qty| held().closed_outside("mm", qty).order("mm.a.3");
        assert_eq!(verdict(rule(), &closed("2")), Ok(()));
        assert!(verdict(rule(), &closed("0.5")).is_err());
    }

    #[test]
    fn an_outside_close_during_signing_excuses_an_order() {
        let short = || {
            let log = Log::new().order_sell("mm.a.1");
            log.order_event("mm.a.1", "FILLED", "1")
        };
        let two = |log: Log| log.order("mm.a.2").order("mm.a.3");
        let left = two(short()).release("mm.a.4").closed_outside("mm", "-1");
        assert_eq!(verdict(rule(), &left.order("mm.a.4")), Ok(()));
        let later = two(short()).closed_outside("mm", "-1").release("mm.a.4");
        assert!(verdict(rule(), &later.order("mm.a.4")).is_err());
    }

    #[test]
    fn orders_of_the_other_side_do_not_cover() {
        let limits = LimitTerms {
            max_position_notional: Some("200".to_owned()),
            ..LimitTerms::default()
        };
        let held = Log::new().order("mm.a.1").order("mm.a.2");
        let held = held.order_event("mm.a.1", "FILLED", "1");
        let mut log = held.order_event("mm.a.2", "FILLED", "1");
        for id in ["mm.a.3", "mm.a.4", "mm.a.5", "mm.a.6"] {
            log = log.order_sell(id);
        }
        let two = log
            .closed_outside("mm", "2")
            .order("mm.a.7")
            .order("mm.a.8");
        assert_eq!(verdict(account(limits.clone()), &two), Ok(()));
        assert!(verdict(account(limits), &two.order("mm.a.9")).is_err());
    }

    #[test]
    fn the_account_is_judged_over_all_instruments() {
        let limits = LimitTerms {
            max_position_notional: Some("250".to_owned()),
            ..LimitTerms::default()
        };
        let other = [
            ("symbol", "ETHUSDT".to_owned()),
            ("newClientOrderId", "mm.a.1".to_owned()),
            ("side", "BUY".to_owned()),
            ("quantity", "1".to_owned()),
            ("price", "90".to_owned()),
        ];
        let held = Log::new().top("futures:ETHUSDT", "90");
        let held = held
            .intend("mm.a.1")
            .request_plain("POST", "/fapi/v1/order", &other);
        let one = held.order("mm.a.2");
        assert_eq!(verdict(account(limits.clone()), &one), Ok(()));
        assert!(verdict(account(limits), &one.order("mm.a.3")).is_err());
    }

    #[test]
    fn every_limit_of_the_account_is_judged() {
        let count = LimitTerms {
            max_open_orders: Some(1),
            ..LimitTerms::default()
        };
        let size = LimitTerms {
            max_order_notional: Some("90".to_owned()),
            ..LimitTerms::default()
        };
        let one = || Log::new().order("mm.a.1");
        assert_eq!(verdict(account(count.clone()), &one()), Ok(()));
        assert!(verdict(account(count), &one().order_sell("ema.a.2")).is_err());
        assert!(verdict(account(size), &one()).is_err());
    }

    #[test]
    fn closing_orders_of_the_runtime_are_not_limited() {
        let two = Log::new().order("mm.a.1").order("mm.a.2");
        let filled = two.order_event("mm.a.1", "FILLED", "1");
        assert_eq!(
            verdict(rule(), &filled.place_market("mm.a.3", "BUY")),
            Ok(())
        );
    }

    #[test]
    fn orders_up_to_the_limit_are_accepted() {
        let sound = Log::new()
            .order("mm.a.1")
            .order("mm.a.2")
            .order_sell("mm.a.3");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn an_order_of_unknown_outcome_counts() {
        let sent = Log::new().order("mm.a.1").without_answer().order("mm.a.2");
        let broken = sent.order("mm.a.3");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn ended_orders_do_not_count() {
        let ended = Log::new().order("mm.a.1").order("mm.a.2");
        let sound = ended.order_event("mm.a.1", "CANCELED", "0").order("mm.a.3");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn filled_orders_count_as_position() {
        let filled = Log::new().order("mm.a.1").order("mm.a.2");
        let broken = filled.order_event("mm.a.1", "FILLED", "1").order("mm.a.3");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn sells_count_like_buys() {
        let broken = Log::new()
            .order_sell("mm.a.1")
            .order_sell("mm.a.2")
            .order_sell("mm.a.3");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn more_open_orders_than_allowed_are_found() {
        let three = Log::new()
            .order("mm.a.1")
            .order_sell("mm.a.2")
            .order("mm.a.3");
        let broken = three.order_sell("mm.a.4");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn absence_counts_once_the_order_can_no_longer_arrive() {
        let absent = |wait_ms| {
            let sent = Log::new()
                .order("mm.a.1")
                .without_answer()
                .order("mm.a.2")
                .later_ms(wait_ms);
            let log = sent.request(
                "GET",
                "/fapi/v1/order",
                &[("origClientOrderId", "mm.a.1".to_owned())],
            );
            log.with_answer(400, &[], r#"{"code":-2013,"msg":""}"#)
                .order("mm.a.3")
        };
        assert_eq!(verdict(rule(), &absent(5_000)), Ok(()));
        assert!(verdict(rule(), &absent(4_000)).is_err());
    }
}
