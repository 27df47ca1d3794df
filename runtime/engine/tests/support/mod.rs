//! A small account for tests: one futures instrument, two strategies, and the venue's messages as
//! short functions.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by test files, each with its own part; a panic is how a test fails"
)]

use windvane_engine::{Callback, Engine};
use windvane_model::config::{EngineConfig, OnFault, StrategyConfig, Streams, Subscription};
use windvane_model::event::{Event, EventKind};
use windvane_model::ids::StrategyName;
use windvane_model::instrument::{Filters, Instrument, LotSize, PriceFilter};
use windvane_model::live::{LiveConfig, OnStart, OnStop};
use windvane_model::protocol::{Fill, OrderReport, OrderUpdate, Refusal};
use windvane_model::risk::RiskLimits;
use windvane_model::{
    Amount, AssetId, ClientOrderId, Effect, ExecutionType, Input, InstrumentId, Level, MarketEvent,
    Notice, OrderSeq, OrderStatus, OrderTerms, OrderType, Outcome, PositionSide, Price, Qty, Reply,
    Request, Side, StrategyId, Surface, Time, TimeInForce, TradeId, UserEvent, VenueOrderId,
};

pub const BTC: InstrumentId = InstrumentId(0);
pub const USDT: AssetId = AssetId(1);
pub const MM: StrategyId = StrategyId(0);
pub const OTHER: StrategyId = StrategyId(1);

pub fn instrument() -> Instrument {
    let lot = LotSize {
        min_qty: 1,
        max_qty: 1_000_000,
        step_size: 1,
    };
    Instrument {
        filters: Filters {
            price: Some(PriceFilter {
                min_price: 1,
                max_price: 10_000_000,
                tick_size: 1,
            }),
            lot_size: Some(lot),
            market_lot_size: Some(lot),
            ..Filters::default()
        },
        ..Instrument::unrestricted(Surface::Futures, "BTCUSDT", [AssetId(0), USDT], [1, 3])
    }
}

pub fn strategy(name: &str, limits: RiskLimits, on_fault: OnFault) -> StrategyConfig {
    StrategyConfig {
        name: StrategyName::new(name).unwrap(),
        subscriptions: vec![Subscription {
            instrument: BTC,
            streams: Streams {
                trades: true,
                book: true,
                marks: true,
            },
            bars_ms: Vec::new(),
        }],
        limits,
        on_fault,
    }
}

pub fn config() -> EngineConfig {
    EngineConfig {
        assets: vec!["BTC".to_owned(), "USDT".to_owned()],
        instruments: vec![instrument()],
        strategies: vec![
            strategy("mm", RiskLimits::default(), OnFault::Cancel),
            strategy("other", RiskLimits::default(), OnFault::Cancel),
        ],
        epoch: 7,
        balances: vec![(Surface::Futures, USDT, Amount(10_000 * 100_000_000))],
        ..EngineConfig::default()
    }
}

/// A live run on the futures surface.
pub fn live_config() -> LiveConfig {
    LiveConfig {
        surfaces: vec![Surface::Futures],
        countdown_ms: 30_000,
        renew_ms: 10_000,
        reconcile_ms: 30_000,
        absence_ms: 6_000,
        copy_ms: 6_000,
        on_start: OnStart::Adopt,
        on_stop: OnStop::Cancel,
        multi_assets: false,
        fee_estimate_ppm: 400,
        watchdog: false,
    }
}

/// An engine under test with its clock.
pub struct Account {
    pub engine: Engine,
    pub now: Time,
    pub sent: Vec<Request>,
    /// The record that the last request waits for.
    pub waits_for: u64,
    pub events: Vec<(StrategyId, EventKind, [i64; 6])>,
    /// The delivered events of `events`, with all fields.
    pub delivered: Vec<(StrategyId, Event)>,
    pub notices: Vec<Notice>,
    pub reconnected: Vec<Surface>,
    /// Heartbeats for the watchdog process.
    pub heartbeats: Vec<u64>,
}

impl Account {
    pub fn new(config: EngineConfig) -> Self {
        let mut account = Self {
            engine: Engine::new(config).unwrap(),
            now: Time(1_700_000_000_000_000_000),
            sent: Vec::new(),
            waits_for: 0,
            events: Vec::new(),
            delivered: Vec::new(),
            notices: Vec::new(),
            reconnected: Vec::new(),
            heartbeats: Vec::new(),
        };
        account.top(999, 1001);
        account
    }

    pub fn handle(&mut self, input: Input<'_>) {
        self.now = self.now.plus_ms(1);
        self.engine.handle(self.now, input);
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Deliver { strategy, event } => {
                    self.events.push((strategy, event.kind, event.fields));
                    self.delivered.push((strategy, event));
                }
                Effect::Send { request, record } => {
                    self.sent.push(*request);
                    self.waits_for = record;
                }
                Effect::Reconnect { surface } => self.reconnected.push(surface),
                Effect::Heartbeat { number } => self.heartbeats.push(number),
            }
        }
        while let Some(notice) = self.engine.poll_notice() {
            self.notices.push(notice);
        }
        assert_eq!(
            self.engine
                .ledgers()
                .first_difference(self.engine.instruments()),
            None
        );
    }

    pub fn pass(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
        self.handle(Input::Timeout);
    }

    /// A top of book with prices as mantissas and one unit on each side.
    pub fn top(&mut self, bid: i64, ask: i64) {
        let level = |price| Level { price, qty: 1000 };
        self.handle(Input::Market {
            instrument: BTC,
            event: MarketEvent::Top {
                update_id: 0,
                bid: level(bid),
                ask: level(ask),
            },
        });
    }

    /// Runs a callback of a strategy and passes its intents to the engine.
    pub fn call<T>(
        &mut self,
        strategy: StrategyId,
        body: impl FnOnce(&mut Callback, &Engine) -> T,
    ) -> T {
        let mut callback = Callback::default();
        callback.begin(&self.engine, strategy);
        let result = body(&mut callback, &self.engine);
        let intents = callback.intents().to_vec();
        self.handle(Input::Answer {
            strategy,
            intents: &intents,
        });
        result
    }

    pub fn submit(&mut self, strategy: StrategyId, terms: OrderTerms) -> OrderSeq {
        self.call(strategy, |callback, engine| {
            callback.submit(engine, terms).unwrap()
        })
    }

    pub fn cancel(&mut self, strategy: StrategyId, order: OrderSeq) {
        self.call(strategy, |callback, engine| {
            callback.cancel(engine, order).unwrap();
        });
    }

    pub fn id(&self, strategy: StrategyId, order: OrderSeq) -> ClientOrderId {
        let name = StrategyName::new(self.engine.strategy_name(strategy).unwrap()).unwrap();
        ClientOrderId::own(&name, 7, order)
    }

    pub fn placed(&mut self, id: ClientOrderId, outcome: Outcome<OrderReport>) {
        self.handle(Input::Reply(&Reply::Placed {
            client_order_id: id,
            outcome,
        }));
    }

    pub fn canceled(&mut self, id: ClientOrderId, outcome: Outcome<OrderReport>) {
        self.handle(Input::Reply(&Reply::Canceled {
            client_order_id: id,
            outcome,
        }));
    }

    pub fn update(&mut self, update: OrderUpdate) {
        self.handle(Input::User(&UserEvent::Order(update)));
    }
}

pub fn limit(side: Side, price: i64, qty: i64) -> OrderTerms {
    let mut terms = OrderTerms::new(BTC, side, OrderType::Limit);
    terms.time_in_force = Some(TimeInForce::Gtc);
    terms.price = Some(Price(price));
    terms.qty = Some(Qty(qty));
    terms
}

pub fn market(side: Side, qty: i64) -> OrderTerms {
    let mut terms = OrderTerms::new(BTC, side, OrderType::Market);
    terms.qty = Some(Qty(qty));
    terms
}

pub fn refused(code: i32) -> Outcome<OrderReport> {
    Outcome::Refused(Refusal {
        code,
        msg: String::new(),
    })
}

pub fn report(id: ClientOrderId, status: OrderStatus, executed: i64) -> OrderReport {
    OrderReport {
        client_order_id: id,
        order_id: VenueOrderId(1),
        instrument: BTC,
        status,
        orig_qty: Qty(10),
        executed_qty: Qty(executed),
        cum_quote: Amount::ZERO,
        update_time: Time(0),
    }
}

/// An update without a fill.
pub fn update(id: ClientOrderId, side: Side, status: OrderStatus, executed: i64) -> OrderUpdate {
    OrderUpdate {
        client_order_id: id,
        order_id: VenueOrderId(1),
        instrument: BTC,
        side,
        position_side: PositionSide::Both,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Gtc,
        orig_qty: Qty(10),
        price: Price(1000),
        stop_price: Price(0),
        reduce_only: false,
        execution: match status {
            OrderStatus::Canceled => ExecutionType::Canceled,
            OrderStatus::Expired => ExecutionType::Expired,
            OrderStatus::Rejected => ExecutionType::Rejected,
            _ => ExecutionType::New,
        },
        status,
        executed_qty: Qty(executed),
        transaction_time: Time(0),
        event_time: Time(0),
        fill: None,
    }
}

/// An update with a fill at 100.0 and a fee of 0.01. `executed` includes the fill.
pub fn fill(
    id: ClientOrderId,
    side: Side,
    trade_id: i64,
    qty: i64,
    executed: i64,
    status: OrderStatus,
) -> OrderUpdate {
    let mut event = update(id, side, status, executed);
    event.execution = ExecutionType::Trade;
    event.fill = Some(Fill {
        trade_id: TradeId(trade_id),
        price: Price(1000),
        qty: Qty(qty),
        quote_qty: instrument().notional(1000, qty),
        fee: Amount(1_000_000),
        fee_asset: USDT,
        maker: true,
        realized_pnl: None,
    });
    event
}
