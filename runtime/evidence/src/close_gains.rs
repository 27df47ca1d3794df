//! Profit and commission of positions that outside parties closed.
//!
//! An entry in the list of the account's trades states its price, and its commission separately. An
//! account snapshot shows only the balance, whose change contains the commission. If an order later
//! states the price, the difference is the commission.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{Amount, div_half_even};
use windvane_model::ids::{AssetId, InstrumentId};
use windvane_model::ledger::value;
use windvane_model::names::Names;
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::state_report::AccountSnapshot;

use crate::outside_closes::renamed;
use crate::position::key_of;
use crate::{Evidence, PositionKey};

/// Gains of closes that are due, by position.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DueGains(BTreeMap<PositionKey, RealizedGain>);

/// A balance matches a close if it changed by the unrealized profit, within one part in this many
/// of the position's value. The exact price and fee are unknown.
const FITS_PARTS: i128 = 10;

/// The profit of a closed quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealizedGain {
    /// Signed like the closing orders.
    qty: i64,
    /// Profit of the account. For the part that a balance showed, the commission is already
    /// deducted.
    pub realized: Amount,
    /// The quantity whose value was derived from a balance.
    of_balance: i64,
    value_of_balance: Amount,
}

/// The profit of a close that an account snapshot shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct CloseGain {
    /// The profit.
    pub amount: Amount,
    /// The amount is the change of the balance, not an estimate at the mark price.
    pub is_stated: bool,
}

impl RealizedGain {
    fn part(&self, qty: i64) -> Self {
        let whole = self.qty.saturating_abs().max(1);
        let of_balance = Amount(self.of_balance.into()).part(qty, whole);
        Self {
            qty: self.qty.signum() * qty,
            realized: self.realized.part(qty, whole),
            of_balance: i64::try_from(of_balance.0).unwrap_or_default(),
            value_of_balance: self.value_of_balance.part(qty, whole),
        }
    }

    /// The commission that a gain contains. An order states the value of a close (`price`), while
    /// the balance showed the value less the commission. 0 if it contains none.
    pub fn fee(&self, closing: Side, price: impl Fn(i64) -> Amount) -> Amount {
        let stated = price(self.of_balance);
        let fee = match closing {
            Side::Sell => stated - self.value_of_balance,
            Side::Buy => self.value_of_balance - stated,
        };
        if self.of_balance == 0 || fee <= Amount::ZERO {
            return Amount::ZERO;
        }
        fee
    }
}

impl DueGains {
    /// Notes the gain of an outside close that the strategies must still give up. `value` is its
    /// value derived from the balance; 0 for a trade.
    pub fn note(&mut self, key: PositionKey, qty: i64, realized: Amount, value: Amount) {
        let gained = self.0.entry(key).or_default();
        if gained.qty.signum() == -qty.signum() {
            *gained = RealizedGain::default();
        }
        gained.qty += qty;
        gained.realized += realized;
        if value != Amount::ZERO {
            gained.of_balance += qty.saturating_abs();
            gained.value_of_balance += value;
        }
    }

    /// Takes the gain of this quantity out of the due closes; `None` if it is not known.
    pub fn take(&mut self, key: PositionKey, closing: Side, qty: i64) -> Option<RealizedGain> {
        let gained = self.0.get_mut(&key)?;
        let known = closing.sign() * gained.qty;
        if qty <= 0 || qty > known {
            return None;
        }
        let part = gained.part(qty);
        gained.qty -= part.qty;
        gained.realized -= part.realized;
        gained.of_balance -= part.of_balance;
        gained.value_of_balance -= part.value_of_balance;
        if gained.qty == 0 {
            self.0.remove(&key);
        }
        Some(part)
    }

    /// Removes the gain of a position whose closes are settled.
    pub fn remove(&mut self, key: PositionKey) {
        self.0.remove(&key);
    }

    /// Takes over the due gains of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        self.0.extend(renamed(&old.0, names));
    }
}

impl Evidence<'_> {
    /// Whether a balance changed by about the amount that closing these positions must have
    /// realized.
    pub(crate) fn fits_closes(
        &self,
        surface: Surface,
        read: &AccountSnapshot,
        asset: AssetId,
        closed: &[(PositionKey, i64)],
    ) -> bool {
        let gained = self.gained(surface, read, asset);
        let (mut expected, mut values) = (Amount::ZERO, Amount::ZERO);
        for ((id, side), qty) in closed {
            let rules = &self.instruments[usize::from(id.0)];
            if rules.quote == asset {
                expected += self.expected_gain(*id, *side, *qty);
                values += self.value_of(&((*id, *side), *qty));
            }
        }
        gained != Amount::ZERO && (gained - expected).abs().0 * FITS_PARTS <= values.0
    }

    /// How much larger a balance is in a snapshot than in the books.
    fn gained(&self, surface: Surface, read: &AccountSnapshot, asset: AssetId) -> Amount {
        let known = self.balance(surface, asset).total;
        let reported = read
            .balances
            .iter()
            .find(|reported| reported.asset == asset);
        reported.map_or(Amount::ZERO, |reported| reported.total - known)
    }

    /// The profit of closing this quantity of a position at the mark price; 0 without a mark price.
    fn expected_gain(&self, id: InstrumentId, side: PositionSide, qty: i64) -> Amount {
        let position = &self.ledgers.account.at(id, side).position;
        let rules = &self.instruments[usize::from(id.0)];
        let cost = position.cost.part(qty.abs(), position.qty.abs().max(1));
        self.mark(id)
            .map_or(Amount::ZERO, |mark| value(rules, qty, mark.mark) - cost)
    }

    /// The profit of each close that a snapshot shows. If the change of the balance fits the
    /// closes, or if account events reported each of them, the closes share the whole change by
    /// their value.
    pub fn gains_of_closes(
        &self,
        surface: Surface,
        account: &AccountSnapshot,
    ) -> BTreeMap<PositionKey, CloseGain> {
        let mut gains = BTreeMap::new();
        let mut closes: BTreeMap<AssetId, Vec<(PositionKey, i64)>> = BTreeMap::new();
        for reported in &account.positions {
            let key = key_of(reported);
            if let Some(closed) = self.closed_in_snapshot(reported) {
                let quote = self.instruments[usize::from(key.0.0)].quote;
                closes.entry(quote).or_default().push((key, closed));
                let amount = self.expected_gain(key.0, key.1, closed);
                let is_stated = false;
                gains.insert(key, CloseGain { amount, is_stated });
            }
        }
        for (asset, closes) in closes {
            let gained = self.gained(surface, account, asset);
            let mut keys = closes.iter();
            let are_stated =
                gained != Amount::ZERO && keys.all(|(key, _)| self.stated_closes.contains_key(key));
            if !are_stated && !self.fits_closes(surface, account, asset, &closes) {
                continue;
            }
            let of_asset = closes.iter().filter_map(|(key, _)| gains.get(key));
            let mut rest = gained - of_asset.map(|gain| gain.amount).sum::<Amount>();
            let mut left: Amount = closes.iter().map(|close| self.value_of(close)).sum();
            for close in &closes {
                let value = self.value_of(close);
                let share = Amount(div_half_even(rest.0 * value.0, left.0.max(1)));
                let share = if value == left { rest } else { share };
                (rest, left) = (rest - share, left - value);
                if let Some(gain) = gains.get_mut(&close.0) {
                    gain.amount += share;
                    gain.is_stated = true;
                }
            }
        }
        gains
    }

    /// The value of a closed quantity at the mark price; without a mark price, its cost.
    fn value_of(&self, ((id, side), qty): &(PositionKey, i64)) -> Amount {
        let rules = &self.instruments[usize::from(id.0)];
        let position = self.ledgers.account.at(*id, *side).position;
        let whole = position.qty.saturating_abs().max(1);
        let cost = position.cost.part(qty.saturating_abs(), whole);
        let mark = self.mark(*id).map(|mark| value(rules, *qty, mark.mark));
        mark.unwrap_or(cost).abs()
    }
}
