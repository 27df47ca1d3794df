//! What a reading of the account contained when it was taken. A fill from before it that is told
//! afterwards, by account trades or a stream that lag, is in there already: it says whose the
//! position is, and leaves the account as it was read.

use crate::decimal::Amount;
use crate::effect::{Adjustment, Cause};
use crate::ids::{AssetId, InstrumentId, Time};
use crate::order::{PositionSide, Surface};
use crate::protocol::{Fill, OrderUpdate};
use crate::truth::AccountTruth;

use super::Engine;

/// What of the account a fill must leave as it is.
pub(super) struct Kept {
    instrument: InstrumentId,
    side: PositionSide,
    qty: i64,
    cost: Amount,
    balances: [(AssetId, Amount); 3],
}

impl Engine {
    /// A reading is taken: it contains every fill up to its own newest time, or, where it tells
    /// none, up to the moment at which it was asked for. One that may lag contains who knows what.
    pub(super) fn note_taken(&mut self, surface: Surface, account: &AccountTruth) {
        // Without the venue's clock the time of the question says nothing.
        let offset_ns = self.clock_offset_ns(surface);
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let asked_at = line.round.asked_at.0;
        let asked = offset_ns.map(|offset_ns| Time(asked_at.saturating_add(offset_ns)));
        let contains = account.updated.or(asked.filter(|_| !account.lags));
        line.taken = line.taken.max(contains);
    }

    /// What a fill that the last reading contained must not move; `None` where it is a newer one.
    pub(super) fn keep_what_was_taken(
        &mut self,
        update: &OrderUpdate,
        fill: &Fill,
    ) -> Option<Kept> {
        let (instrument, side) = (update.instrument, update.position_side);
        let surface = self.surface_of(instrument);
        let taken = self.live.as_ref()?.lines.get(&surface)?.taken;
        let made = update.transaction_time;
        let was_read = self.was_in_reading(update, fill);
        let is_old = made != Time::default() && taken.is_some_and(|taken| made <= taken);
        if !was_read && !is_old {
            return None;
        }
        let rules = self.instrument(instrument)?;
        let assets = [rules.base, rules.quote, fill.fee_asset];
        let position = &self.ledgers.account.at(instrument, side).position;
        Some(Kept {
            instrument,
            side,
            qty: position.qty,
            cost: position.cost,
            balances: assets.map(|asset| (asset, self.balance(surface, asset).total)),
        })
    }

    /// Puts back what a fill moved: what it was counted as before, nobody's, goes to its owner.
    /// On spot balances alone are read. Of a balance it is told: each sum of what fills moved and
    /// what was adjusted is what the balance moved by.
    pub(super) fn put_back(&mut self, kept: &Kept) {
        let surface = self.surface_of(kept.instrument);
        for (asset, to) in kept.balances {
            let from = self.balance(surface, asset).total;
            if from != to {
                self.balances.entry((surface, asset)).or_default().total = to;
                let adjustment = Adjustment::Balance {
                    surface,
                    asset,
                    from,
                    to,
                };
                self.tell_adjustment(adjustment, Cause::Reconciliation);
            }
        }
        if surface == Surface::Spot {
            return;
        }
        let account = self.ledgers.account.at_mut(kept.instrument, kept.side);
        let position = &mut account.position;
        let (qty, cost) = (kept.qty - position.qty, kept.cost - position.cost);
        position.qty += qty;
        position.cost += cost;
        let external = self.ledgers.external.at_mut(kept.instrument, kept.side);
        external.position.qty += qty;
        external.position.cost += cost;
    }
}
