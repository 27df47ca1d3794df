//! A scripted HTTP server on loopback: it reads one request per step of its script, records it, and
//! performs the step.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windvane_client::{Addresses, Settings};
use windvane_protocol::Brand;
use windvane_protocol::route::Surface;
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network};

/// The server's action for a request.
#[allow(dead_code, reason = "not every test file needs every step")]
pub enum Step {
    /// Writes these bytes; the connection stays open.
    Write(String),
    /// Writes these bytes, then closes the connection.
    WriteAndCut(String),
    /// Writes nothing; the connection stays open.
    Silence,
}

/// A response with a body.
pub fn answer(status: u16, headers: &str, body: &str) -> Step {
    let length = body.len();
    Step::Write(format!(
        "HTTP/1.1 {status} Word\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    ))
}

/// The server: its address, and the requests that it has read.
pub struct Scripted {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// Starts the server. After the last step it still accepts connections and records requests,
    /// but does not answer.
    pub async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let steps = Arc::new(Mutex::new(steps.into_iter()));
        let remembered = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (steps, requests) = (Arc::clone(&steps), Arc::clone(&remembered));
                tokio::spawn(serve(stream, steps, requests));
            }
        });
        Self { address, requests }
    }

    /// The requests that were read so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Settings of a client of this server, with an HMAC key.
    pub fn settings(&self) -> Settings {
        settings(self.address)
    }
}

/// Settings of a client of this address, for spot and futures. The paths of their routes differ.
pub fn settings(address: SocketAddr) -> Settings {
    let addresses = Addresses::default()
        .rest(Surface::Spot, &format!("http://{address}"))
        .and_then(|addresses| addresses.rest(Surface::Futures, &format!("http://{address}")))
        .unwrap();
    let dialect = Dialect {
        brand: Brand::new("svc").unwrap(),
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    let credentials = Credentials {
        api_key: Some(ApiKey::new("key", SecretString::from("secret"))),
        ..Credentials::default()
    };
    Settings::new(addresses, dialect, credentials)
}

async fn serve(
    mut stream: TcpStream,
    steps: Arc<Mutex<std::vec::IntoIter<Step>>>,
    requests: Arc<Mutex<Vec<String>>>,
) {
    while let Some(request) = read_request(&mut stream).await {
        requests.lock().unwrap().push(request);
        let step = steps.lock().unwrap().next();
        match step {
            Some(Step::Write(text)) => stream.write_all(text.as_bytes()).await.unwrap(),
            Some(Step::WriteAndCut(text)) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                return;
            }
            Some(Step::Silence) | None => {}
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let read = stream.read_buf(&mut text).await.ok()?;
        let so_far = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = so_far.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(so_far);
            }
        }
        if read == 0 {
            return None;
        }
    }
}
