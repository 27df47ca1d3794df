//! Orders and fills of the accounts in public market data, over real sockets: REST and streams
//! agree about depth, tops and trades.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

#[path = "common/http.rs"]
mod http;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use http::{act, get, succeed};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use windvane_model::instrument::{Filters, LotSize};
use windvane_model::{
    Instrument, InstrumentId, Level, MarketEvent, OwnedMarketEvent, Surface, Time,
};
use windvane_protocol::Assets;
use windvane_protocol::local_book::{BookStep, LocalBook};
use windvane_protocol::{BookLevels, Frame, decode};
use windvane_sim_server::{Recorded, RecordedEvents, Recording, Running, Settings, Source, start};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn server(source: Source) -> Running {
    let settings = Settings {
        source,
        ..Settings::default()
    };
    start(settings).await.unwrap()
}

/// A market that never moves by itself, with a wide spread: 60000.0 and 60001.0.
fn still() -> Source {
    let mut assets = Assets::default();
    let lot = Some(LotSize {
        min_qty: 1,
        max_qty: 0,
        step_size: 1,
    });
    let mut instrument = |surface| Instrument {
        filters: Filters {
            lot_size: lot,
            ..Filters::default()
        },
        ..Instrument::unrestricted(
            surface,
            "BTCUSDT",
            [assets.id("BTC"), assets.id("USDT")],
            [1, 3],
        )
    };
    let instruments = vec![instrument(Surface::Spot), instrument(Surface::Futures)];
    let open = || -> Option<RecordedEvents> {
        let level = |price| Level { price, qty: 5_000 };
        let events = [0, 1].map(|n| Recorded {
            time: Time(0),
            instrument: InstrumentId(n),
            event: OwnedMarketEvent::of(&MarketEvent::Depth {
                update_id: 1,
                snapshot: true,
                bids: &[level(600_000)],
                asks: &[level(600_010)],
            }),
        });
        Some(Box::new(events.into_iter()))
    };
    Source::Recorded(Recording {
        instruments,
        assets,
        open: Box::new(open),
        speed_permille: 1000,
        looped: false,
    })
}

async fn connect(address: SocketAddr, streams: &str) -> Socket {
    let url = format!("ws://{address}/stream?streams={streams}");
    connect_async(url).await.unwrap().0
}

/// The next frame: its stream, and its data as text.
async fn frame(socket: &mut Socket) -> (String, Value) {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), socket.next());
        let message = next.await.expect("a message in 30 s").unwrap().unwrap();
        if let Message::Text(text) = message {
            let mut frame: Value = serde_json::from_str(&text).unwrap();
            let stream = frame["stream"].as_str().unwrap().to_owned();
            return (stream, frame["data"].take());
        }
    }
}

fn feed(book: &mut LocalBook, text: &str) -> BookStep {
    let mut levels = BookLevels::default();
    match decode(text.as_bytes(), &mut levels).unwrap().frame {
        Frame::Depth(diff) => book.on_diff(&diff, &levels),
        Frame::Snapshot(snapshot) => book.on_snapshot(&snapshot, &levels),
        other => panic!("{other:?}"),
    }
}

/// Levels of both sides as `price quantity`, without trailing zeros.
fn levels_of(book: &LocalBook) -> [Vec<String>; 2] {
    let text = |(price, qty)| format!("{} {}", trimmed(price), trimmed(qty));
    [
        book.bids().map(text).collect(),
        book.asks().map(text).collect(),
    ]
}

fn trimmed(number: impl std::fmt::Display) -> String {
    let text = number.to_string();
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

fn levels_in(depth: &Value) -> [Vec<String>; 2] {
    ["bids", "asks"].map(|side| {
        let levels = depth[side].as_array().unwrap().iter();
        let text = |level: &Value| {
            let part = |n: usize| trimmed(level[n].as_str().unwrap());
            format!("{} {}", part(0), part(1))
        };
        levels.map(text).collect()
    })
}

const SURFACES: [(&str, &str, Surface); 2] = [
    ("spot", "/api/v3", Surface::Spot),
    ("futures", "/fapi/v1", Surface::Futures),
];

fn address_of(server: &Running, surface: Surface) -> SocketAddr {
    match surface {
        Surface::Spot => server.addresses.spot,
        Surface::Futures => server.addresses.futures,
    }
}

fn limit(surface: &str, side: &str, price: &str, id: &str) -> Value {
    json!({
        "act": "place", "surface": surface, "symbol": "ETHUSDT", "side": side,
        "price": price, "quantity": "0.05", "client_order_id": id,
    })
}

#[tokio::test]
async fn the_streamed_book_has_the_same_account_orders_as_rest() {
    let server = server(Source::Seeded { per_second: 100 }).await;
    let control = server.addresses.control;
    for (name, prefix, surface) in SURFACES {
        let address = address_of(&server, surface);
        let mut socket = connect(address, "ethusdt@depth@100ms").await;
        let mut book = LocalBook::new(surface);
        // At least one difference waits for the snapshot.
        let (_, first) = frame(&mut socket).await;
        assert_eq!(feed(&mut book, &first.to_string()), BookStep::Waiting);
        act(control, &limit(name, "BUY", "2950.01", "far")).await;
        let path = format!("{prefix}/depth?symbol=ETHUSDT&limit=1000");
        let snapshot = succeed(address, "GET", &path, "").await.body;
        assert_eq!(feed(&mut book, &snapshot), BookStep::Applied);
        let mut compared = 0;
        for n in 0..200 {
            match n % 8 {
                1 => drop(act(control, &limit(name, "BUY", "2950.02", &format!("b{n}"))).await),
                3 => drop(act(control, &limit(name, "SELL", "3050.02", &format!("s{n}"))).await),
                5 => {
                    for id in [format!("b{}", n - 4), format!("s{}", n - 2)] {
                        let cancel = json!({
                            "act": "cancel", "surface": name, "symbol": "ETHUSDT",
                            "client_order_id": id,
                        });
                        act(control, &cancel).await;
                    }
                }
                _ => {}
            }
            // A snapshot directly after the last difference equals the book after that difference.
            let depth = get(address, &path).await;
            let (_, difference) = frame(&mut socket).await;
            let (from, last) = (difference["U"].as_i64(), depth["lastUpdateId"].as_i64());
            if from == last && book.update_id() == last.map(|id| id - 1) {
                assert_eq!(levels_of(&book), levels_in(&depth));
                compared += 1;
            }
            let step = feed(&mut book, &difference.to_string());
            assert!(
                matches!(step, BookStep::Applied | BookStep::Dropped),
                "{step:?}"
            );
            let bid = book.bids().next().map(|(price, _)| price.key());
            let ask = book.asks().next().map(|(price, _)| price.key());
            assert!(bid < ask, "{bid:?} {ask:?}");
            if compared >= 2 && n > 16 {
                break;
            }
        }
        assert!(compared > 0, "no snapshot directly followed a difference");
        let bids = &levels_of(&book)[0];
        assert!(bids.contains(&"2950.01 0.05".to_owned()), "{bids:?}");
    }
}

#[tokio::test]
async fn another_account_can_trade_with_an_order_inside_the_spread() {
    let server = server(still()).await;
    let control = server.addresses.control;
    for (name, prefix, surface) in SURFACES {
        let address = address_of(&server, surface);
        let streams = "btcusdt@bookTicker/btcusdt@trade/btcusdt@tradepro/btcusdt@aggTrade";
        let mut socket = connect(address, streams).await;
        let price = "60000.4";
        let sell = json!({
            "act": "place", "surface": name, "symbol": "BTCUSDT", "side": "SELL",
            "price": price, "quantity": "0.002", "time_in_force": "GTX",
        });
        assert_eq!(act(control, &sell).await["status"], "NEW");
        let path = format!("{prefix}/ticker/bookTicker?symbol=BTCUSDT");
        let top = get(address, &path).await;
        assert_eq!(top["askPrice"], price);
        assert_eq!(top["askQty"], "0.002");
        let buy = json!({
            "act": "place", "surface": name, "symbol": "BTCUSDT", "side": "BUY",
            "type": "MARKET", "quantity": "0.002", "account": 1,
        });
        act(control, &buy).await;
        let state: Value = get(control, "/state").await;
        let last = |account: usize| {
            let trades = state["accounts"][account]["trades"].as_array().unwrap();
            let mut of = trades.iter().filter(|trade| trade["surface"] == name);
            of.next_back().unwrap()["trade_id"].as_i64().unwrap()
        };
        assert_eq!(last(0), last(1));
        let path = format!("{prefix}/trades?symbol=BTCUSDT&limit=1000");
        let trades = get(address, &path).await;
        assert_eq!(trades.as_array().unwrap().len(), 1);
        assert_eq!(trades[0]["id"], last(0));
        assert_eq!(trades[0]["price"], price);
        assert_eq!(trades[0]["isBuyerMaker"], false);
        let path = format!("{prefix}/ticker/24hr?symbol=BTCUSDT");
        assert_eq!(get(address, &path).await["lastPrice"], price);
        let path = format!("{prefix}/depth?symbol=BTCUSDT&limit=5");
        let asks = &get(address, &path).await["asks"];
        assert_eq!(*asks, json!([["60001.0", "5.000"]]));
        expect_trade(&mut socket, last(0), price).await;
    }
}

/// Waits until the streams report the ask and then the trade, each in its own frame.
async fn expect_trade(socket: &mut Socket, trade_id: i64, price: &str) {
    let mut missing = vec!["bookTicker", "trade", "tradepro", "aggTrade"];
    while !missing.is_empty() {
        let (stream, data) = frame(socket).await;
        let topic = stream.split('@').nth(1).unwrap();
        let is_it = match topic {
            "bookTicker" => trimmed(data["a"].as_str().unwrap()) == trimmed(price),
            "aggTrade" => (data["f"].as_i64()..=data["l"].as_i64()).contains(&Some(trade_id)),
            _ => data["t"] == trade_id,
        };
        if is_it {
            missing.retain(|wanted| *wanted != topic);
        }
    }
}
