//! Runs the simulated venue of the real binary, and calls it with the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary;

/// Longest silence of a stream that still has lines to print.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running venue; dropping the value kills it.
#[derive(Debug)]
pub struct Venue {
    child: Child,
    folder: TempDir,
    line: Value,
}

impl Venue {
    /// Starts a venue on ports that the system chooses, and waits for the line that it prints.
    ///
    /// # Panics
    /// If the venue does not start.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(Path::new("configs/venue-sim.toml"), arguments)
    }

    /// Starts a venue with another configuration.
    ///
    /// # Panics
    /// If the venue does not start.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn start_with(config: &Path, arguments: &[&str]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let mut child = Command::new(binary::path())
            .current_dir(binary::root())
            .args(["venue", "--port", "0", "--config"])
            .arg(config)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the venue starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the venue prints its line");
        std::fs::write(folder.path().join("venue.json"), &line).expect("the line is written");
        Self {
            child,
            folder,
            line: serde_json::from_str(&line).expect("the line is JSON"),
        }
    }

    /// The line that the venue printed at its start.
    pub const fn line(&self) -> &Value {
        &self.line
    }

    /// The file that holds this line.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("venue.json")
    }

    /// The id of its process.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The temporary folder of this venue.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `windvane call` as the venue's first account, with the Solana key of 32 zero bytes.
    ///
    /// # Panics
    /// If the binary cannot be started.
    pub fn call(&self, api: &str, route: &str, parameters: &[String]) -> Output {
        let file = self.file();
        let mut command = Command::new(binary::path());
        command
            .current_dir(binary::root())
            .args([
                "call",
                "--config",
                "configs/venue-sim.toml",
                "--json",
                "--yes",
            ])
            .args(["--api", api, "--venue"])
            .arg(&file)
            .arg(route)
            .args(parameters)
            .env("WINDVANE_SOLANA_KEY", "1".repeat(32));
        #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
        command.output().expect("the call starts")
    }

    /// Makes a call that must succeed, and returns the response.
    ///
    /// # Panics
    /// If the call fails; the message has its stderr.
    #[track_caller]
    pub fn answer(&self, api: &str, route: &str, parameters: &[String]) -> Value {
        let output = self.call(api, route, parameters);
        assert!(
            output.status.success(),
            "{route} {api} {parameters:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout);
        match text.trim() {
            "" => Value::Null,
            #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
            text => serde_json::from_str(text).expect("the response is JSON"),
        }
    }
}

impl Venue {
    /// Kills the venue; the file with its line remains.
    ///
    /// # Panics
    /// If the venue cannot be killed.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn stop(&mut self) {
        self.child.kill().expect("the venue can be killed");
        self.child.wait().expect("the venue has ended");
    }

    /// Sends a POST request to the control port.
    ///
    /// # Panics
    /// If the venue refuses the request.
    pub fn control(&self, path: &str, body: &Value) {
        self.control_request("POST", path, &body.to_string());
    }

    /// Sends a DELETE request to the control port.
    ///
    /// # Panics
    /// If the venue refuses the request.
    pub fn control_delete(&self, path: &str) {
        self.control_request("DELETE", path, "");
    }

    /// The venue's full state of its first account.
    ///
    /// # Panics
    /// If the control port does not return it.
    pub fn account(&self) -> Value {
        self.get_control("/state?account=0")["accounts"][0].take()
    }

    /// The venue's state without the parts that are over, such as closed orders.
    ///
    /// # Panics
    /// If the control port does not return it.
    pub fn whole_state(&self) -> Value {
        self.get_control("/state?brief=true")
    }

    /// The fault switches that are on.
    ///
    /// # Panics
    /// If the control port does not return them.
    pub fn faults(&self) -> Value {
        self.get_control("/faults")
    }

    /// How many requests hit the one switch that counts them; `None` once that switch is over.
    pub fn hits(&self) -> Option<u64> {
        let faults = self.faults();
        let mut rows = faults["switches"].as_array().into_iter().flatten();
        rows.find_map(|row| row["hits"].as_u64())
    }

    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    fn get_control(&self, path: &str) -> Value {
        let answer = self.control_request("GET", path, "");
        let (_, body) = answer
            .split_once("\r\n\r\n")
            .expect("the response has a body");
        serde_json::from_str(body).expect("the response is JSON")
    }

    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    fn control_request(&self, method: &str, path: &str, body: &str) -> String {
        let address = self.line["control"]
            .as_str()
            .expect("the line has the control address");
        let address = address.strip_prefix("http://").unwrap_or(address);
        let mut stream = TcpStream::connect(address).expect("the control port listens");
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}")
            .expect("the request is sent");
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .expect("the venue responds");
        assert!(
            answer.starts_with("HTTP/1.1 200"),
            "{path} {body}: {answer}"
        );
        answer
    }
}

/// A running `windvane watch --json`; dropping the value kills it.
#[derive(Debug)]
pub struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Venue {
    /// Starts `windvane watch` as the venue's first account.
    ///
    /// # Panics
    /// If the binary cannot be started.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn watch(&self, arguments: &[&str]) -> Watch {
        let mut child = Command::new(binary::path())
            .current_dir(binary::root())
            .args(["watch", "--json", "--venue"])
            .arg(self.file())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the watch starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines();
            lines
                .map_while(Result::ok)
                .all(|line| sender.send(line).is_ok())
        });
        Watch { child, lines }
    }
}

impl Watch {
    /// Reads lines until each of these conditions was true for a line, in any order.
    ///
    /// # Panics
    /// If the output ends before that, or is silent for [`PATIENCE`].
    pub fn until_all(&mut self, wanted: &[&dyn Fn(&Value) -> bool]) {
        let mut left: Vec<_> = wanted.to_vec();
        while !left.is_empty() {
            let line = self.line();
            left.retain(|is_it| !is_it(&line));
        }
    }

    /// Reads lines until this condition is true for a line, and returns that line.
    ///
    /// # Panics
    /// If the output ends before that, or is silent for [`PATIENCE`].
    pub fn until(&mut self, is_it: &dyn Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.line();
            if is_it(&line) {
                return line;
            }
        }
    }

    /// Waits for the end of the process; returns its exit code and its stderr.
    ///
    /// # Panics
    /// If it is still printing or running after [`PATIENCE`] of silence.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn end(&mut self) -> (Option<i32>, String) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the watch does not end"),
            }
        }
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().expect("stderr is piped");
        stderr.read_to_string(&mut text).expect("stderr is text");
        let status = self.child.wait().expect("the watch has ended");
        (status.code(), text)
    }

    /// Stops reading stdout and waits for the end of the process; returns its exit code and its
    /// stderr.
    ///
    /// # Panics
    /// If it still runs after [`PATIENCE`].
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn end_unread(&mut self) -> (Option<i32>, String) {
        let mut stderr = self.child.stderr.take().expect("stderr is piped");
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            // The pipe reaches its end when the process ends.
            let read = stderr.read_to_string(&mut text);
            read.map(|_| sender.send(text))
        });
        // Without a receiver, the thread that reads stdout closes it at the next line.
        self.lines = ended;
        let text = self.lines.recv_timeout(PATIENCE);
        let text = text.expect("a watch that nobody reads ends");
        let status = self.child.wait().expect("the watch has ended");
        (status.code(), text)
    }

    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    fn line(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.expect("the watch prints another line");
        serde_json::from_str(&line).expect("a line is JSON")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
