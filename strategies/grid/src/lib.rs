//! Buys and sells at fixed distances around a centre; see README.md.
//!
//! A sample strategy, which the configurations and tests use. It must not depend on anything
//! but the SDK.

mod rung;

use rung::{Rung, Slot};
use windvane_sdk::prelude::*;

/// How long to wait after a rejection, milliseconds.
const RETRY_MS: i64 = 1_000;

/// The strategy.
#[derive(Debug)]
pub struct Grid {
    instrument: Instrument,
    qty: Qty,
    levels: i64,
    /// Distance between two lines, in price units.
    step: i64,
    /// The strategy starts flat and never sells more than it has bought.
    long_only: bool,
    centre: Option<Price>,
    rungs: Vec<Rung>,
    top: BookTop,
    /// Some rung may need an order. If this is false, books are ignored.
    work_left: bool,
    ready: bool,
}

impl Strategy for Grid {
    fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String> {
        params.only(&["qty", "levels", "step_ticks", "centre", "long_only"])?;
        let instrument = instruments
            .first()
            .ok_or("grid needs one instrument")?
            .clone();
        let qty = params.qty("qty", &instrument)?;
        let spot = instrument.surface() == Surface::Spot;
        let long_only = params.bool_or("long_only", spot)?;
        if spot && !long_only {
            return Err("params.long_only = false is for futures: spot cannot be short".to_owned());
        }
        let step_ticks = params.integer_or("step_ticks", 100, 1..=1_000_000)?;
        let mut grid = Self {
            qty,
            levels: params.integer_or("levels", 5, 1..=100)?,
            step: instrument.tick.saturating_mul(step_ticks),
            long_only,
            centre: params.price_opt("centre", &instrument)?,
            rungs: Vec::new(),
            top: BookTop::default(),
            work_left: true,
            ready: true,
            instrument,
        };
        // Create the rungs now: open orders from before a restart are reported before the first
        // book.
        if let Some(centre) = grid.centre {
            grid.lay(centre);
        }
        Ok(grid)
    }

    #[inline]
    fn on_book_top(&mut self, ctx: &Ctx, top: &BookTop) {
        if top.instrument != self.instrument.id {
            return;
        }
        self.top = *top;
        if self.work_left {
            self.place_missing(ctx);
        }
    }

    fn on_order(&mut self, ctx: &Ctx, update: &OrderUpdate) {
        if update.instrument != self.instrument.id {
            return;
        }
        let Some(rung) = self
            .rungs
            .iter_mut()
            .find(|rung| rung.id() == Some(update.id))
        else {
            if update.state.is_final() {
                self.settle(ctx, update);
            } else {
                self.adopt(ctx, update.id);
            }
            return;
        };
        if !update.state.is_final() {
            return;
        }
        rung.ended(update.executed, self.qty, &self.instrument);
        self.work_left = true;
        match update.state {
            OrderState::Rejected => {
                rung.rest();
                let price = rung.price().0;
                match update.code {
                    0 => warn!(
                        ctx,
                        "order at {price} not accepted, the reason is in the log"
                    ),
                    code => warn!(ctx, "order at {price} rejected by the venue, code {code}"),
                }
                Self::wake_later(ctx);
            }
            OrderState::Filled => self.place_missing(ctx),
            // Expired: the order would have crossed. Cancelled: another party cancelled it. In both
            // cases the next book decides.
            _ => {}
        }
    }

    fn on_timer(&mut self, ctx: &Ctx, _token: i64) {
        self.rungs.iter_mut().for_each(Rung::wake);
        self.place_missing(ctx);
    }

    fn on_runtime_state(&mut self, ctx: &Ctx, state: RuntimeState) {
        self.ready = state == RuntimeState::Ready;
        if self.ready {
            self.begin_anew_if_closed(ctx);
        }
        self.place_missing(ctx);
    }

    fn save(&self) -> Vec<u8> {
        let Some(centre) = self.centre.filter(|_| !self.rungs.is_empty()) else {
            return Vec::new();
        };
        let head = StateWriter::new()
            .put(centre.0)
            .put(self.step)
            .put(self.levels);
        let head = head.put(self.qty.0);
        self.rungs
            .iter()
            .fold(head, |state, rung| rung.save(state))
            .finish()
    }

    fn load(&mut self, schema: u32, state: &[u8]) -> Result<(), String> {
        if schema != Self::STATE_SCHEMA {
            return Err(format!(
                "state schema {schema} is not {}",
                Self::STATE_SCHEMA
            ));
        }
        if state.is_empty() {
            return Ok(());
        }
        let mut state = StateReader::new(state);
        let centre = Price(state.take()?);
        let same = [self.step, self.levels, self.qty.0].map(|own| state.take() == Ok(own));
        if same != [true; 3] || self.centre.is_some_and(|wanted| wanted != centre) {
            return Err(
                "centre, step_ticks, levels or qty differ from the saved grid's; cancel \
                        its orders, close its position and start without a state"
                    .to_owned(),
            );
        }
        self.centre = Some(centre);
        self.lay(centre);
        for rung in &mut self.rungs {
            rung.load(&mut state)?;
        }
        state.finish()
    }
}

impl Grid {
    /// Creates the rungs. Between each pair of neighbouring lines there is one order: a buy at the
    /// lower line or a sell at the upper line. Rungs below the centre start with the buy.
    fn lay(&mut self, centre: Price) {
        let line = |k: i64| Price(centre.0.saturating_add(k.saturating_mul(self.step)));
        let rungs = (-self.levels..self.levels).filter_map(|k| {
            let low = self.instrument.floor_price(line(k))?;
            let high = self.instrument.floor_price(line(k + 1))?;
            let first = if k < 0 || self.long_only {
                Side::Buy
            } else {
                Side::Sell
            };
            Some(Rung::new(low, high, first, self.qty))
        });
        self.rungs = rungs.collect();
    }

    /// Creates new rungs if the position was closed by others, for example by `flatten`. The old
    /// rungs would still place their other sides and exceed the position limits.
    fn begin_anew_if_closed(&mut self, ctx: &Ctx) {
        let held: i64 = self.rungs.iter().map(|rung| rung.held(self.qty).0).sum();
        let rests = self.rungs.iter().any(|rung| rung.id().is_some());
        let position = ctx.position(self.instrument.id).qty();
        if let Some(centre) = self.centre
            && !rests
            && held != 0
            && position == Qty(0)
        {
            warn!(ctx, "the position was closed: the grid begins anew");
            self.lay(centre);
        }
    }

    /// Places the orders of all free rungs, except orders that would take.
    fn place_missing(&mut self, ctx: &Ctx) {
        if !self.top.is_complete() || !self.ready {
            self.work_left = true;
            return;
        }
        if self.rungs.is_empty() {
            let mid = Price(i64::midpoint(self.top.bid.0, self.top.ask.0));
            let centre = *self.centre.get_or_insert(mid);
            self.lay(centre);
        }
        self.work_left = false;
        let mut refused = None;
        for rung in &mut self.rungs {
            if rung.slot() != Slot::Free {
                continue;
            }
            let (side, price) = (rung.side(), rung.price());
            let passive = match side {
                Side::Buy => price < self.top.ask,
                Side::Sell => price > self.top.bid,
            };
            if !passive {
                self.work_left = true;
                continue;
            }
            let order = Order::limit(&self.instrument, side, price, rung.remaining());
            match ctx.submit(order.post_only()) {
                Ok(id) => rung.place(id),
                Err(rejection) => {
                    rung.rest();
                    refused.get_or_insert((side, price, rejection));
                }
            }
        }
        // Log one line and set one timer, even if several orders were rejected.
        if let Some((side, price, rejection)) = refused {
            warn!(ctx, "{side:?} at {} refused: {rejection}", price.0);
            Self::wake_later(ctx);
        }
    }

    /// Takes over an unknown open order, which is reported again after a restart or a hot swap. It
    /// belongs to the rung with its side and price. If no rung matches, the order is cancelled.
    fn adopt(&mut self, ctx: &Ctx, id: OrderId) {
        if let Some(rung) = self.free_rung_of(ctx, id) {
            rung.place(id);
        } else if let Err(rejection) = ctx.cancel(id) {
            warn!(
                ctx,
                "order {} of another grid not cancelled: {rejection}", id.0
            );
        }
    }

    /// Counts the fills of an order that ended while the strategy was not running.
    fn settle(&mut self, ctx: &Ctx, update: &OrderUpdate) {
        let (qty, instrument) = (self.qty, self.instrument.clone());
        if let Some(rung) = self.free_rung_of(ctx, update.id)
            && update.executed > Qty(0)
        {
            rung.ended(update.executed, qty, &instrument);
            self.work_left = true;
        }
    }

    /// The rung with an order's side and price, if that rung has no order.
    fn free_rung_of(&mut self, ctx: &Ctx, id: OrderId) -> Option<&mut Rung> {
        let order = ctx.order(id);
        let (side, price) = (order.side()?, order.price()?);
        let fits = |rung: &&mut Rung| {
            rung.slot() == Slot::Free && rung.side() == side && rung.price() == price
        };
        self.rungs.iter_mut().find(fits)
    }

    fn wake_later(ctx: &Ctx) {
        if let Err(rejection) = ctx.set_timer_in(RETRY_MS, 0) {
            warn!(
                ctx,
                "no timer: {rejection}; a change of the runtime's state tries again"
            );
        }
    }
}

windvane_sdk::export!(Grid);

#[cfg(test)]
mod tests;
