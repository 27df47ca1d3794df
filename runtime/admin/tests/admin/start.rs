//! Tests of start and end: addresses, `admin.addr`, and how the client finds an instance or reports
//! that none runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use windvane_admin::view::Status;
use windvane_admin::{
    Admin, Heartbeat, Metrics, Query, QueryError, Served, Server, Settings, StartError, Tcp, Token,
    TokenSource, steering,
};

use crate::instance::{TOKEN, published, start, start_with, tcp, token};

fn served() -> Served {
    Served {
        published: watch::channel(Arc::new(published())).1,
        steer: steering().0,
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
    assert_eq!(text, format!("{}\n", instance.address()));
    assert_ne!(instance.address().port(), 0);
    let socket = instance.data_dir.path().join("admin.sock");
    for remove in [false, true] {
        // Without the socket, the client uses the address.
        if remove {
            fs::remove_file(&socket).unwrap();
        }
        let admin = Admin::in_data_dir(instance.data_dir.path(), source()).await;
        let status: Status = admin.unwrap().get(Query::Status).await.unwrap();
        assert_eq!(status, published().status);
    }
    instance.server.stop().await;
    assert!(!path.exists());
    not_running(instance.data_dir.path()).await;
}

#[tokio::test]
async fn the_socket_needs_no_token_and_leaves_nothing_behind() {
    // A process that was killed left these files.
    let instance = start_with(|settings| {
        let left = |name: &str, text: &str| fs::write(settings.data_dir.join(name), text).unwrap();
        left("admin.addr", "127.0.0.1:1");
        left("admin.sock", "");
        settings.tcp = None;
    })
    .await;
    let data_dir = instance.data_dir.path().to_owned();
    assert_eq!(instance.server.address(), None);
    assert!(!data_dir.join("admin.addr").exists());
    let mode = fs::symlink_metadata(data_dir.join("admin.sock")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    for path in ["/api/status", "/metrics", "/health", "/ready"] {
        let answer = instance.by_socket("GET", path, "").await;
        assert!(matches!(answer.status, 200 | 503), "{path}: {answer:?}");
    }
    let no_token = TokenSource::File(data_dir.join("admin.token"));
    let admin = Admin::in_data_dir(&data_dir, no_token).await.unwrap();
    let _: Status = admin.get(Query::Status).await.unwrap();
    instance.server.stop().await;
    assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 0);
}

#[tokio::test]
async fn a_socket_without_a_process_means_not_running() {
    let data_dir = tempfile::tempdir().unwrap();
    drop(std::os::unix::net::UnixListener::bind(data_dir.path().join("admin.sock")).unwrap());
    // The port of the dead process may belong to another program now, which must not be asked.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap();
    fs::write(data_dir.path().join("admin.addr"), format!("{address}\n")).unwrap();
    not_running(data_dir.path()).await;
    tokio::select! {
        biased;
        _ = other.accept() => panic!("the client connected to the port"),
        () = tokio::task::yield_now() => {}
    }
}

#[tokio::test]
async fn addresses_beyond_this_machine_are_refused_unless_exposed() {
    let data_dir = tempfile::tempdir().unwrap();
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9800"] {
        let mut settings = Settings::new(data_dir.path());
        settings.tcp = Some(tcp(listen));
        let error = Server::start(settings, served()).await.unwrap_err();
        assert!(matches!(error, StartError::NotLoopback(_)), "{error}");
        assert!(error.to_string().contains(listen), "{error}");
    }
    assert!(!data_dir.path().join("admin.addr").exists());
    let mut settings = Settings::new(data_dir.path());
    settings.tcp = Some(Tcp {
        expose: true,
        ..tcp("0.0.0.0:0")
    });
    let server = Server::start(settings, served()).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn the_error_names_a_missing_folder() {
    let data_dir = tempfile::tempdir().unwrap();
    let missing = data_dir.path().join("missing");
    let error = Server::start(Settings::new(&missing), served())
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
    let made = Token::create(&path).unwrap();
    let mut settings = Settings::new(data_dir.path());
    settings.tcp = Some(Tcp::new("127.0.0.1:0".parse().unwrap(), made));
    let served = served();
    let server = Server::start(settings, served).await.unwrap();
    let source = TokenSource::File(path.clone());
    let address = server.address().unwrap();
    let admin = Admin::connect(address, source.clone()).await.unwrap();
    let status: Status = admin.get(Query::Status).await.unwrap();
    assert_eq!(status, published().status);
    for question in Query::ALL {
        let _: serde_json::Value = admin.get(question).await.unwrap();
    }

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = Admin::connect(address, source.clone()).await.unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
    assert_eq!(error.exit_code(), 1);
    fs::remove_file(&path).unwrap();
    let error = Admin::connect(address, source).await.unwrap_err();
    assert_eq!(
        error.exit_code(),
        1,
        "it runs, but the client has no token: {error}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_server_starts_without_a_port_that_another_program_has() {
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap();
    let instance = start_with(|settings| {
        settings.tcp = Some(tcp(&address.to_string()));
        settings.listen_again_after = Duration::from_millis(1);
        fs::write(settings.data_dir.join("admin.addr"), "127.0.0.1:1\n").unwrap();
    })
    .await;
    let data_dir = instance.data_dir.path();
    let file = data_dir.join("admin.addr");
    assert_eq!(instance.server.address(), None);
    assert!(!file.exists(), "nobody may look for the run at the port");
    let admin = Admin::in_data_dir(data_dir, source()).await.unwrap();
    let status: Status = admin.get(Query::Status).await.unwrap();
    let problem = status.admin_problem.unwrap();
    assert!(
        problem.contains(&address.to_string()) && problem.contains("free the port"),
        "{problem}"
    );

    drop(other);
    loop {
        let status: Status = admin.get(Query::Status).await.unwrap();
        if status.admin_problem.is_none() {
            break;
        }
    }
    assert_eq!(instance.server.address(), Some(address));
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{address}\n"));
    let admin = Admin::connect(address, source()).await.unwrap();
    let _: Status = admin.get(Query::Status).await.unwrap();
    instance.server.stop().await;
    assert!(!file.exists());
    not_running(instance.data_dir.path()).await;
}

#[tokio::test]
async fn an_address_of_another_machine_is_an_error() {
    let data_dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(data_dir.path());
    settings.tcp = Some(Tcp {
        expose: true,
        // An address for documentation.
        ..tcp("192.0.2.1:9800")
    });
    let error = Server::start(settings, served()).await.unwrap_err();
    assert!(matches!(error, StartError::Bind { .. }), "{error}");
    assert!(error.to_string().contains("192.0.2.1:9800"), "{error}");
}

#[tokio::test]
async fn a_data_folder_that_others_can_replace_is_a_configuration_error() {
    let folder = tempfile::tempdir().unwrap();
    let outer = folder.path().join("open");
    let data_dir = outer.join("data");
    fs::create_dir_all(&data_dir).unwrap();
    let server = Server::start(Settings::new(&data_dir), served())
        .await
        .unwrap();
    fs::set_permissions(&outer, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Admin::in_data_dir(&data_dir, source()).await.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    for part in [
        "run.data_dir",
        "0777",
        "owner",
        "chmod go-w",
        "nothing was sent",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_with_another_token_sends_nothing() {
    let instance = start().await;
    let wrong = TokenSource::Token(Token::from_text(&"x".repeat(32), "test").unwrap());
    let error = Admin::connect(instance.address(), wrong).await.unwrap_err();
    assert!(
        matches!(error, QueryError::NotThisInstance { .. }),
        "{error}"
    );
    assert_eq!(error.exit_code(), 1);
}
