//! A server and its users. Each user sends signed requests by route name.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use windvane_protocol::Brand;
use windvane_protocol::route::{Method, Surface, Version, named};
use windvane_protocol::sign::{Credentials, Dialect, Network, Prepared, Stamp, prepare};
use windvane_protocol::wire::Parameters;
use windvane_sim_server::{AccountKeys, Running, Settings, start};

pub use crate::keys::wallet;
use crate::{http, keys};

pub const V1: Option<Version> = Some(Version::V1);
pub const V3: Option<Version> = Some(Version::V3);

/// The sentence that this service's users sign for API keys.
const SENTENCE: &str = "You are signing into the simulated venue";

static NONCE_US: AtomicU64 = AtomicU64::new(0);

pub struct Venue {
    pub running: Running,
    pub dialect: Dialect,
}

/// Status and body of a response.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub body: Value,
}

impl Answered {
    pub fn code(&self) -> i64 {
        self.body["code"].as_i64().unwrap_or_default()
    }

    /// The body of a successful response.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }
}

impl Venue {
    pub async fn new() -> Self {
        let mut brand = Brand::new("svc").unwrap();
        brand.login_sentence = Some(SENTENCE.to_owned());
        let settings = Settings {
            brand: brand.clone(),
            ..Settings::default()
        };
        Self {
            running: start(settings).await.unwrap(),
            dialect: Dialect {
                brand,
                network: Network::Mainnet,
                recv_window_ms: None,
            },
        }
    }

    pub fn keys(&self, user: usize) -> &AccountKeys {
        &self.running.accounts[user]
    }

    /// All credentials of a user in the ready line.
    pub fn credentials(&self, user: usize) -> Credentials {
        keys::credentials(self.keys(user))
    }

    /// Sends a request of the first user.
    pub async fn call(
        &self,
        name: &str,
        version: Option<Version>,
        pairs: &[(&str, &str)],
    ) -> Answered {
        self.call_with(&self.credentials(0), name, version, pairs)
            .await
    }

    pub async fn call_with(
        &self,
        credentials: &Credentials,
        name: &str,
        version: Option<Version>,
        pairs: &[(&str, &str)],
    ) -> Answered {
        let prepared = self.prepared(credentials, name, version, pairs, stamp());
        self.send(named(name).unwrap().surface, &prepared).await
    }

    pub fn prepared(
        &self,
        credentials: &Credentials,
        name: &str,
        version: Option<Version>,
        pairs: &[(&str, &str)],
        stamp: Stamp,
    ) -> Prepared {
        let mut parameters = Parameters::new();
        for (name, value) in pairs {
            parameters.push(*name, *value);
        }
        let route = named(name).unwrap();
        prepare(
            route,
            version,
            &parameters,
            &self.dialect,
            credentials,
            stamp,
        )
        .unwrap()
    }

    pub async fn send(&self, surface: Surface, prepared: &Prepared) -> Answered {
        let addresses = self.running.addresses;
        let address = match surface {
            Surface::Spot => addresses.spot,
            Surface::Futures => addresses.futures,
            Surface::Chain => addresses.chain,
            Surface::Rpc => addresses.rpc,
        };
        send(address, prepared).await
    }

    /// Sends a request to the control port.
    pub async fn control(&self, path: &str, body: &str) -> Answered {
        let prepared = Prepared {
            method: Method::Post,
            path: path.to_owned(),
            query: None,
            headers: Vec::new(),
            body: Some(body.to_owned()),
            signed: None,
        };
        send(self.running.addresses.control, &prepared).await
    }

    /// Free spot balance of an asset.
    pub async fn spot(&self, user: usize, asset: &str) -> String {
        let credentials = self.credentials(user);
        let account = self
            .call_with(&credentials, "spot.account", V1, &[])
            .await
            .ok();
        let balances = account["balances"].as_array().unwrap();
        let found = balances.iter().find(|balance| balance["asset"] == asset);
        plain(&found.unwrap()["free"])
    }

    /// Futures wallet balance of an asset.
    pub async fn perp(&self, user: usize, asset: &str) -> String {
        let credentials = self.credentials(user);
        let balances = self
            .call_with(&credentials, "futures.balance", V3, &[])
            .await
            .ok();
        let balances = balances.as_array().unwrap();
        let found = balances.iter().find(|balance| balance["asset"] == asset);
        plain(&found.unwrap()["balance"])
    }
}

/// Decimal text without trailing zeros.
fn plain(value: &Value) -> String {
    let text = value.as_str().unwrap();
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

/// The present time, with a nonce that is unique in this process.
pub fn stamp() -> Stamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_us = now.as_micros() as u64;
    let next = |last: u64| Some(now_us.max(last + 1));
    let last = NONCE_US
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .unwrap();
    Stamp {
        timestamp_ms: now.as_millis() as i64,
        nonce_us: now_us.max(last + 1),
        inner_nonce_us: now_us.max(last + 1),
    }
}

async fn send(address: SocketAddr, prepared: &Prepared) -> Answered {
    let query = prepared.query.as_ref();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let (method, path) = (prepared.method.to_string(), &prepared.path);
    let path = format!("{path}{query}");
    let headers = prepared.headers.iter();
    let headers = headers.map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers: String = headers.collect();
    let body = prepared.body.as_deref().unwrap_or_default();
    let answer = http::send(address, &method, &path, &headers, body).await;
    let answer = answer.unwrap();
    Answered {
        status: answer.status,
        body: answer.json(),
    }
}
