//! The engine's thread in virtual time: what `node/src/live/pulse` does between its mailbox and the
//! driver, without its clock and its channels. It is written a second time here, for that file
//! waits and reads clocks at every step; what it calls is the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use windvane::live::head::{Head, SavedStrategy};
use windvane::strategies::Made;
use windvane_driver::{Action, Driver, Guests as _};
use windvane_engine::engine::Latch;
use windvane_engine::input::Command;
use windvane_engine::live::LiveInput;
use windvane_engine::record::Chain;
use windvane_engine::{
    Amount, AssetId, ENGINE_RULES, Engine, Input, InstrumentId, MarketEvent, Notice, Request,
    StrategyId, Surface, Time, UserEvent,
};
use windvane_venue::speak::{MarketReader, Missing, Speaker};
use windvane_venue::{BookLevels, Frame, market_stream, user_stream};

use super::closes::Closes;
use super::overheard::Overheard;
use super::{Out, notices};
use crate::witness::Seen;

/// As in the live run: what was recorded becomes durable within this.
const SEAL_EVERY_NS: i64 = 100_000_000;
/// A segment ends after so long.
const SEGMENT_AGE_NS: i64 = 300_000_000_000;
/// After a disk failed, this often a new segment is tried.
const ROLL_AGAIN_NS: i64 = 1_000_000_000;

/// A strategy's name and the hash of its module.
pub type Module = (String, [u8; 32]);

/// What the pulse wants of the process.
#[derive(Debug)]
pub enum Wish {
    /// A request for the venue.
    Carry(Request),
    /// A new connection of a user stream.
    Reconnect(Surface),
    /// The depth of an instrument.
    Depth(InstrumentId),
    /// The venue's modes are not what was read.
    ForgetModes,
}

/// A run.
pub struct Pulse {
    life: u32,
    /// The epoch that was reserved for this process.
    epoch: u64,
    driver: Driver<Overheard>,
    reader: MarketReader,
    speaker: Speaker,
    modules: Vec<Module>,
    levels: BookLevels,
    fetching: BTreeSet<InstrumentId>,
    /// The engine's clock: it never runs backwards, and not with the wall's.
    base_ns: i64,
    /// How far that is ahead of the client's clock.
    pub ahead_ns: i64,
    started_ns: i64,
    sealed_ns: i64,
    rolled_ns: i64,
    rolling: bool,
    failed: bool,
    latched: Latch,
    /// The engine's balances after the last step.
    balances: BTreeMap<(Surface, AssetId), Amount>,
    /// Closes by others that people were told of and that are not durable yet.
    closes: Closes,
    /// What it wants done, in order.
    pub wishes: VecDeque<Wish>,
}

impl Pulse {
    /// A run whose strategies were started, and that was told to begin.
    pub fn new(
        (life, epoch): (u32, u64),
        driver: Driver<Overheard>,
        speaker: Speaker,
        modules: Vec<Module>,
        latched: Latch,
        (base_ns, now_ns): (i64, i64),
    ) -> Self {
        let closes = Closes::new(driver.engine().records());
        Self {
            life,
            epoch,
            driver,
            reader: MarketReader::new(speaker.names.clone()),
            speaker,
            modules,
            levels: BookLevels::default(),
            fetching: BTreeSet::new(),
            base_ns,
            ahead_ns: 0,
            started_ns: now_ns,
            sealed_ns: now_ns,
            rolled_ns: now_ns,
            rolling: false,
            failed: false,
            latched,
            balances: BTreeMap::new(),
            closes,
            wishes: VecDeque::new(),
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.driver.engine()
    }

    /// The speaker.
    pub const fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    fn time(&self, now_ns: i64) -> Time {
        Time(self.base_ns + (now_ns - self.started_ns))
    }

    /// An input.
    pub fn handle(&mut self, now_ns: i64, input: Input<'_>, outs: &mut VecDeque<Out>) {
        self.driver.handle(self.time(now_ns), input);
        self.act(outs);
    }

    /// The operator commands.
    pub fn command(
        &mut self,
        now_ns: i64,
        command: Command,
        whom: Option<StrategyId>,
        outs: &mut VecDeque<Out>,
    ) {
        let strategy = whom.and_then(|id| self.engine().strategy_name(id).map(str::to_owned));
        outs.push_back(Out::Seen(Seen::Commanded {
            strategy,
            command: format!("{command:?}").to_lowercase(),
        }));
        let input = match whom {
            Some(strategy) => Input::Steer { strategy, command },
            None => Input::Command(command),
        };
        self.handle(now_ns, input, outs);
    }

    /// Every strategy gets a new instance of its module with the state of the old one, as in
    /// `node/src/live/reload`; one in quarantine keeps its own.
    pub fn reload(&mut self, now_ns: i64, outs: &mut VecDeque<Out>) {
        let now = self.time(now_ns);
        for place in 0..self.driver.guests().count() {
            let strategy = StrategyId(place as u16);
            if self.engine().fault(strategy).is_some() {
                continue;
            }
            let state = self.driver.state(now, strategy);
            if let Err(reason) = self.driver.renew(now, strategy, state.as_deref(), false) {
                outs.push_back(Out::Seen(Seen::Fault(format!("a reload fails: {reason}"))));
            }
            self.act(outs);
        }
    }

    /// Does what follows from the last input.
    pub fn act(&mut self, outs: &mut VecDeque<Out>) {
        for heard in self.driver.guests_mut().take() {
            let seen = notices::overheard(self.driver.engine(), self.life, self.epoch, &heard);
            outs.extend(seen.into_iter().map(Out::Seen));
        }
        let (mut filled, mut adjusted, mut others) = (false, false, false);
        while let Some(action) = self.driver.poll() {
            match action {
                Action::Append(block) => outs.push_back(Out::Append(block)),
                Action::Request(request) => {
                    self.show_top(&request, outs);
                    self.wishes.push_back(Wish::Carry(request));
                }
                Action::Reconnect(surface) => self.wishes.push_back(Wish::Reconnect(surface)),
                Action::Notice(notice) => {
                    filled |= matches!(*notice, Notice::Filled { .. } | Notice::LateFee { .. });
                    adjusted |= matches!(*notice, Notice::Adjusted { .. });
                    // What others did moves balances too, and is not told in figures.
                    others |= matches!(*notice, Notice::External { .. } | Notice::Funding { .. });
                    self.notice(&notice, outs);
                }
                // Only spot orders have a watchdog; no life here trades spot.
                Action::Beat(_) => {}
            }
        }
        let seen = filled || adjusted;
        self.show_balances(seen.then_some(filled && !others), outs);
        self.closes.end_step(self.driver.engine().records());
    }

    /// What a step made of the engine's balances, where that is to be seen, and whether fills and
    /// adjustments alone moved them.
    fn show_balances(&mut self, by_fills: Option<bool>, outs: &mut VecDeque<Out>) {
        let engine = self.driver.engine();
        for (surface, asset, balance) in engine.balances() {
            let from = self.balances.insert((surface, asset), balance.total);
            let Some(by_fills) = by_fills else { continue };
            outs.push_back(Out::Seen(Seen::Balance {
                process: self.life,
                of: format!("{surface}:{}", engine.assets()[usize::from(asset.0)]),
                from: from.unwrap_or_default().to_decimal().to_string(),
                to: balance.total.to_decimal().to_string(),
                by_fills,
            }));
        }
    }

    fn notice(&mut self, notice: &Notice, outs: &mut VecDeque<Out>) {
        let engine = self.driver.engine();
        let mut seen = Vec::from_iter(notices::seen(engine, self.life, notice));
        if let Notice::ForcedClose { report, .. } = notice {
            seen.extend(notices::forced(engine, self.life, report));
        }
        if let Notice::Adjusted { adjustment, .. } = notice {
            seen.extend(notices::settled(engine, self.life, adjustment));
        }
        let records = engine.records();
        for seen in seen {
            if matches!(seen, Seen::ClosedOutside { .. }) {
                self.closes.note(seen.clone(), records);
            }
            outs.push_back(Out::Seen(seen));
        }
    }

    /// Closes by others that a next process does not know of, where its journal ends with this record; but
    /// the last ones.
    pub fn closes_after(&self, record: u64, but_last: usize) -> impl Iterator<Item = &Seen> {
        self.closes.after(record, but_last)
    }

    /// What the book was like when an order left.
    fn show_top(&self, request: &Request, outs: &mut VecDeque<Out>) {
        let (Request::Place(order), engine) = (request, self.driver.engine()) else {
            return;
        };
        let id = order.terms.instrument;
        let Some(instrument) = engine.instrument(id) else {
            return;
        };
        let level = |side| engine.book_level(id, side, 0);
        let bid = level(windvane_engine::Side::Buy);
        let ask = level(windvane_engine::Side::Sell);
        if let (Some(bid), Some(ask)) = (bid, ask) {
            outs.push_back(Out::Seen(Seen::Top {
                instrument: instrument.name(),
                bid: instrument.price(bid.price).to_string(),
                ask: instrument.price(ask.price).to_string(),
            }));
        }
    }

    /// A public frame.
    pub fn frame(&mut self, now_ns: i64, surface: Surface, text: &str, outs: &mut VecDeque<Out>) {
        let Ok(decoded) = market_stream::decode(text, &mut self.levels) else {
            return;
        };
        let (now, driver) = (self.time(now_ns), &mut self.driver);
        let mut emit = |instrument: InstrumentId, event: MarketEvent<'_>| {
            driver.handle(now, Input::Market { instrument, event });
        };
        let missing = self
            .reader
            .frame(surface, &decoded.event, &self.levels, &mut emit);
        self.after_frame(&missing, outs);
    }

    fn after_frame(
        &mut self,
        missing: &Result<Missing, windvane_venue::speak::MarketError>,
        outs: &mut VecDeque<Out>,
    ) {
        self.act(outs);
        if let Ok(Missing::Snapshot(id)) = missing
            && self.fetching.insert(*id)
        {
            self.wishes.push_back(Wish::Depth(*id));
        }
    }

    /// The answer of GET depth, or that there is none.
    pub fn depth(
        &mut self,
        now_ns: i64,
        id: InstrumentId,
        text: Option<&str>,
        outs: &mut VecDeque<Out>,
    ) {
        self.fetching.remove(&id);
        let Some(text) = text else { return };
        let decoded = windvane_venue::decode(text.as_bytes(), &mut self.levels);
        let Ok(Frame::Snapshot(snapshot)) = decoded.map(|decoded| decoded.frame) else {
            return;
        };
        let (now, driver) = (self.time(now_ns), &mut self.driver);
        let mut emit = |instrument: InstrumentId, event: MarketEvent<'_>| {
            driver.handle(now, Input::Market { instrument, event });
        };
        let missing = self.reader.snapshot(id, &snapshot, &self.levels, &mut emit);
        self.after_frame(&missing, outs);
    }

    /// Public events may have been missed.
    pub fn interrupted(&mut self, now_ns: i64, surface: Surface, outs: &mut VecDeque<Out>) {
        let ids: Vec<_> = (0..self.driver.engine().instruments().len() as u16)
            .map(InstrumentId)
            .filter(|id| self.driver.engine().instruments()[usize::from(id.0)].surface == surface)
            .collect();
        let (now, driver) = (self.time(now_ns), &mut self.driver);
        let mut emit = |instrument: InstrumentId, event: MarketEvent<'_>| {
            driver.handle(now, Input::Market { instrument, event });
        };
        for id in ids {
            self.reader.interrupted(id, &mut emit);
        }
        self.act(outs);
    }

    /// A frame of a user stream.
    pub fn user(&mut self, now_ns: i64, surface: Surface, text: &str, outs: &mut VecDeque<Out>) {
        let said = user_stream::decode(surface, text)
            .map_err(|error| error.to_string())
            .and_then(|event| {
                let said = self.speaker.user_event(&event);
                said.map_err(|error| error.to_string())
            });
        match said {
            Ok(said) => {
                for event in &said.said {
                    let is_mode = matches!(
                        event,
                        UserEvent::PositionMode { .. } | UserEvent::AssetMode { .. }
                    );
                    if is_mode {
                        self.wishes.push_back(Wish::ForgetModes);
                    }
                    self.handle(now_ns, Input::User(event), outs);
                }
            }
            Err(error) => {
                outs.push_back(Out::Seen(Seen::Fault(format!(
                    "a user event cannot be used: {error}"
                ))));
                self.handle(
                    now_ns,
                    Input::Live(&LiveInput::StreamDown { surface }),
                    outs,
                );
                self.wishes.push_back(Wish::Reconnect(surface));
            }
        }
    }

    /// The journal is durable up to here.
    pub fn durable(&mut self, now_ns: i64, record: u64, outs: &mut VecDeque<Out>) {
        self.closes.durable(record);
        self.driver.durable(self.time(now_ns), record);
        self.act(outs);
    }

    /// A new segment stands.
    pub fn rolled(&mut self, now_ns: i64, record: u64, outs: &mut VecDeque<Out>) {
        (self.rolling, self.rolled_ns) = (false, now_ns);
        self.closes.durable(record);
        self.driver.durable(self.time(now_ns), record);
        if std::mem::take(&mut self.failed) {
            self.handle(
                now_ns,
                Input::Live(&LiveInput::Journal { healthy: true }),
                outs,
            );
        }
        self.act(outs);
    }

    /// The journal stalls, or does not any more.
    pub fn journal(&mut self, now_ns: i64, healthy: bool, outs: &mut VecDeque<Out>) {
        let healthy = healthy && !self.failed;
        self.handle(now_ns, Input::Live(&LiveInput::Journal { healthy }), outs);
    }

    /// The journal failed.
    pub fn journal_failed(&mut self, now_ns: i64, outs: &mut VecDeque<Out>) {
        (self.failed, self.rolling) = (true, false);
        self.handle(
            now_ns,
            Input::Live(&LiveInput::Journal { healthy: false }),
            outs,
        );
    }

    /// Timers, seals, segments, the latch.
    pub fn keep_time(&mut self, now_ns: i64, outs: &mut VecDeque<Out>) {
        let now = self.time(now_ns);
        if self.driver.next_timeout().is_some_and(|at| at <= now) {
            self.handle(now_ns, Input::Timeout, outs);
        }
        if now_ns - self.sealed_ns >= SEAL_EVERY_NS {
            self.sealed_ns = now_ns;
            self.driver.save(now);
            self.driver.seal();
            self.act(outs);
            self.roll_if_due(now_ns, outs);
        }
        let latch = self.driver.engine().latch();
        if latch != self.latched {
            self.latched = latch;
            outs.push_back(Out::Latch(latch));
        }
    }

    fn roll_if_due(&mut self, now_ns: i64, outs: &mut VecDeque<Out>) {
        let since = now_ns - self.rolled_ns;
        let due = if self.failed {
            since >= ROLL_AGAIN_NS
        } else {
            since >= SEGMENT_AGE_NS
        };
        if self.rolling || !due {
            return;
        }
        let (engine, states) = self.driver.snapshot();
        self.act(outs);
        self.rolled_ns = now_ns;
        self.rolling = true;
        let head = head(engine, states, &self.modules);
        outs.push_back(Out::Roll(head.to_bytes(), self.driver.engine().chain()));
    }

    /// When it wants to be told the time.
    pub fn wake_ns(&self) -> i64 {
        let timer = self.driver.next_timeout().map_or(i64::MAX, |at| {
            at.0.saturating_sub(self.base_ns)
                .saturating_add(self.started_ns)
        });
        let engine = self.driver.engine();
        let unsealed = engine.records() > engine.chain().last_record || self.failed;
        let seal = if unsealed {
            self.sealed_ns + SEAL_EVERY_NS
        } else {
            i64::MAX
        };
        timer.min(seal)
    }

    /// Where its chain stands.
    pub fn chain(&self) -> Chain {
        self.driver.engine().chain()
    }
}

/// The head of a segment that begins here.
pub fn head(engine: Vec<u8>, states: Vec<Option<Vec<u8>>>, modules: &[Module]) -> Head {
    let strategies = modules.iter().zip(states);
    Head {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine,
        strategies: strategies
            .map(|((name, sha256), state)| SavedStrategy {
                name: name.clone(),
                sha256: *sha256,
                state,
                // Only a replay with other modules reads it, and none is made here.
                made: Made::default(),
            })
            .collect(),
        paper: None,
        engine_rules: ENGINE_RULES,
    }
}
