//! Spot: start holdings, orders by quote quantity, balances of both assets.

use windvane_model::config::EngineConfig;
use windvane_model::input::Command;
use windvane_model::rules::Rule;
use windvane_model::{
    Amount, AssetId, Input, OrderStatus, OrderTerms, OrderType, PositionSide, Side, Surface,
};

use super::support::{Account, BTC, MM, OTHER, USDT, config, fill, limit, market};
use super::{own_qty, refusal, usdt};

const BASE: AssetId = AssetId(0);

fn spot_config() -> EngineConfig {
    let mut config = config();
    config.instruments[0].surface = Surface::Spot;
    config.balances = vec![
        (Surface::Spot, USDT, usdt(1_000)),
        (Surface::Spot, BASE, Amount(50_000_000)),
    ];
    config
}

fn by_quote(quote: Amount) -> OrderTerms {
    let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::Market);
    terms.quote_qty = Some(quote);
    terms
}

/// A strategy buys a hundred lots for 10.
fn buy_hundred(account: &mut Account) {
    let order = account.submit(MM, by_quote(usdt(10)));
    let id = account.id(MM, order);
    let mut bought = fill(id, Side::Buy, 1, 100, 100, OrderStatus::Filled);
    bought.fill.as_mut().unwrap().quote_qty = usdt(10);
    account.update(bought);
}

#[test]
fn initial_holdings_are_unowned_at_the_first_mid_price() {
    let account = Account::new(spot_config());
    let ledgers = account.engine.ledgers();
    let held = ledgers.external.at(BTC, PositionSide::Both).position;
    assert_eq!((held.qty, held.cost), (500, usdt(50)), "0.5 at 100");
    assert_eq!(own_qty(&account, MM), 0);
    let totals = account.engine.totals().unwrap();
    assert_eq!(totals.equity, usdt(1_050));
    assert_eq!(account.engine.start_equity(), Some(usdt(1_050)));
    assert_eq!(totals.unrealized_pnl, Amount::ZERO);
}

#[test]
fn before_the_first_price_there_is_no_equity() {
    let engine = windvane_engine::Engine::new(spot_config()).unwrap();
    assert_eq!(engine.totals(), None);
    assert_eq!(engine.start_equity(), None);
}

#[test]
fn the_market_price_changes_equity_by_the_holding() {
    let mut account = Account::new(spot_config());
    account.top(1099, 1101);
    let totals = account.engine.totals().unwrap();
    assert_eq!(
        (totals.equity, totals.unrealized_pnl),
        (usdt(1_055), usdt(5))
    );
}

#[test]
fn a_market_buy_by_quote_reserves_its_largest_quantity() {
    let mut account = Account::new(spot_config());
    assert_eq!(
        refusal(&mut account, MM, market(Side::Buy, 5)),
        Some(Rule::MandatoryQuoteQty)
    );
    let order = account.submit(MM, by_quote(usdt(10)));
    let known = account.engine.order(order).unwrap();
    // 10 at the best ask of 100.1 buys 0.0999, which is rounded up.
    assert_eq!(known.reserved_qty, 100);
    let id = account.id(MM, order);
    let mut bought = fill(id, Side::Buy, 1, 99, 99, OrderStatus::Filled);
    bought.fill.as_mut().unwrap().quote_qty = usdt(10);
    account.update(bought);
    assert_eq!(own_qty(&account, MM), 99);
    assert!(account.engine.orders().is_empty());
    let holding = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    assert_eq!(holding.open_buy, 0, "the unused quantity is free again");
    let total = |asset| account.engine.balance(Surface::Spot, asset).total;
    assert_eq!(total(BASE), Amount(59_900_000));
    assert_eq!(
        total(USDT),
        Amount(usdt(990).0 - 1_000_000),
        "10 and a fee of 0.01"
    );
}

#[test]
fn profit_of_a_round_trip_is_in_the_quote_balance() {
    let mut account = Account::new(spot_config());
    buy_hundred(&mut account);
    let order = account.submit(MM, market(Side::Sell, 100));
    let id = account.id(MM, order);
    let mut sold = fill(id, Side::Sell, 2, 100, 100, OrderStatus::Filled);
    sold.fill.as_mut().unwrap().quote_qty = usdt(12);
    account.update(sold);
    let own = account.engine.ledgers().strategies[0]
        .at(BTC, PositionSide::Both)
        .position;
    assert_eq!((own.qty, own.realized_pnl), (0, usdt(2)));
    let quote = account.engine.balance(Surface::Spot, USDT).total;
    assert_eq!(quote, Amount(usdt(1_002).0 - 2_000_000));
    let totals = account.engine.totals().unwrap();
    let start = account.engine.start_equity().unwrap();
    assert_eq!(
        totals.equity,
        start + totals.realized_pnl + totals.unrealized_pnl - totals.fees + totals.funding
    );
}

#[test]
fn on_spot_reduce_only_limits_to_the_own_share_without_the_flag() {
    let mut account = Account::new(spot_config());
    let mut sell = market(Side::Sell, 1);
    sell.reduce_only = true;
    let rule = refusal(&mut account, MM, sell);
    assert_eq!(
        rule,
        Some(Rule::ReduceOnlyPosition),
        "the initial holding does not belong to the strategy"
    );
    let order = account.submit(OTHER, limit(Side::Buy, 1000, 3));
    super::fill_all(&mut account, OTHER, order, 1);
    account.sent.clear();
    account.submit(OTHER, sell);
    let windvane_model::Request::Place(order) = account.sent[0] else {
        panic!("{:?}", account.sent);
    };
    assert!(!order.terms.reduce_only);
}

#[test]
fn opposite_positions_are_settled_on_spot_too() {
    let mut account = Account::new(spot_config());
    buy_hundred(&mut account);
    let order = account.submit(OTHER, market(Side::Sell, 100));
    let id = account.id(OTHER, order);
    account.update(fill(id, Side::Sell, 2, 100, 100, OrderStatus::Filled));
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    assert_eq!((own_qty(&account, MM), own_qty(&account, OTHER)), (0, 0));
    assert!(!account.engine.is_flattening(MM) && !account.engine.is_flattening(OTHER));
    assert!(account.sent.is_empty(), "the account's own holding stays");
}
