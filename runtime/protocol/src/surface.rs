//! Which surface a public frame comes from, told by its keys alone.
//!
//! | frame | evidence | source |
//! |---|---|---|
//! | `depthUpdate` | `pu` or `T`: futures, neither: spot | spec 4, Public market streams |
//! | `bookTicker` | `e`: futures, none: spot ("spot u, s, b, B, a, A only") | spec 4, the same |
//! | `markPriceUpdate` | futures: spot has no mark price | spec 2 |
//! | `trade` | `X` (execution type): futures, `M`: spot; neither: unknown | seen in recordings |
//! | `aggTrade` | `M`: spot; else unknown, the documented keys are the same | spec 4 |
//! | REST depth | without `T`: spot; with it unknown, both documents list it | spec 1 and 2 |
//! | exchange information | `contractType`: futures, none: spot | spec 1 and 2 |
//!
//! A frame without evidence belongs to the surface of its neighbours in the same recording.

use windvane_model::Surface;

/// Of a `depthUpdate`.
pub const fn of_depth(has_previous: bool, has_transaction_time: bool) -> Surface {
    if has_previous || has_transaction_time {
        Surface::Futures
    } else {
        Surface::Spot
    }
}

/// Of a `bookTicker`.
pub const fn of_top(has_event_type: bool) -> Surface {
    if has_event_type {
        Surface::Futures
    } else {
        Surface::Spot
    }
}

/// Of a `trade` or `aggTrade`.
pub const fn of_trade(has_execution_type: bool, has_ignored_flag: bool) -> Option<Surface> {
    if has_execution_type {
        Some(Surface::Futures)
    } else if has_ignored_flag {
        Some(Surface::Spot)
    } else {
        None
    }
}

/// Of a REST depth answer.
pub const fn of_snapshot(has_transaction_time: bool) -> Option<Surface> {
    if has_transaction_time {
        None
    } else {
        Some(Surface::Spot)
    }
}
