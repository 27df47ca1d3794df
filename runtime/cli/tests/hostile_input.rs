//! Runs the real binary on hostile files and on hostile responses of an exchange: it ends with a
//! sentence, in bounded memory, and its output cannot control a terminal.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Address space of the program, KiB. A response of 200 KB took 11 GB.
const MEMORY_KIB: u64 = 3 << 20;
/// A call that did not end after this time hangs.
const HANG: Duration = Duration::from_mins(2);

/// Runs `windvane` in `dir` with limited memory. It must end by itself.
#[track_caller]
fn windvane(dir: &Path, arguments: &[&str]) -> Output {
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_windvane"))
        .args(arguments)
        .current_dir(dir)
        .env_remove("WINDVANE_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipes = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers = std::thread::spawn(move || {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let other = std::thread::spawn(move || {
            pipes.1.read_to_end(&mut err).unwrap();
            err
        });
        pipes.0.read_to_end(&mut out).unwrap();
        (out, other.join().unwrap())
    });
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > HANG {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = readers.join().unwrap();
    Output {
        status,
        stdout,
        stderr,
    }
}

/// Asserts the exit code and that stderr has one error. Returns the error.
#[track_caller]
fn error(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    let errors: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert_plain(&text);
    errors[0].to_owned()
}

/// Asserts that no character of a text acts on a terminal, apart from line feeds.
#[track_caller]
fn assert_plain(text: &str) {
    let hidden = |letter: char| {
        (letter.is_control() && letter != '\n')
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.chars().any(hidden), "{text:?}");
}

fn pipe(dir: &Path, name: &str) {
    let made = Command::new("mkfifo").arg(dir.join(name)).status();
    assert!(made.unwrap().success());
}

/// An exchange that gives every request the same response.
fn exchange(status: &'static str, body: impl Into<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let body = body.into();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
            while head
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n"
            );
            // The client may close the connection early.
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(&body));
        }
    });
    address
}

fn call(address: SocketAddr, more: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let rest = format!("venue.futures.rest=http://{address}");
    let arguments = ["call", "futures.exchange_info", "--set", &rest];
    windvane(dir.path(), &[&arguments, more].concat())
}

#[test]
fn a_response_of_200_kb_of_brackets_needs_little_memory() {
    let body = "[".repeat(100_000) + &"]".repeat(100_000);
    let address = exchange("200 OK", body);
    let sentence = error(&call(address, &[]), 1);
    assert!(
        sentence.contains("nests 100000 levels of arrays and objects, and at most 128"),
        "{sentence}"
    );
    let output = call(address, &["--json"]);
    error(&output, 1);
    assert!(output.stdout.len() < 1_000);
}

#[test]
fn a_flat_list_far_inside_is_printed_without_indentation() {
    let body = "[".repeat(100) + &"1,".repeat(500_000) + "1" + &"]".repeat(100);
    let output = call(exchange("200 OK", body.clone()), &[]);
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), body.len() + 1);
}

#[test]
fn an_error_of_the_exchange_is_one_line_that_controls_no_terminal() {
    let message = r"x\u001b[2J\u009b31m\r\nerror: halted\u202e\u200b";
    let body = format!(r#"{{"code":-1121,"msg":"{message}"}}"#);
    let sentence = error(&call(exchange("400 Bad Request", body), &[]), 1);
    assert!(
        sentence.contains(r"x\u{1b}[2J\u{9b}31m\r\nerror: halted\u{202e}"),
        "{sentence}"
    );
    let long = format!(r#"{{"code":-1121,"msg":"{}"}}"#, "x".repeat(1 << 20));
    let sentence = error(&call(exchange("400 Bad Request", long), &[]), 1);
    assert!(sentence.len() < 10_000 && sentence.contains(" more bytes]"));
}

#[test]
fn a_response_keeps_its_value_and_controls_no_terminal() {
    let body = "{\"symbol\":\"a\u{9b}31m\u{7f}\u{202e}\\u001b\"}";
    let address = exchange("200 OK", body);
    for more in [&[][..], &["--json"]] {
        let output = call(address, more);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_plain(&text);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&text), read(body));
    }
}

#[test]
fn a_page_instead_of_json_controls_no_terminal() {
    for (status, code) in [("200 OK", None), ("502 Bad Gateway", Some(1))] {
        let page = "<html>\u{1b}[2J\u{9b}\r\nerror: forged\u{202e}</html>";
        let output = call(exchange(status, page), &[]);
        let text = String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat());
        assert_plain(&text.unwrap());
        if let Some(code) = code {
            error(&output, code);
        }
    }
}

#[test]
fn a_pipe_or_a_device_is_no_configuration() {
    let dir = tempfile::tempdir().unwrap();
    pipe(dir.path(), "pipe");
    for (file, what) in [("pipe", "is a pipe"), ("/dev/zero", "is a device")] {
        for verb in ["backtest", "check", "run", "status"] {
            let sentence = error(&windvane(dir.path(), &[verb, "--config", file]), 2);
            assert!(
                sentence.contains(file) && sentence.contains(what),
                "{sentence}"
            );
        }
    }
}

#[test]
fn a_configuration_is_bounded_in_length_and_depth() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, " ".repeat((4 << 20) + 1)).unwrap();
    let sentence = error(
        &windvane(dir.path(), &["backtest", "--config", "c.toml"]),
        2,
    );
    assert!(sentence.contains("at most 4194304 bytes"), "{sentence}");
    for nested in [
        "a = ".to_owned() + &"[".repeat(200_000),
        "a = {a=".repeat(50_000),
    ] {
        std::fs::write(&file, nested).unwrap();
        let sentence = error(
            &windvane(dir.path(), &["backtest", "--config", "c.toml"]),
            2,
        );
        assert!(sentence.contains("c.toml"), "{sentence}");
    }
}

#[test]
fn a_pipe_or_a_device_is_no_module_and_no_recording() {
    let dir = tempfile::tempdir().unwrap();
    pipe(dir.path(), "pipe");
    let generate = ["data", "generate", "--minutes", "1", "--out", "session.gz"];
    assert!(windvane(dir.path(), &generate).status.success());
    std::fs::write(dir.path().join("empty.wasm"), "").unwrap();
    for (file, what) in [("pipe", "is a pipe"), ("/dev/zero", "is a device")] {
        for (data, module) in [("session.gz", file), (file, "empty.wasm")] {
            let config = format!(
                "[backtest]\ndata = [\"{data}\"]\ncache = \"cache\"\n\n[[strategy]]\nid = \"s\"\n\
                 module = \"{module}\"\ninstruments = [\"futures:BTCUSDT\"]\n"
            );
            std::fs::write(dir.path().join("c.toml"), config).unwrap();
            let output = windvane(dir.path(), &["backtest", "--config", "c.toml"]);
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success());
            assert!(
                text.contains(file) && text.contains(what),
                "{data} {module}: {text}"
            );
        }
        let output = windvane(dir.path(), &["data", "list", file]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(what) && !output.status.success(), "{text}");
    }
}

#[test]
fn a_file_name_controls_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let name = "x\u{1b}[2J\nerror: forged\u{202e}.toml";
    error(&windvane(dir.path(), &["backtest", "--config", name]), 2);
    let output = windvane(dir.path(), &["data", "list", name]);
    error(&output, 2);
}
