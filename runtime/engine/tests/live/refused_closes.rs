//! Closing orders that the venue rejects for a long time. The engine keeps closing until the
//! position is closed or the operator resumes.

use windvane_engine::engine::CloseReason;
use windvane_model::input::Command;
use windvane_model::instrument::SymbolStatus;
use windvane_model::live::{LiveConfig, LiveInput, OnStop};
use windvane_model::protocol::Refusal;
use windvane_model::run_state::RunState;
use windvane_model::state_report::{ListedRules, StateReport, Subject};
use windvane_model::{
    ClientOrderId, Input, Instrument, Notice, OrderStatus, OrderType, Outcome, Reply, Request,
    Side, Surface,
};

use super::succession::{killed, next_config};
use super::support::{Account, BTC, MM, fill, instrument, limit, refused, report};
use super::world::{live_config, ready_with};

/// An error code that is not about the key or a rule of the symbol.
const REFUSED: i32 = -1000;
const NOT_TRADING: i32 = -4022;

/// An account whose strategy MM has a long position of 15.
fn holding(live: LiveConfig) -> Account {
    let mut account = ready_with(live);
    let order = account.submit(MM, limit(Side::Buy, 1000, 15));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 15, 15, OrderStatus::Filled));
    account.sent.clear();
    account.notices.clear();
    account
}

/// Removes the sent closing orders and returns their ids.
fn take_closes(account: &mut Account) -> Vec<ClientOrderId> {
    let is_close = |request: &Request| matches!(request, Request::Place(order) if order.terms.order_type == OrderType::Market);
    let (closes, other) = account.sent.drain(..).partition::<Vec<_>, _>(is_close);
    account.sent = other;
    let ids = closes.iter().filter_map(|request| match request {
        Request::Place(order) => Some(order.client_order_id),
        _ => None,
    });
    ids.collect()
}

fn refuse(account: &mut Account, id: ClientOrderId, code: i32) {
    let msg = "the reason of the venue".to_owned();
    account.placed(id, Outcome::Refused(Refusal { code, msg }));
}

/// Lets time pass and rejects every closing order with this code. Returns their number.
fn refuse_for(account: &mut Account, seconds: u32, code: i32) -> usize {
    let mut refused = 0;
    for _ in 0..seconds {
        for id in take_closes(account) {
            refused += 1;
            refuse(account, id, code);
        }
        account.seconds(1);
    }
    refused
}

fn flatten(account: &mut Account) {
    account.handle(Input::Command(Command::Flatten));
}

fn list(account: &mut Account, status: SymbolStatus) {
    let rules = Instrument {
        status,
        ..instrument()
    };
    let listed = ListedRules {
        instrument: BTC,
        rules: Ok(rules),
    };
    let surface = Surface::Futures;
    account.tell(Subject::Rules { surface }, StateReport::Rules(vec![listed]));
}

fn asks_for_rules(account: &Account) -> bool {
    let mut sent = account.sent.iter();
    sent.any(|request| matches!(request, Request::Read(Subject::Rules { .. })))
}

#[test]
fn flatten_continues_until_the_venue_accepts_a_close() {
    let mut account = holding(live_config());
    flatten(&mut account);
    let first = refuse_for(&mut account, 600, REFUSED);
    assert!((14..=20).contains(&first), "{first}");
    let hour = refuse_for(&mut account, 3_600, REFUSED);
    assert!((59..=61).contains(&hour), "once a minute: {hour}");
    assert!(account.engine.is_flattening(MM));
    // The venue accepts orders again.
    take_closes(&mut account);
    let mut waited = 0;
    let id = loop {
        if let [id] = take_closes(&mut account)[..] {
            break id;
        }
        account.seconds(1);
        waited += 1;
        assert!(waited <= 60);
    };
    account.update(fill(id, Side::Sell, 2, 15, 15, OrderStatus::Filled));
    assert!(!account.engine.is_flattening(MM));
    assert_eq!(account.engine.close_waits(), []);
}

#[test]
fn close_waits_shows_a_rejected_close_with_its_code() {
    let mut account = holding(live_config());
    flatten(&mut account);
    for _ in 0..3 {
        refuse_for(&mut account, 300, REFUSED);
        let waits = account.engine.close_waits();
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert_eq!(waits[0].positions, [(BTC, 15)]);
        let refused = waits[0].reasons.iter().find_map(|reason| match reason {
            CloseReason::Refused {
                instrument,
                code,
                count,
                next,
            } => Some((*instrument, *code, *count, *next)),
            _ => None,
        });
        let (instrument, code, count, next) = refused.unwrap();
        assert_eq!((instrument, code), (BTC, REFUSED));
        assert!(count >= 9 && next > account.now, "{waits:?}");
        assert!(next <= account.now.plus_ms(60_000), "{waits:?}");
    }
    let reported = account.notices.iter();
    let unclosed = reported.filter(|notice| matches!(notice, Notice::Unclosed { qty: 15, .. }));
    assert_eq!(unclosed.count(), 1, "it is reported once");
}

#[test]
fn closing_continues_after_a_restart() {
    let mut account = holding(live_config());
    flatten(&mut account);
    refuse_for(&mut account, 300, REFUSED);
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    assert_eq!(account.engine.run_state(), RunState::Halted);
    assert!(refuse_for(&mut account, 61, REFUSED) >= 1);
}

#[test]
fn resume_ends_closing() {
    let mut account = holding(live_config());
    flatten(&mut account);
    refuse_for(&mut account, 300, REFUSED);
    account.handle(Input::Command(Command::Resume));
    assert!(!account.engine.is_flattening(MM));
    take_closes(&mut account);
    assert_eq!(refuse_for(&mut account, 300, REFUSED), 0);
}

#[test]
fn another_flatten_tries_at_once() {
    let mut account = holding(live_config());
    flatten(&mut account);
    refuse_for(&mut account, 300, REFUSED);
    take_closes(&mut account);
    flatten(&mut account);
    assert_eq!(take_closes(&mut account).len(), 1);
}

#[test]
fn a_close_is_sent_at_once_when_the_symbol_trades_again() {
    let mut account = holding(live_config());
    flatten(&mut account);
    let id = take_closes(&mut account)[0];
    refuse(&mut account, id, NOT_TRADING);
    assert!(asks_for_rules(&account));
    list(&mut account, SymbolStatus::Other("SETTLING".to_owned()));
    account.sent.clear();
    refuse_for(&mut account, 280, NOT_TRADING);
    // The delay after the last try has just begun.
    while take_closes(&mut account).is_empty() {
        account.seconds(1);
    }
    let open = account
        .engine
        .orders()
        .iter()
        .next()
        .unwrap()
        .client_order_id;
    refuse(&mut account, open, NOT_TRADING);
    while !asks_for_rules(&account) {
        account.wait(1);
    }
    assert_eq!(
        take_closes(&mut account),
        [],
        "16 s of a minute have passed"
    );
    list(&mut account, SymbolStatus::Trading);
    account.wait(1);
    assert_eq!(take_closes(&mut account).len(), 1);
}

#[test]
fn a_stop_keeps_closing_until_its_caller_ends_it() {
    let mut account = holding(LiveConfig {
        on_stop: OnStop::Flatten,
        ..live_config()
    });
    account.live(LiveInput::Stop);
    refuse_for(&mut account, 300, REFUSED);
    assert!(!account.engine.has_stopped(), "its caller ends it");
    assert_eq!(account.engine.close_waits()[0].positions, [(BTC, 15)]);
}

/// An operator who resumes during a stop clears the reason that prevented the close. The run must
/// not end with a position that it had to close.
#[test]
fn resume_does_not_end_the_closes_of_a_stop() {
    let mut account = holding(LiveConfig {
        on_stop: OnStop::Flatten,
        ..live_config()
    });
    account.live(LiveInput::Stop);
    refuse_for(&mut account, 20, REFUSED);
    account.handle(Input::Command(Command::Resume));
    assert!(!account.engine.has_stopped());
    assert!(account.engine.is_flattening(MM));
    assert!(
        refuse_for(&mut account, 60, REFUSED) > 0,
        "closing continues"
    );
}

/// An order of MM with an unknown outcome, beside its position.
fn lost(account: &mut Account, side: Side, qty: i64) -> ClientOrderId {
    let order = account.submit(MM, limit(side, 990, qty));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.placed(id, Outcome::Unknown);
    account.sent.clear();
    id
}

#[test]
fn a_close_does_not_wait_for_the_outcome_of_an_opening_order() {
    let mut account = holding(live_config());
    let lost = lost(&mut account, Side::Buy, 10);
    flatten(&mut account);
    let close = take_closes(&mut account);
    assert_eq!(close.len(), 1, "at once");
    account.update(fill(close[0], Side::Sell, 2, 15, 15, OrderStatus::Filled));
    account.seconds(3);
    assert_eq!(take_closes(&mut account), []);
    assert!(account.engine.is_flattening(MM), "the order may still fill");
    // The order is found open, and is cancelled.
    account.sent.clear();
    account.seconds(1);
    assert!(account.take_queries() > 0);
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: lost,
        outcome: Outcome::Done(report(lost, OrderStatus::New, 0)),
    }));
    let is_cancel = |request: &Request| matches!(request, Request::Cancel { client_order_id, .. } if *client_order_id == lost);
    assert!(account.sent.iter().any(is_cancel), "{:?}", account.sent);
    // It filled before the cancel. The engine closes the fill too.
    account.update(fill(lost, Side::Buy, 3, 10, 10, OrderStatus::Filled));
    account.seconds(1);
    let close = take_closes(&mut account);
    assert_eq!(close.len(), 1);
    account.update(fill(close[0], Side::Sell, 4, 10, 10, OrderStatus::Filled));
    assert!(!account.engine.is_flattening(MM));
}

#[test]
fn a_close_does_not_wait_for_an_order_unknown_to_the_venue() {
    let mut account = holding(live_config());
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    flatten(&mut account);
    assert_eq!(take_closes(&mut account), [], "the cancel is in flight");
    account.canceled(id, refused(-2011));
    account.seconds(1);
    assert_eq!(take_closes(&mut account).len(), 1);
}

#[test]
fn flatten_leaves_the_quantity_of_an_exit_of_unknown_outcome() {
    let mut account = holding(live_config());
    lost(&mut account, Side::Sell, 10);
    flatten(&mut account);
    let places = account.sent.iter().filter_map(|request| match request {
        Request::Place(order) => order.terms.qty.map(|qty| (qty.0, order.terms.reduce_only)),
        _ => None,
    });
    assert_eq!(places.collect::<Vec<_>>(), [(5, true)]);
}
