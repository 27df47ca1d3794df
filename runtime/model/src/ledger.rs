//! Exact positions and profit from fills. Positions store their cost; average prices are computed
//! only for display.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::decimal::{AMOUNT_SCALE, Amount, MARK_SCALE, div_half_even, pow10};
use crate::ids::AssetId;
use crate::instrument::Instrument;
use crate::order::{Side, Surface};

/// A position of the account or of one strategy, in one instrument and position side.
///
/// `realized - cost + quantity * mark` is exact at any time. Rounding a released cost only moves
/// profit between realized and unrealized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Quantity mantissa, negative when short. On spot, a fee in the base asset can leave a
    /// fraction of a step. `qty` then counts only whole steps, which can be sold.
    pub qty: i64,
    /// The part of the holding beyond `qty`, in grains (see [`Grains`]). It is less than one step,
    /// and comes from fees in the base asset. It has the sign of the holding and is 0 on futures.
    pub dust: i64,
    /// Cost of the open quantity, with the sign of the quantity.
    pub cost: Amount,
    /// Realized profit before fees and funding.
    pub realized_pnl: Amount,
    /// Fees paid in the quote asset. On spot also fees in the base asset, valued at the price of
    /// their fill. Negative if rebates are larger than fees.
    pub fees: Amount,
    /// Funding received; negative if paid.
    pub funding: Amount,
}

impl Position {
    /// Books a fill. Returns the profit that it realized.
    ///
    /// Closing q of Q releases `cost * q / Q` of the cost, rounded half to even to 8 decimals. If q
    /// = Q, it releases the whole cost.
    pub fn fill(&mut self, side: Side, qty: i64, quote: Amount) -> Amount {
        let signed = side.sign() * qty;
        let realized = self.exchange(self.qty.into(), signed.into(), quote);
        self.qty += signed;
        realized
    }

    /// Books a spot fill whose fee is in the base asset, or a fill of a position with dust. Returns
    /// the profit that it realized.
    ///
    /// The holding changes by the same quantity as the balance. The fee is booked as a sale of that
    /// quantity of the base asset at the fill's price. The proceeds pay the fee.
    pub fn fill_net(&mut self, fill: &NetFill, grains: Grains) -> Amount {
        if fill.fee == Amount::ZERO && self.dust == 0 {
            return self.fill(fill.side, fill.qty, fill.quote);
        }
        let mut held = self.held(grains);
        let (qty, fee) = (grains.of_qty(fill.qty), grains.of_amount(fill.fee));
        let change = i128::from(fill.side.sign()) * qty;
        let mut realized = self.exchange(held, change, fill.quote);
        held += change;
        if fee != 0 && qty != 0 {
            let value = Amount(div_half_even(fill.quote.0 * fee, qty));
            realized += self.exchange(held, -fee, value.abs());
            held -= fee;
            self.fees += value;
        }
        self.settle(held, grains);
        realized
    }

    /// Books a commission in the base asset that was not booked with its spot fill. `fill`
    /// describes the fill and holds the commission.
    pub fn pay_in_base(&mut self, fill: &NetFill, grains: Grains) {
        let held = self.held(grains);
        let (qty, fee) = (grains.of_qty(fill.qty), grains.of_amount(fill.fee));
        if fee == 0 || qty == 0 {
            return;
        }
        let value = Amount(div_half_even(fill.quote.0 * fee, qty));
        self.exchange(held, -fee, value.abs());
        self.fees += value;
        self.settle(held - fee, grains);
    }

    /// The whole holding, in grains.
    pub fn held(&self, grains: Grains) -> i128 {
        grains.of_qty(self.qty) + i128::from(self.dust)
    }

    /// Whether the holding is zero, dust included.
    pub const fn is_flat(&self) -> bool {
        self.qty == 0 && self.dust == 0
    }

    /// Splits the holding into whole steps and dust.
    pub fn settle(&mut self, held: i128, grains: Grains) {
        let dust = held % (grains.per_qty * grains.step);
        let qty = (held - dust) / grains.per_qty;
        // An account's quantities are far below the limits of 64 bits, and dust is less than a
        // step.
        self.qty = i64::try_from(qty).unwrap_or(i64::MAX);
        self.dust = i64::try_from(dust).unwrap_or_default();
    }

    /// Updates cost and profit for a `change` of the `held` quantity against `quote`, an unsigned
    /// amount of money. Returns the realized profit.
    fn exchange(&mut self, held: i128, change: i128, quote: Amount) -> Amount {
        let opens = held == 0 || (held > 0) == (change > 0);
        let signed_quote = |quote: Amount| if change > 0 { quote } else { -quote };
        if opens {
            self.cost += signed_quote(quote);
            return Amount::ZERO;
        }
        let (held, qty) = (held.abs(), change.abs());
        let closed = qty.min(held);
        let part = |amount: Amount, whole: i128| {
            if closed == whole {
                amount
            } else {
                Amount(div_half_even(amount.0 * closed, whole))
            }
        };
        let released = part(self.cost, held);
        let closed_quote = part(quote, qty);
        let realized = -signed_quote(closed_quote) - released;
        self.cost = self.cost - released + signed_quote(quote - closed_quote);
        self.realized_pnl += realized;
        realized
    }

    /// Adds another position to this one, including its profit, fees and funding.
    pub fn add(&mut self, other: &Self) {
        self.qty += other.qty;
        self.dust += other.dust;
        self.cost += other.cost;
        self.realized_pnl += other.realized_pnl;
        self.fees += other.fees;
        self.funding += other.funding;
    }

    /// Profit that closing at `mark` (scale 8) would realize.
    #[inline]
    pub fn unrealized_pnl(&self, instrument: &Instrument, mark: i64) -> Amount {
        if self.is_flat() {
            return -self.cost;
        }
        if self.dust != 0 {
            let grains = Grains::of(instrument);
            let raw = self.held(grains) * i128::from(mark);
            return Amount(div_half_even(raw, grains.one)) - self.cost;
        }
        value(instrument, self.qty, mark) - self.cost
    }

    /// Average entry price at scale 8, 0 when flat. It is rounded, so use it only for display.
    pub fn entry_price(&self, instrument: &Instrument) -> i64 {
        if self.qty == 0 {
            return 0;
        }
        let (raw, held) = if self.dust == 0 {
            let one = i128::from(pow10(instrument.qty_scale));
            (self.cost.0 * one, i128::from(self.qty))
        } else {
            let grains = Grains::of(instrument);
            (self.cost.0 * grains.one, self.held(grains))
        };
        let average = div_half_even(raw.abs(), held.abs());
        i64::try_from(average).unwrap_or(i64::MAX)
    }
}

/// A spot fill with its fee in the base asset.
#[derive(Clone, Copy, Debug)]
pub struct NetFill {
    /// `S`.
    pub side: Side,
    /// Quantity mantissa.
    pub qty: i64,
    /// Price times quantity.
    pub quote: Amount,
    /// The fee in the base asset; negative for a rebate, 0 if the fee is in another asset.
    pub fee: Amount,
}

/// Converts to grains, the smallest units in which a holding is counted exactly. A grain is the
/// unit of balances (1e-8), or the unit of quantities if that is smaller. One step has many grains.
#[derive(Clone, Copy, Debug)]
pub struct Grains {
    per_qty: i128,
    per_amount: i128,
    /// `stepSize` of `LOT_SIZE`, a quantity mantissa.
    step: i128,
    /// Grains in one whole unit of the base asset.
    one: i128,
}

impl Grains {
    /// The grains of an instrument.
    pub fn of(instrument: &Instrument) -> Self {
        let scale = instrument.qty_scale.max(AMOUNT_SCALE);
        let step = instrument.filters.lot_size.map_or(1, |lot| lot.step_size);
        Self {
            per_qty: pow10(scale - instrument.qty_scale).into(),
            per_amount: pow10(scale - AMOUNT_SCALE).into(),
            step: step.max(1).into(),
            one: pow10(scale).into(),
        }
    }

    /// Converts a quantity mantissa to grains.
    pub fn of_qty(self, qty: i64) -> i128 {
        i128::from(qty) * self.per_qty
    }

    /// Converts an amount of the base asset to grains.
    pub const fn of_amount(self, amount: Amount) -> i128 {
        amount.0 * self.per_amount
    }

    /// Converts grains to an amount of the base asset, rounded where a grain is smaller than its
    /// unit.
    pub const fn amount(self, grains: i128) -> Amount {
        Amount(div_half_even(grains, self.per_amount))
    }

    /// Converts grains to a quantity mantissa, rounded toward zero.
    pub fn qty(self, grains: i128) -> i64 {
        i64::try_from(grains / self.per_qty).unwrap_or(i64::MAX)
    }
}

/// Value of a signed quantity at a mark price of scale 8.
#[inline]
pub fn value(instrument: &Instrument, qty: i64, mark: i64) -> Amount {
    let raw = i128::from(qty) * i128::from(mark);
    Amount(div_half_even(raw, i128::from(pow10(instrument.qty_scale))))
}

/// One balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Wallet balance on futures; free plus locked on spot.
    pub total: Amount,
    /// The part that is not available, as the venue last reported it. On spot it is locked in
    /// orders. On futures it is the wallet balance less `availableBalance` of the last account
    /// snapshot; unrealized profit can make it negative.
    pub locked: Amount,
}

/// Value of an amount of a base asset at a price of scale 8.
pub fn base_value(base: Amount, price: i64) -> Amount {
    let one = i128::from(pow10(MARK_SCALE));
    Amount(div_half_even(base.0 * i128::from(price), one))
}

/// Balances of the account, by surface and asset.
pub type Balances = BTreeMap<(Surface, AssetId), Balance>;

/// A balance of the account; empty if it is not known.
pub fn balance_of(balances: &Balances, surface: Surface, asset: AssetId) -> Balance {
    balances.get(&(surface, asset)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: i128 = crate::decimal::AMOUNT_ONE;

    #[test]
    fn opening_and_closing_releases_the_whole_cost() {
        let mut position = Position::default();
        position.fill(Side::Buy, 3, Amount(100));
        assert_eq!(position.fill(Side::Sell, 1, Amount(40)), Amount(40 - 33));
        assert_eq!(position.cost, Amount(67));
        assert_eq!(position.fill(Side::Sell, 2, Amount(70)), Amount(3));
        assert_eq!((position.qty, position.cost), (0, Amount::ZERO));
        assert_eq!(position.realized_pnl, Amount(10));
    }

    #[test]
    fn released_cost_rounds_half_to_even() {
        let mut position = Position::default();
        position.fill(Side::Buy, 2, Amount(5));
        position.fill(Side::Sell, 1, Amount(0));
        assert_eq!(position.cost, Amount(3), "5 / 2 releases 2");
        let mut position = Position::default();
        position.fill(Side::Sell, 2, Amount(7));
        position.fill(Side::Buy, 1, Amount(0));
        assert_eq!(position.cost, Amount(-3), "-7 / 2 releases -4");
    }

    #[test]
    fn a_fill_through_zero_opens_the_other_side_at_its_own_price() {
        let mut position = Position::default();
        position.fill(Side::Buy, 2, Amount(200 * ONE));
        let realized = position.fill(Side::Sell, 5, Amount(550 * ONE));
        assert_eq!(realized, Amount(20 * ONE));
        assert_eq!((position.qty, position.cost), (-3, Amount(-330 * ONE)));
    }

    proptest! {
        /// For any order of fills, realized profit less open cost equals the money that flowed.
        #[test]
        fn money_is_conserved(fills in prop::collection::vec((any::<bool>(), 1_i64..1000, 1_i128..10_i128.pow(15)), 1..60)) {
            let mut position = Position::default();
            let (mut flow, mut qty) = (0_i128, 0_i64);
            for (buy, q, quote) in fills {
                let side = if buy { Side::Buy } else { Side::Sell };
                position.fill(side, q, Amount(quote));
                flow -= i128::from(side.sign()) * quote;
                qty += side.sign() * q;
                prop_assert_eq!(position.realized_pnl.0 - position.cost.0, flow);
                prop_assert_eq!(position.qty, qty);
                prop_assert!(qty != 0 || position.cost == Amount::ZERO);
                prop_assert!(qty == 0 || position.cost.0 == 0 || (position.cost.0 > 0) == (qty > 0));
            }
        }
    }
}
