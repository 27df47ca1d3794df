//! A request of the engine as calls, and their outcomes as its replies.

use std::collections::BTreeSet;
use std::time::Duration;

use windvane_client_core::budget::Lane;
use windvane_client_core::outcome::{NotDone, Wait, WaitReason};
use windvane_engine::engine::Purpose as EnginePurpose;
use windvane_engine::live::LiveInput;
use windvane_engine::truth::Subject;
use windvane_engine::{ClientOrderId, Request, Time, planted};
use windvane_venue::speak::{Asked, Heard, Note, SpeakError};

use super::calls::{Wanted, fresh_ns};
use super::{Done, Purpose, Requests, venue_surface};
use crate::session::log_note;

/// What takes risk away, or finds out about it, waits so long for its share of the budget before
/// the engine is told to try again.
const PATIENCE_NS: i64 = 1_000_000_000;
/// A cancel follows its order after its answer, or after so long without one.
const FOLLOW_MS: i64 = 1_000;
/// From so many symbols on, one list of all open orders is as cheap as one for each symbol.
const SYMBOLS_MAX: usize = 40;

/// A request of the engine and what became of its calls so far.
#[derive(Debug)]
pub(super) struct Carried {
    request: Request,
    lane: Lane,
    asked: Vec<Asked>,
    became: Vec<Became>,
    handed: Time,
    since: Option<Time>,
    /// It waits for the order that it is about, at most until then.
    pub(super) follow_by: Option<Time>,
}

impl Carried {
    /// Whether it is a cancel that waits for this order.
    fn follows(&self, id: &ClientOrderId) -> bool {
        let is_of_order = matches!(&self.request,
            Request::Cancel { client_order_id, .. } if client_order_id == id);
        is_of_order && self.follow_by.is_some()
    }
}

/// What became of one call.
#[derive(Debug)]
pub(super) enum Became {
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

/// Orders on symbols that are not configured, which every list of open orders tells again.
#[derive(Debug, Default)]
pub(super) struct Elsewhere(BTreeSet<ClientOrderId>);

impl Elsewhere {
    /// Whether a note was not said before; of more than a thousand such orders nothing is.
    fn is_news(&mut self, note: &Note) -> bool {
        const ORDERS_MAX: usize = 1_000;
        let Note::Elsewhere { order, .. } = note else {
            return true;
        };
        self.0.len() < ORDERS_MAX && self.0.insert(*order)
    }
}

impl Requests {
    /// Sends a request of the engine on its way; `since` is when the public frame came that it
    /// follows from. `awaits_modes` says whether nothing opens before the account's modes are known.
    pub(crate) fn carry(
        &mut self,
        now: Time,
        (request, purpose): (Request, EnginePurpose),
        since: Option<Time>,
        awaits_modes: bool,
    ) {
        let lane = lane(&request, purpose);
        if matches!(request, Request::Read(_)) {
            self.modes.are_needed = awaits_modes;
        }
        let asked = match self.ask(now, (&request, lane)) {
            Ok(asked) => asked,
            Err(error) => return self.refuse(&request, &error),
        };
        let follows = match &request {
            Request::Cancel {
                client_order_id, ..
            } => self.placing.contains(client_order_id),
            _ => false,
        };
        if let Request::Place(order) = &request {
            self.placing.insert(order.client_order_id);
            self.last = Some(request.clone());
        }
        self.next_carried += 1;
        let number = self.next_carried;
        let carried = Carried {
            request,
            lane,
            asked,
            became: Vec::new(),
            handed: now,
            since,
            follow_by: follows.then(|| now.plus_ms(FOLLOW_MS)),
        };
        self.carried.insert(number, carried);
        if !follows {
            self.go_on(now, number);
        }
    }

    fn refuse(&mut self, request: &Request, error: &SpeakError) {
        if let SpeakError::Undocumented(route) = error {
            tracing::info!(route, "not asked: it is not in documents 1 to 3");
        } else {
            tracing::error!(%error, ?request, "a request was not sent: it cannot be made");
        }
        let replies = self.exchange.refuse(request, error);
        self.done.push_back(Done::Replies(replies));
    }

    /// The calls of a request. Where little weight is left, or a close waits for them, open orders are
    /// listed for the configured symbols alone.
    fn ask(&self, now: Time, (request, lane): (&Request, Lane)) -> Result<Vec<Asked>, SpeakError> {
        if let Request::Read(Subject::OpenOrders { surface }) = request {
            let of = venue_surface(*surface);
            let left = self.gateway().weight_left(self.ms(now), of, lane);
            let is_short = left < self.plenty(now, of, lane);
            let few = self.exchange.names().symbols(*surface).count() < SYMBOLS_MAX;
            if few && (is_short || lane == Lane::Close) {
                return self.exchange.open_orders_by_symbol(*surface);
            }
        }
        self.exchange.encode(request)
    }

    /// Makes the next call of a request, or brings back what became of all of them.
    fn go_on(&mut self, now: Time, number: u64) {
        loop {
            let Some(carried) = self.carried.get(&number) else {
                return;
            };
            let Some(call) = carried.asked.get(carried.became.len()) else {
                return self.bring_back(now, number);
            };
            let is_reading = matches!(carried.request, Request::Read(_));
            // What is changed is sent, what is read may be known.
            let known = self.known_mode(now, call, carried.lane);
            if let Some(known) = known.filter(|_| is_reading) {
                if let Some(carried) = self.carried.get_mut(&number) {
                    carried.became.push(known);
                }
                continue;
            }
            let wanted = self.wanted(number, carried, call);
            return self.call(now, wanted);
        }
    }

    fn wanted(&self, number: u64, carried: &Carried, call: &Asked) -> Wanted {
        let request = &carried.request;
        let places = matches!(request, Request::Place(_) | Request::PlaceBatch(_))
            || carried.lane == Lane::Place;
        let is_order = matches!(request, Request::Place(_));
        let is_countdown = matches!(request, Request::Countdown { .. });
        Wanted {
            asked: call.clone(),
            lane: carried.lane,
            patience_ns: if places { 0 } else { PATIENCE_NS },
            within: self.within(is_countdown, places),
            leave_by: (is_order && !planted!(LateOrderSent))
                .then(|| carried.handed.plus_ns(fresh_ns())),
            since: carried.since.filter(|_| is_order),
            purpose: Purpose::Part(number),
        }
    }

    /// What became of a call of a request.
    pub(super) fn part_became(&mut self, now: Time, number: u64, became: Result<String, NotDone>) {
        let Some(carried) = self.carried.get_mut(&number) else {
            return;
        };
        let Some(call) = carried.asked.get(carried.became.len()) else {
            return;
        };
        let route = call.route;
        self.account.hear(route, &became, &mut *self.exchange);
        match became {
            Ok(text) => {
                if matches!(carried.request, Request::Read(_)) {
                    let modes = self.exchange.capabilities().modes;
                    self.modes.keep(now, (route.name, &text), modes);
                }
                carried.became.push(Became::Done(text));
            }
            Err(not_done) => {
                let request = &carried.request;
                // Orders have a line of their own, with a count where they repeat.
                if matches!(request, Request::Place(_)) {
                    tracing::debug!(route = route.name, %not_done, ?request, "not done");
                } else {
                    tracing::info!(route = route.name, %not_done, ?request, "not done");
                }
                let wait = match &not_done {
                    NotDone::Wait(Wait { why, .. }) => Some(why.clone()),
                    _ => None,
                };
                carried.became.push(Became::Not(not_done));
                if let Some(why) = wait {
                    self.tell_wait(now, route.surface, &why);
                }
            }
        }
        self.go_on(now, number);
    }

    /// Whether a request places one order. What becomes of others that did not leave is told like any
    /// failure: a reading that is refused would count as one that the venue does not serve.
    pub(super) fn is_order(&self, number: u64) -> bool {
        let carried = self.carried.get(&number);
        carried.is_some_and(|one| matches!(one.request, Request::Place(_)))
    }

    /// The shell did not let an order leave, for it waited so long.
    pub(super) fn not_sent_in_time(&mut self, (number, waited): (u64, Duration)) {
        let Some(carried) = self.carried.remove(&number) else {
            return;
        };
        let late = SpeakError::Late(waited);
        self.refuse(&carried.request, &late);
        let Request::Place(order) = &carried.request else {
            return;
        };
        let id = order.client_order_id;
        self.placing.remove(&id);
        // There is nothing to cancel.
        let waiting = self.carried.iter().filter(|(_, one)| one.follows(&id));
        let waiting: Vec<_> = waiting.map(|(number, _)| *number).collect();
        for number in waiting {
            if let Some(cancel) = self.carried.remove(&number) {
                self.refuse(&cancel.request, &late);
            }
        }
    }

    fn bring_back(&mut self, now: Time, number: u64) {
        let Some(carried) = self.carried.remove(&number) else {
            return;
        };
        let Carried {
            request,
            asked,
            became,
            ..
        } = carried;
        let modes = self.exchange.capabilities().modes;
        let is_pending = |(call, became): (&Asked, &Became)| {
            modes.contains(&call.route.name) && became.is_pending()
        };
        if matches!(request, Request::Read(_)) && asked.iter().zip(&became).any(is_pending) {
            self.done.push_back(Done::Live(LiveInput::ModesPending));
        }
        let words: Vec<String> = became.iter().map(words).collect();
        let heard: Vec<Heard<'_>> = became
            .iter()
            .zip(&words)
            .map(|(became, words)| heard(became, words))
            .collect();
        let said = self.exchange.reply(&request, &heard);
        for note in &said.notes {
            if self.elsewhere.is_news(note) {
                log_note(note, "in an answer");
            }
        }
        self.done.push_back(Done::Replies(said.said));
        self.placed(now, &request);
    }

    /// The answer to an order came: cancels that waited for it go.
    fn placed(&mut self, now: Time, request: &Request) {
        let Request::Place(order) = request else {
            return;
        };
        let id = order.client_order_id;
        self.placing.remove(&id);
        self.let_go(now, |carried| carried.follows(&id));
    }

    /// Cancels that waited long enough go.
    pub(super) fn follow_overdue(&mut self, now: Time) {
        let due = |carried: &Carried| carried.follow_by.is_some_and(|by| by <= now);
        self.let_go(now, due);
    }

    fn let_go(&mut self, now: Time, which: impl Fn(&Carried) -> bool) {
        let all = self.carried.iter();
        let numbers: Vec<_> = all.filter(|(_, one)| which(one)).map(|(n, _)| *n).collect();
        for number in numbers {
            if let Some(carried) = self.carried.get_mut(&number) {
                carried.follow_by = None;
            }
            self.go_on(now, number);
        }
    }
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
pub fn lane(request: &Request, purpose: EnginePurpose) -> Lane {
    match (request, purpose) {
        (Request::Cancel { .. } | Request::CancelAll { .. }, _) if planted!(LaneStarved) => {
            Lane::Place
        }
        (Request::Place(_), _) if planted!(ReserveIgnored) => Lane::Close,
        (Request::Cancel { .. } | Request::CancelBatch { .. } | Request::CancelAll { .. }, _) => {
            Lane::Cancel
        }
        // It only stops a countdown that nothing needs any more: that is no emergency.
        (
            Request::Countdown {
                countdown_ms: 0, ..
            },
            EnginePurpose::Ordinary,
        ) => Lane::Place,
        (Request::Countdown { .. }, _) => Lane::Heartbeat,
        (_, EnginePurpose::Close) => Lane::Close,
        (Request::Query { .. } | Request::Read(_), EnginePurpose::Start) => Lane::Start,
        (Request::Query { .. } | Request::Read(_), EnginePurpose::Ordinary) => Lane::Reconcile,
        (
            Request::Place(_)
            | Request::PlaceBatch(_)
            | Request::SetPositionMode { .. }
            | Request::SetLeverage { .. },
            _,
        ) => Lane::Place,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use secrecy::SecretString;
    use windvane_client_core::budget::{Cost, Shares};
    use windvane_client_core::gateway::{Answer, Identity, Unsigned};
    use windvane_client_core::nonce::Nonces;
    use windvane_client_core::outcome::Refusal;
    use windvane_client_core::{Api, Asked as AskedRoute, Gateway, Lost};
    use windvane_engine::instrument::{Filters, SymbolStatus};
    use windvane_engine::refusal::Blame;
    use windvane_engine::{
        Instrument, InstrumentId, NewOrder, OrderTerms, OrderType, Outcome, Qty, Reply, Side,
        Surface,
    };
    use windvane_venue::error::{Judgement, Limit, judge};
    use windvane_venue::route;
    use windvane_venue::sign::{ApiKey, Credentials, Dialect, Network};
    use windvane_venue::speak::{FuturesAccount, Names};
    use windvane_venue::{Assets, Brand};

    use super::*;
    use crate::exchange::{Documented, Signing};
    use crate::requests::{CallAnswer, CallId, RequestTerms};

    const BTC: InstrumentId = InstrumentId(0);
    const NOW: Time = Time(1_700_000_000_000_000_000);

    fn names() -> Names {
        let mut assets = Assets::default();
        let (base, quote) = (assets.id("BTC"), assets.id("USDT"));
        let instrument = Instrument {
            surface: Surface::Futures,
            symbol: "BTCUSDT".into(),
            status: SymbolStatus::Trading,
            base,
            quote,
            price_scale: 1,
            qty_scale: 3,
            price_precision: None,
            qty_precision: None,
            filters: Filters::default(),
            order_types: Vec::new(),
            times_in_force: Vec::new(),
            trigger_protect: None,
            market_take_bound: None,
            liquidation_fee: None,
        };
        Names::new(&[instrument], assets.names())
    }

    fn requests(signing: Signing) -> Requests {
        let secret = SecretString::from("secret".to_owned());
        let identity = Identity {
            dialect: Dialect {
                brand: Brand::new("svc").unwrap(),
                network: Network::Mainnet,
                recv_window_ms: None,
            },
            credentials: Credentials {
                api_key: Some(ApiKey::new("key", secret)),
                ..Credentials::default()
            },
            spot_api: Api::V1,
            futures_api: Api::V1,
            hosts: [const { None }; 4],
        };
        let gateway = Gateway::new(identity, Shares::default(), Arc::new(Nonces::new()));
        let terms = RequestTerms {
            request: Duration::from_secs(10),
            countdown: Duration::from_secs(10),
        };
        let exchange = Box::new(Documented::new(gateway, false, signing));
        let mut requests = Requests::new(exchange, terms, NOW, vec![Surface::Futures], 0);
        requests.know(names(), FuturesAccount::Routes);
        requests
    }

    fn id() -> ClientOrderId {
        ClientOrderId::new("mm.a.1").unwrap()
    }

    fn place() -> Request {
        let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::Market);
        terms.qty = Some(Qty(5));
        Request::Place(NewOrder {
            client_order_id: id(),
            terms,
        })
    }

    fn cancel() -> Request {
        Request::Cancel {
            instrument: BTC,
            client_order_id: id(),
        }
    }

    /// An order that left, and a cancel that waits for it.
    fn with_order() -> (Requests, CallId) {
        let mut requests = requests(Signing::Here);
        for request in [place(), cancel()] {
            let purpose = EnginePurpose::Ordinary;
            requests.carry(NOW, (request, purpose), None, false);
        }
        let [order] = sent(&mut requests)[..] else {
            panic!("the order alone leaves")
        };
        (requests, order)
    }

    fn sent(requests: &mut Requests) -> Vec<CallId> {
        let done = std::iter::from_fn(|| requests.poll());
        let sent = done.filter_map(|done| match done {
            Done::Send(call) => Some(call.id),
            _ => None,
        });
        sent.collect()
    }

    #[test]
    fn a_cancel_follows_the_answer_to_its_order() {
        let (mut requests, order) = with_order();
        let answer = CallAnswer::Came(Answer {
            status: 400,
            headers: &[],
            text: r#"{"code":-2019,"msg":"Margin is insufficient."}"#,
        });
        requests.answered(NOW, (order, answer));
        assert_eq!(sent(&mut requests).len(), 1);
    }

    #[test]
    fn a_cancel_follows_its_order_after_a_second_without_an_answer() {
        let (mut requests, _) = with_order();
        requests.timeout(NOW.plus_ms(FOLLOW_MS - 1));
        assert!(sent(&mut requests).is_empty());
        requests.timeout(NOW.plus_ms(FOLLOW_MS));
        assert_eq!(sent(&mut requests).len(), 1);
    }

    #[test]
    fn an_order_that_did_not_leave_is_refused_and_its_cancel_is_not_sent() {
        let (mut requests, order) = with_order();
        // The process was stopped: the answer's time is over, and the cancel has waited its second.
        let later = NOW.plus_ms(60_000);
        requests.timeout(later);
        let given_up = requests.poll();
        assert!(
            matches!(given_up, Some(Done::Abandon(id)) if id == order),
            "{given_up:?}"
        );
        assert!(
            sent(&mut requests).is_empty(),
            "what became of the order comes first"
        );
        let late = CallAnswer::Late(Duration::from_secs(59));
        requests.answered(later, (order, late));
        let mut replies = Vec::new();
        while let Some(done) = requests.poll() {
            match done {
                Done::Replies(some) => replies.extend(some),
                Done::Send(call) => panic!("{:?} leaves", call.route.name),
                _ => {}
            }
        }
        let [Reply::Placed { outcome, .. }, Reply::Canceled { .. }] = &replies[..] else {
            panic!("{replies:?}")
        };
        assert!(
            matches!(outcome, Outcome::Refused(refusal) if refusal.is_not_sent()),
            "{outcome:?}"
        );
        assert!(requests.is_idle());
    }

    #[test]
    fn a_reading_that_the_shell_gave_up_before_it_left_is_unknown_and_not_refused() {
        let mut requests = requests(Signing::Here);
        let surface = Surface::Futures;
        let read = Request::Read(Subject::OpenOrders { surface });
        requests.carry(NOW, (read, EnginePurpose::Ordinary), None, false);
        let calls = sent(&mut requests);
        let late = CallAnswer::Late(Duration::from_secs(59));
        requests.answered(NOW.plus_ms(60_000), (calls[0], late));
        let replies = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
            Done::Replies(replies) => Some(replies),
            _ => None,
        });
        let replies = replies.unwrap();
        let [Reply::Read { outcome, .. }] = &replies[..] else {
            panic!("{replies:?}")
        };
        assert!(matches!(outcome, Outcome::Unknown), "{outcome:?}");
    }

    /// Reads the futures account, which is answered with this; answers the route that was asked.
    fn read_account(requests: &mut Requests, status: u16, text: &str) -> &'static str {
        let surface = Surface::Futures;
        let read = Request::Read(Subject::Account { surface });
        requests.carry(NOW, (read, EnginePurpose::Ordinary), None, false);
        let call = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
            Done::Send(call) => Some(call),
            _ => None,
        });
        let call = call.unwrap();
        let headers = &[];
        let answer = CallAnswer::Came(Answer {
            status,
            headers,
            text,
        });
        requests.answered(NOW, (call.id, answer));
        while requests.poll().is_some() {}
        call.route.name
    }

    #[test]
    fn a_start_that_did_not_learn_where_the_account_is_leaves_it_to_the_first_clear_answer() {
        let not_served = r#"{"code":-1020,"msg":"This operation is not supported."}"#;
        let cut = r#"{"code":-1020,"msg":"This o"#;
        let address = "0x1".to_owned();
        let other = FuturesAccount::Info { address };
        let mut not_here = requests(Signing::Here);
        not_here.end_start(Some(other.clone()));
        assert_eq!(read_account(&mut not_here, 400, cut), "futures.account");
        let asked = read_account(&mut not_here, 400, not_served);
        assert_eq!(asked, "futures.account");
        assert_ne!(read_account(&mut not_here, 200, "{}"), "futures.account");

        let mut here = requests(Signing::Here);
        here.end_start(Some(other));
        // Once it was read there, a refusal is that of a venue in trouble.
        for (status, text) in [(200, "{}"), (400, not_served), (200, "{}")] {
            assert_eq!(read_account(&mut here, status, text), "futures.account");
        }
    }

    /// A call of the request, which waits for its signature.
    fn signing(requests: &mut Requests, request: Request) -> (CallId, Unsigned) {
        requests.carry(NOW, (request, EnginePurpose::Ordinary), None, false);
        let signs = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
            Done::Sign(id, unsigned) => Some((id, unsigned)),
            Done::Send(call) => panic!("{} leaves without its signature", call.route.name),
            _ => None,
        });
        signs.unwrap()
    }

    #[test]
    fn a_call_leaves_once_a_signer_elsewhere_signed_it() {
        let mut requests = requests(Signing::Elsewhere);
        let (id, unsigned) = signing(&mut requests, cancel());
        assert!(!requests.is_idle());
        let prepared = requests.gateway().sign(&unsigned);
        requests.signed(NOW.plus_ms(400), id, prepared.clone());
        assert_eq!(sent(&mut requests), [id]);
        // A second answer of the signer is of nothing.
        requests.signed(NOW.plus_ms(500), id, prepared);
        assert!(sent(&mut requests).is_empty());
    }

    #[test]
    fn a_reading_without_a_signature_is_unknown_and_not_refused() {
        let mut requests = requests(Signing::Elsewhere);
        let surface = Surface::Futures;
        let read = Request::Read(Subject::OpenOrders { surface });
        signing(&mut requests, read);
        requests.timeout(requests.next().unwrap());
        let replies = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
            Done::Replies(replies) => Some(replies),
            _ => None,
        });
        let replies = replies.unwrap();
        let [Reply::Read { outcome, .. }] = &replies[..] else {
            panic!("{replies:?}")
        };
        assert!(matches!(outcome, Outcome::Unknown), "{outcome:?}");
    }

    #[test]
    fn what_is_signed_during_a_ban_does_not_leave() {
        let mut requests = requests(Signing::Elsewhere);
        let (id, unsigned) = signing(&mut requests, cancel());
        let ban = (Limit::Ban, Some(60_000));
        let surface = route::Surface::Futures;
        let gateway = requests.gateway();
        gateway.heed_refusal(0, surface, ban, &Cost::default());
        let prepared = gateway.sign(&unsigned);
        requests.signed(NOW.plus_ms(300), id, prepared);
        let mut told = false;
        while let Some(done) = requests.poll() {
            match done {
                Done::Send(_) => panic!("a cancel leaves into a ban"),
                Done::Replies(_) => told = true,
                _ => {}
            }
        }
        assert!(told && requests.is_idle());
    }

    #[test]
    fn an_order_that_is_signed_too_late_does_not_leave_and_is_refused() {
        for is_signed in [true, false] {
            let mut requests = requests(Signing::Elsewhere);
            let (id, unsigned) = signing(&mut requests, place());
            let later = NOW.plus_ns(fresh_ns() + 1);
            assert!(requests.next().unwrap() < later, "it is given up in time");
            if is_signed {
                let prepared = requests.gateway().sign(&unsigned);
                requests.signed(later, id, prepared);
            } else {
                requests.timeout(later);
            }
            let mut refused = false;
            while let Some(done) = requests.poll() {
                match done {
                    Done::Send(_) => panic!("an order leaves late"),
                    Done::Replies(replies) => {
                        let not_sent = |reply: &Reply| {
                            matches!(reply, Reply::Placed { outcome: Outcome::Refused(refusal), .. }
                                if refusal.is_not_sent())
                        };
                        refused |= replies.iter().any(not_sent);
                    }
                    _ => {}
                }
            }
            assert!(refused, "the engine is told");
            assert!(requests.is_idle());
        }
    }

    #[test]
    fn a_heartbeat_without_a_signature_is_given_up_and_the_engine_is_told() {
        let mut requests = requests(Signing::Elsewhere);
        let countdown = Request::Countdown {
            instrument: BTC,
            countdown_ms: 30_000,
        };
        signing(&mut requests, countdown);
        requests.timeout(requests.next().unwrap());
        let told =
            std::iter::from_fn(|| requests.poll()).any(|done| matches!(done, Done::Replies(_)));
        assert!(told);
        assert!(requests.is_idle());
    }

    #[test]
    fn an_order_whose_answer_is_lost_is_of_unknown_outcome() {
        let (mut requests, order) = with_order();
        let lost = CallAnswer::Lost(Lost::Timeout(Duration::from_secs(10)));
        requests.answered(NOW, (order, lost));
        let replies = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
            Done::Replies(replies) => Some(replies),
            _ => None,
        });
        let replies = replies.unwrap();
        let is_unknown = |reply: &Reply| {
            matches!(
                reply,
                Reply::Placed {
                    outcome: Outcome::Unknown,
                    ..
                }
            )
        };
        assert!(replies.iter().any(is_unknown), "{replies:?}");
    }

    #[test]
    fn a_countdown_is_an_emergency_except_to_stop_one_that_nothing_needs() {
        let countdown = |countdown_ms| Request::Countdown {
            instrument: BTC,
            countdown_ms,
        };
        let urgent = |ms, purpose| lane(&countdown(ms), purpose).is_emergency();
        assert!(urgent(30_000, EnginePurpose::Ordinary));
        assert!(urgent(0, EnginePurpose::Close), "the stop waits for it");
        assert!(!urgent(0, EnginePurpose::Ordinary));
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
                asked: AskedRoute {
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
