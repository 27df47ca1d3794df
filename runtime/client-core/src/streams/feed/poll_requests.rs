//! The polling requests, each sent repeatedly: when to send one, and what to do when it fails. This
//! module does not read the responses.

use windvane_protocol::market_stream::Topic;
use windvane_protocol::route::Route;
use windvane_protocol::wire::Parameters;

use crate::budget::polling::Poll;
use crate::outcome::NotDone;

use super::super::millis;
use super::is_final;

/// Number of a polling request.
pub type PollId = u64;

/// The longest pause before a request is tried again, whatever the budget demands, milliseconds.
const PAUSE_MAX_MS: u64 = 3_600_000;
/// First and longest pause after consecutive refusals, milliseconds; the pause doubles in between.
const REFUSED_PAUSES_MS: (u64, u64) = (1_000, 60_000);

/// The requests of the current plan.
#[derive(Debug, Default)]
pub(super) struct PollRequests {
    next: PollId,
    all: Vec<PollRequest>,
}

#[derive(Debug)]
struct PollRequest {
    id: PollId,
    poll: Poll,
    due_ms: u64,
    is_in_flight: bool,
    /// The request would be refused again.
    is_over: bool,
    /// The failure that was reported last, if it still applies.
    reported: Option<String>,
    refused_pause_ms: u64,
}

/// Why a polling request failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Troubled {
    /// The request is sent again.
    ForNow(String),
    /// The request would be refused again.
    Finally(String),
}

impl PollRequests {
    /// Replaces the requests by those of a new plan.
    pub(super) fn replace(&mut self, now_ms: u64, polls: Vec<Poll>) {
        let count = u64::try_from(polls.len()).unwrap_or(u64::MAX).max(1);
        self.all.clear();
        for (at, poll) in (0_u64..).zip(polls) {
            self.all.push(PollRequest {
                id: self.next,
                // Spread the requests over the interval, so that they are not sent in bursts.
                due_ms: now_ms + poll.interval_ms * at / count,
                poll,
                is_in_flight: false,
                is_over: false,
                reported: None,
                refused_pause_ms: REFUSED_PAUSES_MS.0,
            });
            self.next += 1;
        }
    }

    /// When [`Self::due`] returns something.
    pub(super) fn timeout_ms(&self) -> u64 {
        let waiting = self.all.iter().filter(|one| one.waits());
        waiting.map(|one| one.due_ms).min().unwrap_or(u64::MAX)
    }

    /// The requests that are due.
    pub(super) fn due(&mut self, now_ms: u64) -> Vec<(PollId, &'static Route, Parameters)> {
        let all = self.all.iter_mut();
        let due = all.filter(|one| one.waits() && one.due_ms <= now_ms);
        let sent = due.map(|one| {
            one.is_in_flight = true;
            (one.id, one.poll.route, parameters(&one.poll))
        });
        sent.collect()
    }

    /// Handles the result of a request. Returns the topics that it serves, and a failure if there
    /// is a new one to report. `None` if the request is no longer part of the plan.
    ///
    /// Polls that were missed, because responses took long or the venue requested a pause, are not
    /// sent later.
    pub(super) fn answered(
        &mut self,
        now_ms: u64,
        id: PollId,
        not_done: Option<NotDone>,
    ) -> Option<(Vec<Topic>, Option<Troubled>)> {
        let one = self.all.iter_mut().find(|one| one.id == id)?;
        one.is_in_flight = false;
        let interval_ms = one.poll.interval_ms;
        one.due_ms = (one.due_ms + interval_ms).max(now_ms);
        let topics = one.poll.topics.clone();
        let (why, is_over) = match not_done {
            None => {
                one.reported = None;
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
            // Cannot happen: a read never has an unknown outcome.
            Some(NotDone::Unknown(reason)) => (reason.to_string(), false),
        };
        one.is_over = is_over;
        let is_reported = one.reported.replace(why.clone()).as_ref() == Some(&why);
        Some((
            topics,
            match (is_over, is_reported) {
                (true, _) => Some(Troubled::Finally(why)),
                (false, false) => Some(Troubled::ForNow(why)),
                (false, true) => None,
            },
        ))
    }
}

impl PollRequest {
    const fn waits(&self) -> bool {
        !self.is_in_flight && !self.is_over
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
