//! The state machine of an own order, as one table. It has the statuses of the documents
//! (docs/interface/orders.md#order-status) and states that only this program knows: submitted,
//! cancel requested, unknown.
//!
//! Updates may arrive late, twice or out of order. So a move that would lead backwards is not an
//! error: the order keeps its state.

use serde::{Deserialize, Serialize};

/// State of an own order. The numbers are those of the strategy contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum OrderState {
    /// Sent; the venue has not reported on it yet.
    Submitted = 0,
    /// Open.
    New = 1,
    /// Filled in part and open.
    PartiallyFilled = 2,
    /// A cancel was sent. The order may still fill.
    CancelRequested = 3,
    /// The outcome of the order request is unknown (`docs/promises.md#2-unknown-is-a-state`).
    Unknown = 4,
    /// Filled entirely.
    Filled = 5,
    /// Cancelled.
    Canceled = 6,
    /// Rejected.
    Rejected = 7,
    /// Ended by the venue.
    Expired = 8,
}

impl OrderState {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::New,
        Self::PartiallyFilled,
        Self::CancelRequested,
        Self::Unknown,
        Self::Filled,
        Self::Canceled,
        Self::Rejected,
        Self::Expired,
    ];

    /// Whether this is a terminal state. Only a late fill can still follow.
    #[inline]
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Filled | Self::Canceled | Self::Rejected | Self::Expired
        )
    }

    /// The text shown to people and written to `orders.csv`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "SUBMITTED",
            Self::New => "NEW",
            Self::PartiallyFilled => "PARTIALLY_FILLED",
            Self::CancelRequested => "CANCEL_REQUESTED",
            Self::Unknown => "UNKNOWN",
            Self::Filled => "FILLED",
            Self::Canceled => "CANCELED",
            Self::Rejected => "REJECTED",
            Self::Expired => "EXPIRED",
        }
    }
}

/// An event that can change the state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OrderMove {
    /// The venue reports the order as NEW.
    Accept = 0,
    /// A fill that leaves a remainder.
    FillPart = 1,
    /// A fill that completes the order.
    FillAll = 2,
    /// We sent a cancel.
    RequestCancel = 3,
    /// The venue rejected the cancel (-2011), or the outcome of the cancel is unknown.
    CancelRefused = 4,
    /// CANCELED.
    Cancel = 5,
    /// REJECTED, or a definite rejection of the request.
    Reject = 6,
    /// EXPIRED.
    Expire = 7,
    /// The outcome of the order request is unknown.
    OutcomeUnknown = 8,
    /// The dead man's switch may have cancelled it.
    MayBeCanceled = 9,
}

impl OrderMove {
    /// All moves, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Accept,
        Self::FillPart,
        Self::FillAll,
        Self::RequestCancel,
        Self::CancelRefused,
        Self::Cancel,
        Self::Reject,
        Self::Expire,
        Self::OutcomeUnknown,
        Self::MayBeCanceled,
    ];
}

/// The table: one row per state, one column per move. `None` means that the move is not allowed.
#[rustfmt::skip]
const TABLE: [[Option<OrderState>; 10]; 9] = {
    use OrderState::{Canceled, CancelRequested, Expired, Filled, New, PartiallyFilled, Rejected, Unknown};
    const NO: Option<OrderState> = None;
    [
        //                    Accept   FillPart             FillAll     RequestCancel        CancelRefused        Cancel        Reject        Expire       OutcomeUnknown MayBeCanceled
        /* Submitted       */ [Some(New), Some(PartiallyFilled), Some(Filled), Some(CancelRequested), NO,                  Some(Canceled), Some(Rejected), Some(Expired), Some(Unknown), Some(Unknown)],
        /* New             */ [NO,      Some(PartiallyFilled), Some(Filled), Some(CancelRequested), NO,                  Some(Canceled), Some(Rejected), Some(Expired), NO, Some(Unknown)],
        /* PartiallyFilled */ [NO,      Some(PartiallyFilled), Some(Filled), Some(CancelRequested), NO,                  Some(Canceled), NO,           Some(Expired), NO, Some(Unknown)],
        // The state after a rejected cancel depends on the filled quantity: see `Order::apply`.
        /* CancelRequested */ [NO,      Some(CancelRequested), Some(Filled), NO,                  Some(New),             Some(Canceled), Some(Rejected), Some(Expired), Some(Unknown), Some(Unknown)],
        /* Unknown         */ [Some(New), Some(PartiallyFilled), Some(Filled), Some(Unknown),         NO,                  Some(Canceled), Some(Rejected), Some(Expired), NO, NO],
        // Terminal states are final, with one exception: a late fill that completes a cancelled or
        // expired order makes it filled.
        /* Filled          */ [NO,      NO,                  NO,         NO,                  NO,                  NO,           NO,           NO,          NO, NO],
        /* Canceled        */ [NO,      NO,                  Some(Filled), NO,                  NO,                  NO,           NO,           NO,          NO, NO],
        /* Rejected        */ [NO,      NO,                  NO,         NO,                  NO,                  NO,           NO,           NO,          NO, NO],
        /* Expired         */ [NO,      NO,                  Some(Filled), NO,                  NO,                  NO,           NO,           NO,          NO, NO],
    ]
};

impl OrderState {
    /// The state after a move; `None` if the table does not allow it.
    #[inline]
    pub const fn after(self, mv: OrderMove) -> Option<Self> {
        TABLE[self as usize][mv as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions_in_the_table() {
        for (i, state) in OrderState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, i);
        }
        for (i, mv) in OrderMove::ALL.into_iter().enumerate() {
            assert_eq!(mv as usize, i);
        }
    }

    /// Checks each of the 90 table entries against the same rules, written as conditions.
    #[test]
    fn the_table_matches_the_rules_of_the_documents() {
        use OrderMove as M;
        use OrderState as S;
        for state in S::ALL {
            for mv in M::ALL {
                let after = state.after(mv);
                let what = format!("{state:?} {mv:?} -> {after:?}");
                if state.is_final() {
                    let completed = mv == M::FillAll && matches!(state, S::Canceled | S::Expired);
                    assert_eq!(after, completed.then_some(S::Filled), "{what}");
                    continue;
                }
                let expected = match mv {
                    M::Accept => matches!(state, S::Submitted | S::Unknown).then_some(S::New),
                    M::FillPart if state == S::CancelRequested => Some(S::CancelRequested),
                    M::FillPart => Some(S::PartiallyFilled),
                    M::FillAll => Some(S::Filled),
                    M::RequestCancel if state == S::Unknown => Some(S::Unknown),
                    M::RequestCancel if state == S::CancelRequested => None,
                    M::RequestCancel => Some(S::CancelRequested),
                    M::CancelRefused => (state == S::CancelRequested).then_some(S::New),
                    M::Cancel => Some(S::Canceled),
                    // An order with a fill was accepted, so it cannot be rejected any more.
                    M::Reject => (state != S::PartiallyFilled).then_some(S::Rejected),
                    M::Expire => Some(S::Expired),
                    M::OutcomeUnknown => {
                        matches!(state, S::Submitted | S::CancelRequested).then_some(S::Unknown)
                    }
                    M::MayBeCanceled => (state != S::Unknown).then_some(S::Unknown),
                };
                assert_eq!(after, expected, "{what}");
            }
        }
    }

    #[test]
    fn filled_and_rejected_orders_never_change() {
        for state in [OrderState::Filled, OrderState::Rejected] {
            assert!(
                OrderMove::ALL
                    .into_iter()
                    .all(|mv| state.after(mv).is_none())
            );
        }
    }
}
