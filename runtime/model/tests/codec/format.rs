//! The pinned bytes of formats 1 and 3: one line per variant in `format-v1.txt` and
//! `format-v3.txt`.
//!
//! Journals are older than the program that reads them. If this test fails, the format has changed:
//! add a `Format`, keep reading the old ones, and pin the new bytes in addition.

use windvane_model::codec::{self, RecordedInput};
use windvane_model::event::{Event, EventKind};
use windvane_model::input::FaultKind;
use windvane_model::instrument::SymbolStatus;
use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, Fill, OrderReport, OrderUpdate, PositionUpdate,
    Refusal,
};
use windvane_model::record::{Block, Format, block_hash, fixed_hash};
use windvane_model::rules::Rule;
use windvane_model::{
    Amount, AssetId, ClientOrderId, Decimal, Effect, ExecutionType, InstrumentId, Intent, Level,
    MarketEvent, NewOrder, OrderSeq, OrderStatus, OrderTerms, OrderType, Outcome, OwnedMarketEvent,
    PositionSide, Price, Qty, Reply, Request, Side, StrategyId, Surface, Time, TimeInForce,
    TradeId, UserEvent, VenueOrderId, WorkingType,
};

use super::generators::COMMANDS;
use super::{decode_all, effect_block, input_block};

const PINNED: [(Format, &str); 2] = [
    (Format::V1, include_str!("format-v1.txt")),
    (Format::V3, include_str!("format-v3.txt")),
];
const AT: Time = Time(0x0102_0304_0506_0708);
const BTC: InstrumentId = InstrumentId(0x0201);

fn id() -> ClientOrderId {
    ClientOrderId::new("mm.7.1").unwrap()
}

fn full_terms() -> OrderTerms {
    OrderTerms {
        instrument: BTC,
        side: Side::Sell,
        position_side: PositionSide::Short,
        order_type: OrderType::TrailingStopMarket,
        time_in_force: Some(TimeInForce::Gtx),
        qty: Some(Qty(3)),
        quote_qty: Some(Amount(-4)),
        price: Some(Price(5)),
        stop_price: Some(Price(6)),
        activation_price: Some(Price(7)),
        callback_ppm: Some(8),
        reduce_only: true,
        close_position: false,
        working_type: Some(WorkingType::ContractPrice),
        price_protect: true,
    }
}

fn bare_terms() -> OrderTerms {
    OrderTerms::new(BTC, Side::Buy, OrderType::Limit)
}

fn markets() -> Vec<RecordedInput> {
    let level = |price| Level { price, qty: 2 };
    let market = |event| RecordedInput::Market {
        instrument: BTC,
        event: OwnedMarketEvent::of(&event),
    };
    vec![
        market(MarketEvent::Trade {
            price: 1,
            qty: 2,
            trade_id: 3,
            buyer_is_maker: true,
        }),
        market(MarketEvent::Top {
            update_id: 1,
            bid: level(9),
            ask: level(10),
        }),
        market(MarketEvent::Depth {
            update_id: -1,
            snapshot: true,
            bids: &[level(9), level(8)],
            asks: &[level(10)],
        }),
        market(MarketEvent::Gap),
        market(MarketEvent::Mark {
            mark: 1,
            index: 2,
            funding_rate: -3,
            next_funding: Time::NEVER,
        }),
    ]
}

fn answers() -> Vec<RecordedInput> {
    let order = OrderSeq(9);
    let rejection = Rule::PriceTick.with(Decimal::new(-125, 2), Decimal::new(1, 1));
    let intents = [
        Intent::Submit {
            order,
            terms: full_terms(),
        },
        Intent::Submit {
            order,
            terms: bare_terms(),
        },
        Intent::Rejected {
            terms: bare_terms(),
            rejection,
        },
        Intent::Cancel { order },
        Intent::CancelAll { instrument: None },
        Intent::CancelAll {
            instrument: Some(BTC),
        },
        Intent::SetTimer {
            time: AT,
            token: -1,
        },
        Intent::CancelTimer { token: 2 },
    ];
    intents
        .into_iter()
        .map(|intent| RecordedInput::Answer {
            strategy: StrategyId(1),
            intents: vec![intent],
        })
        .collect()
}

fn replies() -> Vec<RecordedInput> {
    let client_order_id = id();
    let instrument = BTC;
    let refusal = Refusal {
        code: -2011,
        msg: "Unknown order sent.".to_owned(),
    };
    let report = OrderReport {
        client_order_id,
        order_id: VenueOrderId(1),
        instrument,
        status: OrderStatus::PartiallyFilled,
        orig_qty: Qty(2),
        executed_qty: Qty(3),
        cum_quote: Amount(4),
        update_time: Time(5),
    };
    let replies = [
        Reply::Placed {
            client_order_id,
            outcome: Outcome::Done(report),
        },
        Reply::Canceled {
            client_order_id,
            outcome: Outcome::Refused(refusal),
        },
        Reply::Queried {
            client_order_id,
            outcome: Outcome::Unknown,
        },
        Reply::CanceledAll {
            instrument,
            outcome: Outcome::Done(()),
        },
        Reply::Countdown {
            instrument,
            outcome: Outcome::Done(30_000),
        },
        Reply::PositionMode {
            outcome: Outcome::Done(()),
        },
        Reply::Leverage {
            instrument,
            outcome: Outcome::Done(20),
        },
    ];
    replies.into_iter().map(RecordedInput::Reply).collect()
}

fn user_events() -> Vec<RecordedInput> {
    let fill = Fill {
        trade_id: TradeId(1),
        price: Price(2),
        qty: Qty(3),
        quote_qty: Amount(4),
        fee: Amount(-5),
        fee_asset: AssetId(6),
        maker: true,
        realized_pnl: Some(Amount(7)),
    };
    let update = OrderUpdate {
        client_order_id: id(),
        order_id: VenueOrderId(1),
        instrument: BTC,
        side: Side::Buy,
        position_side: PositionSide::Long,
        order_type: OrderType::Stop,
        time_in_force: TimeInForce::Ioc,
        orig_qty: Qty(2),
        price: Price(3),
        stop_price: Price(4),
        reduce_only: true,
        execution: ExecutionType::Trade,
        status: OrderStatus::Filled,
        executed_qty: Qty(5),
        transaction_time: Time(6),
        event_time: Time(7),
        fill: Some(fill),
    };
    let account = AccountUpdate {
        surface: Surface::Futures,
        reason: AccountReason::FundingFee,
        balances: vec![BalanceUpdate {
            asset: AssetId(1),
            total: Amount(2),
            locked: Amount(3),
            change: Amount(-4),
        }],
        positions: vec![PositionUpdate {
            instrument: BTC,
            position_side: PositionSide::Both,
            qty: Qty(-1),
            cost: Amount(-2),
        }],
        transaction_time: Time(8),
        event_time: Time(8),
    };
    let without_profit = Fill {
        realized_pnl: None,
        ..fill
    };
    let events = [
        UserEvent::Order(update),
        UserEvent::Order(OrderUpdate {
            fill: Some(without_profit),
            ..update
        }),
        UserEvent::Order(OrderUpdate {
            fill: None,
            ..update
        }),
        UserEvent::Account(account),
        UserEvent::MarginCall,
        UserEvent::Leverage {
            instrument: BTC,
            leverage: 125,
        },
        UserEvent::PositionMode { hedge: true },
    ];
    events.into_iter().map(RecordedInput::User).collect()
}

fn others() -> Vec<RecordedInput> {
    let mut inputs = vec![RecordedInput::Timeout];
    inputs.extend(FaultKind::ALL.map(|kind| RecordedInput::Fault {
        strategy: StrategyId(1),
        kind,
    }));
    inputs.extend(COMMANDS.map(RecordedInput::Command));
    for status in [
        SymbolStatus::Trading,
        SymbolStatus::Other("SETTLING".to_owned()),
    ] {
        inputs.push(RecordedInput::SymbolStatus {
            instrument: BTC,
            status,
        });
    }
    inputs
}

fn effects() -> Vec<Effect> {
    let client_order_id = id();
    let instrument = BTC;
    let order = NewOrder {
        client_order_id,
        terms: full_terms(),
    };
    let requests = [
        Request::Place(order),
        Request::PlaceBatch(vec![order]),
        Request::Cancel {
            instrument,
            client_order_id,
        },
        Request::CancelBatch {
            instrument,
            client_order_ids: vec![client_order_id],
        },
        Request::CancelAll { instrument },
        Request::Countdown {
            instrument,
            countdown_ms: 30_000,
        },
        Request::Query {
            instrument,
            client_order_id,
        },
        Request::SetPositionMode { hedge: true },
        Request::SetLeverage {
            instrument,
            leverage: 20,
        },
    ];
    let sent = requests.map(|request| Effect::Send {
        record: 3,
        request: Box::new(request),
    });
    let told = EventKind::ALL.iter().map(|kind| Effect::Deliver {
        strategy: StrategyId(1),
        event: Event {
            time: AT,
            sequence: 1,
            kind: *kind,
            instrument,
            flags: 0,
            fields: [0; 6],
            id: 0,
        },
    });
    sent.into_iter().chain(told).collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn samples(format: Format) -> Vec<Block> {
    let inputs = [markets(), answers(), replies(), user_events(), others()];
    let mut samples: Vec<_> = inputs
        .concat()
        .iter()
        .map(|input| input_block(format, AT, &input.as_input()))
        .collect();
    let effects = effects();
    let effects = effects.iter();
    samples.extend(effects.map(|effect| effect_block(format, AT, effect)));
    samples
}

/// A line of the pinned bytes: the part that has bytes, with its name.
fn line(block: &Block) -> String {
    let market = block.market.as_deref().unwrap();
    match block.format {
        Format::V1 => hex(&block.orders),
        Format::V3 if market.is_empty() => format!("order {}", hex(&block.orders)),
        Format::V3 => {
            assert!(block.orders.is_empty());
            format!("market {}", hex(market))
        }
    }
}

#[test]
fn the_bytes_of_each_format_never_change() {
    for (format, pinned) in PINNED {
        let written: Vec<_> = samples(format).iter().map(line).collect();
        let pinned: Vec<_> = pinned
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(written.len(), pinned.len(), "{}", written.join("\n"));
        for (written, pinned) in written.iter().zip(&pinned) {
            assert_eq!(written, pinned, "the record format changed: add a Format");
        }
    }
}

#[test]
fn samples_cover_every_kind_of_record_and_decode() {
    let old = samples(Format::V1);
    let mut kinds: Vec<_> = old.iter().map(|block| block.orders[0]).collect();
    kinds.dedup();
    let inputs = (1..=12).chain([codec::kind::SEND, codec::kind::DELIVER]);
    assert_eq!(kinds, inputs.collect::<Vec<_>>());
    for (old, new) in old.iter().zip(samples(Format::V3)) {
        let read = decode_all(&new);
        assert_eq!(read.len(), 1);
        assert_eq!(
            read,
            decode_all(old),
            "both formats decode to the same records"
        );
    }
}

#[test]
fn the_hash_of_a_block_never_changes() {
    assert_eq!(
        hex(&fixed_hash(5, &[7; 32], b"records")),
        "be2e8d123e46bdd41ab2bb0648e2a1714bf9ee5f14f7564b0f9efaf5d217f291"
    );
    assert_eq!(
        hex(&block_hash(5, &[7; 32], 9, b"records", &[8; 32])),
        "a69fa85bfed3799e53e6f546663fb681e45a16d0ab0734aa4c9120cf87348b04"
    );
}
