//! Carries the engine's requests to the venue and brings the answers back. Each request travels on
//! its own, in the lane of the budget that belongs to it; nothing is sent twice.
//!
//! What changes something leaves on the engine's own thread, so that nobody has to be woken for
//! it. What only asks travels beside it, for its answers may be long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use windvane_admin::metrics::table;
use windvane_client::budget::{Denial, Lane};
use windvane_client::{Client, Departure, NotDone, Wait, WaitReason};
use windvane_engine::engine::Purpose;
use windvane_engine::live::LiveInput;
use windvane_engine::truth::Subject;
use windvane_engine::{ClientOrderId, Reply, Request, Surface};
use windvane_session::log_note;
use windvane_venue::route;
use windvane_venue::sign::Stamp;
use windvane_venue::speak::{Asked, Heard, Note, SpeakError, Speaker};
use windvane_venue::wire::Parameters;

use super::mailbox::{Happened, Mailbox};
use super::venue_wait;

/// What takes risk away, or finds out about it, waits so long for its share of the budget before
/// the engine is told to try again.
const PATIENCE: Duration = Duration::from_secs(1);
/// A cancel follows its order after its answer, or after so long without one.
const FOLLOW: Duration = Duration::from_secs(1);
/// An order that could not leave within this does not: the process was stopped, and the dead man's
/// switch that covered it may have acted.
const FRESH: Duration = Duration::from_secs(1);
/// The account's modes cost much to ask for, and the user stream tells when they change: an answer
/// counts for so long.
pub(super) const MODES_AGE: Duration = Duration::from_mins(1);
/// While `on_stop` is applied an answer is waited for so long: a connection that died must not cost
/// all of its time. What has no answer is asked for and, being a cancel, sent again.
const HURRIED: Duration = Duration::from_secs(3);
/// With less weight left than this, readings are the cheapest that suffice: it is what a whole round
/// of them costs at most, and as much again.
const PLENTY: u32 = 250;
/// The same for a start, as a part of the limit: a run that is killed again and again starts some ten times
/// in an interval.
const START_PARTS: u32 = 2;
/// From so many symbols on, one list of all open orders is as cheap as one for each symbol.
const SYMBOLS_MAX: usize = 40;
/// Routes whose answers are kept (spec 2, account).
pub(super) const MODES: [&str; 2] = ["futures.position_mode", "futures.multi_assets_mode"];

/// From one probe of the used weight to the next.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Carries requests.
#[derive(Debug)]
pub struct Carrier {
    /// Of the engine's thread.
    own: Way,
    /// Of the rest of the process.
    beside: Way,
    speaker: Speaker,
    mailbox: Mailbox,
    placing: Placing,
    modes: Modes,
    /// Nothing opens before the modes are known.
    needs_modes: AtomicBool,
    /// The last order that was carried, for rehearsals.
    last: Mutex<Option<Request>>,
    elsewhere: Elsewhere,
    /// A countdown without an answer is given up after this.
    countdown_within: Duration,
    /// The run is ending.
    hurried: AtomicBool,
    probes: Probes,
}

/// When each surface was probed last.
#[derive(Debug, Default)]
struct Probes(Mutex<BTreeMap<windvane_venue::route::Surface, Instant>>);

impl Probes {
    /// Whether the next probe of a surface is due now. It counts as made.
    fn is_due(&self, surface: windvane_venue::route::Surface, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last
            .get(&surface)
            .is_none_or(|last| now.duration_since(*last) >= PROBE_EVERY);
        if is_due {
            last.insert(surface, now);
        }
        is_due
    }
}

/// A runtime, and a client whose connections live there.
#[derive(Clone, Debug)]
pub struct Way {
    pub handle: Handle,
    pub client: Client,
}

/// The last answers of [`MODES`].
#[derive(Debug, Default)]
struct Modes(Mutex<BTreeMap<&'static str, (Instant, String)>>);

impl Modes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, (Instant, String)>> {
        // A map is whole after every operation on it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last answer of a route; an old one only where `any_age` will do.
    fn known(&self, route: &str, any_age: bool) -> Option<String> {
        let known = self.lock();
        let (at, text) = known.get(route)?;
        (any_age || at.elapsed() < MODES_AGE).then(|| text.clone())
    }

    fn keep(&self, route: &'static str, text: &str) {
        if MODES.contains(&route) {
            let kept = (Instant::now(), text.to_owned());
            self.lock().insert(route, kept);
        }
    }
}

/// Orders on their way, so that no cancel overtakes one on another connection.
#[derive(Debug, Default)]
struct Placing(Mutex<BTreeMap<ClientOrderId, watch::Receiver<()>>>);

impl Placing {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientOrderId, watch::Receiver<()>>> {
        // A map is whole after every operation on it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an order that leaves; whoever holds the answer says that it came.
    fn begin(&self, request: &Request) -> Option<(ClientOrderId, watch::Sender<()>)> {
        let Request::Place(order) = request else {
            return None;
        };
        let (sender, receiver) = watch::channel(());
        self.lock().insert(order.client_order_id, receiver);
        Some((order.client_order_id, sender))
    }

    /// The order that a cancel has to follow.
    fn before(&self, request: &Request) -> Option<watch::Receiver<()>> {
        match request {
            Request::Cancel {
                client_order_id, ..
            } => self.lock().get(client_order_id).cloned(),
            _ => None,
        }
    }
}

/// Orders on symbols that are not configured, which every list of open orders tells again.
#[derive(Debug, Default)]
struct Elsewhere(Mutex<BTreeSet<ClientOrderId>>);

impl Elsewhere {
    /// Whether a note was not said before; of more than a thousand such orders nothing is.
    fn is_news(&self, note: &Note) -> bool {
        const ORDERS_MAX: usize = 1_000;
        let Note::Elsewhere { order, .. } = note else {
            return true;
        };
        // A set is whole after every operation on it.
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.len() < ORDERS_MAX && said.insert(*order)
    }
}

/// What became of one call.
enum Became {
    Done(String),
    Not(NotDone),
    /// It was not asked: too little weight is left for what can wait.
    Postponed,
}

impl Became {
    /// Whether a later call may be answered.
    const fn is_pending(&self) -> bool {
        matches!(
            self,
            Self::Postponed | Self::Not(NotDone::Unknown(_) | NotDone::Wait(_))
        )
    }
}

impl Carrier {
    /// A carrier whose answers go to this mailbox: `own` is the way of the engine's thread. An
    /// answer to a countdown is waited for so long.
    pub fn new(
        (own, beside): (Way, Way),
        speaker: Speaker,
        mailbox: Mailbox,
        countdown_within: Duration,
    ) -> Self {
        Self {
            own,
            beside,
            speaker,
            mailbox,
            placing: Placing::default(),
            modes: Modes::default(),
            needs_modes: AtomicBool::new(false),
            last: Mutex::default(),
            elsewhere: Elsewhere::default(),
            countdown_within,
            hurried: AtomicBool::new(false),
            probes: Probes::default(),
        }
    }

    /// The run is ending: what is asked from here on has little time. Orders keep theirs, for one
    /// whose answer was given up is never sent again.
    pub fn hurry(&self) {
        self.hurried.store(true, Ordering::Relaxed);
    }

    /// Says whether the run waits for the account's modes.
    pub fn need_modes(&self, needed: bool) {
        self.needs_modes.store(needed, Ordering::Relaxed);
    }

    /// The account's modes changed: they are asked for anew.
    pub fn forget_modes(&self) {
        self.modes.lock().clear();
    }

    /// Sends a request on its way; `since` is when the market event came that it follows from.
    pub fn carry(self: &Arc<Self>, request: Request, purpose: Purpose, since: Option<Instant>) {
        let (carrier, handed) = (Arc::clone(self), Instant::now());
        if matches!(request, Request::Place(_)) {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(request.clone());
        }
        let (begun, before) = (self.placing.begin(&request), self.placing.before(&request));
        let handle = self.way(&request).handle.clone();
        handle.spawn(async move {
            if let Some(mut before) = before {
                // It ends with an error once the sender is gone, which is what is waited for.
                let _ = tokio::time::timeout(FOLLOW, before.changed()).await;
            }
            carrier.run((&request, purpose), handed, since).await;
            if let Some((id, _sender)) = begun {
                carrier.placing.lock().remove(&id);
            }
        });
    }

    /// Says and signs the last order once more and forgets it: an order is rare, and what it needs
    /// on its way would have left the processor's caches until the next one. Nothing is sent, and
    /// neither budget nor nonces are touched.
    pub fn rehearse(&self) {
        // A request is whole or not there.
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(request) = last.as_ref() else { return };
        let client = &self.way(request).client;
        for call in self.speaker.ask(request).iter().flatten() {
            let stamp = Stamp {
                timestamp_ms: 0,
                nonce_us: 0,
                inner_nonce_us: 0,
            };
            let ready = client.prepare(call.route, None, &call.parameters, Some(stamp));
            drop(std::hint::black_box(ready));
        }
    }

    const fn way(&self, request: &Request) -> &Way {
        match request {
            Request::Query { .. } | Request::Read(_) => &self.beside,
            _ => &self.own,
        }
    }

    async fn run(
        &self,
        (request, purpose): (&Request, Purpose),
        handed: Instant,
        since: Option<Instant>,
    ) {
        let lane = lane(request, purpose);
        let client = &self.way(request).client;
        let late = |waited: &Duration| matches!(request, Request::Place(_)) && *waited > FRESH;
        let asked = match Some(handed.elapsed()).filter(late) {
            Some(waited) => Err(SpeakError::Late(waited)),
            None => self.ask((request, lane), client),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(error) => {
                if let SpeakError::Undocumented(route) = error {
                    tracing::info!(route, "not asked: it is not in documents 1 to 3");
                } else {
                    tracing::error!(%error, ?request, "a request was not sent: it cannot be made");
                }
                let replies = self.speaker.refuse(request, &error);
                self.mailbox.tell(Happened::Replies(replies)).await;
                return;
            }
        };
        let places = matches!(request, Request::Place(_) | Request::PlaceBatch(_));
        let patience = if places || lane == Lane::Place {
            Duration::ZERO
        } else {
            PATIENCE
        };
        let mut client = client.in_lane(lane).with_patience(patience);
        if self.hurried.load(Ordering::Relaxed) && !places && lane != Lane::Place {
            client = client.with_timeout(HURRIED);
        }
        if matches!(request, Request::Countdown { .. }) {
            client = client.with_timeout(self.countdown_within);
        }
        if let Some(since) = since.filter(|_| places) {
            client = client.telling(Departure::new(move || {
                let latency = since.elapsed().as_secs_f64();
                table::ORDER_LATENCY.of([]).record(latency);
            }));
        }
        let mut became = Vec::with_capacity(asked.len());
        for call in &asked {
            // What is changed is sent, what is read may be known.
            if matches!(request, Request::Read(_))
                && let Some(known) = self.known_mode(call, lane, &client)
            {
                became.push(known);
                continue;
            }
            let left = Instant::now();
            let outcome = client.call(call.route, None, &call.parameters).await;
            let outcome = outcome.into_result();
            let surface = call.route.surface.to_string();
            count(&surface, left.elapsed(), outcome.as_ref().err());
            became.push(match outcome {
                Ok(answer) => {
                    if matches!(request, Request::Read(_)) {
                        self.modes.keep(call.route.name, &answer.text);
                    }
                    Became::Done(answer.text)
                }
                Err(not_done) => {
                    self.tell_wait(call, &client, &not_done).await;
                    // Orders have a line of their own, with a count where they repeat.
                    if matches!(request, Request::Place(_)) {
                        tracing::debug!(route = call.route.name, %not_done, ?request, "not done");
                    } else {
                        tracing::info!(route = call.route.name, %not_done, ?request, "not done");
                    }
                    Became::Not(not_done)
                }
            });
        }
        let is_pending = |(call, became): (&Asked, &Became)| {
            MODES.contains(&call.route.name) && became.is_pending()
        };
        if matches!(request, Request::Read(_)) && asked.iter().zip(&became).any(is_pending) {
            let pending = Happened::Live(LiveInput::ModesPending);
            self.mailbox.tell(pending).await;
        }
        let replies = self.replies(request, &became);
        self.mailbox.tell(Happened::Replies(replies)).await;
    }

    /// The calls of a request. Where little weight is left, or a close waits for them, open orders are
    /// listed for the configured symbols alone.
    fn ask(
        &self,
        (request, lane): (&Request, Lane),
        client: &Client,
    ) -> Result<Vec<Asked>, SpeakError> {
        if let Request::Read(Subject::OpenOrders { surface }) = request {
            let of = venue_surface(*surface);
            let is_short = client.weight_left(of, lane) < plenty(client, of, lane);
            let few = self.speaker.names.symbols(*surface).count() < SYMBOLS_MAX;
            if few && (is_short || lane == Lane::Close) {
                return self.speaker.open_orders_by_symbol(*surface);
            }
        }
        self.speaker.ask(request)
    }

    /// What is known of one of the account's modes without asking, if it is to be used: a fresh
    /// answer, or, where little weight is left, any answer, or none.
    fn known_mode(&self, call: &Asked, lane: Lane, client: &Client) -> Option<Became> {
        let route = call.route.name;
        if !MODES.contains(&route) {
            return None;
        }
        let surface = call.route.surface;
        let plenty = if self.needs_modes.load(Ordering::Relaxed) {
            // What a round costs at most. Nothing opens without it.
            PLENTY / 2
        } else {
            plenty(client, surface, lane)
        };
        let is_short = client.weight_left(surface, lane) < plenty;
        let known = self.modes.known(route, is_short || lane == Lane::Close);
        match known {
            Some(text) => Some(Became::Done(text)),
            None if is_short => Some(Became::Postponed),
            None => None,
        }
    }

    /// The venue refused a call for a limit: the engine learns how long nothing may be sent before it
    /// learns what became of its request.
    async fn tell_wait(&self, call: &Asked, client: &Client, not_done: &NotDone) {
        let NotDone::Wait(Wait { why, .. }) = not_done else {
            return;
        };
        let surface = match call.route.surface {
            windvane_venue::route::Surface::Spot => Surface::Spot,
            _ => Surface::Futures,
        };
        if let WaitReason::Budget(denied) = why
            && denied.why == Denial::Weight
        {
            self.probe(call, client).await;
            return;
        }
        let by_venue = matches!(why, WaitReason::Venue(_));
        for input in venue_wait::inputs(client, surface, by_venue) {
            self.mailbox.tell(Happened::Live(input)).await;
        }
    }

    /// Our count keeps a request back. The venue's interval may have begun anew meanwhile: the header
    /// of the cheapest answer shows it. Many requests may be kept back in a second, and each probe
    /// weighs something too.
    async fn probe(&self, call: &Asked, client: &Client) {
        if !self.probes.is_due(call.route.surface, Instant::now()) {
            return;
        }
        let Some(route) = route::named(match call.route.surface {
            windvane_venue::route::Surface::Spot => "spot.time",
            _ => "futures.time",
        }) else {
            return;
        };
        let client = client.in_lane(Lane::Start).with_patience(Duration::ZERO);
        // What counts is the header, which the client has read.
        drop(client.call(route, None, &Parameters::new()).await);
    }

    fn replies(&self, request: &Request, became: &[Became]) -> Vec<Reply> {
        let words: Vec<String> = became.iter().map(words).collect();
        let heard: Vec<Heard<'_>> = became
            .iter()
            .zip(&words)
            .map(|(became, words)| heard(became, words))
            .collect();
        let said = self.speaker.reply(request, &heard);
        for note in &said.notes {
            if self.elsewhere.is_news(note) {
                log_note(note, "in an answer");
            }
        }
        said.said
    }
}

/// With less weight left than this, readings are the cheapest that suffice.
fn plenty(client: &Client, surface: windvane_venue::route::Surface, lane: Lane) -> u32 {
    match lane {
        Lane::Start => client.weight_limit(surface) / START_PARTS,
        _ => PLENTY,
    }
}

fn count(surface: &str, took: Duration, not_done: Option<&NotDone>) {
    let outcome = match not_done {
        None => "done",
        Some(NotDone::Refused(_)) => "refused",
        Some(NotDone::Unknown(_)) => "unknown",
        Some(NotDone::Wait(_)) => "wait",
    };
    table::REQUESTS.of([surface, outcome]).increment(1);
    let seconds = took.as_secs_f64();
    table::REQUEST_SECONDS.of([surface]).record(seconds);
}

fn words(became: &Became) -> String {
    match became {
        Became::Done(_) | Became::Postponed => String::new(),
        Became::Not(not_done) => not_done.to_string(),
    }
}

fn heard<'a>(became: &'a Became, words: &'a str) -> Heard<'a> {
    match became {
        Became::Done(text) => Heard::Done(text),
        Became::Not(NotDone::Refused(refusal)) => Heard::Refused {
            code: refusal.code(),
            // The engine looks in the text for the balance, which our advice names, too.
            msg: refusal.msg().unwrap_or(words),
        },
        Became::Postponed | Became::Not(NotDone::Unknown(_)) => Heard::Unknown,
        Became::Not(NotDone::Wait(wait)) => match &wait.why {
            WaitReason::Budget(_) | WaitReason::NoConnection(_) => Heard::NotSent { msg: words },
            WaitReason::Venue(pause) => Heard::Wait {
                code: pause.complaint.error.as_ref().map(|error| error.code),
                msg: words,
            },
            WaitReason::NoAnswer(_) | WaitReason::Busy(_) => Heard::Wait {
                code: None,
                msg: words,
            },
        },
    }
}

/// The lane of a request: what takes risk away leaves whatever our own count says.
pub const fn lane(request: &Request, purpose: Purpose) -> Lane {
    match (request, purpose) {
        (Request::Cancel { .. } | Request::CancelBatch { .. } | Request::CancelAll { .. }, _) => {
            Lane::Cancel
        }
        // It only stops a countdown that nothing needs any more: that is no emergency.
        (
            Request::Countdown {
                countdown_ms: 0, ..
            },
            Purpose::Ordinary,
        ) => Lane::Place,
        (Request::Countdown { .. }, _) => Lane::Heartbeat,
        (_, Purpose::Close) => Lane::Close,
        (Request::Query { .. } | Request::Read(_), Purpose::Start) => Lane::Start,
        (Request::Query { .. } | Request::Read(_), Purpose::Ordinary) => Lane::Reconcile,
        (
            Request::Place(_)
            | Request::PlaceBatch(_)
            | Request::SetPositionMode { .. }
            | Request::SetLeverage { .. },
            _,
        ) => Lane::Place,
    }
}

/// The venue's word for a surface of the engine.
pub const fn venue_surface(surface: Surface) -> windvane_venue::route::Surface {
    match surface {
        Surface::Spot => windvane_venue::route::Surface::Spot,
        Surface::Futures => windvane_venue::route::Surface::Futures,
    }
}

#[cfg(test)]
mod tests {
    use windvane_client::{Asked, Refusal};
    use windvane_engine::InstrumentId;
    use windvane_engine::refusal::Blame;
    use windvane_venue::error::{Judgement, judge};
    use windvane_venue::route;

    use super::*;

    #[test]
    fn a_countdown_is_an_emergency_except_to_stop_one_that_nothing_needs() {
        let countdown = |countdown_ms| Request::Countdown {
            instrument: InstrumentId(0),
            countdown_ms,
        };
        let urgent = |ms, purpose| lane(&countdown(ms), purpose).is_emergency();
        assert!(urgent(30_000, Purpose::Ordinary));
        assert!(urgent(0, Purpose::Close), "the stop waits for it");
        assert!(!urgent(0, Purpose::Ordinary));
    }

    #[test]
    fn orders_that_our_count_keeps_back_do_not_use_the_weight_up_by_probes() {
        let (probes, begin) = (Probes::default(), Instant::now());
        let futures = windvane_venue::route::Surface::Futures;
        // 30 orders a second, for a minute.
        let asked = (0..1_800).map(|nth| begin + Duration::from_millis(nth * 1_000 / 30));
        let made = asked.filter(|at| probes.is_due(futures, *at)).count();
        assert_eq!(made, 12);
        assert!(probes.is_due(windvane_venue::route::Surface::Spot, begin));
    }

    #[test]
    fn our_advice_about_a_rejected_order_is_no_word_of_the_venue_about_the_balance() {
        let refused = |msg: &str| {
            let body = format!(r#"{{"code":-2010,"msg":"{msg}"}}"#);
            let Judgement::Refused {
                complaint,
                is_fatal,
            } = judge(400, None, &body)
            else {
                panic!("a rejected order is refused")
            };
            let refusal = Refusal::Venue {
                asked: Asked {
                    route: route::named("spot.new_order").unwrap(),
                    version: Some(route::Version::V1),
                },
                complaint,
                is_fatal,
            };
            Became::Not(NotDone::Refused(refusal))
        };
        let blame = |msg: &str| {
            let became = refused(msg);
            let words = words(&became);
            assert!(words.contains("balance"), "{words}");
            let Heard::Refused {
                msg,
                code: Some(-2010),
            } = heard(&became, &words)
            else {
                panic!("the code is passed on")
            };
            let (code, msg) = (-2010, msg.to_owned());
            windvane_engine::protocol::Refusal { code, msg }.blame()
        };
        assert_eq!(blame("Order would immediately match."), Blame::Order);
        assert_eq!(blame("Account has insufficient balance."), Blame::Funds);
    }
}
