//! The results of a run: rows for the result files as events happen, and counts for the summary.

use std::collections::BTreeMap;

use windvane_engine::Engine;
use windvane_model::decimal::{div_half_even, pow10};
use windvane_model::effect::{Adjustment, Notice};
use windvane_model::order::OrderTerms;
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::risk::LossLimit;
use windvane_model::rules::Rejection;
use windvane_model::{
    Amount, Input, Instrument, InstrumentId, OrderStatus, PositionSide, Side, StrategyId, Time,
};

use windvane_report::{
    EquityRow, EventCounts, FillRow, Histogram, OrderRow, RejectionCount, ResultWriter,
};

/// Counts of one strategy.
#[derive(Clone, Debug, Default)]
pub struct StrategyTally {
    /// Events delivered.
    pub events: u64,
    /// Accepted orders.
    pub submitted: u64,
    /// Orders refused by a local rule or by the venue.
    pub rejected: u64,
    /// Cancelled orders.
    pub canceled: u64,
    /// Fills.
    pub fills: u64,
    /// Fills as maker.
    pub maker_fills: u64,
    /// Sum of price times quantity.
    pub volume_quote: Amount,
}

/// Names of a run's strategies and instruments. The index is the id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Ids of the strategies.
    pub strategies: Vec<String>,
    /// Names of the instruments.
    pub instruments: Vec<String>,
}

/// Counts orders, fills and events of a run, and writes the rows of its result files.
#[derive(Debug)]
pub struct Tally {
    writer: ResultWriter,
    names: Names,
    /// Market events that reached the engine, by kind.
    pub events: EventCounts,
    /// Counts of each strategy.
    pub strategies: Vec<StrategyTally>,
    /// Fills, and their volume, of orders that are not ours, such as liquidations.
    pub external: StrategyTally,
    /// Quote amount that each open external order has filled so far.
    external_quote: BTreeMap<i64, Amount>,
    rejections: BTreeMap<(StrategyId, String, i32), u64>,
    /// Time from the submission of an order to its first fill, if it filled as maker.
    pub time_to_fill: Histogram,
    /// Known quantities ahead of orders of the first instrument when they started to rest. The
    /// values are mantissas. Other instruments have other units and are not counted.
    pub queue_ahead: Histogram,
    /// Latency from the venue's event to the engine, nanoseconds.
    pub feed_latency: Histogram,
    /// Latency from the engine's request to the venue, nanoseconds.
    pub order_latency: Histogram,
    /// Orders that rested in the book.
    pub rested: u64,
    /// Orders that rested and then filled, at least in part.
    pub rested_filled: u64,
    /// When the account was last halted, and by which limit.
    pub halted: Option<(Time, Option<LossLimit>)>,
    /// Time of the first event.
    pub start_time: Time,
    /// Time of the last event.
    pub end_time: Time,
    last_row: Option<Time>,
}

impl Tally {
    /// A tally without any counts.
    pub fn new(writer: ResultWriter, names: Names) -> Self {
        Self {
            writer,
            strategies: vec![StrategyTally::default(); names.strategies.len()],
            names,
            events: EventCounts::default(),
            external: StrategyTally::default(),
            external_quote: BTreeMap::new(),
            rejections: BTreeMap::new(),
            time_to_fill: Histogram::default(),
            queue_ahead: Histogram::default(),
            feed_latency: Histogram::default(),
            order_latency: Histogram::default(),
            rested: 0,
            rested_filled: 0,
            halted: None,
            start_time: Time::default(),
            end_time: Time::default(),
            last_row: None,
        }
    }

    /// Sets the time at which the run starts.
    pub fn start(&mut self, time: Time) {
        self.start_time = time;
        self.end_time = time;
    }

    /// Counts a market event before the engine handles it.
    #[inline]
    pub fn event(&mut self, input: &Input<'_>) {
        if let Input::Market { event, .. } = input {
            self.events.count(event);
        }
    }

    pub(crate) fn queue_ahead(&mut self, instrument: InstrumentId, qty: i64) {
        if instrument == InstrumentId(0) {
            self.queue_ahead.record(qty);
        }
    }

    /// Counts the feed latency of one market event, in nanoseconds.
    #[inline]
    pub fn feed_latency(&mut self, latency_ns: i64) {
        self.feed_latency.record(latency_ns);
    }

    #[inline]
    pub(crate) fn delivered(&mut self, strategy: StrategyId) {
        self.strategies[usize::from(strategy.0)].events += 1;
    }

    pub(crate) fn request_latency(&mut self, latency_ns: i64) {
        self.order_latency.record(latency_ns);
    }

    /// Writes a point of a strategy's own series.
    pub fn plot(&mut self, time: Time, strategy: StrategyId, series: &str, value: i64, scale: u32) {
        let name = &self.names.strategies[usize::from(strategy.0)];
        self.writer.plot(time, name, series, value, scale);
    }

    /// Writes the account's state at the end of a virtual second.
    pub fn sample(&mut self, engine: &Engine, now: Time) {
        let Some(totals) = engine.totals() else {
            return;
        };
        self.last_row = Some(now);
        self.writer.equity(&EquityRow {
            time: now,
            equity: totals.equity,
            cash: totals.cash,
            unrealized_pnl: totals.unrealized_pnl,
        });
        for index in 0..self.names.instruments.len() {
            if let Some(mid) = engine.mid(InstrumentId(index as u16)) {
                self.writer.price(now, index, Amount(i128::from(mid)));
            }
        }
    }

    /// Counts and writes an engine notice.
    pub fn notice(&mut self, engine: &Engine, notice: &Notice) {
        match notice {
            Notice::Filled {
                strategy,
                order,
                fill,
                realized_pnl,
                time,
                executed,
                ..
            } => {
                self.count_fill(*time, *strategy, order, fill);
                let row = self
                    .names
                    .fill_row(engine, *executed, order, *realized_pnl, fill);
                self.writer.fill(&row);
            }
            Notice::Ended { order, .. } => self.ended(engine, order),
            Notice::Rejected {
                time,
                strategy,
                terms,
                rejection,
            } => self.rejected(engine, *time, *strategy, terms, rejection),
            // The ledger has the total.
            Notice::Funding { .. }
            // Only a live run has these notices.
            | Notice::State { .. }
            | Notice::Watchdog { .. }
            | Notice::NotPlaced { .. }
            | Notice::RefusalsOver { .. }
            | Notice::Blocked { .. }
            | Notice::Unblocked { .. }
            | Notice::Heartbeat { .. }
            | Notice::Reconciled { .. }
            | Notice::Unknown { .. }
            | Notice::Recovered { .. }
            | Notice::Denied { .. }
            | Notice::Adopted { .. }
            | Notice::Dust { .. }
            | Notice::Unclosed { .. }
            | Notice::AnotherInstance { .. }
            | Notice::InstanceWatch { .. }
            | Notice::InstancesUnseen { .. }
            | Notice::Stray { .. }
            // Its fills are reported as those of an external order.
            | Notice::ForcedClose { .. }
            | Notice::RulesChanged { .. }
            | Notice::RulesUnusable { .. }
            | Notice::Unexplained { .. }
            | Notice::FeeUnpriced { .. }
            | Notice::LateFee { .. }
            | Notice::Crossed { .. }
            | Notice::MarginChanged { .. }
            | Notice::NotClosedOutside { .. } => {}
            Notice::ClosedOutside { time, strategy, instrument, qty, .. } => {
                let strategy = engine.strategy_name(*strategy).unwrap_or_default();
                tracing::warn!(time_ns = time.0, strategy, instrument = instrument.0, qty, "closed by outside orders");
            }
            Notice::Adjusted {
                time,
                adjustment: settled @ Adjustment::Settled { .. },
                ..
            } => {
                tracing::info!(time_ns = time.0, ?settled, "opposite positions were settled");
            }
            Notice::Adjusted {
                time, adjustment, ..
            } => {
                tracing::warn!(
                    time_ns = time.0,
                    ?adjustment,
                    "the venue's value replaced the engine's"
                );
            }
            Notice::Quarantined {
                time,
                strategy,
                kind,
            } => {
                let name = &self.names.strategies[usize::from(strategy.0)];
                let kind = kind.as_str();
                tracing::warn!(time_ns = time.0, strategy = %name, kind, "quarantined");
            }
            Notice::InvariantBroken { time, broken } => {
                self.halted = Some((*time, None));
                tracing::error!(
                    time_ns = time.0,
                    %broken,
                    "the program found an error in its own accounting: these results are wrong. \
                     Send a report with the recording and the configuration"
                );
            }
            Notice::Halted { time, limit } => {
                self.halted = Some((*time, *limit));
                tracing::warn!(time_ns = time.0, ?limit, "halted");
            }
            Notice::External {
                update,
                realized_pnl,
                ..
            } => self.external(engine, update, *realized_pnl),
        }
    }

    fn count_fill(&mut self, time: Time, strategy: StrategyId, order: &Order, fill: &Fill) {
        self.strategies[usize::from(strategy.0)].count_fill(fill);
        // The first fill of an order that rested in the book.
        if fill.maker && order.executed_qty == fill.qty.0 {
            self.rested_filled += 1;
            self.time_to_fill.record(time.0 - order.submitted.0);
        }
    }

    /// Counts and writes an order that no strategy sent, such as a liquidation. Its strategy stays
    /// empty.
    fn external(&mut self, engine: &Engine, update: &OrderUpdate, realized_pnl: Amount) {
        let index = usize::from(update.instrument.0);
        let instrument = &engine.instruments()[index];
        let name = &self.names.instruments[index];
        let quote = self.external_quote.entry(update.order_id.0).or_default();
        if let Some(fill) = &update.fill {
            *quote += fill.quote_qty;
            self.external.count_fill(fill);
            self.writer.fill(&FillRow {
                time: update.transaction_time,
                instrument: name,
                client_order_id: update.client_order_id.as_str(),
                order_id: update.order_id.0,
                side: update.side,
                position_side: update.position_side,
                ..fill_values(engine, instrument, fill, realized_pnl)
            });
        }
        if !update.status.is_final() {
            return;
        }
        let executed = update.executed_qty.0;
        let one = i128::from(pow10(instrument.qty_scale));
        let average = Amount(div_half_even(quote.0 * one, i128::from(executed.max(1))));
        self.external_quote.remove(&update.order_id.0);
        let given = |mantissa: i64| (mantissa != 0).then_some(mantissa);
        self.writer.order(&OrderRow {
            time: update.transaction_time,
            strategy: "",
            instrument: name,
            client_order_id: update.client_order_id.as_str(),
            order_id: Some(update.order_id.0),
            side: update.side,
            order_type: update.order_type,
            time_in_force: Some(update.time_in_force),
            price: given(update.price.0),
            price_scale: instrument.price_scale,
            stop_price: given(update.stop_price.0),
            qty: given(update.orig_qty.0),
            qty_scale: instrument.qty_scale,
            executed_qty: executed,
            avg_price: (executed > 0).then_some(average),
            status: update.status.as_str(),
            reject_rule: None,
        });
    }

    /// Counts an accepted order that has ended, and writes its row with its final state.
    fn ended(&mut self, engine: &Engine, order: &Order) {
        let counts = &mut self.strategies[usize::from(order.strategy.0)];
        counts.submitted += 1;
        counts.canceled += u64::from(order.state == OrderState::Canceled);
        let refused = order.refusal_code != 0;
        let rule = refused.then(|| format!("venue {}", order.refusal_code));
        if let Some(rule) = &rule {
            counts.rejected += 1;
            let key = (order.strategy, rule.clone(), order.refusal_code);
            *self.rejections.entry(key).or_default() += 1;
        }
        let passive = order.terms.price.is_some() && !refused;
        self.rested += u64::from(passive && order.venue_order_id.is_some());
        let instrument = &engine.instruments()[usize::from(order.instrument().0)];
        self.writer.order(&OrderRow {
            client_order_id: order.client_order_id.as_str(),
            order_id: order.venue_order_id.map(|id| id.0),
            executed_qty: order.executed_qty,
            avg_price: order.average_price(instrument),
            status: order.state.as_str(),
            reject_rule: rule.as_deref(),
            ..self
                .names
                .order_row(order.submitted, order.strategy, &order.terms, instrument)
        });
    }

    /// Counts an order intent that broke a rule, and writes its row.
    fn rejected(
        &mut self,
        engine: &Engine,
        time: Time,
        strategy: StrategyId,
        terms: &OrderTerms,
        rejection: &Rejection,
    ) {
        self.strategies[usize::from(strategy.0)].rejected += 1;
        let rule = rejection.rule;
        let key = (strategy, rule.name().to_owned(), rule.code());
        *self.rejections.entry(key).or_default() += 1;
        let Some(instrument) = engine.instrument(terms.instrument) else {
            return;
        };
        self.writer.order(&OrderRow {
            reject_rule: Some(rule.name()),
            ..self.names.order_row(time, strategy, terms, instrument)
        });
    }

    /// Ends the run: writes rows for orders that are still open, and for the last second.
    pub fn end(&mut self, engine: &Engine) {
        let open: Vec<_> = engine.orders().iter().cloned().collect();
        for order in &open {
            self.ended(engine, order);
        }
        self.end_time = engine.now();
        if self.last_row != Some(self.end_time) {
            self.sample(engine, self.end_time);
        }
    }

    /// How often each rule or venue code refused an order, per strategy.
    pub fn rejections(&self) -> Vec<RejectionCount> {
        let count =
            |((strategy, rule, code), count): (&(StrategyId, String, i32), &u64)| RejectionCount {
                strategy: self.names.strategies[usize::from(strategy.0)].clone(),
                rule: rule.clone(),
                code: *code,
                count: *count,
            };
        self.rejections.iter().map(count).collect()
    }

    /// Returns the writer, which finishes the files.
    pub fn into_writer(self) -> ResultWriter {
        self.writer
    }

    /// The writer, with the equity curve and the files.
    pub const fn writer(&self) -> &ResultWriter {
        &self.writer
    }
}

impl StrategyTally {
    fn count_fill(&mut self, fill: &Fill) {
        self.fills += 1;
        self.maker_fills += u64::from(fill.maker);
        self.volume_quote += fill.quote_qty;
    }
}

impl Names {
    fn fill_row<'a>(
        &'a self,
        engine: &'a Engine,
        time: Time,
        order: &'a Order,
        realized_pnl: Amount,
        fill: &Fill,
    ) -> FillRow<'a> {
        let index = usize::from(order.instrument().0);
        FillRow {
            time,
            strategy: &self.strategies[usize::from(order.strategy.0)],
            instrument: &self.instruments[index],
            client_order_id: order.client_order_id.as_str(),
            order_id: order.venue_order_id.map_or(0, |id| id.0),
            side: order.terms.side,
            position_side: order.terms.position_side,
            ..fill_values(engine, &engine.instruments()[index], fill, realized_pnl)
        }
    }

    fn order_row<'a>(
        &'a self,
        time: Time,
        strategy: StrategyId,
        terms: &OrderTerms,
        instrument: &Instrument,
    ) -> OrderRow<'a> {
        OrderRow {
            time,
            strategy: &self.strategies[usize::from(strategy.0)],
            instrument: &self.instruments[usize::from(terms.instrument.0)],
            client_order_id: "",
            order_id: None,
            side: terms.side,
            order_type: terms.order_type,
            time_in_force: terms.time_in_force,
            price: terms.price.map(|price| price.0),
            price_scale: instrument.price_scale,
            stop_price: terms.stop_price.map(|price| price.0),
            qty: terms.qty.map(|qty| qty.0),
            qty_scale: instrument.qty_scale,
            executed_qty: 0,
            avg_price: None,
            status: OrderStatus::Rejected.as_str(),
            reject_rule: None,
        }
    }
}

/// A row with the values of a fill. The caller fills in the strategy, the order and the instrument.
fn fill_values<'a>(
    engine: &'a Engine,
    instrument: &Instrument,
    fill: &Fill,
    realized_pnl: Amount,
) -> FillRow<'a> {
    FillRow {
        time: Time::default(),
        strategy: "",
        instrument: "",
        client_order_id: "",
        order_id: 0,
        trade_id: fill.trade_id.0,
        side: Side::Buy,
        position_side: PositionSide::Both,
        price: fill.price.0,
        price_scale: instrument.price_scale,
        qty: fill.qty.0,
        qty_scale: instrument.qty_scale,
        quote_qty: fill.quote_qty,
        fee: fill.fee,
        fee_asset: &engine.assets()[usize::from(fill.fee_asset.0)],
        maker: fill.maker,
        realized_pnl,
    }
}
