//! Messages in flight between the runtime and the simulated venue, in order, each with its time of
//! arrival.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::Time;

/// A one-way link. Messages arrive in the order in which they were sent, as on one connection. A
/// message with a shorter latency than the message before it arrives together with that message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Transit<T> {
    queue: VecDeque<(Time, T)>,
}

impl<T> Default for Transit<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
        }
    }
}

impl<T> Transit<T> {
    /// Sends a message that takes `latency_ns`.
    pub fn send(&mut self, now: Time, latency_ns: i64, message: T) {
        let after = self.queue.back().map_or(Time(i64::MIN), |(time, _)| *time);
        let arrival = now.plus_ns(latency_ns).max(after);
        self.queue.push_back((arrival, message));
    }

    /// When the next message arrives; never if none is in flight.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        self.queue.front().map_or(Time::NEVER, |(time, _)| *time)
    }

    /// Drops every message that `is_kept` rejects.
    pub fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        self.queue.retain(|(_, message)| is_kept(message));
    }

    /// Takes the next message.
    pub fn receive(&mut self) -> Option<(Time, T)> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_message_does_not_overtake() {
        let mut link = Transit::default();
        link.send(Time(0), 10, 'a');
        link.send(Time(1), 2, 'b');
        link.send(Time(20), 2, 'c');
        assert_eq!(link.next_arrival(), Time(10));
        assert_eq!(link.receive(), Some((Time(10), 'a')));
        assert_eq!(link.receive(), Some((Time(10), 'b')));
        assert_eq!(link.receive(), Some((Time(22), 'c')));
        assert_eq!(link.next_arrival(), Time::NEVER);
    }
}
