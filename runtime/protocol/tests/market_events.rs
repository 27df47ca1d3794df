//! Events of the public streams, and the same events from REST responses.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use windvane_model::{OrderStatus, Side, Surface};
use windvane_protocol::market_stream::polling::{self, Payload};
use windvane_protocol::market_stream::{Feed, MarketStreamEvent, decode};
use windvane_protocol::wire::enums::Interval;
use windvane_protocol::wire::{Exact, Word};
use windvane_protocol::{BookLevels, FillIds, Number};

/// The recorded frame of this name.
fn recorded(name: &str) -> &'static str {
    let mut lines = include_str!("frames.txt")
        .lines()
        .filter_map(|line| line.split_once(' '));
    lines
        .find(|&(known, _)| known == name)
        .map(|(_, frame)| frame)
        .unwrap()
}

fn event<'a>(text: &'a str, levels: &mut BookLevels) -> MarketStreamEvent<'a> {
    decode(text, levels)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .event
}

fn number(text: &str) -> Number {
    Number::parse(text.as_bytes()).unwrap()
}

fn exact(text: &str) -> Exact {
    Exact(text.parse().unwrap())
}

const KLINE: &str = r#"{"e":"kline","E":1638747660000,"s":"BTCUSDT","k":{"t":1638747660000,"T":1638747719999,"s":"BTCUSDT","i":"1m","f":100,"L":200,"o":"0.0010","c":"0.0020","h":"0.0025","l":"0.0015","v":"1000","n":100,"x":false,"q":"1.0000","V":"500","Q":"0.500","B":"0"}}"#;
const MINI: &str = r#"{"e":"24hrMiniTicker","E":1672515782136,"s":"BNBBTC","c":"0.0025","o":"0.0010","h":"0.0026","l":"0.0009","v":"10000","q":"18"}"#;
const TICKER: &str = r#"{"e":"24hrTicker","E":1672515782136,"s":"BNBBTC","p":"0.0015","P":"250.00","w":"0.0018","c":"0.0025","Q":"10","o":"0.0010","h":"0.0025","l":"0.0010","v":"10000","q":"18","O":0,"C":1675216573749,"F":0,"L":18150,"n":18151}"#;
const FORCED: &str = r#"{"e":"forceOrder","E":1568014460893,"o":{"s":"BTCUSDT","S":"SELL","o":"LIMIT","f":"IOC","q":"0.014","p":"9910","ap":"9910","X":"FILLED","l":"0.014","z":"0.014","T":1568014460893}}"#;

#[test]
fn a_tradepro_names_taker_and_maker_unless_hidden() {
    let mut levels = BookLevels::default();
    let MarketStreamEvent::TradePro(trade) = event(recorded("tradepro"), &mut levels) else {
        panic!()
    };
    assert_eq!((trade.symbol, trade.id), ("BTCUSDT", 5_266_583_935));
    assert_eq!(
        (trade.price, trade.qty),
        (number("61800.30"), number("0.006"))
    );
    assert!(trade.hash.unwrap().starts_with("0x5c504ed4"));
    assert_eq!(
        trade.taker,
        Some("0x71c7656ec7ab88b098defb751b7401b5f6d8976f")
    );
    assert_eq!(trade.maker, None);
    // Converted into a trade, it equals the event that the stream `trade` would have sent.
    let MarketStreamEvent::Trade(twin) = event(recorded("futures_trade"), &mut levels) else {
        panic!()
    };
    assert_eq!(trade.with_side(twin.buyer_is_maker), twin);
    // No hash, no addresses, and numbers that are not text.
    for m in [
        "",
        r#","m":null"#,
        r#","h":null,"m":["hidden"]"#,
        r#","m":[null,null]"#,
    ] {
        let text = format!(r#"{{"e":"tradepro","E":1,"T":2,"s":"A","t":"3","p":1.5,"q":2{m}}}"#);
        let MarketStreamEvent::TradePro(bare) = event(&text, &mut levels) else {
            panic!("{text}")
        };
        assert_eq!(
            (bare.hash, bare.taker, bare.maker, bare.id),
            (None, None, None, 3)
        );
    }
}

#[test]
fn an_aggregate_has_the_ids_of_its_fills() {
    let mut levels = BookLevels::default();
    let MarketStreamEvent::Trade(trade) = event(recorded("aggregate"), &mut levels) else {
        panic!()
    };
    assert_eq!(trade.fills, Some(FillIds { first: 1, last: 2 }));
    assert!(trade.aggregate);
}

#[test]
fn less_frequent_frames_are_parsed_bare_and_wrapped() {
    let mut levels = BookLevels::default();
    for text in [KLINE, MINI, TICKER, FORCED] {
        let bare = event(text, &mut levels);
        let wrapped = format!(r#"{{"stream":"x@y","data":{text}}}"#);
        let frame = decode(&wrapped, &mut levels).unwrap();
        assert_eq!((frame.stream, &frame.event), (Some("x@y"), &bare));
        match bare {
            MarketStreamEvent::Kline(event) => {
                let kline = event.kline;
                assert_eq!(kline.interval, Word::Known(Interval::Minute1));
                assert_eq!(
                    (kline.low, kline.last_trade_id.unwrap().0),
                    (exact("0.0015"), 200)
                );
                assert_eq!(
                    (kline.volume, kline.taker_buy_volume),
                    (exact("1000"), Some(exact("500")))
                );
                assert!(!kline.is_closed.0);
            }
            MarketStreamEvent::MiniTicker(ticker) => {
                assert_eq!(
                    (ticker.last_price, ticker.quote_volume),
                    (exact("0.0025"), exact("18"))
                );
            }
            MarketStreamEvent::Ticker(ticker) => {
                assert_eq!(
                    (ticker.change, ticker.change_percent),
                    (exact("0.0015"), exact("250"))
                );
                assert_eq!((ticker.bid_price, ticker.trades.unwrap().0), (None, 18_151));
            }
            MarketStreamEvent::ForceOrder(event) => {
                assert_eq!(event.order.side, Word::Known(Side::Sell));
                assert_eq!(event.order.status, Word::Known(OrderStatus::Filled));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn responses_and_unknown_frames_are_kept() {
    let mut levels = BookLevels::default();
    let MarketStreamEvent::Answer(answer) = event(r#"{"result":null,"id":9}"#, &mut levels) else {
        panic!()
    };
    assert_eq!((answer.id, answer.result), (Some(9), Ok(vec![])));
    for text in [
        r#"{"e":"compositeIndex","E":1}"#,
        r#"{"hello":1}"#,
        r#"{"stream":"a","data":[{"e":"x"}]}"#,
    ] {
        assert!(
            matches!(event(text, &mut levels), MarketStreamEvent::Other(_)),
            "{text}"
        );
    }
    assert!(decode("<html>", &mut levels).is_err());
    let broken = KLINE.replace("\"o\":\"0.0010\"", "\"o\":\"x\"");
    let error = decode(&broken, &mut levels).unwrap_err().to_string();
    assert!(
        error.contains("kline") && error.contains("\"x\" is no decimal"),
        "{error}"
    );
}

/// The payloads of a response.
fn polled(feed: Feed, surface: Surface, answer: &str) -> Vec<Payload> {
    polling::payloads(feed, surface, "BTCUSDT", 1_700_000_060_000, answer).unwrap()
}

#[test]
fn a_polled_book_is_a_partial_depth_frame() {
    let rest = r#"{"lastUpdateId":5,"E":20,"T":10,"bids":[["1.50","2"],["1.40","7"]],"asks":[["1.60","3"]]}"#;
    let feed = Feed::Depth { fast: false };
    let payload = &polled(feed, Surface::Futures, rest)[0];
    let polled = format!(r#"{{"stream":"ausdt@depth5","data":{}}}"#, payload.text);
    let stream = r#"{"stream":"ausdt@depth5","data":{"e":"depthUpdate","E":20,"T":10,"s":"ausdt",
        "U":3,"u":5,"pu":2,"b":[["1.50","2"],["1.40","7"]],"a":[["1.60","3"]]}}"#;
    let (mut levels, mut streamed_levels) = (BookLevels::default(), BookLevels::default());
    assert_eq!(
        event(&polled, &mut levels),
        event(stream, &mut streamed_levels)
    );
    assert_eq!(levels, streamed_levels);
    // Under the name of a depth stream it also replaces the previous book.
    let polled = polled.replace("depth5", "depth");
    let MarketStreamEvent::Snapshot(snapshot) = event(&polled, &mut levels) else {
        panic!()
    };
    assert_eq!(
        (snapshot.symbol, snapshot.last_update_id),
        (Some("ausdt"), 5)
    );
    for text in [r#"{"code":-1121,"msg":"m"}"#, "<html>", "[]", "{}"] {
        let refused = polling::payloads(feed, Surface::Futures, "A", 0, text);
        assert!(refused.is_err(), "{text}");
    }
}

#[test]
fn polled_tops_and_marks_equal_the_stream_events() {
    let mut levels = BookLevels::default();
    let rest = r#"{"symbol":"BTCUSDT","bidPrice":"61800.20","bidQty":"2.507","askPrice":"61800.30","askQty":"2.510","time":1723161256313}"#;
    for text in [rest.to_owned(), format!(" [{rest}]")] {
        let payload = &polled(Feed::BookTicker, Surface::Futures, &text)[0];
        let MarketStreamEvent::Top(mut streamed) = event(recorded("futures_top"), &mut levels)
        else {
            panic!()
        };
        // The response does not have these values.
        (streamed.update_id, streamed.event_ms) = (0, 1_723_161_256_313);
        let top = MarketStreamEvent::Top(streamed);
        assert_eq!(event(&payload.text, &mut levels), top);
    }
    let payload = &polled(Feed::BookTicker, Surface::Spot, rest)[0];
    let frame = decode(&payload.text, &mut levels).unwrap();
    assert_eq!(frame.surface, Some(Surface::Spot));
    assert!(matches!(frame.event, MarketStreamEvent::Top(_)));

    let rest = r#"[{"symbol":"BTCUSDT","markPrice":"61800.1","indexPrice":"61799.12345678","estimatedSettlePrice":"61800.5","lastFundingRate":"-0.0001","nextFundingTime":9,"interestRate":"0.0001","time":1}]"#;
    let stream = r#"{"e":"markPriceUpdate","E":1,"s":"BTCUSDT","p":"61800.1","i":"61799.12345678","P":"61800.5","r":"-0.0001","T":9}"#;
    let every_second = false;
    let payload = &polled(Feed::MarkPrice { every_second }, Surface::Futures, rest)[0];
    assert_eq!(
        (payload.text.as_str(), &*payload.symbol),
        (stream, "BTCUSDT")
    );
}

#[test]
fn the_state_of_a_top_excludes_its_time() {
    let rest = |qty: &str, time: u32| {
        let text = format!(
            r#"{{"symbol":"A","bidPrice":"1","bidQty":"{qty}","askPrice":"2","askQty":"1","time":{time}}}"#
        );
        polled(Feed::BookTicker, Surface::Futures, &text)[0]
            .state
            .clone()
    };
    assert_eq!(rest("1", 1), rest("1", 2));
    assert_ne!(rest("1", 1), rest("2", 1));
}

#[test]
fn polled_trades_equal_the_stream_events() {
    let mut levels = BookLevels::default();
    let rest = r#"[{"id":5266583935,"price":"61800.30","qty":"0.006","quoteQty":"370.8","time":1723161256322,"isBuyerMaker":false}]"#;
    let payload = &polled(Feed::Trade, Surface::Futures, rest)[0];
    let MarketStreamEvent::Trade(mut streamed) = event(recorded("futures_trade"), &mut levels)
    else {
        panic!()
    };
    // A response does not have its own event time.
    streamed.event_ms = streamed.trade_ms;
    assert_eq!(payload.trade_id, Some(streamed.id));
    let trade = MarketStreamEvent::Trade(streamed);
    assert_eq!(event(&payload.text, &mut levels), trade);

    let rest = r#"[{"a":99,"p":"61837.63","q":"0.02","f":1,"l":2,"T":1723161255342,"m":true}]"#;
    let payload = &polled(Feed::AggTrade, Surface::Spot, rest)[0];
    let MarketStreamEvent::Trade(mut streamed) = event(recorded("aggregate"), &mut levels) else {
        panic!()
    };
    streamed.event_ms = streamed.trade_ms;
    assert_eq!(payload.trade_id, Some(99));
    let trade = MarketStreamEvent::Trade(streamed);
    assert_eq!(event(&payload.text, &mut levels), trade);
}

#[test]
fn polled_trades_come_in_the_order_of_their_ids() {
    let trade =
        |id: u32| format!(r#"{{"id":{id},"price":"1","qty":"1","time":1,"isBuyerMaker":true}}"#);
    let rest = format!("[{},{}]", trade(9), trade(8));
    let ids = polled(Feed::Trade, Surface::Spot, &rest);
    let ids: Vec<_> = ids.iter().map(|payload| payload.trade_id).collect();
    assert_eq!(ids, [Some(8), Some(9)]);
}

#[test]
fn polled_tickers_equal_the_stream_events() {
    let rest = r#"{"symbol":"BNBBTC","priceChange":"0.0015","priceChangePercent":"250.00","weightedAvgPrice":"0.0018","lastPrice":"0.0025","lastQty":"10","openPrice":"0.0010","highPrice":"0.0025","lowPrice":"0.0010","volume":"10000","quoteVolume":"18","openTime":0,"closeTime":1675216573749,"firstId":0,"lastId":18150,"count":18151}"#;
    let mut levels = BookLevels::default();
    let MarketStreamEvent::Ticker(mut streamed) = event(TICKER, &mut levels) else {
        panic!()
    };
    streamed.event_ms = streamed.close_ms.unwrap();
    let payload = &polled(Feed::Ticker, Surface::Futures, rest)[0];
    let ticker = MarketStreamEvent::Ticker(streamed);
    assert_eq!(event(&payload.text, &mut levels), ticker);
    let payload = &polled(Feed::MiniTicker, Surface::Futures, rest)[0];
    let MarketStreamEvent::MiniTicker(mini) = event(&payload.text, &mut levels) else {
        panic!()
    };
    assert_eq!(mini.last_price, exact("0.0025"));
}

#[test]
fn polled_klines_equal_the_stream_events() {
    let rest = r#"[[1699999980000,"1","4","0.5","2","10",1700000039999,"20",7,"5","9","0"],
        [1700000040000,"2","3","1","2.5","11",1700000099999,"21",8,"6","10","0"]]"#;
    let mut levels = BookLevels::default();
    let payloads = polled(Feed::Kline(Interval::Minute1), Surface::Futures, rest);
    let bars: Vec<_> = payloads
        .iter()
        .map(|payload| match event(&payload.text, &mut levels) {
            MarketStreamEvent::Kline(event) => event.kline,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((bars[0].is_closed.0, bars[1].is_closed.0), (true, false));
    assert_eq!((bars[0].high, bars[0].low), (exact("4"), exact("0.5")));
    assert_eq!((bars[1].open, bars[1].close), (exact("2"), exact("2.5")));
    assert_eq!((bars[1].trades.0, bars[1].quote_volume), (8, exact("21")));
    assert_eq!(bars[1].taker_buy_volume, Some(exact("6")));
}
