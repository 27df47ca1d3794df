//! Tests of start and end: addresses, `admin.addr`, and how the client finds an instance or reports
//! that none runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use windvane_admin::view::Status;
use windvane_admin::{
    Admin, Heartbeat, Metrics, Query, QueryError, Served, Server, Settings, StartError, Token,
    TokenSource,
};

use crate::instance::{TOKEN, published, start, token};

fn served() -> Served {
    Served {
        published: watch::channel(Arc::new(published())).1,
        steer: mpsc::channel(1).0,
        heartbeat: Heartbeat::new(),
        metrics: Metrics::detached(),
    }
}

fn source() -> TokenSource {
    TokenSource::Token(token())
}

async fn not_running(data_dir: &Path) {
    let error = Admin::in_data_dir(data_dir, source()).await.unwrap_err();
    assert!(matches!(error, QueryError::NotRunning(_)), "{error}");
    assert_eq!(error.exit_code(), 3);
}

#[tokio::test]
async fn admin_addr_contains_the_address_while_the_server_runs() {
    let instance = start().await;
    let path = instance.data_dir.path().join("admin.addr");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{}\n", instance.server.address()));
    assert_ne!(instance.server.address().port(), 0);
    let admin = Admin::in_data_dir(instance.data_dir.path(), source()).await;
    assert_eq!(admin.unwrap().address(), instance.server.address());
    instance.server.stop().await;
    assert!(!path.exists());
    not_running(instance.data_dir.path()).await;
}

#[tokio::test]
async fn addresses_beyond_this_machine_are_refused_unless_exposed() {
    let data_dir = tempfile::tempdir().unwrap();
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9800"] {
        let mut settings = Settings::new(data_dir.path());
        settings.listen = listen.parse().unwrap();
        let error = Server::start(settings, token(), served())
            .await
            .unwrap_err();
        assert!(matches!(error, StartError::NotLoopback(_)), "{error}");
        assert!(error.to_string().contains(listen), "{error}");
    }
    assert!(!data_dir.path().join("admin.addr").exists());
    let mut settings = Settings::new(data_dir.path());
    settings.listen = "0.0.0.0:0".parse().unwrap();
    settings.expose = true;
    let server = Server::start(settings, token(), served()).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn errors_name_a_used_port_and_a_missing_folder() {
    let bound = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let data_dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(data_dir.path());
    settings.listen = bound.local_addr().unwrap();
    let listen = settings.listen.to_string();
    let error = Server::start(settings, token(), served())
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&listen), "{error}");
    let missing = data_dir.path().join("missing");
    let error = Server::start(Settings::new(&missing), token(), served())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("data_dir"), "{error}");
}

#[tokio::test]
async fn a_file_of_a_dead_process_means_not_running() {
    let data_dir = tempfile::tempdir().unwrap();
    not_running(data_dir.path()).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    fs::write(data_dir.path().join("admin.addr"), format!("{address}\n")).unwrap();
    not_running(data_dir.path()).await;
    fs::write(data_dir.path().join("admin.addr"), "torn").unwrap();
    not_running(data_dir.path()).await;
}

#[tokio::test]
async fn another_program_at_the_address_never_sees_the_token() {
    for says in [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "SSH-2.0-x\r\n",
    ] {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = other.local_addr().unwrap();
        let data_dir = tempfile::tempdir().unwrap();
        fs::write(data_dir.path().join("admin.addr"), address.to_string()).unwrap();
        let receives = async {
            let (mut stream, _) = other.accept().await.unwrap();
            stream.write_all(says.as_bytes()).await.unwrap();
            let mut received = Vec::new();
            let _ = stream.read_to_end(&mut received).await;
            received
        };
        let ((), received) = tokio::join!(not_running(data_dir.path()), receives);
        assert!(!String::from_utf8_lossy(&received).contains(TOKEN));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_instance_is_reported_as_not_answering() {
    // The kernel completes connections, and no process reads: the same as after SIGSTOP.
    let stopped = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = Admin::connect(stopped.local_addr().unwrap(), source()).await;
    let error = error.unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("does not answer"), "{error}");
}

#[tokio::test]
async fn the_server_creates_the_token_and_the_client_reads_it() {
    let data_dir = tempfile::tempdir().unwrap();
    let path = data_dir.path().join("admin.token");
    let made = Token::read_or_create(&path).unwrap();
    let settings = Settings::new(data_dir.path());
    let served = served();
    let server = Server::start(settings, made, served).await.unwrap();
    let source = TokenSource::File(path.clone());
    let admin = Admin::in_data_dir(data_dir.path(), source.clone())
        .await
        .unwrap();
    let status: Status = admin.get(Query::Status).await.unwrap();
    assert_eq!(status, published().status);
    for question in Query::ALL {
        let _: serde_json::Value = admin.get(question).await.unwrap();
    }

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = Admin::in_data_dir(data_dir.path(), source.clone())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
    assert_eq!(error.exit_code(), 1);
    fs::remove_file(&path).unwrap();
    let error = Admin::in_data_dir(data_dir.path(), source)
        .await
        .unwrap_err();
    assert_eq!(
        error.exit_code(),
        1,
        "it runs, but the client has no token: {error}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_token_is_rejected_with_401() {
    let instance = start().await;
    let wrong = TokenSource::Token(Token::from_text(&"x".repeat(32), "test").unwrap());
    let admin = Admin::connect(instance.server.address(), wrong)
        .await
        .unwrap();
    let error = admin.get::<Status>(Query::Status).await.unwrap_err();
    assert!(matches!(error, QueryError::Refused(status, _) if status == 401));
    assert_eq!(error.exit_code(), 1);
}
