//! A slow reference for positions and money. It shares no code with the engine, except the message
//! types.

use std::collections::{BTreeMap, BTreeSet};

use windvane_model::protocol::OrderUpdate;
use windvane_model::{InstrumentId, Side, StrategyId};

/// The quote amount, in units of 1e-8, of price mantissa 1 times quantity mantissa 1 (scales 1 and
/// 3).
pub(crate) const UNIT: i128 = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) qty: i128,
    pub(crate) cost: i128,
    pub(crate) realized: i128,
}

/// `n / d` rounded half to even, by the remainder of the floor.
fn half_even(n: i128, d: i128) -> i128 {
    let (floor, rest) = (n.div_euclid(d), n.rem_euclid(d));
    match (rest * 2).cmp(&d) {
        std::cmp::Ordering::Less => floor,
        std::cmp::Ordering::Greater => floor + 1,
        std::cmp::Ordering::Equal => floor + floor.rem_euclid(2),
    }
}

impl Position {
    /// Closing q of Q releases cost * q / Q, rounded half to even, and all of it if q = Q.
    pub(crate) fn fill(&mut self, side: Side, qty: i128, quote: i128) -> i128 {
        let sign = if side == Side::Buy { 1 } else { -1 };
        let against = self.qty * sign < 0;
        let closing = if against { qty.min(self.qty.abs()) } else { 0 };
        let mut realized = 0;
        let closing_quote = if closing == qty {
            quote
        } else {
            half_even(quote * closing, qty)
        };
        if closing > 0 {
            let released = if closing == self.qty.abs() {
                self.cost
            } else {
                half_even(self.cost * closing, self.qty.abs())
            };
            self.cost -= released;
            realized = -sign * closing_quote - released;
        }
        self.cost += sign * (quote - closing_quote);
        self.qty += sign * qty;
        self.realized += realized;
        realized
    }

    /// Removes a part of the position, at most the whole, with this realized profit.
    pub(crate) fn settle(&mut self, qty: i128, realized: i128) {
        assert!(qty * self.qty > 0 && qty.abs() <= self.qty.abs());
        self.cost -= if qty == self.qty {
            self.cost
        } else {
            half_even(self.cost * qty.abs(), self.qty.abs())
        };
        self.qty -= qty;
        self.realized += realized;
    }
}

/// The expected result of the delivered messages.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Account positions.
    pub(crate) account: BTreeMap<InstrumentId, Position>,
    /// Strategies' positions.
    pub(crate) own: BTreeMap<(StrategyId, InstrumentId), Position>,
    /// Executed quantity of each client order id. Each fill counts once.
    pub(crate) executed: BTreeMap<String, i64>,
    /// Wallet balance of the quote asset on futures.
    pub(crate) futures_quote: i128,
    /// Balance of the quote asset on spot.
    pub(crate) spot_quote: i128,
    /// Balance of the base asset on spot.
    pub(crate) spot_base: i128,
    pub(crate) fees: i128,
    pub(crate) funding: i128,
    /// The sum of deposits and withdrawals.
    pub(crate) transfers: i128,
    pub(crate) seen: BTreeSet<(InstrumentId, i64)>,
}

impl Model {
    /// Books the fill of a delivered update. Returns whether it is new.
    pub(crate) fn fill(&mut self, owner: Option<StrategyId>, update: &OrderUpdate) -> bool {
        let Some(fill) = &update.fill else {
            return false;
        };
        let instrument = update.instrument;
        if !self.seen.insert((instrument, fill.trade_id.0)) {
            return false;
        }
        let (qty, quote) = (i128::from(fill.qty.0), fill.quote_qty.0);
        assert_eq!(quote, i128::from(fill.price.0) * qty * UNIT);
        let account = self.account.entry(instrument).or_default();
        let realized = account.fill(update.side, qty, quote);
        if let Some(strategy) = owner {
            let own = self.own.entry((strategy, instrument)).or_default();
            own.fill(update.side, qty, quote);
            let id = update.client_order_id.as_str().to_owned();
            *self.executed.entry(id).or_default() += fill.qty.0;
        }
        self.fees += fill.fee.0;
        if instrument == super::steps::FUTURES {
            self.futures_quote += realized - fill.fee.0;
        } else {
            let sign = if update.side == Side::Buy { 1 } else { -1 };
            self.spot_base += sign * qty * 100_000;
            self.spot_quote -= sign * quote + fill.fee.0;
        }
        true
    }

    pub(crate) fn realized(&self) -> i128 {
        self.account
            .values()
            .map(|position| position.realized)
            .sum()
    }
}
