//! The connections, with their listen keys and topics. The hub does no IO: it puts frames into the
//! bounded queue of each connection. A frame is serialized once for all of its subscribers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_model::Surface;

use super::topic::Topic;
use crate::faults::Gaps;
use crate::user_frame::UserFrame;
use windvane_sim_market::Board;

/// One WebSocket connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// An order for the task of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send this text.
    Text(Utf8Bytes),
    /// Send these bytes, which may be invalid, to test clients.
    Binary(Bytes),
    /// Do not read or write for this time.
    Pause(Duration),
    /// Stop reading and writing for good, but keep the connection open (half open).
    Freeze,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It reads too slowly.
    Slow,
    /// It sent too many messages.
    Messages,
    /// It sent a message that is too long.
    TooLong,
    /// It did not answer pings.
    Pong,
    /// It reached its maximum age.
    Life,
    /// Its listen key was closed or has expired.
    ListenKey,
    /// It is cut without a close frame.
    Cut,
}

/// The receiving ends for the task of a connection.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) id: ConnectionId,
    pub(crate) orders: mpsc::Receiver<Order>,
    pub(crate) end: oneshot::Receiver<End>,
}

/// A connection, as the rest of the venue sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) surface: Surface,
    pub(crate) listen_keys: BTreeSet<String>,
    pub(crate) topics: BTreeSet<Topic>,
    /// Whether frames have the form `{stream, data}`.
    pub(super) wrapped: bool,
    /// Half open: nothing is sent any more.
    frozen: bool,
    queue: mpsc::Sender<Order>,
    end: oneshot::Sender<End>,
}

#[derive(Debug)]
struct Channel {
    surface: Surface,
    name: String,
    subscribers: BTreeSet<ConnectionId>,
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    connections: BTreeMap<ConnectionId, Connection>,
    channels: BTreeMap<Topic, Channel>,
    /// The last events of each listen key, if new connections receive them again.
    recent: Option<BTreeMap<String, VecDeque<Utf8Bytes>>>,
    /// Fault switches that drop public frames.
    pub(crate) gaps: Gaps,
    /// Number of connections that were opened so far.
    opened: u64,
}

/// Number of events that a new connection receives again.
const AGAIN: usize = 8;

impl Hub {
    /// Sets whether new connections receive the last events of their listen key again.
    pub(crate) fn repeat_events(&mut self, again: bool) {
        self.recent = again.then(|| self.recent.take().unwrap_or_default());
    }

    /// Registers a connection.
    pub(crate) fn open(&mut self, surface: Surface, wrapped: bool, queue: usize) -> Seat {
        self.opened += 1;
        let id = ConnectionId(self.opened);
        let (queue, orders) = mpsc::channel(queue.max(1));
        let (end, ended) = oneshot::channel();
        let connection = Connection {
            surface,
            listen_keys: BTreeSet::new(),
            topics: BTreeSet::new(),
            wrapped,
            frozen: false,
            queue,
            end,
        };
        self.connections.insert(id, connection);
        Seat {
            id,
            orders,
            end: ended,
        }
    }

    /// All connections, oldest first.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter().map(|(id, c)| (*id, c))
    }

    pub(super) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// Closes a connection. It receives no more frames, and its task ends for this reason.
    pub(crate) fn end(&mut self, id: ConnectionId, why: End) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        for topic in &connection.topics {
            self.forget(*topic, id);
        }
        // The task may have ended already.
        let _ = connection.end.send(why);
    }

    fn forget(&mut self, topic: Topic, id: ConnectionId) {
        if let Some(channel) = self.channels.get_mut(&topic) {
            channel.subscribers.remove(&id);
            if channel.subscribers.is_empty() {
                self.channels.remove(&topic);
            }
        }
    }

    /// Subscribes a connection to a topic.
    pub(crate) fn subscribe(&mut self, id: ConnectionId, topic: Topic, board: &Board) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.topics.insert(topic);
        let surface = connection.surface;
        let channel = self.channels.entry(topic).or_insert_with(|| Channel {
            surface,
            name: topic.name(board),
            subscribers: BTreeSet::new(),
        });
        channel.subscribers.insert(id);
    }

    pub(super) fn unsubscribe(&mut self, id: ConnectionId, topic: Topic) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.topics.remove(&topic);
        }
        self.forget(topic, id);
    }

    /// Subscribes a connection to the user events of a listen key.
    pub(crate) fn listen(&mut self, id: ConnectionId, listen_key: &str) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.listen_keys.insert(listen_key.to_owned());
        }
        let recent = self.recent.as_ref().and_then(|all| all.get(listen_key));
        for text in recent.cloned().unwrap_or_default() {
            self.send_one(id, listen_key, &text);
        }
    }

    /// Queues an order for one connection. A connection whose queue is full reads too slowly, and
    /// is closed.
    pub(crate) fn order(&mut self, id: ConnectionId, order: Order) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.frozen {
            return;
        }
        connection.frozen = order == Order::Freeze;
        if connection.queue.try_send(order).is_err() {
            self.end(id, End::Slow);
        }
    }

    /// Sends a user event to every connection of its listen key.
    pub(crate) fn send_user(&mut self, frame: &UserFrame) {
        if let Some(recent) = &mut self.recent {
            let recent = recent.entry(frame.listen_key.clone()).or_default();
            recent.push_back(frame.text.clone());
            if recent.len() > AGAIN {
                recent.pop_front();
            }
        }
        for id in self.listeners(frame.surface, &frame.listen_key) {
            self.send_one(id, &frame.listen_key, &frame.text);
        }
    }

    fn send_one(&mut self, id: ConnectionId, listen_key: &str, text: &Utf8Bytes) {
        let wrapped = self.connections.get(&id).is_some_and(|c| c.wrapped);
        let text = if wrapped {
            wrap(listen_key, text)
        } else {
            text.clone()
        };
        self.order(id, Order::Text(text));
    }

    /// Closes every connection of a listen key that was closed or has expired.
    pub(crate) fn close_user(&mut self, surface: Surface, listen_key: &str) {
        for id in self.listeners(surface, listen_key) {
            self.end(id, End::ListenKey);
        }
    }

    fn listeners(&self, surface: Surface, listen_key: &str) -> Vec<ConnectionId> {
        let all = self.connections.iter();
        let listeners =
            all.filter(|(_, c)| c.surface == surface && c.listen_keys.contains(listen_key));
        listeners.map(|(id, _)| *id).collect()
    }

    /// Whether a topic has subscribers.
    pub(super) fn has_subscribers(&self, topic: Topic) -> bool {
        self.channels.contains_key(&topic)
    }

    /// Sends the payload of a topic to all of its subscribers.
    pub(super) fn publish(&mut self, topic: Topic, payload: impl FnOnce() -> Option<String>) {
        let Some(channel) = self.channels.get(&topic) else {
            return;
        };
        let Some(payload) = payload() else {
            return;
        };
        if self.gaps.lose(channel.surface, &channel.name) {
            return;
        }
        let always_wrapped = topic.is_always_wrapped();
        let mut wrapped: Option<Utf8Bytes> = None;
        let bare = Utf8Bytes::from(payload);
        let mut slow = Vec::new();
        for id in &channel.subscribers {
            let Some(connection) = self.connections.get(id).filter(|c| !c.frozen) else {
                continue;
            };
            let text = if connection.wrapped || always_wrapped {
                let wrap = || wrap(&channel.name, &bare);
                wrapped.get_or_insert_with(wrap).clone()
            } else {
                bare.clone()
            };
            if connection.queue.try_send(Order::Text(text)).is_err() {
                slow.push(*id);
            }
        }
        for id in slow {
            self.end(id, End::Slow);
        }
    }
}

fn wrap(name: &str, payload: &Utf8Bytes) -> Utf8Bytes {
    let payload = payload.as_str();
    let mut text = String::with_capacity(payload.len() + name.len() + 24);
    for part in ["{\"stream\":\"", name, "\",\"data\":", payload, "}"] {
        text.push_str(part);
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_model::Time;
    use windvane_sim_market::Source;

    fn texts(seat: &mut Seat) -> Vec<String> {
        let next = || seat.orders.try_recv().ok();
        std::iter::from_fn(next)
            .map(|order| match order {
                Order::Text(text) => text.to_string(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn board() -> Board {
        Board::new(Source::default(), 1, Time::from_millis(1_723_161_253_000))
    }

    fn topic(board: &Board, name: &str) -> Topic {
        Topic::parse(name, Surface::Spot, board).unwrap()
    }

    #[test]
    fn a_frame_reaches_its_subscribers_in_their_form() {
        let (mut hub, board) = (Hub::default(), board());
        let trade = topic(&board, "btcusdt@trade");
        let pro = topic(&board, "btcusdt@tradepro");
        let mut bare = hub.open(Surface::Spot, false, 8);
        let mut wrapped = hub.open(Surface::Spot, true, 8);
        let mut deaf = hub.open(Surface::Spot, true, 8);
        for seat in [&bare, &wrapped] {
            hub.subscribe(seat.id, trade, &board);
        }
        hub.subscribe(bare.id, pro, &board);
        hub.publish(trade, || Some("1".to_owned()));
        hub.publish(pro, || Some("2".to_owned()));
        assert_eq!(
            texts(&mut bare),
            ["1", r#"{"stream":"btcusdt@tradepro","data":2}"#]
        );
        assert_eq!(
            texts(&mut wrapped),
            [r#"{"stream":"btcusdt@trade","data":1}"#]
        );
        assert!(texts(&mut deaf).is_empty());
        hub.unsubscribe(bare.id, trade);
        hub.end(wrapped.id, End::Cut);
        assert!(!hub.has_subscribers(trade));
        hub.publish(trade, || panic!("the topic has no subscribers"));
    }

    #[test]
    fn only_a_slow_reader_is_disconnected() {
        let (mut hub, board) = (Hub::default(), board());
        let trade = topic(&board, "btcusdt@trade");
        let mut slow = hub.open(Surface::Spot, false, 2);
        let mut quick = hub.open(Surface::Spot, false, 2);
        for seat in [&slow, &quick] {
            hub.subscribe(seat.id, trade, &board);
        }
        for n in 0..3 {
            hub.publish(trade, || Some(n.to_string()));
            assert_eq!(texts(&mut quick), [n.to_string()]);
        }
        assert_eq!(slow.end.try_recv(), Ok(End::Slow));
        assert_eq!(texts(&mut slow), ["0", "1"]);
        assert_eq!(hub.connections().count(), 1);
    }

    #[test]
    fn user_events_reach_connections_of_their_key_and_surface() {
        let mut hub = Hub::default();
        let mut own = hub.open(Surface::Spot, false, 2);
        let mut other_surface = hub.open(Surface::Futures, false, 2);
        let mut other_key = hub.open(Surface::Spot, false, 2);
        let mut wrapped = hub.open(Surface::Spot, true, 2);
        hub.listen(own.id, "key");
        hub.listen(wrapped.id, "key");
        hub.listen(other_surface.id, "key");
        hub.listen(other_key.id, "another");
        hub.send_user(&UserFrame {
            surface: Surface::Spot,
            listen_key: "key".to_owned(),
            text: "{}".into(),
            delay_ms: 0,
        });
        assert_eq!(texts(&mut own), ["{}"]);
        assert_eq!(texts(&mut wrapped), [r#"{"stream":"key","data":{}}"#]);
        assert!(texts(&mut other_surface).is_empty() && texts(&mut other_key).is_empty());
        hub.close_user(Surface::Spot, "key");
        assert_eq!(own.end.try_recv(), Ok(End::ListenKey));
        assert_eq!(hub.connections().count(), 2);
    }
}
