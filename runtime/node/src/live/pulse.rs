//! The one thread that owns the engine: it takes what happened, in order, and does what follows.
//! It waits for nothing but the next thing that happens, and while it waits, the tasks of its
//! thread work (`thread`).

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use windvane_admin::view::JournalLag;
use windvane_driver::{Action, Driver};
use windvane_engine::live::LiveInput;
use windvane_engine::record::Block;
use windvane_engine::{
    ClientOrderId, ENGINE_RULES, Input, InstrumentId, Notice, Reply, Request, StrategyId, Surface,
    Time, UserEvent,
};
use windvane_journal::{AppendError, Event as JournalEvent, Journal, RollError};
use windvane_venue::market_stream;
use windvane_venue::speak::{MarketReader, Missing, Speaker};
use windvane_venue::{BookLevels, Frame, user_stream};

use super::account::Account;
use super::awake::Awake;
use super::carrier;
use super::clock::{Clock, by_engine_clock};
use super::guests::LiveGuests;
use super::head::{Head, SavedStrategy};
use super::mailbox::{Happened, Inbox, Waited};
use super::outside::Outside;
use super::player::Player;
use super::remains::{self, Remains};
use super::results::Results;
use super::steering::CarriedOut;
use super::{tell, venue_wait};
use crate::config::Leave;
use crate::results::{ResultError, Summary};
use crate::strategies::Made;

/// An order that the client does not send is answered within this.
const SENT_AFTER: Duration = Duration::from_millis(100);
/// What was recorded becomes durable within this, orders or not.
const SEAL_EVERY: Duration = Duration::from_millis(100);
/// A segment is ended at this many bytes of records. sled keeps in memory what it writes, so that
/// this, compressed to a third or less, is what the journal needs; and a start reads little.
const SEGMENT_BYTES: u64 = 8 << 20;
/// Or at this many blocks: each costs sled some hundred bytes beside its own.
const SEGMENT_BLOCKS: u64 = 16_384;
/// So many times more of a recording that is played: a segment's end is a place of the wall's time,
/// which the fingerprint tells.
const PLAYED: u64 = 8;
/// Or after so long: what strategies saved is in its head.
const SEGMENT_AGE: Duration = Duration::from_mins(5);
/// A disk that is well has an order's record in less.
const LOOK_OUT: Duration = Duration::from_millis(2);
/// While it looks out, the way of an order is walked without one this often.
const REHEARSE_EVERY: Duration = Duration::from_micros(200);
/// After a disk failed, this often a new segment is tried.
const ROLL_AGAIN: Duration = Duration::from_secs(1);
/// How long `on_stop` may take, beside what the venue has it wait.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// The longest wait that the stop sits out. A ban may be longer: then what is left open is named, and
/// the run ends.
const STOP_WAITS: Duration = Duration::from_secs(150);

/// A strategy's name and the hash of its module.
pub type Module = (String, [u8; 32]);

/// What the thread is made of.
pub struct Pulse {
    pub clock: Clock,
    pub driver: Driver<LiveGuests>,
    pub journal: Journal,
    pub reader: MarketReader,
    pub speaker: Speaker,
    pub account: Account,
    /// The recordings, where they are the market.
    pub player: Option<Player>,
    /// What a run on recordings comes to.
    pub results: Option<Results>,
    pub outside: Outside,
    pub inbox: Inbox,
    /// The thread never sleeps.
    pub busy_poll: bool,
    /// Nor do the processors.
    pub _awake: Option<Awake>,
    /// Asked to stop: the run ends once `on_stop` is done.
    pub stop: Receiver<()>,
}

/// How it came to an end.
pub struct Finish {
    /// Why.
    pub ended: Ended,
    /// What `on_stop = "flatten"` did not close.
    pub remains: Vec<Remains>,
    /// What the run did not learn before its end, in words; empty where it knows the account.
    pub unknown: String,
    /// Own orders that may rest at the venue, in words.
    pub resting: String,
    /// What a run on recordings came to.
    pub results: Option<Result<Option<Summary>, ResultError>>,
}

/// Why the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to, and `on_stop` is done.
    Stopped,
    /// It was asked to, and `on_stop` was not done in its time, or it was asked twice.
    Hurried,
    /// Another instance trades on the account, as this order shows: `on_stop` is not applied.
    AnotherInstance(ClientOrderId),
}

/// What the thread remembers between turns.
pub(super) struct State {
    levels: BookLevels,
    fetching: BTreeSet<InstrumentId>,
    sealed: Instant,
    stopping: Option<Instant>,
    /// The stop may take until then: the venue said wait.
    stop_by: Option<Instant>,
    /// Positions that no order can close count as flat at the stop.
    dust: BTreeSet<(StrategyId, InstrumentId)>,
    /// Blocks that the journal had no room for.
    behind: VecDeque<Block>,
    /// Blocks that are not durable yet.
    appended: VecDeque<Appended>,
    durable: u64,
    /// When the public frame came that is being handled, or that led to what is released.
    event_at: Option<Instant>,
    /// Requests were handed to the tasks of this thread, which are to have their turn.
    handed: bool,
    /// Requests of orders that were handed over, and when. The log says that one was sent once its
    /// answer is there, or after [`SENT_AFTER`]: one that the client does not send is answered sooner.
    sent: VecDeque<(Instant, Request)>,
    rolled: Instant,
    rolling: bool,
    /// The next segment is to begin as soon as it can.
    pub(super) roll_wanted: bool,
    /// A configuration is being read anew.
    pub(super) reloading: bool,
    failed: bool,
    /// Commands that are done but for their latch, since when.
    pub(super) carried_out: Vec<CarriedOut>,
}

/// A block on its way to the disk.
struct Appended {
    last_record: u64,
    at: Instant,
    /// When the public frame came that it follows from.
    event_at: Option<Instant>,
}

impl State {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            levels: BookLevels::default(),
            fetching: BTreeSet::new(),
            sealed: now,
            stopping: None,
            stop_by: None,
            dust: BTreeSet::new(),
            behind: VecDeque::new(),
            appended: VecDeque::new(),
            durable: 0,
            event_at: None,
            handed: false,
            sent: VecDeque::new(),
            rolled: now,
            rolling: false,
            roll_wanted: false,
            reloading: false,
            failed: false,
            carried_out: Vec::new(),
        }
    }

    /// Whether the journal has no room for what was recorded.
    pub(super) fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Whether the run was asked to end.
    pub(super) const fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Everything up to a record is durable; answers when the first frame came that waited for it.
    fn settle(&mut self, record: u64) -> Option<Instant> {
        let mut first = None;
        self.durable = self.durable.max(record);
        while let Some(block) = self.appended.front()
            && block.last_record <= record
        {
            first = first.or(block.event_at);
            self.appended.pop_front();
        }
        first
    }
}

impl Pulse {
    /// Runs until it is asked to stop.
    pub async fn run(mut self) -> Finish {
        let mut state = State::new();
        self.act(&mut state);
        let ended = loop {
            match self.next(&state).await {
                Waited::Happened(happened) => self.take(happened, &mut state),
                Waited::Journal(event) => self.take_journal(event, &mut state),
                Waited::TimeOver => {}
                Waited::Closed => break Ended::Hurried,
            }
            self.let_leave(&mut state).await;
            self.keep_time(&mut state);
            self.let_leave(&mut state).await;
            if let Some(ended) = self.ending(&mut state) {
                break ended;
            }
        };
        self.driver.seal();
        self.act(&mut state);
        self.let_leave(&mut state).await;
        let remains = self.remains(&state);
        tell::unclosed(&remains);
        if matches!(self.account, Account::Venue(_)) {
            tell::stays_open(self.driver.engine(), !remains.is_empty());
        }
        let unknown = remains::unknown(self.driver.engine());
        let resting = remains::resting(&self.driver);
        if ended != Ended::Hurried {
            self.outside.let_watchdog_go();
            self.save_last(&mut state);
        }
        for (_, request) in state.sent.drain(..) {
            tell::sent(self.driver.engine(), &request);
        }
        // The disk is waited for elsewhere, so that what still has to leave does.
        let journal = self.journal;
        match tokio::task::spawn_blocking(move || journal.close()).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => {
                tracing::error!(%failure, "the last records may not be durable");
            }
            Err(error) => tracing::error!(%error, "the journal was not ended in order"),
        }
        let results = self.results.map(|results| results.finish(self.driver));
        Finish {
            ended,
            remains,
            unknown,
            resting,
            results,
        }
    }

    /// What may leave, leaves now; only then is the journal woken, whose thread would take this
    /// processor. What waits for the journal was given to it at once.
    async fn let_leave(&mut self, state: &mut State) {
        if std::mem::take(&mut state.handed) {
            tokio::task::yield_now().await;
            self.append(state);
        }
        while let Some((_, request)) = state
            .sent
            .pop_front_if(|(handed, _)| handed.elapsed() >= SENT_AFTER)
        {
            tell::sent(self.driver.engine(), &request);
        }
    }

    /// The answer to an order says whether it was sent.
    fn tell_whether_sent(&self, reply: &Reply, state: &mut State) {
        let Reply::Placed {
            client_order_id,
            outcome,
        } = reply
        else {
            return;
        };
        let is_it =
            |(_, request): &(Instant, Request)| tell::placed_by(request) == Some(client_order_id);
        let handed = state.sent.iter().position(is_it);
        if let Some((_, request)) = handed.and_then(|place| state.sent.remove(place))
            && !tell::never_left(outcome)
        {
            tell::sent(self.driver.engine(), &request);
        }
    }

    /// On futures a rest that no order can close is a position all the same.
    fn is_spot(&self, instrument: InstrumentId) -> bool {
        let rules = self.driver.engine().instrument(instrument);
        rules.is_some_and(|rules| rules.surface == Surface::Spot)
    }

    /// The next thing. The thread stays awake for it while an order waits for the disk, for a
    /// moment, or always where it was told so.
    async fn next(&mut self, state: &State) -> Waited {
        let pause = self.pause(state);
        let begin = Instant::now();
        let awake = self.awake(state).min(pause);
        while begin.elapsed() < awake {
            let look_out = REHEARSE_EVERY.min(awake.saturating_sub(begin.elapsed()));
            if let Some(waited) = self.inbox.look_out(look_out).await {
                return waited;
            }
            self.account.rehearse();
        }
        self.inbox.wait(pause.saturating_sub(begin.elapsed())).await
    }

    /// How long the thread stays awake for the next thing.
    fn awake(&self, state: &State) -> Duration {
        let lately = |block: &Appended| block.at.elapsed() < LOOK_OUT;
        if self.busy_poll {
            Duration::MAX
        } else if self.driver.waiting() > 0 && state.appended.back().is_some_and(lately) {
            LOOK_OUT
        } else {
            Duration::ZERO
        }
    }

    /// How long to wait for the next thing: to the engine's next timer, and not past a seal.
    fn pause(&mut self, state: &State) -> Duration {
        if let Some(pause) = self.pause_of_playing(state) {
            return pause.min(SEAL_EVERY);
        }
        let next = self.driver.next_timeout().unwrap_or(Time::NEVER);
        let next = next.min(self.account.next());
        let left = next.0.saturating_sub(self.clock.now().0).max(0);
        Duration::from_nanos(left.unsigned_abs()).min(SEAL_EVERY)
    }

    pub(super) fn handle(&mut self, input: Input<'_>, state: &mut State) {
        self.driver.handle(self.clock.now(), input);
        self.act(state);
    }

    fn take(&mut self, happened: Happened, state: &mut State) {
        match happened {
            Happened::Frame { surface, frame } => {
                self.outside.count_frame(surface);
                state.event_at = Some(frame.received());
                self.take_frame(surface, frame.text(), state);
                state.event_at = None;
            }
            Happened::Interrupted { surface, symbols } => {
                self.interrupted(surface, &symbols, state);
            }
            Happened::Depth { instrument, text } => {
                self.take_depth(instrument, text.as_deref(), state);
            }
            Happened::User { surface, text } => self.take_user(surface, &text, state),
            Happened::Replies(replies) => {
                for reply in &replies {
                    self.tell_whether_sent(reply, state);
                    self.handle(Input::Reply(reply), state);
                    self.outside.unsettled.hear(self.driver.engine(), reply);
                }
            }
            Happened::Live(input) => {
                let input = by_engine_clock(input, self.clock.ahead_ns());
                self.handle(Input::Live(&input), state);
            }
            Happened::Reload(reload) => self.take_reload(*reload, state),
            Happened::Nudge => {}
        }
    }

    fn take_frame(&mut self, surface: Surface, text: &str, state: &mut State) {
        let decoded = match market_stream::decode(text, &mut state.levels) {
            Ok(decoded) => decoded,
            Err(error) => {
                tracing::warn!(%surface, %error, text, "a public frame cannot be read");
                return;
            }
        };
        let (driver, account, now) = (&mut self.driver, &mut self.account, self.clock.now());
        let mut emit = |instrument: InstrumentId, event: windvane_engine::MarketEvent<'_>| {
            account.market(now, instrument, &event);
            driver.handle(now, Input::Market { instrument, event });
        };
        let missing = self
            .reader
            .frame(surface, &decoded.event, &state.levels, &mut emit);
        self.after_frame(missing, state);
    }

    fn after_frame(
        &mut self,
        missing: Result<Missing, windvane_venue::speak::MarketError>,
        state: &mut State,
    ) {
        self.act(state);
        match missing {
            Ok(Missing::Nothing) => {}
            Ok(Missing::Snapshot(id)) => {
                if state.fetching.insert(id)
                    && let Some(instrument) = self.driver.engine().instrument(id)
                {
                    self.outside.fetch_depth(id, instrument);
                }
            }
            Err(error) => tracing::warn!(%error, "a public frame is not used"),
        }
    }

    fn take_depth(&mut self, id: InstrumentId, text: Option<&str>, state: &mut State) {
        state.fetching.remove(&id);
        let Some(text) = text else { return };
        let Some(instrument) = self.driver.engine().instrument(id) else {
            return;
        };
        let symbol = instrument.symbol.as_str();
        let decoded = windvane_venue::decode(text.as_bytes(), &mut state.levels);
        let snapshot = match decoded.map(|decoded| decoded.frame) {
            Ok(Frame::Snapshot(snapshot)) => snapshot,
            Ok(_) => {
                tracing::warn!(symbol, text, "a depth answer is none");
                return;
            }
            Err(error) => {
                tracing::warn!(symbol, %error, "a depth answer cannot be read");
                return;
            }
        };
        let (driver, account, now) = (&mut self.driver, &mut self.account, self.clock.now());
        let mut emit = |instrument: InstrumentId, event: windvane_engine::MarketEvent<'_>| {
            account.market(now, instrument, &event);
            driver.handle(now, Input::Market { instrument, event });
        };
        let missing = self
            .reader
            .snapshot(id, &snapshot, &state.levels, &mut emit);
        self.after_frame(missing, state);
    }

    fn interrupted(&mut self, surface: Surface, symbols: &[String], state: &mut State) {
        for symbol in symbols {
            let Some(id) = self.speaker.names.instrument(surface, symbol) else {
                continue;
            };
            let (driver, account, now) = (&mut self.driver, &mut self.account, self.clock.now());
            let mut emit = |instrument: InstrumentId, event: windvane_engine::MarketEvent<'_>| {
                account.market(now, instrument, &event);
                driver.handle(now, Input::Market { instrument, event });
            };
            self.reader.interrupted(id, &mut emit);
        }
        self.act(state);
    }

    fn take_user(&mut self, surface: Surface, text: &str, state: &mut State) {
        let said = user_stream::decode(surface, text)
            .map_err(|error| error.to_string())
            .and_then(|event| {
                let said = self.speaker.user_event(&event);
                said.map_err(|error| error.to_string())
            });
        match said {
            Ok(said) => {
                for note in &said.notes {
                    carrier::log(note, "in a user event");
                }
                for event in &said.said {
                    let is_mode = |event: &UserEvent| {
                        matches!(
                            event,
                            UserEvent::PositionMode { .. } | UserEvent::AssetMode { .. }
                        )
                    };
                    if let Account::Venue(carrier) = &self.account
                        && is_mode(event)
                    {
                        carrier.forget_modes();
                    }
                    self.handle(Input::User(event), state);
                }
            }
            Err(error) => {
                // What it told is missed: the account is read again over REST.
                tracing::error!(%surface, error, text, "a user event cannot be used");
                self.handle(Input::Live(&LiveInput::StreamDown { surface }), state);
                self.outside.reconnect(surface);
            }
        }
    }

    fn take_journal(&mut self, event: JournalEvent, state: &mut State) {
        match event {
            JournalEvent::Durable { chain, took, .. } => {
                Outside::durable(took);
                state.event_at = state.settle(chain.last_record);
                self.driver.durable(self.clock.now(), chain.last_record);
                self.act(state);
                state.event_at = None;
            }
            JournalEvent::Rolled { chain, segment, .. } => {
                tracing::info!(segment, "a new segment of the journal");
                self.outside.prune();
                (state.rolling, state.rolled) = (false, Instant::now());
                state.settle(chain.last_record);
                self.driver.durable(self.clock.now(), chain.last_record);
                if std::mem::take(&mut state.failed) {
                    self.handle(Input::Live(&LiveInput::Journal { healthy: true }), state);
                }
                self.act(state);
            }
            JournalEvent::Stalled { waiting } => {
                tracing::error!(waiting_ms = waiting.as_millis(), "the journal stalls");
                self.handle(Input::Live(&LiveInput::Journal { healthy: false }), state);
            }
            JournalEvent::Healthy { .. } => {
                let healthy = !state.failed;
                self.handle(Input::Live(&LiveInput::Journal { healthy }), state);
            }
            JournalEvent::Failed(failure) => {
                tracing::error!(%failure, "the journal failed: no new exposure until it writes");
                (state.failed, state.rolling) = (true, false);
                self.handle(Input::Live(&LiveInput::Journal { healthy: false }), state);
            }
        }
    }

    /// Does what follows from the last input.
    pub(super) fn act(&mut self, state: &mut State) {
        while let Some(action) = self.driver.poll() {
            match action {
                Action::Append(block) => {
                    state.appended.push_back(Appended {
                        last_record: block.last_record,
                        at: Instant::now(),
                        event_at: state.event_at,
                    });
                    state.behind.push_back(block);
                }
                Action::Request(request) => {
                    let now = self.driver.engine().now();
                    state
                        .sent
                        .extend(tell::of_orders(&request).map(|one| (Instant::now(), one.clone())));
                    let purpose = self.driver.engine().purpose(&request);
                    if let (Account::Venue(carrier), Request::Read(_)) = (&self.account, &request) {
                        carrier.need_modes(self.driver.engine().awaits_modes());
                    }
                    self.account.carry(now, (request, purpose), state.event_at);
                    state.handed = matches!(self.account, Account::Venue(_));
                }
                Action::Reconnect(surface) => match &mut self.account {
                    Account::Venue(_) => self.outside.reconnect(surface),
                    Account::Paper(paper) => paper.reconnect(surface),
                },
                Action::Beat(number) => self.outside.beat(number),
                Action::Notice(notice) => {
                    if let Some(results) = &mut self.results {
                        results.notice(self.driver.engine(), &notice);
                    }
                    if let Notice::Quarantined { strategy, kind, .. } = *notice {
                        let trouble = self.driver.guests().trouble(strategy).unwrap_or_default();
                        self.outside.quarantined(strategy, kind, trouble);
                    }
                    if let Notice::Dust {
                        strategy,
                        instrument,
                        ..
                    } = *notice
                        && state.is_stopping()
                        && self.is_spot(instrument)
                    {
                        state.dust.insert((strategy, instrument));
                    }
                    self.outside.notice(self.driver.engine(), &notice);
                }
            }
        }
        if !state.handed || self.driver.waiting() > 0 {
            self.append(state);
        }
    }

    /// Gives blocks to the journal as far as it takes them.
    pub(super) fn append(&mut self, state: &mut State) {
        while let Some(block) = state.behind.pop_front() {
            match self.journal.append(block) {
                Err(AppendError::Full { block }) => {
                    state.behind.push_front(*block);
                    return;
                }
                // A failed journal is begun anew with a head that holds everything.
                Ok(()) | Err(AppendError::Failed(_)) => {}
                Err(AppendError::OutOfOrder(error)) => {
                    tracing::error!(%error, "a block is out of order: the journal is begun anew");
                    state.failed = true;
                }
            }
        }
    }

    /// Timers, seals, segments, and what people asked for.
    fn keep_time(&mut self, state: &mut State) {
        if self.player.is_some() {
            self.play(state);
        } else {
            self.keep_appointments(state);
        }
        if state.sealed.elapsed() >= SEAL_EVERY {
            state.sealed = Instant::now();
            // A recording's blocks end by its own time.
            if self.player.is_none() {
                self.driver.save(self.clock.now());
                self.driver.seal();
                self.act(state);
            }
            self.append(state);
            self.roll_if_due(state);
        }
        while let Some(input) = self.outside.next_stop() {
            self.handle(Input::Live(&input), state);
        }
        while let Some(steer) = self.outside.next_command() {
            self.command(steer, state);
        }
        // A limit latches too; what cannot be written is tried again.
        self.outside.latches.keep(self.driver.engine());
        self.answer_commands(state);
        let lag = self.lag(state);
        self.outside.publish(&self.driver, lag, false);
    }

    /// What the simulated account has to say, and the engine's timers.
    fn keep_appointments(&mut self, state: &mut State) {
        while let Some(word) = self.account.poll(self.clock.now()) {
            self.handle(word.as_input(), state);
        }
        let now = self.clock.now();
        if self.driver.next_timeout().is_some_and(|at| at <= now) {
            self.handle(Input::Timeout, state);
        }
    }

    pub(super) fn lag(&self, state: &State) -> JournalLag {
        let oldest = state.appended.front();
        let behind = oldest.map_or(Duration::ZERO, |block| block.at.elapsed());
        JournalLag {
            written: self.driver.engine().records(),
            durable: state.durable,
            behind_ms: u64::try_from(behind.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Ends a segment that is long enough, or one whose disk failed.
    fn roll_if_due(&mut self, state: &mut State) {
        let many = if self.player.is_some() { PLAYED } else { 1 };
        let long = self.journal.segment_bytes() >= SEGMENT_BYTES * many
            || self.journal.segment_blocks() >= SEGMENT_BLOCKS * many
            || state.rolled.elapsed() >= SEGMENT_AGE
            || state.roll_wanted;
        let due = if state.failed {
            state.rolled.elapsed() >= ROLL_AGAIN
        } else {
            long && state.behind.is_empty()
        };
        if state.rolling || !due {
            return;
        }
        let (engine, states) = self.driver.snapshot();
        self.act(state);
        self.append(state);
        if state.failed || state.behind.is_empty() {
            self.roll(engine, states, state);
        }
    }

    /// The last segment of an orderly end holds nothing but what strategies save: the next start
    /// gives it back to them.
    fn save_last(&mut self, state: &mut State) {
        let (engine, states) = self.driver.snapshot();
        self.act(state);
        self.append(state);
        if state.failed || !state.behind.is_empty() {
            tracing::warn!("the journal has no room: strategies go on from what they saved before");
            return;
        }
        self.roll(engine, states, state);
    }

    fn roll(&mut self, engine: Vec<u8>, states: Vec<Option<Vec<u8>>>, state: &mut State) {
        state.rolled = Instant::now();
        let made = self.driver.guests().made();
        let head = head(engine, states, &self.outside.modules, made, &self.account);
        let chain = self.driver.engine().chain();
        match self.journal.roll(head.to_bytes(), chain) {
            Ok(()) => (state.rolling, state.roll_wanted) = (true, false),
            Err(RollError::Full) => {}
            Err(error @ RollError::OutOfPlace { .. }) => {
                tracing::error!(%error, "the journal is not where the engine is");
            }
        }
    }

    /// Has `on_stop` applied.
    pub(super) fn begin_stop(&mut self, state: &mut State) {
        state.stopping = Some(Instant::now());
        self.account.hurry();
        self.handle(Input::Live(&LiveInput::Stop), state);
        venue_wait::tell_stop(self.driver.engine(), STOP_WAITS);
    }

    /// What strategies hold at the end although `on_stop` would have it closed.
    fn remains(&self, state: &State) -> Vec<Remains> {
        if !state.is_stopping() || self.outside.config.run.on_stop != Leave::Flatten {
            return Vec::new();
        }
        remains::held(self.driver.engine(), |strategy, instrument| {
            !state.dust.contains(&(strategy, instrument))
        })
    }

    /// Whether the run ends now.
    fn ending(&mut self, state: &mut State) -> Option<Ended> {
        if self.stop.try_recv().is_ok() {
            if state.stopping.is_some() {
                return Some(Ended::Hurried);
            }
            self.begin_stop(state);
        }
        if let Some(order) = self.driver.engine().other_instance() {
            return Some(Ended::AnotherInstance(order));
        }
        let since = state.stopping?;
        if self.driver.engine().has_stopped() {
            return Some(Ended::Stopped);
        }
        self.sit_out(since, state);
        let by = state.stop_by.unwrap_or(since + STOP_WITHIN);
        (Instant::now() >= by).then_some(Ended::Hurried)
    }

    /// Lets the stop last as long as the venue has it wait, where that is not too long.
    fn sit_out(&self, since: Instant, state: &mut State) {
        let engine = self.driver.engine();
        let flattens = self.outside.config.run.on_stop == Leave::Flatten;
        let waits = self.outside.surfaces.iter().filter_map(|surface| {
            let orders = engine.order_wait(*surface).filter(|_| flattens);
            engine.venue_wait(*surface).max(orders)
        });
        let Some(until) = waits.max() else { return };
        let left = until.0.saturating_sub(engine.now().0).max(0);
        let end = Instant::now() + Duration::from_nanos(left.unsigned_abs());
        if end > since + STOP_WAITS {
            return;
        }
        let by = end + STOP_WITHIN;
        if state.stop_by.is_none_or(|before| before < by) {
            state.stop_by = Some(by);
        }
    }
}

/// The head of a segment that begins here.
pub fn head(
    engine: Vec<u8>,
    states: Vec<Option<Vec<u8>>>,
    modules: &[Module],
    made: Vec<Made>,
    account: &Account,
) -> Head {
    let strategies = modules.iter().zip(states).zip(made);
    Head {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine,
        strategies: strategies
            .map(|(((name, sha256), state), made)| SavedStrategy {
                name: name.clone(),
                sha256: *sha256,
                state,
                made,
            })
            .collect(),
        paper: account.to_bytes(),
        engine_rules: ENGINE_RULES,
    }
}
