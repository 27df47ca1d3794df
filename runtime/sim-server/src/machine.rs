//! The venue without its sockets, for whoever simulates time: requests, streams and the control
//! port as calls that bring the time with them. The same state and the same code behind it as
//! behind the ports.
//!
//! What may never enter here: a clock, IO, and rules of the venue's own. Not simulated are answers to
//! the venue's pings, the pace of a client's messages and the slowness of a reader.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use windvane_model::{Surface, Time};

use crate::choices::ServerPings;
use crate::control;
use crate::http::{Ended, Port, Refusal, Sent, dispatch, ended};
use crate::settings::Settings;
use crate::start::{StartError, check_settings};
use crate::state::{AccountKeys, State};
use crate::stream::{self, End, Order, Seat, StreamLimits};

/// A request as it came off the wire.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The port that it came to.
    pub port: Port,
    /// From where.
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

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What the venue itself answers; `None` if a fault switch kept the request from it.
    pub own: Option<Response>,
    /// What goes onto the wire; `None` if the connection is cut, or stays open without an answer.
    pub sent: Option<Response>,
    /// It leaves so much later: the delays of fault switches.
    pub after_ms: u64,
}

/// A stream's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// What comes over a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A text.
    Text(String),
    /// A ping.
    Ping,
    /// The venue ended it with a close frame; it is gone.
    Closed,
    /// The venue ended it without one; it is gone.
    Cut,
}

/// A connection with its times.
#[derive(Debug)]
struct Seated {
    seat: Seat,
    limits: StreamLimits,
    born: Time,
    next_ping: Time,
    /// Pings that were not taken yet.
    pings: u32,
}

/// A simulated venue that is told the time.
#[derive(Debug)]
pub struct Machine {
    state: State,
    seats: BTreeMap<StreamId, Seated>,
}

impl Machine {
    /// A venue that begins now, and the keys of its accounts. Every time that it is given is of the
    /// client's clock; the choice `venue-clock` says how the venue's compares.
    pub fn new(settings: Settings, now: Time) -> Result<(Self, Vec<AccountKeys>), StartError> {
        check_settings(&settings)?;
        let now = settings.choices.venue_time(now);
        let (mut state, accounts) = State::new(settings, now)?;
        state.counters.executions = Some(Vec::new());
        let seats = BTreeMap::new();
        Ok((Self { state, seats }, accounts))
    }

    /// Lets time pass. Whoever drives does so every 10 to 100 ms: countdowns and held events are
    /// looked at only then, and by requests.
    pub fn advance(&mut self, now: Time) {
        let now = self.state.choices.venue_time(now);
        self.state.advance(now);
        self.tend_streams(now);
    }

    /// Pings the connections, and ends those whose time is over.
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
    pub fn request(&mut self, asked: &Asked<'_>, now: Time) -> Answered {
        let now = self.state.choices.venue_time(now);
        let headers = header_map(asked.headers);
        let received = dispatch::Received {
            port: asked.port,
            ip: asked.ip,
            method: asked.method,
            path: asked.path,
            query: asked.query,
            headers: &headers,
            body: asked.body,
        };
        if asked.port == Port::Control {
            let own = Response::of(control::answer(&mut self.state, &received, now));
            return Answered {
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
        Answered {
            own: own.map(Response::of),
            sent,
            after_ms,
        }
    }

    /// Asks the control port: `CONTROL.md`.
    pub fn control(&mut self, method: &str, target: &str, body: &[u8], now: Time) -> Response {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let asked = Asked {
            port: Port::Control,
            ip: IpAddr::from([127, 0, 0, 1]),
            method,
            path,
            query,
            headers: &[],
            body,
        };
        let answered = self.request(&asked, now);
        // The control port always answers.
        answered.own.unwrap_or_else(|| Response {
            status: 500,
            headers: Vec::new(),
            body: String::new(),
        })
    }

    /// Opens a stream at `/ws/...` or `/stream?...`.
    ///
    /// # Errors
    /// The answer to the handshake.
    pub fn connect(
        &mut self,
        port: Port,
        ip: IpAddr,
        target: &str,
        now: Time,
    ) -> Result<StreamId, Response> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let now = self.state.choices.venue_time(now);
        let seat = stream::sit(&mut self.state, port, ip, (path, Some(query)), now);
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

    /// A client's message.
    pub fn say(&mut self, stream: StreamId, text: &str, now: Time) {
        self.advance(now);
        if let Some(seated) = self.seats.get(&stream) {
            stream::hear(&mut self.state, seated.seat.id, text);
        }
    }

    /// The next frame of a stream.
    pub fn poll(&mut self, stream: StreamId) -> Option<Frame> {
        let seated = self.seats.get_mut(&stream)?;
        let seat = &mut seated.seat;
        loop {
            match seat.orders.try_recv() {
                Ok(Order::Text(text)) => return Some(Frame::Text(text.as_str().to_owned())),
                // For tests of the client's transport.
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

    /// Executions since they were asked for last, whether a stream told them or not: the place of
    /// the account, the client order id, and the quantity of the order that is executed now.
    pub fn executions(&mut self) -> Vec<(u16, String, String)> {
        let executions = self.state.counters.executions.replace(Vec::new());
        let told = executions.unwrap_or_default().into_iter();
        told.map(|(account, update)| {
            let rules = self.state.rules(update.instrument);
            let executed = crate::figures::qty(rules, update.executed_qty.0);
            (account, update.client_order_id.to_string(), executed)
        })
        .collect()
    }

    /// The client's end is gone.
    pub fn hang_up(&mut self, stream: StreamId) {
        if let Some(seated) = self.seats.remove(&stream) {
            self.state.hub.end(seated.seat.id, End::Cut);
        }
    }
}

/// A time so much later.
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

/// Headers that HTTP cannot carry are left out.
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
    fn it_answers_and_streams_in_the_callers_time() {
        let mut machine = machine();
        let mut now = Time::from_millis(1_723_161_254_000);
        let ip = IpAddr::from([127, 0, 0, 1]);
        let asked = Asked {
            port: Port::Futures,
            ip,
            method: "GET",
            path: "/fapi/v1/time",
            query: "",
            headers: &[],
            body: &[],
        };
        let answered = machine.request(&asked, now);
        let own = answered.own.unwrap();
        assert_eq!(own.body, r#"{"serverTime":1723161254000}"#);
        assert_eq!(answered.sent, Some(own));

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
    fn its_control_port_breaks_and_tells() {
        let mut machine = machine();
        let now = Time::from_millis(1_723_161_254_000);
        let set = br#"{"fault":"unknown","how":"cut","accepted":false,"count":1}"#;
        assert_eq!(machine.control("POST", "/faults", set, now).status, 200);
        let asked = Asked {
            port: Port::Spot,
            ip: IpAddr::from([127, 0, 0, 1]),
            method: "GET",
            path: "/api/v1/time",
            query: "",
            headers: &[],
            body: &[],
        };
        let cut = machine.request(&asked, now);
        assert_eq!((cut.own, cut.sent), (None, None));
        let truth = machine.control("GET", "/state?account=0&brief=true", &[], now);
        assert!(truth.body.contains("\"accounts\""), "{}", truth.body);
    }
}
