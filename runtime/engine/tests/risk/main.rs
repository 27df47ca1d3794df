//! Examples of risk limits, halts, faults and the results of a callback.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod callback;
mod limits;
mod losses;
mod quotas;
mod reduce_only;
mod safety;
mod spot;
#[path = "../support/mod.rs"]
mod support;

use support::{Account, BTC, config, fill};
use windvane_model::config::EngineConfig;
use windvane_model::rules::Rule;
use windvane_model::{Amount, OrderSeq, OrderStatus, OrderTerms, PositionSide, Side, StrategyId};

const fn usdt(whole: i128) -> Amount {
    Amount(whole * 100_000_000)
}

/// Submits an order and returns the rule that rejects it; `None` if it is accepted.
fn refusal(account: &mut Account, strategy: StrategyId, terms: OrderTerms) -> Option<Rule> {
    let answer = account.call(strategy, |callback, engine| callback.submit(engine, terms));
    answer.err().map(|rejection| rejection.rule)
}

fn with(change: impl FnOnce(&mut EngineConfig)) -> Account {
    let mut config = config();
    change(&mut config);
    Account::new(config)
}

/// Fills an order completely, at 100.0 with a fee of 0.01.
fn fill_all(account: &mut Account, strategy: StrategyId, order: OrderSeq, trade: i64) {
    let terms = account.engine.order(order).unwrap().terms;
    let qty = terms.qty.unwrap().0;
    let id = account.id(strategy, order);
    let mut update = fill(id, terms.side, trade, qty, qty, OrderStatus::Filled);
    update.instrument = terms.instrument;
    account.update(update);
}

/// Changes a strategy's position by this quantity, with a fill at 100.0.
fn hold(account: &mut Account, strategy: StrategyId, qty: i64, trade: i64) {
    let side = if qty > 0 { Side::Buy } else { Side::Sell };
    let order = account.submit(strategy, support::market(side, qty.abs()));
    fill_all(account, strategy, order, trade);
    account.sent.clear();
}

fn own_qty(account: &Account, strategy: StrategyId) -> i64 {
    let ledger = &account.engine.ledgers().strategies[usize::from(strategy.0)];
    ledger.at(BTC, PositionSide::Both).position.qty
}
