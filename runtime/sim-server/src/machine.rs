//! The venue without its sockets, for callers that simulate time. Requests, streams and the control
//! port are calls with the time as an argument. They use the same state and the same code as the
//! ports.
//!
//! This module has no clock, no IO and no rules of the venue. It does not simulate answers to the
//! venue's pings, the rate limit of a client's messages, or slow readers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use windvane_model::{Surface, Time};

use crate::accounts::AccountKeys;
use crate::advance::advance;
use crate::choices::ServerPings;
use crate::control;
use crate::dispatch;
use crate::faults::{Ended, ended};
use crate::request::{Port, Received, Refusal, Sent};
use crate::settings::{Settings, StartError, StreamLimits, check_settings};
use crate::state::State;
use crate::stream::{End, Order, Seat};
use crate::stream_routes;

/// A request as it would be received from the network.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// The port that received it.
    pub port: Port,
    /// The sender's address.
    pub ip: IpAddr,
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'a str,
    /// Path.
    pub path: &'a str,
    /// Without the question mark, still encoded.
    pub query: &'a str,
    /// Names and values.
    pub headers: &'a [(&'a str, &'a str)],
    /// Body.
    pub body: &'a [u8],
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: String,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResult {
    /// The venue's own response; `None` if a fault switch kept the request from the venue.
    pub own: Option<Response>,
    /// The response that is sent; `None` if the connection is cut, or stays open without a
    /// response.
    pub sent: Option<Response>,
    /// Delay of the response by fault switches, milliseconds.
    pub after_ms: u64,
}

/// Identifies a stream connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// A frame or the end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A text frame.
    Text(String),
    /// A ping.
    Ping,
    /// The venue closed the connection with a close frame.
    Closed,
    /// The venue cut the connection without a close frame.
    Cut,
}

/// A connection and its times.
#[derive(Debug)]
struct Seated {
    seat: Seat,
    limits: StreamLimits,
    born: Time,
    next_ping: Time,
    /// Pings that the caller has not read yet.
    pings: u32,
}

/// A simulated venue in the caller's time.
#[derive(Debug)]
pub struct Machine {
    state: State,
    seats: BTreeMap<StreamId, Seated>,
}

impl Machine {
    /// A venue that starts now, and the keys of its accounts. All times passed to it are times of
    /// the client's clock; the choice `venue-clock` sets the difference of the venue's clock.
    pub fn new(settings: Settings, now: Time) -> Result<(Self, Vec<AccountKeys>), StartError> {
        check_settings(&settings)?;
        let now = settings.choices.venue_time(now);
        let (mut state, accounts) = State::new(settings, now)?;
        state.counters.executions = Some(Vec::new());
        let seats = BTreeMap::new();
        Ok((Self { state, seats }, accounts))
    }

    /// Advances the time. Call it every 10 to 100 ms, because countdowns and delayed events are
    /// checked only then and at requests.
    pub fn advance(&mut self, now: Time) {
        let now = self.state.choices.venue_time(now);
        advance(&mut self.state, now);
        self.tend_streams(now);
    }

    /// Pings the connections, and closes those that have reached their maximum age.
    fn tend_streams(&mut self, now: Time) {
        let pings = self.state.choices.of::<ServerPings>() == ServerPings::Sent;
        let end = self.state.end_of_life();
        for seated in self.seats.values_mut() {
            if now >= after(seated.born, seated.limits.life) {
                self.state.hub.end(seated.seat.id, end);
            } else if now >= seated.next_ping {
                seated.pings += u32::from(pings);
                seated.next_ping = after(now, seated.limits.ping_every);
            }
        }
    }

    /// Answers a request.
    pub fn request(&mut self, request: &HttpRequest<'_>, now: Time) -> HttpResult {
        let now = self.state.choices.venue_time(now);
        let headers = header_map(request.headers);
        let received = Received {
            port: request.port,
            ip: request.ip,
            method: request.method,
            path: request.path,
            query: request.query,
            headers: &headers,
            body: request.body,
        };
        if request.port == Port::Control {
            let own = Response::of(control::answer(&mut self.state, &received, now));
            return HttpResult {
                sent: Some(own.clone()),
                own: Some(own),
                after_ms: 0,
            };
        }
        let plan = control::plan(&mut self.state, &received, now);
        let after_ms = plan.before_ms.saturating_add(plan.after_ms);
        let own = plan
            .handled
            .then(|| dispatch::answer(&mut self.state, &received, now));
        let sent = match ended(plan.ending, own.clone()) {
            Ended::Sent(sent) => Some(Response::of(sent)),
            Ended::Cut | Ended::HalfOpen => None,
        };
        HttpResult {
            own: own.map(Response::of),
            sent,
            after_ms,
        }
    }

    /// Sends a request to the control port; see `CONTROL.md`.
    pub fn control(&mut self, method: &str, target: &str, body: &[u8], now: Time) -> Response {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = HttpRequest {
            port: Port::Control,
            ip: IpAddr::from([127, 0, 0, 1]),
            method,
            path,
            query,
            headers: &[],
            body,
        };
        let result = self.request(&request, now);
        // The control port always returns a response of its own.
        result.own.unwrap_or_else(|| Response {
            status: 500,
            headers: Vec::new(),
            body: String::new(),
        })
    }

    /// Opens a stream at `/ws/...` or `/stream?...`.
    ///
    /// # Errors
    /// The response that refuses the handshake.
    pub fn connect(
        &mut self,
        port: Port,
        ip: IpAddr,
        target: &str,
        now: Time,
    ) -> Result<StreamId, Response> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let now = self.state.choices.venue_time(now);
        let seat = stream_routes::sit(&mut self.state, port, ip, (path, Some(query)), now);
        let refused = |refusal: Refusal| Response::of(Sent::new(Err(refusal)));
        let seat = seat.map_err(refused)?;
        let id = StreamId(seat.id.0);
        let surface = match port {
            Port::Spot => Surface::Spot,
            Port::Futures | Port::Chain | Port::Rpc | Port::Control => Surface::Futures,
        };
        let limits = *self.state.settings.streams(surface);
        let seated = Seated {
            seat,
            limits,
            born: now,
            next_ping: after(now, limits.ping_every),
            pings: 0,
        };
        self.seats.insert(id, seated);
        Ok(id)
    }

    /// Passes a client's message to the venue.
    pub fn send_text(&mut self, stream: StreamId, text: &str, now: Time) {
        self.advance(now);
        if let Some(seated) = self.seats.get(&stream) {
            stream_routes::handle_message(&mut self.state, seated.seat.id, text);
        }
    }

    /// The next frame of a stream.
    pub fn poll(&mut self, stream: StreamId) -> Option<Frame> {
        let seated = self.seats.get_mut(&stream)?;
        let seat = &mut seated.seat;
        loop {
            match seat.orders.try_recv() {
                Ok(Order::Text(text)) => return Some(Frame::Text(text.as_str().to_owned())),
                // These orders exist for tests of the client's transport.
                Ok(Order::Binary(_) | Order::Pause(_) | Order::Freeze) => {}
                Err(_) => break,
            }
        }
        if seated.pings > 0 {
            seated.pings -= 1;
            return Some(Frame::Ping);
        }
        let end = seat.end.try_recv().ok()?;
        self.seats.remove(&stream);
        Some(match end {
            End::Cut => Frame::Cut,
            _ => Frame::Closed,
        })
    }

    /// Executions since the last call, whether or not a stream reported them: the account's index,
    /// the client order id, and the executed quantity of the order.
    pub fn executions(&mut self) -> Vec<(u16, String, String)> {
        let executions = self.state.counters.executions.replace(Vec::new());
        let executions = executions.unwrap_or_default().into_iter();
        executions
            .map(|(account, update)| {
                let rules = self.state.rules(update.instrument);
                let executed = crate::figures::qty(rules, update.executed_qty.0);
                (account, update.client_order_id.to_string(), executed)
            })
            .collect()
    }

    /// The client closed the connection.
    pub fn hang_up(&mut self, stream: StreamId) {
        if let Some(seated) = self.seats.remove(&stream) {
            self.state.hub.end(seated.seat.id, End::Cut);
        }
    }
}

/// The time `later` after `at`.
fn after(at: Time, later: Duration) -> Time {
    at.plus_ms(i64::try_from(later.as_millis()).unwrap_or(i64::MAX))
}

impl Response {
    fn of(sent: Sent) -> Self {
        Self {
            status: sent.status,
            headers: sent.headers,
            body: sent.body,
        }
    }
}

/// Converts headers; those that HTTP cannot carry are dropped.
fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            map.append(name, value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let now = Time::from_millis(1_723_161_253_000);
        Machine::new(Settings::default(), now).unwrap().0
    }

    #[test]
    fn requests_and_streams_use_the_callers_time() {
        let mut machine = machine();
        let mut now = Time::from_millis(1_723_161_254_000);
        let ip = IpAddr::from([127, 0, 0, 1]);
        let request = HttpRequest {
            port: Port::Futures,
            ip,
            method: "GET",
            path: "/fapi/v1/time",
            query: "",
            headers: &[],
            body: &[],
        };
        let result = machine.request(&request, now);
        let own = result.own.unwrap();
        assert_eq!(own.body, r#"{"serverTime":1723161254000}"#);
        assert_eq!(result.sent, Some(own));

        let stream = machine.connect(Port::Futures, ip, "/ws/btcusdt@bookTicker", now);
        let stream = stream.unwrap();
        let mut frames = 0;
        for _ in 0..100 {
            now = now.plus_ms(100);
            machine.advance(now);
            while let Some(frame) = machine.poll(stream) {
                assert!(matches!(frame, Frame::Text(text) if text.contains("bookTicker")));
                frames += 1;
            }
        }
        assert!(frames > 10, "{frames}");
        machine.hang_up(stream);
        assert_eq!(machine.poll(stream), None);
        let refused = machine.connect(Port::Futures, ip, "/ws/nonsense", now);
        assert_eq!(refused.unwrap_err().status, 400);
    }

    #[test]
    fn the_control_port_injects_faults_and_reports_the_state() {
        let mut machine = machine();
        let now = Time::from_millis(1_723_161_254_000);
        let set = br#"{"fault":"unknown","how":"cut","accepted":false,"count":1}"#;
        assert_eq!(machine.control("POST", "/faults", set, now).status, 200);
        let request = HttpRequest {
            port: Port::Spot,
            ip: IpAddr::from([127, 0, 0, 1]),
            method: "GET",
            path: "/api/v1/time",
            query: "",
            headers: &[],
            body: &[],
        };
        let cut = machine.request(&request, now);
        assert_eq!((cut.own, cut.sent), (None, None));
        let report = machine.control("GET", "/state?account=0&brief=true", &[], now);
        assert!(report.body.contains("\"accounts\""), "{}", report.body);
    }
}
