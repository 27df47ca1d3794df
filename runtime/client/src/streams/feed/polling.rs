//! Questions that are asked again and again, each by a task of its own so that a slow one delays
//! no other. What may never enter here: what the answers say.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windvane_client_core::streams::feed::is_final;
use windvane_venue::wire::Parameters;

use crate::budget::polling::Poll;
use crate::client::Client;
use crate::outcome::NotDone;

/// An answer, or why there is none.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) poll: Arc<Poll>,
    pub(super) result: Result<String, Trouble>,
}

/// Why a question is not answered.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) why: String,
    /// It would be refused again: the task that asked has ended.
    pub(super) is_final: bool,
}

/// The questions of a plan. They end with this value.
#[derive(Debug)]
pub(super) struct Polling {
    client: Client,
    tasks: JoinSet<()>,
    sender: mpsc::Sender<Answered>,
    answers: mpsc::Receiver<Answered>,
}

/// Answers that wait for the consumer; a question is not asked again before its answer is taken.
const WAITING: usize = 16;
/// A pause after which it is worth looking again, whatever the budget says.
const PAUSE_MAX: Duration = Duration::from_hours(1);
/// After refusals in a row: they double from the first to the longest.
const REFUSED_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

impl Polling {
    /// No questions yet; they go through this client, with its lane.
    pub(super) fn new(client: Client) -> Self {
        let (sender, answers) = mpsc::channel(WAITING);
        Self {
            client,
            tasks: JoinSet::new(),
            sender,
            answers,
        }
    }

    /// Asks these from now on, and no others.
    pub(super) fn ask(&mut self, polls: Vec<Poll>) {
        self.tasks = JoinSet::new();
        let now = Instant::now();
        let count = u32::try_from(polls.len()).unwrap_or(u32::MAX).max(1);
        for (at, poll) in (0_u32..).zip(polls) {
            // Spread, so that they do not come in bursts.
            let begin = now + Duration::from_millis(poll.interval_ms) * at / count;
            let (client, sender) = (self.client.clone(), self.sender.clone());
            self.tasks.spawn(repeat(client, poll, begin, sender));
        }
    }

    /// The next answer; it may be dropped while it waits.
    pub(super) async fn next(&mut self) -> Answered {
        match self.answers.recv().await {
            Some(answered) => answered,
            // It holds a sender itself.
            None => std::future::pending().await,
        }
    }
}

/// Asks until it is finally refused. Rounds that were missed, because answers took long or the
/// venue said wait, are not made up for.
async fn repeat(client: Client, poll: Poll, begin: Instant, answers: mpsc::Sender<Answered>) {
    let interval = Duration::from_millis(poll.interval_ms);
    let mut parameters = Parameters::new();
    if let Some(symbol) = &poll.symbol {
        parameters.push("symbol", symbol);
    }
    for (name, value) in &poll.parameters {
        parameters.push(*name, value);
    }
    let poll = Arc::new(poll);
    let mut due = begin;
    let mut told = None;
    let mut refused_pause = REFUSED_PAUSES.0;
    loop {
        tokio::time::sleep_until(due).await;
        let outcome = client.call(poll.route, None, &parameters).await;
        let now = Instant::now();
        due = (due + interval).max(now);
        let (why, is_final) = match outcome.into_result() {
            Ok(answer) => {
                told = None;
                refused_pause = REFUSED_PAUSES.0;
                let result = Ok(answer.text);
                let poll = Arc::clone(&poll);
                if answers.send(Answered { poll, result }).await.is_err() {
                    return;
                }
                continue;
            }
            Err(NotDone::Wait(wait)) => {
                due = now + wait.after.clamp(interval, PAUSE_MAX);
                (wait.why.to_string(), false)
            }
            Err(NotDone::Refused(refusal)) => {
                due = now + refused_pause.max(interval);
                refused_pause = (refused_pause * 2).min(REFUSED_PAUSES.1);
                (refusal.to_string(), is_final(&refusal))
            }
            // A question is never in doubt.
            Err(NotDone::Unknown(doubt)) => (doubt.to_string(), false),
        };
        if told.as_ref() == Some(&why) {
            continue;
        }
        told = Some(why.clone());
        let poll = Arc::clone(&poll);
        let result = Err(Trouble { why, is_final });
        if answers.send(Answered { poll, result }).await.is_err() || is_final {
            return;
        }
    }
}
