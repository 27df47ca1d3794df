//! A venue with one market on loopback, with REST and WebSocket on one port and the habits that a
//! test chooses. It records its requests.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use windvane_client::Settings;
use windvane_protocol::route::Surface;

/// Deviations of the venue from the documents. A part of a topic's name selects the topic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Paths of public streams that are answered with 404.
    pub unknown_paths: &'static [&'static str],
    /// Handshakes on these paths of public streams are refused with 403 and these headers.
    pub forbids: Option<(&'static [&'static str], &'static str)>,
    /// A SUBSCRIBE with this topic is refused as a whole.
    pub refuses: Option<&'static str>,
    /// A SUBSCRIBE with this topic ends the connection.
    pub closes: Option<&'static str>,
    /// This topic is accepted but never sent.
    pub silent: Option<&'static str>,
    /// This frame is sent with each pulse, whatever is subscribed.
    pub stray: Option<&'static str>,
    /// Each response equals the previous one.
    pub is_quiet: bool,
    /// Every REST request is answered with this status.
    pub rest_status: Option<u16>,
    /// The first REST request is refused with HTTP 400 and this code.
    pub refuses_once: Option<i32>,
}

/// The requests that the venue received.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Paths of requests, with their queries.
    pub requests: Vec<String>,
    /// Paths of WebSocket handshakes.
    pub sockets: Vec<String>,
    /// Topics of all SUBSCRIBE commands.
    pub topics: Vec<String>,
}

/// The venue. It ends with the test's runtime.
#[derive(Clone, Debug)]
pub struct Market {
    address: SocketAddr,
    habits: Habits,
    received: Arc<Mutex<Received>>,
    /// The market's time; all its data follows from it.
    time: Arc<AtomicU64>,
    /// Wakes the streams that must end.
    cut: Arc<Notify>,
}

impl Market {
    pub async fn start(habits: Habits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let market = Self {
            address: listener.local_addr().unwrap(),
            habits,
            received: Arc::default(),
            time: Arc::new(AtomicU64::new(100)),
            cut: Arc::default(),
        };
        let this = market.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(this.clone().serve(stream));
            }
        });
        market
    }

    pub fn received(&self) -> Received {
        self.received.lock().unwrap().clone()
    }

    /// Settings whose streams notice everything within a fraction of a second.
    pub fn settings(&self) -> Settings {
        let mut settings = super::common::settings(self.address);
        for surface in [Surface::Spot, Surface::Futures] {
            let ws = format!("ws://{}", self.address);
            settings.addresses = settings.addresses.ws(surface, &ws).unwrap();
        }
        settings.streams.backoff = (Duration::from_millis(1), Duration::from_millis(2));
        settings.streams.first_frame_within = Duration::from_millis(100);
        settings
    }

    /// Ends every stream.
    pub fn cut(&self) {
        self.cut.notify_waiters();
    }

    fn now(&self) -> u64 {
        let step = u64::from(!self.habits.is_quiet);
        self.time.fetch_add(step, Ordering::Relaxed)
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut start = [0; 2_048];
        loop {
            // The head of a request arrives in one piece. It is only peeked, because the WebSocket
            // library must read it.
            let length = stream.peek(&mut start).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&start[..length]).into_owned();
            let Some(path) = head.split(' ').nth(1).map(str::to_owned) else {
                return;
            };
            if head.to_ascii_lowercase().contains("upgrade: websocket") {
                self.received.lock().unwrap().sockets.push(path.clone());
                if self.habits.unknown_paths.contains(&path.as_str()) {
                    let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                    let _ = stream.write_all(answer.as_bytes()).await;
                    return;
                }
                if let Some((paths, headers)) = self.habits.forbids
                    && paths.contains(&path.as_str())
                {
                    let answer =
                        format!("HTTP/1.1 403 Forbidden\r\n{headers}Content-Length: 0\r\n\r\n");
                    let _ = stream.write_all(answer.as_bytes()).await;
                    return;
                }
                return self.stream(stream, &path).await;
            }
            let _ = stream.read(&mut start).await;
            let answer = self.answer(path);
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, path: String) -> String {
        let is_first = self.received.lock().unwrap().requests.is_empty();
        let (status, body) = match (self.habits.rest_status, self.habits.refuses_once) {
            (Some(status), _) => (status, String::new()),
            (None, Some(code)) if is_first => {
                (400, format!(r#"{{"code":{code},"msg":"Not now."}}"#))
            }
            _ if path.contains("NOSUCH") => {
                (400, r#"{"code":-1121,"msg":"Invalid symbol."}"#.to_owned())
            }
            _ => (200, rest(&path, self.now())),
        };
        self.received.lock().unwrap().requests.push(path);
        let length = body.len();
        let retry = "Retry-After: 600\r\n";
        format!("HTTP/1.1 {status} Word\r\n{retry}Content-Length: {length}\r\n\r\n{body}")
    }

    async fn stream(self, stream: TcpStream, path: &str) {
        let mut socket = accept_async(stream).await.unwrap();
        let is_combined = path.starts_with("/stream");
        let mut topics: Vec<String> = Vec::new();
        let mut ticker = tokio::time::interval(Duration::from_millis(10));
        loop {
            let message = tokio::select! {
                message = socket.next() => message,
                () = self.cut.notified() => return,
                _ = ticker.tick() => {
                    for text in self.frames(&topics, is_combined) {
                        if socket.send(Message::text(text)).await.is_err() {
                            return;
                        }
                    }
                    continue;
                }
            };
            let Some(Ok(message)) = message else { return };
            let Message::Text(text) = message else {
                continue;
            };
            let command: serde_json::Value = serde_json::from_str(&text).unwrap();
            let (id, params) = (&command["id"], command["params"].as_array().unwrap());
            let params = params
                .iter()
                .map(|topic| topic.as_str().unwrap().to_owned());
            let params: Vec<String> = params.collect();
            self.received.lock().unwrap().topics.extend(params.clone());
            let has = |part: Option<&str>| {
                part.is_some_and(|part| params.iter().any(|topic| topic.contains(part)))
            };
            if has(self.habits.closes) {
                return;
            }
            let answer = if has(self.habits.refuses) {
                format!(r#"{{"error":{{"code":-1130,"msg":"No such stream."}},"id":{id}}}"#)
            } else {
                let is_sent = |topic: &String| {
                    self.habits
                        .silent
                        .is_none_or(|silent| !topic.contains(silent))
                };
                topics.extend(params.iter().filter(|topic| is_sent(topic)).cloned());
                format!(r#"{{"result":null,"id":{id}}}"#)
            };
            if socket.send(Message::text(answer)).await.is_err() {
                return;
            }
        }
    }
}

impl Market {
    /// The frames that the stream of these topics sends at a pulse.
    fn frames(&self, topics: &[String], is_combined: bool) -> Vec<String> {
        let frame = |topic: &String| {
            let payload = payload(topic, self.now());
            if is_combined || topic.contains("tradepro") {
                format!(r#"{{"stream":"{topic}","data":{payload}}}"#)
            } else {
                payload
            }
        };
        let frames = topics.iter().map(frame);
        frames.chain(self.habits.stray.map(str::to_owned)).collect()
    }
}

fn rest(path: &str, now: u64) -> String {
    let route = path.split('?').next().unwrap_or_default();
    match route.rsplit('/').next() {
        Some("bookTicker") => format!(
            r#"{{"symbol":"BTCUSDT","bidPrice":"{now}","bidQty":"1","askPrice":"{}","askQty":"1","time":{now}}}"#,
            now + 1
        ),
        Some("premiumIndex") => format!(
            r#"{{"symbol":"BTCUSDT","markPrice":"{now}","lastFundingRate":"0.0001","nextFundingTime":9,"time":{now}}}"#
        ),
        Some("depth") => format!(
            r#"{{"lastUpdateId":{now},"E":1,"T":1,"bids":[["{now}","1"]],"asks":[["{}","1"]]}}"#,
            now + 1
        ),
        Some("trades") => format!(
            r#"[{{"id":{now},"price":"1","qty":"1","quoteQty":"1","time":1,"isBuyerMaker":true}}]"#
        ),
        _ => "[]".to_owned(),
    }
}

fn payload(topic: &str, now: u64) -> String {
    let (symbol, stream) = topic.split_once('@').unwrap();
    let symbol = symbol.to_ascii_uppercase();
    match stream {
        "bookTicker" => format!(
            r#"{{"e":"bookTicker","u":{now},"E":1,"T":1,"s":"{symbol}","b":"{now}","B":"1","a":"{}","A":"1"}}"#,
            now + 1
        ),
        "markPrice" => format!(
            r#"{{"e":"markPriceUpdate","E":1,"s":"{symbol}","p":"{now}","i":"1","P":"1","r":"0","T":9}}"#
        ),
        "tradepro" => format!(
            r#"{{"e":"tradepro","E":1,"T":1,"s":"{symbol}","t":{now},"p":"1","q":"1","h":"0x","m":["hidden","hidden"]}}"#
        ),
        // Differences and first levels have the same form.
        _ => format!(
            r#"{{"e":"depthUpdate","E":1,"T":1,"s":"{symbol}","U":{now},"u":{now},"pu":1,"b":[["{now}","1"]],"a":[["{}","1"]]}}"#,
            now + 1
        ),
    }
}
