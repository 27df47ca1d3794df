//! Forced orders as evidence that a position was closed.
//!
//! A snapshot may lack a held position while its balances do not fit the close, because earlier
//! fills were not reported either. Such a snapshot may be incomplete, and is not believed for a
//! minute. Meanwhile the engine requests the venue's forced orders. If one of them closed this
//! position, the snapshot counts as complete.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time, VenueOrderId};
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::planted;
use windvane_model::truth::{AccountTruth, OpenOrder};

use super::Engine;
use super::outside::closing_side;

/// Time from one request about an instrument to the next, while snapshots lack its position.
const ASK_AGAIN_MS: i64 = 20_000;

type Key = (InstrumentId, PositionSide);

/// Evidence from the venue's forced orders about held positions that snapshots lack.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ForcedTraces {
    /// Held positions that a forced order closed, at least in part.
    closed: BTreeSet<Key>,
    /// When the forced orders of an instrument were last requested.
    asked: BTreeMap<InstrumentId, Time>,
    /// Quantities that outside orders executed beyond the fills that events reported.
    pub(super) executed: BTreeMap<(InstrumentId, VenueOrderId), Executed>,
}

/// A quantity that an order executed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Executed {
    pub(super) told: Time,
    pub(super) side: Side,
    pub(super) position_side: PositionSide,
    pub(super) qty: i64,
}

impl Engine {
    /// Requests forced orders if a snapshot lacks held positions and nothing shows that they were
    /// closed.
    pub(super) fn ask_for_traces(&mut self, surface: Surface, read: &AccountTruth) {
        if surface != Surface::Futures || planted!(LiquidationIgnored) {
            return;
        }
        // Without this time, every forced order of the past would count as evidence.
        let Some(agreed) = self.agreed_at(surface) else {
            return;
        };
        let now = self.now;
        let lists = |key: &Key| {
            let mut positions = read.positions.iter();
            positions.any(|told| (told.instrument, told.position_side) == *key && told.qty.0 != 0)
        };
        let held = self.held_positions(surface);
        let lacking = held.iter().filter(|(key, _)| !lists(key));
        let lacking: BTreeSet<InstrumentId> = lacking.map(|((id, _), _)| *id).collect();
        for id in lacking {
            let asked = self.forced_traces.asked.get(&id);
            if asked.is_none_or(|asked| now >= asked.plus_ms(ASK_AGAIN_MS)) {
                self.forced_traces.asked.insert(id, now);
                self.question_forced_orders(id, Some(agreed));
            }
        }
    }

    /// Handles a listed forced order whose close no accepted snapshot shows. If snapshots lack the
    /// position, the order is evidence for the next ones. Returns whether it is.
    pub(super) fn note_forced_trace(&mut self, order: &OpenOrder) -> bool {
        let key @ (id, side) = (order.report.instrument, order.terms.position_side);
        let held = self.account_qty(id, side);
        let closes = held != 0 && order.terms.side == closing_side(held);
        let is_evidence = closes && self.forced_traces.asked.contains_key(&id);
        if is_evidence {
            self.forced_traces.closed.insert(key);
        }
        is_evidence
    }

    /// Whether a listed forced order closed this position, at least in part.
    pub(super) fn has_forced_trace(&self, key: Key) -> bool {
        self.forced_traces.closed.contains(&key)
    }

    /// Drops evidence about flat positions.
    pub(super) fn review_forced_traces(&mut self) {
        let account = &self.ledgers.account;
        let is_held = |key: &Key| account.at(key.0, key.1).position.qty != 0;
        let traces = &mut self.forced_traces;
        traces.closed.retain(is_held);
        traces.asked.retain(|id, _| {
            let mut sides = PositionSide::ALL.iter();
            sides.any(|side| is_held(&(*id, *side)))
        });
    }

    /// Drops the evidence about a position that a snapshot lists again.
    pub(super) fn forget_forced_trace(&mut self, key: Key) {
        self.forced_traces.closed.remove(&key);
        self.forced_traces.asked.remove(&key.0);
    }
}
