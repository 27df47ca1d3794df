//! The rules events that strategies receive: each change once, and all rules for a new instance.

use windvane_model::event::{Event, EventKind};
use windvane_model::instrument::{Instrument, LotSize, Notional, SymbolStatus};
use windvane_model::state_report::{ListedRules, StateReport};
use windvane_model::{Amount, Input, StrategyId};

use super::rules_refresh::{refuse, rules, tell, tick};
use super::support::{self, Account, BTC, MM, OTHER};
use super::world::{booting, live_config, ready};

const TRADING: u32 = 1;
const UNUSABLE: u32 = 2;

/// The rules events since the last call.
fn take_delivered(account: &mut Account) -> Vec<(StrategyId, Event)> {
    let all = std::mem::take(&mut account.delivered).into_iter();
    all.filter(|(_, event)| event.kind == EventKind::Rules)
        .collect()
}

/// Makes the engine read the rules, with these changes.
fn read(account: &mut Account, change: impl Fn(&mut Instrument)) {
    refuse(account, -4014);
    tell(account, rules(change));
}

#[test]
fn each_strategy_of_the_instrument_receives_a_change_once() {
    let mut account = ready();
    read(&mut account, |_| {});
    assert_eq!(take_delivered(&mut account), [], "nothing changed");
    let change = |rules: &mut Instrument| {
        tick(5)(rules);
        rules.filters.lot_size = Some(LotSize {
            min_qty: 5,
            max_qty: 1_000,
            step_size: 5,
        });
        rules.filters.min_notional = None;
        rules.filters.notional = Some(Notional {
            min_notional: Amount(50_000_000),
            max_notional: Amount::ZERO,
            apply_min_to_market: true,
            apply_max_to_market: false,
            avg_price_mins: 0,
        });
    };
    account.wait(16);
    read(&mut account, change);
    let events = take_delivered(&mut account);
    let to: Vec<_> = events.iter().map(|(to, _)| *to).collect();
    assert_eq!(to, [MM, OTHER]);
    let event = &events[0].1;
    assert_eq!(event.fields, [5, 5, 10_000_000, 5, 5, 1_000]);
    assert_eq!(
        (event.instrument, event.flags, event.id),
        (BTC, TRADING, 50_000_000)
    );
    read(&mut account, change);
    assert_eq!(take_delivered(&mut account), [], "no further change");
}

#[test]
fn strategies_receive_status_changes_and_unusable_rules() {
    let mut account = ready();
    let settling = |rules: &mut Instrument| {
        rules.status = SymbolStatus::Other("SETTLING".to_owned());
    };
    read(&mut account, settling);
    assert_eq!(take_delivered(&mut account)[0].1.flags, 0);
    account.wait(16);
    tell(&mut account, rules(|_| {}));
    assert_eq!(take_delivered(&mut account)[0].1.flags, TRADING);

    let finer = || {
        StateReport::Rules(vec![ListedRules {
            instrument: BTC,
            rules: Err("tickSize 0.01 has more than 1 decimal places".to_owned()),
        }])
    };
    refuse(&mut account, -4014);
    for (expected, state_report) in [
        (vec![TRADING | UNUSABLE; 2], finer()),
        (vec![], finer()),
        (vec![TRADING; 2], rules(|_| {})),
    ] {
        tell(&mut account, state_report);
        let flags = take_delivered(&mut account)
            .into_iter()
            .map(|(_, event)| event.flags);
        assert_eq!(flags.collect::<Vec<_>>(), expected);
        account.wait(16);
    }
}

#[test]
fn strategies_receive_a_status_from_market_data_once() {
    let mut account = ready();
    account.delivered.clear();
    for (status, count) in [
        (SymbolStatus::Trading, 0),
        (SymbolStatus::Other("BREAK".to_owned()), 2),
        (SymbolStatus::Other("BREAK".to_owned()), 0),
        (SymbolStatus::Trading, 2),
    ] {
        let status = &status;
        account.handle(Input::SymbolStatus {
            instrument: BTC,
            status,
        });
        assert_eq!(take_delivered(&mut account).len(), count, "{status}");
    }
}

#[test]
fn a_new_instance_receives_the_rules_of_its_instruments_first() {
    let mut account = ready();
    read(&mut account, tick(5));
    account.delivered.clear();
    account.handle(Input::Renew { strategy: MM });
    let (to, first) = account.delivered[0];
    assert_eq!((to, first.kind, first.fields[0]), (MM, EventKind::Rules, 5));
    assert_eq!(take_delivered(&mut account).len(), 1);
}

#[test]
fn a_strategy_without_the_instrument_receives_no_rules() {
    let mut config = support::config();
    config.strategies[1].subscriptions.clear();
    let mut account = booting(live_config());
    account.engine = windvane_engine::Engine::new(config).unwrap();
    account.handle(Input::SymbolStatus {
        instrument: BTC,
        status: &SymbolStatus::Other("BREAK".to_owned()),
    });
    let to: Vec<_> = take_delivered(&mut account)
        .into_iter()
        .map(|(to, _)| to)
        .collect();
    assert_eq!(to, [MM]);
}
