//! Commissions that are missing in the events of fills. The balance and the list of the account's
//! trades show them.

use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, StateReport, Subject};
use windvane_model::{
    Amount, Input, Notice, OrderStatus, Outcome, PositionSide, Side, Surface, UserEvent,
    VenueOrderId,
};

use super::changes_without_event::{holding, limited, usdt};
use super::succession::{killed, next_config};
use super::support::{Account, MM, USDT, fill, limit};
use super::world::{nothing, position};

const FEE: Amount = Amount(40_000_000);

const fn fees_of(fills: i128) -> Amount {
    Amount(FEE.0 * fills)
}

/// The venue as its responses show it.
struct Venue {
    total: Amount,
    qty: i64,
    /// The commission of a fill.
    fee: Amount,
    trades: Vec<AccountTrade>,
    /// The number of requests for the list of the account's trades.
    reads: usize,
    /// The number of queries for the account.
    readings: usize,
}

impl Venue {
    fn of(account: &Account) -> Self {
        Self {
            total: account.engine.balance(Surface::Futures, USDT).total,
            qty: account.own_account().positions[0].qty.0,
            fee: FEE,
            trades: Vec::new(),
            reads: 0,
            readings: 0,
        }
    }

    fn answer(&mut self, account: &mut Account) {
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::Account { .. } => {
                    self.readings += 1;
                    let mut own = account.own_account();
                    own.balances[0].total = self.total;
                    own.positions = vec![position(self.qty)];
                    StateReport::Account(own)
                }
                Subject::Trades { from, .. } => {
                    self.reads += 1;
                    let listed = self.trades.iter();
                    let is_asked =
                        |trade: &&AccountTrade| from.is_none_or(|from| trade.fill.trade_id >= from);
                    StateReport::Trades {
                        trades: listed.filter(is_asked).copied().collect(),
                        more: false,
                    }
                }
                _ => nothing(subject),
            };
            account.tell(subject, state_report);
        }
    }

    fn pass(&mut self, account: &mut Account, seconds: u32) {
        for _ in 0..seconds {
            account.pass(998);
            account.alive();
            account.clock();
            self.answer(account);
            account.confirm_countdowns();
        }
    }

    /// Sends the account event with the current state.
    fn state(&self, account: &mut Account) {
        account.handle(Input::User(&UserEvent::Account(AccountUpdate {
            surface: Surface::Futures,
            reason: AccountReason::Order,
            balances: vec![BalanceUpdate {
                asset: USDT,
                total: self.total,
                locked: Amount::ZERO,
                change: Amount::ZERO,
            }],
            positions: vec![position(self.qty)],
            transaction_time: account.now,
            event_time: account.now,
        })));
    }

    /// Sells 1 at 100 for a commission of 0.4, which the order event does not include.
    /// `event_first` is whether the order event comes before the account event.
    fn sell(&mut self, account: &mut Account, trade: i64, event_first: bool) {
        let order = account.submit(MM, limit(Side::Sell, 1000, 1_000));
        let id = account.id(MM, order);
        account.confirm_countdowns();
        let mut sold = fill(id, Side::Sell, trade, 1_000, 1_000, OrderStatus::Filled);
        sold.order_id = VenueOrderId(trade);
        sold.transaction_time = account.now;
        self.total += -self.fee;
        self.qty -= 1_000;
        sold.fill.as_mut().unwrap().fee = Amount::ZERO;
        let mut stated = sold.fill.unwrap();
        stated.fee = self.fee;
        stated.fee_asset = USDT;
        self.trades.push(AccountTrade {
            order_id: sold.order_id,
            side: Side::Sell,
            position_side: PositionSide::Both,
            fill: stated,
            time: sold.transaction_time,
        });
        if !event_first {
            self.state(account);
        }
        account.update(sold);
        if event_first {
            self.state(account);
        }
    }
}

/// Commissions that the strategy paid after its first fill, which cost 0.01.
fn fees(account: &Account) -> Amount {
    let own = &account.engine.ledgers().strategies[0];
    own.total(|position| position.fees) - Amount(1_000_000)
}

fn booked(account: &Account) -> usize {
    let reported = account.notices.iter();
    reported
        .filter(|notice| matches!(notice, Notice::LateFee { .. }))
        .count()
}

fn adjusted(account: &Account) -> usize {
    let reported = account.notices.iter();
    reported
        .filter(|notice| matches!(notice, Notice::Adjusted { .. }))
        .count()
}

#[test]
fn one_read_of_trades_books_the_commissions_of_several_fills() {
    for event_first in [true, false] {
        let mut account = holding();
        let mut venue = Venue::of(&account);
        for trade in 2..=4 {
            venue.sell(&mut account, trade, event_first);
        }
        venue.pass(&mut account, 2);
        assert_eq!(fees(&account), fees_of(3));
        assert_eq!((booked(&account), venue.reads, venue.readings), (3, 1, 0));
        assert_eq!(adjusted(&account), 0);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        let balance = account.engine.balance(Surface::Futures, USDT);
        assert_eq!(balance.total, venue.total);
        venue.pass(&mut account, 40);
        assert_eq!((fees(&account), booked(&account)), (fees_of(3), 3));
    }
}

#[test]
fn one_read_of_trades_covers_the_fills_of_some_seconds() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    for trade in 2..=9 {
        venue.sell(&mut account, trade, true);
        venue.pass(&mut account, 1);
        assert_eq!(account.engine.run_state(), RunState::Ready);
    }
    assert!(venue.reads <= 3, "{}", venue.reads);
    venue.pass(&mut account, 4);
    assert_eq!(fees(&account), fees_of(8));
}

#[test]
fn trades_that_are_not_listed_yet_are_read_again() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.sell(&mut account, 2, true);
    let listed = std::mem::take(&mut venue.trades);
    venue.pass(&mut account, 8);
    assert_eq!((booked(&account), adjusted(&account)), (0, 0));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    venue.trades = listed;
    venue.pass(&mut account, 4);
    assert_eq!((fees(&account), booked(&account)), (fees_of(1), 1));
    assert_eq!(adjusted(&account), 0);
}

#[test]
fn without_an_event_a_snapshot_difference_leads_to_trades() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.sell(&mut account, 2, true);
    account.live(windvane_model::live::LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    venue.pass(&mut account, 3);
    assert_eq!((fees(&account), booked(&account)), (fees_of(1), 1));
    assert_eq!(adjusted(&account), 0);
}

#[test]
fn a_commission_in_an_adopted_snapshot_moves_the_balance_once() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.sell(&mut account, 2, true);
    // The difference is larger than a commission. The engine adopts the snapshot after two that
    // agree.
    venue.total += -usdt(30);
    let listed = std::mem::take(&mut venue.trades);
    venue.state(&mut account);
    for _ in 0..40 {
        if account.engine.balance(Surface::Futures, USDT).total != venue.total {
            venue.pass(&mut account, 1);
        }
    }
    assert_eq!(
        account.engine.balance(Surface::Futures, USDT).total,
        venue.total
    );
    venue.trades = listed;
    venue.pass(&mut account, 40);
    assert_eq!(fees(&account), fees_of(1), "the strategy paid it");
    assert_eq!(
        account.engine.balance(Surface::Futures, USDT).total,
        venue.total
    );
}

#[test]
fn a_restart_keeps_fills_with_unknown_commissions() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.sell(&mut account, 2, true);
    let mut account = killed(account, limited(next_config()));
    account.begin();
    venue.answer(&mut account);
    venue.pass(&mut account, 5);
    assert_eq!((fees(&account), booked(&account)), (fees_of(1), 1));
    assert_eq!(
        account.engine.balance(Surface::Futures, USDT).total,
        venue.total
    );
    venue.pass(&mut account, 9);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn a_commission_in_event_and_trade_counts_once() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.sell(&mut account, 2, true);
    let order = account.submit(MM, limit(Side::Sell, 1000, 1_000));
    let id = account.id(MM, order);
    let mut sold = fill(id, Side::Sell, 3, 1_000, 1_000, OrderStatus::Filled);
    sold.order_id = VenueOrderId(3);
    let stated = sold.fill.as_mut().unwrap();
    (stated.fee, stated.fee_asset) = (FEE, USDT);
    venue.trades.push(AccountTrade {
        order_id: VenueOrderId(3),
        side: Side::Sell,
        position_side: PositionSide::Both,
        fill: *stated,
        time: account.now,
    });
    account.update(sold);
    venue.total += -FEE;
    venue.qty -= 1_000;
    venue.state(&mut account);
    venue.pass(&mut account, 5);
    assert_eq!((fees(&account), booked(&account)), (fees_of(2), 1));
}

#[test]
fn fills_without_commissions_need_no_read_of_trades() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.fee = Amount::ZERO;
    for trade in 2..=9 {
        venue.sell(&mut account, trade, true);
        venue.pass(&mut account, 1);
    }
    venue.pass(&mut account, 40);
    assert_eq!((venue.reads, fees(&account)), (0, Amount::ZERO));
}

#[test]
fn the_loss_limit_counts_a_commission_before_trades_report_it() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.sell(&mut account, 2, true);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    // The loss is 499.96 plus 0.4 of commission, and the limit is 500.
    account.top(444, 445);
    assert_eq!(account.engine.run_state(), RunState::Halted);
    assert_eq!(booked(&account), 0);
}

#[test]
fn without_account_trades_agreeing_snapshots_correct_the_balance() {
    let mut account = holding();
    let mut venue = Venue::of(&account);
    venue.sell(&mut account, 2, true);
    for _ in 0..20 {
        account.pass(998);
        account.alive();
        account.clock();
        while let Some(subject) = account.take_question() {
            if matches!(subject, Subject::Trades { .. }) {
                let refusal = Refusal {
                    code: -1020,
                    msg: String::new(),
                };
                account.answer(subject, Outcome::Refused(refusal));
            } else if matches!(subject, Subject::Account { .. }) {
                let mut own = account.own_account();
                own.balances[0].total = venue.total;
                account.tell(subject, StateReport::Account(own));
            } else {
                account.tell(subject, nothing(subject));
            }
        }
    }
    assert_eq!(
        account.engine.balance(Surface::Futures, USDT).total,
        venue.total
    );
    assert_eq!(account.engine.run_state(), RunState::Ready);
}
