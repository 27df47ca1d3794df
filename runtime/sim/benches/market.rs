//! Benchmarks of the venue: a market event that concerns no own order, one with two own orders in
//! the book, placing and cancelling, and a market order with its fill.

#![allow(clippy::expect_used, reason = "a panic is how a bench fails")]
#![allow(missing_docs, reason = "criterion's macro makes a public function")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;

use common::{FUTURES as BTC, config, instrument};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windvane_model::{
    ClientOrderId, Level, MarketEvent, NewOrder, OrderTerms, OrderType, Price, Qty, Request, Side,
    Surface, Time, TimeInForce,
};
use windvane_sim::Venue;

fn venue() -> Venue {
    Venue::new(config(), vec![instrument(Surface::Futures)]).expect("a valid configuration")
}

/// Trades and tops in equal numbers around a moving mid price; with `drift` 0 it does not move.
fn tape(events: usize, drift: i64) -> Vec<MarketEvent<'static>> {
    let mut state = 20_240_607_u64;
    let mut draw = move |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % bound) as i64
    };
    let mut bid = 600_000;
    let mut ask = 600_002;
    let mut tape = Vec::with_capacity(events);
    for n in 0..events {
        let id = n as i64;
        if draw(2) == 0 {
            if draw(10) < 3 {
                bid += (draw(5) - 2) * drift;
            }
            ask = bid + 1 + draw(3);
            let level = |price, qty| Level { price, qty };
            tape.push(MarketEvent::Top {
                update_id: id,
                bid: level(bid, 1 + draw(5_000)),
                ask: level(ask, 1 + draw(5_000)),
            });
        } else {
            let buyer_is_maker = draw(2) == 0;
            let sweep = if draw(20) == 0 { 1 + draw(3) } else { 0 };
            tape.push(MarketEvent::Trade {
                price: if buyer_is_maker {
                    bid - sweep
                } else {
                    ask + sweep
                },
                qty: 1 + draw(160),
                trade_id: id,
                buyer_is_maker,
            });
        }
    }
    tape
}

fn limit(name: usize, side: Side, price: i64) -> Request {
    let mut terms = OrderTerms::new(BTC, side, OrderType::Limit);
    terms.price = Some(Price(price));
    terms.qty = Some(Qty(10));
    terms.time_in_force = Some(TimeInForce::Gtx);
    place(name, terms)
}

fn place(name: usize, terms: OrderTerms) -> Request {
    Request::Place(NewOrder {
        client_order_id: ClientOrderId::new(&format!("mm.sabc12.{name}")).expect("a valid id"),
        terms,
    })
}

fn drain(venue: &mut Venue) {
    while let Some(message) = venue.poll() {
        black_box(message);
    }
}

fn market(c: &mut Criterion) {
    let mut group = c.benchmark_group("market");
    let tape = tape(100_000, 0);
    group.throughput(Throughput::Elements(tape.len() as u64));
    for own in [0, 2] {
        group.bench_function(format!("{own}_resting"), |b| {
            let mut venue = venue();
            for n in 0..own {
                let (side, price) = [(Side::Buy, 599_990), (Side::Sell, 600_020)][n];
                venue.request(Time(0), &limit(n, side, price));
            }
            drain(&mut venue);
            b.iter(|| {
                for (n, event) in tape.iter().enumerate() {
                    venue.market(Time(n as i64), BTC, black_box(event));
                    while let Some(message) = venue.poll() {
                        black_box(message);
                    }
                }
            });
        });
    }
    group.finish();
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("request");
    let top = |bid, ask| MarketEvent::Top {
        update_id: 0,
        bid: Level {
            price: bid,
            qty: 5_000,
        },
        ask: Level {
            price: ask,
            qty: 5_000,
        },
    };
    group.bench_function("place_and_cancel", |b| {
        let mut venue = venue();
        venue.market(Time(0), BTC, &top(600_000, 600_002));
        let pairs: Vec<_> = (0..1_024)
            .map(|n| {
                let placed = limit(n, Side::Buy, 599_997);
                let Request::Place(order) = &placed else {
                    unreachable!()
                };
                let cancel = Request::Cancel {
                    instrument: BTC,
                    client_order_id: order.client_order_id,
                };
                (placed, cancel)
            })
            .collect();
        let mut n = 0;
        b.iter(|| {
            let (placed, cancel) = &pairs[n % pairs.len()];
            venue.request(Time(n as i64), placed);
            drain(&mut venue);
            venue.request(Time(n as i64), cancel);
            drain(&mut venue);
            n += 1;
        });
    });
    group.bench_function("market_order_with_fill", |b| {
        let mut venue = venue();
        let sides: Vec<_> = (0..1_024)
            .map(|n| {
                let side = if n % 2 == 0 { Side::Buy } else { Side::Sell };
                let mut terms = OrderTerms::new(BTC, side, OrderType::Market);
                terms.qty = Some(Qty(10));
                place(n, terms)
            })
            .collect();
        let mut n = 0;
        b.iter(|| {
            // A new displayed quantity each time, so that the order always fills.
            venue.market(Time(n as i64), BTC, &top(600_000, 600_001 + (n as i64 % 2)));
            venue.request(Time(n as i64), &sides[n % sides.len()]);
            drain(&mut venue);
            n += 1;
        });
    });
    group.finish();
}

/// A market maker without a strategy: one bid and one ask 3 ticks from the best price, replaced
/// when filled or when the mid price has moved more than 5 ticks.
fn maker(c: &mut Criterion) {
    let mut group = c.benchmark_group("maker_session");
    let tape = tape(1_000_000, 1);
    group.sample_size(10);
    group.throughput(Throughput::Elements(tape.len() as u64));
    group.bench_function("per_event", |b| {
        b.iter(|| {
            let mut venue = venue();
            let (mut names, mut quoted) = (0_usize, 0);
            for (n, event) in tape.iter().enumerate() {
                let now = Time(n as i64);
                venue.market(now, BTC, event);
                let mut filled = false;
                while let Some(message) = venue.poll() {
                    filled |= matches!(black_box(message), windvane_sim::VenueMessage::User(_));
                }
                let MarketEvent::Top { bid, ask, .. } = event else {
                    continue;
                };
                let twice = bid.price + ask.price;
                if filled || (twice - quoted).abs() > 10 {
                    quoted = twice;
                    venue.request(now, &Request::CancelAll { instrument: BTC });
                    venue.request(now, &limit(names, Side::Buy, bid.price - 3));
                    venue.request(now, &limit(names + 1, Side::Sell, ask.price + 3));
                    names += 2;
                    drain(&mut venue);
                }
            }
            black_box(names)
        });
    });
    group.finish();
}

criterion_group!(benches, market, requests, maker);
criterion_main!(benches);
