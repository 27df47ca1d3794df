//! A running instance without an engine, and a client that sends exactly the given bytes.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use windvane_admin::view::{Balance, Mode, Order, Position, State, Status, Strategy};
use windvane_admin::{
    Heartbeat, Metrics, Published, Served, Server, Settings, SteerReceiver, Tcp, Token, steering,
};

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The server, and the binary's side of it.
pub struct Instance {
    pub server: Server,
    pub data_dir: TempDir,
    pub publish: watch::Sender<Arc<Published>>,
    pub steered: SteerReceiver,
    pub heartbeat: Heartbeat,
    pub metrics: Metrics,
}

pub fn token() -> Token {
    Token::from_text(TOKEN, "the test").unwrap()
}

/// A TCP address of the server, with the token of the tests.
pub fn tcp(listen: &str) -> Tcp {
    Tcp::new(listen.parse().unwrap(), token())
}

/// With the socket and a TCP address.
pub async fn start() -> Instance {
    start_with(|_| {}).await
}

pub async fn start_with(change: impl FnOnce(&mut Settings)) -> Instance {
    let data_dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(data_dir.path());
    settings.tcp = Some(tcp("127.0.0.1:0"));
    change(&mut settings);
    let (publish, published) = watch::channel(Arc::new(published()));
    let (steer, steered) = steering();
    let (heartbeat, metrics) = (Heartbeat::new(), Metrics::detached());
    let served = Served {
        published,
        steer,
        heartbeat: heartbeat.clone(),
        metrics: metrics.clone(),
    };
    let server = Server::start(settings, served).await.unwrap();
    Instance {
        server,
        data_dir,
        publish,
        steered,
        heartbeat,
        metrics,
    }
}

pub fn published() -> Published {
    Published {
        status: Status {
            state: State::Ready,
            reason: "everything is known".into(),
            mode: Mode::Live,
            since_ms: 1_700_000_000_000,
            ..Status::default()
        },
        orders: vec![Order {
            instrument: "futures:BTCUSDT".into(),
            strategy: Some("mm".into()),
            client_order_id: "mm.a.1".into(),
            order_id: Some(7),
            side: "BUY".into(),
            price: Some("59000.1".into()),
            qty: Some("0.010".into()),
            executed_qty: "0".into(),
            status: "NEW".into(),
        }],
        positions: vec![Position {
            instrument: "futures:BTCUSDT".into(),
            position_side: "BOTH".into(),
            qty: "-0.5".into(),
            entry_price: Some("60000".into()),
            ..Position::default()
        }],
        balances: vec![Balance {
            surface: "futures".into(),
            asset: "USDT".into(),
            total: "10000".into(),
            available: "9000.5".into(),
        }],
        strategies: vec![Strategy {
            id: "mm".into(),
            realized_pnl: "1.5".into(),
            ..Strategy::default()
        }],
    }
}

/// A response as it was received.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).expect("a status");
        Self {
            status: status.parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut pairs = lines.filter_map(|line| line.split_once(": "));
        let found = pairs.find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(found.1)
    }

    /// Asserts an error with this status that says what is wrong and what to do.
    pub fn assert_refused(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        let json = self.json();
        for field in ["error", "what_to_do"] {
            assert!(!json[field].as_str().unwrap().is_empty(), "{json}");
        }
        assert!(!self.body.contains(TOKEN));
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Answer {
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    Answer::parse(&answer)
}

impl Instance {
    /// Its TCP address.
    pub fn address(&self) -> SocketAddr {
        self.server.address().unwrap()
    }

    pub async fn send(&self, bytes: &[u8]) -> Answer {
        exchange(TcpStream::connect(self.address()).await.unwrap(), bytes).await
    }

    /// Sends a request without a token through the socket.
    pub async fn by_socket(&self, method: &str, path: &str, body: &str) -> Answer {
        let socket = self.data_dir.path().join("admin.sock");
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        exchange(UnixStream::connect(socket).await.unwrap(), text.as_bytes()).await
    }

    /// Sends a request with exactly these header lines and the length of the body.
    pub async fn query_with(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let lines = headers.join("\r\n");
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{lines}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.send(text.as_bytes()).await
    }

    /// Sends a valid request.
    pub async fn request(&self, method: &str, path: &str, body: &str) -> Answer {
        let headers = [self.host(), authorization()];
        self.query_with(method, path, &[&headers[0], &headers[1]], body)
            .await
    }

    pub fn host(&self) -> String {
        format!("Host: {}", self.address())
    }
}

pub fn authorization() -> String {
    format!("Authorization: Bearer {TOKEN}")
}
