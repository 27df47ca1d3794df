//! Loss limits: halt for the account, the fault policy for a strategy.

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
    // 0.1 bought at 100, fee 0.01: a loss of 1 is reached at a mid of 90.1.
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
    assert_eq!(halts(&account).len(), 1, "latched, and said once");
}

#[test]
fn a_loss_that_a_closing_fill_realizes_is_seen_at_once() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    let order = account.submit(MM, market(Side::Sell, 100));
    let id = account.id(MM, order);
    let mut sold = fill(id, Side::Sell, 2, 100, 100, OrderStatus::Filled);
    let fill = sold.fill.as_mut().unwrap();
    // Sold at 80 in a book whose mid is 100: flat, and 2 poorer.
    fill.price = windvane_model::Price(800);
    fill.quote_qty = usdt(8);
    account.update(sold);
    assert_eq!(halts(&account), [Some(LossLimit::DailyLoss)]);
}

#[test]
fn fees_of_the_first_fill_count_against_the_day() {
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
        "from 10,100 to 10,000 and a half is less than 101"
    );
    account.top(998, 999);
    assert_eq!(halts(&account), [Some(LossLimit::Drawdown)]);
}

#[test]
fn a_strategys_loss_is_its_own_fault() {
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
    assert_eq!(account.engine.fault(MM), None, "one fee of a cent");
    hold(&mut account, MM, -1, 2);
    assert_eq!(account.engine.fault(MM), Some(FaultKind::Loss), "two");
}

#[test]
fn a_new_day_starts_anew() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.top(949, 951);
    account.pass(86_400_000);
    account.top(900, 901);
    assert_eq!(halts(&account), [], "half of it was lost yesterday");
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
fn resuming_accepts_the_loss_and_counts_from_there() {
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
fn resuming_forgives_no_loss_that_breached_nothing() {
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
fn a_loss_while_a_person_has_halted_is_not_accepted_by_the_way() {
    let mut account = with(|config| config.limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.handle(Input::Command(Command::Halt));
    account.top(889, 891);
    account.handle(Input::Command(Command::Resume));
    account.top(888, 890);
    assert_eq!(halts(&account), [None, Some(LossLimit::DailyLoss)]);
    account.handle(Input::Command(Command::Resume));
    account.top(887, 889);
    assert_eq!(account.engine.run_state(), RunState::Ready, "now it is");
}

#[test]
fn resuming_a_strategy_forgives_no_loss_that_breached_nothing() {
    let mut account = with(|config| config.strategies[0].limits.max_daily_loss = Some(usdt(1)));
    hold(&mut account, MM, 100, 1);
    account.top(949, 951);
    let (strategy, command) = (MM, Command::Resume);
    account.handle(Input::Steer { strategy, command });
    account.top(899, 900);
    assert_eq!(account.engine.fault(MM), Some(FaultKind::Loss));
}
