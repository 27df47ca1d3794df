//! A recording that states only tick and step: the venue enforces the rules that it announces.

use serde_json::Value;
use windvane_model::instrument::{Filters, LotSize, PriceFilter};
use windvane_model::{
    Instrument, InstrumentId, Level, MarketEvent, OwnedMarketEvent, Surface, Time,
};
use windvane_protocol::Assets;
use windvane_sim_server::{Recorded, RecordedEvents, Recording, Source};

use crate::fixture::{Sent, Venue};

/// A recording with a book around 60000 on the futures surface.
fn recording() -> Recording {
    let mut assets = Assets::default();
    let lot = Some(LotSize {
        min_qty: 1,
        max_qty: 0,
        step_size: 1,
    });
    let instrument = Instrument {
        filters: Filters {
            price: Some(PriceFilter {
                tick_size: 1,
                ..PriceFilter::default()
            }),
            lot_size: lot,
            market_lot_size: lot,
            ..Filters::default()
        },
        ..Instrument::unrestricted(
            Surface::Futures,
            "BTCUSDT",
            [assets.id("BTC"), assets.id("USDT")],
            [1, 3],
        )
    };
    let open = || -> Option<RecordedEvents> {
        let level = |price| Level { price, qty: 5_000 };
        let book = OwnedMarketEvent::of(&MarketEvent::Depth {
            update_id: 1,
            snapshot: true,
            bids: &[level(600_000)],
            asks: &[level(600_010)],
        });
        let mark = OwnedMarketEvent::of(&MarketEvent::Mark {
            mark: 6_000_050_000_000,
            index: 6_000_050_000_000,
            funding_rate: 0,
            next_funding: Time(0),
        });
        let events = [book, mark].map(|event| Recorded {
            time: Time(0),
            instrument: InstrumentId(0),
            event,
        });
        Some(Box::new(events.into_iter()))
    };
    Recording {
        instruments: vec![instrument],
        assets,
        open: Box::new(open),
        speed_permille: 1000,
        looped: false,
    }
}

async fn symbol(venue: &Venue) -> Value {
    let information = Sent {
        method: "GET",
        path: "/fapi/v1/exchangeInfo",
        ..Sent::default()
    };
    venue.send(information).await.ok()["symbols"][0].take()
}

#[tokio::test]
async fn completed_rules_of_a_recording_are_announced_and_enforced() {
    let venue = Venue::with(|settings| settings.source = Source::Recorded(recording())).await;
    let symbol = symbol(&venue).await;
    let has = |list: &str, word: &str| {
        let values = symbol[list].as_array().unwrap();
        assert!(values.iter().any(|w| w == word), "{list}: {values:?}");
    };
    has("OrderType", "TRAILING_STOP_MARKET");
    has("timeInForce", "GTX");
    let rates = ["triggerProtect", "marketTakeBound", "liquidationFee"];
    assert_eq!(
        rates.map(|rate| symbol[rate].as_str().unwrap()),
        ["0.05", "0.05", "0.0125"]
    );
    let filter = |kind: &str| {
        let all = symbol["filters"].as_array().unwrap();
        let found = all.iter().find(|filter| filter["filterType"] == kind);
        found.unwrap_or_else(|| panic!("no {kind}: {all:?}"))
    };
    assert_eq!(filter("PRICE_FILTER")["tickSize"], "0.1");
    assert_eq!(filter("LOT_SIZE")["maxQty"], "90000.000");
    assert_eq!(filter("MARKET_LOT_SIZE")["maxQty"], "90000.000");
    assert_eq!(filter("MIN_NOTIONAL")["notional"], "5");
    assert_eq!(filter("MAX_NUM_ORDERS")["limit"], 200);
    assert_eq!(filter("MAX_NUM_ALGO_ORDERS")["limit"], 100);
    assert_eq!(filter("PERCENT_PRICE")["multiplierUp"], "1.05");

    let order = async |rest: &str| {
        let query = format!("symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&{rest}");
        venue.v1("POST", "/fapi/v1/order", &query).await
    };
    let refused = async |rest: &str| order(rest).await.refusal();
    assert_eq!(refused("quantity=0.01&price=90000").await, (400, -4016));
    assert_eq!(refused("quantity=0.001&price=1000").await, (400, -4164));
    assert_eq!(refused("quantity=90001&price=59000").await, (400, -4005));
    assert_eq!(
        order("quantity=0.01&price=59000").await.ok()["status"],
        "NEW"
    );
}
