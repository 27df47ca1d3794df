//! Losses of own orders that filled while the process was down. They count against the loss limits
//! of the account and of the strategy as soon as the new process knows the account.

use windvane_model::config::EngineConfig;
use windvane_model::input::FaultKind;
use windvane_model::protocol::{OrderReport, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, StateReport, Subject};
use windvane_model::{
    Amount, Input, OrderSeq, OrderStatus, Outcome, PositionSide, Price, Reply, Request, Side,
    VenueOrderId,
};

use super::succession::{killed, next_config};
use super::support::{Account, MM, OTHER, fill, instrument, limit, report, update};
use super::world::{live_config, no_trades, position};

const fn usdt(whole: i128) -> Amount {
    Amount(whole * 100_000_000)
}

const EXIT: VenueOrderId = VenueOrderId(2);

/// Which limit is 500.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Account,
    Strategy,
}

fn limited(mut config: EngineConfig, limit: Limit) -> EngineConfig {
    config.live = Some(live_config());
    match limit {
        Limit::Account => config.limits.max_daily_loss = Some(usdt(500)),
        Limit::Strategy => config.strategies[0].limits.max_daily_loss = Some(usdt(500)),
    }
    config
}

/// The strategy bought 10 at 100, and has an open order that would sell them.
fn holding(of: Limit) -> (Account, OrderSeq) {
    let mut account = Account::new(limited(super::support::config(), of));
    account.begin();
    account.sync();
    account.top(999, 1001);
    let entry = account.submit(MM, limit(Side::Buy, 1000, 10_000));
    let id = account.id(MM, entry);
    account.update(fill(id, Side::Buy, 1, 10_000, 10_000, OrderStatus::Filled));
    let exit = account.submit(MM, limit(Side::Sell, 1100, 10_000));
    account.confirm_countdowns();
    let id = account.id(MM, exit);
    let mut rests = update(id, Side::Sell, OrderStatus::New, 0);
    rests.order_id = EXIT;
    account.update(rests);
    account.seconds(2);
    account.top(999, 1001);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    (account, exit)
}

/// The venue's data about the exit order, which sold `qty` at 40.
struct Exit {
    order: OrderSeq,
    qty: i64,
}

impl Exit {
    fn status(&self) -> OrderStatus {
        if self.qty == 10_000 {
            OrderStatus::Filled
        } else {
            OrderStatus::PartiallyFilled
        }
    }

    fn trade(&self, account: &Account) -> AccountTrade {
        let id = account.id(MM, self.order);
        let reported = fill(id, Side::Sell, 7, self.qty, self.qty, self.status());
        let mut fill = reported.fill.unwrap();
        fill.price = Price(400);
        fill.quote_qty = instrument().notional(400, self.qty);
        AccountTrade {
            order_id: EXIT,
            side: Side::Sell,
            position_side: PositionSide::Both,
            fill,
            time: account.now,
        }
    }

    fn report(&self, account: &Account) -> OrderReport {
        OrderReport {
            order_id: EXIT,
            orig_qty: windvane_model::Qty(10_000),
            cum_quote: instrument().notional(400, self.qty),
            ..report(account.id(MM, self.order), self.status(), self.qty)
        }
    }
}

/// How the venue responds to a request for the list of the account's trades.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trades {
    Told,
    Refused,
    /// They are listed this many seconds late.
    Late(u32),
}

/// How late a venue reports the fill.
#[derive(Clone, Copy, Debug)]
struct Venue {
    trades: Trades,
    orders_late: u32,
}

/// Lets the venue answer every query for this many seconds after the exit filled.
fn run(account: &mut Account, exit: &Exit, venue: Venue, seconds: u32) {
    let before = account.own_account();
    let lost = instrument().notional(600, exit.qty) + Amount(1_000_000);
    let total = before.balances[0].total - lost;
    for second in 0..seconds {
        let reported = second >= venue.orders_late;
        while let Some(subject) = account.take_question() {
            let outcome = match subject {
                Subject::OpenOrders { .. } if reported && exit.qty == 10_000 => {
                    Outcome::Done(StateReport::OpenOrders(Vec::new()))
                }
                Subject::OpenOrders { .. } => match account.engine.order(exit.order) {
                    Some(_) => {
                        let mut open = account.open_order(exit.order);
                        if reported {
                            open.report = exit.report(account);
                        } else {
                            open.report.executed_qty = windvane_model::Qty(0);
                        }
                        Outcome::Done(StateReport::OpenOrders(vec![open]))
                    }
                    None => Outcome::Done(StateReport::OpenOrders(Vec::new())),
                },
                Subject::Trades { .. } => match venue.trades {
                    Trades::Refused => Outcome::Refused(Refusal {
                        code: 404,
                        msg: String::new(),
                    }),
                    Trades::Late(late) if second < late => Outcome::Done(no_trades()),
                    _ => Outcome::Done(StateReport::Trades {
                        trades: vec![exit.trade(account)],
                        more: false,
                    }),
                },
                Subject::Account { .. } => {
                    let mut own = before.clone();
                    own.balances[0].total = total;
                    own.positions = vec![position(10_000 - exit.qty)];
                    own.positions[0].cost = instrument().notional(1000, 10_000 - exit.qty);
                    Outcome::Done(StateReport::Account(own))
                }
                _ => Outcome::Done(super::world::nothing(subject)),
            };
            account.answer(subject, outcome);
        }
        let asked = |request: &Request| matches!(request, Request::Query { .. });
        if account.sent.iter().any(asked) {
            account.take_queries();
            let mut told_of = exit.report(account);
            if !reported {
                told_of.status = OrderStatus::New;
                told_of.executed_qty = windvane_model::Qty(0);
                told_of.cum_quote = Amount::ZERO;
            }
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: told_of.client_order_id,
                outcome: Outcome::Done(told_of),
            }));
        }
        account.confirm_countdowns();
        account.wait(1);
        account.top(999, 1001);
    }
}

const VENUES: &[Venue] = &[
    Venue {
        trades: Trades::Told,
        orders_late: 0,
    },
    Venue {
        trades: Trades::Told,
        orders_late: 8,
    },
    Venue {
        trades: Trades::Refused,
        orders_late: 0,
    },
    Venue {
        trades: Trades::Refused,
        orders_late: 8,
    },
    Venue {
        trades: Trades::Late(8),
        orders_late: 0,
    },
    Venue {
        trades: Trades::Late(8),
        orders_late: 8,
    },
];

#[test]
fn a_loss_while_the_process_was_down_halts_the_account() {
    for venue in VENUES {
        // The whole quantity, and a part that loses 540.
        for qty in [10_000, 9_000] {
            let (account, order) = holding(Limit::Account);
            let mut account = killed(account, limited(next_config(), Limit::Account));
            account.begin();
            run(&mut account, &Exit { order, qty }, *venue, 60);
            let state = account.engine.run_state();
            assert_eq!(state, RunState::Halted, "{venue:?} {qty}");
        }
    }
}

#[test]
fn a_loss_while_the_process_was_down_counts_for_its_strategy() {
    for venue in VENUES {
        let (account, order) = holding(Limit::Strategy);
        let mut account = killed(account, limited(next_config(), Limit::Strategy));
        account.begin();
        run(&mut account, &Exit { order, qty: 10_000 }, *venue, 60);
        assert_eq!(account.engine.fault(MM), Some(FaultKind::Loss), "{venue:?}");
        assert_eq!(account.engine.fault(OTHER), None, "{venue:?}");
    }
}

#[test]
fn a_commission_before_the_first_price_of_a_run_counts_as_a_loss() {
    let mut config = super::support::config();
    config.live = Some(super::world::live_config());
    config.limits.max_daily_loss = Some(Amount(50_000_000));
    let mut account = Account::new(config);
    account.begin();
    account.sync();
    for (side, trade_id) in [(Side::Buy, 1), (Side::Sell, 2)] {
        assert_eq!(account.engine.run_state(), RunState::Ready);
        let order = account.submit(MM, limit(side, 1000, 10));
        account.confirm_countdowns();
        let id = account.id(MM, order);
        let mut event = fill(id, side, trade_id, 10, 10, OrderStatus::Filled);
        event.fill.as_mut().unwrap().fee = Amount(30_000_000);
        account.update(event);
        account.top(999, 1001);
    }
    assert_eq!(account.engine.run_state(), RunState::Halted);
}
