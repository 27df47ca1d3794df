//! The life of an own order as one table: the documents' statuses (spec 1 and 2, Order status)
//! plus what only we know: submitted, cancel requested, unknown.
//!
//! Updates may come late, twice or out of order, so that a move that would lead backwards is no
//! error: it is refused and the order stays as it is.

use serde::{Deserialize, Serialize};

/// State of an own order; the numbers are those of the strategy contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum OrderState {
    /// Sent, no word from the venue yet.
    Submitted = 0,
    /// Resting.
    New = 1,
    /// Filled in part and resting.
    PartiallyFilled = 2,
    /// A cancel was sent; may still fill.
    CancelRequested = 3,
    /// The outcome of sending it is unknown (promise 2).
    Unknown = 4,
    /// Filled entirely.
    Filled = 5,
    /// Cancelled.
    Canceled = 6,
    /// Refused.
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

    /// Nothing more can happen but a late fill.
    #[inline]
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Filled | Self::Canceled | Self::Rejected | Self::Expired
        )
    }

    /// The word shown to people and written to `orders.csv`.
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

/// What is learned about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OrderMove {
    /// The venue has it: NEW.
    Accept = 0,
    /// A fill that leaves a remainder.
    FillPart = 1,
    /// A fill that completes it.
    FillAll = 2,
    /// We sent a cancel.
    RequestCancel = 3,
    /// The venue refused the cancel (-2011), or its outcome is unknown.
    CancelRefused = 4,
    /// CANCELED.
    Cancel = 5,
    /// REJECTED, or a definite refusal of the request.
    Reject = 6,
    /// EXPIRED.
    Expire = 7,
    /// The outcome of the request is unknown.
    LoseTrack = 8,
    /// The dead man's switch may have cancelled it.
    Doubt = 9,
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
        Self::LoseTrack,
        Self::Doubt,
    ];
}

/// The table: one row per state, one column per move; `None` is no move.
#[rustfmt::skip]
const TABLE: [[Option<OrderState>; 10]; 9] = {
    use OrderState::{Canceled, CancelRequested, Expired, Filled, New, PartiallyFilled, Rejected, Unknown};
    const NO: Option<OrderState> = None;
    [
        //                    Accept   FillPart             FillAll     RequestCancel        CancelRefused        Cancel        Reject        Expire       LoseTrack      Doubt
        /* Submitted       */ [Some(New), Some(PartiallyFilled), Some(Filled), Some(CancelRequested), NO,                  Some(Canceled), Some(Rejected), Some(Expired), Some(Unknown), Some(Unknown)],
        /* New             */ [NO,      Some(PartiallyFilled), Some(Filled), Some(CancelRequested), NO,                  Some(Canceled), Some(Rejected), Some(Expired), NO, Some(Unknown)],
        /* PartiallyFilled */ [NO,      Some(PartiallyFilled), Some(Filled), Some(CancelRequested), NO,                  Some(Canceled), NO,           Some(Expired), NO, Some(Unknown)],
        // What a refused cancel leaves behind depends on what was filled: see `after_cancel_refused`.
        /* CancelRequested */ [NO,      Some(CancelRequested), Some(Filled), NO,                  Some(New),             Some(Canceled), Some(Rejected), Some(Expired), Some(Unknown), Some(Unknown)],
        /* Unknown         */ [Some(New), Some(PartiallyFilled), Some(Filled), Some(Unknown),         NO,                  Some(Canceled), Some(Rejected), Some(Expired), NO, NO],
        // Ended orders stay ended. A late fill that completes a cancelled or expired order makes it filled.
        /* Filled          */ [NO,      NO,                  NO,         NO,                  NO,                  NO,           NO,           NO,          NO, NO],
        /* Canceled        */ [NO,      NO,                  Some(Filled), NO,                  NO,                  NO,           NO,           NO,          NO, NO],
        /* Rejected        */ [NO,      NO,                  NO,         NO,                  NO,                  NO,           NO,           NO,          NO, NO],
        /* Expired         */ [NO,      NO,                  Some(Filled), NO,                  NO,                  NO,           NO,           NO,          NO, NO],
    ]
};

impl OrderState {
    /// The state after a move; `None` where the table allows none.
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

    /// Every one of the 90 moves against the rules in words.
    #[test]
    fn the_table_keeps_the_rules_of_the_documents() {
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
                    // An order that traded was accepted: it cannot be refused any more.
                    M::Reject => (state != S::PartiallyFilled).then_some(S::Rejected),
                    M::Expire => Some(S::Expired),
                    M::LoseTrack => {
                        matches!(state, S::Submitted | S::CancelRequested).then_some(S::Unknown)
                    }
                    M::Doubt => (state != S::Unknown).then_some(S::Unknown),
                };
                assert_eq!(after, expected, "{what}");
            }
        }
    }

    #[test]
    fn no_sequence_of_moves_leaves_a_filled_or_rejected_order() {
        for state in [OrderState::Filled, OrderState::Rejected] {
            assert!(
                OrderMove::ALL
                    .into_iter()
                    .all(|mv| state.after(mv).is_none())
            );
        }
    }
}
