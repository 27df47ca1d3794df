//! The books are correct at rest. For each strategy, realized profit, fees and the cost of its
//! position match the venue's trades of its orders. The account's entry prices equal the venue's.
//!
//! The order in which fills are booked decides how much profit is realized and how much remains in
//! the cost of the position. It does not change their difference: realized profit minus open cost
//! is the quote received for sales minus the quote paid.
//!
//! Some values are not compared:
//!
//! - The books of all strategies after a lost journal: their earlier acts are unowned.
//! - The books of a strategy whose position outside orders closed: the proceeds are in no own
//!   trade.
//! - The fees of a strategy with a fill that was derived from its order's totals: that fee is an
//!   estimate.
//! - The fees if the venue does not list the account's trades: nothing reports a commission that
//!   events omit.
//!
//! Commissions in another asset count at its price when they are booked, so they are compared with
//! the lowest and the highest price of the life. A spot commission in the base asset counts as a
//! sale at the price of its fill.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::fills::{self, Fills};
use super::ticks::Ticks;
use super::wire::{self, RequestKind};
use crate::witness::{
    Answer, Entry, ProcessEvent, RequestId, Rest, StrategyView, Terms, WitnessEvent,
};

/// The venue rounds reported values to 8 decimals, and so does the runtime.
const ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 6);
/// The venue may round the commission of an event and of an account trade to four decimals, while
/// it charges the exact amount. The difference is up to half of the last decimal for each trade.
const FEE_ROUNDING: Decimal = Decimal::from_parts(5, 0, 0, false, 5);
/// A commission that is missing in the event is known within this time: the list of trades may be
/// ten seconds behind, and is requested a few times.
const FEE_LATE_NS: i64 = 20_000_000_000;
/// Entry prices agree to a millionth, because each fill rounds them. An entry price that only the
/// venue reported may be rounded to the tick, or to a coarser tick that was valid then.
const ENTRY: Decimal = Decimal::from_parts(1, 0, 0, false, 6);

/// Refusal codes that do not depend on the route: the server, the time, the keys.
const OF_ANY_ROUTE: [i64; 10] = [
    -1000, -1001, -1002, -1003, -1006, -1007, -1021, -1022, -2014, -2015,
];

/// The rule.
#[derive(Debug)]
pub struct Ledgers {
    fills: Fills,
    instruments: BTreeSet<String>,
    strategies: Vec<String>,
    /// Strategies with a fill that was derived from an order's totals.
    estimated: BTreeSet<String>,
    /// When a fill without a commission was last booked for each strategy; the list of trades has
    /// the commission later.
    unpaid: BTreeMap<String, i64>,
    /// Requests for lists of the account's trades.
    questions: BTreeSet<RequestId>,
    /// The venue refused to list the account's trades.
    unlisted: bool,
    /// Strategies on futures of a run that uses only the core interface, which has no list of the
    /// futures account's trades.
    documented: BTreeSet<String>,
    /// The lowest and the highest mark price, by instrument.
    marks: BTreeMap<String, (Decimal, Decimal)>,
    /// The ticks, if the venue rounds the entry prices that it reports.
    ticks: Option<Ticks>,
    lost: bool,
}

/// The sums of a strategy's trades.
#[derive(Debug, Default)]
struct Books {
    /// Quote received minus quote paid.
    flow: Decimal,
    fees: Decimal,
    /// Fees at the highest price; a commission in another asset may count at any price of the life.
    fees_most: Decimal,
    /// Commissions were charged in an asset without a price.
    unpriced: bool,
    /// The largest possible rounding of the commissions.
    rounding: Decimal,
    /// Spot commissions in the base asset that the venue may never report.
    unstated: Decimal,
    /// The lowest and the highest trade price, by instrument.
    prices: BTreeMap<String, (Decimal, Decimal)>,
}

impl Ledgers {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            fills: Fills::new(terms),
            instruments: terms.instruments.iter().cloned().collect(),
            strategies: terms.strategies.iter().map(|s| s.id.clone()).collect(),
            estimated: BTreeSet::new(),
            unpaid: BTreeMap::new(),
            questions: BTreeSet::new(),
            unlisted: false,
            documented: (terms.strategies.iter())
                .filter(|one| terms.is_documented && one.instruments.iter().any(is_futures))
                .map(|one| one.id.clone())
                .collect(),
            marks: BTreeMap::new(),
            ticks: terms.entries_to_tick.then(Ticks::default),
            lost: false,
        }
    }

    fn books(&self, truth: &Value) -> BTreeMap<String, Books> {
        let mut all: BTreeMap<String, Books> = BTreeMap::new();
        for (owner, instrument, trade) in self.fills.own_trades(truth) {
            let number = |field| wire::number(trade, field).unwrap_or_default();
            let buys = trade.get("side").is_some_and(|side| side == "BUY");
            let books = all.entry(owner.clone()).or_default();
            let quote = number("quote_qty");
            books.flow += if buys { -quote } else { quote };
            let in_base = fills::base_fee(&instrument, trade) * number("price");
            if !in_base.is_zero() {
                let unstated = self.fills.unstated_fee(&owner, &instrument, trade);
                books.unstated += unstated * number("price");
                books.flow += in_base;
                books.fees += in_base;
                books.fees_most += in_base;
                books.rounding += FEE_ROUNDING * number("price");
            }
            let fee = if in_base.is_zero() {
                number("fee")
            } else {
                Decimal::ZERO
            };
            let asset = wire::text(trade, "fee_asset").unwrap_or_default();
            if fee.is_zero() || asset.is_empty() || asset == "USDT" {
                books.fees += fee;
                books.fees_most += fee;
                books.rounding += FEE_ROUNDING;
            } else if let Some((least, most)) = self.marks.get(&format!("futures:{asset}USDT")) {
                books.fees += fee * least;
                books.fees_most += fee * most;
                books.rounding += FEE_ROUNDING * most;
            } else {
                books.unpriced = true;
            }
            let price = number("price");
            let seen = books.prices.entry(instrument).or_insert((price, price));
            *seen = (seen.0.min(price), seen.1.max(price));
        }
        all
    }

    fn strategy(&self, own: &StrategyView, books: &Books, at_ns: i64) -> Result<(), String> {
        let id = &own.id;
        let costs = own.positions.iter().map(|held| wire::decimal(&held.cost));
        let flow = wire::decimal(&own.realized) - costs.sum::<Decimal>();
        if (flow - books.flow).abs() > ROUNDING + books.unstated {
            return Err(format!(
                "{id} realized {}, which minus open cost is {flow}, but its trades sum to {}",
                own.realized, books.flow
            ));
        }
        let fees = wire::decimal(&own.fees);
        let rounded = ROUNDING + books.rounding;
        let unpaid = self.unpaid.get(id);
        let is_late = unpaid.is_some_and(|booked| at_ns < booked + FEE_LATE_NS);
        let is_listed = !self.unlisted && !self.documented.contains(id);
        let is_reported = !self.estimated.contains(id) && is_listed && !books.unpriced && !is_late;
        if is_reported && (fees < books.fees - rounded || fees > books.fees_most + rounded) {
            return Err(format!(
                "{id} booked {fees} in fees, but the venue charged {} to {}",
                books.fees, books.fees_most
            ));
        }
        for held in &own.positions {
            let qty = wire::decimal(&held.qty) + wire::decimal(&held.dust);
            if wire::decimal(&held.qty).is_zero() {
                // The price of such a small rest is rounded too much.
                continue;
            }
            let entry = entry(&held.cost, &qty.to_string());
            let Some((least, most)) = books.prices.get(&held.instrument) else {
                continue;
            };
            if entry < least - ROUNDING || entry > most + ROUNDING {
                return Err(format!(
                    "{id} holds {} at {entry}, but it traded between {least} and {most}",
                    held.instrument
                ));
            }
        }
        Ok(())
    }

    fn account(&self, rest: &Rest) -> Result<(), String> {
        let positions = rest.truth.pointer("/accounts/0/positions");
        let positions = positions.and_then(Value::as_array);
        for position in positions.into_iter().flatten() {
            let symbol = wire::text(position, "symbol").unwrap_or_default();
            let instrument = format!("futures:{symbol}");
            let side = wire::text(position, "position_side").unwrap_or_default();
            let same = |held: &&crate::witness::PositionView| {
                held.instrument == instrument && held.position_side == side
            };
            let (Some(own), Some(venue)) = (
                rest.view.positions.iter().find(same),
                wire::number(position, "entry_price"),
            ) else {
                continue;
            };
            let entry = entry(&own.cost, &own.qty);
            let tick = rest.view.ticks.get(&instrument);
            let half_tick = tick.map_or(Decimal::ZERO, |tick| wire::decimal(tick)) / Decimal::TWO;
            let stated = self.ticks.as_ref().map(|ticks| ticks.rounding(&symbol));
            let rounded = half_tick.max(stated.unwrap_or_default()) + venue * ENTRY;
            if self.instruments.contains(&instrument) && (entry - venue).abs() > rounded {
                return Err(format!(
                    "the entry price of {instrument} is {entry} in the runtime, but {venue} at the venue"
                ));
            }
        }
        Ok(())
    }
}

#[allow(clippy::ptr_arg, reason = "a filter of strings takes it")]
fn is_futures(instrument: &String) -> bool {
    instrument.starts_with("futures:")
}

fn code_of(answer: &Answer) -> Option<i64> {
    answer.json()?.get("code")?.as_i64()
}

/// The average price of a position.
fn entry(cost: &str, qty: &str) -> Decimal {
    let (cost, qty) = (wire::decimal(cost), wire::decimal(qty));
    cost.checked_div(qty).unwrap_or_default()
}

impl Check for Ledgers {
    fn rule(&self) -> &'static str {
        "books and entry prices are what trades make them"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        self.fills.learn(entry);
        if let Some(ticks) = &mut self.ticks {
            ticks.learn(&entry.seen);
        }
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            WitnessEvent::Sent(request) => {
                if matches!(wire::request_kind(request), RequestKind::Trades(_)) {
                    self.questions.insert(request.id);
                }
            }
            WitnessEvent::Answered {
                request, answer, ..
            } if self.questions.contains(request) => {
                let refused = code_of(answer).is_some_and(|code| !OF_ANY_ROUTE.contains(&code));
                self.unlisted |= answer.status == 404 || refused;
            }
            WitnessEvent::View(view) => {
                for (instrument, mark) in &view.marks {
                    let mark = wire::decimal(mark);
                    let (least, most) =
                        self.marks.entry(instrument.clone()).or_insert((mark, mark));
                    (*least, *most) = ((*least).min(mark), (*most).max(mark));
                }
            }
            WitnessEvent::Booked {
                client_order_id,
                trade_id: ..=-1,
                ..
            } => {
                let owner = wire::strategy(client_order_id).to_owned();
                self.estimated.insert(owner);
            }
            WitnessEvent::Booked {
                client_order_id,
                fee,
                ..
            } if wire::decimal(fee).is_zero() => {
                let owner = wire::strategy(client_order_id).to_owned();
                self.unpaid.insert(owner, entry.at_ns);
            }
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        self.account(rest)?;
        if self.lost {
            return Ok(());
        }
        let books = self.books(&rest.truth);
        let none = Books::default();
        for own in &rest.view.strategies {
            // The proceeds of outside orders are not a trade of the owner.
            if self.strategies.contains(&own.id) && !self.fills.outside_trading().concerns(&own.id)
            {
                self.strategy(own, books.get(&own.id).unwrap_or(&none), rest.at_ns)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, at_rest, terms};
    use crate::witness::{PositionView, View};

    /// Bought 1 at 100 and sold 0.5 at 110, each with a fee of 0.04.
    fn truth() -> Value {
        let trade = |number: i64, side: &str, price: &str, qty: &str, quote: &str| {
            json!({"surface": "futures", "symbol": "BTCUSDT", "order_id": number, "side": side,
                "price": price, "qty": qty, "quote_qty": quote, "fee": "0.04"})
        };
        let order = |number: i64, id: &str| {
            json!({"surface": "futures", "symbol": "BTCUSDT", "order_id": number,
                "client_order_id": id})
        };
        json!({"accounts": [{
            "orders": [order(7, "mm.a.1"), order(8, "mm.a.2")],
            "trades": [trade(7, "BUY", "100", "1", "100"), trade(8, "SELL", "110", "0.5", "55")],
            "positions": [{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": "0.5",
                "entry_price": "100.00"}],
        }]})
    }

    fn view() -> View {
        let held = PositionView {
            dust: String::new(),
            instrument: "futures:BTCUSDT".to_owned(),
            position_side: "BOTH".to_owned(),
            qty: "0.5".to_owned(),
            cost: "50".to_owned(),
        };
        View {
            positions: vec![held.clone()],
            strategies: vec![StrategyView {
                id: "mm".to_owned(),
                positions: vec![held],
                realized: "5".to_owned(),
                fees: "0.08".to_owned(),
                ..StrategyView::default()
            }],
            ..View::default()
        }
    }

    fn judged(log: Log, change: fn(&mut View)) -> Result<(), String> {
        let log = log.place("mm.a.1").place_sell("mm.a.2");
        let mut view = view();
        change(&mut view);
        at_rest(Ledgers::new(&terms()), &log, truth(), view)
    }

    #[test]
    fn books_that_match_the_trades_are_accepted() {
        assert_eq!(judged(Log::new(), |_| {}), Ok(()));
    }

    #[test]
    fn every_difference_is_found() {
        let changes: [fn(&mut View); 5] = [
            |view| view.strategies[0].realized = "5.01".to_owned(),
            |view| view.strategies[0].fees = "0.04".to_owned(),
            |view| view.strategies[0].positions[0].cost = "50.01".to_owned(),
            |view| view.positions[0].cost = "50.01".to_owned(),
            // Realized profit and cost agree with each other, but this price was never paid.
            |view| {
                view.strategies[0].realized = "15".to_owned();
                view.strategies[0].positions[0].cost = "60".to_owned();
            },
        ];
        for change in changes {
            assert!(judged(Log::new(), change).is_err());
        }
    }

    #[test]
    fn a_derived_fill_has_an_estimated_fee() {
        let made_up = Log::new().booked("mm.a.1", -1, "1");
        let fee: fn(&mut View) = |view| view.strategies[0].fees = "0.07".to_owned();
        assert_eq!(judged(made_up, fee), Ok(()));
    }

    #[test]
    fn an_entry_price_may_be_rounded_to_an_earlier_tick() {
        let rounding = Terms {
            entries_to_tick: true,
            ..terms()
        };
        let tick = |log: Log, tick: &str| {
            log.act(json!({"act": "rules", "symbol": "BTCUSDT", "tick_size": tick}))
        };
        let entry_of = |cost: &str, terms: &Terms, log: Log| {
            let mut view = view();
            view.strategies.clear();
            view.positions[0].cost = cost.to_owned();
            at_rest(Ledgers::new(terms), &log, truth(), view)
        };
        let coarse = || tick(tick(Log::new(), "0.5"), "0.1");
        assert_eq!(entry_of("50.125", &rounding, coarse()), Ok(()));
        assert!(entry_of("50.13", &rounding, coarse()).is_err());
        assert!(entry_of("50.125", &terms(), coarse()).is_err());
        assert!(entry_of("50.125", &rounding, Log::new()).is_err());
        let flat = coarse().truth(json!({"accounts": [{"positions": []}]}));
        assert!(entry_of("50.125", &rounding, flat).is_err());
    }

    #[test]
    fn after_a_lost_journal_only_the_account_is_compared() {
        let lost = || Log::new().start().start_after("rolled back");
        let books: fn(&mut View) = |view| view.strategies[0].realized = "0".to_owned();
        assert_eq!(judged(lost(), books), Ok(()));
        let entry: fn(&mut View) = |view| view.positions[0].cost = "51".to_owned();
        assert!(judged(lost(), entry).is_err());
    }
}
