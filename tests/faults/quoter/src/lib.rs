//! Quotes an entry and an exit of every instrument. On futures, with `hedge`, it does so for the
//! long and for the short position. Now and then it exits at the market; in hedge mode it then
//! first asks to close more than it holds.
//!
//! The fault simulator uses it. It depends on the SDK alone.
//!
//! It must not keep any memory of orders. It reads everything from the context, so that a restart
//! or an unknown outcome does not change what it wants.

use windvane_sdk::prelude::*;

/// An order is cancelled once it is more than this many times its distance away from the touch.
const LEASH: i64 = 4;
/// Exits go to the market in the last of this many time slots.
const SLOTS: i64 = 5;
/// Length of a time slot in milliseconds.
const SLOT_MS: i64 = 8_000;

/// An instrument, and when it is handled next.
#[derive(Debug)]
struct Place {
    instrument: Instrument,
    qty: Qty,
    most: Qty,
    next: Time,
}

/// The strategy.
#[derive(Debug)]
pub struct Quoter {
    places: Vec<Place>,
    hedge: bool,
    distance_ticks: i64,
    pace_ms: i64,
}

impl Strategy for Quoter {
    fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String> {
        params.only(&["qty", "max_position", "distance_ticks", "pace_ms", "hedge"])?;
        let place = |instrument: &Instrument| {
            let qty = params.qty("qty", instrument)?;
            let most = params.qty_opt("max_position", instrument)?;
            Ok::<_, String>(Place {
                most: most.unwrap_or(Qty(qty.0.saturating_mul(5))),
                next: Time::from_millis(0),
                instrument: instrument.clone(),
                qty,
            })
        };
        Ok(Self {
            places: instruments.iter().map(place).collect::<Result<_, _>>()?,
            hedge: params.bool_or("hedge", false)?,
            distance_ticks: params.integer_or("distance_ticks", 3, 1..=1_000_000)?,
            pace_ms: params.integer_or("pace_ms", 500, 1..=1_000_000)?,
        })
    }

    fn on_book_top(&mut self, ctx: &Ctx, top: &BookTop) {
        let (hedge, ticks, pace_ms) = (self.hedge, self.distance_ticks, self.pace_ms);
        let mut places = self.places.iter_mut();
        let Some(place) = places.find(|place| place.instrument.id == top.instrument) else {
            return;
        };
        if !top.is_complete() || ctx.time() < place.next {
            return;
        }
        place.next = ctx.time().plus_ms(pace_ms);
        let distance = place.instrument.tick.saturating_mul(ticks);
        place.let_go(ctx, top, distance);
        if hedge && place.instrument.surface() == Surface::Futures {
            place.quote(ctx, top, distance, PositionSide::Long);
            place.quote(ctx, top, distance, PositionSide::Short);
        } else {
            place.quote(ctx, top, distance, PositionSide::Both);
        }
    }
}

impl Place {
    /// Cancels orders that are too far from the market.
    fn let_go(&self, ctx: &Ctx, top: &BookTop, distance: i64) {
        for id in ctx.open_orders(self.instrument.id) {
            let order = ctx.order(id);
            let touch = match order.side() {
                Some(Side::Buy) => top.bid,
                _ => top.ask,
            };
            let far = distance.saturating_mul(LEASH);
            let left_behind = order
                .price()
                .is_some_and(|price| (price.0 - touch.0).abs() > far);
            if left_behind && let Err(rejection) = ctx.cancel(id) {
                debug!(ctx, "cancel of {}: {rejection}", id.0);
            }
        }
    }

    /// Places an entry to a position and an exit from it, as far as there is room.
    fn quote(&self, ctx: &Ctx, top: &BookTop, distance: i64, position_side: PositionSide) {
        let held = ctx.position_of(self.instrument.id, position_side);
        let (opening, entering, leaving) = match position_side {
            PositionSide::Short => (Side::Sell, held.open_sell(), held.open_buy()),
            _ => (Side::Buy, held.open_buy(), held.open_sell()),
        };
        let closing = match opening {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        };
        // A position of the other sign was not entered by this quote.
        let qty = match opening {
            Side::Buy => held.qty().0.max(0),
            Side::Sell => held.qty().0.saturating_neg().max(0),
        };
        let entered = qty.saturating_add(entering.0).saturating_add(self.qty.0);
        if entered <= self.most.0 {
            self.rest(ctx, top, distance, (opening, position_side), self.qty);
        }
        let left = qty.saturating_sub(leaving.0);
        let exits_at_market = ctx.time().millis() / SLOT_MS % SLOTS == SLOTS - 1;
        if exits_at_market && position_side != PositionSide::Both {
            // More than it holds: the excess may belong to another strategy, so the runtime must
            // reject it.
            let more = Qty(left.saturating_add(self.qty.0));
            let order = Order::market(&self.instrument, closing, more);
            Self::send(ctx, order.position_side(position_side));
        }
        let Some(left) = self
            .instrument
            .floor_qty(Qty(left))
            .filter(|left| left.0 > 0)
        else {
            return;
        };
        if exits_at_market {
            let order = Order::market(&self.instrument, closing, left);
            let order = order.position_side(position_side).reduce_only();
            Self::send(ctx, order);
        } else {
            let qty = Qty(left.0.min(self.qty.0));
            self.rest(ctx, top, distance, (closing, position_side), qty);
        }
    }

    fn rest(
        &self,
        ctx: &Ctx,
        top: &BookTop,
        distance: i64,
        (side, position_side): (Side, PositionSide),
        qty: Qty,
    ) {
        let price = match side {
            Side::Buy => Price(top.bid.0.saturating_sub(distance)),
            Side::Sell => Price(top.ask.0.saturating_add(distance)),
        };
        if let Some(price) = self.instrument.passive_price(side, price) {
            let order = Order::limit(&self.instrument, side, price, qty);
            Self::send(ctx, order.position_side(position_side).post_only());
        }
    }

    fn send(ctx: &Ctx, order: Order) {
        if let Err(rejection) = ctx.submit(order) {
            debug!(ctx, "{:?} refused: {rejection}", order.side());
        }
    }
}

windvane_sdk::export!(Quoter);

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_sdk::harness::{Harness, instrument};

    fn harness(params: &str, names: &[&str]) -> Harness<Quoter> {
        let all: Vec<_> = names
            .iter()
            .map(|name| instrument(name, "0.1", "0.001"))
            .collect();
        Harness::new(params, &all).unwrap()
    }

    #[test]
    fn it_enters_both_positions_in_hedge_mode() {
        let params = r#"{"qty":"0.010","pace_ms":100,"hedge":true}"#;
        let mut h = harness(params, &["futures:BTCUSDT"]);
        h.book("65000.0", "1", "65000.2", "1");
        assert_eq!(h.open_orders().len(), 2);
        h.advance_ms(100);
        h.book("65000.0", "1", "65000.2", "1");
        assert_eq!(h.open_orders().len(), 4);
    }

    #[test]
    fn it_exits_its_position() {
        let params = r#"{"qty":"0.010","max_position":"0.010","pace_ms":100}"#;
        let mut h = harness(params, &["spot:BTCUSDT"]);
        h.book("65000.0", "1", "65000.2", "1");
        let entry = h.open_orders()[0].id;
        h.accept(entry);
        h.fill(entry, "64999.7", "0.010");
        h.advance_ms(100);
        h.book("65000.0", "1", "65000.2", "1");
        let open = h.open_orders();
        assert_eq!(open.len(), 1, "{open:?}");
    }
}
