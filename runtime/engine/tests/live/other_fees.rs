//! Commissions in another asset than the asset of equity.

use windvane_model::config::EngineConfig;
use windvane_model::input::FaultKind;
use windvane_model::instrument::Instrument;
use windvane_model::live::LiveInput;
use windvane_model::protocol::Refusal;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate};
use windvane_model::run_state::RunState;
use windvane_model::state_report::{AccountTrade, Income, IncomeKind, StateReport, Subject};
use windvane_model::{
    Amount, AssetId, Input, InstrumentId, MarketEvent, Notice, OrderStatus, Outcome, PositionSide,
    Side, Surface, Time, UserEvent,
};

use super::succession::{killed, next_config};
use super::support::{Account, MM, USDT, fill, instrument, limit};
use super::world::{live_config, no_trades, nothing};

const TOKEN: AssetId = AssetId(2);
const TOKENUSDT: InstrumentId = InstrumentId(1);

const fn usdt(whole: i128) -> Amount {
    Amount(whole * 100_000_000)
}

fn with_token(mut config: EngineConfig, priced: bool) -> EngineConfig {
    config.live = Some(live_config());
    config.assets.push("SVC".to_owned());
    config.balances.push((Surface::Futures, TOKEN, usdt(1_000)));
    if priced {
        config.instruments.push(Instrument {
            symbol: "SVCUSDT".to_owned(),
            base: TOKEN,
            ..instrument()
        });
    }
    config
}

/// A run with these loss limits of the account and of the strategy.
fn ready(priced: bool, account_limit: i128, strategy_limit: i128) -> Account {
    let mut config = with_token(super::support::config(), priced);
    config.limits.max_daily_loss = Some(usdt(account_limit));
    config.strategies[0].limits.max_daily_loss = Some(usdt(strategy_limit));
    let mut account = Account::new(config);
    account.begin();
    let left = tokens(&account);
    answer(&mut account, left, &[]);
    account.top(999, 1001);
    if priced {
        account.handle(Input::Market {
            instrument: TOKENUSDT,
            event: MarketEvent::Mark {
                mark: 50_000_000,
                index: 0,
                funding_rate: 0,
                next_funding: Time::NEVER,
            },
        });
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account
}

/// Buys 10 at 100 for a commission of this many tokens.
fn buy(account: &mut Account, tokens: i128) {
    let order = account.submit(MM, limit(Side::Buy, 1000, 10_000));
    let id = account.id(MM, order);
    let mut bought = fill(id, Side::Buy, 1, 10_000, 10_000, OrderStatus::Filled);
    let fill = bought.fill.as_mut().unwrap();
    fill.fee = usdt(tokens);
    fill.fee_asset = TOKEN;
    account.update(bought);
}

/// The account as the engine knows it, with this many tokens.
fn account_with(account: &Account, left: Amount) -> StateReport {
    let mut own = account.own_account();
    own.balances.push(BalanceUpdate {
        asset: TOKEN,
        total: left,
        locked: Amount::ZERO,
        change: Amount::ZERO,
    });
    StateReport::Account(own)
}

/// Answers a round as a venue that lists every balance, with this many tokens.
fn answer(account: &mut Account, left: Amount, history: &[Income]) {
    while let Some(subject) = account.take_question() {
        let state_report = match subject {
            Subject::Account { .. } => account_with(account, left),
            Subject::Trades { .. } => no_trades(),
            Subject::Income { .. } => StateReport::Income {
                entries: history.to_vec(),
                more: false,
            },
            _ => nothing(subject),
        };
        account.tell(subject, state_report);
    }
}

fn tokens(account: &Account) -> Amount {
    account.engine.balance(Surface::Futures, TOKEN).total
}

fn unpriced(account: &Account) -> usize {
    let reported = account.notices.iter();
    reported
        .filter(|notice| matches!(notice, Notice::FeeUnpriced { .. }))
        .count()
}

#[test]
fn commissions_in_a_priced_asset_count_at_its_price() {
    for (paid, halted) in [(199, false), (200, true)] {
        let mut account = ready(true, 100, 1_000);
        buy(&mut account, paid);
        assert_eq!(account.engine.run_state() == RunState::Halted, halted);
        assert_eq!(tokens(&account), usdt(1_000 - paid));
        assert_eq!(unpriced(&account), 0);
        let totals = account.engine.totals().unwrap();
        let start = account.engine.start_equity().unwrap();
        let sum = start + totals.realized_pnl + totals.unrealized_pnl - totals.fees;
        assert_eq!(totals.equity, sum, "the ledger explains equity");
    }
    let mut account = ready(true, 1_000, 100);
    buy(&mut account, 200);
    assert_eq!(account.engine.fault(MM), Some(FaultKind::Loss));
}

#[test]
fn commissions_in_an_asset_without_a_price_count_as_an_estimate() {
    // 0.04 percent of 1,000 is 0.4.
    let mut account = ready(false, 1, 1_000);
    buy(&mut account, 200);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(unpriced(&account), 1);
    buy(&mut account, 200);
    assert_eq!(unpriced(&account), 1, "reported once");
    buy(&mut account, 200);
    assert_eq!(account.engine.run_state(), RunState::Halted);
    assert_eq!(tokens(&account), usdt(400));
}

/// Answers the queries for the price of an asset. Returns their number.
fn answer_prices(account: &mut Account, outcome: &Outcome<StateReport>) -> usize {
    let mut count = 0;
    while let Some(subject) = account.take_question() {
        if matches!(subject, Subject::AssetPrice { asset: TOKEN, quote } if quote == USDT) {
            account.answer(subject, outcome.clone());
            count += 1;
        }
    }
    count
}

#[test]
fn the_price_of_a_commission_asset_is_queried() {
    let mut account = ready(false, 100, 1_000);
    account.pass(2_000);
    let half = Outcome::Done(StateReport::AssetPrice(Amount(50_000_000)));
    assert_eq!(answer_prices(&mut account, &half), 0, "no commission yet");
    buy(&mut account, 1);
    account.pass(1_000);
    assert_eq!(answer_prices(&mut account, &half), 1);
    assert_eq!(account.engine.unpriced_fees().count(), 0);
    // An estimate of 0.4 for the first, then 199 tokens at 0.5.
    buy(&mut account, 198);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    buy(&mut account, 2);
    assert_eq!(account.engine.run_state(), RunState::Halted);
    account.pass(58_000);
    assert_eq!(answer_prices(&mut account, &half), 0, "once a minute");
    account.pass(2_000);
    assert_eq!(answer_prices(&mut account, &half), 1);
}

#[test]
fn the_price_of_an_asset_without_a_symbol_is_queried_hourly() {
    let mut account = ready(false, 100, 1_000);
    let none = Outcome::Refused(Refusal {
        code: -1121,
        msg: String::new(),
    });
    buy(&mut account, 1);
    account.pass(1_000);
    assert_eq!(answer_prices(&mut account, &none), 1);
    assert_eq!(account.engine.unpriced_fees().count(), 1);
    account.pass(3_590_000);
    assert_eq!(answer_prices(&mut account, &none), 0);
    account.pass(20_000);
    assert_eq!(answer_prices(&mut account, &none), 1);
}

#[test]
fn a_restart_keeps_the_cost_of_commissions() {
    let mut account = ready(true, 100, 1_000);
    buy(&mut account, 150);
    let mut config = with_token(next_config(), true);
    config.limits.max_daily_loss = Some(usdt(100));
    let mut account = killed(account, config);
    account.begin();
    let left = tokens(&account);
    answer(&mut account, left, &[]);
    account.handle(Input::Market {
        instrument: TOKENUSDT,
        event: MarketEvent::Mark {
            mark: 50_000_000,
            index: 0,
            funding_rate: 0,
            next_funding: Time::NEVER,
        },
    });
    account.top(999, 1001);
    assert_ne!(account.engine.run_state(), RunState::Halted);
    account.top(969, 971);
    assert_eq!(account.engine.run_state(), RunState::Halted);
}

/// Account snapshots with this many tokens. The income history explains the change with this kind.
fn read(account: &mut Account, left: i128, kind: IncomeKind) {
    let (began, moved) = (account.now, usdt(left) - tokens(account));
    let history = [Income {
        kind,
        instrument: None,
        asset: TOKEN,
        amount: moved,
        time: began,
    }];
    for _ in 0..40 {
        for _ in 0..4 {
            answer(account, usdt(left), &history);
            account.pass(249);
        }
        account.alive();
        account.clock();
    }
}

#[test]
fn account_snapshots_show_commissions_missing_in_events() {
    for (kind, state) in [
        (IncomeKind::Other, RunState::Halted),
        (IncomeKind::Transfer, RunState::Ready),
    ] {
        let mut account = ready(true, 100, 1_000);
        buy(&mut account, 0);
        read(&mut account, 800, kind);
        assert_eq!(tokens(&account), usdt(800));
        assert_eq!(account.engine.run_state(), state, "{kind:?}");
    }
    let mut account = ready(false, 100, 1_000);
    buy(&mut account, 0);
    read(&mut account, 800, IncomeKind::Other);
    assert_eq!(unpriced(&account), 1);
}

/// The account trade of a fill that `buy` booked, with a commission of this many tokens.
fn trade_of(account: &Account, number: i64, tokens: i128) -> AccountTrade {
    let own = account.engine.orders().all().1.last().unwrap().seq;
    let id = account.id(MM, own);
    let bought = fill(id, Side::Buy, number, 10_000, 10_000, OrderStatus::Filled);
    let mut stated = bought.fill.unwrap();
    stated.fee = usdt(tokens);
    stated.fee_asset = TOKEN;
    AccountTrade {
        order_id: bought.order_id,
        side: Side::Buy,
        position_side: PositionSide::Both,
        fill: stated,
        time: account.now,
    }
}

/// Answers as a venue that lists this trade (for `None` it refuses to list trades), and whose
/// account snapshots have this many tokens.
fn learn(account: &mut Account, trade: Option<AccountTrade>, left: Amount) {
    for _ in 0..20 {
        account.pass(998);
        account.alive();
        account.clock();
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::Account { .. } => account_with(account, left),
                Subject::Trades { .. } => {
                    let Some(trade) = trade else {
                        let refusal = Refusal {
                            code: -1020,
                            msg: String::new(),
                        };
                        account.answer(subject, Outcome::Refused(refusal));
                        continue;
                    };
                    StateReport::Trades {
                        trades: vec![trade],
                        more: false,
                    }
                }
                Subject::Income { .. } => StateReport::Income {
                    entries: Vec::new(),
                    more: false,
                },
                _ => nothing(subject),
            };
            account.tell(subject, state_report);
        }
    }
}

#[test]
fn a_commission_missing_in_the_event_counts_for_its_strategy() {
    // At a price of 0.5, two tokens cost 1. Without a price, an estimate of 0.4 counts.
    for (priced, listed, cost) in [
        (true, true, Amount(100_000_000)),
        (true, false, Amount(100_000_000)),
        (false, true, Amount(40_000_000)),
        (false, false, Amount(40_000_000)),
    ] {
        let mut account = ready(priced, 1_000, 1_000);
        buy(&mut account, 0);
        let trade = trade_of(&account, 1, 2);
        account.live(LiveInput::StreamUp {
            surface: Surface::Futures,
        });
        learn(&mut account, listed.then_some(trade), usdt(998));
        assert_eq!(tokens(&account), usdt(998));
        let own = &account.engine.ledgers().strategies[0];
        assert_eq!(
            own.total(|position| position.fees),
            cost,
            "{priced} {listed}"
        );
        let totals = account.engine.totals().unwrap();
        let start = account.engine.start_equity().unwrap();
        let sum = start + totals.realized_pnl + totals.unrealized_pnl - totals.fees;
        assert_eq!(totals.equity, sum, "{priced} {listed}");
        assert_eq!(unpriced(&account), usize::from(!priced));
        let reported = account.engine.unpriced_fees().collect::<Vec<_>>();
        assert_eq!(reported.is_empty(), priced);
    }
}

#[test]
fn a_small_amount_of_an_expensive_asset_is_not_rounding() {
    let mut account = ready(true, 1_000, 1_000);
    account.handle(Input::Market {
        instrument: TOKENUSDT,
        event: MarketEvent::Mark {
            mark: 100_000_000_000,
            index: 0,
            funding_rate: 0,
            next_funding: Time::NEVER,
        },
    });
    buy(&mut account, 0);
    let mut trade = trade_of(&account, 1, 0);
    // At a price of 1,000 it is worth 0.4.
    trade.fill.fee = Amount(40_000);
    let left = usdt(1_000) - trade.fill.fee;
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::Order,
        balances: vec![BalanceUpdate {
            asset: TOKEN,
            total: left,
            locked: Amount::ZERO,
            change: Amount::ZERO,
        }],
        positions: account.own_account().positions,
        transaction_time: account.now,
        event_time: account.now,
    })));
    learn(&mut account, Some(trade), left);
    assert_eq!(tokens(&account), left);
    let own = &account.engine.ledgers().strategies[0];
    assert_eq!(own.total(|position| position.fees), Amount(40_000_000));
}

/// A venue that answers no query for an order, and has this many tokens.
fn read_beside_an_unknown_order(account: &mut Account, left: Amount) {
    for _ in 0..60 {
        account.pass(998);
        account.alive();
        account.clock();
        while let Some(subject) = account.take_question() {
            let state_report = match subject {
                Subject::Account { .. } => account_with(account, left),
                Subject::Trades { .. } => no_trades(),
                _ => nothing(subject),
            };
            account.tell(subject, state_report);
        }
    }
}

#[test]
fn outside_commissions_count_while_an_own_order_is_unknown() {
    let mut account = ready(true, 100, 1_000);
    let order = account.submit(MM, limit(Side::Buy, 990, 1));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Unknown);
    read_beside_an_unknown_order(&mut account, usdt(800));
    assert_eq!(tokens(&account), usdt(800));
    assert_eq!(account.engine.run_state(), RunState::Halted);
}
