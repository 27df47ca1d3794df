//! Orders as much as its limits allow, on both sides and several orders at once, without regard to
//! earlier orders. Only the limits hold it back, so that any order which a limit forgets to count
//! is sent.
//!
//! The fault simulator uses it. It depends on the SDK alone.
//!
//! It must not keep any memory of orders. It reads everything from the context, so that a restart
//! or an unknown outcome does not change what it wants.

use windvane_sdk::prelude::*;

/// Number of tries at once. The limits are meant to reject the surplus, and this many tries are
/// enough to see that.
const AT_ONCE: usize = 3;
/// An order is cancelled once it is more than this many times its distance away from the touch.
const LEASH: i64 = 6;

/// The strategy.
#[derive(Debug)]
pub struct Greedy {
    instrument: Instrument,
    qty: Qty,
    distance_ticks: i64,
    pace_ms: i64,
    next: Time,
}

impl Strategy for Greedy {
    fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String> {
        params.only(&["qty", "distance_ticks", "pace_ms"])?;
        let instrument = instruments
            .first()
            .ok_or("greedy needs one instrument")?
            .clone();
        Ok(Self {
            qty: params.qty("qty", &instrument)?,
            distance_ticks: params.integer_or("distance_ticks", 3, 1..=1_000_000)?,
            pace_ms: params.integer_or("pace_ms", 500, 1..=1_000_000)?,
            next: Time::from_millis(0),
            instrument,
        })
    }

    fn on_book_top(&mut self, ctx: &Ctx, top: &BookTop) {
        let mine = top.instrument == self.instrument.id && top.is_complete();
        if !mine || ctx.time() < self.next {
            return;
        }
        self.next = ctx.time().plus_ms(self.pace_ms);
        self.let_go(ctx, top);
        for side in [Side::Buy, Side::Sell] {
            self.take_all(ctx, side, top);
        }
    }
}

impl Greedy {
    /// Distance of its orders from the touch, in price units.
    fn distance(&self) -> i64 {
        self.instrument.tick.saturating_mul(self.distance_ticks)
    }

    /// Cancels orders that are too far from the market.
    fn let_go(&self, ctx: &Ctx, top: &BookTop) {
        let far = self.distance().saturating_mul(LEASH);
        for id in ctx.open_orders(self.instrument.id) {
            let order = ctx.order(id);
            let touch = match order.side() {
                Some(Side::Buy) => top.bid,
                _ => top.ask,
            };
            let left_behind = order
                .price()
                .is_some_and(|price| (price.0 - touch.0).abs() > far);
            if left_behind && let Err(rejection) = ctx.cancel(id) {
                debug!(ctx, "cancel of {}: {rejection}", id.0);
            }
        }
    }

    /// Places orders until one is rejected.
    fn take_all(&self, ctx: &Ctx, side: Side, top: &BookTop) {
        let price = match side {
            Side::Buy => Price(top.bid.0.saturating_sub(self.distance())),
            Side::Sell => Price(top.ask.0.saturating_add(self.distance())),
        };
        let Some(price) = self.instrument.passive_price(side, price) else {
            return;
        };
        for _ in 0..AT_ONCE {
            let order = Order::limit(&self.instrument, side, price, self.qty).post_only();
            if let Err(rejection) = ctx.submit(order) {
                debug!(ctx, "{side:?} refused: {rejection}");
                return;
            }
        }
    }
}

windvane_sdk::export!(Greedy);

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_sdk::harness::{Harness, Intent, instrument};

    fn harness() -> Harness<Greedy> {
        let params = r#"{"qty":"0.010","distance_ticks":3,"pace_ms":100}"#;
        Harness::new(params, &[instrument("futures:BTCUSDT", "0.1", "0.001")]).unwrap()
    }

    #[test]
    fn it_orders_on_both_sides_until_it_is_refused() {
        let mut h = harness();
        h.book("65000.0", "1", "65000.2", "1");
        assert_eq!(h.open_orders().len(), 2 * AT_ONCE);
        h.advance_ms(100);
        h.book("65000.0", "1", "65000.2", "1");
        assert_eq!(
            h.open_orders().len(),
            4 * AT_ONCE,
            "earlier orders must not matter"
        );
    }

    #[test]
    fn orders_far_from_the_market_are_cancelled() {
        let mut h = harness();
        h.book("65000.0", "1", "65000.2", "1");
        h.settle();
        h.intents();
        h.advance_ms(100);
        h.book("65010.0", "1", "65010.2", "1");
        let cancels = h.intents();
        let cancels = cancels
            .iter()
            .filter(|intent| matches!(intent, Intent::Cancel(_)));
        assert_eq!(cancels.count(), 2 * AT_ONCE);
    }
}
