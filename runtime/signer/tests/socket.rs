//! Both ends of the signer's socket in one process.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rust_decimal::Decimal;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use windvane_client_core::CalledRoute;
use windvane_client_core::gateway::Unsigned;
use windvane_protocol::Brand;
use windvane_protocol::route::{self, Surface, Version};
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, Prepared, Stamp};
use windvane_signer::client::Trouble;
use windvane_signer::{Client, Limits, Policy, Signer};

/// A hang is detected within this time, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_mins(1);

fn signer() -> Signer {
    let limits = Limits {
        max_quantity: Some(Decimal::ONE),
        ..Limits::default()
    };
    let symbol = (Surface::Futures, "BTCUSDT".to_owned());
    signer_with(Policy::new([(symbol, limits)], None))
}

fn signer_with(policy: Policy) -> Signer {
    let dialect = Dialect {
        brand: Brand::new("svc").unwrap(),
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    let credentials = Credentials {
        api_key: Some(ApiKey::new("name", SecretString::from("secret"))),
        ..Credentials::default()
    };
    Signer::new(dialect, credentials, policy)
}

fn order(quantity: &str) -> Unsigned {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    order_at(quantity, now.as_micros() as u64)
}

fn order_at(quantity: &str, now_us: u64) -> Unsigned {
    let pairs = [
        ("symbol", "BTCUSDT"),
        ("side", "BUY"),
        ("type", "MARKET"),
        ("quantity", quantity),
    ];
    Unsigned {
        called_route: CalledRoute {
            route: route::named("futures.new_order").unwrap(),
            version: Some(Version::V1),
        },
        parameters: pairs.into_iter().collect(),
        stamp: Stamp {
            timestamp_ms: (now_us / 1_000) as i64,
            nonce_us: now_us,
            inner_nonce_us: 1,
        },
    }
}

/// Serves a socket until the returned control socket is dropped.
fn serve(path: &Path) -> (UnixStream, JoinHandle<std::io::Result<()>>) {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).unwrap();
    let (control, theirs) = UnixStream::pair().unwrap();
    (
        control,
        tokio::spawn(signer().serve(listener, theirs, |_| true)),
    )
}

struct User {
    client: Client,
    answers: UnboundedReceiver<(u64, Result<Prepared, String>)>,
    troubles: UnboundedReceiver<Trouble>,
}

impl User {
    fn new(path: PathBuf) -> Self {
        let (answer, answers) = unbounded_channel();
        let (trouble, troubles) = unbounded_channel();
        let client = Client::start(
            path,
            &Handle::current(),
            move |id, result| answer.send((id, result)).unwrap(),
            move |what| {
                let _ = trouble.send(what);
            },
        );
        Self {
            client,
            answers,
            troubles,
        }
    }
}

#[tokio::test]
async fn the_signer_signs_the_same_bytes_and_refuses_what_is_forbidden() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signer.sock");
    let (control, server) = serve(&path);
    let mut user = User::new(path);
    let allowed = order("0.5");
    user.client.sign(1, &allowed);
    user.client.sign(2, &order("1.5"));
    let (first, signed) = user.answers.recv().await.unwrap();
    let (second, refused) = user.answers.recv().await.unwrap();
    let own = signer().sign(&allowed, |_| true).unwrap();
    let signed = signed.unwrap();
    assert_eq!((first, second), (1, 2));
    assert_eq!(
        (own.method, own.path, own.query, own.headers, own.body),
        (
            signed.method,
            signed.path,
            signed.query,
            signed.headers,
            signed.body
        )
    );
    let refused = refused.unwrap_err();
    assert!(refused.contains("max_quantity"), "{refused}");
    user.client.sign(4, &order_at("0.5", 1_700_000_000_000_000));
    let refused = user.answers.recv().await.unwrap().1.unwrap_err();
    assert!(refused.contains("clock"), "{refused}");
    // Without the run, the signer stays while a connection is open.
    drop(control);
    user.client.sign(3, &order("0.5"));
    assert!(user.answers.recv().await.unwrap().1.is_ok());
    drop(user);
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_request_without_a_reply_is_sent_to_the_next_signer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signer.sock");
    // This one accepts, reads, and ends without a reply.
    let listener = UnixListener::bind(&path).unwrap();
    let mut user = User::new(path.clone());
    user.client.sign(1, &order("0.5"));
    let (mut stream, _) = listener.accept().await.unwrap();
    assert!(stream.read(&mut [0; 16]).await.unwrap() > 0);
    drop((stream, listener));
    assert_eq!(user.troubles.recv().await, Some(Trouble::Lost));
    let (_control, _server) = serve(&path);
    let (id, signed) = user.answers.recv().await.unwrap();
    assert_eq!(id, 1);
    assert!(signed.is_ok());
    assert!(!user.client.asked_within(PATIENCE));
}

#[tokio::test]
async fn a_signer_that_does_not_answer_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signer.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut user = User::new(path);
    let (_stream, _) = listener.accept().await.unwrap();
    user.client.sign(1, &order("0.5"));
    let trouble = tokio::time::timeout(PATIENCE, user.troubles.recv()).await;
    assert_eq!(trouble.unwrap(), Some(Trouble::Hangs));
}

#[tokio::test]
async fn thousands_of_requests_at_once_are_signed() {
    const REQUESTS: u64 = 3_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signer.sock");
    let (_control, _server) = serve(&path);
    let mut user = User::new(path);
    user.client.sign(0, &order("0.5"));
    assert!(user.answers.recv().await.unwrap().1.is_ok());
    // Nothing reads the socket meanwhile, because the test has one thread.
    for id in 1..=REQUESTS {
        user.client.sign(id, &order("0.5"));
    }
    for expected in 1..=REQUESTS {
        let (id, signed) = user.answers.recv().await.unwrap();
        assert_eq!(id, expected);
        assert!(signed.is_ok());
    }
    assert!(user.troubles.try_recv().is_err(), "the signer is healthy");
}

#[tokio::test]
async fn bytes_that_are_no_request_close_only_their_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signer.sock");
    let (_control, _server) = serve(&path);
    let mut user = User::new(path.clone());
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[1, 0, 0, 0, 7], &[0; 4]] {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
    }
    user.client.sign(1, &order("0.5"));
    assert!(user.answers.recv().await.unwrap().1.is_ok());
}

#[tokio::test]
async fn an_order_that_nobody_counts_is_not_signed() {
    let symbol = (Surface::Futures, "BTCUSDT".to_owned());
    let policy = Policy::new([(symbol, Limits::default())], Some(2));
    let signer = signer_with(policy);
    let refused = signer.sign(&order("0.5"), |_| false).unwrap_err();
    assert!(refused.contains("counts opening orders"), "{refused}");
    let mut counted = 0;
    let signed = signer.sign(&order("0.5"), |opened| {
        counted += opened;
        true
    });
    assert!(signed.is_ok());
    assert_eq!(counted, 1);
}
