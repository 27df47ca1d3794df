//! Helpers for a live account: the inputs of the driver as short methods.

use windvane_model::live::{LiveConfig, LiveInput};
use windvane_model::protocol::{BalanceUpdate, OrderReport, PositionUpdate};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountSnapshot, OpenOrder, StateReport, Subject, TradedOrder};
use windvane_model::{
    Amount, ClientOrderId, Input, InstrumentId, OrderSeq, OrderStatus, OrderTerms, OrderType,
    Outcome, PositionSide, Qty, Reply, Request, Side, Surface, Time, VenueOrderId,
};

pub(crate) use super::support::live_config;
use super::support::{Account, BTC, MM, USDT, config, limit, report, update};

pub(crate) const COUNTDOWN_MS: u64 = 30_000;

/// A live run that has not begun. The previous process had epoch 5.
pub(crate) fn booting(live: LiveConfig) -> Account {
    let mut config = config();
    config.live = Some(live);
    let mut account = Account::new(config);
    account.engine.continue_folder(5);
    account
}

/// A live run in state ready, with a limit for the daily loss of the account. The price is 99.0.
pub(crate) fn ready_with_limit(max_daily_loss: Amount) -> Account {
    let mut config = config();
    config.live = Some(live_config());
    config.limits.max_daily_loss = Some(max_daily_loss);
    let mut account = Account::new(config);
    account.engine.continue_folder(5);
    account.begin();
    account.sync();
    account.top(989, 991);
    account
}

/// A live run in state ready.
pub(crate) fn ready() -> Account {
    ready_with(live_config())
}

pub(crate) fn ready_with(live: LiveConfig) -> Account {
    let mut account = booting(live);
    account.begin();
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.sent.clear();
    account.notices.clear();
    account.events.clear();
    account
}

impl Account {
    pub(crate) fn live(&mut self, input: LiveInput) {
        self.handle(Input::Live(&input));
    }

    pub(crate) fn begin(&mut self) {
        self.live(LiveInput::Begin);
        self.clock();
        self.live(LiveInput::StreamUp {
            surface: Surface::Futures,
        });
    }

    pub(crate) fn clock(&mut self) {
        self.live(LiveInput::Clock {
            surface: Surface::Futures,
            offset_ns: 0,
            error_ns: 1,
        });
    }

    pub(crate) fn alive(&mut self) {
        self.live(LiveInput::StreamAlive {
            surface: Surface::Futures,
        });
    }

    /// Answers every query of a round as a venue without orders whose account equals the engine's,
    /// until no query is left.
    pub(crate) fn sync(&mut self) {
        self.sync_with(&[]);
    }

    /// Like [`Self::sync`], for an account with these open orders.
    pub(crate) fn sync_with(&mut self, open: &[OpenOrder]) {
        while let Some(subject) = self.take_question() {
            let state_report = match subject {
                Subject::OpenOrders { .. } => StateReport::OpenOrders(open.to_vec()),
                Subject::Account { .. } => StateReport::Account(self.own_account()),
                _ => nothing(subject),
            };
            self.tell(subject, state_report);
        }
    }

    /// Removes and returns the oldest query without a response.
    pub(crate) fn take_question(&mut self) -> Option<Subject> {
        let place = self
            .sent
            .iter()
            .position(|request| matches!(request, Request::Read(_)))?;
        match self.sent.remove(place) {
            Request::Read(subject) => Some(subject),
            _ => None,
        }
    }

    pub(crate) fn tell(&mut self, subject: Subject, state_report: StateReport) {
        self.answer(subject, Outcome::Done(state_report));
    }

    pub(crate) fn answer(&mut self, subject: Subject, outcome: Outcome<StateReport>) {
        self.handle(Input::Reply(&Reply::Read { subject, outcome }));
    }

    /// The account as the engine knows it.
    pub(crate) fn own_account(&self) -> AccountSnapshot {
        let balance = self.engine.balance(Surface::Futures, USDT);
        let holding = self.engine.ledgers().account.at(BTC, PositionSide::Both);
        AccountSnapshot {
            can_trade: Some(true),
            hedge_mode: Some(false),
            multi_assets: Some(false),
            balances: vec![BalanceUpdate {
                asset: USDT,
                total: balance.total,
                locked: Amount::ZERO,
                change: Amount::ZERO,
            }],
            positions: vec![position(holding.position.qty)],
            lags: false,
            updated: None,
        }
    }

    /// Lets time pass second by second while everything is healthy: pongs, clock, reconciliation.
    pub(crate) fn seconds(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.pass(999);
            self.alive();
            self.clock();
            self.sync();
            self.confirm_countdowns();
        }
    }

    /// Lets time pass second by second with all evidence of health and no other responses.
    pub(crate) fn wait(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.pass(998);
            self.alive();
            self.clock();
        }
    }

    pub(crate) fn confirm_countdowns(&mut self) {
        while let Some(ms) = self.take_countdown() {
            self.countdown_reply(Outcome::Done(ms));
        }
    }

    /// Removes and returns the oldest countdown request.
    pub(crate) fn take_countdown(&mut self) -> Option<u64> {
        let place = self
            .sent
            .iter()
            .position(|request| matches!(request, Request::Countdown { .. }))?;
        match self.sent.remove(place) {
            Request::Countdown { countdown_ms, .. } => Some(countdown_ms),
            _ => None,
        }
    }

    pub(crate) fn countdown_reply(&mut self, outcome: Outcome<u64>) {
        self.handle(Input::Reply(&Reply::Countdown {
            instrument: BTC,
            outcome,
        }));
    }

    /// A buy order that is open at the venue, as responses and events report.
    pub(crate) fn rest(&mut self) -> OrderSeq {
        let order = self.submit(MM, limit(Side::Buy, 990, 10));
        self.confirm_countdowns();
        self.sent.clear();
        let id = self.id(MM, order);
        self.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        self.update(update(id, Side::Buy, OrderStatus::New, 0));
        order
    }

    /// The number of order requests in `sent`.
    pub(crate) fn places(&self) -> usize {
        let places = self.sent.iter();
        places
            .filter(|request| matches!(request, Request::Place(_)))
            .count()
    }

    /// The number of queries for orders in `sent`.
    pub(crate) fn queries(&self) -> usize {
        let queries = self.sent.iter();
        queries
            .filter(|request| matches!(request, Request::Query { .. }))
            .count()
    }

    /// Removes the queries for orders from `sent`. Returns their number.
    pub(crate) fn take_queries(&mut self) -> usize {
        let queries = self.queries();
        self.sent
            .retain(|request| !matches!(request, Request::Query { .. }));
        queries
    }

    pub(crate) fn open_order(&self, order: OrderSeq) -> OpenOrder {
        let order = self.engine.order(order).unwrap();
        OpenOrder {
            report: report(order.client_order_id, OrderStatus::New, order.executed_qty),
            terms: order.terms,
        }
    }
}

pub(crate) fn position(qty: i64) -> PositionUpdate {
    PositionUpdate {
        instrument: BTC,
        position_side: PositionSide::Both,
        qty: Qty(qty),
        cost: Amount::ZERO,
    }
}

/// A filled order that a person placed.
pub(crate) fn order_by_hand(instrument: InstrumentId, order_id: VenueOrderId) -> OpenOrder {
    let id = ClientOrderId::new("web_1").unwrap();
    let report = OrderReport {
        order_id,
        instrument,
        ..report(id, OrderStatus::Filled, 1)
    };
    let terms = OrderTerms::new(instrument, Side::Sell, OrderType::Market);
    OpenOrder { report, terms }
}

/// The response of a venue that has nothing to report.
pub(crate) fn nothing(subject: Subject) -> StateReport {
    match subject {
        Subject::OpenOrders { .. } => StateReport::OpenOrders(Vec::new()),
        Subject::Account { .. } => StateReport::Account(AccountSnapshot::default()),
        Subject::Trades { .. } => no_trades(),
        Subject::ForcedOrders { .. } => StateReport::ForcedOrders(Vec::new()),
        Subject::Rules { .. } => StateReport::Rules(Vec::new()),
        Subject::AssetPrice { .. } => StateReport::AssetPrice(Amount::ZERO),
        Subject::OutsideOrder {
            instrument,
            order_id,
        } => StateReport::OutsideOrder(Box::new(order_by_hand(instrument, order_id))),
        Subject::TradedOrder { .. } => StateReport::TradedOrder(TradedOrder {
            client_order_id: ClientOrderId::new("web_1").unwrap(),
            placed: Time(0),
        }),
        Subject::NewestOrders { .. } => StateReport::NewestOrders(Vec::new()),
        Subject::Income { .. } => StateReport::Income {
            entries: Vec::new(),
            more: false,
        },
    }
}

pub(crate) fn no_trades() -> StateReport {
    StateReport::Trades {
        trades: Vec::new(),
        more: false,
    }
}
