//! The watchdog process itself: it shows that it can do its work, listens, and acts when nothing is
//! to be heard any more.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use windvane_client::budget::Lane;
use windvane_client::{Client, NotDone, Settings};
use windvane_venue::route::Surface;
use windvane_venue::wire::spot::OpenOrders;

use super::sweep::sweep;
use super::{Plan, Said, Told};
use crate::bans;

/// Words that may wait to be written; a run that is stopped reads none.
const WAITING: usize = 64;
/// After the countdown, a word that is already there is still heard: this process may have been
/// stopped, not the run.
const GRACE: Duration = Duration::from_millis(500);
/// It shows anew that it can do its work.
const PROVE_EVERY: Duration = Duration::from_mins(5);
/// After a proof that failed, doubled each time from the first to the second.
const PROVE_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// Readings of the venue's clock of which the best counts.
const CLOCK_SAMPLES: u8 = 3;
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

/// Why it stopped listening.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// The run ends in order.
    End,
    /// The run is dead.
    Nobody,
    /// No sign of health came for the countdown.
    Silence,
}

/// Watches a run, until it lets go or everything of it is cancelled.
///
/// # Errors
/// It cannot do its work.
pub async fn watch(settings: Settings, plan: Plan, data_dir: &Path) -> Result<(), WatchdogError> {
    ignore_signals()?;
    let client = Client::new(settings)?;
    bans::heed(&client, data_dir);
    let countdown = Duration::from_millis(plan.countdown_ms);
    let mut post = Post {
        client,
        deadline: plan.orders_may_rest.then(|| Instant::now() + countdown),
        countdown,
        quiet_until: Instant::now(),
        words: listen()?,
        say: speak()?,
        plan,
    };
    match post.listen().await {
        Ok(Heard::End) => {
            tracing::info!("the run ends in order: nothing is cancelled");
            return Ok(());
        }
        Ok(Heard::Nobody) if post.deadline.is_none() => {
            tracing::warn!(
                "the run died before it took over spot orders: none is cancelled, for they may be \
                 of another instance"
            );
            return Ok(());
        }
        Ok(Heard::Nobody) => tracing::error!("the run is dead: its spot orders are cancelled"),
        Ok(Heard::Silence) => tracing::error!(
            countdown_ms = post.plan.countdown_ms,
            "no sign of health: the run's spot orders are cancelled"
        ),
        Err(words) => return Err(WatchdogError::Refused(words)),
    }
    // The run may have been told of a ban after its last sign of health.
    bans::heed(&post.client, data_dir);
    let stopped = post.client.stopped_for(Surface::Spot).unwrap_or_default();
    sleep_until(post.quiet_until.max(Instant::now() + stopped)).await;
    let say = post.say;
    let swept = sweep(&post.client, &post.plan, &mut || tell(&say, Said::Acting)).await;
    let orders = swept.map_err(WatchdogError::Refused)?;
    tracing::warn!(orders, "no spot order of the run rests any more");
    Ok(())
}

/// What it watches with.
struct Post {
    client: Client,
    plan: Plan,
    countdown: Duration,
    /// It acts then; `None` before the first sign of health.
    deadline: Option<Instant>,
    /// The venue wants nothing to be sent before.
    quiet_until: Instant,
    words: mpsc::UnboundedReceiver<Told>,
    say: SyncSender<Said>,
}

impl Post {
    async fn listen(&mut self) -> Result<Heard, String> {
        let mut proof = Box::pin(prove(
            self.client.clone(),
            self.plan.clone(),
            self.quiet_until,
        ));
        loop {
            let deadline = self.deadline;
            let over = async move {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                word = self.words.recv() => {
                    if let Some(end) = self.take(word) {
                        return Ok(end);
                    }
                }
                () = over => match timeout(GRACE, self.words.recv()).await {
                    Err(_) => return Ok(Heard::Silence),
                    Ok(word) => {
                        if let Some(end) = self.take(word) {
                            return Ok(end);
                        }
                    }
                },
                proven = &mut proof => {
                    proven?;
                    tell(&self.say, Said::Armed);
                    let next = self.quiet_until.max(Instant::now() + PROVE_EVERY);
                    proof = Box::pin(prove(self.client.clone(), self.plan.clone(), next));
                }
            }
        }
    }

    fn take(&mut self, word: Option<Told>) -> Option<Heard> {
        match word {
            None => Some(Heard::Nobody),
            Some(Told::End) => Some(Heard::End),
            Some(Told::Beat { number, stopped_ms }) => {
                let now = Instant::now();
                self.deadline = Some(now + self.countdown);
                self.quiet_until = now + Duration::from_millis(stopped_ms);
                tell(&self.say, Said::Heard { number });
                None
            }
        }
    }
}

/// Reads the venue's limits and its clock and lists the orders of a symbol, as it would have to:
/// until all were done. Answers why the venue refuses it.
async fn prove(client: Client, plan: Plan, not_before: Instant) -> Result<(), String> {
    sleep_until(not_before).await;
    let client = client.in_lane(Lane::Heartbeat);
    let mut pause = PROVE_AGAIN.0;
    loop {
        match try_out(&client, &plan).await {
            Ok(()) => return Ok(()),
            Err(NotDone::Refused(refusal)) => return Err(refusal.to_string()),
            Err(not_done) => {
                tracing::warn!(%not_done, "not armed; it is tried again");
                let wanted = match not_done {
                    NotDone::Wait(wait) => wait.after,
                    _ => Duration::ZERO,
                };
                sleep(wanted.max(pause)).await;
                pause = (pause * 2).min(PROVE_AGAIN.1);
            }
        }
    }
}

async fn try_out(client: &Client, plan: &Plan) -> Result<(), NotDone> {
    // First, for it states the limits: what the run used of larger ones than those of the documents
    // would count as if nothing were left for the cancels.
    client.spot().exchange_info().await.into_result()?;
    client.sync_clock(Surface::Spot, CLOCK_SAMPLES).await?;
    if let Some(symbol) = plan.symbols.first() {
        let question = OpenOrders::new().symbol(symbol.as_str());
        client.spot().open_orders(&question).await.into_result()?;
    }
    Ok(())
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
fn listen() -> std::io::Result<mpsc::UnboundedReceiver<Told>> {
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
fn speak() -> std::io::Result<SyncSender<Said>> {
    let (say, said) = sync_channel(WAITING);
    let thread = std::thread::Builder::new().name("stdout".to_owned());
    thread.spawn(move || write_words(&said))?;
    Ok(say)
}

fn write_words(said: &Receiver<Said>) {
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

fn tell(say: &SyncSender<Said>, word: Said) {
    let _ = say.try_send(word);
}
