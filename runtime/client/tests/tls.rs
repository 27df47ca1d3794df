//! TLS with certificates that the test creates. It checks which certificates the client trusts over
//! REST and WebSocket, and that the client never falls back to plain text.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[allow(dead_code, reason = "the scripted server is for tests without TLS")]
mod common;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use windvane_client::streams::{Obstacle, SocketEvent, StreamItem};
use windvane_client::tls::{Root, RootsError, roots_file};
use windvane_client::{Addresses, Client, Outcome, RawAnswer, Settings, WaitReason};
use windvane_protocol::route::{self, Surface};
use windvane_protocol::wire::Parameters;

/// A server on loopback, and the authority that signed its certificate.
struct Venue {
    authority: CertifiedIssuer<'static, KeyPair>,
    acceptor: TlsAcceptor,
    listener: TcpListener,
}

impl Venue {
    /// A server whose certificate is for `name`.
    async fn start(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let own = own.signed_by(&key, &authority).unwrap();
        Self {
            authority,
            acceptor: acceptor(own.der().clone(), &key),
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        }
    }

    fn root(&self) -> Root {
        self.authority.der().clone()
    }

    /// Settings of a client that trusts these authorities.
    fn settings(&self, roots: Vec<Root>) -> Settings {
        let address = self.address();
        let mut settings = common::settings(address);
        settings.addresses = Addresses::default()
            .rest(Surface::Spot, &format!("https://{address}"))
            .and_then(|addresses| addresses.ws(Surface::Spot, &format!("wss://{address}")))
            .unwrap();
        settings.tls_roots = roots;
        settings
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// The next connection, after its handshake. Before the handshake no part of a request can
    /// arrive.
    async fn accept(&self) -> io::Result<TlsStream<TcpStream>> {
        let (stream, _) = self.listener.accept().await?;
        self.acceptor.accept(stream).await
    }

    /// The outcome of a request, and the result of its connection.
    async fn received(&self, roots: Vec<Root>) -> (Outcome<RawAnswer>, io::Result<String>) {
        let answer = async {
            let mut stream = self.accept().await?;
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await?;
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).await?;
            Ok(String::from_utf8_lossy(&request[..read]).into_owned())
        };
        tokio::join!(ping(self.settings(roots)), answer)
    }
}

fn acceptor(certificate: Root, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn ping(settings: Settings) -> Outcome<RawAnswer> {
    let client = Client::new(settings).unwrap();
    let route = route::named("spot.ping").unwrap();
    client.call(route, None, &Parameters::new()).await
}

/// The reason of a connection that failed.
fn not_connected(outcome: Outcome<RawAnswer>) -> String {
    let Outcome::Wait(wait) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        wait.advice(),
        "Nothing was sent: check address and network."
    );
    let WaitReason::NoConnection(text) = wait.why else {
        panic!("{wait}")
    };
    text
}

#[tokio::test]
async fn a_venue_with_a_configured_authority_is_accepted() {
    let venue = Venue::start("127.0.0.1").await;
    let (outcome, request) = venue.received(vec![venue.root()]).await;
    let answer = outcome.done().unwrap();
    assert_eq!((answer.status, answer.text.as_str()), (200, "{}"));
    let request = request.unwrap();
    assert!(request.starts_with("GET /api/v3/ping HTTP/1.1\r\n"));
}

#[tokio::test]
async fn an_unknown_authority_is_refused_before_anything_is_sent() {
    let venue = Venue::start("127.0.0.1").await;
    let other = Venue::start("127.0.0.1").await;
    for roots in [vec![], vec![other.root()]] {
        let (outcome, request) = venue.received(roots).await;
        let text = not_connected(outcome);
        assert!(text.contains("invalid peer certificate"), "{text}");
        assert!(request.is_err(), "{request:?}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let venue = Venue::start("venue.example").await;
    let (outcome, request) = venue.received(vec![venue.root()]).await;
    let text = not_connected(outcome);
    assert!(text.contains("not valid for name"), "{text}");
    assert!(request.is_err(), "{request:?}");
}

#[tokio::test]
async fn an_https_address_never_falls_back_to_plain_text() {
    let venue = Venue::start("127.0.0.1").await;
    let hello = async {
        let (mut stream, _) = venue.listener.accept().await.unwrap();
        let mut hello = [0; 1];
        stream.read_exact(&mut hello).await.unwrap();
        // The server answers without TLS.
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        hello
    };
    let (outcome, hello) = tokio::join!(ping(venue.settings(vec![venue.root()])), hello);
    not_connected(outcome);
    assert_eq!(hello, [22], "the client must send a TLS handshake record");
    // The client does not connect again either.
    let again = tokio::time::timeout(Duration::ZERO, venue.listener.accept());
    assert!(again.await.is_err());
}

#[tokio::test]
async fn streams_trust_the_same_authorities_as_requests() {
    let venue = Venue::start("127.0.0.1").await;
    let topics = ["btcusdt@trade".parse().unwrap()];
    let stranger = Client::new(venue.settings(Vec::new())).unwrap();
    let mut unreachable = stranger.market_stream(Surface::Spot, &topics).unwrap();
    assert!(venue.accept().await.is_err());
    let item = unreachable.next().await.unwrap();
    let StreamItem::Failed {
        why: Obstacle::NotOpened { status: None, why },
        ..
    } = item
    else {
        panic!("another item")
    };
    assert!(why.contains("invalid peer certificate"), "{why}");
    drop((unreachable, stranger));

    // The stream of the other client may still try again, but it never connects.
    let client = Client::new(venue.settings(vec![venue.root()])).unwrap();
    let mut stream = client.market_stream(Surface::Spot, &topics).unwrap();
    let peer = loop {
        if let Ok(peer) = venue.accept().await {
            break peer;
        }
    };
    let mut socket = accept_async(peer).await.unwrap();
    let Message::Text(command) = socket.next().await.unwrap().unwrap() else {
        panic!("no command")
    };
    assert!(command.contains("SUBSCRIBE"), "{command}");
    let id: serde_json::Value = serde_json::from_str(&command).unwrap();
    let done = format!("{{\"result\":null,\"id\":{}}}", id["id"]);
    socket.send(Message::text(done)).await.unwrap();
    // The response itself is delivered as a frame.
    let item = loop {
        match stream.next().await.unwrap() {
            StreamItem::Event(_) => {}
            item => break item,
        }
    };
    assert!(
        matches!(item, StreamItem::Connected { .. }),
        "another item before it"
    );
}

#[tokio::test]
async fn a_stream_of_endless_empty_fragments_over_tls_is_ended() {
    let venue = Venue::start("127.0.0.1").await;
    let client = Client::new(venue.settings(vec![venue.root()])).unwrap();
    let (sender, mut events) = mpsc::unbounded_channel();
    let notify = move |event| std::future::ready(sender.send(event).is_ok());
    let socket = client.socket(Surface::Spot, (0, "/ws/one"), notify);
    let _commands = socket.unwrap();
    let socket = accept_async(venue.accept().await.unwrap()).await.unwrap();
    let mut peer = socket.into_inner();
    peer.write_all(b"\x01\x01[").await.unwrap();
    let flood = async { while peer.write_all(&[0; 4_096]).await.is_ok() {} };
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, flood).await.unwrap();
    let opened = events.recv().await.unwrap();
    assert!(matches!(opened, SocketEvent::Opened), "{opened:?}");
    let closed = events.recv().await.unwrap();
    assert!(matches!(closed, SocketEvent::Closed), "{closed:?}");
}

/// The HTTP library does not limit how many interim answers come before an answer. Behind TLS it
/// reads them in parts, and other tasks run between the parts.
#[tokio::test]
async fn endless_interim_answers_over_tls_leave_turns_to_other_tasks() {
    let venue = Venue::start("127.0.0.1").await;
    let mut settings = venue.settings(vec![venue.root()]);
    settings.timeouts.request = Duration::from_secs(2);
    let written = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&written);
    let listener = venue.listener.into_std().unwrap();
    let server = spawn_blocking(move || flood(listener, &venue.acceptor, &counted));
    let (mut seen, mut most) = (0, 0);
    let turns = async {
        loop {
            let now = written.load(Ordering::Relaxed);
            most = most.max(now - seen);
            seen = now;
            tokio::task::yield_now().await;
        }
    };
    let outcome = tokio::select! {
        outcome = ping(settings) => outcome,
        never = turns => never,
    };
    assert!(!matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    server.await.unwrap();
    // The buffers of both sockets may be filled within one turn.
    assert!(seen > 0 && most < 24 << 20, "{most} bytes in one turn");
}

/// Answers the first request with interim answers until the client leaves.
fn flood(listener: std::net::TcpListener, acceptor: &TlsAcceptor, written: &AtomicUsize) {
    let answers = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
    let answering = async {
        let listener = TcpListener::from_std(listener).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        stream.read_u8().await.unwrap();
        while stream.write_all(answers.as_bytes()).await.is_ok() {
            written.fetch_add(answers.len(), Ordering::Relaxed);
        }
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(answering);
}

#[test]
fn roots_are_read_only_from_pem_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authority.pem");
    let absent = roots_file(&path).unwrap_err();
    assert!(absent.to_string().contains("check the path"), "{absent}");
    std::fs::write(&path, "no certificate").unwrap();
    assert!(matches!(roots_file(&path), Err(RootsError::Empty { .. })));
    let key = KeyPair::generate().unwrap();
    std::fs::write(&path, key.serialize_pem()).unwrap();
    assert!(matches!(roots_file(&path), Err(RootsError::Empty { .. })));
    let own = CertificateParams::default().self_signed(&key).unwrap();
    std::fs::write(&path, format!("{0}{0}", own.pem())).unwrap();
    let root = own.der().clone();
    assert_eq!(roots_file(&path).unwrap(), [root.clone(), root]);
    std::fs::write(&path, own.pem().replace("MI", "!!")).unwrap();
    assert!(matches!(roots_file(&path), Err(RootsError::Read { .. })));
}
