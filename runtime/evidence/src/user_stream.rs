//! Changes that a user stream did not show: REST confirmed them, or the stream was down.

use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;

/// A change that REST confirmed appears on the stream within this time
/// (docs/promises.md#4-dead-mans-switch).
pub const SHOWN_MS: i64 = 3_000;
/// Orders that ended earlier than this are no longer checked.
const ENDED_MS: i64 = 30_000;

impl Evidence<'_> {
    /// Whether a snapshot shows a state that the account had since the stream connected.
    pub fn was_true_since_connect(&self, surface: Surface, account: &AccountSnapshot) -> bool {
        let connection = self.connection(surface);
        let (Some(connection), Some(up)) = (connection, self.stream_up.get(&surface)) else {
            return false;
        };
        let may_lack_fees = !self.positions_agree(&account.positions);
        connection
            .history
            .matched_since(*up, account, |asset, reported, known| {
                reported == known
                    || (may_lack_fees && self.may_lack_fees(surface, asset, reported - known))
            })
    }

    /// Whether REST confirmed a change of an own order that the stream did not show in time.
    pub fn has_change_missing_on_stream(&self, surface: Surface) -> bool {
        let now = self.now;
        let is_unseen = |order: &Order| {
            let confirmed = order.confirmed.filter(|_| !order.on_stream);
            self.surface_of(order.instrument()) == surface
                && confirmed.is_some_and(|at| now > at.plus_ms(SHOWN_MS))
        };
        let (live, ended) = self.orders.all();
        let is_recent = |order: &&Order| {
            let recent = |at: Time| now <= at.plus_ms(ENDED_MS);
            order.ended.is_some_and(recent)
        };
        let ended = ended.rev().take_while(is_recent);
        // No event is promised for an order that was rejected.
        let mut ended = ended.filter(|order| order.state != OrderState::Rejected);
        live.into_iter().any(is_unseen) || ended.any(is_unseen)
    }
}
