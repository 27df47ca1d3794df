//! The run's side: starts the watchdog process, passes signs of health on, watches that they are
//! answered, and starts another where they are not.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use windvane_client::Client;
use windvane_engine::live::LiveInput;
use windvane_venue::route::Surface;

use windvane_session::watchdog::{RunSays, WatchdogSays};

use super::Plan;

/// This program, even where its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// A sign of health is answered within this.
const ANSWER: Duration = Duration::from_secs(5);
/// One that arms itself, or acts, says something within this.
const SILENT: Duration = Duration::from_mins(2);
/// From the end of one to the start of the next, doubled each time from the first to the second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));
/// One that lived so long was well.
const LIVED: Duration = Duration::from_mins(1);
/// It ends within this once it was let go.
const END: Duration = Duration::from_secs(2);
/// Whoever wakes up so late was stopped.
const STOPPED: Duration = Duration::from_secs(1);
/// How often an end is looked for.
const LOOK: Duration = Duration::from_millis(10);

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
    /// The run ends in order; who waits for it is told.
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
        plan: Plan,
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
            inbox,
            lives: 0,
        };
        let thread = std::thread::Builder::new().name("watchdog".to_owned());
        thread.spawn(move || keeping.run())?;
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
            let _ = wait.recv_timeout(END * 2);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Left);
    }
}

/// How keeping one process ended.
enum Kept {
    /// It is gone.
    Gone,
    /// The run ends, in order or not: there shall be no other.
    Over,
}

struct Keeping {
    begin: Begin,
    plan: Plan,
    client: Client,
    tell: Box<dyn Fn(LiveInput) + Send>,
    events: Sender<Event>,
    inbox: Receiver<Event>,
    /// Processes so far.
    lives: u64,
}

impl Keeping {
    fn run(mut self) {
        let mut pause = PAUSE.0;
        loop {
            let began = Instant::now();
            match self.spawn() {
                Ok((child, stdin)) => match self.keep(child, stdin) {
                    Kept::Gone => (self.tell)(LiveInput::Watchdog { armed: false }),
                    Kept::Over => return,
                },
                Err(error) => tracing::error!(%error, "no watchdog process can be started"),
            }
            if began.elapsed() > LIVED {
                pause = PAUSE.0;
            }
            if self.pause(pause) {
                return;
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    fn spawn(&mut self) -> std::io::Result<(Child, ChildStdin)> {
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
        Ok((child, stdin.ok_or_else(missing)?))
    }

    /// Keeps one process for as long as it answers.
    fn keep(&mut self, mut child: Child, mut stdin: ChildStdin) -> Kept {
        // Something is to be heard of it until then; between signs of health it is silent.
        let mut answer_by = Some(Instant::now() + SILENT);
        let mut acting = false;
        loop {
            match self.next(answer_by) {
                Ok(Event::Beat(number)) => {
                    self.plan.orders_may_rest = true;
                    answer_by = answer_by.or_else(|| Some(Instant::now() + ANSWER));
                    // One that hears nothing answers nothing.
                    let _ = self.pass_on(&mut stdin, number);
                }
                Ok(Event::Said(life, said)) if life == self.lives => {
                    if said == WatchdogSays::Acting && !acting {
                        tracing::warn!("the watchdog process cancels spot orders");
                    }
                    acting = said == WatchdogSays::Acting;
                    answer_by = acting.then(|| Instant::now() + SILENT);
                    self.take(said);
                }
                Ok(Event::Closed(life)) if life == self.lives => {
                    let status = wait(&mut child, END).or_else(|| kill(&mut child));
                    tracing::warn!(?status, "the watchdog process is over");
                    return Kept::Gone;
                }
                Ok(Event::Said(..) | Event::Closed(_)) => {}
                Ok(Event::End(ended)) => {
                    let _ = write_word(&mut stdin, RunSays::End);
                    if wait(&mut child, END).is_none() {
                        tracing::warn!("the watchdog process does not end: it is killed");
                        kill(&mut child);
                    }
                    let _ = ended.send(());
                    return Kept::Over;
                }
                // Its end of the pipe closes with us: it acts.
                Ok(Event::Left) | Err(RecvTimeoutError::Disconnected) => return Kept::Over,
                Err(RecvTimeoutError::Timeout)
                    if answer_by.is_some_and(|by| by.elapsed() > STOPPED) =>
                {
                    // We were stopped ourselves: its answer may be on its way to us.
                    answer_by = Some(Instant::now() + ANSWER);
                }
                Err(RecvTimeoutError::Timeout) => {
                    tracing::error!("the watchdog process does not answer: it is killed");
                    kill(&mut child);
                    return Kept::Gone;
                }
            }
        }
    }

    fn next(&self, by: Option<Instant>) -> Result<Event, RecvTimeoutError> {
        match by {
            Some(by) => {
                let left = by.saturating_duration_since(Instant::now());
                self.inbox.recv_timeout(left)
            }
            None => self.inbox.recv().map_err(RecvTimeoutError::from),
        }
    }

    fn take(&self, said: WatchdogSays) {
        match said {
            WatchdogSays::Armed => (self.tell)(LiveInput::Watchdog { armed: true }),
            WatchdogSays::Heard { number } => (self.tell)(LiveInput::BeatHeard { number }),
            WatchdogSays::Acting => (self.tell)(LiveInput::Watchdog { armed: false }),
        }
    }

    fn pass_on(&self, stdin: &mut ChildStdin, number: u64) -> std::io::Result<()> {
        let stopped = self.client.stopped_for(Surface::Spot).unwrap_or_default();
        let stopped_ms = u64::try_from(stopped.as_millis()).unwrap_or(u64::MAX);
        write_word(stdin, RunSays::Beat { number, stopped_ms })
    }

    /// Waits before the next start; answers whether there shall be none.
    fn pause(&mut self, pause: Duration) -> bool {
        // Whoever begins has questions, and every question makes a ban longer.
        let stopped = self.client.stopped_for(Surface::Spot).unwrap_or_default();
        let until = Instant::now() + pause.max(stopped);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left) {
                Ok(Event::End(ended)) => {
                    let _ = ended.send(());
                    return true;
                }
                Ok(Event::Left) | Err(RecvTimeoutError::Disconnected) => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
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
