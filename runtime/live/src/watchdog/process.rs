//! The watchdog process itself: pipes, clock, requests and the file of bans. The session's
//! [`Watchdog`] makes every decision.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use windvane_client::{Client, Settings};
use windvane_client_core::Gateway;
use windvane_files::BoundedLines;
use windvane_model::Surface;
use windvane_session::watchdog::{
    RunMessage, Watchdog, WatchdogEnd, WatchdogInput, WatchdogMessage, WatchdogOutput, WatchdogPlan,
};
use windvane_session::{Exchange, RequestTerms, Requests};

use super::LINE_BYTES_MAX;
use crate::bans;
use crate::clock::Clock;
use crate::http::{Http, RuntimeClient};
use crate::mailbox::{self, Inbox, LoopEvent, Wake};
use crate::signer;

/// How many messages may wait to be written. A run that is stopped reads none.
const WAITING: usize = 64;
/// The process wakes at least this often, even if nothing is due.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// `SIGTTOU` of Linux: a process in the background wrote to the terminal.
const WROTE_TO_TERMINAL: i32 = 22;

/// Why a watchdog process cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum WatchdogError {
    /// The client cannot be made.
    #[error(transparent)]
    Client(#[from] windvane_client::TransportError),
    /// The operating system refuses a resource.
    #[error(
        "the operating system refused a resource of the watchdog process: {0}; spot orders are not \
         watched"
    )]
    System(#[from] std::io::Error),
    /// The venue refuses the watchdog's requests.
    #[error("the venue refuses the watchdog's requests, so spot orders are not watched: {0}")]
    Refused(String),
}

/// Watches a run until the run ends normally or until all of its spot orders are cancelled.
/// `exchange` builds the exchange for a gateway. `signer` is the socket of the signer process; without
/// one, the keys of `settings` sign.
///
/// # Errors
/// The watchdog cannot start, or the venue refuses its requests.
pub async fn watch(
    settings: Settings,
    plan: WatchdogPlan,
    exchange: impl FnOnce(Gateway) -> Box<dyn Exchange>,
    (data_dir, signer): (&Path, Option<&Path>),
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
    let way = RuntimeClient {
        handle: Handle::current(),
        client: client.clone(),
    };
    let (mailbox, inbox) = mailbox::mailbox();
    let signer = signer.map(|socket| signer::connect(socket, &way.handle, &mailbox, |_| {}));
    let post = Post {
        watchdog: Watchdog::new(clock.now(), plan, requests),
        http: Http::new((way.clone(), way), mailbox, clock),
        signer,
        inbox,
        messages: Some(listen()?),
        outbox: message_writer()?,
        clock,
        client,
    };
    match post.keep(data_dir).await {
        WatchdogEnd::Failed(why) => Err(WatchdogError::Refused(why)),
        WatchdogEnd::InOrder | WatchdogEnd::NothingTakenOver | WatchdogEnd::Swept(_) => Ok(()),
    }
}

/// Everything that the watchdog process needs while it watches.
struct Post {
    watchdog: Watchdog,
    http: Http,
    /// Signs in another process; `None` if the keys of this process sign.
    signer: Option<windvane_signer::Client>,
    inbox: Inbox,
    /// Messages of the run; `None` once the run is dead.
    messages: Option<mpsc::UnboundedReceiver<RunMessage>>,
    outbox: SyncSender<WatchdogMessage>,
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
                message = next_message(&mut self.messages) => self.handle_message(message),
                wake = self.inbox.wait(pause) => self.take(wake),
            }
        }
    }

    fn handle_message(&mut self, message: Option<RunMessage>) {
        let now = self.clock.now();
        if let Some(message) = message {
            self.watchdog.handle(now, WatchdogInput::Message(message));
        } else {
            self.messages = None;
            self.watchdog.handle(now, WatchdogInput::RunIsDead);
        }
    }

    fn take(&mut self, wake: Wake) {
        let now = self.clock.now();
        match wake {
            Wake::Event(LoopEvent::CallEnded(id, outcome)) => {
                self.http.remove(id);
                outcome.with_answer(|answer| {
                    let answer = WatchdogInput::Answer(id, answer);
                    self.watchdog.handle(now, answer);
                });
            }
            Wake::Signed((id, prepared)) => {
                let signed = WatchdogInput::Signed(id, prepared);
                self.watchdog.handle(now, signed);
            }
            _ => self.watchdog.handle(now, WatchdogInput::Timeout),
        }
    }

    fn perform(&mut self, data_dir: &Path) {
        while let Some(output) = self.watchdog.poll_output() {
            let now = self.clock.now();
            match output {
                WatchdogOutput::Send(call) => self.http.send(call),
                WatchdogOutput::Sign(id, unsigned) => {
                    if let Some(signer) = &self.signer {
                        signer.sign(id, &unsigned);
                    } else {
                        let prepared = self.client.gateway().sign(&unsigned);
                        let signed = WatchdogInput::Signed(id, prepared);
                        self.watchdog.handle(now, signed);
                    }
                }
                WatchdogOutput::Abandon(id) => {
                    if let Some(outcome) = self.http.abandon(id) {
                        outcome.with_answer(|answer| {
                            let answer = WatchdogInput::Answer(id, answer);
                            self.watchdog.handle(now, answer);
                        });
                    }
                }
                // A run that is stopped does not read. Then the queue is full and the message is
                // lost.
                WatchdogOutput::SendMessage(message) => drop(self.outbox.try_send(message)),
                WatchdogOutput::HeedBans => {
                    bans::heed(&self.client, data_dir);
                    self.watchdog.handle(now, WatchdogInput::BansHeeded);
                }
            }
        }
    }
}

/// The next message of the run; `None` when the run is dead. After that it never completes.
async fn next_message(
    messages: &mut Option<mpsc::UnboundedReceiver<RunMessage>>,
) -> Option<RunMessage> {
    match messages {
        Some(messages) => messages.recv().await,
        None => std::future::pending().await,
    }
}

/// Ignores the terminal's signals. The run handles them, and the processes beside it follow the run.
/// Needs an async runtime.
pub(crate) fn ignore_signals() -> std::io::Result<()> {
    let wrote = SignalKind::from_raw(WROTE_TO_TERMINAL);
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
        wrote,
    ] {
        // A registered signal no longer ends the process, even without a listener.
        drop(signal(kind)?);
    }
    Ok(())
}

/// The messages of the run. The channel closes when the run is dead.
fn listen() -> std::io::Result<mpsc::UnboundedReceiver<RunMessage>> {
    let (messages, received) = mpsc::unbounded_channel();
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    thread.spawn(move || {
        for line in BoundedLines::new(std::io::stdin().lock(), LINE_BYTES_MAX) {
            let Ok(message) = serde_json::from_str(&line) else {
                tracing::error!("cannot read a message of the run; it is ignored");
                continue;
            };
            if messages.send(message).is_err() {
                return;
            }
        }
    })?;
    Ok(received)
}

/// The channel to the run. A run that is stopped does not read, so messages beyond the queue are
/// lost.
fn message_writer() -> std::io::Result<SyncSender<WatchdogMessage>> {
    let (outbox, queued) = sync_channel(WAITING);
    let thread = std::thread::Builder::new().name("stdout".to_owned());
    thread.spawn(move || write_messages(&queued))?;
    Ok(outbox)
}

fn write_messages(queued: &Receiver<WatchdogMessage>) {
    let mut stdout = std::io::stdout();
    while let Ok(message) = queued.recv() {
        let written = serde_json::to_string(&message)
            .map_err(std::io::Error::from)
            .and_then(|text| writeln!(stdout, "{text}"))
            .and_then(|()| stdout.flush());
        if written.is_err() {
            // The run no longer reads. Its death shows on stdin too.
            return;
        }
    }
}
