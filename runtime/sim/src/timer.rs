//! Events by time: the dead man's countdown (docs/interface/futures.md#countdowncancelall) and
//! funding. Both are kept per instrument; the earliest is the venue's next timeout.
//!
//! A countdown ends at the first multiple of 10 ms at or after its time, because the venue checks
//! about that often. Funding pays `- position * mark * rate` at the recorded time of the next
//! payment, with the last recorded mark price and rate, rounded half to even at 8 decimals. With a
//! positive rate, longs pay. Its account event lists only the balance; in isolated margin it lists
//! the position too (docs/interface/user-stream.md#account_update).

use windvane_model::protocol::{Outcome, Reply};
use windvane_model::{
    Amount, InstrumentId, MarketEvent, OrderStatus, PositionSide, Surface, Time, WorkingType,
};

use crate::code::Code;
use crate::config::Rate;
use crate::market::Mark;
use crate::stream::Cause;
use crate::venue::{Venue, refused};

/// How often the venue checks countdowns.
const GRID_NS: i64 = 10_000_000;

impl Venue {
    /// When [`Venue::timeout`] is due; [`Time::NEVER`] if nothing is scheduled.
    #[inline]
    pub const fn next_timeout(&self) -> Time {
        self.due
    }

    /// Advances the time to `now`. Everything that is due happens, in the order of its times.
    pub fn timeout(&mut self, now: Time) {
        self.advance(now);
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if now >= self.due {
            self.fire_until(now);
        }
        self.now = now.max(self.now);
    }

    #[cold]
    #[inline(never)]
    fn fire_until(&mut self, now: Time) {
        while self.due <= now && self.due != Time::NEVER {
            let due = self.due;
            self.now = self.now.max(due);
            for n in 0..self.markets.len() {
                let instrument = InstrumentId(n as u16);
                if self.markets[n].countdown == due {
                    self.markets[n].countdown = Time::NEVER;
                    self.close_all(instrument, OrderStatus::Canceled);
                }
                if self.markets[n].next_funding == due {
                    self.markets[n].next_funding = Time::NEVER;
                    self.pay_funding(instrument);
                }
            }
            self.watch_time();
        }
    }

    pub(crate) fn watch_time(&mut self) {
        let times = self.markets.iter().map(|m| m.countdown.min(m.next_funding));
        self.due = times.min().unwrap_or(Time::NEVER);
    }

    pub(crate) fn set_countdown(&mut self, instrument: InstrumentId, countdown_ms: u64) {
        let outcome = match self.known(instrument).map(|m| m.instrument.surface) {
            None => refused(Code::BadSymbol),
            Some(Surface::Spot) => refused(Code::Unsupported),
            Some(Surface::Futures) => Outcome::Done(countdown_ms),
        };
        if outcome == Outcome::Done(countdown_ms) {
            let ms = i64::try_from(countdown_ms).unwrap_or(i64::MAX);
            self.at_mut(instrument).countdown = Time::NEVER;
            if ms > 0 {
                let end = self.now.plus_ms(ms);
                let late = end.0.rem_euclid(GRID_NS);
                let wait = if late == 0 { 0 } else { GRID_NS - late };
                self.at_mut(instrument).countdown = end.plus_ns(wait);
            }
            self.watch_time();
        }
        self.reply(Reply::Countdown {
            instrument,
            outcome,
        });
    }

    pub(crate) fn marked(&mut self, instrument: InstrumentId, event: &MarketEvent<'_>) {
        let MarketEvent::Mark {
            mark,
            index,
            funding_rate,
            next_funding,
        } = *event
        else {
            return;
        };
        if mark <= 0 {
            return;
        }
        let now = self.now;
        let market = self.at_mut(instrument);
        let first = market.mark.is_none();
        market.mark = Some(Mark {
            price: mark,
            index,
            funding_rate,
        });
        if next_funding != market.next_funding && next_funding > now {
            market.next_funding = next_funding;
            self.watch_time();
        }
        if first {
            // From now on, the mid is no longer used as the mark price.
            self.watch_triggers(instrument);
        }
        self.trigger(instrument, WorkingType::MarkPrice);
        self.watch_mark(instrument);
        self.settle();
    }

    fn pay_funding(&mut self, instrument: InstrumentId) {
        if let Some(mark) = self.at(instrument).mark {
            self.pay_funding_at(instrument, mark.price, mark.funding_rate);
        }
    }

    /// Pays funding for every position of an instrument, with this mark price and rate.
    pub(crate) fn pay_funding_at(&mut self, instrument: InstrumentId, mark: i64, rate: i64) {
        let market = self.at_mut(instrument);
        let (asset, scale) = (market.instrument.quote, market.instrument.qty_scale);
        let mut change = Amount::ZERO;
        let mut held = Vec::new();
        for side in PositionSide::ALL {
            let position = market.position(*side);
            if position.qty == 0 {
                continue;
            }
            let paid = Rate(rate).of(position.notional(mark, scale));
            change -= paid;
            held.push((instrument, *side));
            if market.isolated {
                market.isolated_wallet[*side as usize] -= paid;
            }
        }
        if held.is_empty() {
            return;
        }
        let listed = if market.isolated {
            held.as_slice()
        } else {
            &[]
        };
        *self.account.wallet_mut(asset) += change;
        let (surface, cause) = (Surface::Futures, Cause::FundingFee);
        self.emit_change(surface, cause, &[(asset, change)], listed);
        self.margin.dirty = Some(asset);
        self.settle();
    }
}
