//! Quotes both sides of the book with post-only orders; see README.md.
//!
//! A sample strategy, which the configurations and tests use. It must not depend on anything
//! but the SDK.

mod quote;

use quote::{Quote, Slot};
use windvane_sdk::prelude::*;

/// The price from which the distance of a quote is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reference {
    /// The best price of the quote's own side.
    Touch,
    /// The midpoint of the best bid and the best ask.
    Mid,
}

/// How long a side waits after a rejection, milliseconds.
const RETRY_MS: i64 = 1_000;

/// The strategy.
#[derive(Debug)]
pub struct MarketMaker {
    instrument: Instrument,
    qty: Qty,
    reference: Reference,
    half_spread_ticks: i64,
    skew_ticks_per_qty: i64,
    max_position: Qty,
    min_position: Qty,
    /// Twice the threshold in price units. All distances are computed with twice the mid, to avoid
    /// fractions.
    threshold2: i64,
    top: BookTop,
    position: Qty,
    ready: bool,
    /// While twice the mid is between these values, no quote needs a change. This is the hot path.
    quiet: (i64, i64),
    quotes: [Quote; 2],
}

/// Empty bounds, so that the next book is always processed.
const NOT_QUIET: (i64, i64) = (i64::MAX, i64::MIN);

impl Strategy for MarketMaker {
    fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String> {
        params.only(&[
            "qty",
            "reference",
            "half_spread_ticks",
            "replace_threshold_ticks",
            "skew_ticks_per_qty",
            "max_position",
        ])?;
        let instrument = instruments
            .first()
            .ok_or("market_maker needs one instrument")?
            .clone();
        let qty = params.qty("qty", &instrument)?;
        let max_position = params.qty_opt("max_position", &instrument)?;
        let max_position = max_position.unwrap_or(Qty(qty.0.saturating_mul(10)));
        let references = [("touch", Reference::Touch), ("mid", Reference::Mid)];
        let threshold = params.integer_or("replace_threshold_ticks", 2, 0..=1_000_000)?;
        let spot = instrument.surface() == Surface::Spot;
        Ok(Self {
            qty,
            reference: params.choice("reference", &references)?,
            half_spread_ticks: params.integer_or("half_spread_ticks", 5, 0..=1_000_000)?,
            skew_ticks_per_qty: params.integer_or("skew_ticks_per_qty", 0, 0..=1_000_000)?,
            max_position,
            // Spot cannot be sold short, so only the quantity that was bought is offered.
            min_position: if spot { Qty(0) } else { Qty(-max_position.0) },
            threshold2: instrument.tick.saturating_mul(2 * threshold),
            top: BookTop::default(),
            position: Qty(0),
            ready: true,
            quiet: NOT_QUIET,
            quotes: [Quote::new(Side::Buy), Quote::new(Side::Sell)],
            instrument,
        })
    }

    #[inline]
    fn on_book_top(&mut self, ctx: &Ctx, top: &BookTop) {
        if top.instrument != self.instrument.id {
            return;
        }
        self.top = *top;
        let mid2 = top.bid.0 + top.ask.0;
        if mid2 < self.quiet.0 || mid2 > self.quiet.1 {
            self.requote(ctx);
        }
    }

    fn on_order(&mut self, ctx: &Ctx, update: &OrderUpdate) {
        if update.instrument != self.instrument.id {
            return;
        }
        let Some(quote) = self
            .quotes
            .iter_mut()
            .find(|quote| quote.id() == Some(update.id))
        else {
            if !update.state.is_final() {
                self.adopt(ctx, update.id);
            }
            return;
        };
        quote.on_update(update.state);
        match update.state {
            OrderState::PartiallyFilled | OrderState::Filled | OrderState::Canceled => {
                self.requote(ctx);
            }
            // Expired: the quote would have crossed a newer book. New: the venue refused its
            // cancel. In both cases the next book decides.
            OrderState::Expired | OrderState::New => self.quiet = NOT_QUIET,
            OrderState::Rejected => {
                quote.rest();
                let side = quote.side();
                match update.code {
                    0 => warn!(ctx, "{side:?} quote not accepted, the reason is in the log"),
                    code => warn!(ctx, "{side:?} quote rejected by the venue, code {code}"),
                }
                Self::wake_later(ctx);
            }
            _ => {}
        }
    }

    fn on_fill(&mut self, _ctx: &Ctx, fill: &Fill) {
        // An order update follows, which places the next quote.
        if fill.instrument == self.instrument.id {
            self.position = fill.position;
        }
    }

    fn on_position(&mut self, ctx: &Ctx, position: &PositionUpdate) {
        // The position differs from the fills, after a restart or because the venue changed it.
        if position.instrument == self.instrument.id && self.position != position.qty {
            self.position = position.qty;
            self.requote(ctx);
        }
    }

    fn on_timer(&mut self, ctx: &Ctx, _token: i64) {
        for quote in &mut self.quotes {
            quote.wake();
        }
        self.requote(ctx);
    }

    fn on_runtime_state(&mut self, ctx: &Ctx, state: RuntimeState) {
        self.ready = state == RuntimeState::Ready;
        self.requote(ctx);
    }
}

impl MarketMaker {
    /// The shift of both quotes against the position, in price units.
    fn skew(&self) -> i64 {
        if self.skew_ticks_per_qty == 0 {
            return 0;
        }
        let ticks = self.position.0.saturating_mul(self.skew_ticks_per_qty) / self.qty.0;
        ticks.saturating_neg().saturating_mul(self.instrument.tick)
    }

    /// The quantity that a side may quote without exceeding the position limits.
    fn room(&self, side: Side) -> Option<Qty> {
        let room = match side {
            Side::Buy => self.max_position.0.saturating_sub(self.position.0),
            Side::Sell => self.position.0.saturating_sub(self.min_position.0),
        };
        self.instrument.floor_qty(Qty(room.min(self.qty.0)))
    }

    /// The price for a side: on the grid, and never a price that would take.
    fn wanted(&self, side: Side, skew: i64) -> Option<Price> {
        let mid2 = self.top.bid.0 + self.top.ask.0;
        let distance = self.half_spread_ticks.saturating_mul(self.instrument.tick);
        let (touch, limit) = match side {
            Side::Buy => (self.top.bid.0, self.top.ask.0 - self.instrument.tick),
            Side::Sell => (self.top.ask.0, self.top.bid.0 + self.instrument.tick),
        };
        let base = match (self.reference, side) {
            (Reference::Touch, _) => touch,
            (Reference::Mid, Side::Buy) => mid2.div_euclid(2),
            (Reference::Mid, Side::Sell) => (mid2 + 1).div_euclid(2),
        };
        let price = base
            .saturating_sub(side.sign().saturating_mul(distance))
            .saturating_add(skew);
        let passive = match side {
            Side::Buy => price.min(limit),
            Side::Sell => price.max(limit),
        };
        self.instrument.passive_price(side, Price(passive))
    }

    /// Moves both sides one step toward their targets.
    fn requote(&mut self, ctx: &Ctx) {
        self.quiet = NOT_QUIET;
        if !self.top.is_complete() {
            return;
        }
        let skew = self.skew();
        let anchor = (self.top.bid.0 + self.top.ask.0).saturating_add(skew.saturating_mul(2));
        let mut settled = true;
        for index in 0..self.quotes.len() {
            settled &= self.requote_side(ctx, index, skew, anchor);
        }
        if !settled {
            return;
        }
        let anchors = self.quotes.iter().filter_map(Quote::anchor);
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        for anchor in anchors {
            low = low.max(anchor - self.threshold2);
            high = high.min(anchor + self.threshold2);
        }
        self.quiet = (low.saturating_sub(skew * 2), high.saturating_sub(skew * 2));
    }

    /// Returns false if the side should have an order but has none. The next book then tries again.
    fn requote_side(&mut self, ctx: &Ctx, index: usize, skew: i64, anchor: i64) -> bool {
        let side = self.quotes[index].side();
        let wanted = self.wanted(side, skew).filter(|_| self.ready);
        let target = wanted.zip(self.room(side));
        let quote = &mut self.quotes[index];
        match (quote.slot(), target) {
            (Slot::Empty, Some((price, qty))) => {
                let order = Order::limit(&self.instrument, side, price, qty).post_only();
                match ctx.submit(order) {
                    Ok(id) => quote.place(id, price, anchor),
                    Err(rejection) => {
                        warn!(ctx, "{side:?} quote refused: {rejection}");
                        quote.rest();
                        Self::wake_later(ctx);
                    }
                }
            }
            (Slot::Live(_), None) => quote.cancel(ctx),
            (Slot::Live(live), Some((price, _))) => {
                let moved = anchor.abs_diff(live.anchor) > self.threshold2.unsigned_abs();
                if moved && price != live.price {
                    quote.cancel(ctx);
                } else if moved {
                    quote.anchor_at(anchor);
                }
            }
            _ => {}
        }
        quote.slot() != Slot::Empty || target.is_none()
    }

    /// Takes over an unknown open order, which is reported again after a restart or a hot swap.
    fn adopt(&mut self, ctx: &Ctx, id: OrderId) {
        let order = ctx.order(id);
        let (Some(side), Some(price)) = (order.side(), order.price()) else {
            return;
        };
        let anchor = self.top.bid.0 + self.top.ask.0;
        let quote = &mut self.quotes[side as usize];
        if quote.slot() == Slot::Empty {
            quote.place(id, price, anchor);
        } else if let Err(rejection) = ctx.cancel(id) {
            warn!(
                ctx,
                "second {side:?} quote {} not cancelled: {rejection}", id.0
            );
        }
        self.quiet = NOT_QUIET;
    }

    fn wake_later(ctx: &Ctx) {
        if let Err(rejection) = ctx.set_timer_in(RETRY_MS, 0) {
            warn!(
                ctx,
                "no timer: {rejection}; a fill or a runtime state wakes the side"
            );
        }
    }
}

windvane_sdk::export!(MarketMaker);

#[cfg(test)]
mod tests;
