//! Forced orders as evidence that a position was closed: the engine requests them while snapshots lack
//! a held position (`windvane_evidence::forced_close_evidence`).

use std::collections::BTreeSet;

use windvane_model::ids::InstrumentId;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::planted;
use windvane_model::state_report::{AccountSnapshot, OpenOrder};

use super::Engine;

impl Engine {
    /// Requests forced orders if a snapshot lacks held positions and nothing shows that they were
    /// closed.
    pub(super) fn request_forced_close_evidence(
        &mut self,
        surface: Surface,
        read: &AccountSnapshot,
    ) {
        if surface != Surface::Futures || planted!(LiquidationIgnored) {
            return;
        }
        // Without this time, every forced order of the past would count as evidence.
        let Some(agreed) = self.agreed_at(surface) else {
            return;
        };
        let lists = |key: &(InstrumentId, PositionSide)| {
            let mut positions = read.positions.iter();
            positions.any(|reported| {
                (reported.instrument, reported.position_side) == *key && reported.qty.0 != 0
            })
        };
        let held = self.evidence().held_positions(surface);
        let lacking = held.iter().filter(|(key, _)| !lists(key));
        let lacking: BTreeSet<InstrumentId> = lacking.map(|((id, _), _)| *id).collect();
        for id in lacking {
            if self.forced_close_evidence.ask(id, self.now) {
                self.plan_forced_order_request(id, Some(agreed));
            }
        }
    }

    /// Handles a listed forced order whose close no accepted snapshot shows. Returns whether it is
    /// evidence for the next snapshots.
    pub(super) fn note_forced_close_evidence(&mut self, order: &OpenOrder) -> bool {
        let held = self.account_qty(order.report.instrument, order.terms.position_side);
        self.forced_close_evidence.note(order, held)
    }
}
