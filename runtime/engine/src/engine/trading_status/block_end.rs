//! How blocks end: by time, by an increased balance, by a probe of the trading right that changes
//! nothing, by one order after a pause if nothing else can show it, or by the operator.

use windvane_model::effect::Effect;
use windvane_model::ids::{ClientOrderId, InstrumentId, OrderSeq};
use windvane_model::order::Surface;
use windvane_model::protocol::Request;
use windvane_model::trading::TradingBlock;

use super::super::Engine;

/// The number of the id whose cancel tests the trading right. It is never given to an order.
const fn probe_number(surface: Surface) -> OrderSeq {
    OrderSeq(match surface {
        Surface::Spot => 0,
        Surface::Futures => u64::MAX,
    })
}

/// Whether a cancel of this id only tests the trading right. The order does not exist.
pub fn is_probe(id: &ClientOrderId) -> bool {
    let Some((.., number)) = id.parse_own() else {
        return false;
    };
    let mut surfaces = Surface::ALL.iter().copied();
    surfaces.any(|surface| probe_number(surface) == number)
}

impl Engine {
    /// Begins a run: blocks the symbols that do not trade.
    pub(in super::super) fn begin_trading_status(&mut self) {
        self.trading_status.begin_run(self.now);
        for index in 0..self.instruments.len() {
            self.take_status(InstrumentId(index as u16));
        }
    }

    /// Ends blocks by time or balance, and probes the trading right when a probe is due.
    pub(in super::super) fn watch_trading_status(&mut self) {
        let now = self.now;
        let available = |surface, asset| self.available(surface, asset);
        for block in self.trading_status.ended_blocks(available, now) {
            self.unblock(block);
        }
        let tries = self.trading_status.begin_trials(now);
        if tries {
            self.deliver_trial();
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
        for instrument in self.trading_status.countdowns_to_try(now) {
            if self.try_countdown(instrument) {
                self.trading_status.note_countdown_tried(instrument, now);
            }
        }
    }

    /// Tests whether the key may trade, if no other response has proven it for long. Cancelling an
    /// order id that was never issued needs the trading right and changes nothing.
    pub(super) fn probe_if_due(&mut self, surface: Surface) {
        let now = self.now;
        let runs = |live: &super::super::LiveRun| live.is_running() && !live.stopping;
        let stopped = self.trading_status.has(TradingBlock::Stopped(surface));
        if stopped || !self.live.as_ref().is_some_and(runs) {
            return;
        }
        if self.trading_status.is_probe_due(surface, now) {
            self.probe(surface);
        }
    }

    fn probe(&mut self, surface: Surface) {
        let Some(client_order_id) = self.probe_id(surface) else {
            return;
        };
        let ids = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        let of_surface = ids.filter(|id| self.surface_of(*id) == surface);
        let is_blocked = |id: &InstrumentId| self.trading_status.has(TradingBlock::Instrument(*id));
        let Some(instrument) = of_surface.min_by_key(is_blocked) else {
            return;
        };
        self.trading_status.note_probe(surface, self.now);
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
        Some(ClientOrderId::own(name, self.epoch, probe_number(surface)))
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
        let tried = self.trading_status.try_again(
            &mut self.exit_refusals,
            &mut self.crossings,
            &self.instruments,
            self.now,
        );
        for block in &tried {
            self.end_close_pauses(*block);
        }
        self.try_countdowns();
        !tried.is_empty()
    }
}
