//! A plausible run for tests of the writer and the report: a seeded random walk, two strategies
//! that trade on it, and a consistent summary.

use windvane_model::decimal::Amount;
use windvane_model::ids::Time;
use windvane_model::order::{OrderType, PositionSide, Side, TimeInForce};

use super::{
    DataSummary, EngineVersions, EquityRow, EventCounts, FillRow, Histogram, InstrumentSummary,
    LatencySummary, OrderRow, QueueSummary, RejectionCount, ResultWriter, RulesSource,
    StrategySummary, Summary, TimeShare,
};

pub(crate) const INSTRUMENT: &str = "futures:BTCUSDT";
const START: i64 = 1_723_161_255_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// A linear congruential generator with Knuth's MMIX constants.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound) as i64
    }
}

/// The account of one strategy in the sample.
#[derive(Default)]
struct Book {
    position: i64,
    cash: i128,
    fees: i128,
    fills: u64,
    maker_fills: u64,
    volume: i128,
}

/// Writes a run of this length. Returns its summary.
pub(crate) fn write(writer: &mut ResultWriter, seconds: i64, config: &str) -> Summary {
    let mut draw = Draw(7);
    let mut price = 618_000_i64;
    let mut books = [Book::default(), Book::default()];
    let (mut slow, mut fast) = (i128::from(price) * 1000, i128::from(price) * 1000);
    let mut waits = Histogram::default();
    let mut ahead = Histogram::default();
    for second in 0..seconds {
        let time = Time(START + second * SECOND);
        price += draw.below(41) - 20;
        slow += (i128::from(price) * 1000 - slow) / 30;
        fast += (i128::from(price) * 1000 - fast) / 8;
        writer.price(time, 0, Amount(i128::from(price) * 10_000_000));
        writer.plot(time, "ema", "slow", (slow / 1000) as i64, 1);
        writer.plot(time, "ema", "fast", (fast / 1000) as i64, 1);
        writer.plot(time, "mm-btc", "skew", books[0].position, 3);
        for (which, book) in books.iter_mut().enumerate() {
            let chance = if which == 0 { 2 } else { 12 };
            if draw.below(chance) == 0 {
                let side = if book.position + draw.below(9) - 4 > 0 {
                    Side::Sell
                } else {
                    Side::Buy
                };
                let time = time.plus_ns(draw.below(1_000_000_000));
                fill(writer, book, which, price - 2 * side.sign(), side, time);
                waits.record(draw.below(4_000_000_000));
                ahead.record(draw.below(3000));
            }
        }
        let row = equity(&books, price, time);
        writer.equity(&row);
    }
    summary(writer, &books, price, seconds, config, &waits, &ahead)
}

fn fill(
    writer: &mut ResultWriter,
    book: &mut Book,
    which: usize,
    price: i64,
    side: Side,
    time: Time,
) {
    let maker = which == 0;
    let qty = if maker { 10 } else { 20 };
    let quote = Amount::notional(price, 1, qty, 3);
    let fee = quote.part(if maker { 2 } else { 4 }, 10_000);
    book.position += qty * side.sign();
    book.cash -= quote.0 * i128::from(side.sign());
    book.fees += fee.0;
    book.volume += quote.0;
    book.fills += 1;
    book.maker_fills += u64::from(maker);
    let strategy = ["mm-btc", "ema"][which];
    let id = format!("{strategy}.sg1x2y.{}", book.fills);
    let order_id = book.fills as i64 * 2 + which as i64;
    writer.order(&OrderRow {
        time,
        strategy,
        instrument: INSTRUMENT,
        client_order_id: &id,
        order_id: Some(order_id),
        side,
        order_type: if maker {
            OrderType::Limit
        } else {
            OrderType::Market
        },
        time_in_force: maker.then_some(TimeInForce::Gtx),
        price: maker.then_some(price),
        price_scale: 1,
        stop_price: None,
        qty: Some(qty),
        qty_scale: 3,
        executed_qty: qty,
        avg_price: Some(Amount(i128::from(price) * 10_000_000)),
        status: "FILLED",
        reject_rule: None,
    });
    writer.fill(&FillRow {
        time,
        strategy,
        instrument: INSTRUMENT,
        client_order_id: &id,
        order_id,
        trade_id: order_id,
        side,
        position_side: PositionSide::Both,
        price,
        price_scale: 1,
        qty,
        qty_scale: 3,
        quote_qty: quote,
        fee,
        fee_asset: "USDT",
        maker,
        realized_pnl: Amount::ZERO,
    });
}

fn equity(books: &[Book; 2], price: i64, time: Time) -> EquityRow {
    let start = Amount(1_000_000_000_000);
    let cash: i128 = books.iter().map(|book| book.cash - book.fees).sum();
    let held: i64 = books.iter().map(|book| book.position).sum();
    let held = Amount::notional(price, 1, held, 3);
    EquityRow {
        time,
        equity: start + Amount(cash) + held,
        cash: start + Amount(cash),
        unrealized_pnl: held,
    }
}

fn summary(
    writer: &ResultWriter,
    books: &[Book; 2],
    price: i64,
    seconds: i64,
    config: &str,
    waits: &Histogram,
    ahead: &Histogram,
) -> Summary {
    let end = Time(START + (seconds - 1).max(0) * SECOND);
    let last = equity(books, price, end);
    let strategy = |id: &str, module: &str, book: &Book| StrategySummary {
        id: id.to_owned(),
        module: module.to_owned(),
        state: "running".to_owned(),
        fault: String::new(),
        events: 131_072,
        orders_submitted: book.fills * 3,
        orders_rejected: 4,
        orders_canceled: book.fills * 2,
        fills: book.fills,
        maker_fills: book.maker_fills,
        volume_quote: Amount(book.volume),
        fees: Amount(book.fees),
        realized_pnl: Amount(book.cash) + Amount::notional(price, 1, book.position, 3),
        unrealized_pnl: Amount::ZERO,
        funding: Amount::ZERO,
        fuel_used: Some(17),
    };
    let strategies = vec![
        strategy("mm-btc", "market_maker 0.1.0", &books[0]),
        strategy("ema", "ema_cross 0.1.0", &books[1]),
    ];
    let total = |field: fn(&StrategySummary) -> u64| strategies.iter().map(field).sum();
    let fills: u64 = total(|one| one.fills);
    let maker_fills = total(|one| one.maker_fills);
    let mut feed = Histogram::default();
    feed.record(1_000_000);
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned();
    Summary {
        quarantined: Vec::new(),
        events: 262_144,
        events_per_second: 2_345_678,
        wall_seconds: 0.1118,
        orders_submitted: total(|one| one.orders_submitted),
        orders_rejected: 8,
        orders_canceled: total(|one| one.orders_canceled),
        fills,
        volume_quote: strategies.iter().map(|one| one.volume_quote).sum(),
        fees: strategies.iter().map(|one| one.fees).sum(),
        realized_pnl: strategies.iter().map(|one| one.realized_pnl).sum(),
        unrealized_pnl: Amount::ZERO,
        funding: Amount::ZERO,
        start_equity: Amount(1_000_000_000_000),
        final_equity: last.equity,
        max_drawdown: writer.curve().max_drawdown(),
        sharpe: writer.curve().sharpe(),
        start_time: Time(START),
        end_time: end,
        module_sha256: ["mm-btc", "ema"]
            .map(|id| (id.to_owned(), hash.clone()))
            .into(),
        engine: EngineVersions {
            windvane: "0.1.0".to_owned(),
            wasmtime: "48.0.2".to_owned(),
        },
        fingerprint: hash,
        state: "ready".to_owned(),
        config: config.to_owned(),
        quote_asset: "USDT".to_owned(),
        rules: RulesSource::of_all([RulesSource::Configured]),
        instruments: vec![InstrumentSummary {
            name: INSTRUMENT.to_owned(),
            base: "BTC".to_owned(),
            quote: "USDT".to_owned(),
            rules: RulesSource::Configured,
            tick: "0.1".to_owned(),
            step: "0.001".to_owned(),
            final_position: "-0.02".to_owned(),
            final_mid: "61799.95".to_owned(),
        }],
        strategies,
        rejections: vec![
            RejectionCount {
                strategy: "mm-btc".to_owned(),
                rule: "GTX would cross".to_owned(),
                code: -5022,
                count: 6,
            },
            RejectionCount {
                strategy: "ema".to_owned(),
                rule: "MIN_NOTIONAL".to_owned(),
                code: -4164,
                count: 2,
            },
        ],
        latency: LatencySummary {
            model: "constant".to_owned(),
            feed_ns: feed.quantiles(),
            order_ns: feed.quantiles(),
        },
        queue: QueueSummary {
            model: "risk-averse".to_owned(),
            rested: maker_fills * 3,
            filled: maker_fills,
            maker_fills,
            taker_fills: fills - maker_fills,
            time_to_fill_ns: waits.quantiles(),
            ahead: ahead.quantiles(),
            ahead_unit: "0.001 BTC".to_owned(),
        },
        data: DataSummary {
            files: vec!["data/usdm-btcusdt.gz".to_owned()],
            records: 262_144,
            events: EventCounts {
                trades: 40_000,
                tops: 200_000,
                depths: 22_144,
                ..EventCounts::default()
            },
            damaged_lines: 1,
            ..DataSummary::default()
        },
        time_share: Some(TimeShare {
            decode: 21.3,
            engine: 24.1,
            venue: 18.2,
            guest: 17.4,
            results: 3.0,
        }),
    }
}
