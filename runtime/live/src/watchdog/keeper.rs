//! The run's side of the watchdog. It performs what `windvane_session::watchdog::Keeper` decides:
//! it starts the watchdog process, passes messages in both directions and kills the process. It has
//! its own thread.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use windvane_client::Client;
use windvane_files::BoundedLines;
use windvane_model::Time;
use windvane_model::live::LiveInput;
use windvane_protocol::route::Surface;

use windvane_session::watchdog::{
    Keeper as Decisions, KeeperInput, KeeperOutput, RunMessage, WatchdogMessage, WatchdogPlan,
};

/// This program's executable, even if the file was replaced since the start.
use super::LINE_BYTES_MAX;

const THIS_PROGRAM: &str = "/proc/self/exe";
/// How long a process may take to end after its pipe closed; then it is killed.
const END: Duration = Duration::from_secs(2);
/// Pause between two checks whether the process has ended.
const LOOK: Duration = Duration::from_millis(10);
/// How long the end of a run waits for the end of the watchdog process.
const RUN_ENDS: Duration = Duration::from_secs(6);

/// How the watchdog process is started: the arguments that give it the same configuration as the
/// run.
#[derive(Clone, Debug, Default)]
pub struct ProcessArguments {
    /// Arguments before the plan.
    pub arguments: Vec<OsString>,
}

/// Keeps one watchdog process running. When this value is dropped, the process acts: it cancels the
/// run's spot orders.
#[derive(Debug)]
pub struct Keeper {
    events: Sender<Event>,
}

#[derive(Debug)]
enum Event {
    Heartbeat(u64),
    /// The run ends normally and waits for the reply.
    End(Sender<()>),
    /// The keeper's value was dropped.
    Dropped,
    Message(u64, WatchdogMessage),
    /// The process closed its end of the pipe, so it has ended.
    Closed(u64),
}

impl Keeper {
    /// Starts the first process. `report` receives what happens to it.
    pub fn start(
        arguments: ProcessArguments,
        plan: WatchdogPlan,
        client: Client,
        report: impl Fn(LiveInput) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (events, inbox) = channel();
        let keeping = Keeping {
            arguments,
            plan,
            client,
            report: Box::new(report),
            events: events.clone(),
            began: Instant::now(),
            decisions: Decisions::new(Time(0)),
            process: None,
            lives: 0,
            ended: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("watchdog".to_owned());
        thread.spawn(move || keeping.run(&inbox))?;
        Ok(Self { events })
    }

    /// Passes a sign of health to the watchdog process.
    pub fn heartbeat(&self, number: u64) {
        let _ = self.events.send(Event::Heartbeat(number));
    }

    /// Ends the process without cancelling any order, and waits for its end.
    pub fn end(&self) {
        let (ended, wait) = channel();
        if self.events.send(Event::End(ended)).is_ok() {
            // Longer than the process is given to end; the thread replies in any case.
            let _ = wait.recv_timeout(RUN_ENDS);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Dropped);
    }
}

struct Keeping {
    arguments: ProcessArguments,
    plan: WatchdogPlan,
    client: Client,
    report: Box<dyn Fn(LiveInput) + Send>,
    events: Sender<Event>,
    /// The start of the time scale of `decisions`.
    began: Instant,
    decisions: Decisions,
    process: Option<(Child, ChildStdin)>,
    /// How many processes have been started so far.
    lives: u64,
    /// Callers that wait for the end of the process.
    ended: Vec<Sender<()>>,
}

impl Keeping {
    fn run(mut self, inbox: &Receiver<Event>) {
        while self.perform() {
            match self.next(inbox) {
                Ok(Event::Heartbeat(number)) => {
                    let stopped_ms = self.stopped_ms();
                    self.give(KeeperInput::Heartbeat { number, stopped_ms });
                }
                Ok(Event::Message(life, message)) if life == self.lives => {
                    self.give(KeeperInput::Message(message));
                }
                Ok(Event::Closed(life)) if life == self.lives && self.process.is_some() => {
                    self.closed();
                }
                Ok(Event::Message(..) | Event::Closed(_)) => {}
                Ok(Event::End(ended)) => {
                    self.ended.push(ended);
                    self.give(KeeperInput::End);
                }
                // The pipe closes together with this thread, and then the process acts.
                Ok(Event::Dropped) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.give(KeeperInput::Timeout),
            }
        }
        for ended in self.ended {
            let _ = ended.send(());
        }
    }

    fn now(&self) -> Time {
        let passed = self.began.elapsed().as_nanos();
        Time(i64::try_from(passed).unwrap_or(i64::MAX))
    }

    fn give(&mut self, input: KeeperInput) {
        self.decisions.handle(self.now(), input);
    }

    fn next(&self, inbox: &Receiver<Event>) -> Result<Event, RecvTimeoutError> {
        match self.decisions.poll_timeout() {
            Some(by) => {
                let left_ns = (by.0 - self.now().0).max(0).unsigned_abs();
                inbox.recv_timeout(Duration::from_nanos(left_ns))
            }
            None => inbox.recv().map_err(RecvTimeoutError::from),
        }
    }

    /// Performs the decisions. Returns whether a process must still be kept.
    fn perform(&mut self) -> bool {
        while let Some(output) = self.decisions.poll_output() {
            match output {
                KeeperOutput::Start { orders_may_rest } => {
                    self.plan.orders_may_rest = orders_may_rest;
                    if let Err(error) = self.spawn() {
                        tracing::error!(
                            %error,
                            "cannot start the watchdog process: spot orders are not sent until one \
                             runs; it is tried again"
                        );
                        self.process_ended();
                    }
                }
                KeeperOutput::SendMessage(message) => {
                    if let Some((_, stdin)) = &mut self.process {
                        // A process that does not read will not reply either, and the decisions
                        // notice that.
                        let _ = write_message(stdin, message);
                    }
                }
                KeeperOutput::Kill => {
                    if let Some((mut child, _)) = self.process.take() {
                        kill(&mut child);
                    }
                    self.process_ended();
                }
                KeeperOutput::Report(input) => (self.report)(input),
                KeeperOutput::Over => return false,
            }
        }
        true
    }

    /// Handles the end of the process: it closed its pipe.
    fn closed(&mut self) {
        if let Some((mut child, _stdin)) = self.process.take() {
            let status = wait(&mut child, END).or_else(|| kill(&mut child));
            tracing::warn!(?status, "the watchdog process of spot orders ended");
        }
        self.process_ended();
    }

    fn process_ended(&mut self) {
        let stopped_ms = self.stopped_ms();
        self.give(KeeperInput::ProcessEnded { stopped_ms });
    }

    fn stopped_ms(&self) -> u64 {
        let stopped = self.client.stopped_for(Surface::Spot).unwrap_or_default();
        u64::try_from(stopped.as_millis()).unwrap_or(u64::MAX)
    }

    fn spawn(&mut self) -> std::io::Result<()> {
        self.lives += 1;
        let plan = serde_json::to_string(&self.plan)?;
        // Secrets that this process erased from its environment.
        let secrets = windvane_config::secrets_line();
        let mut command = Command::new(THIS_PROGRAM);
        command
            .arg0("windvane")
            .arg("watchdog")
            .args(&self.arguments.arguments)
            .arg("--plan")
            .arg(plan);
        if secrets.is_some() {
            command.arg("--secrets-on-stdin");
        }
        let mut child = command
            .env_remove(windvane_config::SECRETS_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The terminal's signals must reach the run alone.
            .process_group(0)
            .spawn()?;
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
        if let (Some(secrets), Some(stdin)) = (secrets, &mut stdin) {
            // A process that ended at once is noticed by its closed pipe.
            let _ = stdin
                .write_all(secrets.as_bytes())
                .and_then(|()| stdin.write_all(b"\n"));
        }
        let (events, life) = (self.events.clone(), self.lives);
        std::thread::spawn(move || {
            for line in BoundedLines::new(stdout?, LINE_BYTES_MAX) {
                if let Ok(message) = serde_json::from_str(&line) {
                    events.send(Event::Message(life, message)).ok()?;
                }
            }
            events.send(Event::Closed(life)).ok()
        });
        let pid = child.id();
        tracing::info!(
            pid,
            "started a watchdog process: it cancels this run's spot orders if the run dies or hangs"
        );
        let missing = || std::io::Error::other("the process has no stdin");
        self.process = Some((child, stdin.ok_or_else(missing)?));
        Ok(())
    }
}

fn write_message(stdin: &mut ChildStdin, message: RunMessage) -> std::io::Result<()> {
    let text = serde_json::to_string(&message)?;
    writeln!(stdin, "{text}")
}

/// Waits for the end of the process, for `at_most`.
fn wait(child: &mut Child, at_most: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + at_most;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

fn kill(child: &mut Child) -> Option<ExitStatus> {
    // It may have ended already.
    let _ = child.kill();
    child.wait().ok()
}
