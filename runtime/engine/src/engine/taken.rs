//! Which fills an accepted account snapshot already contains. A snapshot is accepted when the
//! engine books its differences. Account trades or a slow stream may report a contained fill later.
//! The fill then only decides which strategy owns the position; account quantities and balances
//! stay as in the snapshot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::effect::{Adjustment, Cause};
use windvane_model::ids::{AssetId, ClientOrderId, InstrumentId, Time};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::truth::AccountTruth;

use super::Engine;
use super::lag::LAG_MS;

/// The changes of recently accepted snapshots, less the fills that were reported since. They are
/// the evidence that a snapshot contained a fill, because times alone come from two different
/// clocks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Moved {
    /// When the last of these snapshots was requested, and when it was accepted, by our clock.
    asked: Time,
    taken: Time,
    positions: BTreeMap<(InstrumentId, PositionSide), i64>,
    balances: BTreeMap<AssetId, Amount>,
}

impl Moved {
    fn add(&mut self, difference: &Adjustment) {
        match *difference {
            Adjustment::Position {
                instrument,
                side,
                from,
                to,
            } => *self.positions.entry((instrument, side)).or_default() += to - from,
            Adjustment::Balance {
                asset, from, to, ..
            } => *self.balances.entry(asset).or_default() += to - from,
            _ => {}
        }
    }

    fn has_moved(&self, instrument: InstrumentId, side: PositionSide) -> bool {
        let qty = self.positions.get(&(instrument, side));
        qty.is_some_and(|qty| *qty != 0)
    }

    fn of_balance(&self, asset: AssetId) -> Amount {
        self.balances.get(&asset).copied().unwrap_or_default().abs()
    }
}

/// The parts of the account that a fill must leave unchanged.
pub(super) struct Kept {
    instrument: InstrumentId,
    side: PositionSide,
    qty: i64,
    cost: Amount,
    balances: [(AssetId, Amount); 3],
}

impl Engine {
    /// Notes that a snapshot is accepted. It contains every fill up to its own newest time, or, if
    /// it has none, up to the moment of the request. For a snapshot from a source that may lag,
    /// neither is known.
    pub(super) fn note_taken(&mut self, surface: Surface, account: &AccountTruth) {
        self.note_moved(surface, account);
        // Without the venue's clock, the time of the request cannot be compared with the venue's
        // times.
        let offset_ns = self.clock_offset_ns(surface);
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let asked_at = line.round.asked_at.0;
        let asked = offset_ns.map(|offset_ns| Time(asked_at.saturating_add(offset_ns)));
        let contains = account.updated.or(asked.filter(|_| !account.lags));
        line.taken = line.taken.max(contains);
    }

    fn note_moved(&mut self, surface: Surface, account: &AccountTruth) {
        let now = self.now;
        let differences = self.differences(surface, account);
        let asked = self.line_mut(surface).map(|line| line.round.asked_at);
        let moved = self.moved.entry(surface).or_default();
        if now > moved.taken.plus_ms(LAG_MS) {
            // A fill from before that snapshot would now be later than any source may be.
            *moved = Moved::default();
        }
        let moves_position = (differences.iter())
            .any(|difference| matches!(difference, Adjustment::Position { .. }));
        if surface == Surface::Futures && !moves_position {
            // Position changes of an earlier snapshot are evidence up to that snapshot's request,
            // not up to this one.
            return;
        }
        moved.asked = asked.unwrap_or(now);
        moved.taken = now;
        for difference in &differences {
            moved.add(difference);
        }
    }

    /// The account values that must not change because the last snapshot contained the fill; `None`
    /// if the fill is newer.
    pub(super) fn keep_what_was_taken(
        &mut self,
        update: &OrderUpdate,
        fill: &Fill,
    ) -> Option<Kept> {
        let (instrument, side) = (update.instrument, update.position_side);
        let surface = self.surface_of(instrument);
        if !self.may_be_taken(surface, update) {
            return None;
        }
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

    /// Whether an accepted snapshot can contain a fill. It cannot if the order was placed after the
    /// request, or if the snapshot left the position unchanged. In the latter case the snapshot's
    /// difference had another cause, such as a rounded commission.
    fn may_be_taken(&self, surface: Surface, update: &OrderUpdate) -> bool {
        let Some((moved, rules)) =
            (self.moved.get(&surface)).zip(self.instrument(update.instrument))
        else {
            return true;
        };
        if self.was_placed_after(&update.client_order_id, moved.asked) {
            return false;
        }
        match surface {
            Surface::Spot => moved.of_balance(rules.base) != Amount::ZERO,
            // A balance changes for many reasons. Two fills that together leave the position
            // unchanged would be counted twice in the balance until the next snapshot, which is the
            // smaller error.
            Surface::Futures => moved.has_moved(update.instrument, update.position_side),
        }
    }

    /// Whether this process placed an order after a moment. For orders of earlier processes this is
    /// not known.
    fn was_placed_after(&self, id: &ClientOrderId, at: Time) -> bool {
        if self.orders.foreign(id).is_some() {
            return false;
        }
        let own = self.known(id).and_then(|seq| self.orders.known(seq));
        own.is_some_and(|order| order.submitted > at)
    }

    /// Reverts what a fill changed in the account: the quantity moves from the unowned position to
    /// the fill's owner. On spot, snapshots contain only balances. Each reverted balance is
    /// reported as an adjustment, so that fills and adjustments together sum to the balance's
    /// change.
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
                self.moved.entry(surface).or_default().add(&adjustment);
                self.tell_adjustment(adjustment, Cause::Reconciliation);
            }
        }
        if surface == Surface::Spot {
            return;
        }
        let account = self.ledgers.account.at_mut(kept.instrument, kept.side);
        let position = &mut account.position;
        let (qty, cost) = (kept.qty - position.qty, kept.cost - position.cost);
        let moved = self.moved.entry(surface).or_default();
        moved.add(&Adjustment::Position {
            instrument: kept.instrument,
            side: kept.side,
            from: position.qty,
            to: kept.qty,
        });
        position.qty += qty;
        position.cost += cost;
        let external = self.ledgers.external.at_mut(kept.instrument, kept.side);
        external.position.qty += qty;
        external.position.cost += cost;
    }
}
