//! The venue of a life: the simulated venue's own state machine, and the calls that feed the
//! witness.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::Value;
use windvane_model::Time;
use windvane_protocol::route::Surface;
use windvane_protocol::sign::Prepared;
use windvane_sim_server::{
    AccountKeys, Frame, HttpRequest, Machine, Port, Response, Settings, Source, StreamId,
};

use crate::fault_plan::FaultPlan;
use crate::witness::Answer;

/// The address of the runtime; others use other addresses.
const IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// The address of an observer of the public market.
const OTHER_IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 9, 9));

/// A stream as the world names it.
pub type LinkName = u64;

/// A frame of a stream.
pub enum StreamOutput {
    /// A text.
    Text(String),
    /// A ping.
    Ping,
    /// The stream ended with a close frame.
    Closed,
    /// The stream ended without a close frame.
    Cut,
}

/// The venue.
pub struct Venue {
    machine: Machine,
    /// Keys of the accounts; ours is the first.
    pub keys: Vec<AccountKeys>,
    streams: BTreeMap<LinkName, StreamId>,
}

impl Venue {
    /// The venue of a seed, with a market of its own.
    ///
    /// # Errors
    /// The error of the simulated venue.
    pub fn new(seed: u64, fault_plan: &FaultPlan, now_ns: i64) -> Result<Self, String> {
        let mut settings = Settings {
            seed,
            source: Source::Seeded {
                per_second: fault_plan.per_second,
            },
            choices: fault_plan.choices.clone(),
            ..Settings::default()
        };
        if fault_plan.faults.ends_s > 0 {
            let life = Duration::from_secs(fault_plan.faults.ends_s.into());
            (settings.spot_streams.life, settings.futures_streams.life) = (life, life);
        }
        let made = Machine::new(settings, Time(now_ns));
        let (machine, keys) = made.map_err(|error| error.to_string())?;
        Ok(Self {
            machine,
            keys,
            streams: BTreeMap::new(),
        })
    }

    /// Advances the venue's time.
    pub fn advance(&mut self, now_ns: i64) {
        self.machine.advance(Time(now_ns));
    }

    /// A request arrives: returns the venue's own response, and the response on the wire.
    pub fn request(
        &mut self,
        surface: Surface,
        prepared: &Prepared,
        now_ns: i64,
    ) -> (Option<Answer>, Option<Answer>) {
        let headers = prepared.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let method = prepared.method.to_string();
        let request = HttpRequest {
            port: port(surface),
            ip: IP,
            method: &method,
            path: &prepared.path,
            query: prepared.query.as_deref().unwrap_or_default(),
            headers: &headers,
            body: prepared.body.as_deref().unwrap_or_default().as_bytes(),
        };
        let result = self.machine.request(&request, Time(now_ns));
        (result.own.map(answer), result.sent.map(answer))
    }

    /// A handshake arrives.
    ///
    /// # Errors
    /// The response that refuses it.
    pub fn connect(
        &mut self,
        link: LinkName,
        surface: Surface,
        target: &str,
        now_ns: i64,
    ) -> Result<(), Answer> {
        let made = self
            .machine
            .connect(port(surface), IP, target, Time(now_ns));
        let stream = made.map_err(answer)?;
        self.streams.insert(link, stream);
        Ok(())
    }

    /// A message of the client arrives.
    pub fn send_text(&mut self, link: LinkName, text: &str, now_ns: i64) {
        if let Some(stream) = self.streams.get(&link) {
            self.machine.send_text(*stream, text, Time(now_ns));
        }
    }

    /// The connection is closed.
    pub fn hang_up(&mut self, link: LinkName) {
        if let Some(stream) = self.streams.remove(&link) {
            self.machine.hang_up(stream);
        }
    }

    /// All frames that the streams have sent since the last call.
    pub fn poll_streams(&mut self) -> Vec<(LinkName, StreamOutput)> {
        let mut poll_streams = Vec::new();
        let mut ended = Vec::new();
        for (link, stream) in &self.streams {
            while let Some(frame) = self.machine.poll(*stream) {
                let output = match frame {
                    Frame::Text(text) => StreamOutput::Text(text),
                    Frame::Ping => StreamOutput::Ping,
                    Frame::Closed => StreamOutput::Closed,
                    Frame::Cut => StreamOutput::Cut,
                };
                if matches!(output, StreamOutput::Closed | StreamOutput::Cut) {
                    ended.push(*link);
                }
                poll_streams.push((*link, output));
            }
        }
        for link in ended {
            self.streams.remove(&link);
        }
        poll_streams
    }

    /// Executions of own orders since the last call: client order id and executed quantity so far.
    pub fn executions(&mut self) -> Vec<(String, String)> {
        let all = self.machine.executions().into_iter();
        all.filter(|(account, ..)| *account == 0)
            .map(|(_, id, qty)| (id, qty))
            .collect()
    }

    /// The first levels of the public futures book, both sides, as another client gets them.
    pub fn book(
        &mut self,
        symbol: &str,
        levels: usize,
        now_ns: i64,
    ) -> Option<[Vec<(Decimal, Decimal)>; 2]> {
        let request = HttpRequest {
            port: Port::Futures,
            ip: OTHER_IP,
            method: "GET",
            path: "/fapi/v1/depth",
            query: &format!("symbol={symbol}&limit={levels}"),
            headers: &[],
            body: &[],
        };
        let result = self.machine.request(&request, Time(now_ns));
        let book = answer(result.own?).json()?;
        let side = |name: &str| {
            let rows = book[name].as_array()?.iter();
            let number = |value: &Value| value.as_str()?.parse::<Decimal>().ok();
            let rows = rows.map(|row| Some((number(&row[0])?, number(&row[1])?)));
            rows.collect::<Option<Vec<_>>>()
        };
        Some([side("bids")?, side("asks")?])
    }

    /// Sends a request to the control port.
    pub fn control(&mut self, method: &str, target: &str, body: &str, now_ns: i64) -> Answer {
        answer(
            self.machine
                .control(method, target, body.as_bytes(), Time(now_ns)),
        )
    }

    /// Whether user events wait at the venue.
    pub fn holds_events(&mut self, now_ns: i64) -> bool {
        let answer = self.control("GET", "/faults", "", now_ns);
        let held = answer
            .json()
            .and_then(|faults| faults["held_events"].as_u64());
        held != Some(0)
    }

    /// The true state of our account; `brief` leaves out finished orders and trades.
    pub fn truth(&mut self, brief: bool, now_ns: i64) -> Value {
        let target = if brief {
            "/state?account=0&brief=true"
        } else {
            "/state?account=0"
        };
        let answer = self.control("GET", target, "", now_ns);
        answer.json().unwrap_or(Value::Null)
    }
}

fn answer(response: Response) -> Answer {
    Answer {
        status: response.status,
        headers: response
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        body: response.body,
    }
}

const fn port(surface: Surface) -> Port {
    match surface {
        Surface::Spot => Port::Spot,
        Surface::Futures => Port::Futures,
        Surface::Chain => Port::Chain,
        Surface::Rpc => Port::Rpc,
    }
}
