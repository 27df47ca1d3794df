//! The trading status of each account and instrument: whether orders that open a position can be
//! placed, and if not, why, since when, and what ends the block.
//!
//! The evidence comes from refused orders, from responses on other routes that need the trading
//! right, from account snapshots, from the symbol's status, and from stops such as a ban. One
//! refusal suffices if its code names the account or the instrument. A refusal because of the key
//! is ambiguous: a second response on a route that needs the trading right must confirm it. Closing
//! orders, cancels and heartbeats always pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, InstrumentId, StrategyId, Time};
use windvane_model::instrument::{Instrument, SymbolStatus};
use windvane_model::live::StopReason;
use windvane_model::order::{OrderTerms, Surface};
use windvane_model::orders::Order;
use windvane_model::planted;
use windvane_model::protocol::Refusal;
use windvane_model::rules::{Rejection, Rule};
use windvane_model::trading::{BlockState, Refusals, TradingBlock, spends};

use crate::refusals::{Crossings, ExitRefusals, Party, count_opening, doubled, pauses};

/// The shortest and the longest pause, in milliseconds, before one order is tried again while the
/// venue refuses orders. Each try doubles the pause.
const TRIAL_MS: (i64, i64) = (10_000, 600_000);

/// The longest pause between two tries to arm a countdown.
const COUNTDOWN_TRIAL_MS: i64 = 60_000;

/// The trading status of a run. Live only.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TradingStatus {
    blocks: BTreeMap<TradingBlock, BlockState>,
    refusals: BTreeMap<Party, Refusals>,
    rights: BTreeMap<Surface, Right>,
    /// Number of consecutive refusals because of an asset's balance, and the time of the last.
    insufficient_balances: BTreeMap<(Surface, AssetId), (u32, Time)>,
    /// When this process began: older orders say nothing about its key.
    begun: Time,
    /// When each quarantined strategy was quarantined.
    faults: BTreeMap<StrategyId, Time>,
}

/// The trading right of the key on one surface.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Right {
    /// The last response that proves the right.
    verified: Option<Time>,
    /// Number of consecutive responses that deny the right, and the time of the first.
    denied: u32,
    denied_since: Time,
    /// Number of consecutive orders that the venue refused because of the key. Successes of other
    /// routes do not reset it; an accepted order does.
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

/// This many responses about the key must agree.
const KEY_AGREES: u32 = 2;

/// After this many orders are refused because of the key while other routes accept it, the account
/// is blocked.
const ORDERS_DENIED: u32 = 3;

/// This many refusals because of the balance must agree while some balance is available.
const FUNDS_AGREE: u32 = 3;

/// Time between two probes of the trading right while it is denied, doubled up to the second bound.
const PROBE_MS: (i64, i64) = (5_000, 300_000);

/// The trading right is probed if no response has proven it for this long.
const VERIFY_MS: i64 = 300_000;

/// A probe without a response for this long counts as lost.
const PROBE_LOST_MS: i64 = 30_000;

/// The consequences of a refusal of the key.
#[derive(Clone, Copy, Debug)]
pub struct Denied {
    /// This block begins or continues.
    pub block: Option<TradingBlock>,
    /// Whether another route is probed at once.
    pub probes: bool,
}

/// Blocks and series of refusals that an accepted order ends.
#[derive(Clone, Debug, Default)]
pub struct Disproved {
    /// Series of refusals that are over.
    pub series: Vec<Refusals>,
    /// Blocks that are over.
    pub blocks: Vec<TradingBlock>,
}

/// The state of a block that begins. `available` is the available balance of its asset.
pub fn begun(block: TradingBlock, code: i32, available: Amount, now: Time) -> BlockState {
    BlockState {
        since: now,
        code,
        trial: needs_trial(block).then(|| now.plus_ms(TRIAL_MS.0)),
        available,
        ..BlockState::default()
    }
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
pub const fn opens(terms: &OrderTerms) -> bool {
    !terms.reduce_only && !terms.close_position
}

/// The code of a rule that an order broke. If the symbol's status caused the block, it is the code
/// of that status.
pub fn code_of(rules: Option<&Instrument>, rule: Rule) -> i32 {
    let is_closed = |rules: &Instrument| rules.status != SymbolStatus::Trading;
    let of_status = rule == Rule::InstrumentBlocked && rules.is_some_and(is_closed);
    if of_status {
        Rule::SymbolStatus.code()
    } else {
        rule.code()
    }
}

impl TradingStatus {
    /// A run begins: older orders say nothing about its key.
    pub const fn begin_run(&mut self, now: Time) {
        self.begun = now;
    }

    /// Every block in force, with its state, in a fixed order.
    pub fn blocks(&self) -> impl Iterator<Item = (TradingBlock, &BlockState)> {
        let blocks = self.blocks.iter();
        blocks.map(|(block, state)| (*block, state))
    }

    /// Whether a block is in force.
    pub fn has(&self, block: TradingBlock) -> bool {
        self.blocks.contains_key(&block)
    }

    /// Whether the venue did not arm the countdown of an instrument.
    pub fn lacks_countdown(&self, instrument: InstrumentId) -> bool {
        self.has(TradingBlock::Countdown(instrument))
    }

    /// Whether anything is blocked.
    pub fn blocks_any(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Series of refused opening orders.
    pub const fn refusals(&self) -> &BTreeMap<Party, Refusals> {
        &self.refusals
    }

    /// A strategy is quarantined.
    pub fn note_fault(&mut self, strategy: StrategyId, since: Time) {
        self.faults.insert(strategy, since);
    }

    /// A strategy is not quarantined any more.
    pub fn end_fault(&mut self, strategy: StrategyId) {
        self.faults.remove(&strategy);
    }

    /// Since when a strategy is quarantined.
    pub fn fault_since(&self, strategy: StrategyId) -> Option<Time> {
        self.faults.get(&strategy).copied()
    }

    fn of_order(
        &self,
        terms: &OrderTerms,
        rules: &Instrument,
    ) -> impl Iterator<Item = (TradingBlock, &BlockState)> {
        let (id, side) = (terms.instrument, terms.side);
        self.blocks()
            .filter(move |(block, _)| block.concerns(id, rules, side))
    }

    /// Whether the trading status allows an opening order. `submitted` is the number of orders that
    /// the strategy has submitted in the same callback.
    pub fn check_opening(
        &self,
        crossings: &Crossings,
        strategy: StrategyId,
        terms: &OrderTerms,
        rules: &Instrument,
        submitted: u32,
        now: Time,
    ) -> Result<(), Rejection> {
        for (block, state) in self.of_order(terms, rules) {
            let may_try = state.trial.is_some_and(|at| now >= at);
            // One order shows whether the block is over; other orders wait for its response.
            if !may_try || submitted > 0 {
                return Err(block.rule().plain());
            }
        }
        let party = (strategy, terms.instrument, terms.side);
        let series = [self.refusals.get(&party), crossings.0.get(&party)];
        if series.into_iter().any(|series| pauses(series, now)) {
            return Err(Rule::RefusalPause.plain());
        }
        Ok(())
    }

    /// The rejection of an order that breaks a rule of the venue. If an opening order breaks the
    /// rule of the symbol's status, the block of the instrument refuses it, so that the block
    /// counts the orders that are not sent.
    pub fn of_block(&self, terms: &OrderTerms, reduces: bool, rejection: Rejection) -> Rejection {
        let block = TradingBlock::Instrument(terms.instrument);
        let is_of_status = rejection.rule == Rule::SymbolStatus && !reduces && opens(terms);
        if is_of_status && self.has(block) {
            block.rule().plain()
        } else {
            rejection
        }
    }

    /// Whether the trading status forbids an opening order, and no order may be tried. A trial
    /// order was already accepted when it was submitted.
    pub fn is_blocked(&self, terms: &OrderTerms, rules: &Instrument) -> bool {
        opens(terms)
            && self
                .of_order(terms, rules)
                .any(|(_, state)| state.trial.is_none())
    }

    /// Counts an opening order that was not sent because of a block.
    pub fn note_withheld(&mut self, terms: &OrderTerms, rule: Rule, rules: &Instrument) {
        for (block, state) in &mut self.blocks {
            if block.rule() == rule && block.concerns(terms.instrument, rules, terms.side) {
                state.not_sent += 1;
            }
        }
    }

    /// Notes that an opening order is sent as a trial although it is blocked: the next one waits
    /// for a longer pause.
    pub fn note_trial(&mut self, terms: &OrderTerms, rules: &Instrument, now: Time) {
        if !opens(terms) {
            return;
        }
        for (block, state) in &mut self.blocks {
            let tries = state.trial.is_some_and(|at| now >= at);
            if tries && block.concerns(terms.instrument, rules, terms.side) {
                state.trials += 1;
                state.trial = Some(now.plus_ms(doubled(TRIAL_MS, state.trials)));
            }
        }
    }

    /// Continues a block. Returns whether strategies may no longer try an order; `None` if the
    /// block is not in force.
    pub fn renew(&mut self, block: TradingBlock, code: i32, now: Time) -> Option<bool> {
        let state = self.blocks.get_mut(&block)?;
        state.code = code;
        if needs_trial(block) {
            let again = now.plus_ms(doubled(trial_ms(block), state.trials));
            state.trial = state.trial.max(Some(again));
        } else {
            // The operator allowed one order as a trial. Without that, no order ends this
            // block.
            state.trial = None;
        }
        Some(std::mem::take(&mut state.on_trial))
    }

    /// Begins a block. Returns whether it is in force.
    pub fn begin(&mut self, block: TradingBlock, state: BlockState) -> bool {
        if planted!(BlockedStillReady) {
            return false;
        }
        self.blocks.insert(block, state);
        true
    }

    /// Continues a stop of the venue. Returns whether there is one.
    pub fn renew_stop(
        &mut self,
        block: TradingBlock,
        why: StopReason,
        until: Option<Time>,
    ) -> bool {
        let Some(state) = self.blocks.get_mut(&block) else {
            return false;
        };
        (state.stop, state.until) = (Some(why), until);
        true
    }

    /// Ends a block, and the pauses of strategies that it concerned.
    pub fn end(
        &mut self,
        block: TradingBlock,
        exits: &mut ExitRefusals,
        instruments: &[Instrument],
        now: Time,
    ) -> Option<BlockState> {
        let state = self.blocks.remove(&block)?;
        for ((_, id, side), refusals) in self.refusals.iter_mut().chain(exits) {
            if block.concerns(*id, &instruments[usize::from(id.0)], *side) {
                refusals.pause_until = now;
            }
        }
        Some(state)
    }

    /// Only the venue's own report ends this block: no order is tried.
    pub fn end_trial(&mut self, block: TradingBlock) {
        if let Some(state) = self.blocks.get_mut(&block) {
            state.trial = None;
        }
    }

    /// Whether an account is degraded because of its trading status.
    pub fn blocks_account(&self, surface: Surface) -> bool {
        self.blocks().any(|(block, _)| {
            // `canTrade` has its own degraded reason.
            let other = !matches!(block, TradingBlock::CanTrade(_));
            block.account() == Some(surface) && other
        })
    }

    /// Whether accounts are blocked, and on each of them one order may be tried to find out whether
    /// the venue accepts orders again.
    pub fn are_accounts_on_trial(&self) -> bool {
        let mut of_accounts = self
            .blocks()
            .filter(|(block, _)| block.account().is_some())
            .peekable();
        of_accounts.peek().is_some() && of_accounts.all(|(_, state)| state.on_trial)
    }

    /// Since when the venue refuses the countdown of an instrument, to this key or in general.
    pub fn countdown_refused_since(
        &self,
        surface: Surface,
        instrument: InstrumentId,
    ) -> Option<Time> {
        let blocks = [
            TradingBlock::Key(surface),
            TradingBlock::Countdown(instrument),
        ];
        let states = blocks.iter().filter_map(|block| self.blocks.get(block));
        states.map(|state| state.since).min()
    }

    /// Counts a refused opening order. Returns the number of refusals in its series.
    pub fn count_refusal(&mut self, party: Party, refusal: &Refusal, now: Time) -> u32 {
        count_opening(&mut self.refusals, party, refusal, now)
    }

    /// The venue rejected an order for the reason of a block.
    pub fn note_rejected(&mut self, block: TradingBlock) {
        if let Some(state) = self.blocks.get_mut(&block) {
            state.rejected += 1;
        }
    }

    /// Counts a refusal because of an asset's balance. Returns whether enough of them agree.
    pub fn note_insufficient_balance(
        &mut self,
        surface: Surface,
        asset: AssetId,
        now: Time,
    ) -> bool {
        let is_blocked = self.has(TradingBlock::Funds(surface, asset));
        let (times, last) = self
            .insufficient_balances
            .entry((surface, asset))
            .or_default();
        (*times, *last) = (times.saturating_add(1), now);
        *times >= FUNDS_AGREE || is_blocked
    }

    /// Handles an order that the venue accepted: it disproves earlier refusals of similar orders.
    pub fn accept(
        &mut self,
        exits: &mut ExitRefusals,
        order: &Order,
        rules: &Instrument,
    ) -> Disproved {
        let (terms, submitted) = (&order.terms, order.submitted);
        let party = (order.strategy, terms.instrument, terms.side);
        let (surface, asset) = (rules.surface, spends(rules, terms.side));
        let mut found = Disproved::default();
        let older = |refusals: &Refusals| submitted >= refusals.since;
        for series in [&mut self.refusals, exits] {
            if series.get(&party).is_some_and(older) {
                found.series.extend(series.remove(&party));
            }
        }
        let mut disproved = vec![TradingBlock::Key(surface), TradingBlock::Account(surface)];
        if opens(terms) {
            let is_later = |short: &(u32, Time)| submitted >= short.1;
            let short = self.insufficient_balances.get(&(surface, asset));
            if short.is_some_and(is_later) {
                self.insufficient_balances.remove(&(surface, asset));
            }
            disproved.extend([
                TradingBlock::ReduceOnly(surface),
                TradingBlock::Instrument(terms.instrument),
                TradingBlock::Funds(surface, asset),
            ]);
        }
        let is_over = |block: &TradingBlock| {
            let state = self.blocks.get(block);
            state.is_some_and(|state| submitted >= state.since)
        };
        found.blocks = disproved.into_iter().filter(is_over).collect();
        if let Some(right) = self.rights.get_mut(&surface)
            && submitted >= right.order_denied
        {
            right.orders_denied = 0;
        }
        found
    }

    /// Handles a refusal of the key on a route that needs the trading right.
    pub fn deny_trading_right(&mut self, surface: Surface, of_order: bool, now: Time) -> Denied {
        let key = TradingBlock::Key(surface);
        let is_blocked = self.has(key);
        let right = self.rights.entry(surface).or_default();
        if right.denied == 0 {
            right.denied_since = now;
        }
        right.denied = right.denied.saturating_add(1);
        if of_order {
            right.orders_denied = right.orders_denied.saturating_add(1);
            right.order_denied = now;
        }
        if right.denied >= KEY_AGREES {
            return Denied {
                block: Some(key),
                probes: false,
            };
        }
        let block = if is_blocked {
            // The operator allowed one trial order. Two responses had agreed before, so one more
            // suffices.
            right.next.get_or_insert(now);
            Some(key)
        } else {
            // Ambiguous on its own: another route is tested at once.
            right.next = Some(now);
            // Other routes accept the key, and no order is accepted.
            (right.orders_denied >= ORDERS_DENIED).then_some(TradingBlock::Account(surface))
        };
        Denied {
            block,
            probes: true,
        }
    }

    /// Handles a response that proves the trading right, for a request made at time `asked`.
    /// Returns the block that is over.
    pub fn confirm_trading_right(&mut self, surface: Surface, asked: Time) -> Option<TradingBlock> {
        let begun = self.begun;
        let right = self.rights.entry(surface).or_default();
        let denied = right.denied > 0 && asked < right.denied_since;
        if asked < begun || denied {
            return None;
        }
        right.verified = right.verified.max(Some(asked));
        right.denied = 0;
        right.next = None;
        right.probes = 0;
        let key = TradingBlock::Key(surface);
        let began = self.blocks.get(&key).map(|state| state.since);
        began.is_some_and(|since| asked >= since).then_some(key)
    }

    /// The trading right is probed now.
    pub fn probe_now(&mut self, surface: Surface, now: Time) {
        let right = self.rights.entry(surface).or_default();
        right.next = Some(now);
    }

    /// A probe of the trading right was answered.
    pub fn note_probed(&mut self, surface: Surface, now: Time) {
        if let Some(right) = self.rights.get_mut(&surface) {
            right.asked = None;
            right.next = Some(now.plus_ms(doubled(PROBE_MS, right.probes)));
            right.probes = right.probes.saturating_add(1);
        }
    }

    /// Whether the trading right is probed now, if no other response has proven it for long.
    pub fn is_probe_due(&mut self, surface: Surface, now: Time) -> bool {
        let right = self.rights.entry(surface).or_default();
        let waits = right
            .asked
            .is_some_and(|at| now < at.plus_ms(PROBE_LOST_MS));
        let due = match (right.next, right.verified) {
            (Some(next), _) => now >= next,
            (None, Some(verified)) => now >= verified.plus_ms(VERIFY_MS),
            (None, None) => true,
        };
        due && !waits
    }

    /// A probe of the trading right is sent.
    pub fn note_probe(&mut self, surface: Surface, now: Time) {
        let right = self.rights.entry(surface).or_default();
        right.asked = Some(now);
    }

    /// Blocks that end by time, or because the available balance of their asset rose.
    pub fn ended_blocks(
        &self,
        available: impl Fn(Surface, AssetId) -> Amount,
        now: Time,
    ) -> Vec<TradingBlock> {
        let is_over = |(block, state): &(TradingBlock, &BlockState)| {
            let came = match block {
                TradingBlock::Funds(surface, asset) => {
                    available(*surface, *asset) > state.available
                }
                _ => false,
            };
            came || state.until.is_some_and(|until| now >= until)
        };
        let over = self.blocks().filter(is_over);
        over.map(|(block, _)| block).collect()
    }

    /// Lets one order be tried for each account whose pause is over. Returns whether there is one.
    pub fn begin_trials(&mut self, now: Time) -> bool {
        let mut tries = false;
        for (block, state) in &mut self.blocks {
            let due = state.trial.is_some_and(|at| now >= at) && !state.on_trial;
            // A strategy that waits for a ready account would never try an order.
            if due && block.account().is_some() {
                state.on_trial = true;
                tries = true;
            }
        }
        tries
    }

    /// The instruments whose countdown is tried again now.
    pub fn countdowns_to_try(&self, now: Time) -> Vec<InstrumentId> {
        let due = self.blocks().filter_map(|(block, state)| match block {
            TradingBlock::Countdown(id) if state.trial.is_some_and(|at| now >= at) => Some(id),
            _ => None,
        });
        due.collect()
    }

    /// A countdown is tried again: the next try waits for a longer pause.
    pub fn note_countdown_tried(&mut self, instrument: InstrumentId, now: Time) {
        let block = TradingBlock::Countdown(instrument);
        if let Some(state) = self.blocks.get_mut(&block) {
            state.trials += 1;
            state.trial = Some(now.plus_ms(doubled(trial_ms(block), state.trials)));
        }
    }

    /// Handles `resume`: one order may be tried at once, and pauses end. Returns the blocks for
    /// which there is something to try.
    pub fn try_again(
        &mut self,
        exits: &mut ExitRefusals,
        crossings: &mut Crossings,
        instruments: &[Instrument],
        now: Time,
    ) -> Vec<TradingBlock> {
        let mut tried = Vec::new();
        for (block, state) in &mut self.blocks {
            if ends_by_snapshot(*block, instruments) {
                continue;
            }
            state.trial = Some(now);
            state.trials = 0;
            state.on_trial = block.account().is_some();
            tried.push(*block);
        }
        let openings = self.refusals.values_mut();
        let paused = openings.chain(exits.values_mut());
        for series in paused.chain(crossings.0.values_mut()) {
            series.pause_until = series.pause_until.min(now);
        }
        self.insufficient_balances.clear();
        for right in self.rights.values_mut() {
            *right = Right::default();
        }
        tried
    }
}

/// Whether only the venue's own reports end a block: an order cannot show its end.
fn ends_by_snapshot(block: TradingBlock, instruments: &[Instrument]) -> bool {
    match block {
        TradingBlock::CanTrade(_) | TradingBlock::Stopped(_) | TradingBlock::StaleMarket(_) => true,
        TradingBlock::Instrument(id) => {
            let rules = instruments.get(usize::from(id.0));
            rules.is_some_and(|rules| rules.status != SymbolStatus::Trading)
        }
        _ => false,
    }
}
