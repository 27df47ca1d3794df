//! How blocks end: by time, by an increased balance, by a probe of the trading right that changes
//! nothing, by one order after a pause if nothing else can show it, or by the operator.

use windvane_model::effect::Effect;
use windvane_model::ids::{ClientOrderId, InstrumentId, OrderSeq};
use windvane_model::instrument::SymbolStatus;
use windvane_model::order::Surface;
use windvane_model::protocol::Request;
use windvane_model::trading::TradingBlock;

use super::super::Engine;
use super::{Right, doubled, trial_ms};

/// The trading right is probed if no response has proven it for this long.
const VERIFY_MS: i64 = 300_000;
/// A probe without a response for this long is given up.
const PROBE_LOST_MS: i64 = 30_000;

impl Engine {
    /// Begins a run: blocks the symbols that do not trade.
    pub(in super::super) fn begin_trading(&mut self) {
        self.trading.begun = self.now;
        for index in 0..self.instruments.len() {
            self.take_status(InstrumentId(index as u16));
        }
    }

    /// Ends blocks by time or balance, and probes the trading right when a probe is due.
    pub(in super::super) fn watch_trading(&mut self) {
        let now = self.now;
        let is_over = |engine: &Self, block: TradingBlock| {
            let state = &engine.trading.blocks[&block];
            let came = match block {
                TradingBlock::Funds(surface, asset) => {
                    engine.available(surface, asset) > state.available
                }
                _ => false,
            };
            came || state.until.is_some_and(|until| now >= until)
        };
        let blocks: Vec<_> = self.trading.blocks.keys().copied().collect();
        for block in blocks {
            if is_over(self, block) {
                self.unblock(block);
            }
        }
        let mut tries = false;
        for (block, state) in &mut self.trading.blocks {
            let due = state.trial.is_some_and(|at| now >= at) && !state.on_trial;
            // A strategy that waits for a ready account would never try an order.
            if due && block.account().is_some() {
                state.on_trial = true;
                tries = true;
            }
        }
        if tries {
            self.tell_trial();
        }
        self.try_countdowns();
        let surfaces = self.live.as_ref().map(|live| live.config.surfaces.clone());
        for surface in surfaces.unwrap_or_default() {
            self.probe_if_due(surface);
        }
    }

    /// Tries again, after growing pauses, to arm countdowns that the venue did not arm. A countdown
    /// that no order needs is disarmed a moment later.
    fn try_countdowns(&mut self) {
        let now = self.now;
        let due = self.blocks().filter_map(|(block, state)| match block {
            TradingBlock::Countdown(id) if state.trial.is_some_and(|at| now >= at) => Some(id),
            _ => None,
        });
        for instrument in due.collect::<Vec<_>>() {
            let block = TradingBlock::Countdown(instrument);
            if self.arm_on_trial(instrument)
                && let Some(state) = self.trading.blocks.get_mut(&block)
            {
                state.trials += 1;
                state.trial = Some(now.plus_ms(doubled(trial_ms(block), state.trials)));
            }
        }
    }

    /// Tests whether the key may trade, if no other response has proven it for long. Cancelling an
    /// order id that was never issued needs the trading right and changes nothing.
    pub(super) fn probe_if_due(&mut self, surface: Surface) {
        let now = self.now;
        let runs = |live: &super::super::Session| live.is_running() && !live.stopping;
        let stopped = self
            .trading
            .blocks
            .contains_key(&TradingBlock::Stopped(surface));
        if stopped || !self.live.as_ref().is_some_and(runs) {
            return;
        }
        let right = self.trading.rights.entry(surface).or_default();
        let waits = right
            .asked
            .is_some_and(|at| now < at.plus_ms(PROBE_LOST_MS));
        let due = match (right.next, right.verified) {
            (Some(next), _) => now >= next,
            (None, Some(verified)) => now >= verified.plus_ms(VERIFY_MS),
            (None, None) => true,
        };
        if due && !waits {
            self.probe(surface);
        }
    }

    fn probe(&mut self, surface: Surface) {
        let Some(client_order_id) = self.probe_id(surface) else {
            return;
        };
        let ids = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        let of_surface = ids.filter(|id| self.surface_of(*id) == surface);
        let is_blocked = |id: &InstrumentId| {
            let block = TradingBlock::Instrument(*id);
            self.trading.blocks.contains_key(&block)
        };
        let Some(instrument) = of_surface.min_by_key(is_blocked) else {
            return;
        };
        let right = self.trading.rights.entry(surface).or_default();
        right.asked = Some(self.now);
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(Request::Cancel {
                instrument,
                client_order_id,
            }),
        });
    }

    /// An id of this process's own form whose number is never given to an order.
    fn probe_id(&self, surface: Surface) -> Option<ClientOrderId> {
        let name = &self.strategies.first()?.config.name;
        let number = match surface {
            Surface::Spot => 0,
            Surface::Futures => u64::MAX,
        };
        Some(ClientOrderId::own(name, self.epoch, OrderSeq(number)))
    }

    /// The surface whose trading right a cancel of this id probes; `None` for an order.
    pub fn probed(&self, id: &ClientOrderId) -> Option<Surface> {
        self.live.as_ref()?;
        let mut surfaces = Surface::ALL.iter().copied();
        surfaces.find(|surface| self.probe_id(*surface).as_ref() == Some(id))
    }

    /// Handles `resume`: the operator fixed the cause of the blocks, or accepts another try. That
    /// proves nothing. Each block stays until a response, a snapshot or a balance shows that it
    /// ended. One order may be tried at once, and the trading right and countdowns are tested.
    /// Returns whether there is anything to try.
    pub(in super::super) fn try_blocks_again(&mut self) -> bool {
        let now = self.now;
        let blocks: Vec<_> = self.trading.blocks.keys().copied().collect();
        let mut tries = false;
        for block in blocks {
            if self.ends_by_reading(block) {
                continue;
            }
            if let Some(state) = self.trading.blocks.get_mut(&block) {
                state.trial = Some(now);
                state.trials = 0;
                state.on_trial = block.account().is_some();
                tries = true;
            }
            self.end_close_pauses(block);
        }
        let openings = self.trading.refusals.values_mut();
        let paused = openings.chain(self.exit_refusals.values_mut());
        for series in paused.chain(self.crossings.0.values_mut()) {
            series.pause_until = series.pause_until.min(now);
        }
        self.trading.short_of.clear();
        for right in self.trading.rights.values_mut() {
            *right = Right::default();
        }
        self.try_countdowns();
        tries
    }

    /// Whether only the venue's own reports end a block: an order cannot show its end.
    fn ends_by_reading(&self, block: TradingBlock) -> bool {
        match block {
            TradingBlock::CanTrade(_) | TradingBlock::Stopped(_) | TradingBlock::StaleMarket(_) => {
                true
            }
            TradingBlock::Instrument(id) => {
                let rules = self.instrument(id);
                rules.is_some_and(|rules| rules.status != SymbolStatus::Trading)
            }
            _ => false,
        }
    }
}
