//! Balances that changed without an event. The venue's income history distinguishes transfers from
//! losses. Without the history, a decrease counts as a loss.

use windvane_model::live::LiveInput;
use windvane_model::protocol::{AccountReason, AccountUpdate, Refusal};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{Income, IncomeKind, StateReport, Subject};
use windvane_model::{
    Amount, Input, Notice, OrderStatus, Outcome, PositionSide, Side, Surface, Time, UserEvent,
};

use super::changes_without_event::{holding, limited, usdt};
use super::succession::{killed, next_config};
use super::support::{Account, BTC, MM, USDT, fill, limit};
use super::world::{no_trades, nothing};

/// The venue's response to a query for its income history.
#[derive(Clone, Debug)]
enum History {
    Told(Vec<Income>),
    /// It lists the entries this many seconds late.
    Late(i64, Vec<Income>),
    Refused(i32),
    /// The outcome of the query is unknown.
    Silent,
}

fn entry(account: &Account, kind: IncomeKind, whole: i128) -> Income {
    Income {
        kind,
        instrument: (kind == IncomeKind::Funding).then_some(BTC),
        asset: USDT,
        amount: usdt(whole),
        time: account.now,
    }
}

/// Why the run misses an event.
#[derive(Clone, Copy, Debug)]
enum Gap {
    /// The process was killed, and another one starts.
    Down,
    /// The user stream was disconnected.
    Cut,
    /// One event was lost.
    Lost,
}

const GAPS: [Gap; 3] = [Gap::Down, Gap::Cut, Gap::Lost];

impl Gap {
    fn open(self, account: Account) -> Account {
        let mut account = account;
        account.wait(1);
        if matches!(self, Self::Cut) {
            account.live(LiveInput::StreamDown {
                surface: Surface::Futures,
            });
        }
        account
    }

    fn close(self, mut account: Account) -> Account {
        account.pass(3_000);
        match self {
            Self::Down => {
                account = killed(account, limited(next_config()));
                account.begin();
            }
            Self::Cut => account.live(LiveInput::StreamUp {
                surface: Surface::Futures,
            }),
            Self::Lost => account.wait(30),
        }
        account
    }
}

/// Lets the venue answer for this many seconds. Its balance is `moved` above the engine's.
fn answer(account: &mut Account, moved: Amount, history: &History, seconds: u32) {
    let total = account.own_account().balances[0].total + moved;
    answer_for(account, total, history, seconds);
    assert_eq!(account.own_account().balances[0].total, total);
}

/// Lets the venue answer for this many seconds with this balance.
fn answer_for(account: &mut Account, total: Amount, history: &History, seconds: u32) {
    let began = account.now;
    for _ in 0..seconds {
        for _ in 0..4 {
            while let Some(subject) = account.take_question() {
                let mut own = account.own_account();
                own.balances[0].total = total;
                let income = |entries: &[Income]| {
                    Outcome::Done(StateReport::Income {
                        entries: entries.to_vec(),
                        more: false,
                    })
                };
                let outcome = match (subject, history) {
                    (Subject::Account { .. }, _) => Outcome::Done(StateReport::Account(own)),
                    (Subject::Trades { .. }, _) => Outcome::Done(no_trades()),
                    (Subject::Income { .. }, History::Told(entries)) => income(entries),
                    (Subject::Income { .. }, History::Late(late, entries)) => {
                        let late = account.now < began.plus_ms(late * 1_000);
                        income(if late { &[] } else { entries })
                    }
                    (Subject::Income { .. }, History::Refused(code)) => Outcome::Refused(Refusal {
                        code: *code,
                        msg: String::new(),
                    }),
                    (Subject::Income { .. }, History::Silent) => Outcome::Unknown,
                    _ => Outcome::Done(nothing(subject)),
                };
                account.answer(subject, outcome);
            }
            account.pass(250);
        }
        account.alive();
        account.clock();
        account.confirm_countdowns();
        account.top(999, 1001);
    }
}

fn unexplained(account: &Account) -> Vec<Amount> {
    let reported = account.notices.iter().filter_map(|notice| match notice {
        Notice::Unexplained { amount, .. } => Some(*amount),
        _ => None,
    });
    reported.collect()
}

/// A change without an event, and the expected result.
struct Case {
    moved: i128,
    history: fn(&Account) -> History,
    state: RunState,
    reported: &'static [i128],
}

const CASES: &[Case] = &[
    Case {
        moved: -1_000,
        history: |a| History::Told(vec![entry(a, IncomeKind::Transfer, -1_000)]),
        state: RunState::Ready,
        reported: &[],
    },
    Case {
        moved: -1_000,
        history: |a| History::Late(6, vec![entry(a, IncomeKind::Transfer, -1_000)]),
        state: RunState::Ready,
        reported: &[],
    },
    Case {
        moved: -600,
        history: |a| History::Told(vec![entry(a, IncomeKind::Funding, -600)]),
        state: RunState::Halted,
        reported: &[],
    },
    Case {
        moved: -600,
        history: |a| History::Told(vec![entry(a, IncomeKind::Other, -600)]),
        state: RunState::Halted,
        reported: &[],
    },
    // A withdrawal, and a loss of 400 or of 600.
    Case {
        moved: -1_400,
        history: |a| {
            let loss = entry(a, IncomeKind::Other, -400);
            History::Told(vec![entry(a, IncomeKind::Transfer, -1_000), loss])
        },
        state: RunState::Ready,
        reported: &[],
    },
    Case {
        moved: -1_600,
        history: |a| {
            let loss = entry(a, IncomeKind::Other, -600);
            History::Told(vec![entry(a, IncomeKind::Transfer, -1_000), loss])
        },
        state: RunState::Halted,
        reported: &[],
    },
    // A deposit does not hide a loss.
    Case {
        moved: 400,
        history: |a| {
            let loss = entry(a, IncomeKind::Other, -600);
            History::Told(vec![entry(a, IncomeKind::Transfer, 1_000), loss])
        },
        state: RunState::Halted,
        reported: &[],
    },
    // Nothing explains the change.
    Case {
        moved: -600,
        history: |_| History::Told(Vec::new()),
        state: RunState::Halted,
        reported: &[-600],
    },
    Case {
        moved: -600,
        history: |_| History::Refused(404),
        state: RunState::Halted,
        reported: &[-600],
    },
    Case {
        moved: -600,
        history: |_| History::Refused(-1003),
        state: RunState::Halted,
        reported: &[-600],
    },
    Case {
        moved: -600,
        history: |_| History::Silent,
        state: RunState::Halted,
        reported: &[-600],
    },
    Case {
        moved: -400,
        history: |_| History::Refused(404),
        state: RunState::Ready,
        reported: &[-400],
    },
    // The listed transfer is not the one that happened.
    Case {
        moved: -600,
        history: |a| History::Told(vec![entry(a, IncomeKind::Transfer, -1_000)]),
        state: RunState::Halted,
        reported: &[-600],
    },
];

#[test]
fn the_income_history_distinguishes_transfers_from_losses() {
    for gap in GAPS {
        for (place, case) in CASES.iter().enumerate() {
            let account = gap.open(holding());
            let history = (case.history)(&account);
            let mut account = gap.close(account);
            account.notices.clear();
            answer(&mut account, usdt(case.moved), &history, 40);
            let state = account.engine.run_state();
            assert_eq!(state, case.state, "case {place} {gap:?} {history:?}");
            let reported: Vec<_> = case.reported.iter().map(|whole| usdt(*whole)).collect();
            assert_eq!(unexplained(&account), reported, "case {place} {gap:?}");
        }
    }
}

#[test]
fn without_a_history_late_transfer_events_explain_the_change() {
    let mut account = holding();
    for transfer in ["first", "second"] {
        let total = account.own_account().balances[0].total - usdt(600);
        let event = account_event(&account, AccountReason::Other, (total, -usdt(600)));
        account.wait(30);
        account.notices.clear();
        // REST is current, and the event arrives as late as the documents allow.
        answer_for(&mut account, total, &History::Refused(404), 8);
        assert_eq!(unexplained(&account), [], "{transfer}");
        account.handle(Input::User(&event));
        answer(&mut account, usdt(0), &History::Refused(404), 40);
        assert_eq!(unexplained(&account), [], "{transfer}");
        assert_eq!(account.engine.run_state(), RunState::Ready, "{transfer}");
    }
}

#[test]
fn a_second_transfer_is_queried_again() {
    let mut account = holding();
    for transfer in ["first", "second"] {
        let listed = entry(&account, IncomeKind::Transfer, -600);
        account.wait(30);
        account.notices.clear();
        answer(&mut account, -usdt(600), &History::Told(vec![listed]), 40);
        assert_eq!(unexplained(&account), [], "{transfer}");
        assert_eq!(account.engine.run_state(), RunState::Ready, "{transfer}");
    }
}

#[test]
fn an_increase_without_an_event_does_not_hide_a_loss() {
    for history in [History::Refused(404), History::Told(Vec::new())] {
        let account = Gap::Cut.open(holding());
        let mut account = Gap::Cut.close(account);
        account.notices.clear();
        answer(&mut account, usdt(1_000), &history, 40);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        assert_eq!(
            unexplained(&account),
            [usdt(1_000)],
            "it is reported as a deposit"
        );
        account.top(459, 461);
        assert_eq!(account.engine.run_state(), RunState::Halted);
    }
}

#[test]
fn a_profit_without_an_event_does_not_move_the_start_of_the_day() {
    let account = Gap::Cut.open(holding());
    let funding = entry(&account, IncomeKind::Funding, 300);
    let mut account = Gap::Cut.close(account);
    answer(&mut account, usdt(300), &History::Told(vec![funding]), 10);
    // 700 below the peak of the day, and 400 below its start.
    account.top(299, 301);
    assert_ne!(account.engine.run_state(), RunState::Halted);
}

fn account_event(
    account: &Account,
    reason: AccountReason,
    (total, change): (Amount, Amount),
) -> UserEvent {
    let mut reported = account.own_account();
    reported.balances[0].total = total;
    reported.balances[0].change = change;
    UserEvent::Account(AccountUpdate {
        surface: Surface::Futures,
        reason,
        balances: reported.balances,
        positions: Vec::new(),
        transaction_time: account.now,
        event_time: account.now,
    })
}

fn funding(account: &Account) -> Amount {
    let ledgers = account.engine.ledgers();
    ledgers.strategies[0]
        .at(BTC, PositionSide::Both)
        .position
        .funding
}

#[test]
fn funding_from_the_history_is_booked_once() {
    for gap in [Gap::Cut, Gap::Down] {
        let account = gap.open(holding());
        let paid = entry(&account, IncomeKind::Funding, -20);
        let before = account.own_account().balances[0].total;
        let late = account_event(
            &account,
            AccountReason::FundingFee,
            (before - usdt(20), -usdt(20)),
        );
        let mut account = gap.close(account);
        answer(&mut account, -usdt(20), &History::Told(vec![paid]), 10);
        assert_eq!(funding(&account), -usdt(20), "{gap:?}");
        // The stream reports it again after the reconnect.
        account.handle(Input::User(&late));
        assert_eq!(funding(&account), -usdt(20), "{gap:?}");
        assert_eq!(account.own_account().balances[0].total, before - usdt(20));
    }
}

#[test]
fn a_reported_transfer_does_not_explain_a_later_loss() {
    let mut account = holding();
    let before = account.own_account().balances[0].total;
    let gone = account_event(
        &account,
        AccountReason::Other,
        (before - usdt(600), -usdt(600)),
    );
    let listed = entry(&account, IncomeKind::Transfer, -600);
    account.handle(Input::User(&gone));
    account.top(999, 1001);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    for gap in GAPS {
        let account = gap.open(holding());
        let mut account = account;
        account.handle(Input::User(&gone));
        let mut account = gap.close(account);
        answer(&mut account, -usdt(600), &History::Told(vec![listed]), 40);
        assert_eq!(account.engine.run_state(), RunState::Halted, "{gap:?}");
    }
}

#[test]
fn funding_without_a_stated_change_counts_at_once() {
    for (paid, change) in [(-30, -30), (-30, 0)] {
        let mut config = limited(super::support::config());
        config.limits.max_daily_loss = Some(usdt(25));
        config.strategies[0].limits.max_daily_loss = Some(usdt(25));
        let mut account = Account::new(config);
        account.begin();
        account.sync();
        account.top(999, 1001);
        let order = account.submit(MM, limit(Side::Buy, 1000, 10_000));
        let id = account.id(MM, order);
        account.update(fill(id, Side::Buy, 1, 10_000, 10_000, OrderStatus::Filled));
        account.seconds(2);
        account.top(999, 1001);
        let before = account.own_account().balances[0].total;
        let reported = (before + usdt(paid), usdt(change));
        let event = account_event(&account, AccountReason::FundingFee, reported);
        account.handle(Input::User(&event));
        assert_eq!(account.engine.run_state(), RunState::Halted, "{change}");
        assert_eq!(funding(&account), usdt(paid), "{change}");
        account.handle(Input::User(&event));
        assert_eq!(funding(&account), usdt(paid), "repeated event: {change}");
        let known = account.own_account().balances[0].total;
        assert_eq!(known, before + usdt(paid), "{change}");
    }
}

#[test]
fn a_funding_event_with_an_unchanged_balance_pays_nothing() {
    let mut account = holding();
    let before = account.own_account().balances[0].total;
    let event = account_event(&account, AccountReason::FundingFee, (before, Amount::ZERO));
    account.notices.clear();
    account.handle(Input::User(&event));
    assert_eq!(funding(&account), Amount::ZERO);
    let paid = |notice: &Notice| matches!(notice, Notice::Funding { .. });
    assert!(!account.notices.iter().any(paid));
}

/// The funding of two symbols, or two transfers, may have the same amount and the same time.
#[test]
fn equal_payments_at_the_same_time_count_but_repeats_do_not() {
    for reason in [AccountReason::FundingFee, AccountReason::Other] {
        let mut account = holding();
        let before = account.own_account().balances[0].total;
        let first = account_event(&account, reason, (before - usdt(30), -usdt(30)));
        let second = account_event(&account, reason, (before - usdt(60), -usdt(30)));
        for event in [&first, &second, &first, &second] {
            account.handle(Input::User(event));
        }
        let total = account.engine.balance(Surface::Futures, USDT).total;
        assert_eq!(total, before - usdt(60), "{reason:?}");
    }
}

/// On a new connection a venue may send its last events again, with the event time of the second
/// sending.
#[test]
fn a_payment_repeated_with_a_new_event_time_counts_once() {
    for reason in [
        AccountReason::FundingFee,
        AccountReason::Other,
        AccountReason::Charge,
    ] {
        for is_restarted in [false, true] {
            let mut account = holding();
            let before = account.own_account().balances[0].total;
            let paid = account_event(&account, reason, (before - usdt(300), -usdt(300)));
            account.handle(Input::User(&paid));
            account.pass(500);
            // Another payment changes the balance so that the repeated event looks like a new one.
            let other = (before - usdt(290), usdt(10));
            let other = account_event(&account, AccountReason::Other, other);
            account.handle(Input::User(&other));
            account.seconds(2);
            if is_restarted {
                account = killed(account, limited(next_config()));
                account.begin();
                account.sync();
                account.top(999, 1001);
            }
            let UserEvent::Account(mut again) = paid else {
                unreachable!();
            };
            again.event_time = account.now;
            account.handle(Input::User(&UserEvent::Account(again)));
            account.top(999, 1001);
            let total = account.engine.balance(Surface::Futures, USDT).total;
            assert_eq!(total, before - usdt(290), "{reason:?} {is_restarted}");
            assert_ne!(account.engine.run_state(), RunState::Halted, "{reason:?}");
        }
    }
}

/// After the first event the balance returned to its old value, so the repeated event fits it.
#[test]
fn a_repeated_payment_is_ignored_even_if_its_balance_fits() {
    let mut account = holding();
    let before = account.own_account().balances[0].total;
    let paid = account_event(
        &account,
        AccountReason::FundingFee,
        (before - usdt(30), -usdt(30)),
    );
    account.handle(Input::User(&paid));
    account.pass(500);
    let back = account_event(&account, AccountReason::Other, (before, usdt(30)));
    account.handle(Input::User(&back));
    account.handle(Input::User(&paid));
    assert_eq!(account.engine.balance(Surface::Futures, USDT).total, before);
    assert_eq!(funding(&account), -usdt(30));
}

/// Lets the venue answer for this many seconds with these balances of futures and spot. It answers
/// queries for its income history after five seconds. Meanwhile spot loses 1, and the spot account
/// is read because its stream reconnected.
fn answer_both(account: &mut Account, totals: &mut [Amount; 2], seconds: i64) {
    let until = account.now.plus_ms(1_000 * seconds);
    let mut history: Option<(Subject, Time)> = None;
    while account.now < until {
        if let Some((subject, asked)) = history
            && account.now > asked.plus_ms(5_000)
        {
            let entries = Vec::new();
            account.tell(
                subject,
                StateReport::Income {
                    entries,
                    more: false,
                },
            );
            history = None;
        }
        while let Some(subject) = account.take_question() {
            let surface = Surface::Spot;
            let mut own = account.own_account();
            if subject == (Subject::Account { surface }) {
                own.balances[0].total = totals[1];
                own.positions.clear();
            } else {
                own.balances[0].total = totals[0];
            }
            match subject {
                Subject::Income { .. } => {
                    history = Some((subject, account.now));
                    totals[1] += -usdt(1);
                    account.live(LiveInput::StreamDown { surface });
                    account.live(LiveInput::StreamUp { surface });
                }
                Subject::Account { .. } => account.tell(subject, StateReport::Account(own)),
                Subject::Trades { .. } => account.tell(subject, no_trades()),
                _ => account.tell(subject, nothing(subject)),
            }
        }
        account.pass(250);
        for surface in [Surface::Futures, Surface::Spot] {
            account.live(LiveInput::StreamAlive { surface });
            account.live(LiveInput::Clock {
                surface,
                offset_ns: 0,
                error_ns: 1,
            });
        }
        account.confirm_countdowns();
        account.top(999, 1001);
    }
}

#[test]
fn a_spot_snapshot_does_not_end_a_futures_query() {
    let mut config = limited(super::support::config());
    config.live.as_mut().unwrap().surfaces.push(Surface::Spot);
    let mut account = Account::new(config);
    account.begin();
    account.live(LiveInput::StreamUp {
        surface: Surface::Spot,
    });
    let mut totals = [usdt(10_000), usdt(50)];
    answer_both(&mut account, &mut totals, 40);
    totals[0] += -usdt(10);
    answer_both(&mut account, &mut totals, 120);
    let surfaces = [Surface::Futures, Surface::Spot];
    let known = surfaces.map(|surface| account.engine.balance(surface, USDT).total);
    assert_eq!(known, totals);
}
