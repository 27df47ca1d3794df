//! Positions and profit from fills, exactly: cost is kept, averages are only ever shown.

use serde::{Deserialize, Serialize};

use crate::decimal::{Amount, div_half_even, pow10};
use crate::instrument::Instrument;
use crate::order::Side;

/// A position of the account or of one strategy, in one instrument and position side.
///
/// `realized - cost + quantity * mark` is exact at any time: rounding a released cost only moves
/// profit between realized and unrealized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Quantity mantissa, negative when short.
    pub qty: i64,
    /// What the open quantity cost, signed like the quantity.
    pub cost: Amount,
    /// Realized profit before fees and funding.
    pub realized_pnl: Amount,
    /// Fees paid in the quote asset; negative when a rebate outweighs them.
    pub fees: Amount,
    /// Funding received.
    pub funding: Amount,
}

impl Position {
    /// Takes a fill and answers the profit that it realized.
    ///
    /// Closing q of Q releases `cost * q / Q`, rounded half to even to 8 decimals, and all of the
    /// cost when q = Q.
    pub fn fill(&mut self, side: Side, qty: i64, quote: Amount) -> Amount {
        let signed = side.sign() * qty;
        let opens = self.qty == 0 || (self.qty > 0) == (signed > 0);
        let signed_quote = |quote: Amount| if signed > 0 { quote } else { -quote };
        if opens {
            self.qty += signed;
            self.cost += signed_quote(quote);
            return Amount::ZERO;
        }
        let held = self.qty.abs();
        let closed = qty.min(held);
        let released = if closed == held {
            self.cost
        } else {
            self.cost.part(closed, held)
        };
        let closed_quote = if closed == qty {
            quote
        } else {
            quote.part(closed, qty)
        };
        let realized = -signed_quote(closed_quote) - released;
        self.qty += signed;
        self.cost = self.cost - released + signed_quote(quote - closed_quote);
        self.realized_pnl += realized;
        realized
    }

    /// Adds another position to this one, with everything that it earned and cost.
    pub fn add(&mut self, other: &Self) {
        self.qty += other.qty;
        self.cost += other.cost;
        self.realized_pnl += other.realized_pnl;
        self.fees += other.fees;
        self.funding += other.funding;
    }

    /// Profit that closing at `mark` (scale 8) would realize.
    #[inline]
    pub fn unrealized_pnl(&self, instrument: &Instrument, mark: i64) -> Amount {
        if self.qty == 0 {
            return -self.cost;
        }
        value(instrument, self.qty, mark) - self.cost
    }

    /// Average entry price at scale 8, 0 when flat; for display, never for arithmetic.
    pub fn entry_price(&self, instrument: &Instrument) -> i64 {
        if self.qty == 0 {
            return 0;
        }
        let raw = self.cost.0 * i128::from(pow10(instrument.qty_scale));
        let average = div_half_even(raw.abs(), i128::from(self.qty.abs()));
        i64::try_from(average).unwrap_or(i64::MAX)
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
    /// What is not available, as last told by the venue: locked in spot orders; on futures the
    /// wallet less `availableBalance`, which unrealized profit makes negative, as last read.
    pub locked: Amount,
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
        /// Whatever the order of fills: profit plus open cost is the money that flowed.
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
