//! The run's side: performs what `windvane_session::watchdog::Keeper` decides. It starts the watchdog
//! process, passes words on, and kills it, on a thread of its own.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use windvane_client::Client;
use windvane_model::Time;
use windvane_model::live::LiveInput;
use windvane_protocol::route::Surface;

use windvane_session::watchdog::{
    Keeper as Decisions, KeeperInput, KeeperOutput, RunSays, WatchdogPlan, WatchdogSays,
};

/// This program, even where its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// A process whose pipe is closed ends within this, or is killed.
const END: Duration = Duration::from_secs(2);
/// How often an end is looked for.
const LOOK: Duration = Duration::from_millis(10);
/// The end of the process is waited for so long at the end of the run.
const RUN_ENDS: Duration = Duration::from_secs(6);

/// How the process is started: the arguments that lead it to the same configuration.
#[derive(Clone, Debug, Default)]
pub struct Begin {
    /// Arguments before the plan.
    pub arguments: Vec<OsString>,
}

/// Keeps one watchdog process alive; when its value goes, the process acts.
#[derive(Debug)]
pub struct Keeper {
    events: Sender<Event>,
}

#[derive(Debug)]
enum Event {
    Beat(u64),
    /// The run ends in order; its thread waits for the answer.
    End(Sender<()>),
    /// The keeper's value is gone.
    Left,
    Said(u64, WatchdogSays),
    /// The process closed its end: it is over.
    Closed(u64),
}

impl Keeper {
    /// Starts the first process; what becomes of it is told.
    pub fn start(
        begin: Begin,
        plan: WatchdogPlan,
        client: Client,
        tell: impl Fn(LiveInput) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (events, inbox) = channel();
        let keeping = Keeping {
            begin,
            plan,
            client,
            tell: Box::new(tell),
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

    /// Passes a sign of health on.
    pub fn beat(&self, number: u64) {
        let _ = self.events.send(Event::Beat(number));
    }

    /// Lets the process end without cancelling anything, and waits for it.
    pub fn end(&self) {
        let (ended, wait) = channel();
        if self.events.send(Event::End(ended)).is_ok() {
            // Longer than the process is given; its thread answers in any case.
            let _ = wait.recv_timeout(RUN_ENDS);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Left);
    }
}

struct Keeping {
    begin: Begin,
    plan: WatchdogPlan,
    client: Client,
    tell: Box<dyn Fn(LiveInput) + Send>,
    events: Sender<Event>,
    /// Its time is counted from here.
    began: Instant,
    decisions: Decisions,
    process: Option<(Child, ChildStdin)>,
    /// Processes so far.
    lives: u64,
    /// They wait for the end.
    ended: Vec<Sender<()>>,
}

impl Keeping {
    fn run(mut self, inbox: &Receiver<Event>) {
        while self.perform() {
            match self.next(inbox) {
                Ok(Event::Beat(number)) => {
                    let stopped_ms = self.stopped_ms();
                    self.give(KeeperInput::Beat { number, stopped_ms });
                }
                Ok(Event::Said(life, words)) if life == self.lives => {
                    self.give(KeeperInput::Said(words));
                }
                Ok(Event::Closed(life)) if life == self.lives && self.process.is_some() => {
                    self.closed();
                }
                Ok(Event::Said(..) | Event::Closed(_)) => {}
                Ok(Event::End(ended)) => {
                    self.ended.push(ended);
                    self.give(KeeperInput::End);
                }
                // Its end of the pipe closes with us: it acts.
                Ok(Event::Left) | Err(RecvTimeoutError::Disconnected) => return,
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

    /// Does what was decided; answers whether a process is still to be kept.
    fn perform(&mut self) -> bool {
        while let Some(output) = self.decisions.poll_output() {
            match output {
                KeeperOutput::Start { orders_may_rest } => {
                    self.plan.orders_may_rest = orders_may_rest;
                    if let Err(error) = self.spawn() {
                        tracing::error!(%error, "no watchdog process can be started");
                        self.gone();
                    }
                }
                KeeperOutput::Say(words) => {
                    if let Some((_, stdin)) = &mut self.process {
                        // One that hears nothing answers nothing.
                        let _ = write_word(stdin, words);
                    }
                }
                KeeperOutput::Kill => {
                    if let Some((mut child, _)) = self.process.take() {
                        kill(&mut child);
                    }
                    self.gone();
                }
                KeeperOutput::Tell(input) => (self.tell)(input),
                KeeperOutput::Over => return false,
            }
        }
        true
    }

    /// The process closed its pipe.
    fn closed(&mut self) {
        if let Some((mut child, _stdin)) = self.process.take() {
            let status = wait(&mut child, END).or_else(|| kill(&mut child));
            tracing::warn!(?status, "the watchdog process is over");
        }
        self.gone();
    }

    fn gone(&mut self) {
        let stopped_ms = self.stopped_ms();
        self.give(KeeperInput::Gone { stopped_ms });
    }

    fn stopped_ms(&self) -> u64 {
        let stopped = self.client.stopped_for(Surface::Spot).unwrap_or_default();
        u64::try_from(stopped.as_millis()).unwrap_or(u64::MAX)
    }

    fn spawn(&mut self) -> std::io::Result<()> {
        self.lives += 1;
        let plan = serde_json::to_string(&self.plan)?;
        let mut child = Command::new(THIS_PROGRAM)
            .arg0("windvane")
            .arg("watchdog")
            .args(&self.begin.arguments)
            .arg("--plan")
            .arg(plan)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The terminal's signals are for the run alone.
            .process_group(0)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (events, life) = (self.events.clone(), self.lives);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout?).lines().map_while(Result::ok) {
                if let Ok(said) = serde_json::from_str(&line) {
                    events.send(Event::Said(life, said)).ok()?;
                }
            }
            events.send(Event::Closed(life)).ok()
        });
        let pid = child.id();
        tracing::info!(pid, "a watchdog process of spot orders begins");
        let missing = || std::io::Error::other("the process has no stdin");
        self.process = Some((child, stdin.ok_or_else(missing)?));
        Ok(())
    }
}

fn write_word(stdin: &mut ChildStdin, word: RunSays) -> std::io::Result<()> {
    let text = serde_json::to_string(&word)?;
    writeln!(stdin, "{text}")
}

/// Waits for its end, at most so long.
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
