//! The engine: inputs in, effects out.
//!
//! - *Handle*: [`Engine::handle`] takes one input with its time; [`Input::Timeout`] fires timers.
//! - *Poll*: after every `handle`, the driver drains [`Engine::poll_effect`] and
//!   [`Engine::poll_notice`]. Then [`Engine::poll_timeout`] returns the next timer and its time.
//! - *Query*: everything else is a read-only view for strategies, reports and people.

/// The engine's evidence. A function would borrow the whole engine.
macro_rules! evidence {
    ($engine:expr) => {
        ::windvane_evidence::Evidence {
            now: $engine.now,
            instruments: &$engine.instruments,
            markets: &$engine.markets,
            ledgers: &$engine.ledgers,
            balances: &$engine.balances,
            epoch: $engine.epoch,
            orders: &$engine.orders,
            timers: &$engine.timers,
            live: $engine.live.as_ref().map(|live| &live.config),
            connections: $engine
                .live
                .as_ref()
                .map_or(&::windvane_evidence::NO_CONNECTIONS, |live| {
                    &live.connections
                }),
            degraded_reasons: $engine
                .live
                .as_ref()
                .map_or(&::windvane_evidence::NO_DEGRADED_REASONS, |live| {
                    live.degraded_reason_set()
                }),
            stream_up: &$engine.stream_up,
            late_fees: &$engine.late_fees,
            fills_from_totals: &$engine.fills_from_totals,
            asset_prices: &$engine.asset_prices,
            other_fees: &$engine.other_fees,
            unconfigured_positions: &$engine.unconfigured_positions,
            outside_closes: &$engine.outside_closes,
            stated_closes: &$engine.stated_closes,
            forced_close_evidence: &$engine.forced_close_evidence,
        }
    };
}

mod account_events;
mod account_modes;
mod adopt;
mod closable_position;
mod close_by_snapshot;
mod close_wait;
mod closing;
mod comparison;
mod contradiction;
mod deadman;
mod degraded_reasons;
mod external_orders;
mod fee_costs;
mod fills;
mod fills_from_totals;
mod forced;
mod forced_close_evidence;
mod forced_order_requests;
mod forced_out_of_order;
mod forced_unexplained;
mod income;
mod instances;
mod intents;
mod invariants;
mod known_modes;
mod late_fees;
mod late_stream;
mod limits;
mod live_inputs;
mod live_run;
mod live_state;
mod lost_events;
mod margin_share;
mod margin_terms;
mod mark_price_age;
mod market;
mod migrate;
mod missing_coins;
mod netting;
mod newest_orders;
mod outside_closes;
mod outside_orders;
mod outside_settlement;
mod quotas;
mod recent_orders;
mod reconcile;
mod reconciled_fills;
mod reordered_fills;
mod replies;
mod rules_refresh;
mod safety;
mod snapshot;
mod stale_reports;
mod stated_balances;
mod stated_fees;
mod stated_positions;
mod strategy_commands;
mod trades;
mod trading_status;
mod transfers;
mod triggers;
mod unconfigured_positions;
mod unsaved_order_ends;
mod venue_wait;
mod view;
mod watchdog;
mod without_market;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use windvane_evidence::Evidence;
use windvane_evidence::asset_prices::AssetPrices;
use windvane_evidence::close_gains::DueGains;
use windvane_evidence::close_values::CloseValues;
use windvane_evidence::comparison::ConfirmedEntries;
use windvane_evidence::external_orders::ExternalOrders;
use windvane_evidence::fee_costs::FeeCosts;
use windvane_evidence::fills_from_totals::FillsFromTotals;
use windvane_evidence::forced::ForcedCloses;
use windvane_evidence::forced_close_evidence::ForcedCloseEvidence;
use windvane_evidence::forced_out_of_order::{ListedShifts, OutOfOrder};
use windvane_evidence::income::Incomes;
use windvane_evidence::instances::Instances;
use windvane_evidence::late_fees::LateFees;
use windvane_evidence::mark_price_age::MarkPriceAges;
use windvane_evidence::newest_orders::NewestOrders;
use windvane_evidence::outside_closes::{
    ExplainedCloses, ListedCloses, OutsideCloses, StatedCloses,
};
use windvane_evidence::outside_orders::OutsideOrders;
use windvane_evidence::payments::StatedPayments;
use windvane_evidence::recent_orders::RecentOrders;
use windvane_evidence::reconciled_fills::SnapshotChanges;
use windvane_evidence::stated_balances::StatedBalances;
use windvane_evidence::stated_positions::StatedPositions;
use windvane_evidence::unconfigured_positions::UnconfiguredPositions;
use windvane_model::config::{EngineConfig, StrategyConfig};
use windvane_model::decimal::Amount;
use windvane_model::effect::{Effect, Notice};
use windvane_model::encode;
use windvane_model::event::{Event, EventKind};
use windvane_model::holding::Ledgers;
use windvane_model::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, Time, TradeId};
use windvane_model::input::{FaultKind, Input, StartPhase};
use windvane_model::instrument::Instrument;
use windvane_model::ledger::Balance;
use windvane_model::market_state::MarketState;
use windvane_model::order::Surface;
use windvane_model::orders::Orders;
use windvane_model::record::{Block, Chain, Format, Hash, Recorder};
use windvane_model::risk::{LossWatch, RateWindow, RiskLimits};
use windvane_model::rules::{CompiledRules, InstrumentError};
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::timer::{Timer, Timers};
use windvane_supervision::blocks::TradingStatus;
use windvane_supervision::margin_terms::Margins;
use windvane_supervision::refusals::{Crossings, ExitRefusals};
use windvane_supervision::rules_refresh::RulesRefresh;
use windvane_supervision::stale_markets::MarketFeeds;
use windvane_supervision::venue_wait::VenueWait;

pub use close_wait::{CloseReason, CloseWait};
pub use instances::{FolderIds, InstanceWatch};
use known_modes::KnownModes;
use live_run::LiveRun;
pub use recent_orders::newest_orders;
pub use snapshot::{SnapshotError, SuccessionError};
pub use trading_status::is_probe;
pub use venue_wait::Purpose;
pub use view::AccountTotals;

/// How many timers of strategies one timeout fires at most. The driver looks at everything else
/// before the next one.
const STRATEGY_TIMERS_AT_ONCE: usize = 8;

/// The deterministic core. The module documentation describes how to drive it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Engine {
    now: Time,
    sequence: i64,
    state: RunState,
    kill_switch: KillSwitch,
    live: Option<LiveRun>,
    hedge_mode: bool,
    epoch: u64,
    next_order: OrderSeq,
    /// Epoch and number of the first order id that the previous process had not used, according to
    /// its journal.
    first_unknown_order: Option<(u64, OrderSeq)>,
    instruments: Vec<Instrument>,
    #[serde(skip)]
    rules: Vec<CompiledRules>,
    assets: Vec<String>,
    limits: RiskLimits,
    markets: Vec<MarketState>,
    strategies: Vec<StrategyState>,
    ledgers: Ledgers,
    balances: BTreeMap<(Surface, AssetId), Balance>,
    other_fees: BTreeMap<AssetId, Amount>,
    orders: Orders,
    open_orders: Vec<OpenOrders>,
    rate: RateWindow,
    losses: LossWatch,
    any_strategy_watches: bool,
    start_equity: Option<Amount>,
    external_trades: Vec<VecDeque<TradeId>>,
    external_orders: ExternalOrders,
    /// The trade id up to which all trades of an instrument are booked; `None` before the first
    /// check.
    verified_trades: Vec<Option<TradeId>>,
    /// The newest booked trade of each instrument.
    newest_trades: Vec<Option<TradeId>>,
    recovered_fills: i64,
    timers: Timers,
    recorder: Recorder,
    trading_status: TradingStatus,
    outside_closes: OutsideCloses,
    instances: Instances,
    forced: ForcedCloses,
    rules_refresh: RulesRefresh,
    margins: Margins,
    venue_waits: BTreeMap<Surface, VenueWait>,
    incomes: Incomes,
    unconfigured_positions: UnconfiguredPositions,
    crossings: Crossings,
    mark_price_ages: MarkPriceAges,
    fee_costs: FeeCosts,
    market_feeds: MarketFeeds,
    snapshot_changes: BTreeMap<Surface, SnapshotChanges>,
    out_of_order: OutOfOrder,
    late_fees: LateFees,
    /// When the user stream of each surface last connected.
    stream_up: BTreeMap<Surface, Time>,
    /// The venue's clock minus the clock of an earlier process, in nanoseconds. An entry is dropped
    /// when this process reads the venue's clock.
    offsets_before: BTreeMap<Surface, i64>,
    confirmed_entries: ConfirmedEntries,
    /// The part of the due outside closes that events of ordinary orders explain.
    explained_closes: ExplainedCloses,
    /// Positions that account events alone showed smaller on the present user stream.
    stated_closes: StatedCloses,
    /// Prices, as the venue returned them, of assets in which commissions are charged.
    asset_prices: AssetPrices,
    stated_positions: StatedPositions,
    listed_closes: ListedCloses,
    /// How much the unrealized profit of positions on unconfigured symbols fell while those
    /// positions became smaller, since the balances last agreed.
    unconfigured_profit: Amount,
    listed_shifts: ListedShifts,
    outside_orders: OutsideOrders,
    exit_refusals: ExitRefusals,
    stated_balances: StatedBalances,
    due_gains: DueGains,
    recent_orders: RecentOrders,
    fills_from_totals: FillsFromTotals,
    forced_close_evidence: ForcedCloseEvidence,
    stated_payments: StatedPayments,
    newest_orders: NewestOrders,
    /// When the live run began.
    began: Option<Time>,
    /// Values of the due outside closes.
    close_values: CloseValues,
    known_modes: KnownModes,
    /// Sent orders are read from a journal that has no market records. The engine places no order
    /// itself, because without market data it might decide differently from the recorded run.
    #[serde(skip)]
    takes_sent: bool,
    #[serde(skip)]
    effects: VecDeque<Effect>,
    #[serde(skip)]
    notices: VecDeque<Notice>,
    /// When the close of each strategy was requested. For display only: no rule reads it.
    #[serde(skip)]
    closing_since: BTreeMap<StrategyId, Time>,
}

/// Numbers of open orders in one instrument.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OpenOrders {
    pub(crate) all: u32,
    pub(crate) conditional: u32,
}

/// The engine's state of one strategy, apart from its ledger.
#[derive(Debug, Serialize, Deserialize)]
struct StrategyState {
    config: StrategyConfig,
    fault: Option<FaultKind>,
    kill_switch: KillSwitch,
    flattening: Option<u32>,
    /// The earliest time of the next closing order, after a closing order of a live run closed
    /// nothing.
    flatten_again: Time,
    open_orders: u32,
    rate: RateWindow,
    losses: LossWatch,
    /// Orders whose end the strategy's saved state may lack, with the sequence of the event that
    /// reported the end.
    unsaved_order_ends: VecDeque<(OrderSeq, i64)>,
}

impl Engine {
    /// Creates an engine with flat positions and the configured balances.
    ///
    /// # Errors
    /// The rules of an instrument do not fit the engine's integers.
    pub fn new(config: EngineConfig) -> Result<Self, InstrumentError> {
        let recorder = Recorder::new(config.keep_journal);
        Self::with_recorder(config, recorder)
    }

    /// Like [`Engine::new`], with a given recorder: for example one that writes the format of an
    /// earlier program version.
    ///
    /// # Errors
    /// The rules of an instrument do not fit the engine's integers.
    pub fn recording_to(config: EngineConfig, recorder: Recorder) -> Result<Self, InstrumentError> {
        Self::with_recorder(config, recorder)
    }

    /// Like [`Engine::new`], with a journal that continues the given chain. The engine takes
    /// nothing but the position of the chain from the earlier journal.
    ///
    /// # Errors
    /// The rules of an instrument do not fit the engine's integers.
    pub fn continuing(config: EngineConfig, chain: Chain) -> Result<Self, InstrumentError> {
        let recorder = Recorder::from_chain(chain, config.keep_journal);
        Self::with_recorder(config, recorder)
    }

    fn with_recorder(
        config: EngineConfig,
        mut recorder: Recorder,
    ) -> Result<Self, InstrumentError> {
        let count = config.instruments.len();
        let rules = config
            .instruments
            .iter()
            .map(CompiledRules::new)
            .collect::<Result<_, _>>()?;
        // A live run needs no record of it: the snapshot at the start of each journal segment
        // contains the configuration.
        if config.live.is_none() {
            encode::record_config(&mut recorder, &config);
        }
        let balances = config
            .balances
            .iter()
            .map(|(surface, asset, total)| {
                let balance = Balance {
                    total: *total,
                    locked: Amount::ZERO,
                };
                ((*surface, *asset), balance)
            })
            .collect();
        let mut markets = vec![MarketState::default(); count];
        for (index, strategy) in config.strategies.iter().enumerate() {
            for subscription in &strategy.subscriptions {
                let market = &mut markets[usize::from(subscription.instrument.0)];
                market.subscribe(StrategyId(index as u16), subscription);
            }
        }
        let any_strategy_watches = config
            .strategies
            .iter()
            .any(|strategy| strategy.limits.watches_equity());
        let mut engine = Self {
            now: Time::default(),
            takes_sent: false,
            sequence: 0,
            state: if config.live.is_some() {
                RunState::Booting
            } else {
                RunState::Ready
            },
            kill_switch: KillSwitch::Clear,
            live: config.live.map(|live| LiveRun::new(live, count)),
            hedge_mode: config.hedge_mode,
            epoch: config.epoch,
            next_order: OrderSeq(1),
            first_unknown_order: None,
            ledgers: Ledgers::new(count, config.strategies.len()),
            instruments: config.instruments,
            rules,
            assets: config.assets,
            limits: config.limits,
            markets,
            strategies: config
                .strategies
                .into_iter()
                .map(StrategyState::new)
                .collect(),
            balances,
            other_fees: BTreeMap::new(),
            orders: Orders::default(),
            open_orders: vec![OpenOrders::default(); count],
            rate: RateWindow::default(),
            losses: LossWatch::default(),
            any_strategy_watches,
            start_equity: None,
            external_trades: vec![VecDeque::new(); count],
            external_orders: ExternalOrders::default(),
            verified_trades: vec![None; count],
            newest_trades: vec![None; count],
            recovered_fills: 0,
            timers: Timers::default(),
            recorder,
            trading_status: TradingStatus::default(),
            outside_closes: OutsideCloses::default(),
            venue_waits: BTreeMap::new(),
            instances: Instances::default(),
            forced: ForcedCloses::default(),
            rules_refresh: RulesRefresh::default(),
            margins: Margins::default(),
            incomes: Incomes::default(),
            unconfigured_positions: UnconfiguredPositions::default(),
            crossings: Crossings::default(),
            mark_price_ages: MarkPriceAges::default(),
            fee_costs: FeeCosts::default(),
            market_feeds: MarketFeeds::default(),
            snapshot_changes: BTreeMap::new(),
            out_of_order: OutOfOrder::default(),
            late_fees: LateFees::default(),
            stream_up: BTreeMap::new(),
            offsets_before: BTreeMap::new(),
            confirmed_entries: ConfirmedEntries::new(),
            explained_closes: ExplainedCloses::new(),
            stated_closes: StatedCloses::new(),
            asset_prices: AssetPrices::default(),
            stated_positions: StatedPositions::default(),
            listed_closes: ListedCloses::new(),
            unconfigured_profit: Amount::ZERO,
            listed_shifts: ListedShifts::default(),
            outside_orders: OutsideOrders::default(),
            exit_refusals: ExitRefusals::new(),
            stated_balances: StatedBalances::default(),
            due_gains: DueGains::default(),
            recent_orders: RecentOrders::default(),
            fills_from_totals: FillsFromTotals::default(),
            forced_close_evidence: ForcedCloseEvidence::default(),
            stated_payments: StatedPayments::default(),
            newest_orders: NewestOrders::default(),
            began: None,
            close_values: CloseValues::default(),
            known_modes: KnownModes::default(),
            effects: VecDeque::new(),
            notices: VecDeque::new(),
            closing_since: BTreeMap::new(),
        };
        engine.adopt_start_holdings();
        Ok(engine)
    }

    /// Takes one input. Time never runs backwards: an earlier `now` is replaced by the last one.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = self.now.max(now);
        match input {
            Input::Answer { intents: [], .. } => {}
            Input::Market { instrument, event } => {
                if usize::from(instrument.0) < self.instruments.len() {
                    encode::record_market(&mut self.recorder, self.now, instrument.0, &event);
                    self.handle_market(instrument, &event);
                }
            }
            input => {
                encode::record_input(&mut self.recorder, self.now, &input);
                self.handle_other(&input);
            }
        }
    }

    /// Everything that a statement of the venue is compared with.
    fn evidence(&self) -> Evidence<'_> {
        evidence!(self)
    }

    fn handle_other(&mut self, input: &Input<'_>) {
        match *input {
            Input::Market { .. } => {}
            Input::Start {
                strategy,
                phase: StartPhase::Ends,
            } => self.end_start(strategy),
            Input::Answer { strategy, intents } => self.handle_answer(strategy, intents),
            Input::Reply(reply) => self.handle_reply(reply),
            Input::User(event) => self.handle_user_event(event),
            Input::Timeout => self.fire_timers(),
            Input::Fault { strategy, kind } => self.quarantine(strategy, kind),
            Input::Command(command) => self.handle_command(command),
            Input::Steer { strategy, command } => self.handle_strategy_command(strategy, command),
            Input::Renew { strategy }
            | Input::Start {
                strategy,
                phase: StartPhase::Begins,
            } => self.renew_strategy(strategy),
            Input::Saved {
                strategy, handled, ..
            } => self.note_saved_state(strategy, handled),
            Input::Reconfigure(next) => self.reconfigure(next),
            Input::OnLiquidation(reaction) => self.set_on_liquidation(reaction),
            Input::Live(input) => self.handle_live(input),
            Input::SymbolStatus { instrument, status } => {
                let index = usize::from(instrument.0);
                if let Some(known) = self.instruments.get_mut(index) {
                    let is_news = known.status != *status;
                    known.status = status.clone();
                    // The rules compiled before, and a status cannot change whether they compile.
                    if let Ok(rules) = CompiledRules::new(known) {
                        self.rules[index] = rules;
                    }
                    if is_news {
                        self.deliver_rules(instrument);
                    }
                    self.take_status(instrument);
                }
            }
        }
    }

    /// Returns the next effect, in order; `None` once all are drained.
    #[inline]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns the next notice for people.
    #[inline]
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Returns the next timer, with the time at which [`Input::Timeout`] is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<(Time, Timer)> {
        self.timers.next()
    }

    /// Returns the next sealed block of records, if the journal is kept.
    pub fn poll_block(&mut self) -> Option<Block> {
        self.recorder.poll_block()
    }

    /// The position of the chain of sealed blocks.
    pub const fn chain(&self) -> Chain {
        self.recorder.chain()
    }

    /// Seals the running block of records.
    pub fn seal(&mut self) {
        self.recorder.seal();
    }

    /// Sets the format of all later records, so that the replay of an old journal produces the old
    /// blocks. A snapshot does not keep this setting: an engine restored from it records in the
    /// present format.
    pub fn record_as(&mut self, format: Format) {
        self.recorder.set_format(format);
    }

    /// The hash over every input and effect so far; seals the running block.
    pub fn fingerprint(&mut self) -> Hash {
        self.recorder.fingerprint()
    }

    fn emit(&mut self, effect: Effect) {
        encode::record_effect(&mut self.recorder, self.now, &effect);
        self.effects.push_back(effect);
    }

    /// Delivers an event to a strategy that is not quarantined.
    #[inline]
    fn deliver(&mut self, strategy: StrategyId, event: Event) {
        if self.strategies[usize::from(strategy.0)].fault.is_none() {
            self.emit(Effect::Deliver { strategy, event });
        }
    }

    #[inline]
    fn event(
        &mut self,
        kind: EventKind,
        instrument: InstrumentId,
        flags: u32,
        fields: [i64; 6],
        id: i64,
    ) -> Event {
        self.sequence += 1;
        Event {
            time: self.now,
            sequence: self.sequence,
            kind,
            instrument,
            flags,
            fields,
            id,
        }
    }

    fn fire_timers(&mut self) {
        // After the process was suspended, all timers are due at once. The watch runs first, so
        // that no countdown is renewed on stale evidence.
        if self.timers.take_if_due(Timer::Watch, self.now) {
            self.watch();
        }
        // The dead man's switches do not wait for strategies.
        let is_switch = |timer| matches!(timer, Timer::Renew { .. } | Timer::Heartbeat);
        while let Some(timer) = self.timers.take_due(self.now, is_switch) {
            self.fire(timer);
        }
        // Timers of strategies beyond the limit stay due: the next timeout follows at once, after
        // everything that waits for the engine's thread.
        let mut left = STRATEGY_TIMERS_AT_ONCE;
        let is_strategys = |timer| matches!(timer, Timer::Strategy { .. });
        while let Some(timer) = {
            let room = left > 0;
            let wanted = |timer| room || !is_strategys(timer);
            self.timers.take_due(self.now, wanted)
        } {
            left -= usize::from(is_strategys(timer));
            self.fire(timer);
        }
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Strategy { strategy, token } => {
                let fields = [token, 0, 0, 0, 0, 0];
                let event = self.event(EventKind::Timer, InstrumentId(0), 0, fields, 0);
                self.deliver(strategy, event);
            }
            Timer::Bar {
                instrument,
                interval_ms,
            } => self.close_bar(instrument, interval_ms),
            Timer::AskForOrder { order } => self.ask_for_order(order),
            Timer::Watch => self.watch(),
            Timer::Reconcile { surface } => self.reconcile(surface),
            Timer::Renew { instrument } => self.renew(instrument),
            Timer::Heartbeat => self.heartbeat_due(),
            Timer::Rules { surface } => self.read_rules(surface),
            Timer::VenueWait { surface } => self.venue_wait_over(surface),
            Timer::CloseSnapshot { .. } => self.continue_all_flattening(),
            Timer::TradesLag { surface } => self.trades_delay_is_over(surface),
            Timer::FillFromTotals { order } => self.book_fill_from_totals(order),
        }
    }
}

impl StrategyState {
    fn new(config: StrategyConfig) -> Self {
        Self {
            config,
            fault: None,
            kill_switch: KillSwitch::Clear,
            flattening: None,
            flatten_again: Time::default(),
            open_orders: 0,
            rate: RateWindow::default(),
            losses: LossWatch::default(),
            unsaved_order_ends: VecDeque::new(),
        }
    }
}

/// An amount in the range of the strategy contract: clamped to 64 bits.
fn narrow(amount: Amount) -> i64 {
    i64::try_from(amount.0).unwrap_or(if amount.0 > 0 { i64::MAX } else { i64::MIN + 1 })
}
