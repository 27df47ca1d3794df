//! Ends of own orders that are not in what a strategy saved: told while it was in quarantine, or not
//! handled before its process ended. The next instance is told of them again.

use std::collections::VecDeque;

use crate::ids::{OrderSeq, StrategyId};

use super::Engine;

/// As many ended orders as are remembered at all.
const UNSAVED_MAX: usize = 4_096;

impl Engine {
    /// A strategy saved after it handled that event.
    pub(super) fn note_saved(&mut self, strategy: StrategyId, handled: i64) {
        if let Some(state) = self.strategies.get_mut(usize::from(strategy.0)) {
            state.unsaved.retain(|(_, told)| *told > handled);
        }
    }

    /// The end of an order was told, or would have been.
    pub(super) fn note_end(&mut self, strategy: StrategyId, seq: OrderSeq, told: i64) {
        if self.live.is_none() {
            return;
        }
        let unsaved = &mut self.strategies[usize::from(strategy.0)].unsaved;
        unsaved.retain(|(order, _)| *order != seq);
        if unsaved.len() == UNSAVED_MAX {
            unsaved.pop_front();
        }
        unsaved.push_back((seq, told));
    }

    /// Tells a new instance of the orders whose end what it was given does not know.
    pub(super) fn tell_ends(&mut self, strategy: StrategyId) {
        let unsaved = &mut self.strategies[usize::from(strategy.0)].unsaved;
        let ends: VecDeque<(OrderSeq, i64)> = std::mem::take(unsaved);
        for (seq, _) in ends {
            self.tell_order(seq, strategy);
        }
    }
}
