//! Market data that stopped: no strategy opens a position on a stale book (`windvane_supervision::stale_markets`).

use windvane_model::ids::InstrumentId;
use windvane_model::trading::{BlockState, TradingBlock};

use super::super::Engine;

impl Engine {
    /// Notes that market data of an instrument arrived.
    #[inline]
    pub(in super::super) fn note_market(&mut self, instrument: InstrumentId, is_mark: bool) {
        if self.live.is_none() {
            return;
        }
        if self.market_feeds.note(instrument, is_mark, self.now) {
            self.unblock(TradingBlock::StaleMarket(instrument));
        }
    }

    /// Blocks opening orders of instruments whose market data stopped.
    pub(in super::super) fn check_stale_markets(&mut self) {
        let now = self.now;
        for id in self.market_feeds.stopped(now) {
            let state = BlockState {
                since: now,
                ..BlockState::default()
            };
            self.begin_block(TradingBlock::StaleMarket(id), state);
            // The symbol may have stopped trading.
            self.read_rules(self.surface_of(id));
        }
    }
}
