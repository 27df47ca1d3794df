//! Finds the surface of a public frame from the frame's keys alone.
//!
//! | frame | evidence | source |
//! |---|---|---|
//! | `depthUpdate` | `pu` or `T`: futures, neither: spot | docs/interface/market-data.md#stream-topics |
//! | `bookTicker` | `e`: futures, no `e`: spot | the same |
//! | `markPriceUpdate` | futures: spot has no mark price | the same |
//! | `trade` | `X` (execution type): futures, `M`: spot; neither: unknown | seen in recordings |
//! | `aggTrade` | `M`: spot; otherwise unknown: the documented keys are the same | the same |
//! | REST depth | without `T`: spot; with `T` unknown, because both surfaces list it | docs/interface/market-data.md#order-book |
//! | exchange information | `contractType`: futures, no `contractType`: spot | docs/interface/market-data.md#exchange-information |
//!
//! A frame without evidence belongs to the surface of its neighbours in the same recording.

use windvane_model::Surface;

/// The surface of a `depthUpdate`.
pub const fn of_depth(has_previous: bool, has_transaction_time: bool) -> Surface {
    if has_previous || has_transaction_time {
        Surface::Futures
    } else {
        Surface::Spot
    }
}

/// The surface of a `bookTicker`.
pub const fn of_top(has_event_type: bool) -> Surface {
    if has_event_type {
        Surface::Futures
    } else {
        Surface::Spot
    }
}

/// The surface of a `trade` or `aggTrade`; `None` if the keys do not decide it.
pub const fn of_trade(has_execution_type: bool, has_ignored_flag: bool) -> Option<Surface> {
    if has_execution_type {
        Some(Surface::Futures)
    } else if has_ignored_flag {
        Some(Surface::Spot)
    } else {
        None
    }
}

/// The surface of a REST depth response; `None` if the keys do not decide it.
pub const fn of_snapshot(has_transaction_time: bool) -> Option<Surface> {
    if has_transaction_time {
        None
    } else {
        Some(Surface::Spot)
    }
}
