//! A running `windvane run` of the real binary, controlled by its own command line verbs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::admin::Admin;
use crate::binary;
use crate::launch::Launch;
use crate::venue::Venue;

/// Longest wait for anything; the first build of the modules is the slowest.
const PATIENCE: Duration = Duration::from_mins(5);
/// Time between two looks, so that looking does not take the processor from the process under test.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Time between two verbs. Each one is a process, which needs more of the processor than a look.
const VERB_EVERY: Duration = Duration::from_millis(50);

/// A running instance; dropping the value kills it.
#[derive(Debug)]
pub struct Instance {
    child: Child,
    data: PathBuf,
    log: PathBuf,
    config: PathBuf,
}

/// The configuration for tests that need no special one.
const CONFIG: &str = "configs/live-sim.toml";

impl Instance {
    /// Starts `configs/live-sim.toml` against a venue, with this data folder.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(venue: &Venue, data: &Path) -> Self {
        Launch::new(venue, data).start()
    }

    /// Starts another configuration, with these environment variables.
    ///
    /// # Panics
    /// If it cannot be started.
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

    /// Runs the same command in the foreground, for a start that must be refused.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn refused(venue: &Venue, data: &Path) -> Output {
        Launch::new(venue, data).output()
    }

    /// Wraps a process that was started.
    pub(crate) fn of(child: Child, data: &Path, log: &Path, config: &Path) -> Self {
        Self {
            child,
            data: data.to_owned(),
            log: log.to_owned(),
            config: config.to_owned(),
        }
    }

    /// A client of its admin server that needs no extra process.
    pub fn admin(&self) -> Admin {
        Admin::of(&self.data)
    }

    /// A client of its admin server, for an instance whose data folder is on a disk that only its
    /// process sees.
    pub fn admin_inside(&self) -> Admin {
        Admin::of(&self.inside())
    }

    /// Its data folder, as its own process sees it.
    pub fn inside(&self) -> PathBuf {
        let data = self.data.strip_prefix("/").unwrap_or(&self.data);
        PathBuf::from(format!("/proc/{}/root", self.child.id())).join(data)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    ///
    /// # Panics
    /// If the system does not report it.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the system knows its child")
    }

    /// Polls its admin server until this condition is true; returns the value and the time it took.
    ///
    /// # Panics
    /// If the condition does not become true within this time, or the instance ends.
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
            assert!(
                ended.is_none(),
                "the instance ended: {ended:?}\n{}",
                self.log()
            );
            assert!(
                begin.elapsed() < within,
                "{path} after {within:?}: {last:?}\n{}",
                self.log()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends a signal to it, such as `STOP`.
    ///
    /// # Panics
    /// If the signal cannot be sent.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(&pid)
            .status();
        assert!(sent.expect("kill can be started").success());
    }

    /// Waits until it ends.
    ///
    /// # Panics
    /// If it does not end within this time.
    pub fn end_within(mut self, within: Duration) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                begin.elapsed() < within,
                "the instance still runs\n{}",
                self.log()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Runs `windvane VERB --json` for this instance.
    pub fn verb(&self, verb: &str) -> Output {
        self.run_verb(&[verb])
    }

    /// Runs a verb with arguments.
    pub fn run_verb(&self, arguments: &[&str]) -> Output {
        run_verb_in(&self.data, &self.config, arguments)
    }

    /// Runs a verb with arguments that must succeed, and returns its output.
    ///
    /// # Panics
    /// If it fails; the message has its output and the log of the instance.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn done(&self, arguments: &[&str]) -> Value {
        let output = self.run_verb(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {output:?}\n{}",
            self.log()
        );
        serde_json::from_slice(&output.stdout).expect("the output is JSON")
    }

    /// The response of its server to a GET request through the socket.
    ///
    /// # Panics
    /// If the server does not respond.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn get(&self, path: &str) -> String {
        self.admin().raw("GET", path).expect("the server responds")
    }

    /// Runs a verb that must succeed, and returns its output.
    ///
    /// # Panics
    /// If it fails; the message has its output and the log of the instance.
    pub fn answer(&self, verb: &str) -> Value {
        self.done(&[verb])
    }

    /// Repeats a verb until this condition is true for its output, and returns the output.
    ///
    /// # Panics
    /// If the condition does not become true within five minutes, or the instance ends.
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
            assert!(
                ended.is_none(),
                "the instance ended: {ended:?}\n{}",
                self.log()
            );
            assert!(
                begin.elapsed() < PATIENCE,
                "{verb}: {output:?}\n{}",
                self.log()
            );
            std::thread::sleep(VERB_EVERY);
        }
    }

    /// Waits until the instance is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn ready(&mut self) {
        let is_ready = |status: &Value| status["state"] == "ready";
        self.until_shown(&self.admin(), "/api/status", PATIENCE, &is_ready);
    }

    /// Waits until its log has a text.
    ///
    /// # Panics
    /// If the text is not there within this time, or the instance ends without it.
    pub fn until_logged(&mut self, text: &str, within: Duration) {
        let begin = Instant::now();
        loop {
            // In this order: the last lines of an instance that ended are in the log.
            let ended = self.ended();
            let log = self.log();
            if log.contains(text) {
                return;
            }
            assert!(ended.is_none(), "the instance ended: {ended:?}\n{log}");
            assert!(
                begin.elapsed() < within,
                "{text:?} is not in the log\n{log}"
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Kills the instance, as `kill -9` does.
    ///
    /// # Panics
    /// If it cannot be killed.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn kill(mut self) {
        self.child.kill().expect("the instance runs");
        self.child.wait().expect("the instance ends");
    }

    /// Asks the instance to end, as `kill` does, and waits until it has ended.
    ///
    /// # Panics
    /// If the signal cannot be sent.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("the instance ends")
    }

    /// The log of the instance.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `windvane VERB --json` for the instance of a data folder.
///
/// # Panics
/// If it cannot be started.
pub fn verb_in(data: &Path, verb: &str) -> Output {
    run_verb_in(data, Path::new(CONFIG), &[verb])
}

#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
fn run_verb_in(data: &Path, config: &Path, arguments: &[&str]) -> Output {
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
