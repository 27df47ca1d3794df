//! Tests of an account that outlives its process, and of an account without market data.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::*;
use windvane_model::{
    AssetId, Instrument, InstrumentId, OrderStatus, Request, Side, Surface, TimeInForce,
};
use windvane_sim::Venue;
use windvane_sim::snapshot::SnapshotError;

fn other(surface: Surface, symbol: &str) -> Instrument {
    Instrument {
        symbol: symbol.into(),
        ..instrument(surface)
    }
}

/// A bench with a position of 5 at 100.0 and a bid of 3 at 99.0.
fn holding() -> Bench {
    let mut bench = Bench::new(config());
    bench.top(FUTURES, (999, 100), (1_000, 100));
    bench.place("taken", market(FUTURES, Side::Buy, 5)).unwrap();
    let rests = limit(FUTURES, Side::Buy, 990, 3, TimeInForce::Gtc);
    bench.place("rests", rests).unwrap();
    bench
}

fn through_bytes(bench: &Bench) -> Venue {
    Venue::restore(&bench.venue.snapshot()).unwrap()
}

#[test]
fn an_account_continues_with_other_instrument_and_asset_ids() {
    let mut bench = holding();
    let wallet = bench.wallet();
    let rules = vec![
        other(Surface::Futures, "ETHUSDT"),
        instrument(Surface::Spot),
        instrument(Surface::Futures),
    ];
    let rules: Vec<_> = rules
        .into_iter()
        .map(|rules| Instrument {
            base: AssetId(4),
            quote: AssetId(2),
            ..rules
        })
        .collect();
    let assets = [AssetId(2), AssetId(4)];
    bench.venue = through_bytes(&bench)
        .succeed(config(), rules, &assets)
        .unwrap();
    let now = InstrumentId(2);
    assert_eq!(bench.balance(Surface::Futures, AssetId(2)).0, wallet);
    assert_eq!(bench.balance(Surface::Spot, AssetId(4)).0, whole(1));
    let held: Vec<_> = bench.venue.positions().collect();
    assert_eq!((held.len(), held[0].instrument, held[0].qty.0), (1, now, 5));
    assert_eq!(bench.query(now, "rests").unwrap().status, OrderStatus::New);
    assert_eq!(bench.query(now, "taken").unwrap().executed_qty.0, 5);
    // An order in the book can still fill.
    bench.messages.clear();
    bench.trade(now, 980, 100, true);
    assert_eq!(bench.filled(), [(990, 3, true)]);
}

#[test]
fn orders_of_a_removed_instrument_are_cancelled() {
    let bench = holding();
    let rules = || vec![instrument(Surface::Spot)];
    let refused = through_bytes(&bench).succeed(config(), rules(), &[USDT, BTC]);
    assert_eq!(
        refused.err(),
        Some(SnapshotError::Held("futures:BTCUSDT".to_owned()))
    );
    let mut bench = holding();
    bench
        .place("closed", market(FUTURES, Side::Sell, 5))
        .unwrap();
    let wallet = bench.wallet();
    bench.venue = through_bytes(&bench)
        .succeed(config(), rules(), &[USDT, BTC])
        .unwrap();
    assert_eq!(bench.wallet(), wallet);
    assert_eq!(bench.venue.open(None), []);
    assert_eq!(bench.venue.orders(), []);
}

#[test]
fn a_scale_that_changed_is_refused() {
    let mut rules = vec![instrument(Surface::Futures), instrument(Surface::Spot)];
    rules[0].qty_scale += 1;
    let refused = through_bytes(&holding()).succeed(config(), rules, &[USDT, BTC]);
    let text = refused.err().unwrap().to_string();
    assert!(text.starts_with("futures:BTCUSDT: qty_scale"), "{text}");
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = holding().venue.snapshot();
    assert!(matches!(
        Venue::restore(&bytes[1..]),
        Err(SnapshotError::Format)
    ));
    assert!(matches!(
        Venue::restore(&bytes[..bytes.len() / 2]),
        Err(SnapshotError::Content(_))
    ));
}

#[test]
fn nothing_fills_without_market_data() {
    let mut bench = holding();
    bench.venue.blind(FUTURES);
    let ended = bench.place("blind", market(FUTURES, Side::Buy, 1)).unwrap();
    assert_eq!(ended.executed_qty.0, 0);
    assert_eq!(bench.statuses().last(), Some(&OrderStatus::Expired));
    let crossing = limit(FUTURES, Side::Buy, 1_001, 1, TimeInForce::Gtc);
    bench.place("waits", crossing).unwrap();
    assert_eq!(bench.filled(), []);
    bench.messages.clear();
    // The next received quote shows the market again.
    bench.top(FUTURES, (996, 10), (997, 10));
    assert_eq!(bench.filled(), [(1_001, 1, true)]);
    bench.request(&Request::CancelAll {
        instrument: FUTURES,
    });
}
