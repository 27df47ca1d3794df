//! The trading status of each account and instrument: whether orders that open a position can be
//! placed, and if not, why, since when, and what ends the block.
//!
//! The evidence (`evidence`) comes from refused orders, from responses on other routes that need
//! the trading right, from account snapshots, from the symbol's status, and from stops such as a
//! ban. While a block holds, the engine refuses opening orders itself instead of sending them.
//! Closing orders, cancels and heartbeats always pass. `watch` ends blocks; `words` explains them
//! to people.

mod crossings;
mod evidence;
mod feeds;
mod unknown;
mod watch;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use windvane_model::decimal::{Amount, Decimal};
use windvane_model::doubt::Doubt;
use windvane_model::effect::Notice;
use windvane_model::ids::{AssetId, InstrumentId, StrategyId, Time};
use windvane_model::instrument::{Instrument, SymbolStatus};
use windvane_model::order::{OrderTerms, Side, Surface};
use windvane_model::planted;
use windvane_model::rules::{Rejection, Rule};
use windvane_model::trading::BlockState;
use windvane_model::trading::Refusals;
use windvane_model::trading::TradingBlock;

use crate::callback::Callback;

use super::Engine;

pub(super) use crossings::Crossings;
pub(super) use feeds::Feeds;
pub use unknown::UnknownOrders;
pub use words::BlockWords;

/// Pause from a block to the first order that tries again, doubled each time up to the second
/// bound.
const TRIAL_MS: (i64, i64) = (10_000, 600_000);
/// The longest pause between two tries to arm a countdown.
const COUNTDOWN_TRIAL_MS: i64 = 60_000;

/// Orders of one strategy for one side of one instrument.
type Party = (StrategyId, InstrumentId, Side);

/// Series of refused exits: orders that close or only reduce. Their pauses are at most a few
/// seconds.
pub(super) type ExitRefusals = BTreeMap<Party, Refusals>;

/// The trading status of a run. Live only.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Trading {
    blocks: BTreeMap<TradingBlock, BlockState>,
    refusals: BTreeMap<Party, Refusals>,
    rights: BTreeMap<Surface, Right>,
    /// Number of consecutive refusals because of an asset's balance, and the time of the last.
    short_of: BTreeMap<(Surface, AssetId), (u32, Time)>,
    /// When this process began: older orders say nothing about its key.
    begun: Time,
    /// When each quarantined strategy was quarantined.
    pub(super) faults: BTreeMap<StrategyId, Time>,
}

impl Trading {
    /// Whether the venue did not arm the countdown of an instrument.
    pub(super) fn lacks_countdown(&self, instrument: InstrumentId) -> bool {
        let block = TradingBlock::Countdown(instrument);
        self.blocks.contains_key(&block)
    }

    /// Whether anything is blocked.
    pub(super) fn blocks_any(&self) -> bool {
        !self.blocks.is_empty()
    }
}

/// The trading right of the key on one surface.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Right {
    /// The last response that proves the right.
    verified: Option<Time>,
    /// Number of consecutive responses that deny the right, and the time of the first.
    denied: u32,
    denied_since: Time,
    /// Number of consecutive orders that were refused because of the key, whatever other routes
    /// show.
    orders_denied: u32,
    /// The time of the last such order.
    order_denied: Time,
    /// When the probe in flight was sent.
    asked: Option<Time>,
    /// When the next probe is due, if the last response decided nothing.
    next: Option<Time>,
    /// Number of probes since the right was last proven.
    probes: u32,
}

/// A pause in milliseconds that doubles from the first bound to the second.
const fn doubled(bounds_ms: (i64, i64), times: u32) -> i64 {
    let shift = if times < 20 { times } else { 20 };
    let ms = bounds_ms.0 << shift;
    if ms < bounds_ms.1 { ms } else { bounds_ms.1 }
}

/// The shortest and the longest pause between two tries, in milliseconds.
const fn trial_ms(block: TradingBlock) -> (i64, i64) {
    match block {
        // A try to arm a countdown needs no order.
        TradingBlock::Countdown(_) => (TRIAL_MS.0, COUNTDOWN_TRIAL_MS),
        _ => TRIAL_MS,
    }
}

/// Whether an order may be the only evidence that ends the block: then one order is let through
/// after a pause.
const fn needs_trial(block: TradingBlock) -> bool {
    matches!(
        block,
        TradingBlock::Account(_)
            | TradingBlock::ReduceOnly(_)
            | TradingBlock::Instrument(_)
            | TradingBlock::Funds(..)
            | TradingBlock::Countdown(_)
    )
}

/// Whether the venue may let an order open a position.
const fn opens(terms: &OrderTerms) -> bool {
    !terms.reduce_only && !terms.close_position
}

impl Engine {
    /// Every block in force, with its state, in a fixed order.
    pub fn blocks(&self) -> impl Iterator<Item = (TradingBlock, &BlockState)> {
        let blocks = self.trading.blocks.iter();
        blocks.map(|(block, state)| (*block, state))
    }

    /// Since when a strategy is quarantined; `None` if it is not, or if the time is not known.
    pub fn fault_since(&self, strategy: StrategyId) -> Option<Time> {
        self.trading.faults.get(&strategy).copied()
    }

    /// Running series of refused orders, and of post-only orders that ended at once: by strategy,
    /// instrument and side.
    pub fn refusals(&self) -> impl Iterator<Item = (StrategyId, InstrumentId, Side, &Refusals)> {
        let openings = self.trading.refusals.iter().chain(&self.crossings.0);
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

    fn blocks_of(&self, terms: &OrderTerms) -> impl Iterator<Item = (TradingBlock, &BlockState)> {
        let (id, side) = (terms.instrument, terms.side);
        let rules = &self.instruments[usize::from(id.0)];
        self.blocks()
            .filter(move |(block, _)| block.concerns(id, rules, side))
    }

    /// Whether the trading status allows an order. No block stops an order that reduces a position,
    /// but such an order pauses for some seconds after repeated refusals.
    pub(super) fn check_trading(
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
        let party = (strategy, terms.instrument, terms.side);
        let pauses = |refusals: &&Refusals| self.now < refusals.pause_until;
        if reduces || !opens(terms) {
            let series = self.exit_refusals.get(&party).filter(pauses);
            return series.map_or(Ok(()), |_| Err(Rule::RefusalPause.plain()));
        }
        for (block, state) in self.blocks_of(terms) {
            let may_try = state.trial.is_some_and(|at| self.now >= at);
            // One order shows whether the block is over; other orders wait for its response.
            if !may_try || callback.submitted > 0 {
                return Err(block.rule().plain());
            }
        }
        let series = [
            self.trading.refusals.get(&party),
            self.crossings.0.get(&party),
        ];
        if series.iter().flatten().any(pauses) {
            return Err(Rule::RefusalPause.plain());
        }
        Ok(())
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
        let block = TradingBlock::Instrument(terms.instrument);
        let is_of_status = rejection.rule == Rule::SymbolStatus && !reduces && opens(terms);
        if is_of_status && self.trading.blocks.contains_key(&block) {
            block.rule().plain()
        } else {
            rejection
        }
    }

    /// The code of a rule that an order broke. If the symbol's status caused the block, it is the
    /// code of that status.
    pub(super) fn code_of(&self, instrument: InstrumentId, rule: Rule) -> i32 {
        let is_closed = |rules: &Instrument| rules.status != SymbolStatus::Trading;
        let of_status =
            rule == Rule::InstrumentBlocked && self.instrument(instrument).is_some_and(is_closed);
        if of_status {
            Rule::SymbolStatus.code()
        } else {
            rule.code()
        }
    }

    /// Whether the trading status forbids an opening order, and no order may be tried. A trial
    /// order was already accepted when it was submitted.
    pub(super) fn is_blocked(&self, terms: &OrderTerms) -> bool {
        opens(terms)
            && self
                .blocks_of(terms)
                .any(|(_, state)| state.trial.is_none())
    }

    /// Whether the trading status is the only degraded reason: the rest of the state is certain, so
    /// that strategies may close.
    pub(super) fn only_trading_is_blocked(&self) -> bool {
        let of_trading =
            |doubt: &Doubt| matches!(doubt, Doubt::CanTrade(_) | Doubt::TradingBlocked(_));
        let live = self.live.as_ref();
        live.is_some_and(|live| live.is_doubted_only_for(of_trading))
    }

    /// Counts an opening order that was not sent because of a block.
    pub(super) fn note_withheld(&mut self, terms: &OrderTerms, rule: Rule) {
        let Some(rules) = self.instruments.get(usize::from(terms.instrument.0)) else {
            return;
        };
        for (block, state) in &mut self.trading.blocks {
            if block.rule() == rule && block.concerns(terms.instrument, rules, terms.side) {
                state.not_sent += 1;
            }
        }
    }

    /// Notes that an opening order is sent as a trial although it is blocked: the next one waits
    /// for a longer pause.
    pub(super) fn note_trial(&mut self, terms: &OrderTerms) {
        if !opens(terms) {
            return;
        }
        let now = self.now;
        let rules = &self.instruments[usize::from(terms.instrument.0)];
        for (block, state) in &mut self.trading.blocks {
            let tries = state.trial.is_some_and(|at| now >= at);
            if tries && block.concerns(terms.instrument, rules, terms.side) {
                state.trials += 1;
                state.trial = Some(now.plus_ms(doubled(TRIAL_MS, state.trials)));
            }
        }
    }

    /// Begins a block, or notes that it continues.
    fn block(&mut self, block: TradingBlock, code: i32) {
        let now = self.now;
        if let Some(state) = self.trading.blocks.get_mut(&block) {
            state.code = code;
            if needs_trial(block) {
                let again = now.plus_ms(doubled(trial_ms(block), state.trials));
                state.trial = state.trial.max(Some(again));
            } else {
                // The operator allowed one order as a trial. Without that, no order ends this
                // block.
                state.trial = None;
            }
            if std::mem::take(&mut state.on_trial) {
                self.tell_trial();
            }
            return;
        }
        let available = match block {
            TradingBlock::Funds(surface, asset) => self.available(surface, asset),
            _ => Amount::ZERO,
        };
        let state = BlockState {
            since: now,
            code,
            trial: needs_trial(block).then(|| now.plus_ms(TRIAL_MS.0)),
            available,
            ..BlockState::default()
        };
        self.begin_block(block, state);
    }

    fn begin_block(&mut self, block: TradingBlock, state: BlockState) {
        if planted!(BlockedStillReady) {
            return;
        }
        self.trading.blocks.insert(block, state.clone());
        self.notices.push_back(Notice::Blocked {
            time: self.now,
            block,
            state,
        });
        self.trading_changed();
    }

    /// Ends a block, and the pauses of strategies that it concerned.
    fn unblock(&mut self, block: TradingBlock) {
        let Some(state) = self.trading.blocks.remove(&block) else {
            return;
        };
        let now = self.now;
        let openings = self.trading.refusals.iter_mut();
        for ((_, id, side), refusals) in openings.chain(&mut self.exit_refusals) {
            if block.concerns(*id, &self.instruments[usize::from(id.0)], *side) {
                refusals.pause_until = now;
            }
        }
        self.end_close_pauses(block);
        self.notices.push_back(Notice::Unblocked {
            time: now,
            block,
            state,
        });
        self.trading_changed();
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
    fn trading_changed(&mut self) {
        for surface in Surface::ALL.iter().copied() {
            let blocked = self.blocks().any(|(block, _)| {
                // `canTrade` has its own degraded reason.
                let other = !matches!(block, TradingBlock::CanTrade(_));
                block.account() == Some(surface) && other
            });
            let blocked = blocked || self.no_countdown_is_armed(surface);
            self.set_doubt(Doubt::TradingBlocked(surface), blocked);
        }
        self.update_state();
    }

    /// Whether the venue arms no countdown on any instrument of a surface: then nothing can be
    /// opened.
    fn no_countdown_is_armed(&self, surface: Surface) -> bool {
        let blocks = &self.trading.blocks;
        let instruments = self.instruments_of(surface);
        let is_blocked = |id: &InstrumentId| blocks.contains_key(&TradingBlock::Countdown(*id));
        !instruments.is_empty() && instruments.iter().all(is_blocked)
    }

    /// Whether the trading status is the only degraded reason, and one order may show whether it
    /// has ended.
    pub(super) fn is_on_trial(&self) -> bool {
        if !self.trading.blocks_any() {
            return false;
        }
        let mut of_accounts = self
            .blocks()
            .filter(|(block, _)| block.account().is_some())
            .peekable();
        self.only_trading_is_blocked()
            && of_accounts.peek().is_some()
            && of_accounts.all(|(_, state)| state.on_trial)
    }

    /// Reports to strategies that they may try an order, or that they may no longer.
    pub(super) fn tell_trial(&mut self) {
        for index in 0..self.strategies.len() {
            self.tell_state(StrategyId(index as u16));
        }
    }

    /// Blocks an instrument whose countdown the venue refuses to arm or answers unreadably.
    pub(super) fn block_for_countdown(&mut self, instrument: InstrumentId, code: i32) {
        self.block(TradingBlock::Countdown(instrument), code);
    }

    /// Since when the venue refuses the countdown of an instrument, to this key or in general.
    pub(super) fn countdown_refused_since(&self, instrument: InstrumentId) -> Option<Time> {
        let surface = self.surface_of(instrument);
        let blocks = [
            TradingBlock::Key(surface),
            TradingBlock::Countdown(instrument),
        ];
        let states = blocks
            .iter()
            .filter_map(|block| self.trading.blocks.get(block));
        states.map(|state| state.since).min()
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
        if let Some(state) = self.trading.blocks.get_mut(&block) {
            state.trial = None;
        }
    }
}
