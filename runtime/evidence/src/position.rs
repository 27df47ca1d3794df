//! How a position is named, and the side of orders that close it.

use windvane_model::ids::InstrumentId;
use windvane_model::order::{PositionSide, Side};
use windvane_model::protocol::PositionUpdate;

/// A position: its instrument and side.
pub type PositionKey = (InstrumentId, PositionSide);

/// The position that a report is about.
pub(crate) fn key_of(reported: &PositionUpdate) -> PositionKey {
    (reported.instrument, reported.position_side)
}

/// The side of orders that close a position.
pub const fn closing_side(qty: i64) -> Side {
    if qty > 0 { Side::Sell } else { Side::Buy }
}
