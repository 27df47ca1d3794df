//! The data of a store beside its instance: the engine during a callback, the scratch data of the
//! callback, the output and the counters. The bodies of the host functions are also here, the same
//! for both call paths; `link.rs` links them to their names. Only the output outlives a callback.

use windvane_engine::{Callback, Engine};
use windvane_model::order::OrderTerms;
use windvane_model::rules::Rule;
use windvane_model::{Amount, instrument::SymbolStatus};
use windvane_model::{
    AssetId, Instrument, InstrumentId, OrderSeq, OrderType, PositionSide, Price, Qty, Side,
    StrategyId, Surface, Time, TimeInForce, WorkingType,
};

use crate::contract::ContractVersion;
use crate::fault::Breach;
use crate::limits::{Limiter, Limits};
use crate::output::{LogLevel, LogLine, Output, PlotPoint};

/// The value for "does not exist" in all answers of the contract.
const NONE: i64 = i64::MIN;

/// A store's data.
pub(crate) struct Context {
    pub(crate) limiter: Limiter,
    pub(crate) callback: Callback,
    pub(crate) output: Output,
    /// Present only while `start` or an event runs.
    pub(crate) engine: Option<Box<Engine>>,
    /// False while the guest allocates memory for the host or frees an answer, as in the component
    /// model.
    pub(crate) may_leave: bool,
    pub(crate) contract: ContractVersion,
    limits: Limits,
    time: Time,
    logs_before: usize,
    plots_before: usize,
    log_bytes: usize,
    /// Whether log lines are kept: the capability `log` is granted.
    shows_log: bool,
    /// The last error that the guest logged in this callback.
    last_words: Option<String>,
    #[cfg(test)]
    pub(crate) panic_on_log: bool,
}

impl Context {
    pub(crate) fn new(limits: &Limits, contract: ContractVersion, shows_log: bool) -> Self {
        Self {
            limiter: Limiter::new(limits),
            callback: Callback::default(),
            output: Output::default(),
            engine: None,
            may_leave: true,
            contract,
            limits: *limits,
            time: Time::default(),
            logs_before: 0,
            plots_before: 0,
            log_bytes: 0,
            shows_log,
            last_words: None,
            #[cfg(test)]
            panic_on_log: false,
        }
    }

    /// Starts a callback without an engine: `describe`, `save` or `load`.
    #[inline]
    pub(crate) fn begin(&mut self, time: Time) {
        self.time = time;
        self.logs_before = self.output.logs.len();
        self.plots_before = self.output.plots.len();
        self.log_bytes = 0;
        self.last_words = None;
    }

    /// Starts a callback that may query the engine and make intents.
    #[inline]
    pub(crate) fn begin_with(&mut self, engine: Box<Engine>, strategy: StrategyId, time: Time) {
        self.begin(time);
        self.callback.begin(&engine, strategy);
        self.engine = Some(engine);
    }

    /// The last error that the guest logged in this callback.
    pub(crate) fn last_words(&self) -> Option<&str> {
        self.last_words.as_deref()
    }

    /// The output of the callbacks before this one, which stays after a fault.
    pub(crate) fn output_before(mut self) -> Output {
        self.output.logs.truncate(self.logs_before);
        self.output.plots.truncate(self.plots_before);
        self.output
    }

    #[inline]
    fn view(&mut self) -> wasmtime::Result<(&Engine, &mut Callback)> {
        match &self.engine {
            Some(engine) => Ok((engine, &mut self.callback)),
            None => Err(Breach::contract(
                "only start and on-event may ask for the market, the account, orders and timers",
            )),
        }
    }

    fn within_intents(&self) -> wasmtime::Result<()> {
        let limit = self.limits.intents_per_event;
        if self.callback.intents().len() > limit {
            return Err(wasmtime::Error::new(Breach::Intents { limit }));
        }
        Ok(())
    }
}

/// Capability `orders`.
impl Context {
    #[expect(clippy::too_many_arguments, reason = "the contract's own signature")]
    pub(crate) fn submit(
        &mut self,
        instrument: u32,
        flags: u32,
        qty: i64,
        price: i64,
        stop_price: i64,
        activation_price: i64,
        callback_ppm: u32,
        quote_qty: i64,
        group: i64,
        trail: i64,
    ) -> wasmtime::Result<i64> {
        let role = flags >> ROLE_SHIFT;
        if role > ROLE_MAX {
            return Ok(refusal(Rule::Malformed));
        }
        if role != 0 || group != 0 || trail != 0 {
            return self.unsupported();
        }
        self.submit_0_1(
            instrument,
            flags,
            qty,
            price,
            stop_price,
            activation_price,
            callback_ppm,
            quote_qty,
        )
    }

    #[expect(clippy::too_many_arguments, reason = "the contract's own signature")]
    pub(crate) fn submit_0_1(
        &mut self,
        instrument: u32,
        flags: u32,
        qty: i64,
        price: i64,
        stop_price: i64,
        activation_price: i64,
        callback_ppm: u32,
        quote_qty: i64,
    ) -> wasmtime::Result<i64> {
        let Some(mut terms) = terms_from_flags(instrument_id(instrument), flags) else {
            return Ok(refusal(Rule::Malformed));
        };
        let sent = |value: i64| (value != 0).then_some(value);
        terms.qty = sent(qty).map(Qty);
        terms.price = sent(price).map(Price);
        terms.stop_price = sent(stop_price).map(Price);
        terms.activation_price = sent(activation_price).map(Price);
        terms.callback_ppm = (callback_ppm != 0).then_some(callback_ppm);
        terms.quote_qty = sent(quote_qty).map(|v| Amount(i128::from(v)));
        let (engine, callback) = self.view()?;
        let answer = match callback.submit(engine, terms) {
            Ok(order) => order.0 as i64,
            Err(rejection) => refusal(rejection.rule),
        };
        self.within_intents()?;
        Ok(answer)
    }

    pub(crate) fn cancel(&mut self, order: i64) -> wasmtime::Result<i64> {
        let (engine, callback) = self.view()?;
        let answer = match callback.cancel(engine, OrderSeq(order as u64)) {
            Ok(()) => 0,
            Err(rejection) => refusal(rejection.rule),
        };
        self.within_intents()?;
        Ok(answer)
    }

    pub(crate) fn cancel_all(&mut self, instrument: i32) -> wasmtime::Result<i64> {
        let (engine, callback) = self.view()?;
        let count = callback.cancel_all(engine, one_or_all(instrument));
        self.within_intents()?;
        Ok(count as i64)
    }

    pub(crate) fn amend(
        &mut self,
        _: i64,
        _: i64,
        _: i64,
        _: i64,
        _: i64,
    ) -> wasmtime::Result<i64> {
        self.unsupported()
    }

    pub(crate) fn begin_group(&mut self, _: u32, _: u32, _: u32) -> wasmtime::Result<i64> {
        self.unsupported()
    }

    pub(crate) fn cancel_group(&mut self, _: i64, _: u32) -> wasmtime::Result<i64> {
        self.unsupported()
    }

    /// The contract has this function, but the runtime does not support it yet.
    fn unsupported(&mut self) -> wasmtime::Result<i64> {
        self.view()?;
        Ok(refusal(Rule::Unsupported))
    }
}

/// Capability `account`.
impl Context {
    pub(crate) fn position(
        &mut self,
        instrument: u32,
        side: u32,
        field: u32,
    ) -> wasmtime::Result<i64> {
        let (engine, callback) = self.view()?;
        let Some(side) = code(side).and_then(PositionSide::from_code) else {
            return Ok(NONE);
        };
        let Some(view) = callback.position(engine, instrument_id(instrument), side) else {
            return Ok(NONE);
        };
        Ok(match field {
            0 => view.qty,
            1 => amount(view.cost),
            2 => amount(view.realized_pnl),
            3 => amount(view.unrealized_pnl),
            4 => view.open_buy,
            5 => view.open_sell,
            6 => amount(view.fees),
            7 => view.entry_price,
            _ => NONE,
        })
    }

    pub(crate) fn open_orders(&mut self, instrument: i32) -> wasmtime::Result<i64> {
        let (engine, callback) = self.view()?;
        Ok(callback.open_order_count(engine, one_or_all(instrument)) as i64)
    }

    pub(crate) fn open_order(&mut self, instrument: i32, index: u32) -> wasmtime::Result<i64> {
        let (engine, callback) = self.view()?;
        let order = callback.open_order(engine, one_or_all(instrument), index as usize);
        Ok(order.map_or(NONE, |order| order.0 as i64))
    }

    /// No order belongs to a group yet.
    pub(crate) fn order(&mut self, order: i64, field: u32) -> wasmtime::Result<i64> {
        if !matches!(field, 8 | 9) {
            return self.order_0_1(order, field);
        }
        let is_known = self.order_0_1(order, 0)? != NONE;
        Ok(if is_known { 0 } else { NONE })
    }

    pub(crate) fn open_groups(&mut self, _: i32) -> wasmtime::Result<i64> {
        self.view()?;
        Ok(0)
    }

    pub(crate) fn open_group(&mut self, _: i32, _: u32) -> wasmtime::Result<i64> {
        self.view()?;
        Ok(NONE)
    }

    pub(crate) fn group(&mut self, _: i64, _: u32) -> wasmtime::Result<i64> {
        self.view()?;
        Ok(NONE)
    }

    pub(crate) fn order_0_1(&mut self, order: i64, field: u32) -> wasmtime::Result<i64> {
        let (engine, callback) = self.view()?;
        let Some(view) = callback.order(engine, OrderSeq(order as u64)) else {
            return Ok(NONE);
        };
        Ok(match field {
            0 => i64::from(view.state as u8),
            1 => view.price,
            2 => view.qty,
            3 => view.executed_qty,
            4 => i64::from(view.side.code()),
            5 => i64::from(view.instrument.0),
            6 => view.stop_price,
            7 => i64::from(view.order_type.code()),
            _ => NONE,
        })
    }

    pub(crate) fn balance(
        &mut self,
        surface: u32,
        asset: u32,
        field: u32,
    ) -> wasmtime::Result<i64> {
        let (engine, _) = self.view()?;
        let known = usize::try_from(asset).is_ok_and(|index| index < engine.assets().len());
        let surface = code(surface).and_then(Surface::from_code);
        let (Some(surface), true) = (surface, known) else {
            return Ok(NONE);
        };
        let balance = engine.balance(surface, AssetId(asset as u16));
        Ok(match field {
            0 => amount(balance.total),
            1 => amount(balance.locked),
            _ => NONE,
        })
    }
}

/// Capability `market`.
impl Context {
    pub(crate) fn book(
        &mut self,
        instrument: u32,
        side: u32,
        level: u32,
        field: u32,
    ) -> wasmtime::Result<i64> {
        let (engine, _) = self.view()?;
        let Some(side) = code(side).and_then(Side::from_code) else {
            return Ok(NONE);
        };
        let level = engine.book_level(instrument_id(instrument), side, level as usize);
        Ok(match (level, field) {
            (Some(level), 0) => level.price,
            (Some(level), 1) => level.qty,
            _ => NONE,
        })
    }

    pub(crate) fn last(&mut self, instrument: u32, field: u32) -> wasmtime::Result<i64> {
        let (engine, _) = self.view()?;
        let instrument = instrument_id(instrument);
        if field == 0 {
            return Ok(engine.last_price(instrument).unwrap_or(NONE));
        }
        let Some(mark) = engine.mark(instrument) else {
            return Ok(NONE);
        };
        Ok(match field {
            1 => mark.mark,
            2 if mark.index != 0 => mark.index,
            3 => mark.funding_rate,
            4 if mark.next_funding != Time::NEVER => mark.next_funding.millis(),
            _ => NONE,
        })
    }

    pub(crate) fn rule(&mut self, instrument: u32, field: u32) -> wasmtime::Result<i64> {
        if field != USABLE {
            return self.rule_0_1(instrument, field);
        }
        let (engine, _) = self.view()?;
        let id = instrument_id(instrument);
        let known = engine.instrument(id);
        Ok(known.map_or(NONE, |_| i64::from(engine.unusable_rules(id).is_none())))
    }

    pub(crate) fn history(&mut self, _: u32, _: i64, _: u32) -> wasmtime::Result<i64> {
        self.unsupported()
    }

    pub(crate) fn rule_0_1(&mut self, instrument: u32, field: u32) -> wasmtime::Result<i64> {
        let (engine, _) = self.view()?;
        let value = engine
            .instrument(instrument_id(instrument))
            .and_then(|instrument| rule(instrument, field));
        Ok(value.unwrap_or(NONE))
    }
}

/// Capability `timers`.
impl Context {
    pub(crate) fn set_timer(&mut self, ms: i64, ns: u32, token: i64) -> wasmtime::Result<i64> {
        if i64::from(ns) >= NS_PER_MS {
            return Ok(refusal(Rule::Malformed));
        }
        let time = ms.saturating_mul(NS_PER_MS).saturating_add(i64::from(ns));
        self.set_timer_0_1(time, token)
    }

    pub(crate) fn set_timer_0_1(&mut self, time: i64, token: i64) -> wasmtime::Result<i64> {
        let (engine, callback) = self.view()?;
        let answer = match callback.set_timer(engine, Time(time), token) {
            Ok(()) => 0,
            Err(rejection) => refusal(rejection.rule),
        };
        self.within_intents()?;
        Ok(answer)
    }

    pub(crate) fn cancel_timer(&mut self, token: i64) -> wasmtime::Result<i64> {
        let (_, callback) = self.view()?;
        callback.cancel_timer(token);
        self.within_intents()?;
        Ok(0)
    }
}

/// Capabilities `log` and `plot`.
impl Context {
    pub(crate) fn log(&mut self, level: u32, message: &[u8]) -> wasmtime::Result<()> {
        #[cfg(test)]
        assert!(!self.panic_on_log, "planted panic");
        let limit = self.limits.log_bytes_per_event;
        // The 1 counts an empty line, which also uses memory.
        self.log_bytes += message.len() + 1;
        if self.log_bytes > limit {
            return Err(wasmtime::Error::new(Breach::Log { limit }));
        }
        let level = LogLevel::from_code(level)
            .ok_or_else(|| Breach::contract(format!("log level {level} is not one of 1 to 4")))?;
        let message = String::from_utf8_lossy(message).into_owned();
        if level == LogLevel::Error {
            self.last_words = Some(message.clone());
        }
        if self.shows_log {
            self.output.logs.push(LogLine {
                time: self.time,
                level,
                message,
            });
        }
        Ok(())
    }

    pub(crate) fn plot(&mut self, series: &[u8], value: i64, scale: u32) -> wasmtime::Result<()> {
        let limit = self.limits.plots_per_event;
        if self.output.plots.len() - self.plots_before >= limit {
            return Err(wasmtime::Error::new(Breach::Plots { limit }));
        }
        if series.len() > SERIES_BYTES_MAX || scale > PLOT_SCALE_MAX {
            return Err(Breach::contract(format!(
                "plot: a name of {} bytes (at most {SERIES_BYTES_MAX}), scale {scale} (at most \
                 {PLOT_SCALE_MAX})",
                series.len()
            )));
        }
        self.output.plots.push(PlotPoint {
            time: self.time,
            series: String::from_utf8_lossy(series).into_owned(),
            value,
            scale,
        });
        Ok(())
    }
}

/// `fault.report`: ends the callback. The message passes through the guest as a trap.
pub(crate) fn report_fault(message: &[u8]) -> wasmtime::Error {
    let mut message = String::from_utf8_lossy(message).into_owned();
    let mut end = message.len().min(FAULT_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    if message.is_empty() {
        "the strategy reports a fault without a message".clone_into(&mut message);
    }
    wasmtime::Error::new(Breach::Reported(message))
}

/// Maximum length of a reported fault or refusal, in bytes.
pub(crate) const FAULT_BYTES_MAX: usize = 4_096;
/// Position of the group role in the `flags` of `orders.submit`, and the highest role.
const ROLE_SHIFT: u32 = 14;
const ROLE_MAX: u32 = 2;
/// The field of `market.rule` that says whether the rules can be used.
const USABLE: u32 = 13;
const NS_PER_MS: i64 = 1_000_000;
const SERIES_BYTES_MAX: usize = 64;
const PLOT_SCALE_MAX: u32 = 18;

/// An index over 16 bits becomes the highest index, which is not an instrument either.
fn instrument_id(index: u32) -> InstrumentId {
    InstrumentId(u16::try_from(index).unwrap_or(u16::MAX))
}

/// -1 means all.
fn one_or_all(instrument: i32) -> Option<InstrumentId> {
    (instrument != -1).then(|| instrument_id(instrument as u32))
}

fn code(value: u32) -> Option<u8> {
    u8::try_from(value).ok()
}

/// Clamps an amount over 64 bits (92 billion whole units). Strategies only show such amounts and
/// never compute with them.
fn amount(value: Amount) -> i64 {
    value.0.clamp(i128::from(-i64::MAX), i128::from(i64::MAX)) as i64
}

/// A refusal is the negative number of the rule.
fn refusal(rule: Rule) -> i64 {
    -i64::from(rule as u16)
}

/// Decodes `flags` of `orders.submit`; `None` if a part has no meaning in the contract.
fn terms_from_flags(instrument: InstrumentId, flags: u32) -> Option<OrderTerms> {
    let bits = |from: u32, width: u32| (flags >> from & ((1 << width) - 1)) as u8;
    let bit = |at: u32| flags >> at & 1 == 1;
    if flags >> 14 != 0 {
        return None;
    }
    let side = if bit(0) { Side::Sell } else { Side::Buy };
    let order_type = OrderType::from_code(bits(1, 3))
        .filter(|order_type| *order_type != OrderType::Liquidation)?;
    let mut terms = OrderTerms::new(instrument, side, order_type);
    terms.time_in_force = match bits(4, 3) {
        0 => None,
        code => Some(TimeInForce::from_code(code - 1)?),
    };
    terms.position_side = PositionSide::from_code(bits(7, 2))?;
    terms.reduce_only = bit(9);
    terms.close_position = bit(10);
    terms.working_type = match bits(11, 2) {
        0 => None,
        code => Some(WorkingType::from_code(code - 1)?),
    };
    terms.price_protect = bit(13);
    Some(terms)
}

/// A field of `market.rule`; `None` if the exchange information does not have the filter.
fn rule(instrument: &Instrument, field: u32) -> Option<i64> {
    let filters = &instrument.filters;
    match field {
        0 => Some(i64::from(instrument.price_scale)),
        1 => Some(i64::from(instrument.qty_scale)),
        2 => filters.price.map(|f| f.tick_size),
        3 => filters.price.map(|f| f.min_price),
        4 => filters.price.map(|f| f.max_price),
        5 => filters.lot_size.map(|f| f.step_size),
        6 => filters.lot_size.map(|f| f.min_qty),
        7 => filters.lot_size.map(|f| f.max_qty),
        8 => filters.market_lot_size.map(|f| f.step_size),
        9 => filters.market_lot_size.map(|f| f.min_qty),
        10 => filters.market_lot_size.map(|f| f.max_qty),
        11 => filters.least_notional().map(amount),
        12 => Some(i64::from(instrument.status == SymbolStatus::Trading)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_decode_as_the_contract_lists_them() {
        let flags = 1 | 6 << 1 | 5 << 4 | 2 << 7 | 1 << 9 | 1 << 10 | 2 << 11 | 1 << 13;
        let terms = terms_from_flags(InstrumentId(3), flags).unwrap();
        assert_eq!(terms.instrument, InstrumentId(3));
        assert_eq!(terms.side, Side::Sell);
        assert_eq!(terms.order_type, OrderType::TrailingStopMarket);
        assert_eq!(terms.time_in_force, Some(TimeInForce::Hidden));
        assert_eq!(terms.position_side, PositionSide::Short);
        assert_eq!(terms.working_type, Some(WorkingType::ContractPrice));
        assert!(terms.reduce_only && terms.close_position && terms.price_protect);
    }

    #[test]
    fn flags_without_a_meaning_are_refused() {
        for flags in [7 << 1, 6 << 4, 3 << 7, 3 << 11, 1 << 14] {
            assert_eq!(terms_from_flags(InstrumentId(0), flags), None, "{flags:#x}");
        }
    }
}
