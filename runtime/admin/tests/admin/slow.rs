//! Tests with clients that hold connections. Time is virtual: it advances when no task has work.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;
use windvane_admin::{Admin, Applied, Command, TokenSource, Wait};

use crate::instance::{Answer, Instance, authorization, published, start, start_with, token};

async fn half(instance: &Instance, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(instance.address()).await.unwrap();
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
    assert!(instance.steered.try_recv().is_none());
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
    assert!(instance.steered.try_recv().is_none());
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

/// Less than any time limit of the server for a connection.
const AT_ONCE: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn half_open_connections_do_not_delay_a_halt() {
    let mut instance = start().await;
    let (mut held, mut held_on_socket) = (Vec::new(), Vec::new());
    let texts = [
        "",
        "GET /he",
        "POST /api/halt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
    ];
    for at in 0..250 {
        // Some send nothing, some a part of a head, and some a head without its body.
        held.push(half(&instance, texts[at % texts.len()]).await);
        let socket = instance.data_dir.path().join("admin.sock");
        held_on_socket.push(UnixStream::connect(socket).await.unwrap());
    }
    let start = Instant::now();
    let (host, token) = (instance.host(), authorization());
    let halt = format!("POST /api/halt HTTP/1.1\r\n{host}\r\n{token}\r\nContent-Length: 0\r\n\r\n");
    let socket = instance.data_dir.path().to_owned();
    let address = instance.address();
    let carries_out = async {
        for _ in 0..2 {
            let steer = instance.steered.recv().await.unwrap();
            assert_eq!(steer.command, Command::Halt);
            steer.answer.send(Ok(Applied::default())).unwrap();
        }
    };
    let asks = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(halt.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(Answer::parse(&answer).status, 200);
        let no_token = TokenSource::File(socket.join("none"));
        let admin = Admin::in_data_dir(&socket, no_token).await.unwrap();
        admin
            .post(Command::Halt, None, Wait::default())
            .await
            .unwrap();
    };
    tokio::join!(asks, carries_out);
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn requests_that_show_and_are_not_read_do_not_delay_a_halt() {
    let mut instance = start().await;
    let mut large = published();
    // More than the buffers of a Unix socket hold.
    large.orders = vec![large.orders[0].clone(); 10_000];
    instance.publish.send_replace(Arc::new(large));
    let path = instance.data_dir.path().join("admin.sock");
    let mut held = Vec::new();
    for _ in 0..40 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let head = "GET /api/orders HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        held.push(stream);
    }
    let start = Instant::now();
    // The server accepts connections in their order, so this one comes after all of them.
    let refused = instance.by_socket("GET", "/api/status", "").await;
    refused.assert_refused(503);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let head = "POST /api/halt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let steer = instance.steered.recv().await.unwrap();
    steer.answer.send(Ok(Applied::default())).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(Answer::parse(&answer).status, 200);
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_reload_that_takes_minutes_arrives() {
    for by_socket in [true, false] {
        let mut instance = start().await;
        let data_dir = instance.data_dir.path().to_owned();
        if !by_socket {
            std::fs::remove_file(data_dir.join("admin.sock")).unwrap();
        }
        let builds = async {
            let steer = instance.steered.recv().await.unwrap();
            assert_eq!(steer.command, Command::Reload);
            tokio::time::sleep(Duration::from_mins(9)).await;
            let changes = vec!["mm: module".to_owned()];
            let applied = Applied {
                changes,
                ..Applied::default()
            };
            steer.answer.send(Ok(applied)).unwrap();
        };
        let asks = async {
            let source = TokenSource::Token(token());
            let admin = Admin::in_data_dir(&data_dir, source).await.unwrap();
            admin.reload(None).await.unwrap()
        };
        let (applied, ()) = tokio::join!(asks, builds);
        assert_eq!(applied.changes, ["mm: module"]);
    }
}

#[tokio::test(start_paused = true)]
async fn each_route_has_its_own_time_limit() {
    let mut instance = start_with(|settings| {
        settings.answer_within = Duration::from_millis(20);
        settings.reload_within = Duration::from_secs(2);
    })
    .await;
    let start = Instant::now();
    instance
        .request("POST", "/api/halt", "")
        .await
        .assert_refused(504);
    assert!(start.elapsed() < Duration::from_secs(1));
    instance
        .request("POST", "/api/halt", "{\"wait_ms\": 5000}")
        .await
        .assert_refused(504);
    assert!(start.elapsed() >= Duration::from_secs(5));
    let start = Instant::now();
    instance
        .request("POST", "/api/reload", "")
        .await
        .assert_refused(504);
    assert!(start.elapsed() >= Duration::from_secs(2));
    for path in ["/api/pause", "/api/resume", "/api/reload"] {
        instance
            .request("POST", path, "{\"wait_ms\": 5}")
            .await
            .assert_refused(400);
    }
    let waits = instance.steered.try_recv().map(|steer| steer.wait);
    assert_eq!(waits, Some(Duration::ZERO));
    let waits = instance.steered.try_recv().map(|steer| steer.wait);
    assert_eq!(waits, Some(Duration::from_secs(5)));
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
