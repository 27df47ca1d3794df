//! Tests with clients that hold connections. Time is virtual: it advances when no task has work.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::instance::{Answer, Instance, authorization, published, start};

async fn half(instance: &Instance, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(instance.server.address()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(start_paused = true)]
async fn a_missing_head_ends_the_connection() {
    let instance = start().await;
    for text in [
        "",
        "GET /health HT",
        "GET /health HTTP/1.1\r\nHost: localhost\r\n",
    ] {
        let start = Instant::now();
        let mut stream = half(&instance, text).await;
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(30), "{text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_body_is_refused_and_commands_nothing() {
    let mut instance = start().await;
    let (host, token) = (instance.host(), authorization());
    let head =
        format!("POST /api/halt HTTP/1.1\r\n{host}\r\n{token}\r\nContent-Length: 30\r\n\r\n{{");
    let mut stream = half(&instance, &head).await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    Answer::parse(&answer).assert_refused(408);
    assert!(instance.steered.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_body_commands_nothing() {
    let mut instance = start().await;
    let (host, token) = (instance.host(), authorization());
    let head =
        format!("POST /api/halt HTTP/1.1\r\n{host}\r\n{token}\r\nContent-Length: 30\r\n\r\n{{");
    let mut stream = half(&instance, &head).await;
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // With or without a response, the connection ends.
    let _ = stream.read_to_end(&mut answer).await;
    assert!(instance.steered.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let instance = start().await;
    let mut large = published();
    // More than both socket buffers hold.
    large.orders = vec![large.orders[0].clone(); 100_000];
    instance.publish.send_replace(Arc::new(large));
    let (host, token) = (instance.host(), authorization());
    let head = format!("GET /api/orders HTTP/1.1\r\n{host}\r\n{token}\r\n\r\n");
    let mut stream = half(&instance, &head).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.ends_with(b"]"), "the response was cut");
}

#[tokio::test(start_paused = true)]
async fn connections_beyond_the_limit_wait_and_are_served_later() {
    let instance = start().await;
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(half(&instance, "GET /he").await);
    }
    let answer = instance.request("GET", "/health", "").await;
    assert_eq!(answer.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_slow_clients() {
    let instance = start().await;
    let _held = half(&instance, "GET /he").await;
    // The server accepts the connection before it receives the stop.
    assert_eq!(instance.request("GET", "/health", "").await.status, 200);
    let start = Instant::now();
    instance.server.stop().await;
    assert!(start.elapsed() <= Duration::from_secs(3));
}
