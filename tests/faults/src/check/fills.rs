//! Every fill is counted once. A process books no trade of an order twice, and no order for more
//! than the venue executed. At rest each strategy holds the sum of the venue's trades of its
//! orders.
//!
//! The parts of a strategy's position that outside orders closed, as the runtime reports, are
//! subtracted. A process that died may have reported closes that its journal does not have, so such
//! a position is not compared after another start.
//!
//! After a lost journal the earlier positions of a strategy are unowned: such a life is not
//! compared at rest.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::orders::Orders;
use super::wire;
use crate::witness::{Entry, ProcessEvent, Rest, Terms, View, WitnessEvent};

/// A venue may round the commissions that it reports to this many decimals.
const FEE_DECIMALS: u32 = 4;

/// The rule.
#[derive(Debug)]
pub struct Fills {
    orders: Orders,
    /// Instrument, trade and order: two own orders that met share one trade.
    trades: BTreeSet<(String, i64, String)>,
    /// The quantity that this process booked, by order.
    booked: BTreeMap<String, Decimal>,
    /// The parts that outside orders closed, by strategy and position.
    outside_trading: OutsideTrading,
    /// Strategies and spot instruments with a fill that was derived from an order's totals.
    made_up: BTreeSet<(String, String)>,
    rounds_fees: bool,
    lost: bool,
}

impl Fills {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            orders: Orders::new(terms),
            trades: BTreeSet::new(),
            booked: BTreeMap::new(),
            outside_trading: OutsideTrading::default(),
            made_up: BTreeSet::new(),
            rounds_fees: terms.rounds_fees,
            lost: false,
        }
    }

    fn book(&mut self, instrument: &str, trade: i64, id: &str, qty: Decimal) -> Result<(), String> {
        let booked = (instrument.to_owned(), trade, id.to_owned());
        if !self.trades.insert(booked) {
            return Err(format!(
                "trade {trade} of {instrument} is booked again, for {id}"
            ));
        }
        let booked = self.booked.entry(id.to_owned()).or_default();
        *booked += qty;
        let executed = self.orders.get(id).map(|order| order.executed);
        match executed {
            Some(executed) if *booked > executed => Err(format!(
                "after trade {trade}, the booked quantity {booked} of {id} is more than the \
                 {executed} that the venue executed"
            )),
            Some(_) => Ok(()),
            None => Err(format!(
                "trade {trade} is booked for {id}, which was never sent"
            )),
        }
    }
}

/// The parts of the strategies' positions that outside orders closed.
#[derive(Debug, Default)]
pub struct OutsideTrading {
    closed: BTreeMap<(String, String), Decimal>,
    /// Reported by a process that has died since.
    unsure: BTreeSet<(String, String)>,
}

impl OutsideTrading {
    fn see(&mut self, entry: &Entry) {
        match &entry.seen {
            WitnessEvent::ClosedOutside {
                strategy,
                instrument,
                qty,
                ..
            } => {
                let key = (strategy.clone(), instrument.clone());
                *self.closed.entry(key).or_default() += wire::decimal(qty);
            }
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.unsure.extend(self.closed.keys().cloned());
            }
            _ => {}
        }
    }

    /// Whether the reported closes of a strategy's position may be lost.
    pub fn is_unsure(&self, key: &(String, String)) -> bool {
        self.unsure.contains(key)
    }

    /// Whether outside orders ever closed a part of a strategy's positions.
    pub fn concerns(&self, strategy: &str) -> bool {
        self.closed.keys().any(|(owner, _)| owner == strategy)
    }
}

impl Check for Fills {
    fn rule(&self) -> &'static str {
        "every fill is counted once"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        self.learn(entry);
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.trades.clear();
                self.booked.clear();
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            WitnessEvent::Booked {
                instrument,
                client_order_id,
                trade_id,
                qty,
                ..
            } => self.book(instrument, *trade_id, client_order_id, wire::decimal(qty))?,
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        if self.lost {
            return Ok(());
        }
        let venue = self.held(&rest.truth);
        let own = held_here(&rest.view);
        let qty = |held: &BTreeMap<(String, String), Decimal>, key: &(String, String)| {
            held.get(key).copied().unwrap_or_default()
        };
        let unstated = |key: &(String, String)| {
            let trades = self.own_trades(&rest.truth).into_iter();
            let own = trades.filter(|(owner, at, _)| (owner, at) == (&key.0, &key.1));
            let unstated = own.map(|(owner, at, trade)| self.unstated_fee(&owner, &at, trade));
            unstated.sum::<Decimal>()
        };
        let differs = |key: &&(String, String)| {
            !self.outside_trading.is_unsure(key)
                && (qty(&venue, key) - qty(&own, key)).abs() > unstated(key)
        };
        match venue.keys().chain(own.keys()).find(differs) {
            Some(key) => Err(format!(
                "{} holds {} of {} in the runtime, but {} according to the venue's trades",
                key.0,
                own.get(key).copied().unwrap_or_default(),
                key.1,
                venue.get(key).copied().unwrap_or_default(),
            )),
            None => Ok(()),
        }
    }
}

impl Fills {
    /// Learns which orders are own orders, without judging.
    pub fn learn(&mut self, entry: &Entry) {
        self.orders.see(entry);
        self.outside_trading.see(entry);
        if let WitnessEvent::Booked {
            instrument,
            client_order_id,
            trade_id: ..=-1,
            ..
        } = &entry.seen
            && instrument.starts_with("spot:")
        {
            let owner = wire::strategy(client_order_id).to_owned();
            self.made_up.insert((owner, instrument.clone()));
        }
    }

    /// The parts that outside orders closed.
    pub const fn outside_trading(&self) -> &OutsideTrading {
        &self.outside_trading
    }

    /// The part of a spot commission in the base asset that the venue may never report. It is the
    /// whole commission if a fill was derived from its order's totals, and otherwise the rounding.
    pub fn unstated_fee(&self, owner: &str, instrument: &str, trade: &Value) -> Decimal {
        let fee = base_fee(instrument, trade);
        let key = (owner.to_owned(), instrument.to_owned());
        if self.made_up.contains(&key) {
            fee.abs()
        } else if self.rounds_fees {
            (fee - fee.round_dp(FEE_DECIMALS)).abs()
        } else {
            Decimal::ZERO
        }
    }

    /// The sum of the venue's trades of each strategy's orders, minus commissions in the base asset
    /// of spot, and minus the parts that outside orders closed.
    pub fn held(&self, truth: &Value) -> BTreeMap<(String, String), Decimal> {
        let mut held: BTreeMap<_, Decimal> = BTreeMap::new();
        for (owner, instrument, trade) in self.own_trades(truth) {
            let qty = wire::number(trade, "qty").unwrap_or_default();
            let buys = trade.get("side").is_some_and(|side| side == "BUY");
            let signed = if buys { qty } else { -qty };
            let fee = base_fee(&instrument, trade);
            let book = wire::book_of(trade);
            *held.entry((owner, book)).or_default() += signed - fee;
        }
        for (key, qty) in &self.outside_trading.closed {
            *held.entry(key.clone()).or_default() -= qty;
        }
        held.retain(|_, qty| !qty.is_zero());
        held
    }

    /// The venue's trades of own orders: strategy, instrument and trade.
    pub fn own_trades<'a>(&self, truth: &'a Value) -> Vec<(String, String, &'a Value)> {
        let account = truth.pointer("/accounts/0").unwrap_or(&Value::Null);
        let list = |field: &str| account.get(field).and_then(Value::as_array);
        let place = |record: &Value| {
            let surface = wire::text(record, "surface")?;
            let instrument = format!("{surface}:{}", wire::text(record, "symbol")?);
            Some((instrument, record.get("order_id").and_then(Value::as_i64)?))
        };
        let mut owners = BTreeMap::new();
        for order in list("orders").into_iter().flatten() {
            let id = wire::text(order, "client_order_id");
            if let (Some(place), Some(id)) = (place(order), id)
                && self.orders.get(&id).is_some()
            {
                owners.insert(place, wire::strategy(&id).to_owned());
            }
        }
        let own = |trade: &'a Value| {
            let place = place(trade)?;
            let owner = owners.get(&place)?.clone();
            Some((owner, place.0, trade))
        };
        list("trades")
            .into_iter()
            .flatten()
            .filter_map(own)
            .collect()
    }
}

/// The commission of a spot trade if it is in the base asset, otherwise zero.
pub fn base_fee(instrument: &str, trade: &Value) -> Decimal {
    let symbol = instrument.strip_prefix("spot:").unwrap_or_default();
    let base = symbol.strip_suffix("USDT").filter(|base| !base.is_empty());
    let asset = wire::text(trade, "fee_asset");
    let fee = wire::number(trade, "fee").filter(|_| base.is_some() && asset.as_deref() == base);
    fee.unwrap_or_default()
}

fn held_here(view: &View) -> BTreeMap<(String, String), Decimal> {
    let mut held: BTreeMap<_, Decimal> = BTreeMap::new();
    for strategy in &view.strategies {
        for position in &strategy.positions {
            let book = wire::book(&position.instrument, &position.position_side);
            let key = (strategy.id.clone(), book);
            *held.entry(key).or_default() +=
                wire::decimal(&position.qty) + wire::decimal(&position.dust);
        }
    }
    held.retain(|_, qty| !qty.is_zero());
    held
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, at_rest, terms, verdict};
    use crate::witness::{PositionView, StrategyView};

    fn rule() -> Fills {
        Fills::new(&terms())
    }

    fn filled() -> Log {
        Log::new()
            .place("mm.a.1")
            .order_event("mm.a.1", "PARTIALLY_FILLED", "0.4")
    }

    #[test]
    fn fills_up_to_the_executed_quantity_are_accepted() {
        let more = filled().booked("mm.a.1", 1, "0.4");
        let sound = more
            .order_event("mm.a.1", "FILLED", "1")
            .booked("mm.a.1", 2, "0.6");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn a_trade_that_is_booked_twice_is_found() {
        let broken = filled()
            .booked("mm.a.1", 1, "0.2")
            .booked("mm.a.1", 1, "0.2");
        assert!(verdict(rule(), &broken).is_err());
    }

    #[test]
    fn booking_more_than_was_executed_is_found() {
        let broken = filled()
            .booked("mm.a.1", -1, "0.4")
            .booked("mm.a.1", 1, "0.4");
        assert!(verdict(rule(), &broken).is_err());
        assert!(verdict(rule(), &filled().booked("mm.a.1", 1, "0.5")).is_err());
    }

    #[test]
    fn hedge_mode_sides_are_compared_separately() {
        for (side, word, qty) in [("LONG", "BUY", "0.4"), ("SHORT", "SELL", "-0.4")] {
            let truth = json!({"accounts": [{
                "orders": [{"surface": "futures", "symbol": "BTCUSDT", "order_id": 7,
                    "client_order_id": "mm.a.1"}],
                "trades": [{"surface": "futures", "symbol": "BTCUSDT", "order_id": 7, "side": word,
                    "position_side": side, "qty": "0.4"}],
            }]});
            let judged = |of: &str| {
                let held = PositionView {
                    dust: "0".to_owned(),
                    instrument: "futures:BTCUSDT".to_owned(),
                    position_side: of.to_owned(),
                    qty: qty.to_owned(),
                    cost: "0".to_owned(),
                };
                let view = View {
                    strategies: vec![StrategyView {
                        id: "mm".to_owned(),
                        positions: vec![held],
                        ..StrategyView::default()
                    }],
                    ..View::default()
                };
                at_rest(rule(), &filled(), truth.clone(), view)
            };
            assert_eq!(judged(side), Ok(()), "{side}");
            let other = if side == "LONG" { "SHORT" } else { "LONG" };
            assert!(judged(other).is_err(), "{side} is held as {other}");
        }
    }

    #[test]
    fn outside_closes_reduce_the_position() {
        let truth = json!({"accounts": [{
            "orders": [{"surface": "futures", "symbol": "BTCUSDT", "order_id": 7,
                "client_order_id": "mm.a.1"}],
            "trades": [{"surface": "futures", "symbol": "BTCUSDT", "order_id": 7, "side": "BUY",
                "qty": "0.4"}],
        }]});
        let closed = || filled().closed_outside("mm", "0.4");
        let flat = View::default;
        assert!(at_rest(rule(), &filled(), truth.clone(), flat()).is_err());
        assert_eq!(at_rest(rule(), &closed(), truth.clone(), flat()), Ok(()));
        let less = filled().closed_outside("mm", "0.3");
        assert!(at_rest(rule(), &less, truth.clone(), flat()).is_err());
        assert_eq!(at_rest(rule(), &less.start(), truth, flat()), Ok(()));
    }

    #[test]
    fn a_commission_in_the_base_asset_of_spot_is_not_held() {
        let truth = json!({"accounts": [{
            "orders": [{"surface": "spot", "symbol": "BTCUSDT", "order_id": 7,
                "client_order_id": "sp.a.1"}],
            "trades": [{"surface": "spot", "symbol": "BTCUSDT", "order_id": 7, "side": "BUY",
                "qty": "2", "fee": "0.00001", "fee_asset": "BTC"}],
        }]});
        let view = |dust: &str| View {
            strategies: vec![StrategyView {
                id: "sp".to_owned(),
                positions: vec![PositionView {
                    instrument: "spot:BTCUSDT".to_owned(),
                    qty: "1.9".to_owned(),
                    dust: dust.to_owned(),
                    ..PositionView::default()
                }],
                ..StrategyView::default()
            }],
            ..View::default()
        };
        let placed = || Log::new().place("sp.a.1");
        let judged = |rule: Fills, log: Log, dust| at_rest(rule, &log, truth.clone(), view(dust));
        assert_eq!(judged(rule(), placed(), "0.09999"), Ok(()));
        assert!(judged(rule(), placed(), "0.1").is_err());
        let rounded = Fills::new(&Terms {
            rounds_fees: true,
            ..terms()
        });
        assert_eq!(judged(rounded, placed(), "0.1"), Ok(()));
        let filled = placed().order_event("sp.a.1", "FILLED", "2");
        let made_up = filled.bought_on_spot("sp.a.1", -1, ("2", "200"), ("0.1", "USDT"));
        assert_eq!(judged(rule(), made_up, "0.1"), Ok(()));
    }

    #[test]
    fn a_new_process_may_book_lost_fills_again() {
        let sound = filled()
            .booked("mm.a.1", 1, "0.4")
            .start()
            .booked("mm.a.1", 1, "0.4");
        assert_eq!(verdict(rule(), &sound), Ok(()));
    }

    #[test]
    fn a_position_that_differs_from_the_trades_is_found() {
        let truth = json!({"accounts": [{
            "orders": [{"surface": "futures", "symbol": "BTCUSDT", "order_id": 7,
                "client_order_id": "mm.a.1"}],
            "trades": [
                {"surface": "futures", "symbol": "BTCUSDT", "order_id": 7, "side": "BUY",
                    "qty": "0.4"},
                {"surface": "futures", "symbol": "BTCUSDT", "order_id": 9, "side": "BUY",
                    "qty": "5"},
            ],
        }]});
        let view = |qty: &str| View {
            strategies: vec![StrategyView {
                id: "mm".to_owned(),
                positions: vec![PositionView {
                    instrument: "futures:BTCUSDT".to_owned(),
                    qty: qty.to_owned(),
                    ..PositionView::default()
                }],
                ..StrategyView::default()
            }],
            ..View::default()
        };
        assert_eq!(
            at_rest(rule(), &filled(), truth.clone(), view("0.40")),
            Ok(())
        );
        assert!(at_rest(rule(), &filled(), truth, view("0.8")).is_err());
    }
}
