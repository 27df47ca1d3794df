//! The venue's responses as evidence for the trading status.
//!
//! One refusal suffices if its code names the account or the instrument. A refusal because of the
//! key is ambiguous: a second response on a route that needs the trading right must confirm it. A
//! refusal because of the balance suffices if nothing is available; otherwise three in a row are
//! needed.

use windvane_model::decimal::Amount;
use windvane_model::effect::{NotPlaced, Notice};
use windvane_model::ids::{ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::live::StopReason;
use windvane_model::order::{OrderTerms, Surface};
use windvane_model::order_state::{OrderMove, OrderState};
use windvane_model::orders::Order;
use windvane_model::protocol::{OrderReport, Outcome, Refusal};
use windvane_model::refusal::Blame;
use windvane_model::trading::{BlockState, Refusals, TradingBlock, spends};

use super::super::Engine;
use super::{Party, Right, Trading, doubled, opens};

/// This many responses about the key must agree.
const KEY_AGREES: u32 = 2;
/// After this many orders are refused because of the key while other routes accept it, the account
/// is blocked.
const ORDERS_DENIED: u32 = 3;
/// This many refusals because of the balance must agree while some balance is available.
const FUNDS_AGREE: u32 = 3;
/// Time between two probes of the trading right while it is denied, doubled up to the second bound.
const PROBE_MS: (i64, i64) = (5_000, 300_000);
/// After this many refusals in a row, the strategy must pause.
pub(super) const FREE_REFUSALS: u32 = 2;
/// The pause after the next refusal, doubled with each one up to the second bound.
const PAUSE_MS: (i64, i64) = (500, 60_000);
/// The longest pause after refused exits: a position must not stay open for long once the venue
/// accepts exits again.
const PAUSE_EXIT_MS: i64 = 5_000;
/// The longest pause after orders that were not sent: the reasons are the engine's own and end by
/// themselves.
const PAUSE_NOT_SENT_MS: i64 = 5_000;
/// A refusal this long after the last one begins a new series.
const SERIES_MS: i64 = 120_000;
/// This many closes in a row with status REJECTED count as "there is nothing to reduce".
const REJECTED_CLOSES: usize = 3;
/// The code that an order event implies without stating it.
const NEW_ORDER_REJECTED: i32 = -2010;
/// `CANCEL_REJECTED` and `NO_SUCH_ORDER`: the key may cancel, and there is nothing to cancel.
const NOTHING_TO_CANCEL: [i32; 2] = [-2011, -2013];

/// Counts one refusal, and sets a pause of at most `most_ms` after the free ones. Returns the
/// number of refusals.
pub(super) fn count_one(
    refusals: &mut Refusals,
    now: Time,
    code: i32,
    most_ms: Option<i64>,
) -> u32 {
    let over = refusals.last.max(refusals.pause_until).plus_ms(SERIES_MS);
    if refusals.count == 0 || now > over {
        *refusals = Refusals {
            since: now,
            ..Refusals::default()
        };
    }
    refusals.count = refusals.count.saturating_add(1);
    refusals.last = now;
    refusals.code = code;
    if refusals.count > FREE_REFUSALS {
        let pause_ms = doubled(PAUSE_MS, refusals.count - FREE_REFUSALS - 1);
        let most_ms = most_ms.unwrap_or(PAUSE_MS.1);
        refusals.pause_until = now.plus_ms(pause_ms.min(most_ms));
    }
    refusals.count
}

impl Engine {
    /// Handles an order that the venue rejected or that was not sent.
    pub(in super::super) fn note_not_placed(&mut self, seq: OrderSeq, refusal: &Refusal) {
        let Some(order) = self.orders.known(seq).cloned() else {
            return;
        };
        let party = (order.strategy, order.instrument(), order.terms.side);
        let mut count = 1;
        if self.live.is_some() {
            count = self.count_refusal(party, &order.terms, refusal);
            self.take_blame(seq, refusal);
        }
        self.notices.push_back(Notice::NotPlaced {
            time: self.now,
            order,
            words: NotPlaced {
                sent: !refusal.is_not_sent(),
                code: refusal.code,
                reason: refusal.msg.clone(),
                count,
            },
        });
    }

    /// Handles an order that the venue reports as REJECTED, without a code. After several such
    /// closes, the engine concludes that there is nothing to reduce, as far as refusals without a
    /// reason allow it.
    pub(in super::super) fn note_rejected(
        &mut self,
        seq: OrderSeq,
        mv: OrderMove,
        before: OrderState,
    ) {
        if mv == OrderMove::Reject && before.after(mv).is_some() {
            let refusal = Refusal {
                code: NEW_ORDER_REJECTED,
                msg: "the order has the status REJECTED".to_owned(),
            };
            self.note_not_placed(seq, &refusal);
            if self.rejected_closes(seq) >= REJECTED_CLOSES {
                self.note_refused_close(seq);
            }
        }
    }

    /// The number of closes in a row, up to this one, that the venue reported as REJECTED. Opening
    /// orders, and closes that were not sent, prove nothing about the position.
    fn rejected_closes(&self, seq: OrderSeq) -> usize {
        let is_close = |order: &&Order| self.only_reduces(&order.terms);
        let Some(last) = self.orders.known(seq).filter(is_close) else {
            return 0;
        };
        let party = |order: &Order| (order.strategy, order.instrument(), order.terms.side);
        let since = self.now.plus_ms(-SERIES_MS);
        let (_, ended) = self.orders.all();
        let before = ended.rev().filter(is_close).filter(|order| {
            order.seq != seq && party(order) == party(last) && order.venue_order_id.is_some()
        });
        let rejected = before.take_while(|order| {
            order.state == OrderState::Rejected && order.ended.is_some_and(|at| at >= since)
        });
        rejected.count() + 1
    }

    fn count_refusal(&mut self, party: Party, terms: &OrderTerms, refusal: &Refusal) -> u32 {
        if !opens(terms) || self.closes_held(party.0, terms) {
            let refusals = self.exit_refusals.entry(party).or_default();
            return count_one(refusals, self.now, refusal.code, Some(PAUSE_EXIT_MS));
        }
        let most_ms = refusal.is_not_sent().then_some(PAUSE_NOT_SENT_MS);
        let refusals = self.trading.refusals.entry(party).or_default();
        count_one(refusals, self.now, refusal.code, most_ms)
    }

    /// Whether an order closes at most the strategy's position.
    fn closes_held(&self, strategy: StrategyId, terms: &OrderTerms) -> bool {
        let own = &self.ledgers.strategies[usize::from(strategy.0)];
        let held = own.at(terms.instrument, terms.position_side).position.qty;
        let closable = -held * terms.side.sign();
        terms.qty.is_some_and(|qty| qty.0 <= closable)
    }

    fn take_blame(&mut self, seq: OrderSeq, refusal: &Refusal) {
        let Some(order) = self.orders.known(seq) else {
            return;
        };
        let terms = order.terms;
        let rules = &self.instruments[usize::from(terms.instrument.0)];
        let (surface, asset) = (rules.surface, spends(rules, terms.side));
        let code = refusal.code;
        let block = match refusal.blame() {
            Blame::Key => {
                self.deny_right(surface, code, true);
                TradingBlock::Key(surface)
            }
            Blame::Account => {
                self.block(TradingBlock::Account(surface), code);
                TradingBlock::Account(surface)
            }
            Blame::ReduceOnly if opens(&terms) => {
                self.block(TradingBlock::ReduceOnly(surface), code);
                TradingBlock::ReduceOnly(surface)
            }
            Blame::Instrument => {
                self.block(TradingBlock::Instrument(terms.instrument), code);
                TradingBlock::Instrument(terms.instrument)
            }
            Blame::Funds if opens(&terms) => {
                self.lack_funds(surface, asset, code);
                TradingBlock::Funds(surface, asset)
            }
            Blame::NotSent | Blame::ReduceOnly | Blame::Funds | Blame::Limit | Blame::Order => {
                return;
            }
        };
        if let Some(state) = self.trading.blocks.get_mut(&block) {
            state.rejected += 1;
        }
    }

    fn lack_funds(&mut self, surface: Surface, asset: windvane_model::AssetId, code: i32) {
        let block = TradingBlock::Funds(surface, asset);
        let (times, last) = self.trading.short_of.entry((surface, asset)).or_default();
        (*times, *last) = (times.saturating_add(1), self.now);
        let agreed = *times >= FUNDS_AGREE || self.trading.blocks.contains_key(&block);
        if agreed || self.available(surface, asset) <= Amount::ZERO {
            self.block(block, code);
        }
    }

    /// Handles an order that the venue accepted: it disproves earlier refusals of similar orders.
    pub(in super::super) fn note_accepted(&mut self, seq: OrderSeq) {
        let Some(order) = self.orders.known(seq).filter(|_| self.live.is_some()) else {
            return;
        };
        let (terms, submitted) = (order.terms, order.submitted);
        let party = (order.strategy, terms.instrument, terms.side);
        let rules = &self.instruments[usize::from(terms.instrument.0)];
        let (surface, asset) = (rules.surface, spends(rules, terms.side));
        let older = |refusals: &Refusals| submitted >= refusals.since;
        for series in [&mut self.trading.refusals, &mut self.exit_refusals] {
            if series.get(&party).is_some_and(older)
                && let Some(refusals) = series.remove(&party)
            {
                self.notices.push_back(Notice::RefusalsOver {
                    time: self.now,
                    strategy: party.0,
                    instrument: party.1,
                    refusals,
                });
            }
        }
        let mut disproved = vec![TradingBlock::Key(surface), TradingBlock::Account(surface)];
        if opens(&terms) {
            let is_later = |short: &(u32, Time)| submitted >= short.1;
            if self
                .trading
                .short_of
                .get(&(surface, asset))
                .is_some_and(is_later)
            {
                self.trading.short_of.remove(&(surface, asset));
            }
            disproved.extend([
                TradingBlock::ReduceOnly(surface),
                TradingBlock::Instrument(terms.instrument),
                TradingBlock::Funds(surface, asset),
            ]);
        }
        for block in disproved {
            let began = self.trading.blocks.get(&block).map(|state| state.since);
            if began.is_some_and(|since| submitted >= since) {
                self.unblock(block);
            }
        }
        if let Some(right) = self.trading.rights.get_mut(&surface)
            && submitted >= right.order_denied
        {
            right.orders_denied = 0;
        }
        self.show_right(surface, submitted);
    }

    /// Handles a response to a cancel. Returns whether the cancel was a probe of the trading right.
    pub(in super::super) fn note_cancel(
        &mut self,
        id: &ClientOrderId,
        outcome: &Outcome<OrderReport>,
    ) -> bool {
        let probed = self.probed(id);
        let own = self.known(id).and_then(|seq| self.orders.known(seq));
        let of_own = own.map(|order| self.surface_of(order.instrument()));
        let Some(surface) = probed.or(of_own).filter(|_| self.live.is_some()) else {
            return false;
        };
        if probed.is_some()
            && let Some(right) = self.trading.rights.get_mut(&surface)
        {
            right.asked = None;
            right.next = Some(self.now.plus_ms(doubled(PROBE_MS, right.probes)));
            right.probes = right.probes.saturating_add(1);
        }
        match outcome {
            Outcome::Done(_) => self.show_right(surface, self.now),
            Outcome::Refused(refusal) if NOTHING_TO_CANCEL.contains(&refusal.code) => {
                self.show_right(surface, self.now);
            }
            Outcome::Refused(refusal) if refusal.blame() == Blame::Key => {
                self.deny_right(surface, refusal.code, false);
            }
            Outcome::Refused(_) | Outcome::Unknown => {}
        }
        probed.is_some()
    }

    /// Handles a response to a countdown request, which also needs the trading right.
    pub(in super::super) fn note_countdown(&mut self, id: InstrumentId, outcome: &Outcome<u64>) {
        let surface = self.instrument(id).map(|rules| rules.surface);
        let Some(surface) = surface.filter(|_| self.live.is_some()) else {
            return;
        };
        match outcome {
            Outcome::Done(_) => self.show_right(surface, self.now),
            Outcome::Refused(refusal) if refusal.blame() == Blame::Key => {
                self.deny_right(surface, refusal.code, false);
            }
            Outcome::Refused(_) | Outcome::Unknown => {}
        }
    }

    /// Handles a refusal of the key on a route that needs the trading right.
    fn deny_right(&mut self, surface: Surface, code: i32, of_order: bool) {
        let now = self.now;
        let right = right_of(&mut self.trading, surface);
        if right.denied == 0 {
            right.denied_since = now;
        }
        right.denied = right.denied.saturating_add(1);
        if of_order {
            right.orders_denied = right.orders_denied.saturating_add(1);
            right.order_denied = now;
        }
        let (agreed, of_orders) = (
            right.denied >= KEY_AGREES,
            right.orders_denied >= ORDERS_DENIED,
        );
        let key = TradingBlock::Key(surface);
        if agreed {
            self.block(key, code);
            return;
        }
        if self.trading.blocks.contains_key(&key) {
            // The operator allowed one trial order. Two responses had agreed before, so one more
            // suffices.
            right_of(&mut self.trading, surface).next.get_or_insert(now);
            self.block(key, code);
        } else {
            // Ambiguous on its own: another route is tested at once.
            right_of(&mut self.trading, surface).next = Some(now);
            if of_orders {
                // Other routes accept the key, and no order is accepted.
                self.block(TradingBlock::Account(surface), code);
            }
        }
        self.probe_if_due(surface);
    }

    /// Handles a response that proves the trading right, for a request made at time `asked`.
    fn show_right(&mut self, surface: Surface, asked: Time) {
        let begun = self.trading.begun;
        let right = self.trading.rights.entry(surface).or_default();
        let denied = right.denied > 0 && asked < right.denied_since;
        if asked < begun || denied {
            return;
        }
        right.verified = right.verified.max(Some(asked));
        right.denied = 0;
        right.next = None;
        right.probes = 0;
        let key = TradingBlock::Key(surface);
        let began = self.trading.blocks.get(&key).map(|state| state.since);
        if began.is_some_and(|since| asked >= since) {
            self.unblock(key);
        }
    }

    /// Handles an account snapshot that states whether the account may trade.
    pub(in super::super) fn note_can_trade(&mut self, surface: Surface, can_trade: bool) {
        let block = TradingBlock::CanTrade(surface);
        if !can_trade {
            self.block(block, 0);
        } else if self.trading.blocks.contains_key(&block) {
            // The earlier refusals of orders had the same cause.
            for block in [
                block,
                TradingBlock::Account(surface),
                TradingBlock::ReduceOnly(surface),
            ] {
                self.unblock(block);
            }
            let right = self.trading.rights.entry(surface).or_default();
            right.next = Some(self.now);
        }
    }

    /// Handles a stop: the venue accepts no request on a surface for `for_ms`; 0 if it accepts
    /// requests again.
    pub(in super::super) fn note_stop(&mut self, surface: Surface, why: StopReason, for_ms: i64) {
        let block = TradingBlock::Stopped(surface);
        if for_ms <= 0 {
            self.unblock(block);
            return;
        }
        let until = Some(self.now.plus_ms(for_ms));
        if let Some(state) = self.trading.blocks.get_mut(&block) {
            (state.stop, state.until) = (Some(why), until);
            return;
        }
        let state = BlockState {
            since: self.now,
            until,
            stop: Some(why),
            ..BlockState::default()
        };
        self.begin_block(block, state);
    }
}

fn right_of(trading: &mut Trading, surface: Surface) -> &mut Right {
    trading.rights.entry(surface).or_default()
}
