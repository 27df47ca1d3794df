//! Two instruments with one symbol, and helpers to build requests and responses for them.

use windvane_model::{
    Amount, AssetId, ClientOrderId, Instrument, InstrumentId, NewOrder, OrderTerms, OrderType,
    Price, Qty, Request, Side, Surface, TimeInForce,
};
use windvane_protocol::adapter::{Adapter, FuturesAccount, Names};
use windvane_wire_examples::{self as examples, Example};

pub const FUTURES: InstrumentId = InstrumentId(0);
pub const SPOT: InstrumentId = InstrumentId(1);
pub const USDT: AssetId = AssetId(0);
pub const BTC: AssetId = AssetId(1);
pub const ADDRESS: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

/// BTCUSDT with prices in hundredths and quantities in hundred-thousandths.
pub fn instrument(surface: Surface) -> Instrument {
    Instrument::unrestricted(surface, "BTCUSDT", [BTC, USDT], [2, 5])
}

pub fn names() -> Names {
    let instruments = [instrument(Surface::Futures), instrument(Surface::Spot)];
    Names::new(&instruments, &["USDT".to_owned(), "BTC".to_owned()])
}

pub fn adapter() -> Adapter {
    Adapter {
        names: names(),
        futures_account: FuturesAccount::Routes,
        documented: false,
    }
}

pub fn documented() -> Adapter {
    Adapter {
        futures_account: FuturesAccount::Info {
            address: ADDRESS.to_owned(),
        },
        documented: true,
        ..adapter()
    }
}

pub fn id(text: &str) -> ClientOrderId {
    ClientOrderId::new(text).unwrap()
}

pub fn amount(text: &str) -> Amount {
    Amount::from_decimal(text.parse().unwrap()).unwrap()
}

pub fn limit(instrument: InstrumentId) -> OrderTerms {
    let mut terms = OrderTerms::new(instrument, Side::Buy, OrderType::Limit);
    terms.time_in_force = Some(TimeInForce::Gtc);
    terms.price = Some(Price(6_000_010));
    terms.qty = Some(Qty(1_000));
    terms
}

pub fn order(name: &str, terms: OrderTerms) -> NewOrder {
    NewOrder {
        client_order_id: id(name),
        terms,
    }
}

pub fn place(name: &str, terms: OrderTerms) -> Request {
    Request::Place(order(name, terms))
}

/// The first example of a route.
pub fn example(route: &str) -> Example {
    let mut all = examples::all().into_iter();
    all.find(|example| example.route == route).unwrap()
}

pub fn body(route: &str) -> &'static str {
    example(route).answer
}
