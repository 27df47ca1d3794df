//! Streams: user events by listen key and public frames by topic.
//!
//! [`Hub`] belongs to the state and does no IO. It puts frames into the bounded queue of each
//! connection, and the connection's task writes them to the socket. A connection whose queue is
//! full reads too slowly, and is closed.

mod command;
mod frames;
mod hub;
mod publish;
mod topic;

pub(crate) use command::command;
pub(crate) use hub::{Connection, ConnectionId, End, Hub, Order, Seat};
pub(crate) use topic::Topic;
