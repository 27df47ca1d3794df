//! A running `windvane run` of the real binary, asked and commanded by its own verbs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary;
use crate::venue::Venue;

/// The longest that anything may take; building modules the first time is the slowest.
const PATIENCE: Duration = Duration::from_mins(5);

/// A running instance; it is killed with its value.
#[derive(Debug)]
pub struct Instance {
    child: Child,
    data: PathBuf,
}

impl Instance {
    /// Starts `configs/live-sim.toml` against a venue, with its data in this folder.
    ///
    /// # Panics
    /// It cannot be started.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn start(venue: &Venue, data: &Path) -> Self {
        std::fs::create_dir_all(data).expect("a folder for its data");
        let log = File::options()
            .create(true)
            .append(true)
            .open(data.join("log"));
        let child = command(venue, data)
            .stderr(Stdio::from(log.expect("a log")))
            .spawn()
            .expect("the instance starts");
        Self {
            child,
            data: data.to_owned(),
        }
    }

    /// Runs the same in the foreground: for one that must not come about.
    ///
    /// # Panics
    /// It cannot be started.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn refused(venue: &Venue, data: &Path) -> Output {
        command(venue, data).output().expect("the instance starts")
    }

    /// `windvane VERB --json` for this instance.
    pub fn verb(&self, verb: &str) -> Output {
        verb_in(&self.data, verb)
    }

    /// A verb that must succeed; its answer.
    ///
    /// # Panics
    /// It fails: with what it said, and the log.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn answer(&self, verb: &str) -> Value {
        let output = self.verb(verb);
        assert!(
            output.status.success(),
            "{verb}: {output:?}\n{}",
            self.log()
        );
        serde_json::from_slice(&output.stdout).expect("an answer is JSON")
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
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(asked.expect("kill is there").success());
        self.child.wait().expect("it ends")
    }

    /// What it logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data.join("log")).unwrap_or_default()
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
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn verb_in(data: &Path, verb: &str) -> Output {
    Command::new(binary::path())
        .current_dir(binary::root())
        .args([verb, "--json", "--config", "configs/live-sim.toml", "--set"])
        .arg(format!("run.data_dir={}", data.display()))
        .output()
        .expect("the verb starts")
}

fn command(venue: &Venue, data: &Path) -> Command {
    let mut command = Command::new(binary::path());
    command
        .current_dir(binary::root())
        .args(["run", "--config", "configs/live-sim.toml", "--venue"])
        .arg(venue.file())
        .arg("--set")
        .arg(format!("run.data_dir={}", data.display()));
    command
}
