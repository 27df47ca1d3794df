//! Turns the engine's state into the rows that the operator sees: orders, positions, balances,
//! strategies. It reads the engine and changes nothing.

use rust_decimal::Decimal;
use windvane_admin::view::{
    self, Balance, Order, Position, State, Strategy, StrategyCounts, StrategyState,
};
use windvane_engine::Engine;
use windvane_model::decimal::{AMOUNT_SCALE, decimal};
use windvane_model::holding::Ledger;
use windvane_model::ledger::Position as Held;
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order as OwnOrder;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::state_report::OpenOrder;
use windvane_model::trading::{Refusals, TradingBlock};
use windvane_model::{Amount, InstrumentId, OrderType, Side, StrategyId, Surface, Time};
use windvane_session::{Driver, Guests, KillSwitchState, Module};

use super::not_sent::NotSent;
use windvane_config::Mode;
use windvane_report::utc::seconds_text;

/// How long a series of rejections is shown after its last order, or after the end of its pause.
const SERIES_SHOWN_MS: i64 = 60_000;
/// An order that waits this long for the dead man's switch is shown. A request usually takes less.
const COUNTDOWN_WAIT_MS: i64 = 1_000;

/// Maps the mode to the admin server's type.
pub const fn mode(mode: Mode) -> view::Mode {
    match mode {
        Mode::Live => view::Mode::Live,
        Mode::Paper => view::Mode::Paper,
    }
}

/// Maps the run's state to the admin server's type.
pub const fn state(state: RunState) -> State {
    match state {
        RunState::Ready => State::Ready,
        RunState::Degraded => State::Degraded,
        RunState::Halted => State::Halted,
        RunState::Paused => State::Paused,
        RunState::Syncing => State::Syncing,
        RunState::Booting => State::Booting,
    }
}

/// Own orders that may be open at the venue, oldest first. Orders that wait for a countdown or for
/// the journal are left out, because they were not sent. Orders whose end the venue reported are
/// left out too: they only lack fills.
pub fn own_orders<G: Guests>(driver: &Driver<G>) -> impl Iterator<Item = &OwnOrder> {
    let orders = driver.engine().orders().iter();
    orders.filter(|order| {
        !order.held && order.reported_final.is_none() && !driver.is_waiting(&order.client_order_id)
    })
}

/// Own orders that may be open at the venue, then orders on the account from outside this run.
pub fn orders<G: Guests>(driver: &Driver<G>) -> Vec<Order> {
    let engine = driver.engine();
    let own = own_orders(driver).filter_map(|order| order_row(engine, order));
    let others = engine.external_orders();
    let others = others.filter_map(|order| external_row(engine, order));
    own.chain(others).collect()
}

fn external_row(engine: &Engine, order: &OpenOrder) -> Option<Order> {
    let (report, terms) = (&order.report, &order.terms);
    let instrument = engine.instrument(report.instrument)?;
    Some(Order {
        instrument: instrument.name(),
        strategy: None,
        client_order_id: report.client_order_id.as_str().to_owned(),
        order_id: u64::try_from(report.order_id.0).ok(),
        side: terms.side.as_str().to_owned(),
        price: terms.price.map(|price| text(instrument.price(price.0))),
        qty: terms.qty.map(|qty| text(instrument.qty(qty.0))),
        executed_qty: text(instrument.qty(report.executed_qty.0)),
        status: report.status.as_str().to_owned(),
    })
}

fn order_row(engine: &Engine, order: &OwnOrder) -> Option<Order> {
    let instrument = engine.instrument(order.instrument())?;
    let terms = &order.terms;
    Some(Order {
        instrument: instrument.name(),
        strategy: engine.strategy_name(order.strategy).map(str::to_owned),
        client_order_id: order.client_order_id.as_str().to_owned(),
        order_id: order.venue_order_id.and_then(|id| u64::try_from(id.0).ok()),
        side: terms.side.as_str().to_owned(),
        price: terms.price.map(|price| text(instrument.price(price.0))),
        qty: terms.qty.map(|qty| text(instrument.qty(qty.0))),
        executed_qty: text(instrument.qty(order.executed_qty)),
        status: status(order).to_owned(),
    })
}

/// The order's status as the venue reports it. A requested cancel is the engine's own state, which
/// the venue does not know.
const fn status(order: &OwnOrder) -> &'static str {
    match order.state {
        OrderState::CancelRequested if order.executed_qty > 0 => "PARTIALLY_FILLED",
        OrderState::CancelRequested => "NEW",
        state => state.as_str(),
    }
}

/// Positions that are not flat: first the account's, then each strategy's part, then the account's
/// positions on symbols that are not configured.
pub fn positions(engine: &Engine) -> Vec<Position> {
    let ledgers = engine.ledgers();
    let mut rows = rows_of(engine, &ledgers.account, None);
    for (place, ledger) in ledgers.strategies.iter().enumerate() {
        let name = engine.strategy_name(StrategyId(place as u16));
        rows.extend(rows_of(engine, ledger, name));
    }
    rows.extend(engine.unconfigured_positions().map(|held| {
        let entry = held.entry_price;
        Position {
            instrument: format!("{}:{}", Surface::Futures, held.symbol),
            strategy: None,
            position_side: held.position_side.as_str().to_owned(),
            qty: amount(held.qty),
            entry_price: (entry != Amount::ZERO).then(|| amount(entry)),
        }
    }));
    rows
}

fn rows_of(engine: &Engine, ledger: &Ledger, strategy: Option<&str>) -> Vec<Position> {
    let open = ledger.iter().filter(|(_, _, held)| held.position.qty != 0);
    open.filter_map(|(id, side, held)| {
        let instrument = engine.instrument(id)?;
        let held = &held.position;
        let entry = held.entry_price(instrument);
        Some(Position {
            instrument: instrument.name(),
            strategy: strategy.map(str::to_owned),
            position_side: side.as_str().to_owned(),
            qty: text(instrument.qty(held.qty)),
            entry_price: (entry != 0).then(|| text(decimal(i128::from(entry), AMOUNT_SCALE))),
        })
    })
    .collect()
}

/// Balances of all known assets.
pub fn balances(engine: &Engine) -> Vec<Balance> {
    let name = |index: usize| engine.assets().get(index).cloned().unwrap_or_default();
    engine
        .balances()
        .map(|(surface, asset, balance)| Balance {
            surface: surface.to_string(),
            asset: name(usize::from(asset.0)),
            total: amount(balance.total),
            // `locked` is from the last account snapshot and may be too large by now. Never show a
            // negative value.
            available: amount((balance.total - balance.locked).max(Amount::ZERO)),
        })
        .collect()
}

/// The strategies in the order of the configuration.
pub fn strategies(
    engine: &Engine,
    modules: &[Module],
    kill_switch: &KillSwitchState,
) -> Vec<Strategy> {
    let row = |place| strategy(engine, modules, kill_switch, place);
    (0..modules.len()).filter_map(row).collect()
}

/// The strategy at this position of the configuration.
pub fn strategy(
    engine: &Engine,
    modules: &[Module],
    kill_switch: &KillSwitchState,
    place: usize,
) -> Option<Strategy> {
    let (id, sha256) = modules.get(place)?;
    let strategy = StrategyId(place as u16);
    let ledger = engine.ledgers().strategies.get(place)?;
    let total = |field: fn(&Held) -> Amount| amount(ledger.total(field));
    let fault = engine.fault(strategy);
    let state = match engine.kill_switch_of(strategy) {
        _ if fault.is_some() => StrategyState::Quarantined,
        KillSwitch::Clear => StrategyState::Running,
        KillSwitch::Paused => StrategyState::Paused,
        KillSwitch::Halted => StrategyState::Halted,
    };
    Some(Strategy {
        id: id.clone(),
        module_sha256: hex::encode(sha256),
        state,
        fault: fault.map(|fault| fault.as_str().to_owned()),
        reason: kill_switch.reason(engine, strategy),
        quarantined_since_ms: engine.fault_since(strategy).map(Time::millis),
        open_orders: engine.orders().of(strategy, None).count() as u64,
        realized_pnl: total(|position| position.realized_pnl),
        unrealized_pnl: engine.unrealized(ledger).map(amount),
        fees: total(|position| position.fees),
        funding: total(|position| position.funding),
    })
}

/// Problems that the operator should know about although they do not degrade the run, one sentence
/// each: quarantined strategies, blocked instruments, accounts and assets, orders of unknown
/// outcome, orders that wait for a countdown, and commissions that are only estimated.
pub fn hindrances(
    engine: &Engine,
    modules: &[Module],
    (kill_switch, not_sent): (&KillSwitchState, &NotSent),
) -> Vec<String> {
    let mut sentences = Vec::new();
    for (place, (id, _)) in modules.iter().enumerate() {
        let strategy = StrategyId(place as u16);
        if engine.fault(strategy).is_none() {
            continue;
        }
        let reason = kill_switch.reason(engine, strategy).unwrap_or_default();
        let since = engine.fault_since(strategy);
        let since = since.map_or_else(String::new, |at| format!(" since {} UTC", seconds_text(at)));
        sentences.push(format!(
            "strategy {id} is in quarantine{since} and is not called: {reason}. Fix the cause, \
             then run windvane resume --strategy {id}"
        ));
    }
    sentences.extend(blocks(engine));
    let shown = trading(engine, not_sent);
    let derived = refused_instruments(engine).chain(not_sent.rows(engine.now()));
    sentences.extend(derived.filter(|row| shown.contains(row)).map(|row| {
        format!(
            "{}: {} ({} in a row); {}",
            row.what,
            row.reason.unwrap_or_default(),
            row.rejected + row.not_sent,
            row.what_to_do.unwrap_or_default()
        )
    }));
    sentences.extend(unknown_orders(engine).map(|row| {
        format!(
            "{}: {}; {}",
            row.what,
            row.reason.unwrap_or_default(),
            row.what_to_do.unwrap_or_default()
        )
    }));
    sentences.extend(countdown_waits(engine));
    sentences.extend(engine.unpriced_fees().map(|asset| {
        let name = engine.assets().get(usize::from(asset.0));
        format!(
            "the venue takes commissions in {}, whose price is not known yet: the loss limits use \
             an estimate from the value of each fill. Add an instrument of this asset and the \
             quote asset to the configuration to count them exactly",
            name.map_or("", String::as_str)
        )
    }));
    sentences
}

/// Orders that wait for the dead man's switch of their symbol longer than one request takes.
fn countdown_waits(engine: &Engine) -> Vec<String> {
    let waits = engine.countdown_waits().into_iter();
    let words = waits.filter_map(|wait| {
        let instrument = engine.instrument(wait.instrument)?.name();
        let orders = match wait.orders {
            1 => "1 order".to_owned(),
            many => format!("{many} orders"),
        };
        let waited_ms = engine.now().millis() - wait.since.millis();
        match wait.barred_until {
            Some(until) => Some(format!(
                "{orders} of {instrument} not sent yet: the dead man's switch of the symbol was \
                 disarmed a moment ago and cannot be armed again before {} UTC. They are sent \
                 then; cancels and closes that only reduce are sent now",
                seconds_text(until)
            )),
            None if waited_ms >= COUNTDOWN_WAIT_MS => Some(format!(
                "{orders} of {instrument} not sent yet: the venue has not confirmed the dead man's \
                 switch of the symbol for {} s. They are sent once it does",
                waited_ms / 1_000
            )),
            None => None,
        }
    });
    words.collect()
}

/// Blocked accounts, instruments and assets, one sentence each.
fn blocks(engine: &Engine) -> impl Iterator<Item = String> {
    engine.blocks().map(|(block, state)| {
        let words = engine.describe_block(block, state);
        let since = seconds_text(state.since);
        format!(
            "{} is blocked since {since} UTC: {}; {}",
            words.what, words.reason, words.what_to_do
        )
    })
}

/// Own orders that a halt of the account or of their strategy cancels. Market orders are left out:
/// they cannot rest, so they are closes.
pub fn cancelled_by_halt<G: Guests>(driver: &Driver<G>) -> impl Iterator<Item = &OwnOrder> {
    let engine = driver.engine();
    let is_halted = engine.kill_switch() == KillSwitch::Halted;
    own_orders(driver).filter(move |order| {
        let halts = is_halted || engine.kill_switch_of(order.strategy) == KillSwitch::Halted;
        halts && order.terms.order_type != OrderType::Market
    })
}

/// Why own orders stay open although a halt cancels them. One sentence for each account whose key
/// the venue refuses.
pub fn refused_cancels<G: Guests>(driver: &Driver<G>) -> Vec<String> {
    let engine = driver.engine();
    let resting = |surface: Surface| {
        let of_surface = cancelled_by_halt(driver).filter(|order| {
            let instrument = engine.instrument(order.instrument());
            instrument.is_some_and(|one| one.surface == surface)
        });
        of_surface.count()
    };
    let refused = engine.blocks().filter_map(|(block, state)| {
        let TradingBlock::Key(surface) = block else {
            return None;
        };
        let (count, words) = (resting(surface), engine.describe_block(block, state));
        (count > 0).then(|| {
            format!(
                "the venue refuses to cancel {}: {}; {}",
                own_orders_text(count),
                words.reason,
                words.what_to_do
            )
        })
    });
    refused.collect()
}

/// A number of own orders as text.
pub fn own_orders_text(count: usize) -> String {
    match count {
        1 => "1 own order".to_owned(),
        many => format!("{many} own orders"),
    }
}

/// The trading status of each account and instrument, and of assets whose balance is too small.
pub fn trading(engine: &Engine, not_sent: &NotSent) -> Vec<view::Trading> {
    let instruments = engine.instruments();
    let surfaces = Surface::ALL.iter().copied();
    let used = surfaces.filter(|surface| instruments.iter().any(|one| one.surface == *surface));
    let accounts = used.map(|surface| (format!("{surface} account"), view::Scope::Account));
    let symbols = instruments.iter();
    let symbols = symbols.map(|one| (one.name(), view::Scope::Instrument));
    let open = |(what, scope)| view::Trading {
        what,
        scope,
        open: true,
        ..view::Trading::default()
    };
    let mut rows: Vec<_> = accounts.chain(symbols).map(open).collect();
    for (block, state) in engine.blocks() {
        let words = engine.describe_block(block, state);
        let scope = match block {
            TradingBlock::Instrument(_)
            | TradingBlock::StaleMarket(_)
            | TradingBlock::Countdown(_) => view::Scope::Instrument,
            TradingBlock::Funds(..) => view::Scope::Asset,
            _ => view::Scope::Account,
        };
        rows.retain(|row| !row.open || row.what != words.what);
        rows.push(view::Trading {
            what: words.what,
            scope,
            open: false,
            reason: Some(words.reason),
            what_to_do: Some(words.what_to_do),
            since_ms: Some(state.since.millis()),
            until_ms: state.until.map(Time::millis),
            try_again_ms: state.trial.map(Time::millis),
            code: (state.code != 0).then_some(state.code),
            rejected: state.rejected,
            not_sent: state.not_sent,
        });
    }
    for row in refused_instruments(engine).chain(not_sent.rows(engine.now())) {
        // A block by the engine has more detail, so it stays.
        if let Some(open) = rows.iter_mut().find(|one| one.open && one.what == row.what) {
            *open = row;
        }
    }
    // Other strategies can still trade the instrument, so these are extra rows.
    rows.extend(unknown_orders(engine));
    rows
}

/// Strategies that may open nothing in an instrument, because the outcome of their orders there is
/// unknown.
fn unknown_orders(engine: &Engine) -> impl Iterator<Item = view::Trading> {
    let orders = engine.unknown_orders().into_iter();
    orders.map(|orders| {
        let words = engine.describe_unknown_orders(&orders);
        view::Trading {
            what: words.what,
            scope: view::Scope::Strategy,
            open: false,
            reason: Some(words.reason),
            what_to_do: Some(words.what_to_do),
            since_ms: Some(orders.since.millis()),
            ..view::Trading::default()
        }
    })
}

/// Instruments whose orders the venue rejects again and again, with a code that is not about the
/// account or the instrument.
fn refused_instruments(engine: &Engine) -> impl Iterator<Item = view::Trading> {
    let ids = (0..engine.instruments().len()).map(|index| InstrumentId(index as u16));
    ids.filter_map(|id| {
        if engine.accepts_orders_of(id) {
            return None;
        }
        let goes_on = |series: &&Refusals| {
            let last = series.last.max(series.pause_until);
            series.code != 0 && series.count > 2 && engine.now() <= last.plus_ms(SERIES_SHOWN_MS)
        };
        let of_it = engine.refusals().filter(|(_, of, ..)| *of == id);
        let series: Vec<_> = of_it.map(|(.., series)| series).filter(goes_on).collect();
        let last = series.iter().max_by_key(|series| series.last)?;
        Some(view::Trading {
            what: engine.instrument(id)?.name(),
            scope: view::Scope::Instrument,
            open: false,
            reason: Some(format!("the venue rejects its orders (code {})", last.code)),
            what_to_do: Some(
                "read the venue's message in the log and remove the cause. Each strategy tries \
                 again after growing pauses; exits are tried every few seconds"
                    .to_owned(),
            ),
            since_ms: series.iter().map(|series| series.since.millis()).min(),
            code: Some(last.code),
            rejected: series.iter().map(|series| u64::from(series.count)).sum(),
            ..view::Trading::default()
        })
    })
}

/// Series of orders that were not placed, by strategy, instrument and side.
pub fn refusals(engine: &Engine) -> Vec<view::Refusals> {
    let repeated = engine
        .refusals()
        .filter(|(.., refusals)| refusals.count > 1);
    let row = |(strategy, instrument, side, refusals): (StrategyId, _, Side, &Refusals)| {
        Some(view::Refusals {
            strategy: engine.strategy_name(strategy)?.to_owned(),
            instrument: engine.instrument(instrument)?.name(),
            side: side.as_str().to_owned(),
            code: (refusals.code != 0).then_some(refusals.code),
            count: refusals.count,
            since_ms: refusals.since.millis(),
            pause_until_ms: (refusals.pause_until > engine.now())
                .then(|| refusals.pause_until.millis()),
        })
    };
    repeated.filter_map(row).collect()
}

/// The number of strategies in each state.
pub fn counts(strategies: &[Strategy]) -> StrategyCounts {
    let of = |state| strategies.iter().filter(|one| one.state == state).count() as u64;
    StrategyCounts {
        running: of(StrategyState::Running),
        paused: of(StrategyState::Paused),
        halted: of(StrategyState::Halted),
        quarantined: of(StrategyState::Quarantined),
    }
}

fn amount(amount: Amount) -> String {
    text(amount.to_decimal())
}

fn text(value: Decimal) -> String {
    value.normalize().to_string()
}
