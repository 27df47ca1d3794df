//! Builds strategies from source into components that the host accepts. The first test that needs a
//! compiler for WebAssembly makes one, as the first build of a user does.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use windvane_build::{BuildError, BuildRules, build};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Makes a compiler for WebAssembly if this machine has none.
fn make_compiler() {
    let sample = repository().join("strategies/grid");
    build(&sample, &BuildRules::default(), &mut |_| {}).unwrap();
}

fn project(name: &str, source: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [workspace]\n"
    );
    std::fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/lib.rs"), source).unwrap();
    dir
}

#[test]
fn the_sample_strategies_become_components() {
    make_compiler();
    for name in ["market_maker", "ema_cross", "grid"] {
        let dir = repository().join("strategies").join(name);
        let built = build(&dir, &BuildRules::default(), &mut |line| println!("{line}")).unwrap();
        assert_eq!(built.component, std::fs::read(&built.path).unwrap());
        assert_eq!(built.bytes_len, built.component.len());
        assert!(
            built.bytes_len < 150_000,
            "{name}: {} bytes",
            built.bytes_len
        );
        let info = windvane_host::validate(&built.component).unwrap();
        assert!(info.direct, "{name}: the host cannot call it directly");
        let again = build(&dir, &BuildRules::default(), &mut |_| {}).unwrap();
        assert_eq!(built.sha256, again.sha256);
    }
}

/// The exports of a strategy with contract 0.1. A build reads no more than these.
const OLD: &str = r#"
#[unsafe(export_name = "describe")] pub extern "C" fn describe() -> i32 { 0 }
#[unsafe(export_name = "init")] pub extern "C" fn init(_: i32, _: i32, _: i32, _: i32) -> i32 { 0 }
#[unsafe(export_name = "save")] pub extern "C" fn save() -> i32 { 0 }
#[unsafe(export_name = "load")] pub extern "C" fn load(_: i32, _: i32) -> i32 { 0 }
#[unsafe(export_name = "cabi_realloc")]
pub extern "C" fn realloc(_: i32, _: i32, _: i32, _: i32) -> i32 { 0 }
#[unsafe(export_name = "on-event")]
pub extern "C" fn on_event(_: i64, _: i64, _: i32, _: i32, _: i32, _: i64, _: i64, _: i64, _: i64,
    _: i64, _: i64, _: i64) {}
"#;

#[test]
fn an_old_sdk_is_refused_with_the_path_of_its_manifest() {
    make_compiler();
    let dir = project("old", OLD);
    let error = build(dir.path(), &BuildRules::default(), &mut |_| {}).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, BuildError::OldContract { .. }), "{text}");
    for part in ["contract 0.1", "contract 0.2", "windvane-sdk", "Cargo.toml"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_compile_error_shows_the_output_of_the_compiler() {
    make_compiler();
    let dir = project("broken", "pub fn f() -> u32 { \"no number\" }\n");
    let error = build(dir.path(), &BuildRules::default(), &mut |_| {}).unwrap_err();
    let BuildError::Compile { package, tail } = &error else {
        panic!("{error}");
    };
    assert_eq!(package, "broken");
    assert!(
        tail.contains("mismatched types") && tail.contains("src/lib.rs:1"),
        "{tail}"
    );
}

/// A build script that reports its environment and tries to reach keys and data of a run.
const CURIOUS: &str = r#"
use std::{env, fs, net::{TcpStream, UdpSocket}, os::unix::net::{UnixDatagram, UnixStream}, process::Command};
fn main() {
    let mut report = String::new();
    for (name, value) in env::vars() {
        report += &format!("env {name}={value}\n");
    }
    let mut tried = |what: &str, worked: bool| report += &format!("{what} {worked}\n");
    tried("read-data", fs::read(concat!(DATA, "/admin.token")).is_ok());
    tried("list-data", fs::read_dir(DATA).is_ok());
    tried("write-data", fs::write(concat!(DATA, "/new"), "x").is_ok());
    tried("read-key", fs::read(KEY).is_ok());
    tried("read-cache", fs::read_dir(CACHE).is_ok());
    tried("write-cache", fs::write(concat!(CACHE, "/new"), "x").is_ok());
    tried("write-elsewhere", fs::write(ELSEWHERE, "x").is_ok());
    tried("connect", TcpStream::connect(LISTENER).is_ok());
    // What the configuration does not name.
    tried("other-key", fs::read(concat!(HOME, "/keys-of-another/key")).is_ok());
    tried("other-token", fs::read(concat!(HOME, "/other/admin.token")).is_ok());
    tried("list-home", fs::read_dir(HOME).is_ok());
    tried("credentials", fs::read(concat!(HOME, "/.cargo/credentials.toml")).is_ok());
    tried("token-in-sources", fs::read("var/run/admin.token").is_ok());
    tried("shared-memory", fs::write(concat!("/dev/shm/", SHARED), "x").is_ok());
    let bound = UdpSocket::bind("127.0.0.1:0");
    tried("udp", bound.and_then(|socket| socket.send_to(b"key", UDP)).is_ok());
    tried("unix", UnixStream::connect(concat!(HOME, "/other/admin.sock")).is_ok());
    let pair = UnixDatagram::pair();
    tried("datagram", pair.and_then(|(one, _)| one.send_to(b"key", concat!(HOME, "/datagram"))).is_ok());
    let mut left = Command::new("sh");
    left.args(["-c", "(setsid sleep 600 || sleep 600) >/dev/null 2>&1 </dev/null & echo $!"]);
    let left = left.output().unwrap().stdout;
    report += &format!("left {}\n", String::from_utf8_lossy(&left).trim());
    let mut tried = |what: &str, worked: bool| report += &format!("{what} {worked}\n");
    let mut found = false;
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        found |= String::from_utf8_lossy(&environment).contains("key-of-the-run");
    }
    let above = fs::read(format!("/proc/{}/environ", std::os::unix::process::parent_id()));
    found |= String::from_utf8_lossy(&above.unwrap_or_default()).contains("key-of-the-run");
    tried("environment-of-another", found);
    fs::write(format!("{}/report", env::var("OUT_DIR").unwrap()), report).unwrap();
}
"#;

fn rustup_home() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".rustup"));
    let named = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    named.or_else(home).unwrap_or_default()
}

/// The report of the build script in a target folder.
fn report_in(folder: &Path) -> Option<String> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let found = if path.is_dir() {
            report_in(&path)
        } else if path.ends_with("report") {
            std::fs::read_to_string(path).ok()
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[test]
fn a_build_script_reaches_no_keys_and_no_data() {
    make_compiler();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for folder in ["data", "keys", "cache/windvane/compiled"] {
        std::fs::create_dir_all(path(folder)).unwrap();
    }
    std::fs::write(path("data/admin.token"), "token").unwrap();
    std::fs::write(path("keys/key"), "key").unwrap();
    // The toolchain of this machine.
    let own = windvane_build::cache_folder().unwrap().join("toolchain");
    std::os::unix::fs::symlink(own, path("cache/windvane/toolchain")).unwrap();
    // Another instance, and keys that the configuration does not name.
    for folder in ["home/other", "home/keys-of-another", "home/.cargo"] {
        std::fs::create_dir_all(path(folder)).unwrap();
    }
    std::fs::write(path("home/keys-of-another/key"), "key").unwrap();
    std::fs::write(path("home/other/admin.token"), "token").unwrap();
    std::fs::write(path("home/.cargo/credentials.toml"), "").unwrap();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let unix = UnixListener::bind(path("home/other/admin.sock")).unwrap();
    let datagram = UnixDatagram::bind(path("home/datagram")).unwrap();
    let source = project("curious", "pub fn f() {}\n");
    let in_sources = source.path().join("var/run");
    std::fs::create_dir_all(&in_sources).unwrap();
    std::fs::write(in_sources.join("admin.token"), "token").unwrap();
    let shared = format!("windvane-test-{}", std::process::id());
    let paths = [
        ("DATA", path("data")),
        ("CACHE", path("cache/windvane/compiled")),
        ("KEY", path("keys/key")),
        ("ELSEWHERE", path("elsewhere")),
        ("HOME", path("home")),
        ("SHARED", PathBuf::from(&shared)),
        ("LISTENER", socket.local_addr().unwrap().to_string().into()),
        ("UDP", udp.local_addr().unwrap().to_string().into()),
    ];
    let mut text = CURIOUS.to_owned();
    for (name, value) in paths {
        text = text.replace(name, &format!("{:?}", value.display().to_string()));
    }
    std::fs::write(source.path().join("build.rs"), text).unwrap();
    let config = format!(
        "[run]\ndata_dir = {:?}\n[account]\napi_key = {{ env = \"WINDVANE_API_KEY\" }}\n\
         api_secret = {{ file = {:?} }}\n\
         [[strategy]]\nid = \"mm\"\nmodule = {:?}\ninstruments = [\"futures:BTCUSDT\"]\n",
        path("data"),
        path("keys/key"),
        source.path()
    );
    std::fs::write(path("c.toml"), config).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_windvane"))
        .args(["check", "--config"])
        .arg(path("c.toml"))
        .env("WINDVANE_API_KEY", "key-of-the-run")
        .env("XDG_CACHE_HOME", path("cache"))
        .env("HOME", path("home"))
        .env("CARGO_HOME", path("home/.cargo"))
        .env("RUSTUP_HOME", rustup_home())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let report = report_in(&source.path().join("target"));
    let report = report.unwrap_or_else(|| panic!("the build script did not run: {printed}"));
    let _ = std::fs::remove_file(Path::new("/dev/shm").join(shared));
    let left = report.lines().find_map(|line| line.strip_prefix("left "));
    let left = left.unwrap();
    let is_left = Path::new("/proc").join(left).exists();
    if is_left {
        let _ = std::process::Command::new("kill").arg(left).status();
    }
    assert!(
        !left.is_empty() && !is_left,
        "a process outlived the build: {report}"
    );
    for is_blocking in [
        udp.set_nonblocking(true),
        unix.set_nonblocking(true),
        datagram.set_nonblocking(true),
    ] {
        is_blocking.unwrap();
    }
    assert!(udp.recv(&mut [0; 8]).is_err() && datagram.recv(&mut [0; 8]).is_err());
    assert!(unix.accept().is_err());
    assert!(!report.contains("key-of-the-run"), "{report}");
    assert!(report.contains("env PATH="), "{report}");
    for tried in [
        "read-data",
        "list-data",
        "write-data",
        "read-key",
        "read-cache",
        "write-cache",
        "write-elsewhere",
        "connect",
        "other-key",
        "other-token",
        "list-home",
        "credentials",
        "token-in-sources",
        "shared-memory",
        "udp",
        "unix",
        "datagram",
        "environment-of-another",
    ] {
        assert!(
            report.contains(&format!("{tried} false\n")),
            "{tried}: {report}"
        );
    }
}

#[test]
fn a_module_without_the_contract_is_refused() {
    make_compiler();
    let dir = project(
        "foreign",
        "#[unsafe(no_mangle)]\npub extern \"C\" fn f() -> i32 { 1 }\n",
    );
    let error = build(dir.path(), &BuildRules::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, BuildError::NotAStrategy { .. }), "{error}");
    assert!(error.to_string().contains("foreign"), "{error}");
}
