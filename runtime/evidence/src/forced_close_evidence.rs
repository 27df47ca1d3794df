//! Forced orders as evidence that a position was closed.
//!
//! A snapshot may lack a held position while its balances do not fit the close, because earlier
//! fills were not reported either. Such a snapshot may be incomplete, and is not believed for a
//! minute. Meanwhile the engine requests the venue's forced orders. If one of them closed this
//! position, the snapshot counts as complete.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::holding::Ledger;
use windvane_model::ids::{InstrumentId, Time, VenueOrderId};
use windvane_model::order::{PositionSide, Side};
use windvane_model::protocol::OrderUpdate;
use windvane_model::state_report::OpenOrder;

use crate::PositionKey;
use crate::position::closing_side;

/// Time from one request about an instrument to the next, while snapshots lack its position.
const ASK_AGAIN_MS: i64 = 20_000;

/// Evidence from the venue's forced orders about held positions that snapshots lack.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ForcedCloseEvidence {
    /// Held positions that a forced order closed, at least in part.
    closed: BTreeSet<PositionKey>,
    /// When the forced orders of an instrument were last requested.
    asked: BTreeMap<InstrumentId, Time>,
    /// Quantities that outside orders executed beyond the fills that events reported.
    executed: BTreeMap<(InstrumentId, VenueOrderId), Executed>,
}

/// A quantity that an order executed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Executed {
    reported_at: Time,
    side: Side,
    position_side: PositionSide,
    qty: i64,
}

/// Snapshots show the executions of an order within this time.
const EXECUTED_MS: i64 = 60_000;

impl ForcedCloseEvidence {
    /// Notes that the forced orders of an instrument are requested, unless they were a moment ago.
    /// Returns whether they are.
    pub fn ask(&mut self, id: InstrumentId, now: Time) -> bool {
        let asked = self.asked.get(&id);
        let is_due = asked.is_none_or(|asked| now >= asked.plus_ms(ASK_AGAIN_MS));
        if is_due {
            self.asked.insert(id, now);
        }
        is_due
    }

    /// Handles a listed forced order whose close no accepted snapshot shows; `held` is the
    /// account's position. If snapshots lack the position, the order is evidence for the next ones.
    /// Returns whether it is.
    pub fn note(&mut self, order: &OpenOrder, held: i64) -> bool {
        let key = (order.report.instrument, order.terms.position_side);
        let closes = held != 0 && order.terms.side == closing_side(held);
        let is_evidence = closes && self.asked.contains_key(&key.0);
        if is_evidence {
            self.closed.insert(key);
        }
        is_evidence
    }

    /// Whether a listed forced order closed this position, at least in part.
    pub fn has(&self, key: PositionKey) -> bool {
        self.closed.contains(&key)
    }

    /// Drops evidence about flat positions.
    pub fn review(&mut self, account: &Ledger) {
        let is_held = |key: &PositionKey| account.at(key.0, key.1).position.qty != 0;
        self.closed.retain(is_held);
        self.asked.retain(|id, _| {
            let mut sides = PositionSide::ALL.iter();
            sides.any(|side| is_held(&(*id, *side)))
        });
    }

    /// Drops the evidence about a position that a snapshot lists again.
    pub fn forget(&mut self, key: PositionKey) {
        self.closed.remove(&key);
        self.asked.remove(&key.0);
    }

    /// Notes the quantity that an outside order executed without a reported fill. An event may
    /// report only the last part of a fill; the cumulative quantity shows the rest.
    pub fn note_executed(&mut self, update: &OrderUpdate, booked: i64, now: Time) {
        let key = (update.instrument, update.order_id);
        let missing = update.executed_qty.0 - booked;
        self.executed
            .retain(|_, executed| now <= executed.reported_at.plus_ms(EXECUTED_MS));
        if missing > 0 {
            let executed = Executed {
                reported_at: now,
                side: update.side,
                position_side: update.position_side,
                qty: missing,
            };
            self.executed.insert(key, executed);
        } else {
            self.executed.remove(&key);
        }
    }

    /// The quantity of a position that outside orders closed and whose fills were not reported.
    pub fn executed(&self, (id, position_side): PositionKey, closing: Side, now: Time) -> i64 {
        let closes = self.executed.iter().filter(|((of, _), executed)| {
            (*of, executed.side, executed.position_side) == (id, closing, position_side)
                && now <= executed.reported_at.plus_ms(EXECUTED_MS)
        });
        closes.map(|(_, executed)| executed.qty).sum()
    }

    /// A snapshot showed what these orders closed.
    pub fn forget_executed(&mut self, (id, position_side): PositionKey, closing: Side) {
        self.executed.retain(|(of, _), executed| {
            (*of, executed.side, executed.position_side) != (id, closing, position_side)
        });
    }
}
