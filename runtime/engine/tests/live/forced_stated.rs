//! Closes that an account event reports without an order event, while the venue does not list
//! forced orders.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::forced::ForcedClose;
use windvane_model::protocol::{AccountReason, AccountUpdate, PositionUpdate};
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::state_report::{Income, IncomeKind, StateReport, Subject};
use windvane_model::{
    Amount, Input, OrderStatus, Outcome, PositionSide, Side, Surface, Time, UserEvent,
};

use super::changes_without_event::{self, usdt};
use super::forced::{
    answer_with_trades, held, holding, listed_order, minute, refused_route, reports, sold,
};
use super::support::{
    Account, BTC, MM, OTHER, USDT, fill, instrument, limit, report as order_report, update,
};
use super::world::{no_trades, nothing, position, ready};

const FUTURES: Surface = Surface::Futures;

/// The wallet balance after 40 were closed at 90.0 without a fee.
fn wallet_after_loss(account: &Account) -> Amount {
    account.engine.balance(FUTURES, USDT).total - instrument().notional(100, 40)
}

/// An account event reports the wallet balance and a flat position.
fn state_close(account: &mut Account) {
    state_left(account, vec![position(0)]);
}

/// An account event reports the wallet balance and these positions.
fn state_left(account: &mut Account, positions: Vec<PositionUpdate>) {
    let mut reported = account.own_account();
    reported.balances[0].total = wallet_after_loss(account);
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Order,
        balances: reported.balances,
        positions,
        transaction_time: account.now,
        event_time: account.now,
    })));
}

#[test]
fn without_forced_orders_an_account_event_alone_is_a_forced_close() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let left = wallet_after_loss(&account);
    state_close(&mut account);
    minute(&mut account, &[], Some(left), &refused_route());
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
    let reports = reports(&account);
    let report = &reports[0];
    let shares: Vec<_> = report.shares.iter().map(|share| share.qty).collect();
    assert_eq!((reports.len(), report.kind), (1, ForcedClose::Unreported));
    assert_eq!((shares, report.unowned, report.left), (vec![30, 10], 0, 0));
    assert_eq!(report.quote, instrument().notional(900, 40));
    assert_eq!(report.realized_pnl, -instrument().notional(100, 40));
}

/// An account event reports this loss and a flat position. Account snapshots and this response
/// about forced orders follow.
fn lose(account: &mut Account, lost: Amount, forced: &Outcome<StateReport>) {
    let mut reported = account.own_account();
    reported.balances[0].total += -lost;
    let left = reported.balances[0].total;
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Order,
        balances: reported.balances,
        positions: vec![position(0)],
        transaction_time: account.now,
        event_time: account.now,
    })));
    minute(account, &[], Some(left), forced);
}

#[test]
fn the_loss_of_a_close_is_the_decrease_of_the_stated_balance() {
    for (price, fee) in [(900, 0), (900, 2_000_000), (400, 1_000_000)] {
        let mut account = holding(30, 10);
        minute(&mut account, &[], None, &refused_route());
        let lost = instrument().notional(1_000 - price, 40) + Amount(fee);
        lose(&mut account, lost, &refused_route());
        let reports = reports(&account);
        assert_eq!(reports.len(), 1, "{price}");
        let report = &reports[0];
        assert_eq!(report.realized_pnl, -lost, "{price}");
        assert!(report.has_balance_figures());
        let shares: Amount = report.shares.iter().map(|one| one.realized_pnl).sum();
        assert_eq!(shares, -lost, "{price}");
    }
}

#[test]
fn a_listed_order_splits_the_loss_into_price_and_commission() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let paid = |account: &Account, strategy: usize| {
        let ledgers = account.engine.ledgers();
        let position = ledgers.strategies[strategy].at(BTC, PositionSide::Both);
        position.position.fees
    };
    let before = [paid(&account, 0), paid(&account, 1)];
    let listed = StateReport::ForcedOrders(vec![listed_order(&account, 40)]);
    let lost = instrument().notional(100, 40);
    lose(
        &mut account,
        lost + Amount(2_000_000),
        &Outcome::Done(listed),
    );
    let reports = reports(&account);
    let report = &reports[0];
    assert_eq!((reports.len(), report.kind), (1, ForcedClose::Liquidation));
    assert_eq!(report.quote, instrument().notional(900, 40));
    assert_eq!(
        (report.realized_pnl, report.fee),
        (-lost, Amount(2_000_000))
    );
    let after = [paid(&account, 0), paid(&account, 1)];
    let of_close = [after[0] - before[0], after[1] - before[1]];
    assert_eq!(of_close, [Amount(1_500_000), Amount(500_000)]);
    let external = account
        .engine
        .ledgers()
        .external
        .at(BTC, PositionSide::Both);
    let external = external.position;
    assert_eq!(external.realized_pnl - external.fees, Amount::ZERO);
    assert_eq!(external.fees, Amount::ZERO);
}

#[test]
fn an_account_event_without_the_flat_position_is_a_forced_close() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let left = wallet_after_loss(&account);
    state_left(&mut account, Vec::new());
    minute(&mut account, &[], Some(left), &refused_route());
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
    assert_eq!(reports(&account)[0].kind, ForcedClose::Unreported);
}

#[test]
fn a_close_by_hand_after_an_account_event_is_not_a_forced_close() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let left = wallet_after_loss(&account);
    state_left(&mut account, Vec::new());
    account.pass(1_500);
    let mut by_hand = sold(9, 40, 40, 40);
    if let Some(fill) = &mut by_hand.fill {
        fill.fee = Amount::ZERO;
    }
    account.update(by_hand);
    minute(&mut account, &[], Some(left), &refused_route());
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(reports(&account), []);
}

/// A market maker quotes both sides again at once. Orders that it places after the event cannot
/// have closed the position.
#[test]
fn a_forced_close_is_found_although_an_own_exit_follows() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let left = wallet_after_loss(&account);
    state_close(&mut account);
    let exit = account.submit(MM, limit(Side::Sell, 1100, 10));
    account.confirm_countdowns();
    let id = account.id(MM, exit);
    account.placed(id, Outcome::Done(order_report(id, OrderStatus::New, 0)));
    account.update(update(id, Side::Sell, OrderStatus::New, 0));
    account.pass(1_200);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Unlisted(BTC)]
    );
    account.canceled(
        id,
        Outcome::Done(order_report(id, OrderStatus::Canceled, 0)),
    );
    account.update(update(id, Side::Sell, OrderStatus::Canceled, 0));
    minute(&mut account, &[], Some(left), &refused_route());
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
    assert_eq!(reports(&account)[0].kind, ForcedClose::Unreported);
}

/// The venue closes 36 of 40. Then a strategy sells 40. Both account events arrive later.
fn close_before_own_sale(account: &mut Account, sale_ms: i64, by_answer: bool) {
    minute(account, &[], None, &refused_route());
    let made = account.now;
    let wait = |account: &mut Account, ms: i64| {
        account.pass(ms);
        account.alive();
        account.clock();
    };
    wait(account, sale_ms);
    let order = account.submit(OTHER, limit(Side::Sell, 1_000, 40));
    account.confirm_countdowns();
    let id = account.id(OTHER, order);
    let sold = account.now;
    let mut sale = fill(id, Side::Sell, 3, 40, 40, OrderStatus::Filled);
    sale.transaction_time = sold;
    if by_answer {
        let mut filled = order_report(id, OrderStatus::Filled, 40);
        filled.cum_quote = instrument().notional(1_000, 40);
        filled.update_time = sold;
        account.placed(id, Outcome::Done(filled));
        wait(account, 300);
    } else {
        account.update(sale);
    }
    assert_eq!(held(account), [0, 40, -40]);
    wait(account, 2_000);
    let late = by_answer.then_some(sale);
    let left = account.own_account().balances[0].total - instrument().notional(100, 36);
    for (qty, made) in [(4, made), (-36, sold)] {
        if let Some(sale) = late.filter(|_| qty < 0) {
            account.update(sale);
        }
        let mut reported = account.own_account();
        reported.balances[0].total = left;
        account.handle(Input::User(&UserEvent::Account(AccountUpdate {
            surface: FUTURES,
            reason: AccountReason::Order,
            balances: reported.balances,
            positions: vec![position(qty)],
            transaction_time: made,
            event_time: made,
        })));
    }
    for _ in 0..120 {
        let read = Some((position(-36), left));
        answer_with_trades(account, &[], read, &refused_route());
        wait(account, 499);
    }
}

#[test]
fn a_close_reported_after_a_later_own_sale_is_a_forced_close() {
    for by_answer in [false, true] {
        let mut account = holding(40, 0);
        close_before_own_sale(&mut account, 3_000, by_answer);
        assert_eq!(held(&account), [-36, 4, -40], "{by_answer}");
        let reports = reports(&account);
        let closed: Vec<_> = reports.iter().map(|one| (one.kind, one.qty)).collect();
        assert_eq!(closed, [(ForcedClose::Unreported, 36)]);
        assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
    }
}

/// The own sale may have been first. Then the outside order sold a quantity that was not there any
/// more.
#[test]
fn an_outside_sale_within_a_second_of_an_own_is_no_forced_close() {
    for by_answer in [false, true] {
        let mut account = holding(40, 0);
        close_before_own_sale(&mut account, 500, by_answer);
        assert_eq!(held(&account), [-36, 40, -40], "{by_answer}");
        assert_eq!(reports(&account), []);
    }
}

#[test]
fn an_unexplained_close_before_a_disconnect_is_a_forced_close() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let left = wallet_after_loss(&account);
    state_close(&mut account);
    account.pass(1_000);
    // The order event of a person may have been lost during the disconnect. Nothing shows that.
    account.live(windvane_model::live::LiveInput::StreamDown { surface: FUTURES });
    account.live(windvane_model::live::LiveInput::StreamUp { surface: FUTURES });
    for _ in 0..2 {
        minute(&mut account, &[], Some(left), &refused_route());
    }
    assert_eq!(held(&account), [0, 0, 0]);
    let kinds: Vec<_> = reports(&account).iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [ForcedClose::Unreported]);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
}

#[test]
fn a_close_by_hand_two_seconds_after_its_account_event_is_found() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let left = wallet_after_loss(&account);
    state_close(&mut account);
    for _ in 0..4 {
        answer_with_trades(&mut account, &[], None, &refused_route());
        account.pass(500);
        account.alive();
    }
    account.update(sold(9, 40, 40, 40));
    for _ in 0..2 {
        minute(&mut account, &[], Some(left), &refused_route());
    }
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(reports(&account), []);
}

#[test]
fn an_unexplained_close_degrades_the_run_within_a_second() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    assert_eq!(account.engine.run_state(), RunState::Ready);
    state_close(&mut account);
    account.pass(1_000);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::Unlisted(BTC)],
        "{:?}",
        account.sent
    );
    assert!(
        account.take_question().is_some(),
        "the account is read at once"
    );
}

/// A person's order had two fills, and the events of the first were lost.
#[test]
fn a_larger_position_in_an_account_event_is_not_a_close() {
    let mut account = ready();
    minute(&mut account, &[], None, &refused_route());
    let total = account.own_account().balances[0].total;
    let id = windvane_model::ClientOrderId::new("web_1").unwrap();
    account.update(fill(id, Side::Buy, 9, 7, 14, OrderStatus::Filled));
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Order,
        balances: account.own_account().balances,
        positions: vec![position(14)],
        transaction_time: account.now,
        event_time: account.now,
    })));
    for _ in 0..120 {
        let read = Some((position(14), total));
        answer_with_trades(&mut account, &[], read, &refused_route());
        account.pass(499);
        account.alive();
        account.clock();
    }
    assert_eq!(account.own_account().positions, [position(14)]);
    assert_eq!(reports(&account), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

/// Returns the seconds until the loss limit halts after an event that reports the wallet of a
/// close, while every snapshot is still older. `None` if it does not halt within 20 seconds.
fn halts_after(account: &mut Account, lost: i128, made: Time) -> Option<i64> {
    let mut reported = account.own_account();
    reported.balances[0].total += -usdt(lost);
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Order,
        balances: reported.balances,
        positions: Vec::new(),
        transaction_time: made,
        event_time: made,
    })));
    let began = account.now;
    for _ in 0..40 {
        let read = account.own_account();
        let read = Some((read.positions[0], read.balances[0].total));
        answer_with_trades(account, &[], read, &refused_route());
        account.pass(499);
        account.alive();
        account.clock();
        account.top(999, 1001);
        if account.engine.run_state() == RunState::Halted {
            return Some((account.now.0 - began.0) / 1_000_000_000);
        }
    }
    None
}

#[test]
fn a_loss_in_an_event_halts_although_snapshots_are_stale() {
    let mut account = changes_without_event::holding();
    let made = account.now;
    let halted = halts_after(&mut account, 600, made);
    assert!(halted.is_some_and(|seconds| seconds <= 4), "{halted:?}");
    let mut account = changes_without_event::holding();
    let made = account.now;
    assert_eq!(
        halts_after(&mut account, 300, made),
        None,
        "the limit is 500"
    );
    // An event older than a booked fill does not show the current balance.
    let mut account = changes_without_event::holding();
    let made = account.now;
    account.pass(1_000);
    account.alive();
    let order = account.submit(MM, limit(Side::Buy, 1_000, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let mut bought = fill(id, Side::Buy, 2, 10, 10, OrderStatus::Filled);
    bought.transaction_time = account.now;
    account.update(bought);
    assert_eq!(halts_after(&mut account, 600, made), None);
}

#[test]
fn a_snapshot_older_than_the_event_keeps_the_degraded_reason() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let before = account.own_account();
    state_close(&mut account);
    let mut was_degraded = false;
    for quarter in 0..4 * 8 {
        account.pass(249);
        account.alive();
        account.clock();
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                windvane_model::state_report::Subject::Account { .. } => {
                    StateReport::Account(before.clone())
                }
                subject => super::world::nothing(subject),
            };
            account.tell(subject, state_report);
        }
        account.confirm_countdowns();
        let is_degraded = account
            .engine
            .degraded_reasons()
            .contains(&DegradedReason::Unlisted(BTC));
        assert!(is_degraded || !was_degraded, "{quarter}");
        was_degraded |= is_degraded;
    }
    assert!(was_degraded);
}

/// An account event with a lower wallet balance is pending when a snapshot with a higher one is
/// adopted. It is unknown which is newer, so the limit halts only if both breach it.
#[test]
fn a_pending_account_event_alone_does_not_halt_after_a_snapshot() {
    let mut account = changes_without_event::holding();
    let mut reported = account.own_account();
    let wallet = reported.balances[0].total;
    reported.balances[0].total = wallet - usdt(200);
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Order,
        balances: reported.balances,
        positions: reported.positions,
        transaction_time: account.now,
        event_time: account.now,
    })));
    let mut price = 1_000;
    let mut was_taken = false;
    for _ in 0..22 {
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::OpenOrders { .. } => StateReport::OpenOrders(Vec::new()),
                Subject::Trades { .. } => no_trades(),
                Subject::Account { .. } => {
                    let mut read = account.own_account();
                    read.balances[0].total = wallet + usdt(200);
                    StateReport::Account(read)
                }
                Subject::Income { .. } => StateReport::Income {
                    entries: vec![Income {
                        kind: IncomeKind::Other,
                        instrument: None,
                        asset: USDT,
                        amount: usdt(200),
                        time: account.now,
                    }],
                    more: false,
                },
                subject => nothing(subject),
            };
            account.tell(subject, state_report);
        }
        if account.own_account().balances[0].total == wallet + usdt(200) {
            // For 10 that were bought at 100, the loss is 150 with the snapshot and 550 with the
            // event.
            price = 650;
            was_taken = true;
        }
        account.pass(499);
        account.alive();
        account.clock();
        account.top(price - 1, price + 1);
        assert_ne!(account.engine.run_state(), RunState::Halted);
    }
    assert!(was_taken);
}
