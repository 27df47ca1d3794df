//! Follows the crossing of two exponential moving averages of trade prices; see README.md.
//!
//! A sample strategy, which the configurations and tests use. It must not depend on anything
//! but the SDK.

use windvane_sdk::indicator::Ema;
use windvane_sdk::prelude::*;

/// Timer token: try a rejected order again.
const RETRY: i64 = 1;
/// How long to wait after a rejection, milliseconds.
const RETRY_MS: i64 = 1_000;

/// The reaction to a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Holds one position of `qty` in the direction of the fast average.
    Position,
    /// Sends one market order of `qty` at each change of sign, whatever the position is.
    FlipEachSign,
}

/// The target position, in multiples of `qty`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Long = 1,
    Flat = 0,
    Short = -1,
}

/// The strategy.
#[derive(Debug)]
pub struct EmaCross {
    instrument: Instrument,
    mode: Mode,
    qty: Qty,
    allow_short: bool,
    plot_every: u32,
    fast: Ema,
    slow: Ema,
    /// The sign of fast minus slow at the last crossing.
    sign: i64,
    trades_until_plot: u32,
    last_price: Price,
    want: Want,
    /// The order that is in flight or open. There is at most one.
    working: Option<OrderId>,
    ready: bool,
}

impl Strategy for EmaCross {
    fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String> {
        params.only(&["qty", "fast", "slow", "mode", "allow_short", "plot_every"])?;
        let instrument = instruments
            .first()
            .ok_or("ema_cross needs one instrument")?
            .clone();
        let qty = params.qty("qty", &instrument)?;
        let fast = params.integer_or("fast", 10, 1..=100_000)?;
        let slow = params.integer_or("slow", 20, 1..=100_000)?;
        if fast >= slow {
            return Err(format!(
                "params.fast = {fast} is not under params.slow = {slow}"
            ));
        }
        let modes = [
            ("position", Mode::Position),
            ("flip_each_sign", Mode::FlipEachSign),
        ];
        let futures = instrument.surface() == Surface::Futures;
        Ok(Self {
            mode: params.choice("mode", &modes)?,
            qty,
            allow_short: params.bool_or("allow_short", futures)?,
            plot_every: params.integer_or("plot_every", 0, 0..=1_000_000_000)? as u32,
            fast: Ema::new(fast as u32),
            slow: Ema::new(slow as u32),
            sign: 0,
            trades_until_plot: 0,
            last_price: Price(0),
            want: Want::Flat,
            working: None,
            ready: true,
            instrument,
        })
    }

    fn on_trade(&mut self, ctx: &Ctx, trade: &Trade) {
        if trade.instrument != self.instrument.id {
            return;
        }
        let (fast, slow) = (
            self.fast.update(trade.price.0),
            self.slow.update(trade.price.0),
        );
        self.last_price = trade.price;
        if self.plot_every > 0 {
            self.plot(ctx);
        }
        let sign = (fast.bits() - slow.bits()).signum();
        if sign != 0 && sign != self.sign {
            self.crossed(ctx, sign);
        }
    }

    fn on_order(&mut self, ctx: &Ctx, update: &OrderUpdate) {
        if update.instrument != self.instrument.id {
            return;
        }
        if self.working == Some(update.id) && update.state.is_final() {
            self.working = None;
            if update.executed > Qty(0) {
                self.pursue(ctx);
            } else {
                // An immediate retry could cause an endless loop of rejections.
                Self::retry_later(ctx);
            }
        } else if self.working.is_none() && !update.state.is_final() {
            // An open order, reported again after a restart or a hot swap.
            self.working = Some(update.id);
        }
    }

    fn on_timer(&mut self, ctx: &Ctx, token: i64) {
        if token == RETRY {
            self.pursue(ctx);
        }
    }

    fn on_runtime_state(&mut self, ctx: &Ctx, state: RuntimeState) {
        self.ready = state == RuntimeState::Ready;
        self.pursue(ctx);
    }

    fn save(&self) -> Vec<u8> {
        let [fast, slow] = [self.fast.save(), self.slow.save()];
        StateWriter::new()
            .put(fast.0)
            .put(fast.1)
            .put(slow.0)
            .put(slow.1)
            .put(self.sign)
            .put(self.want as i64)
            .finish()
    }

    fn load(&mut self, schema: u32, state: &[u8]) -> Result<(), String> {
        if schema != Self::STATE_SCHEMA {
            return Err(format!(
                "state schema {schema} is not {}",
                Self::STATE_SCHEMA
            ));
        }
        let mut state = StateReader::new(state);
        self.fast.load(state.take()?, state.take()?);
        self.slow.load(state.take()?, state.take()?);
        self.sign = state.take()?.signum();
        self.want = match state.take()? {
            1.. => Want::Long,
            0 => Want::Flat,
            _ => Want::Short,
        };
        state.finish()
    }
}

impl EmaCross {
    /// The averages have crossed. The first sign is only their initial order, not a crossing.
    fn crossed(&mut self, ctx: &Ctx, sign: i64) {
        let first = self.sign == 0;
        self.sign = sign;
        if first {
            return;
        }
        let side = if sign > 0 { Side::Buy } else { Side::Sell };
        match self.mode {
            Mode::FlipEachSign => {
                let order = Order::market_near(&self.instrument, side, self.qty, self.last_price);
                if let Err(rejection) = ctx.submit(order) {
                    warn!(ctx, "crossing not traded: {rejection}");
                }
            }
            Mode::Position if !self.slow.is_ready() => {}
            Mode::Position => {
                self.want = match side {
                    Side::Buy => Want::Long,
                    Side::Sell if self.allow_short => Want::Short,
                    Side::Sell => Want::Flat,
                };
                self.pursue(ctx);
            }
        }
    }

    /// Takes the next step toward the target position: first closes a wrong position, then opens
    /// the right one. It sends one order at a time, so that no step is done twice.
    fn pursue(&mut self, ctx: &Ctx) {
        if self.mode != Mode::Position || self.working.is_some() || self.last_price.0 == 0 {
            return;
        }
        let held = ctx.position(self.instrument.id).qty().0;
        // A rest below the minimum quantity counts as flat, because it cannot be traded.
        let exit = self.instrument.floor_qty(Qty(held.abs()));
        let wanted = self.want as i64;
        let order = match exit {
            Some(qty) if held.signum() != wanted => {
                let side = if held > 0 { Side::Sell } else { Side::Buy };
                Order::market_near(&self.instrument, side, qty, self.last_price).reduce_only()
            }
            None if wanted != 0 && self.ready => {
                let side = if wanted > 0 { Side::Buy } else { Side::Sell };
                Order::market_near(&self.instrument, side, self.qty, self.last_price)
            }
            _ => return,
        };
        match ctx.submit(order) {
            Ok(id) => self.working = Some(id),
            Err(rejection) => {
                warn!(ctx, "order refused: {rejection}");
                Self::retry_later(ctx);
            }
        }
    }

    fn retry_later(ctx: &Ctx) {
        if let Err(rejection) = ctx.set_timer_in(RETRY_MS, RETRY) {
            warn!(ctx, "no timer: {rejection}; the next crossing tries again");
        }
    }

    fn plot(&mut self, ctx: &Ctx) {
        if self.trades_until_plot > 0 {
            self.trades_until_plot -= 1;
            return;
        }
        self.trades_until_plot = self.plot_every - 1;
        for (series, ema) in [("ema fast", &self.fast), ("ema slow", &self.slow)] {
            if let Some(value) = ema.value() {
                ctx.plot_price(series, &self.instrument, value.price());
            }
        }
    }
}

windvane_sdk::export!(EmaCross);

#[cfg(test)]
mod tests;
