//! A running `windvane run` of the real binary, asked and commanded by its own verbs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::admin::Admin;
use crate::binary;
use crate::launch::Launch;
use crate::venue::Venue;

/// The longest that anything may take; building modules the first time is the slowest.
const PATIENCE: Duration = Duration::from_mins(5);
/// A look every so often, so that whoever looks does not take the processor from who works.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A running instance; it is killed with its value.
#[derive(Debug)]
pub struct Instance {
    child: Child,
    data: PathBuf,
    log: PathBuf,
    config: PathBuf,
}

/// What a test runs where it needs nothing else.
const CONFIG: &str = "configs/live-sim.toml";

impl Instance {
    /// Starts `configs/live-sim.toml` against a venue, with its data in this folder.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start(venue: &Venue, data: &Path) -> Self {
        Launch::new(venue, data).start()
    }

    /// Starts another configuration, with these variables in its environment.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start_with(
        venue: &Venue,
        data: &Path,
        config: &Path,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut launch = Launch::new(venue, data).config(config);
        for (name, value) in environment {
            launch = launch.env(name, value);
        }
        launch.start()
    }

    /// Runs the same in the foreground: for one that must not come about.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn refused(venue: &Venue, data: &Path) -> Output {
        Launch::new(venue, data).output()
    }

    /// A process that was started.
    pub(crate) fn of(child: Child, data: &Path, log: &Path, config: &Path) -> Self {
        Self {
            child,
            data: data.to_owned(),
            log: log.to_owned(),
            config: config.to_owned(),
        }
    }

    /// Its admin server, asked without a process of its own.
    pub fn admin(&self) -> Admin {
        Admin::of(&self.data)
    }

    /// The same for an instance whose data folder is on a disk that it alone sees.
    pub fn admin_inside(&self) -> Admin {
        Admin::of(&self.inside())
    }

    /// Its data folder as its own process sees it.
    pub fn inside(&self) -> PathBuf {
        let data = self.data.strip_prefix("/").unwrap_or(&self.data);
        PathBuf::from(format!("/proc/{}/root", self.child.id())).join(data)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Panics
    /// The system does not say.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the system knows its child")
    }

    /// Asks its admin server until this is true, which is answered, with how long it took.
    ///
    /// # Panics
    /// It does not become true in so long, or the instance ends.
    pub fn until_shown(
        &mut self,
        admin: &Admin,
        path: &str,
        within: Duration,
        is_it: &dyn Fn(&Value) -> bool,
    ) -> (Value, Duration) {
        let begin = Instant::now();
        let mut last = None;
        loop {
            if let Some(value) = admin.show(path) {
                if is_it(&value) {
                    return (value, begin.elapsed());
                }
                last = Some(value);
            }
            let ended = self.ended();
            assert!(ended.is_none(), "it ended: {ended:?}\n{}", self.log());
            assert!(
                begin.elapsed() < within,
                "{path} after {within:?}: {last:?}\n{}",
                self.log()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends it a signal, such as `STOP`.
    ///
    /// # Panics
    /// It cannot be sent.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(&pid)
            .status();
        assert!(sent.expect("kill is there").success());
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// It does not end in so long.
    pub fn end_within(mut self, within: Duration) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(begin.elapsed() < within, "it goes on\n{}", self.log());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// `windvane VERB --json` for this instance.
    pub fn verb(&self, verb: &str) -> Output {
        self.say(&[verb])
    }

    /// The same with arguments.
    pub fn say(&self, arguments: &[&str]) -> Output {
        say_in(&self.data, &self.config, arguments)
    }

    /// A verb with arguments that must succeed; its answer.
    ///
    /// # Panics
    /// It fails: with what it said, and the log.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn done(&self, arguments: &[&str]) -> Value {
        let output = self.say(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {output:?}\n{}",
            self.log()
        );
        serde_json::from_slice(&output.stdout).expect("an answer is JSON")
    }

    /// What its server answers to a GET without a token.
    ///
    /// # Panics
    /// It does not answer.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn get(&self, path: &str) -> String {
        let address = std::fs::read_to_string(self.data.join("admin.addr"));
        let address = address.expect("it listens");
        let address = address.trim();
        let mut stream = TcpStream::connect(address).expect("it listens");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it is asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// A verb that must succeed; its answer.
    ///
    /// # Panics
    /// It fails: with what it said, and the log.
    pub fn answer(&self, verb: &str) -> Value {
        self.done(&[verb])
    }

    /// Asks until this is true, which is answered.
    ///
    /// # Panics
    /// It does not become true in five minutes, or the instance ends.
    pub fn until(&mut self, verb: &str, is_it: &dyn Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let output = self.verb(verb);
            if output.status.success()
                && let Ok(value) = serde_json::from_slice(&output.stdout)
                && is_it(&value)
            {
                return value;
            }
            let ended = self.child.try_wait().ok().flatten();
            assert!(ended.is_none(), "it ended: {ended:?}\n{}", self.log());
            assert!(
                begin.elapsed() < PATIENCE,
                "{verb}: {output:?}\n{}",
                self.log()
            );
        }
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// It does not become ready.
    pub fn ready(&mut self) {
        self.until("status", &|status| status["state"] == "ready");
    }

    /// Kills it, as `kill -9` does.
    ///
    /// # Panics
    /// It cannot be killed.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it ends");
    }

    /// Asks it to end, as `kill` does, and waits.
    ///
    /// # Panics
    /// It cannot be asked.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("it ends")
    }

    /// What it logged.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `windvane VERB --json` for the instance of a data folder.
///
/// # Panics
/// It cannot be started.
pub fn verb_in(data: &Path, verb: &str) -> Output {
    say_in(data, Path::new(CONFIG), &[verb])
}

#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
fn say_in(data: &Path, config: &Path, arguments: &[&str]) -> Output {
    Command::new(binary::path())
        .current_dir(binary::root())
        .args(arguments)
        .args(["--json", "--config"])
        .arg(config)
        .arg("--set")
        .arg(format!("run.data_dir={}", data.display()))
        .output()
        .expect("the verb starts")
}
