//! The questions of polling, each asked again and again: when, and what follows where one is not
//! answered. What may never enter here: what the answers say.

use windvane_protocol::market_stream::Topic;
use windvane_protocol::route::Route;
use windvane_protocol::wire::Parameters;

use crate::budget::polling::Poll;
use crate::outcome::NotDone;

use super::super::millis;
use super::is_final;

/// Number of a question.
pub type QuestionId = u64;

/// A pause after which it is worth looking again, whatever the budget says, milliseconds.
const PAUSE_MAX_MS: u64 = 3_600_000;
/// After refusals in a row: they double from the first to the longest, milliseconds.
const REFUSED_PAUSES_MS: (u64, u64) = (1_000, 60_000);

/// The questions of the plan that holds.
#[derive(Debug, Default)]
pub(super) struct Questions {
    next: QuestionId,
    all: Vec<Question>,
}

#[derive(Debug)]
struct Question {
    id: QuestionId,
    poll: Poll,
    due_ms: u64,
    is_asked: bool,
    /// It would be refused again.
    is_over: bool,
    /// Why it was not answered, as it was told last.
    told: Option<String>,
    refused_pause_ms: u64,
}

/// Why a question is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Troubled {
    /// It is asked again.
    ForNow(String),
    /// It would be refused again.
    Finally(String),
}

impl Questions {
    /// Asks these from now on, and no others.
    pub(super) fn ask(&mut self, now_ms: u64, polls: Vec<Poll>) {
        let count = u64::try_from(polls.len()).unwrap_or(u64::MAX).max(1);
        self.all.clear();
        for (at, poll) in (0_u64..).zip(polls) {
            self.all.push(Question {
                id: self.next,
                // Spread, so that they do not come in bursts.
                due_ms: now_ms + poll.interval_ms * at / count,
                poll,
                is_asked: false,
                is_over: false,
                told: None,
                refused_pause_ms: REFUSED_PAUSES_MS.0,
            });
            self.next += 1;
        }
    }

    /// When [`Self::due`] has something.
    pub(super) fn timeout_ms(&self) -> u64 {
        let waiting = self.all.iter().filter(|one| one.waits());
        waiting.map(|one| one.due_ms).min().unwrap_or(u64::MAX)
    }

    /// The questions whose time has come.
    pub(super) fn due(&mut self, now_ms: u64) -> Vec<(QuestionId, &'static Route, Parameters)> {
        let all = self.all.iter_mut();
        let due = all.filter(|one| one.waits() && one.due_ms <= now_ms);
        let asked = due.map(|one| {
            one.is_asked = true;
            (one.id, one.poll.route, parameters(&one.poll))
        });
        asked.collect()
    }

    /// A question was answered, or was not: the topics that it serves, and what there is to tell.
    /// `None` if it is not asked any more.
    ///
    /// Rounds that were missed, because answers took long or the venue said wait, are not made up for.
    pub(super) fn answered(
        &mut self,
        now_ms: u64,
        id: QuestionId,
        not_done: Option<NotDone>,
    ) -> Option<(Vec<Topic>, Option<Troubled>)> {
        let one = self.all.iter_mut().find(|one| one.id == id)?;
        one.is_asked = false;
        let interval_ms = one.poll.interval_ms;
        one.due_ms = (one.due_ms + interval_ms).max(now_ms);
        let topics = one.poll.topics.clone();
        let (why, is_over) = match not_done {
            None => {
                one.told = None;
                one.refused_pause_ms = REFUSED_PAUSES_MS.0;
                return Some((topics, None));
            }
            Some(NotDone::Wait(wait)) => {
                let after_ms = millis(wait.after);
                one.due_ms = now_ms + after_ms.max(interval_ms).min(PAUSE_MAX_MS);
                (wait.why.to_string(), false)
            }
            Some(NotDone::Refused(refusal)) => {
                one.due_ms = now_ms + one.refused_pause_ms.max(interval_ms);
                one.refused_pause_ms = (one.refused_pause_ms * 2).min(REFUSED_PAUSES_MS.1);
                (refusal.to_string(), is_final(&refusal))
            }
            // A question is never in doubt.
            Some(NotDone::Unknown(doubt)) => (doubt.to_string(), false),
        };
        one.is_over = is_over;
        let is_told = one.told.replace(why.clone()).as_ref() == Some(&why);
        Some((
            topics,
            match (is_over, is_told) {
                (true, _) => Some(Troubled::Finally(why)),
                (false, false) => Some(Troubled::ForNow(why)),
                (false, true) => None,
            },
        ))
    }
}

impl Question {
    const fn waits(&self) -> bool {
        !self.is_asked && !self.is_over
    }
}

fn parameters(poll: &Poll) -> Parameters {
    let mut parameters = Parameters::new();
    if let Some(symbol) = &poll.symbol {
        parameters.push("symbol", symbol);
    }
    for (name, value) in &poll.parameters {
        parameters.push(*name, value);
    }
    parameters
}
