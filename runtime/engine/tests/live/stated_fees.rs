//! Commissions that are missing in order events and in the list of the account's trades, so only
//! account events show them. The price does not change, and the strategies trade without a pause,
//! so that account snapshots never agree.

use windvane_model::config::EngineConfig;
use windvane_model::instrument::Instrument;
use windvane_model::live::LiveInput;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, StateReport, Subject};
use windvane_model::{
    Amount, AssetId, Input, InstrumentId, MarketEvent, Notice, OrderStatus, Outcome, PositionSide,
    Side, StrategyId, Surface, Time, UserEvent, VenueOrderId,
};

use super::changes_without_event::usdt;
use super::support::{Account, MM, OTHER, USDT, config, fill, instrument, limit};
use super::world::{live_config, nothing, position};

pub(super) const TOKEN: AssetId = AssetId(2);
const TOKENUSDT: InstrumentId = InstrumentId(1);
/// The commission of a fill worth 1,000, in USDT, also at the price of the token.
const FEE: Amount = Amount(60_000_000);
const TOKEN_PRICE: i64 = 50_000_000;
/// The pause between fills: three fills in two seconds.
const PAUSE_MS: i64 = 666;

/// The venue and the account. A fill costs [`FEE`], which its event does not include.
pub(super) struct Exchange {
    pub(super) account: Account,
    fee_asset: AssetId,
    /// Balances of USDT and of the token.
    pub(super) balances: [Amount; 2],
    pub(super) held: i64,
    past: Vec<(Time, [Amount; 2], i64)>,
    pub(super) trades: Vec<AccountTrade>,
    /// How late the venue lists the account's trades; `None` if it does not list them.
    trades_lag_ms: Option<i64>,
    /// Whether account events list a flat position.
    pub(super) lists_flat: bool,
    /// Age of account snapshots when they arrive, in milliseconds.
    pub(super) lag_ms: i64,
    /// The commission of a fill, in USDT.
    pub(super) fee: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The order event of the fill with this index.
    Order(usize),
    /// The account event after this many fills.
    Account(usize),
}

impl Exchange {
    pub(super) fn with(fee_asset: AssetId, trades_lag_ms: Option<i64>, max_loss: i128) -> Self {
        let mut config = config();
        config.limits.max_daily_loss = Some(usdt(max_loss));
        Self::of(config, fee_asset, trades_lag_ms)
    }

    pub(super) fn of(
        mut config: EngineConfig,
        fee_asset: AssetId,
        trades_lag_ms: Option<i64>,
    ) -> Self {
        config.live = Some(live_config());
        config.assets.push("SVC".to_owned());
        config.balances.push((Surface::Futures, TOKEN, usdt(1_000)));
        config.instruments.push(Instrument {
            symbol: "SVCUSDT".to_owned(),
            base: TOKEN,
            ..instrument()
        });
        let mut exchange = Self {
            account: Account::new(config),
            fee_asset,
            balances: [usdt(10_000), usdt(1_000)],
            held: 0,
            past: Vec::new(),
            trades: Vec::new(),
            trades_lag_ms,
            lists_flat: false,
            lag_ms: 5_000,
            fee: FEE,
        };
        exchange.past.push((Time(0), exchange.balances, 0));
        exchange.account.begin();
        exchange.answer();
        exchange.account.top(999, 1001);
        exchange.account.handle(Input::Market {
            instrument: TOKENUSDT,
            event: MarketEvent::Mark {
                mark: TOKEN_PRICE,
                index: 0,
                funding_rate: 0,
                next_funding: Time::NEVER,
            },
        });
        assert_eq!(exchange.state(), RunState::Ready);
        exchange
    }

    pub(super) fn state(&self) -> RunState {
        self.account.engine.run_state()
    }

    fn reported_balances(balances: [Amount; 2]) -> Vec<BalanceUpdate> {
        let reported = [USDT, TOKEN].into_iter().zip(balances);
        reported
            .map(|(asset, total)| BalanceUpdate {
                asset,
                total,
                locked: Amount::ZERO,
                change: Amount::ZERO,
            })
            .collect()
    }

    /// Answers every query. Account snapshots are stale.
    pub(super) fn answer(&mut self) {
        while let Some(subject) = self.account.take_question() {
            let now = self.account.now;
            let outcome = match subject {
                Subject::Account { .. } => {
                    let mut past = self.past.iter().rev();
                    let shown = past
                        .find(|(at, ..)| at.plus_ms(self.lag_ms) <= now)
                        .unwrap();
                    let mut own = self.account.own_account();
                    own.balances = Self::reported_balances(shown.1);
                    own.positions = vec![position(shown.2)];
                    Outcome::Done(StateReport::Account(own))
                }
                Subject::Trades { from, .. } => match self.trades_lag_ms {
                    Some(lag_ms) => {
                        let trades = self.trades.iter().filter(|trade| {
                            let is_asked = from.is_none_or(|from| trade.fill.trade_id >= from);
                            is_asked && trade.time.plus_ms(lag_ms) <= now
                        });
                        Outcome::Done(StateReport::Trades {
                            trades: trades.copied().collect(),
                            more: false,
                        })
                    }
                    None => Outcome::Refused(Refusal {
                        code: -1020,
                        msg: String::new(),
                    }),
                },
                _ => Outcome::Done(nothing(subject)),
            };
            self.account.answer(subject, outcome);
        }
        self.account.confirm_countdowns();
    }

    pub(super) fn pass(&mut self, ms: i64) {
        self.account.pass(ms);
        self.account.alive();
        self.account.clock();
        self.answer();
    }

    /// Fills of 10 at a price in tenths, with their events in this order.
    fn trade(&mut self, fills: &[(StrategyId, Side, i64)], spread_ms: i64, events: &[Event]) {
        let (mut orders, mut accounts) = (Vec::new(), Vec::new());
        for (strategy, side, _) in fills {
            let order = self.account.submit(*strategy, limit(*side, 1000, 10_000));
            orders.push(self.account.id(*strategy, order));
            self.account.confirm_countdowns();
        }
        let mut updates = Vec::new();
        for (place, (fill_of, id)) in fills.iter().zip(orders).enumerate() {
            let at = self.account.now.plus_ms(place as i64 * spread_ms);
            updates.push(self.execute(id, fill_of.1, fill_of.2, at));
            accounts.push(self.account_event(at));
        }
        for event in events {
            let event = match event {
                Event::Order(place) => UserEvent::Order(updates[*place]),
                Event::Account(count) => UserEvent::Account(accounts[count - 1].clone()),
            };
            self.account.handle(Input::User(&event));
        }
    }

    pub(super) fn execute(
        &mut self,
        id: windvane_model::ClientOrderId,
        side: Side,
        realized: i64,
        at: Time,
    ) -> windvane_model::protocol::OrderUpdate {
        let number = self.trades.len() as i64 + 1;
        let mut event = fill(id, side, number, 10_000, 10_000, OrderStatus::Filled);
        event.order_id = VenueOrderId(number);
        event.orig_qty.0 = 10_000;
        (event.transaction_time, event.event_time) = (at, at);
        let fill = event.fill.as_mut().unwrap();
        // A price that realizes this profit on a position bought at 100.
        fill.price.0 += side.sign() * -realized;
        fill.quote_qty = instrument().notional(fill.price.0, 10_000);
        fill.fee = self.fee;
        if self.fee_asset == TOKEN {
            fill.fee = self.fee + self.fee;
        }
        fill.fee_asset = self.fee_asset;
        self.trades.push(AccountTrade {
            order_id: event.order_id,
            side,
            position_side: PositionSide::Both,
            fill: *fill,
            time: at,
        });
        self.balances[usize::from(self.fee_asset == TOKEN)] += -fill.fee;
        self.balances[0] += usdt(i128::from(realized));
        fill.fee = Amount::ZERO;
        fill.fee_asset = USDT;
        self.held += side.sign() * 10_000;
        self.past.push((at, self.balances, self.held));
        event
    }

    pub(super) fn account_event(&self, at: Time) -> AccountUpdate {
        let is_listed = self.held != 0 || self.lists_flat;
        AccountUpdate {
            surface: Surface::Futures,
            reason: AccountReason::Order,
            balances: Self::reported_balances(self.balances),
            positions: is_listed.then(|| position(self.held)).into_iter().collect(),
            transaction_time: at,
            event_time: at,
        }
    }

    /// Both strategies trade in turn until the run halts or this many fills were made.
    fn trade_until_halted(&mut self, fills: usize, events: [Event; 2]) {
        while self.state() == RunState::Ready && self.trades.len() < fills {
            let place = self.trades.len();
            let side = [Side::Buy, Side::Sell][place % 2];
            let strategy = [MM, OTHER][place / 2 % 2];
            self.trade(&[(strategy, side, 0)], 0, &events);
            if self.state() == RunState::Ready {
                self.pass(PAUSE_MS);
            }
        }
    }

    pub(super) fn booked(&self) -> [Amount; 2] {
        [USDT, TOKEN].map(|asset| self.account.engine.balance(Surface::Futures, asset).total)
    }

    fn fees(&self, strategy: StrategyId) -> Amount {
        let own = &self.account.engine.ledgers().strategies[usize::from(strategy.0)];
        own.total(|position| position.fees)
    }

    /// Checks that the ledger has the venue's balances, and that the strategies have all
    /// commissions.
    pub(super) fn assert_exact(&self, context: &str) {
        assert_eq!(self.booked(), self.balances, "{context}");
        let paid = Amount(FEE.0 * self.trades.len() as i128);
        assert_eq!(self.fees(MM) + self.fees(OTHER), paid, "{context}");
        let totals = self.account.engine.totals().unwrap();
        let start = self.account.engine.start_equity().unwrap();
        let sum = start + totals.realized_pnl + totals.unrealized_pnl - totals.fees;
        assert_eq!(totals.equity, sum, "{context}");
    }
}

const ORDER_FIRST: [Event; 2] = [Event::Order(0), Event::Account(1)];
const ACCOUNT_FIRST: [Event; 2] = [Event::Account(1), Event::Order(0)];

#[test]
fn commissions_shown_only_by_balances_reach_the_loss_limit() {
    for fee_asset in [USDT, TOKEN] {
        for events in [ORDER_FIRST, ACCOUNT_FIRST] {
            for (lists_flat, lag_ms) in [(true, 1_000), (false, 5_000), (false, 10_000)] {
                let mut exchange = Exchange::with(fee_asset, None, 20);
                exchange.lists_flat = lists_flat;
                exchange.lag_ms = lag_ms;
                exchange.trade_until_halted(60, events);
                let context = format!("{fee_asset:?} {events:?} {lists_flat}");
                assert_eq!(exchange.state(), RunState::Halted, "{context}");
                // The limit is 20: 33 fills cost 19.8, and 34 cost 20.4.
                assert_eq!(exchange.trades.len(), 34, "{context}");
                exchange.assert_exact(&context);
                // MM made the odd pairs of fills.
                assert_eq!(exchange.fees(MM), Amount(FEE.0 * 18), "{context}");
                // A later snapshot with the same balance counts nothing again.
                for _ in 0..60 {
                    exchange.pass(998);
                }
                exchange.assert_exact(&context);
            }
        }
    }
}

#[test]
fn several_fills_at_the_same_time_match_the_stated_balance() {
    use Event::{Account as A, Order as O};
    let manners: &[&[Event]] = &[
        &[O(0), O(1), A(2)],
        &[A(2), O(0), O(1)],
        &[O(0), A(2), O(1)],
        &[O(0), A(1), O(1), A(2)],
        &[A(1), O(0), A(2), O(1)],
        &[O(0), O(1), A(1), A(2)],
        &[A(1), A(2), O(0), O(1)],
        &[O(0), A(1), A(2), O(1)],
    ];
    for events in manners {
        for second in [Side::Buy, Side::Sell] {
            for (spread_ms, lists_flat) in [(0, true), (1, true), (1, false), (0, false)] {
                for fee_asset in [USDT, TOKEN] {
                    let mut exchange = Exchange::with(fee_asset, None, 1_000);
                    exchange.lists_flat = lists_flat;
                    for _ in 0..3 {
                        let back = [Side::Buy, Side::Sell][usize::from(second == Side::Buy)];
                        exchange.trade(
                            &[(MM, Side::Buy, 0), (OTHER, second, 0)],
                            spread_ms,
                            events,
                        );
                        let context = format!("{events:?} {second:?} {spread_ms} {lists_flat}");
                        exchange.assert_exact(&context);
                        exchange.pass(PAUSE_MS);
                        if second == Side::Buy {
                            exchange.trade(&[(MM, back, 0), (OTHER, back, 0)], spread_ms, events);
                            exchange.assert_exact(&context);
                            exchange.pass(PAUSE_MS);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_realized_loss_in_an_early_account_event_is_no_commission() {
    for lists_flat in [true, false] {
        let mut exchange = Exchange::with(USDT, None, 1_000);
        exchange.lists_flat = lists_flat;
        for _ in 0..4 {
            exchange.trade(&[(MM, Side::Buy, 0)], 0, &ACCOUNT_FIRST);
            exchange.pass(PAUSE_MS);
            // Less than one percent of the previous fill.
            exchange.trade(&[(MM, Side::Sell, -5)], 0, &ACCOUNT_FIRST);
            exchange.assert_exact(&format!("{lists_flat}"));
            exchange.pass(PAUSE_MS);
        }
    }
}

#[test]
fn an_implausible_change_is_not_booked_as_a_commission() {
    for gone in [usdt(11), -usdt(1)] {
        let mut exchange = Exchange::with(USDT, None, 1_000);
        exchange.balances[0] += -gone;
        exchange.trade(&[(MM, Side::Buy, 0)], 0, &ORDER_FIRST);
        assert_eq!(exchange.fees(MM), Amount::ZERO);
        assert_eq!(exchange.booked()[0], usdt(10_000));
    }
}

#[test]
fn commissions_in_late_account_trades_halt_in_time_and_count_once() {
    for fee_asset in [USDT, TOKEN] {
        for events in [ORDER_FIRST, ACCOUNT_FIRST] {
            for lists_flat in [true, false] {
                let mut exchange = Exchange::with(fee_asset, Some(10_000), 20);
                exchange.lists_flat = lists_flat;
                exchange.trade_until_halted(60, events);
                let context = format!("{fee_asset:?} {events:?} {lists_flat}");
                assert_eq!(exchange.state(), RunState::Halted, "{context}");
                assert_eq!(exchange.trades.len(), 34, "{context}");
                for _ in 0..60 {
                    exchange.pass(998);
                }
                exchange.assert_exact(&context);
                let reported = exchange.account.notices.iter();
                let late = reported.filter(|notice| matches!(notice, Notice::LateFee { .. }));
                assert_eq!(late.count(), 34, "{context}");
            }
        }
    }
}

#[test]
fn a_fill_without_a_commission_does_not_predict_the_next() {
    let mut exchange = Exchange::with(USDT, Some(0), 20);
    exchange.fee = Amount::ZERO;
    exchange.trade(&[(MM, Side::Buy, 0)], 0, &ORDER_FIRST);
    for _ in 0..20 {
        exchange.pass(998);
    }
    exchange.fee = FEE;
    exchange.trades_lag_ms = Some(10_000);
    exchange.trade_until_halted(60, ORDER_FIRST);
    assert_eq!(exchange.state(), RunState::Halted);
    assert_eq!(exchange.trades.len(), 35);
}

#[test]
fn commissions_shown_by_balances_count_for_a_strategys_limit() {
    for events in [ORDER_FIRST, ACCOUNT_FIRST] {
        let mut config = config();
        config.strategies[0].limits.max_daily_loss = Some(usdt(5));
        let mut exchange = Exchange::of(config, USDT, None);
        for number in 1..=9 {
            assert_eq!(exchange.account.engine.fault(MM), None, "{number}");
            let side = [Side::Sell, Side::Buy][number % 2];
            exchange.trade(&[(MM, side, 0)], 0, &events);
            exchange.pass(PAUSE_MS);
        }
        // The limit is 5, and 9 commissions are 5.4.
        let fault = exchange.account.engine.fault(MM);
        assert_eq!(fault, Some(windvane_model::input::FaultKind::Loss));
    }
}

#[test]
fn fills_before_the_rejection_of_account_trades_count() {
    let mut exchange = Exchange::with(USDT, None, 20);
    exchange.account.live(LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    exchange.trade(&[(MM, Side::Buy, 0)], 0, &ORDER_FIRST);
    assert_eq!(
        exchange.booked()[0],
        usdt(10_000),
        "the venue may still list trades"
    );
    exchange.answer();
    exchange.assert_exact("the venue rejected the list of trades");
}
