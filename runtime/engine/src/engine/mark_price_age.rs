//! The age of mark prices: the degraded reason of a mark price that no longer updates
//! (`windvane_evidence::mark_price_age`).

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::ids::InstrumentId;
use windvane_model::order::Surface;
use windvane_model::state_report::StatedPosition;

use super::Engine;

impl Engine {
    pub(super) fn note_mark(&mut self, instrument: InstrumentId) {
        if self.live.is_some() {
            self.mark_price_ages.note(instrument, self.now);
        }
    }

    /// Takes the mark price derived from a reported position, if the market's mark price is old.
    pub(super) fn take_implied_mark(&mut self, position: &StatedPosition) {
        let Some((instrument, implied)) = self.mark_price_ages.implied_mark(position, self.now)
        else {
            return;
        };
        let market = &mut self.markets[usize::from(instrument.0)];
        if let Some(mark) = &mut market.recorded_mark {
            mark.mark = implied;
            self.note_mark(instrument);
        }
    }

    /// Sets and clears the degraded reasons for stale mark prices.
    pub(super) fn check_mark_price_age(&mut self) {
        for index in 0..self.instruments.len() {
            let id = InstrumentId(index as u16);
            if self.surface_of(id) != Surface::Futures {
                continue;
            }
            let held = self.ledgers.account.holds(id);
            let stale = held && self.mark_price_ages.is_stale(id, self.now);
            self.set_degraded(DegradedReason::Mark(id), stale);
        }
    }
}
