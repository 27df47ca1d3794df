//! Events that were lost while a user stream was down.
//!
//! Somebody may have closed a position, or an order may have filled, while the stream was down. Readings may
//! be behind by [`READ_LAG_MS`], so that those of the first seconds prove nothing about that time. Where a
//! position or an order was open, strategies open nothing until a reading agrees that cannot be older.
//! Renewals of countdowns go on.

use crate::ids::{InstrumentId, Time};
use crate::order::Surface;
use crate::truth::AccountTruth;

use super::Engine;
use super::doubt::Doubt;
use super::lag::READ_LAG_MS;

/// The next reading after one that proved nothing, once readings are new enough.
const AGAIN_MS: i64 = 2_000;

impl Engine {
    /// The stream came up, and everything that happened before is known by readings alone.
    pub(super) fn begin_cut(&mut self, surface: Surface) {
        let ids = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        let mut of_surface = ids.filter(|id| self.surface_of(*id) == surface);
        let strategies = &self.ledgers.strategies;
        let is_held = |id: InstrumentId| strategies.iter().any(|ledger| ledger.holds(id));
        let is_open = |id: InstrumentId| self.orders.iter().any(|order| order.instrument() == id);
        let is_exposed = of_surface.any(|id| is_held(id) || is_open(id));
        self.set_doubt(Doubt::LostEvents(surface), is_exposed);
    }

    /// The time from which on a reading may end the doubt; `None` without a doubt.
    pub(super) fn cut_ends(&self, surface: Surface) -> Option<Time> {
        let live = self.live.as_ref()?;
        let up = self.stream_up.get(&surface)?;
        let is_doubted = live.doubts_any(&[Doubt::LostEvents(surface)]);
        let again = self.now.plus_ms(AGAIN_MS);
        let ends = up.plus_ms(READ_LAG_MS);
        is_doubted.then_some(if ends > self.now { ends } else { again })
    }

    /// The reading of the running round agrees with what the books have, or had since the stream came up.
    pub(super) fn end_cut_by_round(&mut self, surface: Surface) {
        let Some(asked) = self.orders_asked(surface) else {
            return;
        };
        let up = self.stream_up.get(&surface);
        if up.is_some_and(|up| asked >= up.plus_ms(READ_LAG_MS)) {
            self.set_doubt(Doubt::LostEvents(surface), false);
        }
    }

    /// Whether a reading is what the account was at a moment since the stream came up.
    pub(super) fn was_so_since_cut(&self, surface: Surface, account: &AccountTruth) -> bool {
        let live = self.live.as_ref();
        let line = live.and_then(|live| live.lines.get(&surface));
        let (Some(line), Some(up)) = (line, self.stream_up.get(&surface)) else {
            return false;
        };
        let may_lack_fees = !self.positions_agree(&account.positions);
        line.past.was_since(*up, account, |asset, told, known| {
            told == known || (may_lack_fees && self.may_lack_fees(surface, asset, told - known))
        })
    }
}
