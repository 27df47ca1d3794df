//! The task of one WebSocket connection: it sends frames, receives requests, pings, and enforces
//! the rules that end the connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::shared::{Shared, now};
use crate::advance::advance;
use crate::choices::ServerPings;
use crate::settings::StreamLimits;
use crate::stream::{End, Order, Seat};
use crate::stream_routes::handle_message;

/// Maximum number of frames that are written before one flush.
const BATCH: usize = 256;
/// Time limit for the close handshake.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// How long a half-open connection is kept.
const FROZEN_FOR: Duration = Duration::from_mins(10);
/// The longest permitted message of a client, in bytes.
const MESSAGE_MAX: usize = 64 * 1024;

pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Configuration of the server's sockets.
pub(super) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX))
}

/// Counts a client's messages of the last second.
#[derive(Debug, Default)]
struct Pace(VecDeque<Instant>);

impl Pace {
    /// Records a message; false if it exceeds the limit.
    fn allows(&mut self, now: Instant, per_second: usize) -> bool {
        while self
            .0
            .front()
            .is_some_and(|t| now - *t >= Duration::from_secs(1))
        {
            self.0.pop_front();
        }
        self.0.push_back(now);
        self.0.len() <= per_second
    }
}

/// Runs a connection to its end.
pub(super) async fn run(
    mut socket: Socket,
    mut seat: Seat,
    limits: StreamLimits,
    shared: Arc<Shared>,
) {
    let id = seat.id;
    let end = talk(&mut socket, &mut seat, limits, &shared).await;
    shared.state().hub.end(id, End::Cut);
    if end == Some(End::Cut) {
        return;
    }
    let goodbye = async {
        if matches!(end, Some(End::Messages | End::TooLong)) {
            // Requests from before the violation still get their answers.
            let mut owed: Vec<_> = std::iter::from_fn(|| seat.orders.try_recv().ok()).collect();
            let _ = send(&mut socket, &mut owed).await;
        }
        close(&mut socket, end.and_then(close_frame)).await;
    };
    let _ = timeout(CLOSE_WITHIN, goodbye).await;
}

/// Sends the close frame, or answers the client's, and reads all data that is still in flight. A
/// socket that is dropped with unread bytes is reset, and the client would never see the reason.
async fn close(socket: &mut Socket, frame: Option<CloseFrame>) {
    let too_long = frame.as_ref().is_some_and(|f| f.code == CloseCode::Size);
    let _ = socket.close(frame).await;
    while let Some(Ok(_)) = socket.next().await {}
    let mut rest = [0; 4_096];
    // The rest of a message that was too long does not form a frame.
    while too_long && matches!(socket.get_mut().read(&mut rest).await, Ok(1..)) {}
}

/// Runs the connection. Returns why it ends; `None` if the client closed it.
async fn talk(
    socket: &mut Socket,
    seat: &mut Seat,
    limits: StreamLimits,
    shared: &Shared,
) -> Option<End> {
    let born = Instant::now();
    let mut next_ping = born + limits.ping_every;
    let mut last_pong = born;
    let mut pace = Pace::default();
    let mut orders = Vec::with_capacity(BATCH);
    loop {
        let wake = next_ping
            .min(last_pong + limits.pong_within)
            .min(born + limits.life);
        tokio::select! {
            ended = &mut seat.end => return ended.ok(),
            received = seat.orders.recv_many(&mut orders, BATCH) => {
                if received == 0 {
                    // The hub closed the connection and sends the reason.
                    return (&mut seat.end).await.ok();
                }
                if orders.contains(&Order::Freeze) {
                    // A client that left cannot be noticed without reading, so there is a time
                    // limit.
                    return timeout(FROZEN_FOR, &mut seat.end).await.ok()?.ok();
                }
                tokio::select! {
                    ended = &mut seat.end => return ended.ok(),
                    sent = send(socket, &mut orders) => sent.ok()?,
                }
            }
            message = socket.next() => {
                let message = match message? {
                    Err(Error::Capacity(_)) => return Some(End::TooLong),
                    message => message.ok()?,
                };
                let counts = !matches!(message, Message::Close(_) | Message::Frame(_));
                if counts && !pace.allows(Instant::now(), limits.messages_per_second) {
                    return Some(End::Messages);
                }
                match message {
                    Message::Text(text) => {
                        shared.at_present(|state, now| {
                            advance(state, now);
                            handle_message(state, seat.id, &text);
                        });
                    }
                    Message::Pong(_) => last_pong = Instant::now(),
                    // The library answers pings by itself, and clients send no requests as bytes.
                    Message::Ping(_) | Message::Binary(_) | Message::Frame(_) => {}
                    Message::Close(_) => return None,
                }
            }
            () = tokio::time::sleep_until(wake) => {
                let now = Instant::now();
                if now >= born + limits.life {
                    return Some(shared.state().end_of_life());
                }
                if shared.state().choices.of::<ServerPings>() == ServerPings::Never {
                    // No pings are sent, so no pongs are expected.
                    (next_ping, last_pong) = (now + limits.ping_every, now);
                    continue;
                }
                if now >= last_pong + limits.pong_within {
                    return Some(End::Pong);
                }
                next_ping = now + limits.ping_every;
                let ping = Message::Ping(Bytes::from(now_ms_text()));
                tokio::select! {
                    ended = &mut seat.end => return ended.ok(),
                    sent = socket.send(ping) => sent.ok()?,
                }
            }
        }
    }
}

/// Writes the orders and flushes once.
async fn send(socket: &mut Socket, orders: &mut Vec<Order>) -> Result<(), Error> {
    for order in orders.drain(..) {
        match order {
            Order::Text(text) => socket.feed(Message::Text(text)).await?,
            Order::Binary(bytes) => socket.feed(Message::Binary(bytes)).await?,
            Order::Pause(length) => {
                socket.flush().await?;
                tokio::time::sleep(length).await;
            }
            Order::Freeze => {}
        }
    }
    socket.flush().await
}

/// The payload of a ping: the time, so that every ping is different.
fn now_ms_text() -> String {
    now().millis().to_string()
}

fn close_frame(end: End) -> Option<CloseFrame> {
    let (code, reason) = match end {
        End::Slow => (CloseCode::Policy, "frames are read too slowly"),
        End::Messages => (CloseCode::Policy, "Too many requests"),
        End::TooLong => (CloseCode::Size, "the message is over 65536 bytes"),
        End::Pong => (CloseCode::Policy, "Pong timeout"),
        End::Life => (CloseCode::Away, "the connection has reached its 24 hours"),
        End::ListenKey => (CloseCode::Normal, "the listen key is closed"),
        End::Cut => return None,
    };
    Some(CloseFrame {
        code,
        reason: reason.into(),
    })
}
