//! Clients that use only sockets. They place, cancel, query and listen, and remember the responses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use secrecy::SecretString;
use serde_json::Value;
use tokio::time::timeout;
use windvane_protocol::sign::hmac::hex_hmac;
use windvane_sim_server::Running;

use crate::http;

/// The response to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Accepted,
    Refused(i64),
}

/// Maximum number of orders to remember, because a long soak has more than fit into memory.
const FATES_MAX: usize = 20_000;

/// Responses by client order id, up to the maximum number.
#[derive(Debug, Default)]
pub struct Fates(Mutex<BTreeMap<String, Fate>>);

impl Fates {
    fn learn(&self, id: &str, fate: Fate) {
        let mut fates = self.0.lock().unwrap();
        fates.insert(id.to_owned(), fate);
        if fates.len() > FATES_MAX {
            fates.pop_first();
        }
    }

    pub fn all(&self) -> BTreeMap<String, Fate> {
        self.0.lock().unwrap().clone()
    }
}

/// A small seeded generator (xorshift).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len() as u64) as usize]
    }
}

pub struct Client {
    running: Arc<Running>,
    fates: Arc<Fates>,
    n: u64,
    random: Random,
    sent: u64,
}

/// How long a client waits for a response that may never arrive.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a client waits for the control port, because the state of a long soak is large.
const CONTROL_PATIENCE: Duration = Duration::from_secs(30);

/// Sends a request to the control port, which always responds.
pub async fn control(running: &Running, method: &str, path: &str, body: &str) -> (u16, Value) {
    let address = running.addresses.control;
    let sent = http::send(address, method, path, "", body);
    let answer = timeout(CONTROL_PATIENCE, sent).await;
    let answer = answer.expect("a response in time");
    let answer = answer.expect("a complete response");
    (answer.status, answer.json())
}

/// Sends a request and reads the response; `None` if the response is not complete.
pub async fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<(u16, String)> {
    let sent = http::send(address, method, path, headers, body);
    let answer = timeout(PATIENCE, sent).await.ok()??;
    Some((answer.status, answer.body))
}

/// Codes that leave the outcome of an order unknown.
const UNKNOWN_OUTCOME: [i64; 3] = [-1000, -1006, -1007];

impl Client {
    pub fn new(running: Arc<Running>, n: u64, fates: Arc<Fates>) -> Self {
        Self {
            running,
            fates,
            n,
            random: Random(0x9E37_79B9 + n * 7_919),
            sent: 0,
        }
    }

    async fn signed(&self, method: &str, path: &str, params: &str) -> Option<(u16, String)> {
        let keys = &self.running.accounts[(self.n % 2) as usize];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let params = format!("{params}&timestamp={}", now.as_millis());
        let secret = SecretString::from(keys.api_secret.as_str());
        let signature = hex_hmac(&secret, &[params.as_bytes()]);
        let address = self.address(path.starts_with("/api"));
        let path = format!("{path}?{params}&signature={signature}");
        let key = format!("X-MBX-APIKEY: {}\r\n", keys.api_key);
        exchange(address, method, &path, &key, "").await
    }

    fn address(&self, spot: bool) -> SocketAddr {
        if spot {
            self.running.addresses.spot
        } else {
            self.running.addresses.futures
        }
    }

    pub async fn trade(mut self, until: Instant) {
        while Instant::now() < until {
            let spot = self.random.below(2) == 0;
            let root = if spot { "/api/v1" } else { "/fapi/v1" };
            match self.random.below(10) {
                0..=4 => self.place(root).await,
                5 => {
                    let id = self.random.below(self.sent + 1);
                    let params = format!("symbol=BTCUSDT&origClientOrderId=t{}-{id}", self.n);
                    let method = self.random.pick(&["GET", "DELETE"]);
                    self.signed(method, &format!("{root}/order"), &params).await;
                }
                6 => {
                    let path = format!("{root}/allOpenOrders");
                    self.signed("DELETE", &path, "symbol=BTCUSDT").await;
                }
                7 => {
                    let route = self.random.pick(&["openOrders", "allOrders", "userTrades"]);
                    let path = format!("{root}/{route}");
                    self.signed("GET", &path, "symbol=BTCUSDT").await;
                }
                8 => {
                    let params = "symbol=BTCUSDT&countdownTime=300";
                    let path = "/fapi/v1/countdownCancelAll";
                    self.signed("POST", path, params).await;
                }
                _ => {
                    let path = self.random.pick(&[
                        "/fapi/v1/depth?symbol=BTCUSDT",
                        "/fapi/v1/klines?symbol=ETHUSDT&interval=1m",
                        "/fapi/v1/exchangeInfo",
                        "/fapi/v1/nothing?a=%zz&&=",
                    ]);
                    exchange(self.address(false), "GET", path, "", "").await;
                }
            }
        }
    }

    async fn place(&mut self, root: &str) {
        self.sent += 1;
        let id = format!("t{}-{}", self.n, self.sent);
        let side = self.random.pick(&["BUY", "SELL"]);
        let quantity = 1 + self.random.below(20);
        let near = 30_000 + self.random.below(60_000);
        let terms = match self.random.below(4) {
            0 => format!("type=MARKET&quantity=0.0{quantity:02}"),
            1 => format!("type=STOP_MARKET&quantity=0.0{quantity:02}&stopPrice={near}"),
            _ => {
                let tif = self.random.pick(&["GTC", "IOC", "FOK", "GTX"]);
                format!("type=LIMIT&timeInForce={tif}&quantity=0.0{quantity:02}&price={near}")
            }
        };
        let params = format!("symbol=BTCUSDT&side={side}&newClientOrderId={id}&{terms}");
        let answer = self.signed("POST", &format!("{root}/order"), &params).await;
        let Some((status, body)) = answer else { return };
        let Ok(json) = serde_json::from_str::<Value>(&body) else {
            return;
        };
        match json["code"].as_i64() {
            None if status == 200 && json["clientOrderId"] == id.as_str() => {
                self.fates.learn(&id, Fate::Accepted);
            }
            Some(code) if status < 500 && !UNKNOWN_OUTCOME.contains(&code) => {
                self.fates.learn(&id, Fate::Refused(code));
            }
            _ => {}
        }
    }

    /// Opens streams again and again, and reads what they send.
    pub async fn listen(mut self, until: Instant) {
        while Instant::now() < until {
            let spot = self.random.below(2) == 0;
            let root = if spot { "/api/v1" } else { "/fapi/v1" };
            let keys = &self.running.accounts[(self.n % 2) as usize];
            let key = format!("X-MBX-APIKEY: {}\r\n", keys.api_key);
            let address = self.address(spot);
            let path = format!("{root}/listenKey");
            let answer = exchange(address, "POST", &path, &key, "").await;
            let body = answer.and_then(|(_, body)| serde_json::from_str::<Value>(&body).ok());
            let name = body.and_then(|body| body["listenKey"].as_str().map(str::to_owned));
            let name = name.unwrap_or_else(|| "btcusdt@depth@100ms/ethusdt@trade".to_owned());
            let url = format!("ws://{address}/ws/{name}");
            let open = timeout(
                Duration::from_millis(500),
                tokio_tungstenite::connect_async(url),
            );
            let Ok(Ok((mut socket, _))) = open.await else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let long = Duration::from_millis(50 + self.random.below(1_000));
            let _ = timeout(long, async {
                while let Some(Ok(_)) = socket.next().await {}
            })
            .await;
        }
    }
}
