//! The trading status of each account and instrument: whether orders that open a position can be
//! placed, and if not, why, since when, and what ends the block.
//!
//! The evidence (`evidence`) comes from refused orders, from responses on other routes that need
//! the trading right, from account snapshots, from the symbol's status, and from stops such as a
//! ban. While a block holds, the engine refuses opening orders itself instead of sending them.
//! Closing orders, cancels and heartbeats always pass. `block_end` ends blocks; `descriptions` explains them
//! to people. The blocks themselves are in `windvane_supervision::blocks`.

mod block_end;
mod crossings;
mod descriptions;
mod evidence;
mod stale_markets;
mod unknown;

use windvane_model::decimal::{Amount, Decimal};
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::Notice;
use windvane_model::ids::{AssetId, InstrumentId, StrategyId, Time};
use windvane_model::instrument::SymbolStatus;
use windvane_model::order::{OrderTerms, Side, Surface};
use windvane_model::rules::{Rejection, Rule};
use windvane_model::trading::{BlockState, Refusals, TradingBlock};
use windvane_supervision::blocks::{begun, opens};
use windvane_supervision::refusals::pauses;

use crate::callback::Callback;

use super::Engine;

pub use block_end::is_probe;

impl Engine {
    /// Every block in force, with its state, in a fixed order.
    pub fn blocks(&self) -> impl Iterator<Item = (TradingBlock, &BlockState)> {
        self.trading_status.blocks()
    }

    /// Since when a strategy is quarantined; `None` if it is not, or if the time is not known.
    pub fn fault_since(&self, strategy: StrategyId) -> Option<Time> {
        self.trading_status.fault_since(strategy)
    }

    /// Running series of refused orders, and of post-only orders that ended at once: by strategy,
    /// instrument and side.
    pub fn refusals(&self) -> impl Iterator<Item = (StrategyId, InstrumentId, Side, &Refusals)> {
        let openings = self.trading_status.refusals().iter();
        let openings = openings.chain(self.crossings.series());
        let all = openings.chain(&self.exit_refusals);
        all.map(|((strategy, instrument, side), refusals)| {
            (*strategy, *instrument, *side, refusals)
        })
    }

    /// The series of refused closing orders of a strategy for one side of an instrument.
    pub(super) fn refused_exits(
        &self,
        strategy: StrategyId,
        instrument: InstrumentId,
        side: Side,
    ) -> Option<&Refusals> {
        self.exit_refusals.get(&(strategy, instrument, side))
    }

    /// Whether an own order of an instrument is confirmed at the venue now.
    pub fn accepts_orders_of(&self, instrument: InstrumentId) -> bool {
        let mut orders = self.orders.iter();
        orders.any(|order| order.instrument() == instrument && order.is_confirmed())
    }

    /// Whether the trading status allows an order. No block stops an order that reduces a position,
    /// but such an order pauses for some seconds after repeated refusals.
    pub(super) fn check_trading_status(
        &self,
        strategy: StrategyId,
        terms: &OrderTerms,
        reduces: bool,
        callback: &Callback,
    ) -> Result<(), Rejection> {
        if self.live.is_none() {
            return Ok(());
        }
        if let Some(until) = self.order_wait(self.surface_of(terms.instrument)) {
            let left_s = (until.0 - self.now.0).max(0) / 1_000_000_000 + 1;
            return Err(Rule::OrderLimit.with(left_s.into(), Decimal::ZERO));
        }
        if reduces || !opens(terms) {
            let party = (strategy, terms.instrument, terms.side);
            let series = self.exit_refusals.get(&party);
            return if pauses(series, self.now) {
                Err(Rule::RefusalPause.plain())
            } else {
                Ok(())
            };
        }
        let rules = &self.instruments[usize::from(terms.instrument.0)];
        self.trading_status.check_opening(
            &self.crossings,
            strategy,
            terms,
            rules,
            callback.submitted,
            self.now,
        )
    }

    /// The rejection of an order that breaks a rule of the venue. If an opening order breaks the
    /// rule of the symbol's status, the block of the instrument refuses it, so that the block
    /// counts the orders that are not sent.
    pub(crate) fn of_block(
        &self,
        terms: &OrderTerms,
        reduces: bool,
        rejection: Rejection,
    ) -> Rejection {
        self.trading_status.of_block(terms, reduces, rejection)
    }

    /// Whether the trading status forbids an opening order, and no order may be tried. A trial
    /// order was already accepted when it was submitted.
    pub(super) fn is_blocked(&self, terms: &OrderTerms) -> bool {
        let rules = &self.instruments[usize::from(terms.instrument.0)];
        self.trading_status.is_blocked(terms, rules)
    }

    /// Whether the trading status is the only degraded reason: the rest of the state is certain, so
    /// that strategies may close.
    pub(super) fn is_degraded_only_by_trading_status(&self) -> bool {
        let of_trading = |reason: &DegradedReason| {
            matches!(
                reason,
                DegradedReason::CanTrade(_) | DegradedReason::TradingBlocked(_)
            )
        };
        let live = self.live.as_ref();
        live.is_some_and(|live| live.is_degraded_only_for(of_trading))
    }

    /// Counts an opening order that was not sent because of a block.
    pub(super) fn note_withheld(&mut self, terms: &OrderTerms, rule: Rule) {
        if let Some(rules) = self.instruments.get(usize::from(terms.instrument.0)) {
            self.trading_status.note_withheld(terms, rule, rules);
        }
    }

    /// Notes that an opening order is sent as a trial although it is blocked: the next one waits
    /// for a longer pause.
    pub(super) fn note_trial(&mut self, terms: &OrderTerms) {
        let rules = &self.instruments[usize::from(terms.instrument.0)];
        self.trading_status.note_trial(terms, rules, self.now);
    }

    /// Begins a block, or notes that it continues.
    fn block(&mut self, block: TradingBlock, code: i32) {
        match self.trading_status.renew(block, code, self.now) {
            Some(true) => self.deliver_trial(),
            Some(false) => {}
            None => {
                let available = match block {
                    TradingBlock::Funds(surface, asset) => self.available(surface, asset),
                    _ => Amount::ZERO,
                };
                self.begin_block(block, begun(block, code, available, self.now));
            }
        }
    }

    fn begin_block(&mut self, block: TradingBlock, state: BlockState) {
        if !self.trading_status.begin(block, state.clone()) {
            return;
        }
        self.notices.push_back(Notice::Blocked {
            time: self.now,
            block,
            state,
        });
        self.trading_status_changed();
    }

    /// Ends a block, and the pauses of strategies that it concerned.
    fn unblock(&mut self, block: TradingBlock) {
        let now = self.now;
        let ended = self
            .trading_status
            .end(block, &mut self.exit_refusals, &self.instruments, now);
        let Some(state) = ended else {
            return;
        };
        self.end_close_pauses(block);
        self.notices.push_back(Notice::Unblocked {
            time: now,
            block,
            state,
        });
        self.trading_status_changed();
    }

    /// Ends the pauses of closing orders that a block concerned: they are sent now.
    fn end_close_pauses(&mut self, block: TradingBlock) {
        let (now, instruments) = (self.now, &self.instruments);
        for (state, ledger) in self.strategies.iter_mut().zip(&self.ledgers.strategies) {
            let is_concerned = ledger.iter().any(|(id, _, holding)| {
                let qty = holding.position.qty;
                let closing = if qty > 0 { Side::Sell } else { Side::Buy };
                qty != 0 && block.concerns(id, &instruments[usize::from(id.0)], closing)
            });
            if is_concerned {
                state.flatten_again = state.flatten_again.min(now);
            }
        }
    }

    /// Decides again which accounts are degraded because of their trading status.
    fn trading_status_changed(&mut self) {
        for surface in Surface::ALL.iter().copied() {
            let blocked = self.trading_status.blocks_account(surface);
            let blocked = blocked || self.no_countdown_is_armed(surface);
            self.set_degraded(DegradedReason::TradingBlocked(surface), blocked);
        }
        self.update_state();
    }

    /// Whether the venue arms no countdown on any instrument of a surface: then nothing can be
    /// opened.
    fn no_countdown_is_armed(&self, surface: Surface) -> bool {
        let instruments = self.evidence().instruments_of(surface);
        let is_blocked = |id: &InstrumentId| self.trading_status.lacks_countdown(*id);
        !instruments.is_empty() && instruments.iter().all(is_blocked)
    }

    /// Whether trading blocks are the only degraded reason, and one order may be tried to find out
    /// whether the venue accepts orders again.
    pub(super) fn is_on_trial(&self) -> bool {
        self.trading_status.blocks_any()
            && self.is_degraded_only_by_trading_status()
            && self.trading_status.are_accounts_on_trial()
    }

    /// Reports to strategies that they may try an order, or that they may no longer.
    pub(super) fn deliver_trial(&mut self) {
        for index in 0..self.strategies.len() {
            self.deliver_state(StrategyId(index as u16));
        }
    }

    /// Blocks an instrument whose countdown the venue refuses to arm or answers unreadably.
    pub(super) fn block_for_countdown(&mut self, instrument: InstrumentId, code: i32) {
        self.block(TradingBlock::Countdown(instrument), code);
    }

    /// Since when the venue refuses the countdown of an instrument, to this key or in general.
    pub(super) fn countdown_refused_since(&self, instrument: InstrumentId) -> Option<Time> {
        let surface = self.surface_of(instrument);
        self.trading_status
            .countdown_refused_since(surface, instrument)
    }

    /// Ends the block of an instrument, because the venue armed its countdown.
    pub(super) fn countdown_is_armed(&mut self, instrument: InstrumentId) {
        self.unblock(TradingBlock::Countdown(instrument));
    }

    /// The balance of an asset that is available for new orders.
    fn available(&self, surface: Surface, asset: AssetId) -> Amount {
        let balance = self.balance(surface, asset);
        balance.total - balance.locked
    }

    /// Takes the status of a symbol from the venue's list.
    pub(super) fn take_status(&mut self, instrument: InstrumentId) {
        let Some(rules) = self.instrument(instrument).filter(|_| self.live.is_some()) else {
            return;
        };
        let block = TradingBlock::Instrument(instrument);
        if rules.status == SymbolStatus::Trading {
            self.unblock(block);
            return;
        }
        self.block(block, 0);
        // The next read of the status ends the block, not an order.
        self.trading_status.end_trial(block);
    }
}
