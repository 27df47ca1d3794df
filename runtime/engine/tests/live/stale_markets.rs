//! Market data that stops although all connections are up.

use windvane_model::rules::Rule;
use windvane_model::state_report::Subject;
use windvane_model::trading::TradingBlock;
use windvane_model::{Input, MarketEvent, OrderStatus, OrderTerms, Request, Side, Time};

use super::support::{Account, BTC, MM, fill, limit};
use super::world::ready;

fn marks(account: &mut Account, count: u32, apart_ms: i64) {
    for _ in 0..count {
        account.handle(Input::Market {
            instrument: BTC,
            event: MarketEvent::Mark {
                mark: 100 * 100_000_000,
                index: 0,
                funding_rate: 0,
                next_funding: Time::NEVER,
            },
        });
        account.pass(apart_ms);
        account.alive();
    }
}

fn tried(account: &mut Account, terms: OrderTerms) -> Option<Rule> {
    let tried = account.call(MM, |callback, engine| callback.submit(engine, terms));
    tried.err().map(|rejection| rejection.rule)
}

fn blocks(account: &Account) -> Vec<TradingBlock> {
    account.engine.blocks().map(|(block, _)| block).collect()
}

/// A run with a position of 10 that received a mark price every second.
fn regular() -> Account {
    let mut account = ready();
    marks(&mut account, 5, 999);
    let order = account.submit(MM, limit(Side::Buy, 990, 10));
    account.confirm_countdowns();
    let id = account.id(MM, order);
    account.update(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    marks(&mut account, 8, 999);
    account
}

#[test]
fn no_position_is_opened_after_market_data_stopped() {
    let mut account = regular();
    account.seconds(10);
    let opening = limit(Side::Buy, 990, 1);
    assert_eq!(tried(&mut account, opening), None);
    account.wait(6);
    assert_eq!(blocks(&account), [TradingBlock::StaleMarket(BTC)]);
    let reads_rules = |request: &Request| matches!(request, Request::Read(Subject::Rules { .. }));
    assert!(
        account.sent.iter().any(reads_rules),
        "the symbol may have stopped trading"
    );
    assert_eq!(tried(&mut account, opening), Some(Rule::InstrumentBlocked));
    let mut closing = limit(Side::Sell, 1010, 1);
    closing.reduce_only = true;
    assert_eq!(tried(&mut account, closing), None, "a close passes");
    account.top(999, 1001);
    assert_eq!(blocks(&account), []);
    assert_eq!(tried(&mut account, opening), None);
}

#[test]
fn irregular_market_data_does_not_count_as_stopped() {
    let mut account = ready();
    marks(&mut account, 12, 9_000);
    account.seconds(40);
    assert_eq!(blocks(&account), []);
    let opening = limit(Side::Buy, 990, 1);
    assert_eq!(tried(&mut account, opening), None);
}
