//! The steps of a start before its engine exists: read the rules of the instruments and the venue's
//! clocks, and find out where the futures account is read.
//!
//! [`Startup`] has no IO. The shell sends the calls of [`Startup::poll_output`], passes the results to
//! it and calls it at [`Startup::poll_timeout`], until [`Startup::take_result`] returns something. A
//! request without a usable response is repeated after growing pauses, or after the wait that a
//! limit of the venue names.

use std::collections::VecDeque;
use std::time::Duration;

use windvane_client_core::budget::BAN_MAX;
use windvane_client_core::gateway::Unsigned;
use windvane_client_core::outcome::{NotDone, Wait, WaitReason};
use windvane_model::{Instrument, Surface, Time, planted};
use windvane_protocol::Assets;
use windvane_protocol::adapter::FuturesAccount;
use windvane_protocol::sign::{PrepareError, Prepared};

use crate::exchange::Query;
use crate::instrument_name::{InstrumentName, surfaces};
use crate::log_throttle::LogThrottle;
use crate::requests::{Call, CallAnswer, CallEnded, CallId, ClockRead, Done, Requests};
use crate::startup_error::StartupError;
use crate::surface::venue_surface;

/// While the venue does not respond, requests are repeated. The pauses grow from the first value to
/// the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// A refused or incomplete listing may be a transmission error, so it is requested again. After
/// this many, the start fails. Responses that cannot be read do not count.
const UNUSABLE_MAX: u32 = 3;

/// What a start must find out from the venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupTerms {
    /// The instruments, in the order of their ids.
    pub instruments: Vec<InstrumentName>,
    /// Whether the clocks of the surfaces are read, because signed requests carry the venue's time.
    pub reads_clocks: bool,
    /// How to find out where the futures account is read; `None` if it is not read.
    pub futures_account: Option<FindAccount>,
}

/// How to find out where the futures account is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindAccount {
    /// Only the core interface is used (docs/interface/README.md#core-and-public-facts): the
    /// account is read at the info endpoint, by wallet address.
    Documented,
    /// The futures account routes (docs/interface/account.md#futures-account-routes) if the venue
    /// has them; the info endpoint otherwise.
    TryRoute,
}

/// The result of a start.
#[derive(Debug)]
pub struct StartupResult {
    /// The instruments, in the order of their names.
    pub instruments: Vec<Instrument>,
    /// The assets of the venue.
    pub assets: Assets,
    /// Where the futures account is read.
    pub futures_account: FuturesAccount,
    /// The requests, for the session.
    pub requests: Requests,
}

/// An event for a start.
#[derive(Debug)]
pub enum StartupInput<'a> {
    /// The time of [`Startup::poll_timeout`] has come.
    Timeout,
    /// A call was signed elsewhere, or could not be signed.
    Signed(CallId, Result<Prepared, PrepareError>),
    /// The result of a call.
    Answer(CallId, CallAnswer<'a>),
}

/// Work for the shell.
#[derive(Debug)]
pub enum StartupOutput {
    /// Have this call signed; the result is [`StartupInput::Signed`].
    Sign(CallId, Unsigned),
    /// Write this call to the venue once; the result is [`StartupInput::Answer`].
    Send(Call),
    /// Give up this call. The shell reports whether it left: [`CallAnswer::Late`] or
    /// [`CallAnswer::Lost`].
    Abandon(CallId),
    /// The venue reported its limits: the budget can be divided among the lanes.
    LimitsKnown,
    /// A call ended; for the metrics.
    CallEnded(CallEnded),
}

/// One step of a start.
#[derive(Debug)]
enum Step {
    /// Request the exchange information of a surface. It also contains the limits, so it comes
    /// first: with the documented limits, the process before this one may have used more than is
    /// left.
    Listing(Surface),
    /// Make the instruments from the exchange information.
    Instruments,
    /// Read a clock.
    Clock(ClockRead),
    /// Inform the shell that the limits are known.
    Limits,
    /// Find out where the futures account is read.
    Account(FindAccount),
}

/// A start. See the module documentation.
#[derive(Debug)]
pub struct Startup {
    terms: StartupTerms,
    /// `None` once the start is over.
    requests: Option<Requests>,
    /// The remaining steps; the first one is in progress.
    steps: VecDeque<Step>,
    texts: Vec<(Surface, String)>,
    found: Option<(Vec<Instrument>, Assets)>,
    futures_account: FuturesAccount,
    /// The info endpoint, by the wallet address of the account; `None` once the account's route is
    /// known.
    info: Option<FuturesAccount>,
    /// When the first step is tried again.
    again: Option<Time>,
    pause: Duration,
    trouble: LogThrottle,
    /// Number of unusable responses so far.
    unusable: u32,
    outputs: VecDeque<StartupOutput>,
    result: Option<Result<StartupResult, StartupError>>,
}

impl Startup {
    /// Starts to read from the venue what `terms` lists, at time `now`. All calls go through
    /// `requests`.
    pub fn new(now: Time, terms: StartupTerms, requests: Requests) -> Self {
        let info = requests.exchange().other_futures_account();
        let mut start = Self {
            requests: Some(requests),
            steps: steps(now, &terms, info.is_some()),
            texts: Vec::new(),
            found: None,
            futures_account: FuturesAccount::Routes,
            info,
            again: None,
            pause: RETRY.0,
            trouble: LogThrottle::default(),
            unusable: 0,
            outputs: VecDeque::new(),
            result: None,
            terms,
        };
        if let Some(error) = start.unknown_surface() {
            start.fail(error);
        }
        start.continue_steps(now);
        start.handle_request_results(now);
        start
    }

    /// Handles one event. `now` is the shell's clock, which never runs backwards. Drain
    /// [`Self::poll_output`] after it.
    pub fn handle(&mut self, now: Time, input: StartupInput<'_>) {
        let Some(requests) = &mut self.requests else {
            return;
        };
        match input {
            StartupInput::Answer(id, answer) => requests.handle_answer(now, (id, answer)),
            StartupInput::Signed(id, prepared) => requests.signed(now, id, prepared),
            StartupInput::Timeout => {
                requests.timeout(now);
                if self.again.take_if(|again| *again <= now).is_some() {
                    self.continue_steps(now);
                }
            }
        }
        self.handle_request_results(now);
    }

    /// The next work for the shell.
    pub fn poll_output(&mut self) -> Option<StartupOutput> {
        self.outputs.pop_front()
    }

    /// When [`StartupInput::Timeout`] is due by the shell's clock.
    pub fn poll_timeout(&self) -> Option<Time> {
        let requests = self.requests.as_ref()?;
        [requests.next(), self.again].into_iter().flatten().min()
    }

    /// The result or the error, once the start is over. The shell must drain [`Self::poll_output`]
    /// first.
    pub fn take_result(&mut self) -> Option<Result<StartupResult, StartupError>> {
        self.result.take()
    }

    fn handle_request_results(&mut self, now: Time) {
        while let Some(done) = self.requests.as_mut().and_then(Requests::poll) {
            match done {
                Done::Sign(id, unsigned) => {
                    self.outputs.push_back(StartupOutput::Sign(id, unsigned));
                }
                Done::Send(call) => self.outputs.push_back(StartupOutput::Send(call)),
                Done::Abandon(id) => self.outputs.push_back(StartupOutput::Abandon(id)),
                Done::QueryEnded(_, result) => self.handle_answer(now, result),
                Done::Ended(ended) => self.outputs.push_back(StartupOutput::CallEnded(ended)),
                // The session later reports the venue's stops to its engine. A start makes no calls
                // of the other kinds.
                Done::Live(_)
                | Done::Waited(..)
                | Done::Replies(_)
                | Done::Depth(..)
                | Done::Polled(..)
                | Done::Key(..)
                | Done::Renewed(..) => {}
            }
        }
    }

    /// Runs the steps that need no response, then sends the request of the next step.
    fn continue_steps(&mut self, now: Time) {
        loop {
            let query = match self.steps.front_mut() {
                None => return self.succeed(),
                Some(Step::Limits) => {
                    self.outputs.push_back(StartupOutput::LimitsKnown);
                    self.step_done();
                    continue;
                }
                Some(Step::Instruments) => {
                    let Some(requests) = &self.requests else {
                        return;
                    };
                    let names = &self.terms.instruments;
                    match requests.exchange().instruments(names, &self.texts) {
                        Ok(found) => self.found = Some(found),
                        Err(error) => return self.unusable(now, error),
                    }
                    self.texts = Vec::new();
                    self.step_done();
                    continue;
                }
                Some(Step::Account(FindAccount::Documented)) => {
                    match self.info.take() {
                        Some(info) => self.futures_account = info,
                        None => return self.fail(StartupError::NoAddress),
                    }
                    self.step_done();
                    continue;
                }
                Some(Step::Account(FindAccount::TryRoute)) => Query::FuturesAccount,
                Some(Step::Listing(surface)) => Query::Listing(*surface),
                Some(Step::Clock(reading)) => reading.next_query(now),
            };
            return self.send_query(now, query);
        }
    }

    /// The error for an instrument whose surface the exchange does not have.
    fn unknown_surface(&self) -> Option<StartupError> {
        let surfaces = self.requests.as_ref()?.exchange().capabilities().surfaces;
        let mut names = self.terms.instruments.iter();
        let name = names.find(|name| !surfaces.contains(&name.surface))?;
        Some(StartupError::NoSurface(name.surface, name.clone()))
    }

    fn send_query(&mut self, now: Time, query: Query<'_>) {
        let Some(requests) = &mut self.requests else {
            return;
        };
        if !requests.query_for_start(now, query) {
            // Every exchange must support the requests of a start, so this should not happen.
            self.again_after(now, None);
        }
    }

    /// The result of the first step's request.
    fn handle_answer(&mut self, now: Time, result: Result<String, NotDone>) {
        match self.steps.front() {
            Some(Step::Listing(surface)) => self.listing_received(now, *surface, result),
            Some(Step::Clock(_)) => self.clock_received(now, result),
            Some(Step::Account(_)) => self.account_received(now, result),
            Some(Step::Instruments | Step::Limits) | None => {}
        }
    }

    fn listing_received(&mut self, now: Time, surface: Surface, result: Result<String, NotDone>) {
        match result {
            Ok(text) => match self.check_listing(&text) {
                Ok(()) => {
                    self.texts.push((surface, text));
                    self.step_done();
                    self.continue_steps(now);
                }
                // An empty or incomplete response shows a venue in trouble.
                Err(error) => {
                    tracing::warn!(%surface, %error, "the exchange information is not usable; it is requested again");
                    self.again_after(now, None);
                }
            },
            Err(not_done @ NotDone::Refused(_)) => {
                self.unusable(now, StartupError::Refused { surface, not_done });
            }
            Err(not_done) => {
                if let Some(repeated) = self.trouble.again(now) {
                    tracing::warn!(
                        %surface,
                        %not_done,
                        repeated,
                        "the venue did not respond; the exchange information is requested again"
                    );
                }
                self.again_after(now, named_wait(&not_done));
            }
        }
    }

    fn check_listing(&self, text: &str) -> Result<(), String> {
        let requests = self.requests.as_ref();
        requests.map_or(Ok(()), |requests| requests.exchange().check_listing(text))
    }

    /// The exchange information cannot be used.
    fn unusable(&mut self, now: Time, error: StartupError) {
        self.unusable += 1;
        if self.unusable >= UNUSABLE_MAX {
            return self.fail(error);
        }
        tracing::warn!(%error, "the exchange information may be corrupt; it is requested again");
        if matches!(self.steps.front(), Some(Step::Instruments)) {
            self.texts.clear();
            for surface in surfaces(&self.terms.instruments).into_iter().rev() {
                self.steps.push_front(Step::Listing(surface));
            }
        }
        self.again_after(now, None);
    }

    fn clock_received(&mut self, now: Time, result: Result<String, NotDone>) {
        let Some(Step::Clock(reading)) = self.steps.front_mut() else {
            return;
        };
        let surface = reading.surface;
        let wait = result.as_ref().err().and_then(named_wait);
        let result = result.map_err(|not_done| not_done.to_string());
        let Some(requests) = &self.requests else {
            return;
        };
        match result.and_then(|text| reading.take(now, &text, requests.exchange())) {
            Ok(Some(offset)) => {
                let gateway = requests.gateway();
                gateway.set_offset(venue_surface(surface), offset);
                self.step_done();
                self.continue_steps(now);
            }
            Ok(None) => self.continue_steps(now),
            Err(_) if planted!(RecoverySkipsStep) => {
                self.step_done();
                self.continue_steps(now);
            }
            Err(error) => {
                *reading = ClockRead::new(surface, now);
                if let Some(repeated) = self.trouble.again(now) {
                    tracing::warn!(
                        %surface,
                        error,
                        repeated,
                        "the venue's clock could not be read; it is requested again"
                    );
                }
                self.again_after(now, wait);
            }
        }
    }

    /// The result of the account request. It is repeated until the venue shows whether it has the
    /// route. A lost or corrupt response must not count as a yes: the run could not read its
    /// account then.
    fn account_received(&mut self, now: Time, result: Result<String, NotDone>) {
        let wait = match result {
            Err(NotDone::Refused(refusal)) => {
                let info = self.info.take_if(|_| refusal.is_of_unserved_read());
                if let Some(info) = info {
                    tracing::warn!("the venue has no account route; the info endpoint is used");
                    self.futures_account = info;
                }
                self.step_done();
                return self.continue_steps(now);
            }
            Ok(text) if self.is_account(&text) => {
                self.info = None;
                self.step_done();
                return self.continue_steps(now);
            }
            Ok(_) => None,
            Err(not_done) => named_wait(&not_done),
        };
        tracing::warn!("the account route gave no usable response; it is requested again");
        self.again_after(now, wait);
    }

    fn is_account(&self, text: &str) -> bool {
        let requests = self.requests.as_ref();
        requests.is_some_and(|requests| requests.exchange().is_account(text))
    }

    fn step_done(&mut self) {
        self.steps.pop_front();
        self.pause = RETRY.0;
        self.trouble = LogThrottle::default();
    }

    /// The first step is tried again after `wait`, which a limit of the venue names, or else after
    /// the next pause.
    fn again_after(&mut self, now: Time, wait: Option<Duration>) {
        let wait = wait.unwrap_or(self.pause);
        let wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        self.again = Some(now.plus_ns(wait_ns));
        self.pause = (self.pause * 2).min(RETRY.1);
    }

    fn succeed(&mut self) {
        let Some(mut requests) = self.requests.take() else {
            return;
        };
        requests.end_start(self.info.take());
        let (instruments, assets) = self.found.take().unwrap_or_default();
        self.result = Some(Ok(StartupResult {
            instruments,
            assets,
            futures_account: self.futures_account.clone(),
            requests,
        }));
    }

    fn fail(&mut self, error: StartupError) {
        self.requests = None;
        self.result = Some(Err(error));
    }
}

/// The steps of a start, in their order.
fn steps(now: Time, terms: &StartupTerms, has_address: bool) -> VecDeque<Step> {
    let surfaces = surfaces(&terms.instruments);
    let mut steps: VecDeque<_> = surfaces.iter().copied().map(Step::Listing).collect();
    steps.push_back(Step::Instruments);
    if terms.reads_clocks {
        let clocks = surfaces.iter();
        steps.extend(clocks.map(|surface| Step::Clock(ClockRead::new(*surface, now))));
    }
    steps.push_back(Step::Limits);
    // Without a wallet address the info endpoint cannot be used, so the venue need not be asked.
    let account = terms.futures_account;
    let account = account.filter(|find| *find == FindAccount::Documented || has_address);
    steps.extend(account.map(Step::Account));
    steps
}

/// The wait that a limit names; no other wait applies then.
fn named_wait(not_done: &NotDone) -> Option<Duration> {
    match not_done {
        NotDone::Wait(Wait {
            why: WaitReason::Venue(_) | WaitReason::Budget(_),
            after,
        }) => Some((*after).clamp(RETRY.0, BAN_MAX)),
        _ => None,
    }
}
