//! Tests of the proof over TCP: a program that listens on the old port gets nothing that it can use,
//! and its answers are not believed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windvane_admin::{Admin, Applied, Command, Query, QueryError, TokenSource, Wait};

use crate::instance::{Answer, TOKEN, start, token};

/// What a listener answers to a request; the old listener's text may be used.
type Answers = Box<dyn Fn(&str) -> String + Send>;

/// Listens like an attacker who took the port of a process that was killed. Returns what it hears.
async fn listener(answers: Answers) -> (SocketAddr, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let hears = Arc::clone(&heard);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            hears.lock().unwrap().push_str(&head);
            let answer = answers(&head);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, heard)
}

fn windvane(body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nServer: windvane\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n\
         {body}"
    )
}

fn halted() -> Value {
    json!({"state": "halted", "reason": "", "since_ms": 0, "pending": "", "strategy": null,
        "changes": []})
}

#[tokio::test]
async fn a_listener_that_answers_halted_to_everything_is_not_believed() {
    let (address, heard) = listener(Box::new(|_| windvane(&halted()))).await;
    let error = Admin::connect(address, TokenSource::Token(token()))
        .await
        .unwrap_err();
    assert!(
        matches!(error, QueryError::NotThisInstance { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("is not this instance"),
        "{error}"
    );
    let heard = heard.lock().unwrap();
    assert!(!heard.contains(TOKEN), "{heard}");
    assert!(!heard.to_lowercase().contains("authorization"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_between_client_and_server_cannot_forge_an_answer() {
    let instance = start().await;
    let server = instance.address();
    // It passes challenges on, so that the server proves itself, and answers the command itself.
    let relay = listener(Box::new(move |head| {
        if !head.starts_with("GET /proof") {
            return windvane(&halted());
        }
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let asks = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let mut stream = std::net::TcpStream::connect(server).unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        tokio::task::block_in_place(|| asks.join().unwrap())
    }));
    let (address, heard) = relay.await;
    let source = TokenSource::Token(token());
    let admin = Admin::connect(address, source).await.unwrap();
    let halt = admin.post(Command::Halt, None, Wait::default());
    let error = halt.await.unwrap_err();
    assert!(error.to_string().contains("without the proof"), "{error}");
    assert_eq!(error.exit_code(), 1);
    assert!(!heard.lock().unwrap().contains(TOKEN));
}

/// Reads a head and its body.
async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return request;
            }
        }
        assert!(stream.read_buf(&mut request).await.unwrap() > 0, "{text}");
    }
}

#[tokio::test]
async fn a_request_with_a_proof_works_once() {
    let mut instance = start().await;
    // The client's own request, recorded on its way.
    let server = instance.address();
    let between = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = between.local_addr().unwrap();
    let passes_on = async {
        let mut last = Vec::new();
        // Health, the first proof, the proof of the request, and the request.
        for _ in 0..4 {
            let (mut client, _) = between.accept().await.unwrap();
            last = read_request(&mut client).await;
            let mut onward = TcpStream::connect(server).await.unwrap();
            onward.write_all(&last).await.unwrap();
            let mut answer = Vec::new();
            onward.read_to_end(&mut answer).await.unwrap();
            client.write_all(&answer).await.unwrap();
        }
        last
    };
    let asks = async {
        let admin = Admin::connect(address, TokenSource::Token(token())).await;
        admin
            .unwrap()
            .post(Command::Halt, Some("mm"), Wait::default())
            .await
    };
    let carries_out = async {
        let steer = instance.steered.recv().await.unwrap();
        steer.answer.send(Ok(Applied::default())).unwrap();
        steer.strategy
    };
    let (request, applied, strategy) = tokio::join!(passes_on, asks, carries_out);
    assert!(applied.is_ok(), "{applied:?}");
    assert_eq!(strategy.as_deref(), Some("mm"));
    instance.send(&request).await.assert_refused(401);
    let text = String::from_utf8(request).unwrap();
    let other_strategy = text.replace("\"mm\"", "\"xx\"");
    instance
        .send(other_strategy.as_bytes())
        .await
        .assert_refused(401);
    assert!(instance.steered.try_recv().is_none());
    assert!(!text.contains(TOKEN));
}

#[tokio::test]
async fn a_challenge_needs_a_nonce_and_gives_no_access() {
    let instance = start().await;
    let host = instance.host();
    for query in ["", "?nonce=", "?nonce=12", "?nonce=zz", "?x=1"] {
        let path = format!("/proof{query}");
        let answer = instance.query_with("GET", &path, &[&host], "").await;
        answer.assert_refused(400);
    }
    let path = format!("/proof?nonce={}", "0a".repeat(32));
    let answer = instance.query_with("GET", &path, &[&host], "").await;
    assert_eq!(answer.status, 200);
    let nonce = answer.json()["nonce"].as_str().unwrap().to_owned();
    for mac in ["", "00", &"0".repeat(64)] {
        let authorization = format!("Authorization: Windvane {nonce}:{mac}");
        let answer: Answer = instance
            .query_with("GET", "/api/status", &[&host, &authorization], "")
            .await;
        answer.assert_refused(401);
    }
    // The nonce is still good for the client: a wrong proof does not spend it.
    let admin = Admin::connect(instance.address(), TokenSource::Token(token())).await;
    let _: Value = admin.unwrap().get(Query::Status).await.unwrap();
}
