//! Detection of a late user stream (`docs/promises.md#4-dead-mans-switch`). Three things show that
//! a stream is late:
//!
//! - REST confirmed an order, and no event shows it within three seconds.
//! - The same for an order that ended soon after: it filled at once, or was cancelled.
//! - An event of an own order brings news, and its own time is more than three seconds ago. Events
//!   from before the stream connected may be repeated and prove nothing.

use windvane_evidence::user_stream::SHOWN_MS;
use windvane_model::effect::Effect;
use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_model::protocol::OrderUpdate;

use super::Engine;

impl Engine {
    /// Notes an event that brought news of an own order, and checks whether it is late by its own
    /// time.
    pub(super) fn note_order_news(&mut self, surface: Surface, update: &OrderUpdate) {
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
            self.reconnect_late_stream(surface);
        }
    }

    /// Reconnects a stream that does not show the present state. The account is then read again.
    pub(super) fn reconnect_late_stream(&mut self, surface: Surface) {
        if self
            .connection_mut(surface)
            .is_some_and(|connection| connection.stream_up)
        {
            self.stream_down(surface);
            self.emit(Effect::Reconnect { surface });
            self.update_state();
        }
    }
}
