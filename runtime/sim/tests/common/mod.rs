//! A venue with one spot and one futures instrument, and helpers to drive it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

pub mod ledger;

use windvane_model::decimal::MARK_SCALE;
use windvane_model::instrument::{Filters, LotSize, PriceFilter};
use windvane_model::protocol::{
    AccountReason, AccountUpdate, Fill, OrderReport, OrderUpdate, Outcome,
};
use windvane_model::{
    Amount, AssetId, ClientOrderId, Decimal, Instrument, InstrumentId, Level, MarketEvent,
    NewOrder, OrderStatus, OrderTerms, OrderType, Price, Qty, Reply, Request, Side, Surface, Time,
    TimeInForce, UserEvent,
};
use windvane_sim::{QueueModel, Venue, VenueConfig, VenueMessage};

pub const FUTURES: InstrumentId = InstrumentId(0);
pub const SPOT: InstrumentId = InstrumentId(1);
pub const USDT: AssetId = AssetId(0);
pub const BTC: AssetId = AssetId(1);

/// Prices in tenths, quantities in thousandths.
pub fn instrument(surface: Surface) -> Instrument {
    Instrument {
        filters: Filters {
            price: Some(PriceFilter {
                min_price: 1,
                max_price: 10_000_000,
                tick_size: 1,
            }),
            lot_size: Some(LotSize {
                min_qty: 1,
                max_qty: 1_000_000,
                step_size: 1,
            }),
            ..Filters::default()
        },
        ..Instrument::unrestricted(surface, "BTCUSDT", [BTC, USDT], [1, 3])
    }
}

pub fn config() -> VenueConfig {
    VenueConfig {
        start_balance: vec![
            (Surface::Futures, USDT, whole(10_000)),
            (Surface::Spot, USDT, whole(10_000)),
            (Surface::Spot, BTC, whole(1)),
        ],
        leverage: 20,
        maintenance_rate: Decimal::new(5, 3),
        maker_fee: Decimal::new(2, 4),
        taker_fee: Decimal::new(4, 4),
        queue: QueueModel::RiskAverse,
        hedge_mode: false,
        seed: 1,
    }
}

pub fn whole(units: i128) -> Amount {
    Amount(units * 100_000_000)
}

pub fn amount(text: &str) -> Amount {
    Amount::from_decimal(text.parse().unwrap()).unwrap()
}

pub fn id(text: &str) -> ClientOrderId {
    ClientOrderId::new(text).unwrap()
}

pub fn level(price: i64, qty: i64) -> Level {
    Level { price, qty }
}

pub fn limit(
    instrument: InstrumentId,
    side: Side,
    price: i64,
    qty: i64,
    time_in_force: TimeInForce,
) -> OrderTerms {
    let mut terms = OrderTerms::new(instrument, side, OrderType::Limit);
    terms.price = Some(Price(price));
    terms.qty = Some(Qty(qty));
    terms.time_in_force = Some(time_in_force);
    terms
}

pub fn market(instrument: InstrumentId, side: Side, qty: i64) -> OrderTerms {
    let mut terms = OrderTerms::new(instrument, side, OrderType::Market);
    terms.qty = Some(Qty(qty));
    terms
}

pub fn stop(order_type: OrderType, side: Side, stop_price: i64, qty: i64) -> OrderTerms {
    let mut terms = OrderTerms::new(FUTURES, side, order_type);
    terms.stop_price = Some(Price(stop_price));
    terms.qty = Some(Qty(qty));
    terms
}

/// A venue and all of its messages since the last check.
pub struct Bench {
    pub venue: Venue,
    pub now: Time,
    pub messages: Vec<VenueMessage>,
    trade_id: i64,
}

impl Bench {
    pub fn new(config: VenueConfig) -> Self {
        let instruments = vec![instrument(Surface::Futures), instrument(Surface::Spot)];
        Self::with(config, instruments)
    }

    pub fn with(config: VenueConfig, instruments: Vec<Instrument>) -> Self {
        Self {
            venue: Venue::new(config, instruments).unwrap(),
            now: Time::from_millis(1_700_000_000_000),
            messages: Vec::new(),
            trade_id: 0,
        }
    }

    fn drain(&mut self) {
        while let Some(message) = self.venue.poll() {
            self.messages.push(message);
        }
    }

    pub fn event(&mut self, instrument: InstrumentId, event: &MarketEvent<'_>) {
        self.now = self.now.plus_ns(1_000);
        self.venue.market(self.now, instrument, event);
        self.drain();
    }

    pub fn top(&mut self, instrument: InstrumentId, bid: (i64, i64), ask: (i64, i64)) {
        let event = MarketEvent::Top {
            update_id: 0,
            bid: level(bid.0, bid.1),
            ask: level(ask.0, ask.1),
        };
        self.event(instrument, &event);
    }

    /// A trade. `seller` tells whether the seller crossed.
    pub fn trade(&mut self, instrument: InstrumentId, price: i64, qty: i64, seller: bool) {
        self.trade_id += 1;
        let event = MarketEvent::Trade {
            price,
            qty,
            trade_id: self.trade_id,
            buyer_is_maker: seller,
        };
        self.event(instrument, &event);
    }

    pub fn depth(
        &mut self,
        instrument: InstrumentId,
        update_id: i64,
        snapshot: bool,
        bids: &[Level],
        asks: &[Level],
    ) {
        let event = MarketEvent::Depth {
            update_id,
            snapshot,
            bids,
            asks,
        };
        self.event(instrument, &event);
    }

    pub fn mark(&mut self, mark: i64, funding_rate: i64, next_funding: Time) {
        let unit = 10_i64.pow(u32::from(MARK_SCALE - 1));
        let event = MarketEvent::Mark {
            mark: mark * unit,
            index: 0,
            funding_rate,
            next_funding,
        };
        self.event(FUTURES, &event);
    }

    pub fn request(&mut self, request: &Request) {
        self.now = self.now.plus_ns(1_000);
        self.venue.request(self.now, request);
        self.drain();
    }

    /// Places an order and returns the venue's report, or the code of the rejection.
    pub fn place(&mut self, name: &str, terms: OrderTerms) -> Result<OrderReport, i32> {
        self.messages.clear();
        self.request(&Request::Place(NewOrder {
            client_order_id: id(name),
            terms,
        }));
        match self.messages.first() {
            Some(VenueMessage::Reply(Reply::Placed { outcome, .. })) => answer(outcome),
            other => panic!("the reply must come first, not {other:?}"),
        }
    }

    pub fn cancel(&mut self, instrument: InstrumentId, name: &str) -> Result<OrderReport, i32> {
        self.messages.clear();
        self.request(&Request::Cancel {
            instrument,
            client_order_id: id(name),
        });
        match self.messages.first() {
            Some(VenueMessage::Reply(Reply::Canceled { outcome, .. })) => answer(outcome),
            other => panic!("the reply must come first, not {other:?}"),
        }
    }

    pub fn query(&mut self, instrument: InstrumentId, name: &str) -> Result<OrderReport, i32> {
        self.messages.clear();
        self.request(&Request::Query {
            instrument,
            client_order_id: id(name),
        });
        match self.messages.first() {
            Some(VenueMessage::Reply(Reply::Queried { outcome, .. })) => answer(outcome),
            other => panic!("the reply must come first, not {other:?}"),
        }
    }

    /// Time passes without any event.
    pub fn pass_ms(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
        self.venue.timeout(self.now);
        self.drain();
    }

    pub fn updates(&self) -> Vec<OrderUpdate> {
        let updates = self.messages.iter().filter_map(|message| match message {
            VenueMessage::User(UserEvent::Order(update)) => Some(*update),
            _ => None,
        });
        updates.collect()
    }

    pub fn fills(&self) -> Vec<Fill> {
        self.updates().iter().filter_map(|u| u.fill).collect()
    }

    /// Fills as (price, quantity, maker).
    pub fn filled(&self) -> Vec<(i64, i64, bool)> {
        let fills = self.fills().into_iter();
        fills.map(|f| (f.price.0, f.qty.0, f.maker)).collect()
    }

    /// Statuses of the order updates.
    pub fn statuses(&self) -> Vec<OrderStatus> {
        self.updates().iter().map(|u| u.status).collect()
    }

    pub fn account_updates(&self, reason: AccountReason) -> Vec<AccountUpdate> {
        let updates = self.messages.iter().filter_map(|message| match message {
            VenueMessage::User(UserEvent::Account(update)) => Some(update.clone()),
            _ => None,
        });
        updates.filter(|update| update.reason == reason).collect()
    }

    pub fn wallet(&self) -> Amount {
        self.balance(Surface::Futures, USDT).0
    }

    /// Total and locked balance.
    pub fn balance(&self, surface: Surface, asset: AssetId) -> (Amount, Amount) {
        let mut balances = self.venue.balances(surface);
        let balance = balances.find(|balance| balance.asset == asset);
        balance.map_or_else(Default::default, |b| (b.total, b.locked))
    }

    pub fn position(&self) -> i64 {
        self.venue.positions().map(|p| p.qty.0).sum()
    }
}

fn answer(outcome: &Outcome<OrderReport>) -> Result<OrderReport, i32> {
    match outcome {
        Outcome::Done(report) => Ok(*report),
        Outcome::Refused(refusal) => Err(refusal.code),
        Outcome::Unknown => panic!("the simulated venue always knows the outcome"),
    }
}
