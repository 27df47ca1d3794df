//! The engine reads the venue's rules again every hour, after rejections for a filter, and while a
//! symbol does not trade. It also notices changes of leverage and margin type.

use windvane_engine::engine::CloseReason;
use windvane_model::input::Command;
use windvane_model::instrument::{Instrument, LotSize, PriceFilter, SymbolStatus};
use windvane_model::protocol::MarginTerms;
use windvane_model::rules::Rule;
use windvane_model::state_report::{ListedRules, StateReport, Subject};
use windvane_model::{
    Input, Notice, OrderTerms, Outcome, PositionSide, Reply, Request, Side, Surface, UserEvent,
};

use super::succession::{killed, next_config};
use super::support::{self, Account, BTC, MM, fill, limit, refused};
use super::world::ready;

const FUTURES: Surface = Surface::Futures;

/// The number of queries for rules since the last call.
fn asked(account: &mut Account) -> usize {
    let is_it = |request: &Request| matches!(request, Request::Read(Subject::Rules { .. }));
    let count = account.sent.iter().filter(|one| is_it(one)).count();
    account.sent.retain(|one| !is_it(one));
    count
}

/// The venue's rules with these changes.
pub(super) fn rules(change: impl Fn(&mut Instrument)) -> StateReport {
    let mut instrument = support::instrument();
    change(&mut instrument);
    listed(Ok(instrument))
}

fn listed(rules: Result<Instrument, String>) -> StateReport {
    StateReport::Rules(vec![ListedRules {
        instrument: BTC,
        rules,
    }])
}

pub(super) fn tell(account: &mut Account, state_report: StateReport) {
    account.tell(Subject::Rules { surface: FUTURES }, state_report);
}

/// Submits an order that the venue rejects with this code.
pub(super) fn refuse(account: &mut Account, code: i32) {
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, refused(code));
}

fn try_submit(account: &mut Account, terms: OrderTerms) -> Result<(), Rule> {
    let submitted = account.call(MM, |callback, engine| callback.submit(engine, terms));
    submitted.map(drop).map_err(|rejection| rejection.rule)
}

pub(super) fn tick(step: i64) -> impl Fn(&mut Instrument) {
    move |rules| {
        rules.filters.price = Some(PriceFilter {
            min_price: step,
            max_price: 10_000_000,
            tick_size: step,
        });
    }
}

#[test]
fn rules_are_read_every_hour() {
    let mut account = ready();
    let mut reads = 0;
    for _ in 0..2 * 3_600 + 20 {
        account.wait(1);
        if asked(&mut account) > 0 {
            reads += 1;
            tell(&mut account, rules(|_| {}));
        }
        account.sync();
        account.confirm_countdowns();
        account.sent.clear();
    }
    assert_eq!(reads, 2);
}

#[test]
fn rejections_for_a_filter_read_the_rules_with_growing_delays() {
    for code in [-1013, -1111, -4014, -4023, -4164, -4022, -4140, -1121] {
        let mut account = ready();
        refuse(&mut account, code);
        assert_eq!(asked(&mut account), 1, "{code}");
    }
    for code in [-2010, -2019, -5022, -1001, 0] {
        let mut account = ready();
        refuse(&mut account, code);
        assert_eq!(asked(&mut account), 0, "{code}");
    }
    let mut account = ready();
    let mut reads = 0;
    for _ in 0..600 {
        // After several rejections the strategy is paused.
        let order = account.call(MM, |callback, engine| {
            callback.submit(engine, limit(Side::Buy, 990, 10))
        });
        if let Ok(order) = order {
            account.confirm_countdowns();
            let id = account.id(MM, order);
            account.placed(id, refused(-4014));
        }
        reads += asked(&mut account);
        tell(&mut account, rules(|_| {}));
        account.seconds(1);
    }
    assert!((2..=6).contains(&reads), "{reads} reads in ten minutes");
}

#[test]
fn after_a_rule_change_the_next_rejection_reads_rules_at_once() {
    let mut account = ready();
    for step in [2, 5, 10] {
        refuse(&mut account, -4014);
        assert_eq!(asked(&mut account), 1, "{step}");
        tell(&mut account, rules(tick(step)));
    }
}

#[test]
fn new_rules_apply_to_new_orders_and_keep_open_ones() {
    let mut account = ready();
    let resting = account.rest();
    refuse(&mut account, -4014);
    tell(
        &mut account,
        rules(|rules| {
            tick(4)(rules);
            rules.filters.lot_size = Some(LotSize {
                min_qty: 5,
                max_qty: 1_000,
                step_size: 5,
            });
        }),
    );
    assert!(account.engine.order(resting).is_some());
    assert_eq!(
        try_submit(&mut account, limit(Side::Buy, 990, 10)),
        Err(Rule::PriceTick)
    );
    assert_eq!(
        try_submit(&mut account, limit(Side::Buy, 988, 7)),
        Err(Rule::LotStep)
    );
    assert_eq!(try_submit(&mut account, limit(Side::Buy, 988, 10)), Ok(()));
    let shown = account.engine.instrument(BTC).unwrap();
    assert_eq!(shown.filters.price.unwrap().tick_size, 4);
    let changed = |notice: &&Notice| matches!(notice, Notice::RulesChanged { .. });
    assert_eq!(account.notices.iter().filter(changed).count(), 1);
}

#[test]
fn a_symbol_that_stopped_is_checked_often_until_it_trades() {
    let mut account = ready();
    refuse(&mut account, -4022);
    assert_eq!(asked(&mut account), 1);
    let settling = |rules: &mut Instrument| {
        rules.status = SymbolStatus::Other("SETTLING".to_owned());
    };
    tell(&mut account, rules(settling));
    assert_eq!(
        try_submit(&mut account, limit(Side::Buy, 990, 10)),
        Err(Rule::InstrumentBlocked)
    );
    account.wait(16);
    assert_eq!(asked(&mut account), 1);
    tell(&mut account, rules(|_| {}));
    assert_eq!(try_submit(&mut account, limit(Side::Buy, 990, 10)), Ok(()));
    account.wait(60);
    assert_eq!(asked(&mut account), 0);
}

#[test]
fn rules_with_too_many_decimals_allow_only_closes() {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 1000, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    let filled = windvane_model::OrderStatus::Filled;
    account.update(fill(id, Side::Buy, 1, 10, 10, filled));
    refuse(&mut account, -4014);
    let why = "tickSize 0.01 has more than 1 decimal places".to_owned();
    for _ in 0..2 {
        account.wait(16);
        tell(&mut account, listed(Err(why.clone())));
    }
    assert_eq!(account.engine.unusable_rules(BTC), Some(why.as_str()));
    let reported = |notice: &&Notice| matches!(notice, Notice::RulesUnusable { .. });
    assert_eq!(
        account.notices.iter().filter(reported).count(),
        1,
        "reported once"
    );
    assert_eq!(
        try_submit(&mut account, limit(Side::Buy, 990, 10)),
        Err(Rule::RulesUnusable)
    );
    let mut close = limit(Side::Sell, 1000, 10);
    close.reduce_only = true;
    assert_eq!(try_submit(&mut account, close), Ok(()));
    tell(&mut account, listed(Ok(support::instrument())));
    account.wait(16);
    tell(&mut account, listed(Ok(support::instrument())));
    assert_eq!(account.engine.unusable_rules(BTC), None);
}

#[test]
fn failed_reads_are_repeated_and_other_scales_are_rejected() {
    let mut account = ready();
    refuse(&mut account, -4014);
    assert_eq!(asked(&mut account), 1);
    account.answer(Subject::Rules { surface: FUTURES }, Outcome::Unknown);
    account.wait(16);
    assert_eq!(asked(&mut account), 1);
    tell(&mut account, rules(|rules| rules.price_scale = 3));
    assert!(account.engine.unusable_rules(BTC).is_some());
    assert_eq!(account.engine.instrument(BTC).unwrap().price_scale, 1);
}

#[test]
fn a_replay_with_new_rules_has_the_same_fingerprint() {
    let run = || {
        let mut account = ready();
        refuse(&mut account, -4014);
        tell(&mut account, rules(tick(5)));
        account.wait(3);
        account.engine.fingerprint()
    };
    assert_eq!(run(), run());
}

#[test]
fn changes_of_leverage_and_margin_type_are_reported() {
    let mut account = ready();
    let read = |leverage, isolated| {
        Reply::Margins(vec![MarginTerms {
            instrument: BTC,
            leverage: Some(leverage),
            isolated: Some(isolated),
        }])
    };
    let changes = |account: &Account| {
        let changed = |notice: &&Notice| matches!(notice, Notice::MarginChanged { .. });
        account.notices.iter().filter(changed).count()
    };
    account.handle(Input::Reply(&read(20, false)));
    assert_eq!(changes(&account), 0, "the values at the start");
    account.handle(Input::User(&UserEvent::Leverage {
        instrument: BTC,
        leverage: 5,
    }));
    account.handle(Input::Reply(&read(5, false)));
    assert_eq!(changes(&account), 1, "reported once");
    account.handle(Input::User(&UserEvent::MarginType {
        instrument: BTC,
        isolated: true,
    }));
    assert_eq!(changes(&account), 2);
    let mut account = killed(account, next_config());
    account.handle(Input::Reply(&read(7, true)));
    assert_eq!(changes(&account), 1, "it changed while no process ran");
    let (terms, at) = account.engine.margin_terms().next().unwrap();
    assert_eq!((terms.leverage, terms.isolated), (Some(7), Some(true)));
    assert!(at.is_some());
    let held = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    assert_eq!(held.position.qty, 0);
}

/// Sets the step of quantities, also for market orders.
fn step(size: i64) -> impl Fn(&mut Instrument) {
    move |rules| {
        let lot = LotSize {
            min_qty: size,
            max_qty: 1_000_000,
            step_size: size,
        };
        rules.filters.lot_size = Some(lot);
        rules.filters.market_lot_size = Some(lot);
    }
}

/// Removes the sent closing orders and returns them with their quantities.
fn take_closes(account: &mut Account) -> Vec<(windvane_model::ClientOrderId, i64)> {
    let closes = account.sent.iter().filter_map(|request| match request {
        Request::Place(order) => Some((order.client_order_id, order.terms.qty.unwrap().0)),
        _ => None,
    });
    let closes = closes.collect();
    account
        .sent
        .retain(|request| !matches!(request, Request::Place(_)));
    closes
}

fn holding_15() -> Account {
    let mut account = ready();
    let order = account.submit(MM, limit(Side::Buy, 1000, 15));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.update(fill(
        id,
        Side::Buy,
        1,
        15,
        15,
        windvane_model::OrderStatus::Filled,
    ));
    account.sent.clear();
    account
}

#[test]
fn after_a_larger_step_a_close_uses_the_largest_multiple() {
    for code in [-4023, -1111, -1013] {
        let mut account = holding_15();
        account.handle(Input::Command(windvane_model::input::Command::Flatten));
        let [(id, 15)] = take_closes(&mut account)[..] else {
            panic!("{:?}", account.sent);
        };
        account.placed(id, refused(code));
        assert_eq!(asked(&mut account), 1, "{code}");
        tell(&mut account, rules(step(10)));
        account.seconds(2);
        let [(id, 10)] = take_closes(&mut account)[..] else {
            panic!("{code} {:?}", account.sent);
        };
        account.update(fill(
            id,
            Side::Sell,
            2,
            10,
            10,
            windvane_model::OrderStatus::Filled,
        ));
        assert!(
            !account.engine.is_flattening(MM),
            "nothing more can be closed"
        );
        let left = account.notices.iter().find_map(|notice| match notice {
            Notice::Dust { left, .. } => Some(*left),
            _ => None,
        });
        assert_eq!(left, Some(windvane_model::Amount(500_000)), "0.005");
        account.seconds(60);
        assert_eq!(take_closes(&mut account), []);
    }
}

#[test]
fn a_close_that_keeps_breaking_a_rule_is_reported_once() {
    let mut account = holding_15();
    account.handle(Input::Command(windvane_model::input::Command::Flatten));
    let mut tries = 0;
    for _ in 0..600 {
        for (id, _) in take_closes(&mut account) {
            tries += 1;
            account.placed(id, refused(-4023));
        }
        if asked(&mut account) > 0 {
            tell(&mut account, rules(|_| {}));
        }
        account.seconds(1);
    }
    assert!((14..=20).contains(&tries), "{tries}");
    assert!(account.engine.is_flattening(MM));
    let reported = account.notices.iter();
    let unclosed = reported.filter(|notice| matches!(notice, Notice::Unclosed { qty: 15, .. }));
    assert_eq!(unclosed.count(), 1);
}

#[test]
fn an_order_that_breaks_a_known_rule_reads_the_rules_again() {
    let mut account = ready();
    let off_tick = OrderTerms {
        price: Some(windvane_model::Price(991)),
        ..limit(Side::Buy, 990, 10)
    };
    tell_after_question(&mut account, rules(tick(10)));
    assert!(try_submit(&mut account, off_tick).is_err());
    assert_eq!(asked(&mut account), 1);
    tell(&mut account, rules(tick(1)));
    assert_eq!(try_submit(&mut account, off_tick), Ok(()));
    // A rejection for another reason than a filter does not read the rules.
    account.handle(Input::Command(Command::Pause));
    assert!(try_submit(&mut account, off_tick).is_err());
    assert_eq!(asked(&mut account), 0);
}

/// Submits an order that the venue rejects for a filter, and answers the query that follows.
fn tell_after_question(account: &mut Account, state_report: StateReport) {
    refuse(account, -4014);
    assert_eq!(asked(account), 1);
    tell(account, state_report);
}

#[test]
fn a_position_below_the_minimum_order_is_shown_as_waiting() {
    let mut account = holding_15();
    refuse(&mut account, -4014);
    tell(&mut account, rules(step(20)));
    account.sent.clear();
    account.handle(Input::Command(windvane_model::input::Command::Flatten));
    assert_eq!(take_closes(&mut account), []);
    let asked = account.now;
    account.pass(5_000);
    let waits = account.engine.close_waits();
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!((waits[0].strategy, waits[0].since), (MM, asked));
    assert_eq!(waits[0].positions, [(BTC, 15)]);
    let too_small = CloseReason::TooSmall {
        instrument: BTC,
        min_qty: 20,
    };
    assert_eq!(waits[0].reasons, [too_small]);
    account.handle(Input::Command(windvane_model::input::Command::Resume));
    assert_eq!(account.engine.close_waits(), [], "the close is withdrawn");
}
