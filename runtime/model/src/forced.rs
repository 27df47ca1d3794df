//! Positions that the venue closes by liquidation or auto-deleveraging
//! (docs/interface/user-stream.md#order_trade_update): how to recognize such a close, and the
//! report about it.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{ClientOrderId, InstrumentId, StrategyId, VenueOrderId};
use crate::order::{ExecutionType, OrderStatus, OrderType, PositionSide, Side};
use crate::protocol::{OrderReport, OrderUpdate};
use crate::state_report::OpenOrder;

/// Why the venue closed a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ForcedClose {
    /// The margin was too small.
    Liquidation,
    /// Auto-deleveraging: the venue used the position as counterparty for another account's
    /// liquidation.
    Adl,
    /// No order explains the close. Only account events or account snapshots showed it. A person
    /// may have closed the position.
    Unreported,
}

impl ForcedClose {
    /// Its number in the contract with strategies.
    pub const fn code(self) -> i64 {
        match self {
            Self::Liquidation => 1,
            Self::Adl => 2,
            Self::Unreported => 3,
        }
    }

    /// One word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Liquidation => "liquidation",
            Self::Adl => "ADL",
            Self::Unreported => "unreported",
        }
    }

    /// The kind of forced close of an order event, recognized by any of the marks that the
    /// documents define. One mark is enough. An ADL order may also carry marks of a liquidation.
    pub fn of(update: &OrderUpdate) -> Option<Self> {
        let named = Self::of_id(&update.client_order_id);
        if named == Some(Self::Adl) || update.status == OrderStatus::NewAdl {
            return Some(Self::Adl);
        }
        let marked = update.order_type == OrderType::Liquidation
            || update.execution == ExecutionType::Calculated
            || update.status == OrderStatus::NewInsurance;
        named.or(marked.then_some(Self::Liquidation))
    }

    /// The kind of an order in the REST list of forced orders.
    pub fn of_listed(report: &OrderReport) -> Self {
        let by_status = match report.status {
            OrderStatus::NewAdl => Self::Adl,
            _ => Self::Liquidation,
        };
        Self::of_id(&report.client_order_id).unwrap_or(by_status)
    }

    /// The kind of an order that a REST query returned; `None` if a person or a program placed it.
    pub fn of_order(order: &OpenOrder) -> Option<Self> {
        let report = &order.report;
        let marked = order.terms.order_type == OrderType::Liquidation
            || matches!(
                report.status,
                OrderStatus::NewAdl | OrderStatus::NewInsurance
            );
        let is_forced = marked || Self::of_id(&report.client_order_id).is_some();
        is_forced.then(|| Self::of_listed(report))
    }

    /// Recognizes the prefix of a client order id. An id of more than 36 characters is stored
    /// between slashes and without special characters (see [`ClientOrderId::from_venue`]).
    fn of_id(id: &ClientOrderId) -> Option<Self> {
        let id = id.as_str();
        let begins = |prefixes: [&str; 2]| prefixes.iter().any(|prefix| id.starts_with(prefix));
        if begins(["adl_autoclose", "/adlautoclose"]) {
            return Some(Self::Adl);
        }
        begins(["autoclose-", "/autoclose"]).then_some(Self::Liquidation)
    }
}

/// The run's reaction to a liquidation or an ADL: `[risk] on_liquidation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum OnLiquidation {
    /// Halt: own orders are cancelled, and no order is sent until `resume`.
    #[default]
    Halt = 0,
    /// Pause: no order adds exposure until `resume`.
    Pause = 1,
    /// Continue trading.
    Continue = 2,
}

impl OnLiquidation {
    /// Every reaction, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Halt, Self::Pause, Self::Continue];

    /// The value in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Pause => "pause",
            Self::Continue => "continue",
        }
    }
}

/// A report about one forced close or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedCloseReport {
    /// Why the venue closed the position.
    pub kind: ForcedClose,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Side of the closing order: `Sell` closes a long position.
    pub side: Side,
    /// Position side.
    pub position_side: PositionSide,
    /// The venue's order; 0 if only a balance event or an account snapshot proves the close.
    pub order_id: VenueOrderId,
    /// Its client order id, if known.
    pub client_order_id: Option<ClientOrderId>,
    /// Closed quantity; 0 if the order has not traded yet.
    pub qty: i64,
    /// Value of the closed quantity: price times quantity.
    pub quote: Amount,
    /// Profit or loss before fees: the venue's figure if it states one, otherwise our own.
    pub realized_pnl: Amount,
    /// Fee of the close.
    pub fee: Amount,
    /// The strategies whose positions were closed, and by how much.
    pub shares: Vec<ForcedShare>,
    /// The closed quantity that belonged to no strategy.
    pub unowned: i64,
    /// The account's position after the close.
    pub left: i64,
    /// The configured reaction.
    pub reaction: OnLiquidation,
    /// Whether the reaction changed the kill switch of the run.
    pub kill_switch_changed: bool,
}

impl ForcedCloseReport {
    /// Whether its figures come from the change of a balance. The loss then includes the
    /// commission, and the price of the close is unknown.
    pub fn has_balance_figures(&self) -> bool {
        self.kind == ForcedClose::Unreported && self.order_id.0 == 0
    }

    /// Adds a later part of the same order.
    pub fn add(&mut self, part: &Self) {
        self.kind = part.kind;
        self.client_order_id = part.client_order_id.or(self.client_order_id);
        self.qty += part.qty;
        self.quote += part.quote;
        self.realized_pnl += part.realized_pnl;
        self.fee += part.fee;
        self.unowned += part.unowned;
        self.left = part.left;
        self.kill_switch_changed |= part.kill_switch_changed;
        for share in &part.shares {
            self.add_share(*share);
        }
    }

    /// Adds the share of a strategy.
    pub fn add_share(&mut self, share: ForcedShare) {
        let mut shares = self.shares.iter_mut();
        if let Some(known) = shares.find(|known| known.strategy == share.strategy) {
            known.qty += share.qty;
            known.realized_pnl += share.realized_pnl;
            known.left = share.left;
        } else {
            self.shares.push(share);
        }
    }
}

/// The part of a forced close that one strategy bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedShare {
    /// The strategy.
    pub strategy: StrategyId,
    /// Closed quantity, unsigned.
    pub qty: i64,
    /// Profit or loss that the strategy's position realized, before fees.
    pub realized_pnl: Amount,
    /// The strategy's position after the close.
    pub left: i64,
}

/// Divides a closed quantity among the holders of a side, in proportion to their holdings and in
/// whole steps. The remainder goes to the largest holder, then to the next. No holder gives more
/// than it holds.
pub fn pro_rata(held: &[i64], qty: i64, step: i64) -> Vec<i64> {
    let total: i128 = held.iter().map(|qty| i128::from(*qty)).sum();
    let qty = i128::from(qty).min(total);
    let step = i128::from(step.max(1));
    let share = |held: &i64| {
        let exact = i128::from(*held) * qty / total.max(1);
        exact - exact % step
    };
    let mut shares: Vec<i128> = held.iter().map(share).collect();
    let mut left = qty - shares.iter().sum::<i128>();
    let mut by_size: Vec<usize> = (0..held.len()).collect();
    by_size.sort_by_key(|place| std::cmp::Reverse(held[*place]));
    for place in by_size {
        let more = left.min(i128::from(held[place]) - shares[place]);
        shares[place] += more;
        left -= more;
    }
    // A share is at most the holding, which fits 64 bits.
    let narrow = |share: i128| i64::try_from(share).unwrap_or_default();
    shares.into_iter().map(narrow).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_remainder_goes_to_the_largest_holder() {
        assert_eq!(pro_rata(&[60, 30, 10], 50, 1), [30, 15, 5]);
        assert_eq!(pro_rata(&[60, 30, 10], 50, 10), [40, 10, 0]);
        assert_eq!(pro_rata(&[10, 30, 60], 100, 7), [10, 30, 60]);
        assert_eq!(pro_rata(&[3, 3], 5, 1), [3, 2]);
        assert_eq!(pro_rata(&[], 5, 1), [0_i64; 0]);
        assert_eq!(pro_rata(&[0, 4], 9, 1), [0, 4]);
    }

    #[test]
    fn a_shortened_id_keeps_its_kind_of_forced_close() {
        fn of(text: &str) -> Option<ForcedClose> {
            ForcedClose::of_id(&ClientOrderId::from_venue(text))
        }
        let long = "0".repeat(40);
        assert_eq!(of("autoclose-17"), Some(ForcedClose::Liquidation));
        assert_eq!(of("adl_autoclose"), Some(ForcedClose::Adl));
        assert_eq!(
            of(&format!("autoclose-{long}")),
            Some(ForcedClose::Liquidation)
        );
        assert_eq!(of(&format!("adl_autoclose{long}")), Some(ForcedClose::Adl));
        assert_eq!(of("web_autoclose-17"), None);
        assert_eq!(of("mm.a.1"), None);
    }

    proptest! {
        #[test]
        fn shares_sum_to_the_quantity_and_fit_the_holdings(
            held in prop::collection::vec(0_i64..1_000, 0..6), qty in 0_i64..4_000, step in 1_i64..20,
        ) {
            let shares = pro_rata(&held, qty, step);
            prop_assert_eq!(shares.iter().sum::<i64>(), qty.min(held.iter().sum()));
            for (share, held) in shares.iter().zip(&held) {
                prop_assert!((0..=*held).contains(share));
            }
        }
    }
}
