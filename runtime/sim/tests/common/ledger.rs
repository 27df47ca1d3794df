//! A second ledger from the sums of the venue's own messages. It shares only the protocol with the
//! venue, and checks after every call that both agree.

use std::collections::BTreeMap;

use windvane_model::protocol::{AccountReason, Fill, OrderUpdate};
use windvane_model::{
    Amount, ClientOrderId, ExecutionType, InstrumentId, Level, OrderStatus, OrderType, Side,
    Surface, TimeInForce, UserEvent,
};
use windvane_sim::VenueMessage;

use super::{BTC, Bench, FUTURES, SPOT, USDT, whole};

#[derive(Debug)]
struct Seen {
    status: OrderStatus,
    executed: i64,
    qty: i64,
    price: i64,
    side: Side,
    instrument: InstrumentId,
    order_type: OrderType,
}

/// The displayed quantity at a price, and the part that own fills took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Display {
    qty: i64,
    used: i64,
}

#[derive(Debug, Default)]
pub struct Ledger {
    orders: BTreeMap<ClientOrderId, Seen>,
    last_trade: BTreeMap<InstrumentId, i64>,
    wallet: Amount,
    spot: [Amount; 2],
    position: i64,
    cost: Amount,
    displays: BTreeMap<(InstrumentId, Side, i64), Display>,
    /// The quantity of maker fills from the present event.
    made: i64,
    /// All messages.
    pub story: Vec<VenueMessage>,
}

impl Ledger {
    pub fn new() -> Self {
        Self {
            wallet: whole(10_000),
            spot: [whole(10_000), whole(1)],
            ..Self::default()
        }
    }

    /// Sets everything that one side displays in the recording.
    pub fn display(&mut self, instrument: InstrumentId, side: Side, levels: &[Level]) {
        let old = std::mem::take(&mut self.displays);
        let (same, mut kept): (BTreeMap<_, _>, BTreeMap<_, _>) = old
            .into_iter()
            .partition(|(key, _)| key.0 == instrument && key.1 == side);
        for level in levels {
            let key = (instrument, side, level.price);
            let fresh = Display {
                qty: level.qty,
                used: 0,
            };
            let before = same.get(&key).filter(|display| display.qty == level.qty);
            kept.insert(key, before.copied().unwrap_or(fresh));
        }
        self.displays = kept;
    }

    /// Reads the messages and compares the sums with the venue's own.
    pub fn check(&mut self, bench: &mut Bench) {
        self.made = 0;
        for message in std::mem::take(&mut bench.messages) {
            if let VenueMessage::User(event) = &message {
                self.read(event);
            }
            self.story.push(message);
        }
        assert_eq!(
            bench.wallet(),
            self.wallet,
            "start + realized - fees + funding"
        );
        for (asset, total) in [USDT, BTC].into_iter().zip(self.spot) {
            let (venue, locked) = bench.balance(Surface::Spot, asset);
            assert_eq!(venue, total);
            // No message says whether a conditional order has triggered and locks balance.
            let limits = self.locked(asset == USDT, false);
            let all = self.locked(asset == USDT, true);
            assert!(
                (limits..=all).contains(&locked),
                "locked balance of {asset:?}"
            );
            assert!(locked <= total, "free is never negative");
        }
        let position = bench.venue.positions().next();
        let (qty, cost) = position.map_or_else(Default::default, |p| (p.qty.0, p.cost));
        assert_eq!((qty, cost), (self.position, self.cost));
        for instrument in [FUTURES, SPOT] {
            let open = self.open().filter(|o| o.instrument == instrument).count();
            assert_eq!(bench.venue.open_orders(instrument).count(), open);
        }
    }

    /// The quantity of maker fills from the present event.
    pub fn made(&self) -> i64 {
        self.made
    }

    fn open(&self) -> impl Iterator<Item = &Seen> {
        self.orders.values().filter(|order| {
            !matches!(
                order.status,
                OrderStatus::Filled | OrderStatus::Canceled | OrderStatus::Expired
            )
        })
    }

    /// Limit orders in the book lock their cost and the taker fee of 0.04 percent, or the base
    /// asset.
    fn locked(&self, quote: bool, conditional: bool) -> Amount {
        let resting = self.open().filter(|o| {
            let limit = o.order_type == OrderType::Limit;
            o.instrument == SPOT && o.price != 0 && (limit || conditional)
        });
        let locks = resting.map(|o| {
            let left = i128::from(o.qty - o.executed);
            match (o.side, quote) {
                // Tenths times thousandths are units of 1e-4, so a fee is exact at 1e-8.
                (Side::Buy, true) => left * i128::from(o.price) * (10_000 + 4),
                (Side::Sell, false) => left * 100_000,
                _ => 0,
            }
        });
        Amount(locks.sum())
    }

    fn read(&mut self, event: &UserEvent) {
        match event {
            UserEvent::Order(update) => self.order(update),
            UserEvent::Account(update) if update.reason == AccountReason::FundingFee => {
                assert!(update.positions.is_empty());
                self.wallet += update.balances[0].change;
            }
            _ => {}
        }
    }

    fn order(&mut self, update: &OrderUpdate) {
        let id = update.client_order_id;
        if update.execution == ExecutionType::New {
            let seen = Seen {
                status: update.status,
                executed: 0,
                qty: update.orig_qty.0,
                price: update.price.0,
                side: update.side,
                instrument: update.instrument,
                order_type: update.order_type,
            };
            assert!(
                self.orders.insert(id, seen).is_none(),
                "{id} has a single NEW event"
            );
        }
        let order = self.orders.get_mut(&id).expect("NEW comes first");
        let over = matches!(
            order.status,
            OrderStatus::Filled | OrderStatus::Canceled | OrderStatus::Expired
        );
        assert!(!over, "{id} was {:?}", order.status);
        order.qty = update.orig_qty.0;
        order.status = update.status;
        if let Some(fill) = update.fill {
            order.executed += fill.qty.0;
            assert!(fill.qty.0 > 0 && order.executed <= order.qty);
            assert_eq!(
                order.executed == order.qty,
                update.status == OrderStatus::Filled
            );
            self.fill(update, &fill);
        }
        assert_eq!(self.orders[&id].executed, update.executed_qty.0);
    }

    fn fill(&mut self, update: &OrderUpdate, fill: &Fill) {
        let last = self.last_trade.entry(update.instrument).or_default();
        assert_eq!(fill.trade_id.0, *last + 1);
        *last += 1;
        let units = i128::from(fill.price.0) * i128::from(fill.qty.0);
        assert_eq!(fill.quote_qty, Amount(units * 10_000));
        let rate = if fill.maker { 2 } else { 4 };
        assert_eq!(fill.fee, Amount(units * rate));
        if fill.maker {
            self.made += fill.qty.0;
            assert_eq!(fill.price, update.price);
        } else if update.execution == ExecutionType::Trade {
            self.took(update, fill);
        }
        if update.time_in_force == TimeInForce::Gtx {
            assert!(fill.maker, "post-only never takes");
        }
        let sign = update.side.sign();
        if update.instrument == SPOT {
            self.spot[0] += Amount(-fill.quote_qty.0 * i128::from(sign)) - fill.fee;
            self.spot[1] += Amount(i128::from(fill.qty.0 * sign) * 100_000);
            return;
        }
        let before = self.position;
        let realized = fill.realized_pnl.expect("futures fills contain it");
        self.position += fill.qty.0 * sign;
        self.cost += Amount(fill.quote_qty.0 * i128::from(sign)) + realized;
        self.wallet += realized - fill.fee;
        if update.reduce_only {
            assert!(self.position.abs() < before.abs(), "reduce-only reduces");
            assert!(
                self.position * before >= 0,
                "reduce-only never reverses a position"
            );
        }
        assert!(self.position != 0 || self.cost == Amount::ZERO);
    }

    /// Checks that a taker's fill comes from the displayed quantity, within its limit.
    fn took(&mut self, update: &OrderUpdate, fill: &Fill) {
        let key = (update.instrument, update.side.opposite(), fill.price.0);
        let display = self.displays.get_mut(&key).expect("a displayed level");
        display.used += fill.qty.0;
        assert!(display.used <= display.qty, "{display:?} at {key:?}");
        let limited = update.price.0 != 0;
        let within = match update.side {
            Side::Buy => fill.price <= update.price,
            Side::Sell => fill.price >= update.price,
        };
        assert!(!limited || within);
    }
}
