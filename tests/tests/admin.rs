//! The operator reaches a running instance, and nobody else does: the socket, the TCP address with
//! its token, connections that only occupy places, a program on the port of a process that was
//! killed, and the report of a halt.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::Permissions;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::instance::{Instance, verb_in};
use windvane_tests::launch::Launch;
use windvane_tests::processes;
use windvane_tests::venue::Venue;

const PATIENCE: Duration = Duration::from_mins(5);

fn started(venue: &Venue, settings: &[&str]) -> Instance {
    let mut launch = Launch::new(venue, &venue.folder().join("data"));
    launch = launch.modules(&["market_maker", "ema_cross"]);
    for setting in settings {
        launch = launch.set(setting);
    }
    let mut instance = launch.start();
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/status", PATIENCE, &|_| true);
    instance
}

/// Waits until own orders rest at the venue.
fn trading(instance: &mut Instance) {
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/orders", PATIENCE, &|orders| {
        let mut rows = orders.as_array().unwrap().iter();
        rows.any(|row| row["status"] == "NEW" && row["strategy"] == "maker")
    });
}

fn status_of(answer: Option<String>) -> String {
    let answer = answer.unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn without_a_tcp_address_there_is_only_a_private_socket() {
    let venue = Venue::start(&["--seed", "150"]);
    let data = venue.folder().join("data");
    let instance = started(&venue, &[]);
    let names = || {
        let entries = std::fs::read_dir(&data).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("admin.")).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["admin.sock"]);
    let mode = std::fs::symlink_metadata(data.join("admin.sock")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    assert!(instance.get("/metrics").contains("windvane_"));
    assert!(instance.verb("status").status.success());
    instance.kill();
    assert_eq!(names(), ["admin.sock"]);
    let verb = verb_in(&data, "halt");
    assert_eq!(verb.status.code(), Some(3), "{verb:?}");

    // The next start replaces the file, and removes it at its end.
    let instance = started(&venue, &[]);
    assert!(instance.verb("status").status.success());
    instance.terminate();
    assert_eq!(names(), Vec::<String>::new());
}

#[test]
fn a_tcp_address_needs_the_token_of_this_start() {
    let venue = Venue::start(&["--seed", "151"]);
    let data = venue.folder().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("admin.token"), "t".repeat(40)).unwrap();
    let mut instance = started(&venue, &["admin.listen=127.0.0.1:0"]);
    instance.ready();
    let admin = instance.admin();
    let token = admin.token().unwrap();
    assert_ne!(token, "t".repeat(40), "each start makes a new token");
    for (path, without) in [
        ("/api/status", "401"),
        ("/metrics", "401"),
        ("/health", "200"),
    ] {
        assert_eq!(status_of(admin.raw_over_tcp("GET", path, None)), without);
        let with = admin.raw_over_tcp("GET", path, Some(&token));
        assert_eq!(status_of(with), "200", "{path}");
    }
    let paused = admin.raw_over_tcp("POST", "/api/pause", Some(&token));
    assert_eq!(status_of(paused), "200");
    // Without the socket, the command proves itself over TCP.
    std::fs::remove_file(data.join("admin.sock")).unwrap();
    assert_eq!(instance.answer("status")["state"], "paused");
    instance.terminate();
    for name in ["admin.token", "admin.addr", "admin.sock"] {
        assert!(!data.join(name).exists(), "{name}");
    }

    let instance = started(
        &venue,
        &["admin.listen=127.0.0.1:0", "admin.open_metrics=true"],
    );
    let admin = instance.admin();
    let metrics = admin.raw_over_tcp("GET", "/metrics", None);
    assert_eq!(status_of(metrics), "200");
    let status = admin.raw_over_tcp("GET", "/api/status", None);
    assert_eq!(status_of(status), "401");
    instance.terminate();
}

/// Listens on the address of a killed instance. A connection of another process may have this port for
/// a moment, and no event tells its end.
fn bound_again(address: &str) -> TcpListener {
    let begin = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Ok(listener) => return listener,
            Err(error) if begin.elapsed() < Duration::from_mins(1) => {
                assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) => panic!("{address}: {error}"),
        }
    }
}

#[test]
fn a_program_on_the_port_of_a_killed_run_is_not_believed() {
    let venue = Venue::start(&["--seed", "152"]);
    let data = venue.folder().join("data");
    let instance = started(&venue, &["admin.listen=127.0.0.1:0"]);
    let (address, token) = (instance.admin().address(), instance.admin().token());
    let (address, token) = (address.unwrap(), token.unwrap());
    instance.kill();
    let listener = bound_again(&address);
    let heard = Arc::new(Mutex::new(String::new()));
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        let halted = json!({"state": "halted", "reason": "", "since_ms": 0, "pending": "",
            "strategy": null, "changes": []})
        .to_string();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            hears.lock().unwrap().push_str(&request);
            let length = halted.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nServer: windvane\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{halted}"
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    // The socket says that nothing runs.
    let verb = verb_in(&data, "halt");
    assert_eq!(verb.status.code(), Some(3), "{verb:?}");
    assert_eq!(*heard.lock().unwrap(), "");
    // Without it, the listener must prove itself.
    std::fs::remove_file(data.join("admin.sock")).unwrap();
    let verb = verb_in(&data, "halt");
    let printed = String::from_utf8_lossy(&verb.stderr).into_owned();
    assert_eq!(verb.status.code(), Some(1), "{printed}");
    assert!(printed.contains("is not this instance"), "{printed}");
    let heard = heard.lock().unwrap();
    assert!(!heard.is_empty() && !heard.contains(&token), "{heard}");
}

/// Another user renames the data folder of a run, and answers in its place.
#[test]
fn a_program_in_a_replaced_data_folder_is_not_believed() {
    let venue = Venue::start(&["--seed", "153"]);
    let outer = venue.folder().join("open");
    std::fs::create_dir(&outer).unwrap();
    let data = outer.join("data");
    let mut instance = Launch::new(&venue, &data)
        .modules(&["market_maker", "ema_cross"])
        .start();
    // A start needs its data folder in its place.
    instance.ready();
    std::fs::set_permissions(&outer, Permissions::from_mode(0o777)).unwrap();
    std::fs::rename(&data, outer.join("gone")).unwrap();
    std::fs::create_dir(&data).unwrap();
    let impostor = UnixListener::bind(data.join("admin.sock")).unwrap();
    impostor.set_nonblocking(true).unwrap();
    for verb in ["halt", "status"] {
        let printed = verb_in(&data, verb);
        let text = String::from_utf8_lossy(&printed.stderr).into_owned();
        assert_eq!(printed.status.code(), Some(2), "{text}");
        for part in [
            "run.data_dir",
            "mode 0777",
            "owner",
            "chmod go-w",
            "nothing was sent",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let connected = impostor.accept().map(|_| ());
    assert_eq!(
        connected.map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock)
    );
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(outer.join("gone"), &data).unwrap();
    std::fs::set_permissions(&outer, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(instance.done(&["halt"])["state"], "halted");
    instance.terminate();
}

/// Another user makes the data folder in a folder for all users before the run does.
#[test]
fn a_data_folder_of_another_user_is_refused_in_commands() {
    const OWNER: u32 = 3_999_998;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    // Only root can play two users.
    if chown(&data, Some(OWNER), None).is_err() {
        return;
    }
    let halt = |user: u32| {
        Command::new(binary::path())
            .args(["halt", "--set"])
            .arg(format!("run.data_dir={}", data.display()))
            .current_dir("/")
            .uid(user)
            .gid(user)
            .output()
    };
    // The program may be in a folder that only root may enter.
    let Ok(refused) = halt(OWNER - 1) else { return };
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(
        text.contains(&format!("belongs to user {OWNER}")) && text.contains("nothing was sent"),
        "{text}"
    );
    // The owner and root find that nothing runs there.
    for user in [OWNER, 0] {
        assert_eq!(halt(user).unwrap().status.code(), Some(3), "user {user}");
    }
}

#[test]
fn a_run_starts_although_another_program_has_its_port() {
    let venue = Venue::start(&["--seed", "154"]);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let mut instance = started(&venue, &[&format!("admin.listen={address}")]);
    let status = instance.until("status", &|status| status["state"] == "ready");
    let problem = status["admin_problem"].as_str().unwrap();
    assert!(problem.contains(&address.to_string()), "{problem}");
    let log = instance.log();
    assert!(
        log.contains("ERROR") && log.contains("could not listen on admin.listen"),
        "{log}"
    );
    assert!(instance.admin().address().is_none());
    drop(other);
    instance.until("status", &|status| status["admin_problem"].is_null());
    assert_eq!(instance.admin().address(), Some(address.to_string()));
    assert_eq!(instance.done(&["halt"])["state"], "halted");
    instance.terminate();
}

/// Connections that send a part of a request.
struct Attack {
    address: String,
    held: Vec<Option<TcpStream>>,
}

fn half_open(address: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_nonblocking(true).ok()?;
    stream.write_all(b"GET /he").ok()?;
    Some(stream)
}

impl Attack {
    /// Opens each connection again that the server has closed.
    fn hold(&mut self) {
        for stream in &mut self.held {
            let is_open = stream.as_mut().is_some_and(|stream| {
                let read = stream.read(&mut [0; 64]);
                read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
            });
            if !is_open {
                *stream = half_open(&self.address);
            }
        }
    }
}

#[test]
fn half_open_connections_do_not_lock_out_halt() {
    let venue = Venue::start(&["--seed", "153"]);
    let mut instance = started(&venue, &["admin.listen=127.0.0.1:0"]);
    trading(&mut instance);
    let admin = instance.admin();
    let address = admin.address().unwrap();
    let mut attack = Attack {
        held: (0..250).map(|_| half_open(&address)).collect(),
        address,
    };
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let attacker = std::thread::spawn(move || {
        while stopped.try_recv().is_err() {
            attack.hold();
            std::thread::yield_now();
        }
    });
    // The client of the tests gives up after two seconds.
    let token = admin.token().unwrap();
    let paused = admin.raw_over_tcp("POST", "/api/pause", Some(&token));
    assert_eq!(status_of(paused), "200");
    let halted = instance.done(&["halt"]);
    assert_eq!(halted["state"], "halted");
    assert_eq!(halted["cancels"]["open"], 0, "{halted}");
    stop.send(()).unwrap();
    attacker.join().unwrap();
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_halt_reports_cancelled_orders() {
    let venue = Venue::start(&["--seed", "154"]);
    let mut instance = started(&venue, &[]);
    trading(&mut instance);
    let halted = instance.done(&["halt"]);
    let cancels = &halted["cancels"];
    let count = |name: &str| cancels[name].as_u64().unwrap();
    assert!(count("orders") > 0, "{halted}");
    assert_eq!(count("open"), 0, "{halted}");
    let over = count("cancelled") + count("filled") + count("ended");
    assert_eq!(over, count("orders"), "{halted}");
    assert_eq!(cancels["still_open"], json!([]));
    assert_eq!(halted["durable"], true);
    assert_eq!(instance.answer("status")["open_orders"], 0);
    let resumed = instance.done(&["resume"]);
    assert_eq!(resumed["cancels"], Value::Null);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_halt_names_orders_that_stay_open() {
    let venue = Venue::start(&["--seed", "155"]);
    let mut instance = started(&venue, &[]);
    trading(&mut instance);
    let deaf = json!({"fault": "unknown", "how": "half_open", "accepted": false,
        "route": "futures.cancel*", "for_ms": 60_000});
    venue.control("/faults", &deaf);
    let output = instance.run_verb(&["halt", "--no-wait"]);
    assert!(output.status.success(), "{output:?}");
    let halted: Value = serde_json::from_slice(&output.stdout).unwrap();
    let open = halted["cancels"]["open"].as_u64().unwrap();
    assert!(open > 0, "{halted}");
    let id = halted["cancels"]["still_open"][0]["client_order_id"]
        .as_str()
        .unwrap();
    assert!(id.starts_with("maker."), "{halted}");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        printed.contains("may still be open at the venue"),
        "{printed}"
    );
    assert!(
        printed.contains(id) && printed.contains("by hand"),
        "{printed}"
    );
}

#[test]
fn a_long_data_folder_has_a_socket_too() {
    let venue = Venue::start(&["--seed", "156"]);
    let data = venue.folder().join("d".repeat(150)).join("data");
    let mut instance = Launch::new(&venue, &data)
        .modules(&["market_maker", "ema_cross"])
        .start();
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/status", PATIENCE, &|_| true);
    assert!(instance.verb("status").status.success());
    assert_eq!(instance.terminate().code(), Some(0));
    assert!(!data.join("admin.sock").exists());
}

#[test]
fn a_halt_during_a_start_is_answered_and_kept() {
    let venue = Venue::start(&["--seed", "95"]);
    let launch = Launch::new(&venue, &venue.folder().join("data")).modules(&["market_maker"]);
    // The system accepts its connections, and nothing is answered.
    processes::signal(&venue.pid(), "-STOP");
    let mut instance = launch.start();
    instance.until("status", &|status| {
        let reason = status["reason"].as_str().unwrap_or_default();
        reason.contains("reading the venue's clock")
    });
    let halted = instance.done(&["halt"]);
    assert_eq!(halted["state"], "halted");
    assert_eq!(halted["durable"], true);
    let pending = halted["pending"].as_str().unwrap();
    assert!(pending.contains("still starts"), "{pending}");
    instance.kill();
    processes::signal(&venue.pid(), "-CONT");
    // The venue answers the next process, which is halted from its begin.
    let mut instance = launch.start();
    instance.until("status", &|status| status["state"] == "halted");
    assert_eq!(venue.account()["accepted"]["total"], 0);
    assert_eq!(instance.terminate().code(), Some(0));
}
