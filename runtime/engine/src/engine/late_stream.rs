//! Detection of a late user stream (promise 4). Three things show that a stream is late:
//!
//! - REST confirmed an order, and no event shows it within three seconds.
//! - The same for an order that ended soon after: it filled at once, or was cancelled.
//! - An event of an own order brings news, and its own time is more than three seconds ago. Events
//!   from before the stream connected may be repeated and prove nothing.

use windvane_model::effect::Effect;
use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::protocol::OrderUpdate;

use super::Engine;

/// A change that REST confirmed appears on the stream within this time (promise 4).
const SHOWN_MS: i64 = 3_000;
/// Orders that ended earlier than this are no longer checked.
const ENDED_MS: i64 = 30_000;

impl Engine {
    /// Whether REST confirmed a change of an own order that the stream did not show in time.
    pub(super) fn has_unseen_change(&self, surface: Surface) -> bool {
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

    /// Notes an event that brought news of an own order, and checks whether it is late by its own
    /// time.
    pub(super) fn note_news(&mut self, surface: Surface, update: &OrderUpdate) {
        let made = update.event_time;
        let live = self.live.as_ref();
        let clock = live.and_then(|live| live.clock_of(surface));
        let (Some((offset_ns, error_ns)), Some(up)) = (clock, self.stream_up.get(&surface)) else {
            return;
        };
        let by_venue = |at: Time| at.plus_ns(offset_ns);
        let is_known = made != Time::default() && made > by_venue(*up).plus_ns(error_ns);
        let latest = by_venue(self.now).plus_ns(-error_ns);
        if is_known && latest > made.plus_ms(SHOWN_MS) {
            self.distrust_stream(surface);
        }
    }

    /// Reconnects a stream that does not show the present state. The account is then read again.
    pub(super) fn distrust_stream(&mut self, surface: Surface) {
        if self.line_mut(surface).is_some_and(|line| line.stream_up) {
            self.stream_down(surface);
            self.emit(Effect::Reconnect { surface });
            self.update_state();
        }
    }
}
