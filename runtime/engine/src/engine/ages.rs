//! The age of mark prices. A mark price that no longer updates does not show what a position is
//! worth now. An account snapshot states unrealized profit, from which the engine derives the mark
//! price. If both sources are silent while a position is held, the run is degraded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{Amount, MARK_SCALE, div_half_even, pow10};
use windvane_model::doubt::Doubt;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::order::Surface;
use windvane_model::truth::StatedPosition;

use super::Engine;

/// A mark price older than this is replaced by the one derived from an account snapshot.
const OLD_MS: i64 = 10_000;
/// If both sources are older than this, the run is degraded.
const STALE_MS: i64 = 60_000;

/// When the mark price of each instrument was last updated, by the market or by an account
/// snapshot.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ages {
    marks: BTreeMap<InstrumentId, Time>,
}

impl Engine {
    pub(super) fn note_mark(&mut self, instrument: InstrumentId) {
        if self.live.is_some() {
            self.ages.marks.insert(instrument, self.now);
        }
    }

    fn mark_is_older(&self, instrument: InstrumentId, ms: i64) -> bool {
        let told = self.ages.marks.get(&instrument);
        told.is_some_and(|told| self.now > told.plus_ms(ms))
    }

    /// Takes the mark price derived from a reported position, if the market's mark price is old.
    pub(super) fn take_stated_mark(&mut self, position: &StatedPosition) {
        let Some(instrument) = position.instrument else {
            return;
        };
        if !self.mark_is_older(instrument, OLD_MS) || position.qty == Amount::ZERO {
            return;
        }
        let one = i128::from(pow10(MARK_SCALE));
        let gain = position.unrealized.0.saturating_mul(one);
        let implied = position.entry_price.0 + div_half_even_signed(gain, position.qty.0);
        let market = &mut self.markets[usize::from(instrument.0)];
        if let (Some(mark), Ok(implied)) = (&mut market.recorded_mark, i64::try_from(implied))
            && implied > 0
        {
            mark.mark = implied;
            self.note_mark(instrument);
        }
    }

    /// Sets and clears the degraded reasons for stale mark prices.
    pub(super) fn watch_marks(&mut self) {
        for index in 0..self.instruments.len() {
            let id = InstrumentId(index as u16);
            if self.surface_of(id) != Surface::Futures {
                continue;
            }
            let held = self.ledgers.account.holds(id);
            let stale = held && self.mark_is_older(id, STALE_MS);
            self.set_doubt(Doubt::Mark(id), stale);
        }
    }
}

fn div_half_even_signed(numerator: i128, denominator: i128) -> i128 {
    if denominator < 0 {
        div_half_even(-numerator, -denominator)
    } else {
        div_half_even(numerator, denominator)
    }
}
