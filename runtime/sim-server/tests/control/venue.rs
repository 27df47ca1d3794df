//! A server for each test, and a client that uses only sockets.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use windvane_protocol::sign::hmac::hex_hmac;
use windvane_sim_server::{Running, Settings, start};

use crate::http::{Response, send};

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub struct Venue {
    pub running: Running,
}

impl Venue {
    pub async fn start() -> Self {
        let running = start(Settings::default()).await.unwrap();
        Self { running }
    }

    pub async fn control(&self, method: &str, path: &str, body: &str) -> Response {
        let address = self.running.addresses.control;
        send(address, method, path, "", body).await.unwrap()
    }

    /// Turns a switch on and returns its id.
    pub async fn fault(&self, switch: Value) -> u64 {
        let answer = self.control("POST", "/faults", &switch.to_string()).await;
        assert_eq!(answer.status, 200, "{switch}: {answer:?}");
        answer.json()["id"].as_u64().unwrap()
    }

    pub async fn act(&self, action: Value) -> Value {
        let answer = self.control("POST", "/act", &action.to_string()).await;
        assert_eq!(answer.status, 200, "{action}: {answer:?}");
        answer.json()
    }

    pub async fn state(&self) -> Value {
        self.control("GET", "/state", "").await.json()
    }

    /// Sends a signed request (v1) of the first account.
    pub async fn signed(&self, method: &str, path: &str, params: &str) -> Option<Response> {
        let keys = &self.running.accounts[0];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let params = format!("{params}&timestamp={}", now.as_millis());
        let secret = SecretString::from(keys.api_secret.as_str());
        let signature = hex_hmac(&secret, &[params.as_bytes()]);
        let address = if path.starts_with("/api") {
            self.running.addresses.spot
        } else {
            self.running.addresses.futures
        };
        let path = format!("{path}?{params}&signature={signature}");
        let key = format!("X-MBX-APIKEY: {}\r\n", keys.api_key);
        send(address, method, &path, &key, "").await
    }

    /// Places a futures order far from the market.
    pub async fn place(&self, id: &str) -> Option<Response> {
        let params = format!(
            "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=30000&\
             newClientOrderId={id}"
        );
        self.signed("POST", "/fapi/v1/order", &params).await
    }

    /// Number of futures orders that the venue accepted with this client order id.
    pub async fn accepted(&self, id: &str) -> usize {
        let state = self.state().await;
        let orders = state["accounts"][0]["orders"].as_array().unwrap();
        let named = |order: &&Value| order["client_order_id"] == id;
        orders.iter().filter(named).count()
    }

    /// Opens the futures user stream of the first account.
    pub async fn user_stream(&self) -> Socket {
        let keys = &self.running.accounts[0];
        let key = format!("X-MBX-APIKEY: {}\r\n", keys.api_key);
        let address = self.running.addresses.futures;
        let answer = send(address, "POST", "/fapi/v1/listenKey", &key, "")
            .await
            .unwrap();
        let listen_key = answer.json()["listenKey"].as_str().unwrap().to_owned();
        let url = format!("ws://{address}/ws/{listen_key}");
        connect_async(url).await.unwrap().0
    }

    /// Deposits 1, 2, 3 and so on, to distinguish the events. The amounts appear as `bc`.
    pub async fn deposits(&self, amounts: std::ops::RangeInclusive<u32>) {
        for amount in amounts {
            let amount = amount.to_string();
            self.act(json!({"act": "deposit", "asset": "USDT", "amount": amount}))
                .await;
        }
    }
}

/// The next message, within 10 seconds.
pub async fn message(socket: &mut Socket) -> Message {
    let next = tokio::time::timeout(Duration::from_secs(10), socket.next());
    next.await.expect("a message in 10 s").unwrap().unwrap()
}

/// The balance changes in the next account updates.
pub async fn changes(socket: &mut Socket, count: usize) -> Vec<String> {
    let mut changes = Vec::new();
    while changes.len() < count {
        if let Message::Text(text) = message(socket).await {
            let event: Value = serde_json::from_str(&text).unwrap();
            if let Some(change) = event["a"]["B"][0]["bc"].as_str() {
                changes.push(change.to_owned());
            }
        }
    }
    changes
}
