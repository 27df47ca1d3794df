//! The age of mark prices. A mark price that no longer updates does not show what a position is
//! worth now. An account snapshot states unrealized profit, from which the engine derives the mark
//! price. If both sources are silent while a position is held, the run is degraded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{Amount, MARK_SCALE, div_half_even, pow10};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::state_report::StatedPosition;

/// A mark price older than this is replaced by the one derived from an account snapshot.
const OLD_MS: i64 = 10_000;

/// If both sources are older than this, the run is degraded.
const STALE_MS: i64 = 60_000;

/// When the mark price of each instrument was last updated, by the market or by an account
/// snapshot.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MarkPriceAges {
    marks: BTreeMap<InstrumentId, Time>,
}

impl MarkPriceAges {
    /// The market or an account snapshot updated a mark price.
    pub fn note(&mut self, instrument: InstrumentId, now: Time) {
        self.marks.insert(instrument, now);
    }

    fn is_older(&self, instrument: InstrumentId, ms: i64, now: Time) -> bool {
        let reported = self.marks.get(&instrument);
        reported.is_some_and(|reported| now > reported.plus_ms(ms))
    }

    /// Whether no source updated a mark price for too long.
    pub fn is_stale(&self, instrument: InstrumentId, now: Time) -> bool {
        self.is_older(instrument, STALE_MS, now)
    }

    /// The mark price that follows from a reported position, if the market's mark price is old.
    pub fn implied_mark(
        &self,
        position: &StatedPosition,
        now: Time,
    ) -> Option<(InstrumentId, i64)> {
        let instrument = position.instrument?;
        if !self.is_older(instrument, OLD_MS, now) || position.qty == Amount::ZERO {
            return None;
        }
        let one = i128::from(pow10(MARK_SCALE));
        let gain = position.unrealized.0.saturating_mul(one);
        let implied = position.entry_price.0 + div_half_even_signed(gain, position.qty.0);
        let implied = i64::try_from(implied).ok().filter(|implied| *implied > 0)?;
        Some((instrument, implied))
    }
}

fn div_half_even_signed(numerator: i128, denominator: i128) -> i128 {
    if denominator < 0 {
        div_half_even(-numerator, -denominator)
    } else {
        div_half_even(numerator, denominator)
    }
}
