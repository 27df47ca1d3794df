//! Carries the engine's requests to the venue and brings the answers back. Each request travels on
//! its own, in the lane of the budget that belongs to it; nothing is sent twice.

use windvane_client::budget::Lane;
use windvane_client::{Client, NotDone};
use windvane_engine::Request;
use windvane_venue::speak::{Heard, Speaker};

use super::Happened;
use super::mailbox::Mailbox;

/// Carries requests.
#[derive(Clone, Debug)]
pub struct Carrier {
    client: Client,
    speaker: Speaker,
    mailbox: Mailbox,
}

/// What became of one call.
enum Became {
    Done(String),
    Not(NotDone),
}

impl Carrier {
    /// A carrier whose answers go to this mailbox.
    pub const fn new(client: Client, speaker: Speaker, mailbox: Mailbox) -> Self {
        Self {
            client,
            speaker,
            mailbox,
        }
    }

    /// Sends a request on its way. Must be called within a tokio runtime.
    pub fn carry(&self, request: Request) {
        let carrier = self.clone();
        tokio::spawn(async move { carrier.run(&request).await });
    }

    async fn run(&self, request: &Request) {
        let asked = match self.speaker.ask(request) {
            Ok(asked) => asked,
            Err(error) => {
                tracing::error!(%error, ?request, "a request cannot be said; it counts as refused");
                let replies = self.speaker.refuse(request, &error);
                self.mailbox.tell(Happened::Replies(replies));
                return;
            }
        };
        let client = self.client.in_lane(lane(request));
        let mut became = Vec::with_capacity(asked.len());
        for call in &asked {
            let outcome = client.call(call.route, None, &call.parameters).await;
            became.push(match outcome.into_result() {
                Ok(answer) => Became::Done(answer.text),
                Err(not_done) => {
                    tracing::info!(route = call.route.name, %not_done, "not done");
                    Became::Not(not_done)
                }
            });
        }
        let words: Vec<String> = became.iter().map(words).collect();
        let heard: Vec<Heard<'_>> = became
            .iter()
            .zip(&words)
            .map(|(became, words)| heard(became, words))
            .collect();
        let said = self.speaker.reply(request, &heard);
        for note in &said.notes {
            tracing::warn!(%note, "in an answer");
        }
        self.mailbox.tell(Happened::Replies(said.said));
    }
}

fn words(became: &Became) -> String {
    match became {
        Became::Done(_) => String::new(),
        Became::Not(not_done) => not_done.to_string(),
    }
}

fn heard<'a>(became: &'a Became, words: &'a str) -> Heard<'a> {
    match became {
        Became::Done(text) => Heard::Done(text),
        Became::Not(NotDone::Refused(refusal)) => Heard::Refused {
            code: refusal.code(),
            msg: words,
        },
        Became::Not(NotDone::Unknown(_)) => Heard::Unknown,
        Became::Not(NotDone::Wait(_)) => Heard::Wait {
            code: None,
            msg: words,
        },
    }
}


const fn lane(request: &Request) -> Lane {
    match request {
        Request::Cancel { .. } | Request::CancelBatch { .. } | Request::CancelAll { .. } => {
            Lane::Cancel
        }
        Request::Countdown { .. } => Lane::Heartbeat,
        Request::Query { .. } | Request::Read(_) => Lane::Reconcile,
        Request::Place(_)
        | Request::PlaceBatch(_)
        | Request::SetPositionMode { .. }
        | Request::SetLeverage { .. } => Lane::Place,
    }
}
