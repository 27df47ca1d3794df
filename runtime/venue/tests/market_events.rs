//! Events of the public streams, and the same events out of REST answers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use windvane_engine::{OrderStatus, Side, Surface};
use windvane_venue::market_stream::{MarketStreamEvent, decode, polling};
use windvane_venue::wire::words::Interval;
use windvane_venue::wire::{Exact, Word};
use windvane_venue::{BookLevels, FillIds, Frame, Number};

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
fn a_tradepro_names_taker_and_maker_unless_they_hide() {
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
    // As a trade it is the one that the stream `trade` would have sent.
    let MarketStreamEvent::Trade(twin) = event(recorded("futures_trade"), &mut levels) else {
        panic!()
    };
    assert_eq!(trade.with_side(twin.buyer_is_maker), twin);
    // Without a hash, without addresses, with numbers as numbers.
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
fn an_aggregate_tells_its_fills() {
    let mut levels = BookLevels::default();
    let MarketStreamEvent::Trade(trade) = event(recorded("aggregate"), &mut levels) else {
        panic!()
    };
    assert_eq!(trade.fills, Some(FillIds { first: 1, last: 2 }));
    assert!(trade.aggregate);
}

#[test]
fn cold_frames_are_typed_bare_and_wrapped() {
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
fn answers_and_unknown_frames_are_carried() {
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

#[test]
fn a_polled_book_is_a_partial_depth_frame_with_its_top() {
    let mut levels = BookLevels::default();
    let rest = r#"{"lastUpdateId":5,"E":20,"T":10,"bids":[["1.50","2"],["1.40","7"]],"asks":[["1.60","3"]]}"#;
    let polled = polling::book("AUSDT", rest, &mut levels).unwrap();
    let stream = r#"{"stream":"ausdt@depth5","data":{"e":"depthUpdate","E":20,"T":10,"s":"AUSDT",
        "U":3,"u":5,"pu":2,"b":[["1.50","2"],["1.40","7"]],"a":[["1.60","3"]]}}"#;
    let mut streamed_levels = BookLevels::default();
    let frame = windvane_venue::decode(stream.as_bytes(), &mut streamed_levels)
        .unwrap()
        .frame;
    assert_eq!(frame, Frame::Snapshot(polled));
    assert_eq!(levels, streamed_levels);

    let top = polling::top_of(&polled, &levels).unwrap();
    assert_eq!((top.symbol, top.update_id, top.event_ms), ("AUSDT", 5, 20));
    assert_eq!(
        (top.bid_price, top.ask_price),
        (number("1.50"), number("1.60"))
    );
    assert_eq!((top.bid_qty, top.ask_qty), (number("2"), number("3")));
    let empty = r#"{"lastUpdateId":5,"bids":[],"asks":[["1","1"]]}"#;
    let polled = polling::book("A", empty, &mut levels).unwrap();
    assert_eq!(polling::top_of(&polled, &levels), None);
    assert!(polling::book("A", r#"{"code":-1121,"msg":"m"}"#, &mut levels).is_err());
}

#[test]
fn polled_tops_and_marks_are_what_the_streams_send() {
    let mut levels = BookLevels::default();
    let rest = r#"{"symbol":"BTCUSDT","bidPrice":"61800.20","bidQty":"2.507","askPrice":"61800.30","askQty":"2.510","time":1723161256313}"#;
    for text in [rest.to_owned(), format!(" [{rest}]")] {
        let tops = polling::tops(&text).unwrap();
        let MarketStreamEvent::Top(streamed) = event(recorded("futures_top"), &mut levels) else {
            panic!()
        };
        assert_eq!(tops[0].bid_qty, streamed.bid_qty);
        assert_eq!(
            (tops[0].ask_price, tops[0].transaction_ms),
            (streamed.ask_price, streamed.transaction_ms)
        );
    }
    let rest = r#"[{"symbol":"BTCUSDT","markPrice":"61800.1","indexPrice":"61799.12345678","estimatedSettlePrice":"61800.5","lastFundingRate":"-0.0001","nextFundingTime":9,"interestRate":"0.0001","time":1}]"#;
    let stream = r#"{"e":"markPriceUpdate","E":1,"s":"BTCUSDT","p":"61800.1","i":"61799.12345678","P":"61800.5","r":"-0.0001","T":9}"#;
    let MarketStreamEvent::Marks(marks) = event(stream, &mut levels) else {
        panic!()
    };
    assert_eq!(polling::marks(rest).unwrap(), marks);
    assert_eq!(
        decode(stream, &mut levels).unwrap().surface,
        Some(Surface::Futures)
    );
}

#[test]
fn polled_trades_are_what_the_streams_send() {
    let mut levels = BookLevels::default();
    let rest = r#"[{"id":5266583935,"price":"61800.30","qty":"0.006","quoteQty":"370.8","time":1723161256322,"isBuyerMaker":false}]"#;
    let MarketStreamEvent::Trade(streamed) = event(recorded("futures_trade"), &mut levels) else {
        panic!()
    };
    let polled = polling::trades("BTCUSDT", rest).unwrap();
    assert_eq!(
        polled[0].event_ms, polled[0].trade_ms,
        "an answer has no event time of its own"
    );
    let mut twin = polled[0];
    twin.event_ms = streamed.event_ms;
    assert_eq!(twin, streamed);

    let rest = r#"[{"a":99,"p":"61837.63","q":"0.02","f":1,"l":2,"T":1723161255342,"m":true}]"#;
    let MarketStreamEvent::Trade(streamed) = event(recorded("aggregate"), &mut levels) else {
        panic!()
    };
    let mut twin = polling::aggregates("BTCUSDT", rest).unwrap()[0];
    twin.event_ms = streamed.event_ms;
    assert_eq!(twin, streamed);
}

#[test]
fn polled_tickers_and_funding_are_typed() {
    let rest = r#"{"symbol":"BNBBTC","priceChange":"0.0015","priceChangePercent":"250.00","weightedAvgPrice":"0.0018","lastPrice":"0.0025","lastQty":"10","openPrice":"0.0010","highPrice":"0.0025","lowPrice":"0.0010","volume":"10000","quoteVolume":"18","openTime":0,"closeTime":1675216573749,"firstId":0,"lastId":18150,"count":18151}"#;
    let mut levels = BookLevels::default();
    let MarketStreamEvent::Ticker(mut streamed) = event(TICKER, &mut levels) else {
        panic!()
    };
    streamed.event_ms = streamed.close_ms.unwrap();
    assert_eq!(polling::tickers(rest).unwrap(), [*streamed]);
    let rest = r#"[{"symbol":"A","fundingRate":"-0.03750000","fundingTime":1570608000000}]"#;
    let payments = polling::funding_payments(rest).unwrap();
    assert_eq!(
        (payments[0].rate, payments[0].time_ms.0),
        (exact("-0.0375"), 1_570_608_000_000)
    );
}
