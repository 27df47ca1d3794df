//! The kill switches of a run and their reasons: pauses and halts by the operator, flatten commands
//! that are not finished, quarantines and a margin call. The shell keeps them in a small file
//! beside the journal, so that they survive the loss of the journal. If file and journal differ,
//! the stricter one applies.
//!
//! This module must never decide to set a kill switch. The engine decides that.

use windvane_engine::Engine;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::input::{Command, FaultKind};
use windvane_model::kill_switch::{StoredKillSwitch, StoredKillSwitches, StrategyKillSwitch};
use windvane_model::run_state::KillSwitch;
use windvane_model::{Amount, Input, Notice, StrategyId, Time, UserEvent, planted};

use crate::forced;

/// The reason of a kill switch by an operator command, if no other reason is known.
pub const OPERATOR: &str = "the operator asked for it";

/// Pause before a failed write of the file is tried again.
const AGAIN_MS: i64 = 1_000;

/// Whether the kill switches survive the end of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveState {
    /// The file has them.
    Durable,
    /// The file is being written.
    Writing,
    /// The file could not be written, for this reason. The write is tried again.
    Failed(String),
}

const DAY_NS: i64 = 86_400_000_000_000;

/// The kill switches of a run, with their reasons.
#[derive(Debug)]
pub struct KillSwitchState {
    /// The file content that the shell received last, or must receive next. It keeps the entries of
    /// strategies that are not configured.
    file_content: StoredKillSwitches,
    /// The shell did not receive `file_content` yet.
    is_unsent: bool,
    /// How many writes the shell has not finished.
    writing: u32,
    /// When the last write failed, and why.
    failed: Option<(Time, String)>,
    account: (KillSwitch, String),
    margin_call: bool,
    /// The operator's flatten command of all positions is not finished.
    flattens: bool,
    strategies: Vec<StrategySwitch>,
    /// The reason of a kill switch or quarantine changed, and the file does not have it yet.
    has_new_reason: bool,
    /// The last unexplained decrease of a balance, and its day.
    unexplained: Option<(i64, String)>,
}

/// The kill switches of one strategy.
#[derive(Debug)]
struct StrategySwitch {
    name: String,
    switch: (KillSwitch, String),
    fault: Option<(FaultKind, String)>,
    /// It is leaving quarantine: a new instance starts. The engine has no fault any more, but the
    /// file keeps it until the start ends well, because the process may die meanwhile.
    resumes: bool,
    /// The operator's flatten command of this strategy is not finished.
    flattens: bool,
}

impl KillSwitchState {
    /// The content of the kill switch file, for the configured strategies.
    pub fn new(file: StoredKillSwitches, names: impl Iterator<Item = String>) -> Self {
        let strategies = names.map(|name| {
            let stored = file.strategies.get(&name).cloned().unwrap_or_default();
            StrategySwitch {
                name,
                switch: read(&stored.switch),
                fault: stored
                    .quarantine
                    .map(|(word, reason)| (fault(&word), reason)),
                resumes: false,
                flattens: stored.flatten,
            }
        });
        Self {
            account: read(&file.account),
            margin_call: file.margin_call,
            flattens: file.flatten,
            strategies: strategies.collect(),
            has_new_reason: false,
            unexplained: None,
            file_content: file,
            is_unsent: false,
            writing: 0,
            failed: None,
        }
    }

    /// The inputs that make an engine as strict as the file. The engine must get them before its
    /// strategies start.
    pub fn missing(&self, engine: &Engine) -> Vec<Input<'static>> {
        let mut inputs = Vec::new();
        if planted!(KillSwitchLost) {
            return inputs;
        }
        let owed = self.flattens && !flattens_all(engine);
        let flatten = owed.then_some(Command::Flatten);
        if let Some(command) = flatten.or_else(|| stricter(self.account.0, engine.kill_switch())) {
            inputs.push(Input::Command(command));
        }
        if self.margin_call && !is_called(engine) {
            inputs.push(Input::User(&UserEvent::MarginCall));
        }
        for (place, one) in self.strategies.iter().enumerate() {
            let strategy = StrategyId(place as u16);
            let owed = one.flattens && !flattens(engine, strategy);
            let flatten = owed.then_some(Command::Flatten);
            let kill_switch = engine.kill_switch_of(strategy);
            if let Some(command) = flatten.or_else(|| stricter(one.switch.0, kill_switch)) {
                inputs.push(Input::Steer { strategy, command });
            }
            if let (Some((kind, _)), None) = (&one.fault, engine.fault(strategy)) {
                let kind = *kind;
                inputs.push(Input::Fault { strategy, kind });
            }
        }
        inputs
    }

    /// Why the account is paused or halted, or will be.
    pub fn cause(&self) -> &str {
        &self.account.1
    }

    /// Sets the reason of the account's kill switch.
    pub(crate) fn set_cause(&mut self, cause: String) {
        self.account.1 = cause;
    }

    /// Notes an unexplained decrease of a balance.
    fn note_unexplained(&mut self, time: Time, decrease: String) {
        self.unexplained = Some((time.0.div_euclid(DAY_NS), decrease));
    }

    /// Sets the reason of a halt by a loss limit. An unexplained decrease of the same day may be a
    /// withdrawal, so the reason names it.
    fn set_breached(&mut self, time: Time, limit: &str) {
        let mut cause = format!("{limit} was breached");
        if let Some((day, decrease)) = &self.unexplained
            && *day == time.0.div_euclid(DAY_NS)
        {
            cause = format!(
                "{cause}; {decrease} of the loss is a decrease that neither an event nor the venue's \
                 income history explains: if you withdrew it, windvane resume accepts it"
            );
        }
        self.account.1 = cause;
    }

    /// Sets the reason of a kill switch that may exist already, and has the file written again.
    fn amend_cause(&mut self, cause: String) {
        self.account.1 = cause;
        self.has_new_reason = true;
    }

    /// Pauses the account for this reason. A kill switch that exists stays, and this reason is
    /// added to its own.
    pub(crate) fn pause(&mut self, reason: String) {
        let (kill_switch, cause) = &mut self.account;
        match kill_switch {
            KillSwitch::Clear => (*kill_switch, *cause) = (KillSwitch::Paused, reason),
            KillSwitch::Paused | KillSwitch::Halted => *cause = format!("{cause}; {reason}"),
        }
        self.has_new_reason = true;
    }

    /// The content of the file, as of the last [`Self::update_from`].
    pub const fn file_content(&self) -> &StoredKillSwitches {
        &self.file_content
    }

    /// Notes a quarantine and its reason. An empty reason does not replace a known reason of the
    /// same kind: after the loss of the journal, the quarantine comes from the file.
    pub(crate) fn set_trouble(&mut self, strategy: StrategyId, kind: FaultKind, trouble: String) {
        if let Some(one) = self.strategies.get_mut(usize::from(strategy.0)) {
            let known = one.fault.as_ref().is_some_and(|(known, _)| *known == kind);
            if known && trouble.is_empty() {
                return;
            }
            one.fault = Some((kind, trouble));
            self.has_new_reason = true;
        }
    }

    /// Whether a strategy is leaving quarantine: a new instance starts. After the start the engine
    /// decides whether the strategy is in quarantine.
    pub(crate) fn set_resumes(&mut self, strategy: StrategyId, resumes: bool) {
        if let Some(one) = self.strategies.get_mut(usize::from(strategy.0)) {
            one.resumes = resumes;
        }
    }

    /// Why a strategy does not trade freely; `None` if nothing restricts it.
    pub fn reason(&self, engine: &Engine, strategy: StrategyId) -> Option<String> {
        let one = self.strategies.get(usize::from(strategy.0))?;
        if let Some(kind) = engine.fault(strategy) {
            let known = one.fault.as_ref().filter(|(known, _)| *known == kind);
            let reason = known.map_or("", |(_, reason)| reason.as_str());
            return Some(match reason {
                "" => kind.as_str().to_owned(),
                reason => reason.to_owned(),
            });
        }
        match engine.kill_switch_of(strategy) {
            KillSwitch::Clear => None,
            KillSwitch::Paused | KillSwitch::Halted => Some(one.switch.1.clone()),
        }
    }

    /// Takes the reason of a kill switch from a notice.
    pub(crate) fn notice(&mut self, engine: &Engine, notice: &Notice) {
        match notice {
            Notice::Unexplained {
                time,
                asset,
                amount,
                ..
            } if *amount < Amount::ZERO => {
                let asset = engine.assets().get(usize::from(asset.0));
                let asset = asset.map_or("", String::as_str);
                let decrease = format!("{} {asset}", (-*amount).to_decimal());
                self.note_unexplained(*time, decrease);
            }
            Notice::InvariantBroken { broken, .. } => {
                self.set_cause(format!("a mistake of this program: {broken}"));
            }
            Notice::ForcedClose { report, .. } => {
                if let Some(cause) = forced::cause(engine, report, &self.account.1) {
                    self.amend_cause(cause);
                }
            }
            // Without a limit, the halt is a command. The command set its reason already, or the
            // file has it.
            Notice::Halted {
                time,
                limit: Some(limit),
            } => self.set_breached(*time, limit.key()),
            _ => {}
        }
    }

    /// The file content that the shell must write; returned once for each change.
    pub(crate) fn take(&mut self) -> Option<StoredKillSwitches> {
        let is_unsent = std::mem::take(&mut self.is_unsent);
        self.writing += u32::from(is_unsent);
        is_unsent.then(|| self.file_content.clone())
    }

    /// Whether the kill switches survive the end of the process.
    pub fn save_state(&self) -> SaveState {
        let is_behind = self.writing > 0 || self.is_unsent;
        match &self.failed {
            _ if is_behind && !planted!(LatchAnsweredEarly) => SaveState::Writing,
            Some((_, why)) => SaveState::Failed(why.clone()),
            None => SaveState::Durable,
        }
    }

    /// Result of a write of the file.
    pub(crate) fn written(&mut self, now: Time, result: Result<(), String>) {
        self.writing = self.writing.saturating_sub(1);
        self.failed = result.err().map(|why| {
            tracing::error!(
                error = why,
                "the kill switch file could not be written: after a restart, the run may not be \
                 paused or halted; the write is tried again"
            );
            (now, why)
        });
    }

    /// When a failed write is tried again.
    pub(crate) fn due(&self) -> Option<Time> {
        let (at, _) = self.failed.as_ref()?;
        let waits = self.writing == 0 && !self.is_unsent && !planted!(LatchNotTriedAgain);
        waits.then(|| at.plus_ms(AGAIN_MS))
    }

    /// Has the shell write the file again if it is time.
    pub(crate) fn timeout(&mut self, now: Time) {
        self.is_unsent |= self.due().is_some_and(|due| due <= now);
    }

    /// Compares the engine with the file content and updates the content.
    pub fn update_from(&mut self, engine: &Engine) {
        let changed = |(place, one): (usize, &StrategySwitch)| {
            let strategy = StrategyId(place as u16);
            let fault = one.fault.as_ref().map(|(kind, _)| *kind);
            one.switch.0 != engine.kill_switch_of(strategy)
                || fault != one.fault_in(engine, strategy)
                || one.flattens != flattens(engine, strategy)
        };
        let same = self.account.0 == engine.kill_switch()
            && self.margin_call == is_called(engine)
            && self.flattens == flattens_all(engine)
            && !self.has_new_reason;
        if same && !self.strategies.iter().enumerate().any(changed) {
            return;
        }
        let is_new =
            engine.kill_switch() != KillSwitch::Clear && self.account.0 != engine.kill_switch();
        if is_new && self.account.1.is_empty() {
            // The journal has a command that the file lacks.
            OPERATOR.clone_into(&mut self.account.1);
        }
        self.account.0 = engine.kill_switch();
        self.margin_call = is_called(engine);
        self.flattens = flattens_all(engine);
        self.has_new_reason = false;
        let next = &mut self.file_content;
        next.margin_call = self.margin_call;
        next.flatten = self.flattens;
        next.account = to_stored(engine.kill_switch(), &self.account.1);
        for (place, one) in self.strategies.iter_mut().enumerate() {
            one.take(engine, StrategyId(place as u16));
            next.strategies.insert(one.name.clone(), one.to_file());
        }
        let is_clear = |entry: &StrategyKillSwitch| *entry == StrategyKillSwitch::default();
        next.strategies.retain(|_, entry| !is_clear(entry));
        self.is_unsent = true;
    }
}

impl StrategySwitch {
    /// The fault for the file.
    fn fault_in(&self, engine: &Engine, strategy: StrategyId) -> Option<FaultKind> {
        let resumed = self.fault.as_ref().filter(|_| self.resumes);
        engine.fault(strategy).or(resumed.map(|(kind, _)| *kind))
    }

    /// Takes the state of the engine. A known reason is kept.
    fn take(&mut self, engine: &Engine, strategy: StrategyId) {
        self.fault = self.fault_in(engine, strategy).map(|kind| {
            let known = self.fault.take().filter(|(known, _)| *known == kind);
            known.unwrap_or((kind, String::new()))
        });
        self.flattens = flattens(engine, strategy);
        let kill_switch = engine.kill_switch_of(strategy);
        if kill_switch != self.switch.0 {
            let reason = match kill_switch {
                KillSwitch::Clear => "",
                KillSwitch::Paused | KillSwitch::Halted => OPERATOR,
            };
            self.switch = (kill_switch, reason.to_owned());
        }
    }

    fn to_file(&self) -> StrategyKillSwitch {
        let quarantine = self.fault.as_ref();
        StrategyKillSwitch {
            switch: to_stored(self.switch.0, &self.switch.1),
            quarantine: quarantine.map(|(kind, why)| (kind.as_str().to_owned(), why.clone())),
            flatten: self.flattens,
        }
    }
}

/// Whether the venue sent a margin call and the operator did not resume since.
fn is_called(engine: &Engine) -> bool {
    engine
        .degraded_reasons()
        .contains(&DegradedReason::MarginCall)
}

/// Whether the operator's flatten command of a strategy is not finished.
fn flattens(engine: &Engine, strategy: StrategyId) -> bool {
    engine.kill_switch_of(strategy) == KillSwitch::Halted && engine.is_flattening(strategy)
}

/// Whether the operator's flatten command of the account is not finished. Positions that a
/// quarantine or a stop closes do not count, because the operator did not command that.
fn flattens_all(engine: &Engine) -> bool {
    let all = (0..).map(StrategyId);
    let mut all = all.take_while(|strategy| engine.strategy_config(*strategy).is_some());
    engine.kill_switch() == KillSwitch::Halted
        && all.any(|strategy| {
            let own = engine.kill_switch_of(strategy) == KillSwitch::Halted;
            engine.is_flattening(strategy) && !own && engine.fault(strategy).is_none()
        })
}

fn read(stored: &StoredKillSwitch) -> (KillSwitch, String) {
    match stored {
        StoredKillSwitch::Clear => (KillSwitch::Clear, String::new()),
        StoredKillSwitch::Paused { reason } => (KillSwitch::Paused, reason.clone()),
        StoredKillSwitch::Halted { reason } => (KillSwitch::Halted, reason.clone()),
    }
}

fn to_stored(switch: KillSwitch, reason: &str) -> StoredKillSwitch {
    let reason = reason.to_owned();
    match switch {
        KillSwitch::Clear => StoredKillSwitch::Clear,
        KillSwitch::Paused => StoredKillSwitch::Paused { reason },
        KillSwitch::Halted => StoredKillSwitch::Halted { reason },
    }
}

/// A fault kind that this program does not know still counts as a fault.
fn fault(word: &str) -> FaultKind {
    let known = FaultKind::ALL.iter().find(|kind| kind.as_str() == word);
    known.copied().unwrap_or(FaultKind::Contract)
}

/// The command that makes an engine as strict as the file.
const fn stricter(file: KillSwitch, engine: KillSwitch) -> Option<Command> {
    match (file, engine) {
        (KillSwitch::Halted, KillSwitch::Clear | KillSwitch::Paused) => Some(Command::Halt),
        (KillSwitch::Paused, KillSwitch::Clear) => Some(Command::Pause),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use windvane_engine::Callback;
    use windvane_model::config::{EngineConfig, OnFault, StrategyConfig, Streams, Subscription};
    use windvane_model::ids::StrategyName;
    use windvane_model::instrument::Instrument;
    use windvane_model::protocol::{Fill, OrderUpdate};
    use windvane_model::risk::RiskLimits;
    use windvane_model::{
        Amount, AssetId, ClientOrderId, ExecutionType, InstrumentId, Level, MarketEvent,
        OrderStatus, OrderTerms, OrderType, PositionSide, Price, Qty, Side, Surface, Time,
        TimeInForce, TradeId, VenueOrderId,
    };

    use super::*;
    use crate::testing::live_config;

    fn engine() -> Engine {
        let strategy = |name| StrategyConfig {
            name: StrategyName::new(name).unwrap(),
            subscriptions: Vec::new(),
            limits: RiskLimits::default(),
            on_fault: OnFault::Cancel,
        };
        Engine::new(EngineConfig {
            strategies: vec![strategy("a"), strategy("b")],
            ..EngineConfig::default()
        })
        .unwrap()
    }

    /// The kill switches of a process whose file has this content.
    fn held(file: StoredKillSwitches) -> KillSwitchState {
        KillSwitchState::new(file, ["a", "b"].map(str::to_owned).into_iter())
    }

    /// The content of the file at the end of a process.
    fn end(mut held: KillSwitchState, engine: &Engine) -> StoredKillSwitches {
        held.update_from(engine);
        held.file_content().clone()
    }

    #[test]
    fn the_kill_switch_survives_the_loss_of_the_journal() {
        let (mut first, mut engine) = (held(StoredKillSwitches::default()), engine());
        let (strategy, kind) = (StrategyId(1), FaultKind::Trap);
        engine.handle(Time(1), Input::Fault { strategy, kind });
        first.set_trouble(strategy, kind, "trap: unreachable".to_owned());
        let command = Command::Pause;
        engine.handle(
            Time(2),
            Input::Steer {
                strategy: StrategyId(0),
                command,
            },
        );
        let file = end(first, &engine);

        let mut second = held(file);
        let mut lost = self::engine();
        for input in second.missing(&lost) {
            lost.handle(Time(1), input);
        }
        second.set_trouble(strategy, kind, String::new());
        assert_eq!(lost.kill_switch_of(StrategyId(0)), KillSwitch::Paused);
        assert_eq!(lost.fault(strategy), Some(kind));
        let reason = |held: &KillSwitchState, at| held.reason(&lost, StrategyId(at));
        assert_eq!(reason(&second, 1).unwrap(), "trap: unreachable");
        assert_eq!(reason(&second, 0).unwrap(), OPERATOR);
        assert!(second.missing(&lost).is_empty());

        lost.handle(Time(3), Input::Renew { strategy });
        let file = end(second, &lost);
        let third = held(file);
        assert_eq!(
            third.missing(&self::engine()).len(),
            1,
            "only the pause is missing"
        );
    }

    const BTC: InstrumentId = InstrumentId(0);

    /// An engine whose first strategy holds 5 units.
    fn holding() -> Engine {
        let strategy = |name| StrategyConfig {
            name: StrategyName::new(name).unwrap(),
            subscriptions: vec![Subscription {
                instrument: BTC,
                streams: Streams::default(),
                bars_ms: Vec::new(),
            }],
            limits: RiskLimits::default(),
            on_fault: OnFault::Cancel,
        };
        let mut engine = Engine::new(EngineConfig {
            assets: vec!["BTC".to_owned(), "USDT".to_owned()],
            instruments: vec![Instrument::unrestricted(
                Surface::Futures,
                "BTCUSDT",
                [AssetId(0), AssetId(1)],
                [1, 3],
            )],
            strategies: vec![strategy("a"), strategy("b")],
            epoch: 7,
            ..EngineConfig::default()
        })
        .unwrap();
        let level = |price| Level { price, qty: 1000 };
        engine.handle(
            Time(1),
            Input::Market {
                instrument: BTC,
                event: MarketEvent::Top {
                    update_id: 0,
                    bid: level(999),
                    ask: level(1001),
                },
            },
        );
        let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::Market);
        terms.qty = Some(Qty(5));
        let mut callback = Callback::default();
        callback.begin(&engine, StrategyId(0));
        let order = callback.submit(&engine, terms).unwrap();
        let intents = callback.intents();
        let strategy = StrategyId(0);
        engine.handle(Time(2), Input::Answer { strategy, intents });
        let mut update = engine.order(order).unwrap().as_update();
        update.status = OrderStatus::Filled;
        update.executed_qty = Qty(5);
        update.fill = Some(Fill {
            trade_id: TradeId(1),
            price: Price(1001),
            qty: Qty(5),
            quote_qty: engine.instruments()[0].notional(1001, 5),
            fee: Amount::ZERO,
            fee_asset: AssetId(1),
            maker: false,
            realized_pnl: None,
        });
        engine.handle(Time(3), Input::User(&UserEvent::Order(update)));
        engine
    }

    #[test]
    fn a_flatten_that_only_the_file_has_is_repeated() {
        let strategy = StrategyId(0);
        let command = Command::Flatten;
        for (word, own) in [
            (Input::Command(command), KillSwitch::Clear),
            (Input::Steer { strategy, command }, KillSwitch::Halted),
        ] {
            let (first, mut engine) = (held(StoredKillSwitches::default()), holding());
            engine.handle(Time(4), word);
            assert!(engine.is_flattening(strategy));
            let file = end(first, &engine);

            let second = held(file);
            let mut lost = holding();
            for input in second.missing(&lost) {
                lost.handle(Time(4), input);
            }
            assert!(lost.is_flattening(strategy));
            assert_eq!(lost.kill_switch_of(strategy), own);
            assert!(second.missing(&lost).is_empty());
            // A resume removes it from the file.
            let command = Command::Resume;
            lost.handle(Time(5), Input::Steer { strategy, command });
            lost.handle(Time(5), Input::Command(command));
            let file = end(second, &lost);
            let third = held(file);
            assert!(third.missing(&holding()).is_empty());
        }
    }

    /// The reason in the file after an order event, with the notices of the engine taken in.
    fn reason_after(
        held: &mut KillSwitchState,
        engine: &mut Engine,
        update: OrderUpdate,
    ) -> String {
        engine.handle(Time(5), Input::User(&UserEvent::Order(update)));
        while let Some(notice) = engine.poll_notice() {
            held.notice(engine, &notice);
        }
        held.update_from(engine);
        let account = &held.file_content().account;
        account.words().map_or("", |(_, reason)| reason).to_owned()
    }

    #[test]
    fn each_fill_of_a_forced_close_updates_the_reason() {
        let (mut held, mut engine) = (held(StoredKillSwitches::default()), holding());
        let mut update = sold_by_the_venue(&engine, TradeId(2), (2, 2));
        update.status = OrderStatus::PartiallyFilled;
        let first = reason_after(&mut held, &mut engine, update);
        assert!(
            first.starts_with("liquidation by the venue: 0.002 of"),
            "{first}"
        );
        assert_eq!(engine.kill_switch(), KillSwitch::Halted);
        let update = sold_by_the_venue(&engine, TradeId(3), (3, 5));
        let second = reason_after(&mut held, &mut engine, update);
        assert!(
            second.starts_with("liquidation by the venue: 0.005 of"),
            "{second}"
        );
    }

    #[test]
    fn a_later_fill_keeps_the_reason_of_a_newer_halt() {
        let (mut held, mut engine) = (held(StoredKillSwitches::default()), holding());
        let mut update = sold_by_the_venue(&engine, TradeId(2), (2, 2));
        update.status = OrderStatus::PartiallyFilled;
        reason_after(&mut held, &mut engine, update);
        held.set_cause(OPERATOR.to_owned());
        let update = sold_by_the_venue(&engine, TradeId(3), (3, 5));
        reason_after(&mut held, &mut engine, update);
        assert_eq!(held.cause(), OPERATOR);
    }

    /// A fill of an order that the venue itself created: quantity of this trade, and quantity in
    /// all.
    fn sold_by_the_venue(
        engine: &Engine,
        trade_id: TradeId,
        (qty, executed): (i64, i64),
    ) -> OrderUpdate {
        OrderUpdate {
            client_order_id: ClientOrderId::new("autoclose-17").unwrap(),
            order_id: VenueOrderId(500),
            instrument: BTC,
            side: Side::Sell,
            position_side: PositionSide::Both,
            order_type: OrderType::Market,
            time_in_force: TimeInForce::Ioc,
            orig_qty: Qty(5),
            price: Price(0),
            stop_price: Price(0),
            reduce_only: false,
            execution: ExecutionType::Trade,
            status: OrderStatus::Filled,
            transaction_time: Time(5),
            event_time: Time(5),
            executed_qty: Qty(executed),
            fill: Some(Fill {
                trade_id,
                price: Price(900),
                qty: Qty(qty),
                quote_qty: engine.instruments()[0].notional(900, qty),
                fee: Amount(400_000_000),
                fee_asset: AssetId(1),
                maker: false,
                realized_pnl: None,
            }),
        }
    }

    #[test]
    fn a_loss_halt_names_an_unexplained_decrease_of_the_same_day() {
        let mut held = held(StoredKillSwitches::default());
        held.set_breached(Time(1), "max_daily_loss");
        assert_eq!(held.cause(), "max_daily_loss was breached");
        held.note_unexplained(Time(2), "120 USDT".to_owned());
        held.set_breached(Time(3), "max_daily_loss");
        assert!(
            held.cause().contains("120 USDT of the loss"),
            "{}",
            held.cause()
        );
        assert!(held.cause().contains("withdrew"));
        held.set_breached(Time(DAY_NS + 1), "max_daily_loss");
        assert_eq!(held.cause(), "max_daily_loss was breached");
    }

    #[test]
    fn a_margin_call_survives_a_lost_journal_until_resume() {
        let live = || {
            Engine::new(EngineConfig {
                live: Some(live_config()),
                ..EngineConfig::default()
            })
            .unwrap()
        };
        let (first, mut engine) = (held(StoredKillSwitches::default()), live());
        engine.handle(Time(1), Input::User(&UserEvent::MarginCall));
        let file = end(first, &engine);

        let second = held(file);
        let mut lost = live();
        for input in second.missing(&lost) {
            lost.handle(Time(1), input);
        }
        assert_eq!(lost.degraded_reasons(), [DegradedReason::MarginCall]);
        lost.handle(Time(2), Input::Command(Command::Resume));
        let file = end(second, &lost);
        let third = held(file);
        assert!(third.missing(&live()).is_empty());
    }

    #[test]
    fn a_halt_without_a_reason_gets_the_operator_as_reason() {
        let why = "the kill switch file could not be read";
        let file = StoredKillSwitches {
            account: StoredKillSwitch::Halted {
                reason: why.to_owned(),
            },
            ..StoredKillSwitches::default()
        };
        for (file, reason) in [(file, why), (StoredKillSwitches::default(), OPERATOR)] {
            let (mut held, mut engine) = (held(file), engine());
            engine.handle(Time(1), Input::Command(Command::Halt));
            while let Some(notice) = engine.poll_notice() {
                held.notice(&engine, &notice);
            }
            held.update_from(&engine);
            assert_eq!(held.cause(), reason);
        }
    }

    #[test]
    fn each_change_is_passed_to_the_shell_once() {
        let (mut held, mut engine) = (held(StoredKillSwitches::default()), engine());
        held.update_from(&engine);
        assert_eq!(held.take(), None);
        engine.handle(Time(1), Input::Command(Command::Halt));
        held.set_cause(OPERATOR.to_owned());
        held.update_from(&engine);
        let stored = held.take().unwrap().account;
        assert!(matches!(stored, StoredKillSwitch::Halted { reason } if reason == OPERATOR));
        held.update_from(&engine);
        assert_eq!(held.take(), None);
    }

    #[test]
    fn a_file_that_could_not_be_written_is_written_again() {
        let (mut held, mut engine) = (held(StoredKillSwitches::default()), engine());
        engine.handle(Time(1), Input::Command(Command::Halt));
        held.update_from(&engine);
        assert_eq!(held.save_state(), SaveState::Writing);
        let stored = held.take();
        assert_eq!(held.save_state(), SaveState::Writing);
        held.written(Time(5), Err("no space".to_owned()));
        assert_eq!(held.save_state(), SaveState::Failed("no space".to_owned()));
        let due = held.due().unwrap();
        assert_eq!(due, Time(5).plus_ms(AGAIN_MS));
        held.timeout(Time(6));
        assert_eq!(held.take(), None, "it is not time yet");
        held.timeout(due);
        assert_eq!((held.take(), held.due()), (stored, None));
        held.written(due, Ok(()));
        assert_eq!((held.save_state(), held.due()), (SaveState::Durable, None));
    }

    #[test]
    fn a_change_during_a_write_is_written_next() {
        let (mut held, mut engine) = (held(StoredKillSwitches::default()), engine());
        for command in [Command::Pause, Command::Halt] {
            engine.handle(Time(1), Input::Command(command));
            held.update_from(&engine);
            assert!(held.take().is_some());
        }
        held.written(Time(2), Ok(()));
        assert_eq!(held.save_state(), SaveState::Writing);
        held.written(Time(3), Ok(()));
        assert_eq!(held.save_state(), SaveState::Durable);
    }
}
