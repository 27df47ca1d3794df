//! Ends of own orders that a strategy's saved state lacks. They were reported while it was in
//! quarantine, or were not handled before its process ended. The engine reports them again to the
//! next instance.

use std::collections::VecDeque;

use windvane_model::ids::{OrderSeq, StrategyId};

use super::Engine;

/// As many as ended orders are remembered at all.
const UNSAVED_MAX: usize = 4_096;

impl Engine {
    /// Notes that a strategy saved its state after it handled event `handled`.
    pub(super) fn note_saved_state(&mut self, strategy: StrategyId, handled: i64) {
        if let Some(state) = self.strategies.get_mut(usize::from(strategy.0)) {
            state
                .unsaved_order_ends
                .retain(|(_, reported)| *reported > handled);
        }
    }

    /// Notes that the end of an order was reported to a strategy, or would have been.
    pub(super) fn note_order_end(&mut self, strategy: StrategyId, seq: OrderSeq, reported: i64) {
        if self.live.is_none() {
            return;
        }
        let unsaved = &mut self.strategies[usize::from(strategy.0)].unsaved_order_ends;
        unsaved.retain(|(order, _)| *order != seq);
        if unsaved.len() == UNSAVED_MAX {
            unsaved.pop_front();
        }
        unsaved.push_back((seq, reported));
    }

    /// Reports to a new instance the ended orders that its saved state does not contain.
    pub(super) fn report_unsaved_order_ends(&mut self, strategy: StrategyId) {
        let unsaved = &mut self.strategies[usize::from(strategy.0)].unsaved_order_ends;
        let ends: VecDeque<(OrderSeq, i64)> = std::mem::take(unsaved);
        for (seq, _) in ends {
            self.deliver_order(seq, strategy);
        }
    }
}
