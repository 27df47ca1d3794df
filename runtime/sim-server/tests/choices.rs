//! Each open point of the documents changes the wire. The same session with two values of a point
//! gives two different transcripts, and a repeated session gives the same transcript.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use windvane_model::{Surface, Time};
use windvane_protocol::sign::hmac::hex_hmac;
use windvane_sim_server::{
    AccountKeys, Choices, Frame, HttpRequest, LimitSettings, Machine, OpenPoint, Port, Settings,
    Source, StreamId, StreamLimits,
};

const START_MS: i64 = 1_772_700_000_000;
const IP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// A client that records everything it receives.
struct Session {
    machine: Machine,
    keys: AccountKeys,
    now: Time,
    streams: Vec<StreamId>,
    wire: String,
}

impl Session {
    fn new(chosen: &[(&str, &str)]) -> Self {
        let settings = Settings {
            seed: 3,
            source: Source::Seeded { per_second: 2 },
            choices: Choices::new(chosen.iter().copied()).unwrap(),
            limits: LimitSettings {
                futures_orders: 60,
                patience: 40,
                ..LimitSettings::default()
            },
            futures_streams: StreamLimits {
                life: Duration::from_secs(620),
                ..StreamLimits::of(Surface::Futures)
            },
            ..Settings::default()
        };
        let now = Time::from_millis(START_MS);
        let (machine, keys) = Machine::new(settings, now).unwrap();
        let keys = keys.into_iter().next().unwrap();
        Self {
            machine,
            keys,
            now,
            streams: Vec::new(),
            wire: String::new(),
        }
    }

    fn note(&mut self, line: &str) {
        let ms = self.now.millis() - START_MS;
        writeln!(self.wire, "{ms} {line}").unwrap();
    }

    fn pass(&mut self, ms: i64) {
        let until = self.now.plus_ms(ms);
        let step_ms = if ms < 20_000 { 100 } else { 5_000 };
        while self.now < until {
            self.now = self.now.plus_ms(step_ms).min(until);
            self.machine.advance(self.now);
            self.drain_frames();
        }
    }

    fn drain_frames(&mut self) {
        for stream in self.streams.clone() {
            while let Some(frame) = self.machine.poll(stream) {
                match frame {
                    Frame::Text(text) => self.note(&format!("frame {text}")),
                    Frame::Ping => self.note("ping"),
                    Frame::Closed => self.note("closed"),
                    Frame::Cut => self.note("cut"),
                }
            }
        }
    }

    fn request_json(&mut self, port: Port, method: &str, target: &str, body: &[u8]) -> Value {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let key = self.keys.api_key.clone();
        let request = HttpRequest {
            port,
            ip: IP,
            method,
            path,
            query,
            headers: &[("X-MBX-APIKEY", &key), ("content-type", "application/json")],
            body,
        };
        let result = self.machine.request(&request, self.now);
        let sent = result.sent.expect("no fault is on");
        let line = format!("{method} {target} after {} {sent:?}", result.after_ms);
        self.note(&line);
        self.drain_frames();
        serde_json::from_str(&sent.body).unwrap_or(Value::Null)
    }

    /// Sends a signed request.
    fn signed(&mut self, port: Port, method: &str, path: &str, fields: &str) -> Value {
        let ms = self.now.millis() - 4_000;
        let separator = if fields.is_empty() { "" } else { "&" };
        let query = format!("{fields}{separator}recvWindow=60000&timestamp={ms}");
        let secret = SecretString::from(self.keys.api_secret.clone());
        let signature = hex_hmac(&secret, &[query.as_bytes()]);
        let target = format!("{path}?{query}&signature={signature}");
        self.request_json(port, method, &target, &[])
    }

    fn futures(&mut self, method: &str, route: &str, fields: &str) -> Value {
        self.signed(Port::Futures, method, &format!("/fapi/{route}"), fields)
    }

    fn order(&mut self, fields: &str) -> Value {
        let fields = format!("symbol=BTCUSDT&{fields}");
        self.futures("POST", "v1/order", &fields)
    }

    fn act(&mut self, act: &Value) -> bool {
        let body = act.to_string();
        let done = self
            .machine
            .control("POST", "/act", body.as_bytes(), self.now);
        self.drain_frames();
        done.status == 200
    }

    fn info(&mut self, method: &str, params: &Value) {
        let body = json!({"id": 1, "jsonrpc": "2.0", "method": method, "params": params});
        self.request_json(Port::Rpc, "POST", "/info", body.to_string().as_bytes());
    }

    /// Opens the user stream of a surface.
    fn listen(&mut self, port: Port) {
        let path = match port {
            Port::Spot => "/api/v1/listenKey",
            _ => "/fapi/v1/listenKey",
        };
        let answer = self.request_json(port, "POST", path, &[]);
        let key = answer["listenKey"].as_str().unwrap_or_default();
        let target = format!("/ws/{key}");
        if let Ok(stream) = self.machine.connect(port, IP, &target, self.now) {
            self.streams.push(stream);
            self.drain_frames();
        }
    }

    /// Reads all data of the account.
    fn read(&mut self) {
        for route in [
            "v4/account",
            "v2/positionRisk",
            "v2/balance",
            "v1/openOrders",
        ] {
            self.futures("GET", route, "");
        }
        for route in ["v1/userTrades", "v1/allOrders"] {
            self.futures("GET", route, "symbol=BTCUSDT");
        }
        self.futures("GET", "v1/order", "symbol=BTCUSDT&origClientOrderId=swept");
        let user = self.keys.user.clone();
        self.info("svc_getBalance", &json!([user, "latest"]));
        self.info("svc_openOrders", &json!([user, "", "latest"]));
    }
}

/// Runs a session that touches every open point, and returns all traffic.
fn transcript(chosen: &[(&str, &str)]) -> String {
    let mut session = Session::new(chosen);
    let s = &mut session;
    s.request_json(Port::Futures, "GET", "/fapi/v1/time", &[]);
    s.request_json(Port::Futures, "GET", "/fapi/v1/exchangeInfo", &[]);
    s.request_json(
        Port::Futures,
        "GET",
        "/fapi/v1/depth?symbol=BTCUSDT&limit=5",
        &[],
    );
    s.listen(Port::Futures);
    s.listen(Port::Spot);
    s.pass(1_000);
    let top = s.request_json(
        Port::Futures,
        "GET",
        "/fapi/v1/ticker/bookTicker?symbol=BTCUSDT",
        &[],
    );
    let price = |name: &str| {
        let text = top[name].as_str().unwrap_or_default();
        text.parse::<f64>().unwrap()
    };
    let (bid, request_json) = (price("bidPrice"), price("askPrice"));

    // Resting orders, repeated client order ids, crossing orders.
    let low = format!(
        "side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price={:.0}",
        bid * 0.97
    );
    s.order(&format!("{low}&newClientOrderId=own-1"));
    s.order(&format!("{low}&newClientOrderId=own-1"));
    s.order(&low);
    s.futures("GET", "v1/order", "symbol=BTCUSDT&origClientOrderId=own-1");
    s.futures("GET", "v1/openOrders", "symbol=BTCUSDT");
    s.futures(
        "DELETE",
        "v1/order",
        "symbol=BTCUSDT&origClientOrderId=own-1",
    );
    s.futures("GET", "v1/openOrders", "symbol=BTCUSDT");
    s.futures(
        "DELETE",
        "v1/order",
        "symbol=BTCUSDT&origClientOrderId=own-1",
    );
    s.futures("GET", "v1/order", "symbol=BTCUSDT&origClientOrderId=none");
    s.order(&format!("{low}&newClientOrderId=own-1"));
    let high = format!("quantity=0.02&price={:.0}", request_json * 1.02);
    s.order(&format!("side=BUY&type=LIMIT&timeInForce=GTX&{high}"));
    s.order("side=BUY&type=MARKET&quantity=100");
    // It triggers when the next order takes several levels.
    let stop = format!("quantity=0.004&stopPrice={:.1}", request_json + 0.2);
    s.order(&format!(
        "side=BUY&type=STOP_MARKET&newClientOrderId=stop-1&{stop}"
    ));
    // The order takes several levels, and its rest expires.
    let sweep = format!("quantity=30&price={:.1}", request_json * 1.0005);
    s.order(&format!(
        "side=BUY&type=LIMIT&timeInForce=IOC&newClientOrderId=swept&{sweep}"
    ));
    s.read();
    s.order("side=BUY&type=MARKET&quantity=0.013");
    let exit = format!("quantity=0.01&price={:.0}", request_json * 1.03);
    s.order(&format!(
        "side=SELL&type=LIMIT&timeInForce=GTC&reduceOnly=true&{exit}"
    ));
    s.pass(500);
    s.order("side=SELL&type=MARKET&quantity=100&reduceOnly=true");
    // Lagging routes still show the old state for one, five or ten seconds.
    for ms in [0, 3_000, 4_000, 6_000] {
        s.pass(ms);
        s.read();
    }

    // Batches, timers, cancel-all.
    let entry = |id: &str| {
        json!({"symbol": "BTCUSDT", "side": "BUY", "type": "LIMIT", "timeInForce": "GTC",
            "quantity": "0.01", "price": format!("{:.0}", bid * 0.97), "newClientOrderId": id})
    };
    let batch = json!([entry("batch-1"), entry("batch-2")]).to_string();
    let batch = windvane_protocol::sign::percent_encoded(&batch);
    s.futures("POST", "v1/batchOrders", &format!("batchOrders={batch}"));
    s.futures(
        "POST",
        "v1/countdownCancelAll",
        "symbol=BTCUSDT&countdownTime=30000",
    );
    s.futures("DELETE", "v1/allOpenOrders", "symbol=BTCUSDT");
    s.pass(1_000);

    // Other events: money, leverage, funding, liquidation, auto-deleveraging.
    s.act(&json!({"act": "transfer", "from": "spot", "asset": "USDT", "amount": "250"}));
    s.act(&json!({"act": "leverage", "symbol": "BTCUSDT", "leverage": 7}));
    s.order("side=BUY&type=MARKET&quantity=0.017");
    s.futures(
        "POST",
        "v1/order",
        "symbol=ETHUSDT&side=SELL&type=MARKET&quantity=0.31",
    );
    s.pass(300);
    s.act(&json!({"act": "funding", "symbol": "BTCUSDT", "rate": "0.0001"}));
    s.act(&json!({"act": "adl", "symbol": "BTCUSDT", "quantity": "0.005"}));
    s.act(&json!({"act": "liquidate", "symbol": "BTCUSDT"}));
    s.pass(500);
    for route in ["v1/forceOrders", "v1/income"] {
        s.futures("GET", route, "symbol=BTCUSDT");
    }

    // Spot.
    s.act(&json!({"act": "withdraw", "surface": "spot", "asset": "ETH", "amount": "100"}));
    s.signed(
        Port::Spot,
        "POST",
        "/api/v1/order",
        "symbol=BTCUSDT&side=BUY&type=MARKET&quoteOrderQty=700",
    );
    let spot = format!(
        "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price={:.0}",
        bid * 0.9
    );
    s.signed(Port::Spot, "POST", "/api/v1/order", &spot);
    s.signed(Port::Spot, "GET", "/api/v1/account", "");
    s.pass(500);

    // Refusals and limits.
    s.request_json(
        Port::Futures,
        "GET",
        "/fapi/v1/openOrders?timestamp=1&signature=00",
        &[],
    );
    s.request_json(
        Port::Futures,
        "GET",
        "/fapi/v1/klines?symbol=NONE&interval=1m",
        &[],
    );
    s.pass(31_000);
    for _ in 0..62 {
        s.order("side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=1");
    }

    // Listen keys and connections.
    s.listen(Port::Futures);
    s.pass(61_000);
    s.order("side=BUY&type=MARKET&quantity=0.01");
    s.request_json(Port::Futures, "PUT", "/fapi/v1/listenKey", &[]);
    s.pass(540_000);
    s.order("side=SELL&type=MARKET&quantity=0.01");
    s.pass(11_000);
    for _ in 0..165 {
        let target = "/fapi/v1/aggTrades?symbol=BTCUSDT&limit=1";
        s.request_json(Port::Futures, "GET", target, &[]);
    }
    std::mem::take(&mut session.wire)
}

#[test]
fn every_value_of_every_point_changes_the_wire() {
    let strict = transcript(&[]);
    assert_eq!(
        strict,
        transcript(&[]),
        "a repeated session must give the same transcript"
    );
    let mut silent = Vec::new();
    for point in OpenPoint::ALL {
        let mut seen = vec![strict.clone()];
        for value in &point.values[1..] {
            let wire = transcript(&[(point.name, value)]);
            if seen.contains(&wire) {
                silent.push(format!("{} = {value}", point.name));
            }
            seen.push(wire);
        }
    }
    assert_eq!(silent, Vec::<String>::new(), "these values change nothing");
}

#[test]
fn a_session_works_with_all_second_values() {
    let chosen: Vec<_> = OpenPoint::ALL
        .iter()
        .map(|point| (point.name, point.values[1]))
        .collect();
    let wire = transcript(&chosen);
    assert!(wire.contains("frame"), "{}", &wire[..2_000.min(wire.len())]);
}

#[test]
fn the_control_port_shows_and_changes_choices() {
    let mut session = Session::new(&[]);
    let now = session.now;
    let shown = session.machine.control("GET", "/choices", b"", now);
    let shown: Value = serde_json::from_str(&shown.body).unwrap();
    assert_eq!(shown.as_array().unwrap().len(), OpenPoint::ALL.len());
    let set = br#"{"flat-position":"listed"}"#;
    assert_eq!(
        session.machine.control("POST", "/choices", set, now).status,
        200
    );
    let shown = session.machine.control("GET", "/choices", b"", now);
    assert!(shown.body.contains(r#""value":"listed""#), "{}", shown.body);
    for (body, wanted) in [
        (&br#"{"flat":"listed"}"#[..], "flat is not an open point"),
        (br#"{"flat-position":"gone"}"#, "must be absent or listed"),
        (br#"{"flat-position":1}"#, "object of texts"),
    ] {
        let refused = session.machine.control("POST", "/choices", body, now);
        assert_eq!(refused.status, 400);
        assert!(refused.body.contains(wanted), "{}", refused.body);
    }
}
