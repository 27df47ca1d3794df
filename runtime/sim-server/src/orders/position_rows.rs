//! The rows of lists of positions, and the fields that several lists have.

use windvane_model::{Amount, PositionSide};
use windvane_sim::PositionView;

use crate::account_id::AccountId;
use crate::choices::OneWaySides;
use crate::figures::amount;
use crate::state::State;

/// `maxNotionalValue` of a bracket without a cap.
const NO_CAP: &str = "9223372036854775807";

/// The rows of a list of positions: all or only those that are held. In one-way mode the rows of
/// LONG and SHORT are added if the venue chose that.
pub(super) fn listed(
    state: &State,
    id: AccountId,
    views: Vec<PositionView>,
    held: bool,
) -> Vec<PositionView> {
    let sides = state.choices.of::<OneWaySides>() == OneWaySides::Three;
    let three = sides && !state.account(id).venue.hedge_mode();
    let mut listed = Vec::with_capacity(views.len());
    for view in views {
        if !held || view.qty.0 != 0 {
            listed.push(view);
        }
        if three && !held {
            for position_side in [PositionSide::Long, PositionSide::Short] {
                let rows = &state.account(id).venue;
                listed.extend(rows.position_view(view.instrument, position_side));
            }
        }
    }
    listed
}

/// `maxNotionalValue`.
pub(super) fn notional_max(view: &PositionView) -> String {
    if view.notional_max == Amount(i128::MAX) {
        NO_CAP.to_owned()
    } else {
        amount(view.notional_max)
    }
}

/// `updateTime` of a position; 0 if it never existed.
pub(super) fn touched_ms(view: &PositionView) -> i64 {
    view.updated.millis().max(0)
}
