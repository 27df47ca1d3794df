//! Tests of deposits, withdrawals and transfers, and of the balances after them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::*;
use windvane_model::protocol::AccountReason;
use windvane_model::{Amount, AssetId, Side, Surface, TimeInForce};
use windvane_sim::Cause;

const NEW_ASSET: AssetId = AssetId(7);

fn bench() -> Bench {
    let mut bench = Bench::new(config());
    bench.top(FUTURES, (600_000, 90_000), (600_010, 90_000));
    bench.top(SPOT, (600_000, 90_000), (600_010, 90_000));
    bench
}

#[test]
fn a_deposit_is_reported_with_its_change() {
    let mut bench = bench();
    let now = bench.now;
    let venue = &mut bench.venue;
    venue
        .credit(now, Surface::Futures, USDT, whole(5), Cause::Deposit)
        .unwrap();
    venue
        .credit(now, Surface::Spot, NEW_ASSET, whole(3), Cause::Deposit)
        .unwrap();
    bench.pass_ms(1);
    assert_eq!(bench.wallet(), whole(10_005));
    assert_eq!(bench.balance(Surface::Spot, NEW_ASSET).0, whole(3));
    let updates = bench.account_updates(AccountReason::Other);
    assert_eq!(updates[0].balances[0].change, whole(5));
    assert!(updates[0].positions.is_empty());
    assert_eq!(updates[1].balances[0].asset, NEW_ASSET);
}

#[test]
fn locked_or_used_funds_cannot_be_withdrawn() {
    let mut bench = bench();
    let terms = limit(SPOT, Side::Buy, 500_000, 100, TimeInForce::Gtc);
    bench.place("a", terms).unwrap();
    // 5,000 and the taker fee of 2 are locked.
    assert_eq!(
        bench.venue.withdrawable(Surface::Spot, USDT).to_string(),
        "4998"
    );
    let now = bench.now;
    let refused = bench.venue.transfer(now, Surface::Spot, USDT, whole(4_999));
    assert_eq!(refused.unwrap_err().code, -2018);
    let moved = bench.venue.transfer(now, Surface::Spot, USDT, whole(4_998));
    assert_eq!(moved, Ok(()));
    assert_eq!(bench.wallet(), whole(14_998));
    assert_eq!(bench.balance(Surface::Spot, USDT).0, whole(5_002));
    for bad in [Amount::ZERO, whole(-1)] {
        let refused = bench.venue.transfer(now, Surface::Futures, USDT, bad);
        assert_eq!(refused.unwrap_err().code, -4055);
    }
    let unknown = bench
        .venue
        .debit(now, Surface::Spot, NEW_ASSET, whole(1), Cause::Withdraw);
    assert_eq!(unknown.unwrap_err().code, -2018);
}

#[test]
fn unrealized_profit_is_available_and_cannot_be_withdrawn() {
    let mut bench = bench();
    bench.place("a", market(FUTURES, Side::Buy, 1_000)).unwrap();
    bench.top(FUTURES, (610_000, 90_000), (610_010, 90_000));
    let balance = bench.venue.futures_balance(USDT);
    // Bought at 60,001 with a mark price of 61,000.5: a profit of 999.5. The fee was 24.0004.
    assert_eq!(balance.unrealized, amount("999.5"));
    assert_eq!(balance.wallet, amount("9975.9996"));
    assert_eq!(balance.position_margin, amount("3050.025"));
    assert_eq!(balance.open_order_margin, Amount::ZERO);
    assert_eq!(balance.maintenance_margin, amount("305.0025"));
    assert_eq!(balance.available, amount("7925.4746"));
    assert_eq!(balance.max_withdraw, amount("6925.9746"));

    bench.top(FUTURES, (590_000, 90_000), (590_010, 90_000));
    let balance = bench.venue.futures_balance(USDT);
    assert_eq!(balance.unrealized, amount("-1000.5"));
    assert_eq!(balance.available, balance.max_withdraw);
    let now = bench.now;
    let all = balance.max_withdraw;
    let over = all + Amount(1);
    let mut debit = |amount| {
        let venue = &mut bench.venue;
        venue.debit(now, Surface::Futures, USDT, amount, Cause::Withdraw)
    };
    assert_eq!(debit(over).unwrap_err().code, -2018);
    assert_eq!(debit(all), Ok(()));
    assert_eq!(bench.venue.futures_balance(USDT).available, Amount::ZERO);
    bench.pass_ms(1);
    let more = market(FUTURES, Side::Buy, 1);
    assert_eq!(bench.place("b", more), Err(-2019));
}
