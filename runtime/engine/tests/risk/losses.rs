//! Loss limits: a breach halts the account, or applies the fault policy of a strategy.

use windvane_model::input::{Command, FaultKind};
use windvane_model::risk::LossLimit;
use windvane_model::rules::Rule;
use windvane_model::run_state::RunState;
use windvane_model::{Amount, Input, Notice, OrderStatus, Request, Side};

use super::support::{Account, MM, OTHER, fill, limit, market};
use super::{hold, refusal, usdt, with};

fn halts(account: &Account) -> Vec<Option<LossLimit>> {
    let limit = |notice: &Notice| match notice {
        Notice::Halted { limit, .. } => Some(*limit),
        _ => None,
    };
    account.notices.iter().filter_map(limit).collect()
}

fn cents(cents: i128) -> Amount {
    Amount(cents * 1_000_000)
}

#[test]
fn a_daily_loss_halts_the_account_and_cancels_own_orders() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    let open = account.submit(OTHER, limit(Side::Buy, 900, 1));
    // Bought 0.1 at 100 with a fee of 0.01: the loss reaches 1 at a mid price of 90.1.
    account.top(901, 902);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.sent.clear();
    account.top(900, 902);
    assert_eq!(halts(&account), [Some(LossLimit::DailyLoss)]);
    let cancel = Request::Cancel {
        instrument: super::BTC,
        client_order_id: account.id(OTHER, open),
    };
    assert_eq!(account.sent, [cancel]);
    for strategy in [MM, OTHER] {
        let rule = refusal(&mut account, strategy, market(Side::Sell, 1));
        assert_eq!(rule, Some(Rule::Halted));
    }
    account.top(890, 892);
    assert_eq!(halts(&account).len(), 1, "halted, and reported once");
}

#[test]
fn a_loss_realized_by_a_closing_fill_halts_at_once() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    let order = account.submit(MM, market(Side::Sell, 100));
    let id = account.id(MM, order);
    let mut sold = fill(id, Side::Sell, 2, 100, 100, OrderStatus::Filled);
    let fill = sold.fill.as_mut().unwrap();
    // Sold at 80 while the mid price is 100: flat, with a loss of 2.
    fill.price = windvane_model::Price(800);
    fill.quote_qty = usdt(8);
    account.update(sold);
    assert_eq!(halts(&account), [Some(LossLimit::DailyLoss)]);
}

#[test]
fn fees_of_the_first_fill_count_for_the_daily_loss() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(cents(1)));
    hold(&mut account, MM, 1, 1);
    assert_eq!(halts(&account), [Some(LossLimit::DailyLoss)]);
}

#[test]
fn a_drawdown_is_measured_from_the_peak_of_equity() {
    // One percent of about 10,000.
    let mut account = with(|config| config.limits.max_drawdown_ppm = Some(10_000));
    hold(&mut account, MM, 10_000, 1);
    account.top(1099, 1101);
    account.top(1000, 1001);
    assert_eq!(
        halts(&account),
        [],
        "the drawdown from 10,100 is still less than 101"
    );
    account.top(998, 999);
    assert_eq!(halts(&account), [Some(LossLimit::Drawdown)]);
}

#[test]
fn a_strategys_loss_quarantines_only_that_strategy() {
    let mut account = with(|config| config.strategies[0].limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    hold(&mut account, OTHER, 100, 2);
    account.top(899, 900);
    assert_eq!(account.engine.fault(MM), Some(FaultKind::Loss));
    assert_eq!(account.engine.fault(OTHER), None);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let order = limit(Side::Buy, 900, 1);
    assert_eq!(refusal(&mut account, MM, order), Some(Rule::Quarantined));
    assert_eq!(refusal(&mut account, OTHER, order), None);
}

#[test]
fn a_strategys_realized_loss_counts_when_it_is_flat() {
    let mut account = with(|config| {
        config.strategies[0].limits.max_daily_loss = Some(cents(2));
    });
    hold(&mut account, MM, 1, 1);
    assert_eq!(account.engine.fault(MM), None, "one fee of 0.01");
    hold(&mut account, MM, -1, 2);
    assert_eq!(account.engine.fault(MM), Some(FaultKind::Loss), "two fees");
}

#[test]
fn a_new_day_resets_the_daily_loss() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.top(949, 951);
    account.pass(86_400_000);
    account.top(900, 901);
    assert_eq!(
        halts(&account),
        [],
        "half of the loss belongs to the day before"
    );
    account.top(849, 850);
    assert_eq!(halts(&account), [Some(LossLimit::DailyLoss)]);
}

#[test]
fn resume_ends_a_halt() {
    let mut account = with(|_| {});
    account.handle(Input::Command(Command::Halt));
    assert_eq!(
        refusal(&mut account, MM, market(Side::Buy, 1)),
        Some(Rule::Halted)
    );
    account.handle(Input::Command(Command::Pause));
    assert_eq!(
        account.engine.run_state(),
        RunState::Halted,
        "a pause does not lift a halt"
    );
    account.handle(Input::Command(Command::Resume));
    assert_eq!(refusal(&mut account, MM, market(Side::Buy, 1)), None);
}

#[test]
fn resume_accepts_the_loss_and_counts_from_there() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.top(890, 892);
    assert_eq!(account.engine.run_state(), RunState::Halted);
    account.handle(Input::Command(Command::Resume));
    account.top(889, 891);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.top(789, 791);
    assert_eq!(
        halts(&account),
        [Some(LossLimit::DailyLoss); 2],
        "a further loss halts again"
    );
}

#[test]
fn resume_keeps_a_loss_that_breached_no_limit() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.top(949, 951);
    for command in [Command::Resume, Command::Pause, Command::Resume] {
        account.handle(Input::Command(command));
    }
    account.handle(Input::Command(Command::Halt));
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.top(899, 900);
    assert_eq!(halts(&account), [None, Some(LossLimit::DailyLoss)]);
}

#[test]
fn a_loss_during_a_halt_by_the_operator_still_counts() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.handle(Input::Command(Command::Halt));
    account.top(889, 891);
    account.handle(Input::Command(Command::Resume));
    account.top(888, 890);
    assert_eq!(halts(&account), [None, Some(LossLimit::DailyLoss)]);
    account.handle(Input::Command(Command::Resume));
    account.top(887, 889);
    assert_eq!(
        account.engine.run_state(),
        RunState::Ready,
        "now the loss is accepted"
    );
}

#[test]
fn resume_of_a_strategy_keeps_a_loss_that_breached_no_limit() {
    let mut account = with(|config| config.strategies[0].limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.top(949, 951);
    let (strategy, command) = (MM, Command::Resume);
    account.handle(Input::Steer { strategy, command });
    account.top(899, 900);
    assert_eq!(account.engine.fault(MM), Some(FaultKind::Loss));
}
