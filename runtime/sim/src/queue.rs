//! The position of an own resting order in the queue of its price level, and how it advances.
//!
//! The recorded book does not contain the order, so its position is an estimate. `ahead` is the
//! quantity of other orders that must trade or be cancelled before it. It never rises, except for
//! HIDDEN orders.
//!
//! - An order joins behind the quantity displayed at its price. If the recording does not contain
//!   that quantity (a price behind the top, in a book with only a top), `ahead` is unknown. Unknown
//!   counts as more than any trade, until the book shows this price level for the first time.
//! - A trade of quantity t at the price: `ahead' = max(0, ahead - t)`, and the rest of t,
//!   `t - ahead`, fills the order.
//! - A level that changes from d to d' displayed, in *risk-averse*: `ahead' = min(ahead, d')`. All
//!   cancellations count as behind the order, as long as there is quantity behind it.
//! - In *probabilistic*: of the decrease `c = d - d' - (trades since)`, the part `1 - p` is ahead,
//!   with `p = f(behind) / (f(behind) + f(ahead))`, `behind = d - ahead`, `f(x) = x^3`, and
//!   `ahead' = min(ahead - (1 - p) * c, d')`, further lowered by the amount by which `p * c`
//!   exceeds `behind`. This is the power model of the hftbacktest documentation (order fill,
//!   probability queue position models). Here it uses integers, with p in units of 2^-16, so every
//!   machine gives the same result.
//! - In *none*: `ahead = 0` from the start, so a touch fills.
//! - In every model, an opposite best price that reaches or passes the order's price fills it, up
//!   to the displayed quantity there: the sender of that quantity would have traded with this order
//!   first.
//! - HIDDEN orders are behind everything displayed, even if it came later: `ahead' = d'`.

use crate::config::QueueModel;
use crate::order_key::OrderKey;
use serde::{Deserialize, Serialize};

/// A quantity above any trade, for a level that has not been seen yet.
pub(crate) const UNKNOWN: i64 = i64::MAX / 4;

/// An own order in the book.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Resting {
    pub(crate) key: OrderKey,
    pub(crate) price: i64,
    /// Quantity of other orders before it.
    pub(crate) ahead: i64,
    /// Displayed quantity at its price when last seen.
    displayed: i64,
    /// Traded quantity at its price since the displayed quantity was last seen.
    traded: i64,
    hidden: bool,
}

impl Resting {
    pub(crate) fn join(
        key: OrderKey,
        price: i64,
        displayed: Option<i64>,
        hidden: bool,
        model: QueueModel,
    ) -> Self {
        let displayed = displayed.unwrap_or(UNKNOWN);
        Self {
            key,
            price,
            ahead: match model {
                QueueModel::None => 0,
                _ => displayed,
            },
            displayed,
            traded: 0,
            hidden,
        }
    }

    /// Handles a trade at the order's price. Returns the quantity that reaches the order.
    #[inline]
    pub(crate) fn on_trade(&mut self, qty: i64) -> i64 {
        self.traded = self.traded.saturating_add(qty);
        let reach = (qty - self.ahead).max(0);
        self.ahead = (self.ahead - qty).max(0);
        reach
    }

    /// Handles a trade or quote through the price: nothing is ahead any more.
    #[inline]
    pub(crate) const fn on_through(&mut self) {
        self.ahead = 0;
    }

    /// Handles a change of the displayed quantity at the order's price.
    pub(crate) fn on_displayed(&mut self, displayed: i64, model: QueueModel) {
        if self.hidden && model != QueueModel::None {
            self.ahead = displayed;
        } else if model == QueueModel::Probabilistic && self.displayed < UNKNOWN {
            self.ahead = self.after_cancellations(displayed);
        } else {
            self.ahead = self.ahead.min(displayed);
        }
        self.displayed = displayed;
        self.traded = 0;
    }

    fn after_cancellations(&self, displayed: i64) -> i64 {
        let gone = self.displayed - displayed - self.traded;
        if gone <= 0 {
            return self.ahead.min(displayed);
        }
        let behind = (self.displayed - self.ahead - self.traded).max(0);
        let share_behind = share_behind(self.ahead, behind);
        let from_behind = (i128::from(gone) * i128::from(share_behind)) >> SHARE_BITS;
        let from_behind = (from_behind as i64).min(behind);
        (self.ahead - (gone - from_behind)).clamp(0, displayed)
    }
}

const SHARE_BITS: u32 = 16;

/// `behind^3 / (behind^3 + ahead^3)` in units of 2^-16, rounded down.
fn share_behind(ahead: i64, behind: i64) -> i64 {
    // Only the ratio matters, so 32 significant bits are kept. Then the cubes fit into 128 bits.
    let wide = 64 - (ahead | behind).leading_zeros();
    let shift = wide.saturating_sub(32);
    let cube = |x: i64| {
        let x = (x >> shift) as u128;
        x * x * x
    };
    let (front, back) = (cube(ahead), cube(behind));
    if front + back == 0 {
        return 0;
    }
    ((back << SHARE_BITS) / (front + back)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resting(displayed: Option<i64>, model: QueueModel) -> Resting {
        Resting::join(OrderKey(0), 100, displayed, false, model)
    }

    #[test]
    fn only_the_rest_of_a_trade_reaches_the_order() {
        let mut order = resting(Some(50), QueueModel::RiskAverse);
        assert_eq!(order.on_trade(30), 0);
        assert_eq!(order.on_trade(30), 10);
        assert_eq!(order.on_trade(5), 5);
    }

    #[test]
    fn risk_averse_counts_cancellations_as_behind_first() {
        let mut order = resting(Some(50), QueueModel::RiskAverse);
        order.on_displayed(80, QueueModel::RiskAverse);
        assert_eq!(order.ahead, 50);
        order.on_displayed(60, QueueModel::RiskAverse);
        assert_eq!(order.ahead, 50);
        order.on_displayed(20, QueueModel::RiskAverse);
        assert_eq!(order.ahead, 20);
    }

    #[test]
    fn probabilistic_splits_cancellations_by_the_cubes() {
        let mut order = resting(Some(50), QueueModel::Probabilistic);
        order.on_displayed(100, QueueModel::Probabilistic);
        assert_eq!(order.ahead, 50);
        // 50 ahead and 50 behind: half of the 20 that left were ahead.
        order.on_displayed(80, QueueModel::Probabilistic);
        assert_eq!(order.ahead, 40);
    }

    #[test]
    fn probabilistic_does_not_count_trades_twice() {
        let mut order = resting(Some(50), QueueModel::Probabilistic);
        order.on_trade(20);
        order.on_displayed(30, QueueModel::Probabilistic);
        assert_eq!(order.ahead, 30);
    }

    #[test]
    fn an_unseen_level_is_unknown_until_it_is_displayed() {
        let mut order = resting(None, QueueModel::RiskAverse);
        assert_eq!(order.on_trade(1_000_000_000), 0);
        order.on_displayed(70, QueueModel::RiskAverse);
        assert_eq!(order.ahead, 70);
    }

    #[test]
    fn a_hidden_order_is_behind_later_quantity() {
        let mut order = Resting::join(OrderKey(0), 100, Some(10), true, QueueModel::RiskAverse);
        order.on_displayed(90, QueueModel::RiskAverse);
        assert_eq!(order.ahead, 90);
    }

    proptest! {
        #[test]
        fn the_queue_position_never_gets_worse(
            first in proptest::option::of(0_i64..1_000_000),
            steps in proptest::collection::vec((any::<bool>(), 0_i64..1_000_000), 0..50),
            probabilistic: bool,
        ) {
            let model = if probabilistic { QueueModel::Probabilistic } else { QueueModel::RiskAverse };
            let mut order = resting(first, model);
            for (trade, qty) in steps {
                let before = order.ahead;
                if trade {
                    let reach = order.on_trade(qty);
                    prop_assert!(reach <= qty);
                } else {
                    order.on_displayed(qty, model);
                    prop_assert!(order.ahead <= qty);
                }
                prop_assert!(order.ahead <= before && order.ahead >= 0);
            }
        }

        #[test]
        fn the_share_is_between_0_and_1(ahead in 0_i64..i64::MAX / 4, behind in 0_i64..i64::MAX / 4) {
            prop_assert!((0..=1 << SHARE_BITS).contains(&share_behind(ahead, behind)));
        }
    }
}
