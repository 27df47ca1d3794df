//! HTTP requests over plain sockets, each on its own connection.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared by tests, each with its own part; a panic is how a test fails"
)]

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response as it was received.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}

/// Sends a request; `None` if the connection fails or ends without a response. Each header ends
/// with a line break.
pub async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<Response> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some(Response {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// The response to a request that must succeed.
pub async fn succeed(address: SocketAddr, method: &str, path: &str, body: &str) -> Response {
    let response = send(address, method, path, "", body).await.unwrap();
    assert_eq!(response.status, 200, "{path} {body}: {response:?}");
    response
}

/// The JSON at a path.
pub async fn get(address: SocketAddr, path: &str) -> Value {
    succeed(address, "GET", path, "").await.json()
}

/// Performs an action through the control port.
pub async fn act(control: SocketAddr, action: &Value) -> Value {
    succeed(control, "POST", "/act", &action.to_string())
        .await
        .json()
}
