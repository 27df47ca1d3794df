//! A forced close that the venue reports only by an account event, while strategies continue to
//! trade and every account snapshot is some seconds old. The engine must still find it.

use windvane_model::forced::ForcedClose;
use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, PositionUpdate, Refusal,
};
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::state_report::{AccountTrade, OpenOrder, StateReport, Subject};
use windvane_model::{
    Amount, ClientOrderId, Input, Notice, OrderStatus, OrderTerms, OrderType, Outcome,
    PositionSide, Price, Qty, Side, Surface, Time, UserEvent, VenueOrderId,
};

use super::reconciliation::trade;
use super::support::{Account, BTC, MM, USDT, fill, instrument, limit, report, update};
use super::world::{no_trades, nothing, position, ready};

const FUTURES: Surface = Surface::Futures;
/// The venue's own order.
const FORCED: VenueOrderId = VenueOrderId(900);

/// A venue whose responses are all late by `lag_ms`, and its response to `forceOrders`.
struct Late {
    account: Account,
    lag_ms: i64,
    lists_forced: bool,
    /// The states of the account: each with its start time, position and wallet balance.
    states: Vec<(Time, i64, Amount)>,
    trades: Vec<AccountTrade>,
    forced: Option<OpenOrder>,
    next: i64,
}

impl Late {
    /// A run whose strategy bought 37.
    fn holding(lag_ms: i64, lists_forced: bool) -> Self {
        let account = ready();
        let wallet = account.engine.balance(FUTURES, USDT).total;
        let mut late = Self {
            states: vec![(account.now, 0, wallet)],
            account,
            lag_ms,
            lists_forced,
            trades: Vec::new(),
            forced: None,
            next: 100,
        };
        assert!(late.trade(Side::Buy, 37));
        late.seconds(40);
        assert_eq!(late.account.engine.run_state(), RunState::Ready);
        late.account.notices.clear();
        late
    }

    fn present(&self) -> (i64, Amount) {
        let (_, qty, wallet) = *self.states.last().unwrap();
        (qty, wallet)
    }

    /// The strategy's order fills at once, at 100.0, and both events arrive. Returns whether it was
    /// sent.
    fn trade(&mut self, side: Side, qty: i64) -> bool {
        let account = &mut self.account;
        let sent = account.call(MM, |callback, engine| {
            callback.submit(engine, limit(side, 1000, qty))
        });
        account.confirm_countdowns();
        let Ok(order) = sent else { return false };
        let id = account.id(MM, order);
        self.next += 1;
        let mut event = fill(id, side, self.next, qty, qty, OrderStatus::Filled);
        event.order_id = VenueOrderId(self.next);
        event.orig_qty = Qty(qty);
        event.transaction_time = account.now;
        let mut listed = trade(self.next, self.next, qty);
        listed.side = side;
        listed.time = account.now;
        self.trades.push(listed);
        account.update(event);
        let (held, wallet) = self.present();
        self.state(
            held + side.sign() * qty,
            wallet - Amount(1_000_000),
            AccountReason::Order,
        );
        true
    }

    /// Sets the account's state from now on and sends its event.
    fn state(&mut self, qty: i64, wallet: Amount, reason: AccountReason) {
        self.states.push((self.account.now, qty, wallet));
        let positions: Vec<PositionUpdate> = [position(qty)]
            .into_iter()
            .filter(|one| one.qty.0 != 0)
            .collect();
        let event_time = self.account.now;
        self.account
            .handle(Input::User(&UserEvent::Account(AccountUpdate {
                surface: FUTURES,
                reason,
                balances: vec![balance(wallet)],
                positions,
                transaction_time: event_time,
                event_time,
            })));
    }

    /// The venue sells 37 at 90.0 and sends only the account event.
    fn liquidate(&mut self) {
        let now = self.account.now;
        let mut listed = trade(FORCED.0, 99, 37);
        listed.side = Side::Sell;
        listed.fill.price = Price(900);
        listed.fill.quote_qty = instrument().notional(900, 37);
        listed.fill.fee = Amount::ZERO;
        listed.time = now;
        self.next += 1;
        listed.fill.trade_id.0 = self.next;
        self.trades.push(listed);
        let id = ClientOrderId::new("autoclose-17").unwrap();
        let mut ended = report(id, OrderStatus::Filled, 37);
        ended.order_id = FORCED;
        ended.orig_qty = Qty(37);
        ended.cum_quote = instrument().notional(900, 37);
        ended.update_time = now;
        let mut terms = OrderTerms::new(BTC, Side::Sell, OrderType::Liquidation);
        terms.qty = Some(Qty(37));
        self.forced = Some(OpenOrder {
            report: ended,
            terms,
        });
        let (held, wallet) = self.present();
        let loss = instrument().notional(100, 37);
        self.state(held - 37, wallet - loss, AccountReason::Charge);
    }

    fn answer(&mut self) {
        while let Some(subject) = self.account.take_question() {
            let seen = Time(self.account.now.0 - self.lag_ms * 1_000_000);
            let outcome = match subject {
                Subject::Account { .. } => {
                    let mut own = self.account.own_account();
                    let mut states = self.states.iter().rev();
                    let state = states.find(|(at, ..)| *at <= seen);
                    let (_, qty, wallet) = *state.unwrap_or(&self.states[0]);
                    own.positions = vec![position(qty)];
                    own.balances = vec![balance(wallet)];
                    Outcome::Done(StateReport::Account(own))
                }
                Subject::Trades { from, .. } => {
                    let from = from.map_or(0, |id| id.0);
                    let listed = self.trades.iter();
                    let listed =
                        listed.filter(|one| one.time <= seen && one.fill.trade_id.0 >= from);
                    let trades: Vec<_> = listed.copied().collect();
                    Outcome::Done(if trades.is_empty() {
                        no_trades()
                    } else {
                        StateReport::Trades {
                            trades,
                            more: false,
                        }
                    })
                }
                Subject::ForcedOrders { .. } if self.lists_forced => {
                    let forced = self.forced.iter();
                    let forced = forced.filter(|order| order.report.update_time <= seen);
                    Outcome::Done(StateReport::ForcedOrders(forced.copied().collect()))
                }
                Subject::ForcedOrders { .. } => Outcome::Refused(Refusal {
                    code: -1020,
                    msg: String::new(),
                }),
                Subject::OutsideOrder { order_id, .. } => {
                    let mut forced = self.forced.iter();
                    let asked = forced.find(|order| {
                        order.report.order_id == order_id && order.report.update_time <= seen
                    });
                    asked.map_or_else(
                        || {
                            Outcome::Refused(Refusal {
                                code: -2013,
                                msg: String::new(),
                            })
                        },
                        |order| Outcome::Done(StateReport::OutsideOrder(Box::new(*order))),
                    )
                }
                subject => Outcome::Done(nothing(subject)),
            };
            self.account.answer(subject, outcome);
        }
    }

    fn pass(&mut self, ms: i64) {
        for _ in 0..ms / 250 {
            self.answer();
            self.account.pass(249);
            self.account.alive();
            self.account.clock();
            self.account.confirm_countdowns();
        }
    }

    fn seconds(&mut self, seconds: i64) {
        self.pass(seconds * 1_000);
    }

    /// The position in the engine's account ledger and in the strategy's ledger.
    fn held(&self) -> (i64, i64) {
        let ledgers = self.account.engine.ledgers();
        let qty = |ledger: &windvane_model::holding::Ledger| {
            ledger.at(BTC, PositionSide::Both).position.qty
        };
        (qty(&ledgers.account), qty(&ledgers.strategies[0]))
    }

    fn kinds(&self) -> Vec<ForcedClose> {
        let reported = self.account.notices.iter();
        reported
            .filter_map(|notice| match notice {
                Notice::ForcedClose { report, .. } => Some(report.kind),
                _ => None,
            })
            .collect()
    }
}

fn balance(total: Amount) -> BalanceUpdate {
    BalanceUpdate {
        asset: USDT,
        total,
        locked: Amount::ZERO,
        change: Amount::ZERO,
    }
}

#[test]
fn a_forced_close_is_found_while_a_strategy_trades() {
    // Some quantities reverse the strategy's position, and some do not.
    let plans: [&[(Side, i64)]; 3] = [
        &[(Side::Sell, 5), (Side::Buy, 3)],
        &[
            (Side::Sell, 11),
            (Side::Sell, 13),
            (Side::Sell, 17),
            (Side::Buy, 2),
        ],
        &[(Side::Buy, 7), (Side::Buy, 9), (Side::Sell, 4)],
    ];
    for lists_forced in [true, false] {
        for lag_ms in [0, 1_000, 5_000, 10_000] {
            for plan in plans {
                let case = format!("lag {lag_ms}, listed {lists_forced}, {plan:?}");
                let mut late = Late::holding(lag_ms, lists_forced);
                late.liquidate();
                let mut fills = 0;
                for step in 0..30 {
                    late.pass(500);
                    let (side, qty) = plan[step % plan.len()];
                    if late.account.engine.kill_switch() == KillSwitch::Clear {
                        fills += usize::from(late.trade(side, qty));
                    }
                }
                assert!(fills <= 10, "{case}: {fills} fills after the close");
                late.seconds(60);
                assert_eq!(
                    late.account.engine.kill_switch(),
                    KillSwitch::Halted,
                    "{case}"
                );
                let (qty, _) = late.present();
                assert_eq!(late.held(), (qty, qty), "{case}");
                let kind = ForcedClose::Liquidation;
                assert_eq!(late.kinds().first(), Some(&kind), "{case}");
            }
        }
    }
}

/// An order far from the market is open on the closing side. It cannot have closed the position.
#[test]
fn a_forced_close_is_found_while_an_own_exit_is_open() {
    for lists_forced in [true, false] {
        let mut late = Late::holding(1_000, lists_forced);
        let account = &mut late.account;
        let exit = account.submit(MM, limit(Side::Sell, 1_500, 10));
        account.confirm_countdowns();
        let id = account.id(MM, exit);
        account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        account.update(update(id, Side::Sell, OrderStatus::New, 0));
        late.liquidate();
        late.pass(1_500);
        let id = late.account.id(MM, exit);
        late.account
            .update(update(id, Side::Sell, OrderStatus::Canceled, 0));
        late.seconds(60);
        assert_eq!(late.account.engine.kill_switch(), KillSwitch::Halted);
        assert_eq!(late.held(), (0, 0));
    }
}

#[test]
fn a_healthy_run_keeps_trading_with_stale_snapshots() {
    for lag_ms in [0, 5_000, 10_000] {
        let mut late = Late::holding(lag_ms, true);
        for step in 0..120 {
            late.pass(500);
            let side = if step % 3 == 0 { Side::Buy } else { Side::Sell };
            assert!(late.trade(side, 1 + step % 4), "lag {lag_ms}, step {step}");
        }
        assert_eq!(late.kinds(), []);
    }
}
