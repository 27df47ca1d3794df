//! The watchdog process itself: pipes, clock, requests and the file of bans. The session's
//! [`Watchdog`] decides everything.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use windvane_client::{Client, Settings};
use windvane_client_core::Gateway;
use windvane_model::Surface;
use windvane_session::watchdog::{
    RunSays, Watchdog, WatchdogEnd, WatchdogInput, WatchdogOutput, WatchdogPlan, WatchdogSays,
};
use windvane_session::{Exchange, RequestTerms, Requests};

use crate::bans;
use crate::clock::Clock;
use crate::http::{Http, Way};
use crate::mailbox::{self, Happened, Inbox, Waited};

/// Words that may wait to be written; a run that is stopped reads none.
const WAITING: usize = 64;
/// Nothing is due for longer: it looks around at least this often.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// `SIGTTOU` of Linux: a process in the background wrote to the terminal.
const WROTE_TO_TERMINAL: i32 = 22;

/// Why a watchdog process cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum WatchdogError {
    /// No client.
    #[error(transparent)]
    Client(#[from] windvane_client::TransportError),
    /// The operating system refuses something.
    #[error("the operating system refuses: {0}")]
    System(#[from] std::io::Error),
    /// The venue will not let it.
    #[error("the venue lets no watchdog do its work: {0}")]
    Refused(String),
}

/// Watches a run, until it lets go or everything of it is cancelled. `exchange` is that of a gateway.
///
/// # Errors
/// It cannot do its work.
pub async fn watch(
    settings: Settings,
    plan: WatchdogPlan,
    exchange: impl FnOnce(Gateway) -> Box<dyn Exchange>,
    data_dir: &Path,
) -> Result<(), WatchdogError> {
    ignore_signals()?;
    let client = Client::new(settings)?;
    bans::heed(&client, data_dir);
    let clock = Clock::of(client.clock().local_us());
    let within = client.settings().timeouts.request;
    let requests = Requests::new(
        exchange(client.gateway().clone()),
        RequestTerms {
            request: within,
            countdown: within,
        },
        clock.at(client.began()),
        vec![Surface::Spot],
        0,
    );
    let way = Way {
        handle: Handle::current(),
        client: client.clone(),
    };
    let (mailbox, inbox) = mailbox::mailbox();
    let post = Post {
        watchdog: Watchdog::new(clock.now(), plan, requests),
        http: Http::new((way.clone(), way), mailbox, clock),
        inbox,
        words: Some(listen()?),
        say: speak()?,
        clock,
        client,
    };
    match post.keep(data_dir).await {
        WatchdogEnd::Failed(why) => Err(WatchdogError::Refused(why)),
        WatchdogEnd::InOrder | WatchdogEnd::NothingTakenOver | WatchdogEnd::Swept(_) => Ok(()),
    }
}

/// What it watches with.
struct Post {
    watchdog: Watchdog,
    http: Http,
    inbox: Inbox,
    /// What the run says; `None` once it is dead.
    words: Option<mpsc::UnboundedReceiver<RunSays>>,
    say: SyncSender<WatchdogSays>,
    clock: Clock,
    client: Client,
}

impl Post {
    async fn keep(mut self, data_dir: &Path) -> WatchdogEnd {
        loop {
            self.perform(data_dir);
            if let Some(end) = self.watchdog.take_end() {
                return end;
            }
            let now = self.clock.now();
            let due = self.watchdog.poll_timeout();
            let pause = due.map_or(LOOK_EVERY, |due| {
                Duration::from_nanos(due.0.saturating_sub(now.0).max(0).unsigned_abs())
            });
            tokio::select! {
                biased;
                word = next_word(&mut self.words) => self.hear(word),
                waited = self.inbox.wait(pause) => self.take(waited),
            }
        }
    }

    fn hear(&mut self, word: Option<RunSays>) {
        let now = self.clock.now();
        if let Some(word) = word {
            self.watchdog.handle(now, WatchdogInput::Word(word));
        } else {
            self.words = None;
            self.watchdog.handle(now, WatchdogInput::RunIsDead);
        }
    }

    fn take(&mut self, waited: Waited) {
        let now = self.clock.now();
        if let Waited::Happened(Happened::Came(id, came)) = waited {
            self.http.came(id);
            came.with_answer(|answer| {
                let answer = WatchdogInput::Answer(id, answer);
                self.watchdog.handle(now, answer);
            });
        } else {
            self.watchdog.handle(now, WatchdogInput::Timeout);
        }
    }

    fn perform(&mut self, data_dir: &Path) {
        while let Some(output) = self.watchdog.poll_output() {
            let now = self.clock.now();
            match output {
                WatchdogOutput::Send(call) => self.http.send(call),
                WatchdogOutput::Sign(id, unsigned) => {
                    let prepared = self.client.gateway().sign(&unsigned);
                    let signed = WatchdogInput::Signed(id, prepared);
                    self.watchdog.handle(now, signed);
                }
                WatchdogOutput::Abandon(id) => {
                    if let Some(came) = self.http.abandon(id) {
                        came.with_answer(|answer| {
                            let answer = WatchdogInput::Answer(id, answer);
                            self.watchdog.handle(now, answer);
                        });
                    }
                }
                // A run that is stopped does not read: what waits then is lost.
                WatchdogOutput::Say(words) => drop(self.say.try_send(words)),
                WatchdogOutput::HeedBans => {
                    bans::heed(&self.client, data_dir);
                    self.watchdog.handle(now, WatchdogInput::BansHeeded);
                }
            }
        }
    }
}

/// The next word of the run; `None` when it is dead. Never comes after that.
async fn next_word(words: &mut Option<mpsc::UnboundedReceiver<RunSays>>) -> Option<RunSays> {
    match words {
        Some(words) => words.recv().await,
        None => std::future::pending().await,
    }
}
/// A terminal's signals are for the run: what becomes of it decides.
fn ignore_signals() -> std::io::Result<()> {
    let wrote = SignalKind::from_raw(WROTE_TO_TERMINAL);
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
        wrote,
    ] {
        // From now on it does nothing, whether or not anybody asks for it.
        drop(signal(kind)?);
    }
    Ok(())
}

/// What the run says; closed when it is dead.
fn listen() -> std::io::Result<mpsc::UnboundedReceiver<RunSays>> {
    let (words, heard) = mpsc::unbounded_channel();
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    thread.spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(word) = serde_json::from_str(&line) else {
                tracing::error!("a word of the run cannot be read");
                continue;
            };
            if words.send(word).is_err() {
                return;
            }
        }
    })?;
    Ok(heard)
}

/// The way back to the run. A run that is stopped does not read: what waits then is lost.
fn speak() -> std::io::Result<SyncSender<WatchdogSays>> {
    let (say, said) = sync_channel(WAITING);
    let thread = std::thread::Builder::new().name("stdout".to_owned());
    thread.spawn(move || write_words(&said))?;
    Ok(say)
}

fn write_words(said: &Receiver<WatchdogSays>) {
    let mut stdout = std::io::stdout();
    while let Ok(word) = said.recv() {
        let written = serde_json::to_string(&word)
            .map_err(std::io::Error::from)
            .and_then(|text| writeln!(stdout, "{text}"))
            .and_then(|()| stdout.flush());
        if written.is_err() {
            // Nobody reads any more, which stdin tells too.
            return;
        }
    }
}
