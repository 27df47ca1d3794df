//! The state of one instrument at the venue: recorded prices and book, own orders in the book,
//! positions. Its alert lets a market event pass quickly if it concerns none of them.

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{MARK_SCALE, div_half_even, pow10};
use windvane_model::{Amount, Instrument, InstrumentId, PositionSide, Side, Surface, Time};

use crate::account::Position;
use crate::book::Book;
use crate::bracket::Brackets;
use crate::config::{Rate, VenueConfigError};
use crate::filter::Fractions;
use crate::order_key::OrderKey;
use crate::queue::Resting;

/// Bounds between which a market event cannot change anything of the account. All are exclusive.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Alert {
    /// The best own bid and ask. A trade or an opposite best price at or beyond them fills; a best
    /// price of the own side at or behind them moves the queue.
    pub(crate) bid: i64,
    pub(crate) ask: i64,
    /// Last prices that may trigger a conditional order.
    pub(crate) last: (i64, i64),
    /// Twice the mid price: for margin, and for triggers by the mark price if the mid is used as
    /// mark.
    pub(crate) mid_twice: (i64, i64),
}

impl Alert {
    pub(crate) const QUIET: Self = Self {
        bid: i64::MIN,
        ask: i64::MAX,
        last: (i64::MIN, i64::MAX),
        mid_twice: (i64::MIN, i64::MAX),
    };
}

/// Recorded mark price and funding terms, scale 8.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) price: i64,
    pub(crate) index: i64,
    pub(crate) funding_rate: i64,
}

/// Notional of open orders that may increase a position, by side.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OpenNotional(pub(crate) [Amount; 2]);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Market {
    pub(crate) alert: Alert,
    pub(crate) last: i64,
    pub(crate) book: Book,
    /// Own orders in the book: bids, asks; best price first, then oldest.
    pub(crate) own: [Vec<Resting>; 2],
    /// Conditional orders, oldest first.
    pub(crate) waiting: Vec<OrderKey>,
    pub(crate) mark: Option<Mark>,
    pub(crate) next_funding: Time,
    pub(crate) countdown: Time,
    /// By position side.
    pub(crate) positions: [Position; 3],
    pub(crate) open_notional: [OpenNotional; 3],
    /// Profit before fees that each position side has realized so far.
    pub(crate) realized: [Amount; 3],
    /// When each position side changed last.
    pub(crate) touched: [Time; 3],
    pub(crate) leverage: u32,
    pub(crate) brackets: Brackets,
    /// Whether margin is isolated, and the isolated wallet of each position side; 0 in cross
    /// margin.
    pub(crate) isolated: bool,
    pub(crate) isolated_wallet: [Amount; 3],
    /// Whether an isolated position has a margin call from which it has not recovered.
    pub(crate) called: bool,
    /// The range of the mark price, scale 8, in which the account is safe with respect to this
    /// market.
    pub(crate) safe: (i64, i64),
    /// Twice the stop prices that the mark price may trigger, below and above.
    pub(crate) by_mark: (i64, i64),
    pub(crate) trade_id: i64,
    /// Whether own orders in the book may have changed since [`crate::Venue::poll_rested`].
    pub(crate) rested: bool,
    pub(crate) id: InstrumentId,
    pub(crate) instrument: Instrument,
    pub(crate) fractions: Fractions,
}

/// The safe range without a position: every price.
pub(crate) const SAFE: (i64, i64) = (i64::MIN, i64::MAX);

impl Market {
    pub(crate) fn new(
        id: InstrumentId,
        instrument: Instrument,
        leverage: u32,
        brackets: Brackets,
    ) -> Result<Self, VenueConfigError> {
        let scales = [
            ("price_scale", instrument.price_scale),
            ("qty_scale", instrument.qty_scale),
        ];
        for (field, value) in scales {
            let max = windvane_model::decimal::SCALE_MAX;
            if value > max {
                return Err(VenueConfigError::Scale {
                    instrument: instrument.name(),
                    field,
                    value,
                    max,
                });
            }
        }
        Ok(Self {
            alert: Alert::QUIET,
            last: 0,
            book: Book::new(),
            own: [Vec::new(), Vec::new()],
            waiting: Vec::new(),
            mark: None,
            next_funding: Time::NEVER,
            countdown: Time::NEVER,
            positions: [Position::default(); 3],
            open_notional: [OpenNotional::default(); 3],
            realized: [Amount::ZERO; 3],
            touched: [Time::default(); 3],
            leverage,
            brackets,
            isolated: false,
            isolated_wallet: [Amount::ZERO; 3],
            called: false,
            safe: SAFE,
            by_mark: Alert::QUIET.mid_twice,
            trade_id: 0,
            rested: false,
            id,
            fractions: Fractions::new(&instrument)?,
            instrument,
        })
    }

    pub(crate) fn is_futures(&self) -> bool {
        self.instrument.surface == Surface::Futures
    }

    /// Mark price at scale 8: the recorded one, else the mid, else the last trade; 0 if unknown.
    pub(crate) fn mark_price(&self) -> i64 {
        match (self.mark, self.book.mid_twice()) {
            (Some(mark), _) => mark.price,
            (None, Some(twice)) => half_at_mark_scale(twice, self.instrument.price_scale),
            (None, None) => self.at_mark_scale(self.last),
        }
    }

    /// Index price at scale 8; the mark price if no index is recorded.
    pub(crate) fn index_price(&self) -> i64 {
        match self.mark {
            Some(mark) if mark.index > 0 => mark.index,
            _ => self.mark_price(),
        }
    }

    /// A price mantissa at the mark's scale.
    pub(crate) fn at_mark_scale(&self, price: i64) -> i64 {
        half_at_mark_scale(price.saturating_mul(2), self.instrument.price_scale)
    }

    pub(crate) const fn position(&self, side: PositionSide) -> &Position {
        &self.positions[side as usize]
    }

    /// Quantity that an order of this side can close.
    pub(crate) fn closable(&self, position_side: PositionSide, side: Side) -> i64 {
        (-self.position(position_side).qty * side.sign()).max(0)
    }

    /// The worst price at which a market order may trade: `marketTakeBound` from the mark price.
    pub(crate) fn take_bound(&self, side: Side) -> Option<i64> {
        let (bound, mark) = (self.fractions.take_bound?.0, self.mark_price());
        if bound == 0 || mark == 0 {
            return None;
        }
        let worst = i128::from(mark) * i128::from(Rate::ONE + side.sign() * bound);
        // From scale 16 to the price's scale, rounded towards the mark price.
        let unit = 10_i128.pow(16 - u32::from(self.instrument.price_scale));
        let whole = worst.div_euclid(unit);
        let up = i128::from(side == Side::Sell && worst.rem_euclid(unit) != 0);
        Some((whole + up) as i64)
    }

    /// The cost of a market order for `qty` in the displayed book. The quantity that the book lacks
    /// costs the mark price.
    pub(crate) fn cost(&self, side: Side, qty: i64) -> Amount {
        let (mut cost, mut left, mut n) = (Amount::ZERO, qty, 0);
        while let Some(level) = self.book.nth(side.opposite(), n).filter(|_| left > 0) {
            let taken = level.available().min(left);
            cost += self.instrument.notional(level.price, taken);
            left -= taken;
            n += 1;
        }
        cost + Amount::notional(
            self.mark_price(),
            MARK_SCALE,
            left,
            self.instrument.qty_scale,
        )
    }

    /// The quantity that `quote` buys in the displayed book.
    pub(crate) fn affordable(&self, quote: Amount) -> i64 {
        let (mut left, mut qty, mut n) = (quote, 0, 0);
        while let Some(level) = self.book.nth(Side::Sell, n) {
            let whole = self.instrument.notional(level.price, level.available());
            if whole <= left {
                qty += level.available();
                left -= whole;
            } else {
                // The level's notional is rounded, so this share may be one too many.
                let share = i128::from(level.available()) * left.0 / whole.0;
                let share = share as i64;
                let over = self.instrument.notional(level.price, share) > left;
                return qty + share - i64::from(over);
            }
            n += 1;
        }
        qty
    }

    /// Recomputes the bounds of the mid price: the safe range, and triggers if the mid is the mark.
    pub(crate) fn watch_mid(&mut self) {
        self.alert.mid_twice = Alert::QUIET.mid_twice;
        if self.mark.is_some() {
            return;
        }
        let (low, high) = &mut self.alert.mid_twice;
        if self.safe != SAFE {
            let twice = |mark: i64| {
                let up = pow10(self.instrument.price_scale.saturating_sub(MARK_SCALE));
                let down = pow10(MARK_SCALE.saturating_sub(self.instrument.price_scale));
                (2 * i128::from(mark) * i128::from(up)).div_euclid(i128::from(down)) as i64
            };
            // Rounded inwards: an early check is harmless, a late one is not.
            (*low, *high) = (twice(self.safe.0).saturating_add(1), twice(self.safe.1));
        }
        *low = self.by_mark.0.max(*low);
        *high = self.by_mark.1.min(*high);
    }

    /// The number of open orders, in the book and waiting for a trigger.
    pub(crate) fn open_orders(&self) -> usize {
        self.own[0].len() + self.own[1].len() + self.waiting.len()
    }

    /// Recomputes the bounds of the own orders in the book. The first order of each side is its
    /// best.
    #[inline]
    pub(crate) fn watch_own(&mut self) {
        self.rested = true;
        self.alert.bid = self.own[0].first().map_or(i64::MIN, |o| o.price);
        self.alert.ask = self.own[1].first().map_or(i64::MAX, |o| o.price);
    }
}

/// Half of a price mantissa at the mark's scale, rounded half to even.
fn half_at_mark_scale(twice: i64, price_scale: u8) -> i64 {
    let value = if price_scale <= MARK_SCALE {
        i128::from(twice) * i128::from(pow10(MARK_SCALE - price_scale)) / 2
    } else {
        div_half_even(
            i128::from(twice),
            i128::from(2 * pow10(price_scale - MARK_SCALE)),
        )
    };
    value as i64
}
