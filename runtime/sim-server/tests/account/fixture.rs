//! A server, and raw HTTP requests that are sent exactly as the test wrote them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use secrecy::SecretString;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windvane_protocol::Brand;
use windvane_protocol::sign::{MessageDomain, Network, Wallet, hmac::hex_hmac};
use windvane_sim_server::{AccountKeys, Running, Settings, start};

static NONCE_US: AtomicU64 = AtomicU64::new(0);

/// A server and its first account.
pub struct Venue {
    pub running: Running,
}

/// A response as it was received.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    /// Headers; the names are in lower case.
    pub headers: BTreeMap<String, String>,
    pub text: String,
}

impl Answered {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Status and code of a refusal.
    pub fn refusal(&self) -> (u16, i64) {
        (
            self.status,
            self.json()["code"].as_i64().unwrap_or_default(),
        )
    }

    /// The body of a successful response.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }
}

/// The parts of a request.
#[derive(Clone, Debug, Default)]
pub struct Sent<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: String,
    pub body: String,
    pub key: Option<&'a str>,
}

impl Venue {
    pub async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        Self {
            running: start(settings).await.unwrap(),
        }
    }

    pub fn keys(&self) -> &AccountKeys {
        &self.running.accounts[0]
    }

    /// The address that serves a path.
    pub fn address(&self, path: &str) -> SocketAddr {
        if path.starts_with("/fapi") {
            self.running.addresses.futures
        } else {
            self.running.addresses.spot
        }
    }

    pub async fn send(&self, sent: Sent<'_>) -> Answered {
        let address = self.address(sent.path);
        let mut target = sent.path.to_owned();
        if !sent.query.is_empty() {
            target = format!("{target}?{}", sent.query);
        }
        let mut head = format!("{} {target} HTTP/1.1\r\nHost: {address}\r\n", sent.method);
        if let Some(key) = sent.key {
            head = format!("{head}X-MBX-APIKEY: {key}\r\n");
        }
        if !sent.body.is_empty() {
            head = format!("{head}Content-Type: application/x-www-form-urlencoded\r\n");
        }
        let length = sent.body.len();
        head = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        raw(address, (head + &sent.body).as_bytes()).await
    }

    /// Sends a v1 request: everything in the query, with `timestamp` and `signature` last.
    pub async fn v1(&self, method: &str, path: &str, query: &str) -> Answered {
        let query = self.hmac_signed(&stamped(query), "");
        let key = Some(self.keys().api_key.as_str());
        let body = String::new();
        self.send(Sent {
            method,
            path,
            query,
            body,
            key,
        })
        .await
    }

    /// The text with its signature by the first account's secret. The signature also covers
    /// `before`, which precedes the text.
    pub fn hmac_signed(&self, text: &str, before: &str) -> String {
        let secret = SecretString::from(self.keys().api_secret.as_str());
        let signature = hex_hmac(&secret, &[before.as_bytes(), text.as_bytes()]);
        format!("{text}&signature={signature}")
    }

    /// Sends a v3 request: nonce, user and signer follow the parameters, and `key` signs. GET uses
    /// the query; other methods use a form.
    pub async fn v3_by(&self, key: &str, method: &str, path: &str, text: &str) -> Answered {
        let signed = Self::message_signed(key, text);
        let (query, body) = if method == "GET" {
            (signed, String::new())
        } else {
            (String::new(), signed)
        };
        self.send(Sent {
            method,
            path,
            query,
            body,
            key: None,
        })
        .await
    }

    /// Sends a v3 request that the agent signs.
    pub async fn v3(&self, method: &str, path: &str, text: &str) -> Answered {
        let (user, signer) = (&self.keys().user, &self.keys().signer);
        let nonce = nonce_us();
        let amp = if text.is_empty() { "" } else { "&" };
        let text = format!("{text}{amp}nonce={nonce}&user={user}&signer={signer}");
        self.v3_by(&self.keys().signer_key, method, path, &text)
            .await
    }

    pub fn message_signed(key: &str, text: &str) -> String {
        let wallet = Wallet::from_hex(&SecretString::from(key)).unwrap();
        let domain = MessageDomain::new(&Brand::new("svc").unwrap(), Network::Mainnet);
        let signature = wallet.sign(&domain.digest(text.as_bytes()));
        format!("{text}&signature={signature}")
    }
}

/// The names of an object's fields.
pub fn fields(value: &Value) -> BTreeSet<&str> {
    let object = value.as_object().unwrap();
    object.keys().map(String::as_str).collect()
}

/// The text with a timestamp at its end.
pub fn stamped(text: &str) -> String {
    let amp = if text.is_empty() { "" } else { "&" };
    format!("{text}{amp}timestamp={}", now_ms())
}

pub fn now_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
}

/// A nonce that is unique in this process.
pub fn nonce_us() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_micros() as u64;
    let last = NONCE_US.fetch_max(now, Ordering::SeqCst);
    if now > last {
        now
    } else {
        NONCE_US.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Sends bytes and reads until the server closes the connection.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> Answered {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses early may close the connection before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8(response).unwrap();
    let (head, text) = response.split_once("\r\n\r\n").expect("a response");
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_lowercase(), value.trim().to_owned())
    };
    Answered {
        status: status.parse().unwrap(),
        headers: lines.map(header).collect(),
        text: text.to_owned(),
    }
}
