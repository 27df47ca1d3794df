//! The trading status: the block after each kind of rejection, the work that continues, and the end
//! of blocks.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::NotPlaced;
use windvane_model::event::EventKind;
use windvane_model::input::{Command, FaultKind};
use windvane_model::instrument::SymbolStatus;
use windvane_model::live::{LiveInput, StopReason};
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate, Refusal};
use windvane_model::rules::Rule;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{StateReport, Subject};
use windvane_model::trading::TradingBlock;
use windvane_model::{
    Amount, ClientOrderId, Input, InstrumentId, Notice, OrderSeq, OrderStatus, Outcome, Request,
    Side, Surface, UserEvent,
};

use super::support::{
    Account, BTC, MM, OTHER, USDT, config, fill, limit, market, refused, report, update,
};
use super::world::{COUNTDOWN_MS, live_config, ready, ready_with};

const FUTURES: Surface = Surface::Futures;
const ETH: InstrumentId = InstrumentId(1);

impl Account {
    /// Submits an order that the venue rejects with this code.
    fn refuse(&mut self, code: i32) -> OrderSeq {
        self.refuse_with(code, "text")
    }

    fn refuse_with(&mut self, code: i32, msg: &str) -> OrderSeq {
        let order = self.submit(MM, limit(Side::Buy, 990, 1));
        self.confirm_countdowns();
        let (id, msg) = (self.id(MM, order), msg.to_owned());
        self.placed(id, Outcome::Refused(Refusal { code, msg }));
        order
    }

    /// The rule by which the engine rejects an opening order; `None` if it is sent.
    fn refusal(&mut self) -> Option<Rule> {
        self.refusal_of(limit(Side::Buy, 990, 1))
    }

    fn refusal_of(&mut self, terms: windvane_model::OrderTerms) -> Option<Rule> {
        let tried = self.call(MM, |callback, engine| callback.submit(engine, terms));
        tried.err().map(|rejection| rejection.rule)
    }

    /// The state that the strategy received last.
    fn seen_state(&self) -> i64 {
        let mut reported = self.events.iter().rev();
        let is_state =
            |event: &&(_, EventKind, [i64; 6])| event.0 == MM && event.1 == EventKind::RuntimeState;
        reported.find(is_state).unwrap().2[0]
    }

    /// Lets time pass with a healthy run; no countdown is answered.
    fn seconds_without_countdown(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.pass(999);
            self.alive();
            self.clock();
            self.sync();
        }
    }

    fn blocks(&self) -> Vec<TradingBlock> {
        self.engine.blocks().map(|(block, _)| block).collect()
    }

    /// Removes the cancels of ids that were never used, and returns the ids.
    fn take_probes(&mut self) -> Vec<ClientOrderId> {
        let mut probes = Vec::new();
        self.sent.retain(|request| match request {
            Request::Cancel {
                client_order_id, ..
            } if client_order_id
                .parse_own()
                .is_some_and(|(.., seq)| seq.0 == u64::MAX) =>
            {
                probes.push(*client_order_id);
                false
            }
            _ => true,
        });
        probes
    }

    fn not_placed(&self) -> Vec<&NotPlaced> {
        let words = self.notices.iter().map(|notice| match notice {
            Notice::NotPlaced { words, .. } => Some(words),
            _ => None,
        });
        words.flatten().collect()
    }
}

/// A run in state ready whose key showed its trading permission at the start.
fn trusted() -> Account {
    let mut account = ready();
    account.wait(2);
    for probe in account.take_probes() {
        account.canceled(probe, refused(-2011));
    }
    account.sent.clear();
    account.notices.clear();
    account
}

#[test]
fn a_start_probes_the_trading_permission_with_a_cancel() {
    let mut account = ready();
    account.wait(2);
    assert_eq!(account.take_probes().len(), 1);
    let mut account = trusted();
    account.wait(60);
    assert_eq!(account.take_probes(), [], "the permission was shown");
}

#[test]
fn a_key_without_trading_permission_is_found_before_any_order() {
    let mut account = ready();
    account.wait(2);
    let [probe] = account.take_probes()[..] else {
        panic!("one probe")
    };
    account.canceled(probe, refused(-2015));
    assert_eq!(
        account.blocks(),
        [],
        "one rejection of the key proves nothing"
    );
    let [probe] = account.take_probes()[..] else {
        panic!("it is probed again at once")
    };
    account.canceled(probe, refused(-2015));
    assert_eq!(account.blocks(), [TradingBlock::Key(FUTURES)]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(
        account.engine.degraded_reasons(),
        [DegradedReason::TradingBlocked(FUTURES)]
    );
    assert_eq!(account.refusal(), Some(Rule::AccountBlocked));
    assert_eq!(account.places(), 0);
}

#[test]
fn two_rejections_of_the_key_block_the_account_until_a_cancel() {
    let mut account = trusted();
    account.refuse(-2015);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    let [probe] = account.take_probes()[..] else {
        panic!("another route is probed at once")
    };
    account.canceled(probe, refused(-2015));
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    let sentence = account
        .engine
        .describe_reasons(&account.engine.degraded_reasons())
        .join("");
    assert!(sentence.contains("-2015"), "{sentence}");
    account.sent.clear();

    account.wait(4);
    assert_eq!(account.take_probes(), []);
    account.wait(3);
    let [probe] = account.take_probes()[..] else {
        panic!("it is probed again")
    };
    account.canceled(probe, refused(-2013));
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(account.refusal(), None);
}

#[test]
fn without_trading_permission_countdowns_wait_longer_each_time() {
    let mut account = trusted();
    account.rest();
    let mut asked = 0;
    for quarter in 0..120 {
        account.pass(249);
        while account.take_countdown().is_some() {
            asked += 1;
            account.countdown_reply(Outcome::Refused(Refusal {
                code: -2015,
                msg: String::new(),
            }));
        }
        for probe in account.take_probes() {
            account.canceled(probe, refused(-2015));
        }
        if quarter % 4 == 0 {
            account.alive();
            account.clock();
        }
    }
    assert!((4..=12).contains(&asked), "{asked} in 30 s");
    // Nothing shows that the venue accepts cancels.
    assert_eq!(account.blocks(), [TradingBlock::Key(FUTURES)]);
}

#[test]
fn a_key_that_can_cancel_but_not_place_blocks_the_account() {
    let mut account = trusted();
    for _ in 0..3 {
        account.refuse(-2015);
        for probe in account.take_probes() {
            account.canceled(probe, refused(-2011));
        }
        account.wait(1);
    }
    assert_eq!(account.blocks(), [TradingBlock::Account(FUTURES)]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
}

#[test]
fn a_countdown_that_cannot_be_armed_is_a_block_with_its_time() {
    for code in [Some(-1130), None] {
        let mut account = ready_with(live_config());
        let fails = || match code {
            Some(code) => Outcome::Refused(windvane_model::protocol::Refusal {
                code,
                msg: String::new(),
            }),
            None => Outcome::Unknown,
        };
        account.submit(MM, limit(Side::Buy, 990, 1));
        let since = account.now;
        for _ in 0..5 {
            if account.take_countdown().is_some() {
                account.countdown_reply(fails());
            }
            account.wait(1);
        }
        assert_eq!(account.blocks(), [TradingBlock::Countdown(BTC)]);
        assert_eq!(account.engine.run_state(), RunState::Degraded);
        let reasons = account.engine.degraded_reasons();
        let reported = account.engine.describe_reasons(&reasons).join("; ");
        assert!(reported.contains("countdownCancelAll"), "{reported}");
        let (_, state) = account.engine.blocks().next().unwrap();
        assert!(state.since >= since);
        assert_eq!(account.refusal(), Some(Rule::InstrumentBlocked));
        // The countdown is tried again without an order, after a delay.
        let mut tries = 0;
        for _ in 0..60 {
            account.seconds_without_countdown(1);
            if account.take_countdown().is_some() {
                tries += 1;
                account.countdown_reply(fails());
            }
        }
        assert!((2..=20).contains(&tries), "{tries}");
        account.seconds(65);
        assert_eq!(account.blocks(), []);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        assert_eq!(account.refusal(), None);
    }
}

#[test]
fn a_blocked_account_tries_one_order_after_growing_pauses() {
    let mut account = trusted();
    account.refuse(-4088);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(account.refusal(), Some(Rule::AccountBlocked));
    account.seconds(11);
    assert_eq!(
        account.engine.run_state(),
        RunState::Degraded,
        "the end of the block is not known"
    );
    assert_eq!(
        account.seen_state(),
        RunState::Ready as i64,
        "one order may try"
    );
    account.refuse(-4088);
    assert_eq!(account.seen_state(), RunState::Degraded as i64);
    account.seconds(11);
    assert_eq!(
        account.seen_state(),
        RunState::Degraded as i64,
        "the pause is longer"
    );
    account.seconds(10);
    let order = account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(
        account.refusal(),
        Some(Rule::AccountBlocked),
        "only one order may try"
    );
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    assert_eq!(account.blocks(), []);
    assert_eq!(account.refusal(), None);
}

#[test]
fn closes_pass_while_the_account_accepts_only_closes() {
    let mut account = trusted();
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.update(super::support::fill(
        id,
        Side::Buy,
        1,
        10,
        10,
        OrderStatus::Filled,
    ));
    account.refuse(-4087);
    assert_eq!(account.blocks(), [TradingBlock::ReduceOnly(FUTURES)]);
    assert_eq!(account.refusal(), Some(Rule::AccountBlocked));
    let mut close = limit(Side::Sell, 1010, 10);
    close.reduce_only = true;
    assert_eq!(account.refusal_of(close), None);
}

#[test]
fn can_trade_in_a_snapshot_begins_and_ends_a_block() {
    let mut account = trusted();
    let read = |account: &mut Account, can_trade| {
        account.seconds(30);
        account.pass(999);
        let mut state_report = account.own_account();
        state_report.can_trade = Some(can_trade);
        while let Some(subject) = account.take_question() {
            match subject {
                Subject::Account { .. } => {
                    account.tell(subject, StateReport::Account(state_report.clone()));
                }
                _ => account.tell(subject, super::world::nothing(subject)),
            }
        }
    };
    // Snapshots come every thirty seconds. The first one with the flag counts.
    account.seconds(29);
    read(&mut account, false);
    let blocked = account.blocks() == [TradingBlock::CanTrade(FUTURES)];
    if blocked {
        assert_eq!(account.refusal(), Some(Rule::AccountBlocked));
    }
    read(&mut account, true);
    assert_eq!(account.blocks(), []);
}

#[test]
fn a_ban_blocks_until_its_end() {
    let mut account = trusted();
    let stop = |for_ms| LiveInput::Stopped {
        surface: FUTURES,
        why: StopReason::Ban,
        for_ms,
    };
    account.live(stop(20_000));
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(account.refusal(), Some(Rule::AccountBlocked));
    account.seconds(15);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.seconds(6);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    account.live(stop(20_000));
    account.live(stop(0));
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

/// A run with two instruments. The strategies trade both.
fn two() -> Account {
    let mut config = config();
    let mut eth = config.instruments[0].clone();
    "ETHUSDT".clone_into(&mut eth.symbol);
    config.instruments.push(eth);
    for strategy in &mut config.strategies {
        let mut more = strategy.subscriptions[0].clone();
        more.instrument = ETH;
        strategy.subscriptions.push(more);
    }
    config.live = Some(live_config());
    let mut account = Account::new(config);
    account.begin();
    account.sync();
    account.wait(2);
    for probe in account.take_probes() {
        account.canceled(probe, refused(-2011));
    }
    account.sent.clear();
    account
}

#[test]
fn a_blocked_instrument_rejects_only_its_own_openings() {
    for code in [-1121, -2016, -4022, -4140, -4141] {
        let mut account = two();
        account.refuse(code);
        assert_eq!(account.blocks(), [TradingBlock::Instrument(BTC)], "{code}");
        assert_eq!(account.engine.run_state(), RunState::Ready, "{code}");
        assert_eq!(account.refusal(), Some(Rule::InstrumentBlocked), "{code}");
        let mut other = limit(Side::Buy, 990, 1);
        other.instrument = ETH;
        assert_eq!(account.refusal_of(other), None, "{code}");
    }
}

#[test]
fn a_blocked_instrument_does_not_stop_renewals() {
    let mut account = trusted();
    account.rest();
    account.refuse(-4022);
    account.sent.clear();
    let mut renewed = 0;
    for _ in 0..25 {
        account.pass(999);
        account.alive();
        account.clock();
        account.sync();
        while let Some(ms) = account.take_countdown() {
            assert_eq!(ms, COUNTDOWN_MS);
            renewed += 1;
            account.countdown_reply(Outcome::Done(ms));
        }
    }
    assert!(renewed >= 2, "{renewed}");
}

#[test]
fn the_status_of_a_symbol_blocks_and_unblocks_it() {
    let mut account = trusted();
    let status = SymbolStatus::Other("SETTLING".to_owned());
    account.handle(Input::SymbolStatus {
        instrument: BTC,
        status: &status,
    });
    assert_eq!(account.blocks(), [TradingBlock::Instrument(BTC)]);
    let (block, state) = account.engine.blocks().next().unwrap();
    let words = account.engine.describe_block(block, state);
    assert_eq!(words.what, "futures:BTCUSDT");
    assert!(words.reason.contains("SETTLING"), "{}", words.reason);
    account.handle(Input::SymbolStatus {
        instrument: BTC,
        status: &SymbolStatus::Trading,
    });
    assert_eq!(account.blocks(), []);
}

#[test]
fn the_block_of_a_symbol_counts_rejected_openings() {
    let mut account = trusted();
    let order = account.submit(MM, market(Side::Buy, 1));
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 1, 1, OrderStatus::Filled));
    let status = SymbolStatus::Other("SETTLING".to_owned());
    account.handle(Input::SymbolStatus {
        instrument: BTC,
        status: &status,
    });
    account.sent.clear();
    for _ in 0..3 {
        assert_eq!(account.refusal(), Some(Rule::InstrumentBlocked));
    }
    let (_, state) = account.engine.blocks().next().unwrap();
    assert_eq!(state.not_sent, 3);
    let is_reading = |request: &&Request| matches!(request, Request::Read(Subject::Rules { .. }));
    let readings = account.sent.iter().filter(is_reading).count();
    assert_eq!(readings, 1, "the venue may list it as TRADING now");
    // An exit opens nothing, so the symbol's status rule rejects it instead of the block.
    let mut close = limit(Side::Sell, 990, 1);
    close.reduce_only = true;
    assert_eq!(account.refusal_of(close), Some(Rule::SymbolStatus));
    let (_, state) = account.engine.blocks().next().unwrap();
    assert_eq!(state.not_sent, 3);
}

fn balance(account: &mut Account, total: i64) {
    let event_time = account.now;
    let total = Amount(i128::from(total) * 100_000_000);
    let change = total - account.engine.balance(FUTURES, USDT).total;
    account.handle(Input::User(&UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason: AccountReason::Other,
        balances: vec![BalanceUpdate {
            asset: USDT,
            total,
            locked: Amount::ZERO,
            change,
        }],
        positions: Vec::new(),
        transaction_time: event_time,
        event_time,
    })));
}

#[test]
fn an_empty_wallet_blocks_at_once_until_money_arrives() {
    let mut account = trusted();
    balance(&mut account, 0);
    account.refuse_with(
        -2010,
        "Account has insufficient balance for requested action.",
    );
    assert_eq!(account.blocks(), [TradingBlock::Funds(FUTURES, USDT)]);
    assert_eq!(account.refusal(), Some(Rule::FundsBlocked));
    balance(&mut account, 500);
    account.seconds(2);
    assert_eq!(account.blocks(), []);
    assert_eq!(account.refusal(), None);
}

#[test]
fn with_money_three_rejections_for_the_balance_are_needed() {
    let mut account = trusted();
    account.refuse(-2019);
    account.refuse(-2019);
    assert_eq!(account.blocks(), []);
    account.wait(1);
    account.refuse(-2018);
    assert_eq!(account.blocks(), [TradingBlock::Funds(FUTURES, USDT)]);
}

#[test]
fn a_rejection_about_one_order_blocks_nothing() {
    let mut account = trusted();
    for code in [-1111, -2021, -4014, -4164] {
        account.refuse(code);
        account.wait(2);
    }
    assert_eq!(account.blocks(), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn repeated_rejections_pause_the_strategy_on_one_side() {
    let mut account = trusted();
    let (mut sent, mut withheld) = (0, 0);
    for _ in 0..300 {
        let tried = account.call(MM, |callback, engine| {
            callback.submit(engine, limit(Side::Buy, 990, 1))
        });
        match tried {
            Ok(order) => {
                sent += 1;
                account.confirm_countdowns();
                let id = account.id(MM, order);
                account.placed(id, refused(-4164));
            }
            Err(rejection) => {
                assert_eq!(rejection.rule, Rule::RefusalPause);
                withheld += 1;
            }
        }
        account.pass(99);
        account.alive();
    }
    assert!(sent <= 10, "{sent} orders in 30 s");
    assert_eq!(sent + withheld, 300);
    let counts: Vec<_> = account.not_placed().iter().map(|one| one.count).collect();
    assert_eq!(
        counts,
        (1..=sent).collect::<Vec<_>>(),
        "one notice for each, with a count"
    );
    let other = account.call(OTHER, |callback, engine| {
        callback.submit(engine, limit(Side::Buy, 990, 1))
    });
    assert!(other.is_ok(), "another strategy is not paused");
    assert_eq!(account.refusal_of(limit(Side::Sell, 1010, 1)), None);
}

#[test]
fn an_accepted_order_ends_the_series_of_rejections() {
    let mut account = trusted();
    for _ in 0..2 {
        account.refuse(-4164);
    }
    assert_eq!(account.engine.refusals().count(), 1);
    account.rest();
    assert_eq!(account.engine.refusals().count(), 0);
}

#[test]
fn an_order_that_was_not_sent_is_not_a_venue_rejection() {
    let mut account = trusted();
    let order = account.submit(MM, limit(Side::Buy, 990, 1));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let refusal = Refusal::not_sent("the weight of this interval is used up");
    account.placed(id, Outcome::Refused(refusal));
    account.refuse(-4164);
    let words = account.not_placed();
    assert!(!words[0].sent && words[0].code == 0, "{words:?}");
    assert!(words[1].sent && words[1].code == -4164, "{words:?}");
    assert_eq!(account.blocks(), []);
}

#[test]
fn an_order_event_with_rejected_counts_as_a_rejection() {
    let mut account = trusted();
    let order = account.submit(MM, limit(Side::Buy, 990, 1));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.update(update(id, Side::Buy, OrderStatus::Rejected, 0));
    let words = account.not_placed();
    assert!(words.len() == 1 && words[0].sent, "{words:?}");
}

#[test]
fn resume_lets_one_order_try_and_keeps_the_reason() {
    let mut account = trusted();
    account.refuse(-4088);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.blocks(), [TradingBlock::Account(FUTURES)]);
    assert_eq!(
        account.engine.run_state(),
        RunState::Degraded,
        "nothing shows that the block ended"
    );
    assert_eq!(account.seen_state(), RunState::Ready as i64, "one may try");
    let reported = account
        .engine
        .describe_reasons(&account.engine.degraded_reasons());
    let reported = reported.join("; ");
    assert!(reported.contains("-4088"), "{reported}");
    assert!(
        reported.contains("until the venue accepts an order"),
        "it states when the block ends: {reported}"
    );
    account.refuse(-4088);
    assert_eq!(account.seen_state(), RunState::Degraded as i64);
    assert_eq!(account.refusal(), Some(Rule::AccountBlocked));
    account.handle(Input::Command(Command::Resume));
    let order = account.submit(MM, limit(Side::Buy, 990, 1));
    assert_eq!(account.refusal(), Some(Rule::AccountBlocked), "only one");
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    assert_eq!(account.blocks(), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn resume_after_a_halt_is_degraded_while_orders_are_rejected() {
    let mut account = trusted();
    account.refuse(-4088);
    account.handle(Input::Command(Command::Halt));
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    assert_eq!(account.seen_state(), RunState::Ready as i64);
    assert_eq!(account.refusal(), None);
}

#[test]
fn strategies_learn_of_a_trial_after_another_reason_ends() {
    for by_hand in [true, false] {
        let mut account = trusted();
        account.refuse(-4088);
        account.live(LiveInput::Journal { healthy: false });
        if by_hand {
            account.handle(Input::Command(Command::Resume));
        }
        account.seconds(11);
        assert_eq!(account.seen_state(), RunState::Degraded as i64);
        account.live(LiveInput::Journal { healthy: true });
        assert_eq!(account.seen_state(), RunState::Ready as i64, "{by_hand}");
        assert_eq!(account.engine.run_state(), RunState::Degraded);
        account.live(LiveInput::Journal { healthy: false });
        assert_eq!(account.seen_state(), RunState::Degraded as i64, "{by_hand}");
    }
}

#[test]
fn resume_probes_the_key_and_keeps_the_reason_until_it_trades() {
    let mut account = trusted();
    account.refuse(-2015);
    let [probe] = account.take_probes()[..] else {
        panic!("another route is probed at once")
    };
    account.canceled(probe, refused(-2015));
    for answer in [-2015, -2011] {
        account.handle(Input::Command(Command::Resume));
        assert_eq!(account.blocks(), [TradingBlock::Key(FUTURES)]);
        assert_eq!(account.engine.run_state(), RunState::Degraded);
        account.wait(1);
        let [probe] = account.take_probes()[..] else {
            panic!("resume probes at once")
        };
        account.canceled(probe, refused(answer));
        let is_denied = answer == -2015;
        assert_eq!(account.blocks().is_empty(), !is_denied);
        assert_eq!(
            account.refusal(),
            is_denied.then_some(Rule::AccountBlocked),
            "{answer}"
        );
        assert_eq!(account.take_probes(), [], "the next probe waits");
    }
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn resume_keeps_the_reasons_of_instruments_and_rejected_orders() {
    let mut account = trusted();
    account.refuse(-4022);
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.blocks(), [TradingBlock::Instrument(BTC)]);
    account.rest();
    assert_eq!(account.blocks(), []);

    for _ in 0..3 {
        account.refuse(-4164);
    }
    assert_eq!(account.refusal(), Some(Rule::RefusalPause));
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.engine.refusals().count(), 1, "the series continues");
    assert_eq!(account.refusal(), None, "one may try");
    account.rest();
    assert_eq!(account.engine.refusals().count(), 0);
}

#[test]
fn resume_retries_a_countdown_and_keeps_the_reason_until_armed() {
    let mut account = ready_with(live_config());
    account.submit(MM, limit(Side::Buy, 990, 1));
    for _ in 0..5 {
        if account.take_countdown().is_some() {
            account.countdown_reply(refused_countdown());
        }
        account.wait(1);
    }
    assert_eq!(account.blocks(), [TradingBlock::Countdown(BTC)]);
    account.sent.clear();
    account.handle(Input::Command(Command::Resume));
    assert_eq!(account.blocks(), [TradingBlock::Countdown(BTC)]);
    assert_eq!(account.engine.run_state(), RunState::Degraded);
    account.wait(1);
    account.confirm_countdowns();
    assert_eq!(account.blocks(), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

fn refused_countdown() -> Outcome<u64> {
    Outcome::Refused(Refusal {
        code: -1130,
        msg: String::new(),
    })
}

#[test]
fn a_paused_run_with_a_blocked_account_opens_nothing() {
    let mut account = trusted();
    account.refuse(-4088);
    account.handle(Input::Command(Command::Pause));
    account.seconds(11);
    assert!(account.refusal().is_some());
    assert_eq!(account.places(), 1, "only the earlier order");
}

#[test]
fn a_quarantine_has_a_start_time() {
    let mut account = ready_with(live_config());
    let kind = FaultKind::Trap;
    account.handle(Input::Fault { strategy: MM, kind });
    assert_eq!(account.engine.fault_since(MM), Some(account.now));
    account.handle(Input::Renew { strategy: MM });
    assert_eq!(account.engine.fault_since(MM), None);
}

#[test]
fn blocks_survive_a_snapshot() {
    let mut account = trusted();
    account.refuse(-4022);
    let bytes = account.engine.snapshot();
    let restored = windvane_engine::Engine::restore(&bytes).unwrap();
    assert_eq!(
        restored.blocks().collect::<Vec<_>>(),
        account.engine.blocks().collect::<Vec<_>>()
    );
}
