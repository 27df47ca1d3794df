//! Balances and positions. This file only keeps sums: it does not know orders, books or events.

use serde::{Deserialize, Serialize};
use windvane_model::decimal::MARK_SCALE;
use windvane_model::{Amount, AssetId};

/// One spot balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Balance {
    pub(crate) free: Amount,
    pub(crate) locked: Amount,
}

impl Balance {
    pub(crate) fn total(&self) -> Amount {
        self.free + self.locked
    }
}

/// Spot balances and futures wallets, by index of the asset.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    spot: Vec<Balance>,
    wallets: Vec<Amount>,
}

impl Account {
    /// Makes room for an asset. The accessors panic for other assets.
    pub(crate) fn admit(&mut self, asset: AssetId) {
        let len = usize::from(asset.0) + 1;
        self.spot
            .resize(len.max(self.spot.len()), Balance::default());
        self.wallets
            .resize(len.max(self.wallets.len()), Amount::ZERO);
    }

    pub(crate) fn knows(&self, asset: AssetId) -> bool {
        usize::from(asset.0) < self.spot.len()
    }

    pub(crate) fn spot(&self, asset: AssetId) -> Balance {
        self.spot[usize::from(asset.0)]
    }

    pub(crate) fn spot_mut(&mut self, asset: AssetId) -> &mut Balance {
        &mut self.spot[usize::from(asset.0)]
    }

    pub(crate) fn wallet(&self, asset: AssetId) -> Amount {
        self.wallets[usize::from(asset.0)]
    }

    pub(crate) fn wallet_mut(&mut self, asset: AssetId) -> &mut Amount {
        &mut self.wallets[usize::from(asset.0)]
    }

    /// Every asset that was ever added.
    pub(crate) fn assets(&self) -> impl Iterator<Item = AssetId> + use<> {
        (0..self.spot.len() as u16).map(AssetId)
    }
}

/// One position: quantity and cost, both negative when short. The average entry is cost over
/// quantity; it is never stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) qty: i64,
    pub(crate) cost: Amount,
}

impl Position {
    /// Applies a fill of `qty` (signed) for `notional` (positive), and returns the realized profit
    /// before fees. `notional_of` prices the closing part of a fill that reverses the position.
    ///
    /// Closing q of Q releases `cost * q / Q`, rounded half to even, and the whole cost if q = Q.
    pub(crate) fn apply(
        &mut self,
        qty: i64,
        notional: Amount,
        notional_of: impl FnOnce(i64) -> Amount,
    ) -> Amount {
        let signed = |amount: Amount| Amount(amount.0 * i128::from(qty.signum()));
        if self.qty.signum() * qty.signum() >= 0 {
            self.qty += qty;
            self.cost += signed(notional);
            return Amount::ZERO;
        }
        let (held, filled) = (self.qty.abs(), qty.abs());
        let closed = held.min(filled);
        let released = if closed == held {
            self.cost
        } else {
            self.cost.part(closed, held)
        };
        let closing = if closed == filled {
            notional
        } else {
            notional_of(closed)
        };
        self.qty += qty;
        self.cost -= released;
        self.cost += signed(notional - closing);
        -signed(closing) - released
    }

    /// Notional at a mark price of scale 8, signed.
    pub(crate) const fn notional(&self, mark: i64, qty_scale: u8) -> Amount {
        Amount::notional(mark, MARK_SCALE, self.qty, qty_scale)
    }

    /// Profit if it were closed at the mark price.
    pub(crate) fn unrealized(&self, mark: i64, qty_scale: u8) -> Amount {
        self.notional(mark, qty_scale) - self.cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(price: i64) -> impl Fn(i64) -> Amount {
        move |qty| Amount(i128::from(price) * i128::from(qty))
    }

    #[test]
    fn a_partial_close_releases_its_share_of_the_cost() {
        let mut position = Position::default();
        assert_eq!(position.apply(3, Amount(100), at(0)), Amount::ZERO);
        // A third of 100 is 33, rounded half to even.
        assert_eq!(position.apply(-1, Amount(50), at(50)), Amount(17));
        assert_eq!((position.qty, position.cost), (2, Amount(67)));
        assert_eq!(position.apply(-2, Amount(60), at(30)), Amount(-7));
        assert_eq!(position, Position::default());
    }

    #[test]
    fn a_fill_beyond_the_position_reverses_it() {
        let mut position = Position::default();
        position.apply(-2, Amount(200), at(100));
        assert_eq!(position.apply(5, Amount(450), at(90)), Amount(20));
        assert_eq!((position.qty, position.cost), (3, Amount(270)));
    }

    proptest! {
        #[test]
        fn profit_and_cost_account_for_every_notional(
            fills in proptest::collection::vec((-1_000_i64..1_000, 1_i64..1_000_000), 0..60)
        ) {
            let mut position = Position::default();
            let (mut realized, mut paid) = (Amount::ZERO, Amount::ZERO);
            for (qty, price) in fills {
                let notional = at(price)(qty.abs());
                realized += position.apply(qty, notional, at(price));
                paid += Amount(notional.0 * i128::from(qty.signum()));
                prop_assert_eq!(position.cost, paid + realized);
                prop_assert!(position.qty != 0 || position.cost == Amount::ZERO);
            }
        }
    }
}
