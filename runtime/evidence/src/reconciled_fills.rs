//! Which fills an accepted account snapshot already contains. A snapshot is accepted when the
//! engine books its differences. The venue's list of trades, or a slow stream, may report a
//! contained fill later. The fill then only decides which strategy owns the position; account
//! quantities and balances stay as in the snapshot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::effect::Adjustment;
use windvane_model::ids::{AssetId, ClientOrderId, InstrumentId, Time};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::protocol::OrderUpdate;

use crate::Evidence;
use crate::lag::MAX_LAG_MS;

/// The changes of recently accepted snapshots, less the fills that were reported since. They are
/// the evidence that a snapshot contained a fill, because times alone come from two different
/// clocks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SnapshotChanges {
    /// When the last of these snapshots was requested, and when it was accepted, by our clock.
    requested: Time,
    accepted: Time,
    positions: BTreeMap<(InstrumentId, PositionSide), i64>,
    balances: BTreeMap<AssetId, Amount>,
}

impl SnapshotChanges {
    /// Adds a difference that was booked.
    pub fn add(&mut self, difference: &Adjustment) {
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

    /// Notes the differences of an accepted snapshot.
    pub fn note(
        &mut self,
        surface: Surface,
        differences: &[Adjustment],
        asked: Option<Time>,
        now: Time,
    ) {
        if now > self.accepted.plus_ms(MAX_LAG_MS) {
            // A fill from before that snapshot would now be later than any source may be.
            *self = Self::default();
        }
        let moves_position = (differences.iter())
            .any(|difference| matches!(difference, Adjustment::Position { .. }));
        if surface == Surface::Futures && !moves_position {
            // Position changes of an earlier snapshot are evidence up to that snapshot's request,
            // not up to this one.
            return;
        }
        self.requested = asked.unwrap_or(now);
        self.accepted = now;
        for difference in differences {
            self.add(difference);
        }
    }
}

/// The parts of the account that a fill must leave unchanged.
pub struct PreservedValues {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Position side.
    pub side: PositionSide,
    /// The account's quantity.
    pub qty: i64,
    /// Its cost.
    pub cost: Amount,
    /// Balances.
    pub balances: [(AssetId, Amount); 3],
}

impl Evidence<'_> {
    /// Whether an accepted snapshot can contain a fill. It cannot if the order was placed after the
    /// request, or if the snapshot left the position unchanged. In the latter case the snapshot's
    /// difference had another cause, such as a rounded commission.
    pub fn may_be_in_snapshot(
        &self,
        changes: Option<&SnapshotChanges>,
        surface: Surface,
        update: &OrderUpdate,
    ) -> bool {
        let Some((changes, rules)) = changes.zip(self.instrument(update.instrument)) else {
            return true;
        };
        if self.was_placed_after(&update.client_order_id, changes.requested) {
            return false;
        }
        match surface {
            Surface::Spot => changes.of_balance(rules.base) != Amount::ZERO,
            // A balance changes for many reasons. Two fills that together leave the position
            // unchanged would be counted twice in the balance until the next snapshot, which is the
            // smaller error.
            Surface::Futures => changes.has_moved(update.instrument, update.position_side),
        }
    }

    /// Whether this process placed an order after a moment. For orders of earlier processes this is
    /// not known.
    fn was_placed_after(&self, id: &ClientOrderId, at: Time) -> bool {
        if self.orders.foreign(id).is_some() {
            return false;
        }
        let own = self.orders.own(id, self.epoch);
        own.is_some_and(|order| order.submitted > at)
    }

    /// The account values that a fill must leave unchanged.
    pub fn preserved_values(
        &self,
        surface: Surface,
        update: &OrderUpdate,
        fee_asset: AssetId,
    ) -> Option<PreservedValues> {
        let (instrument, side) = (update.instrument, update.position_side);
        let rules = self.instrument(instrument)?;
        let assets = [rules.base, rules.quote, fee_asset];
        let position = &self.ledgers.account.at(instrument, side).position;
        Some(PreservedValues {
            instrument,
            side,
            qty: position.qty,
            cost: position.cost,
            balances: assets.map(|asset| (asset, self.balance(surface, asset).total)),
        })
    }
}
