//! What the venue said, as evidence for the trading status.
//!
//! One refusal is enough where its code names the account or the instrument. A refusal for the key
//! is ambiguous: a second answer on a route that needs the trading right must agree. A refusal for
//! the balance is enough where nothing is available, and else when three in a row agree.

use crate::decimal::Amount;
use crate::effect::{NotPlaced, Notice};
use crate::ids::{ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time};
use crate::live::StopReason;
use crate::order::{OrderTerms, Surface};
use crate::order_state::{OrderMove, OrderState};
use crate::orders::Order;
use crate::protocol::{OrderReport, Outcome, Refusal};
use crate::refusal::Blame;

use super::super::Engine;
use super::{BlockState, Party, Refusals, Right, Trading, TradingBlock, doubled, opens, spends};

/// So many answers about the key agree.
const KEY_AGREES: u32 = 2;
/// So many orders that are refused for the key, while other routes accept it, are about the account.
const ORDERS_DENIED: u32 = 3;
/// So many refusals for the balance agree where some of it is available.
const FUNDS_AGREE: u32 = 3;
/// From one probe of the trading right to the next while it is denied, doubled up to the second
/// bound.
const PROBE_MS: (i64, i64) = (5_000, 300_000);
/// So many refusals in a row pass before the strategy has to pause.
pub(super) const FREE_REFUSALS: u32 = 2;
/// The pause after the next refusal, doubled with each one up to the second bound.
const PAUSE_MS: (i64, i64) = (500, 60_000);
/// The longest pause after refused exits: a position must not stay open for long once the venue takes them.
const PAUSE_EXIT_MS: i64 = 5_000;
/// The longest pause after orders that were not sent: the reasons are ours and end by themselves.
const PAUSE_NOT_SENT_MS: i64 = 5_000;
/// A refusal so long after the last one begins a new series.
const SERIES_MS: i64 = 120_000;
/// So many closes in a row with the status REJECTED are taken as "there is nothing to reduce".
const REJECTED_CLOSES: usize = 3;
/// What an order event says without its code.
const NEW_ORDER_REJECTED: i32 = -2010;
/// `CANCEL_REJECTED` and `NO_SUCH_ORDER`: the key may cancel, and there is nothing to cancel.
const NOTHING_TO_CANCEL: [i32; 2] = [-2011, -2013];

impl Refusals {
    /// Counts one more, and pauses after the free ones: at most for so long. Answers how many there are.
    pub(super) fn count_one(&mut self, now: Time, code: i32, most_ms: Option<i64>) -> u32 {
        let over = self.last.max(self.pause_until).plus_ms(SERIES_MS);
        if self.count == 0 || now > over {
            *self = Self {
                since: now,
                ..Self::default()
            };
        }
        self.count = self.count.saturating_add(1);
        self.last = now;
        self.code = code;
        if self.count > FREE_REFUSALS {
            let pause_ms = doubled(PAUSE_MS, self.count - FREE_REFUSALS - 1);
            let most_ms = most_ms.unwrap_or(PAUSE_MS.1);
            self.pause_until = now.plus_ms(pause_ms.min(most_ms));
        }
        self.count
    }
}

impl Engine {
    /// The venue rejected an order, or it was not sent.
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

    /// The venue says that an order has the status REJECTED, without a code. A close that is refused
    /// so again and again has nothing to reduce, as far as a refusal without a reason can say it.
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

    /// How many closes in a row, up to this one, the venue gave the status REJECTED. Opening orders,
    /// and closes that were not sent, prove nothing about the position.
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
            return refusals.count_one(self.now, refusal.code, Some(PAUSE_EXIT_MS));
        }
        let most_ms = refusal.is_not_sent().then_some(PAUSE_NOT_SENT_MS);
        let refusals = self.trading.refusals.entry(party).or_default();
        refusals.count_one(self.now, refusal.code, most_ms)
    }

    /// Whether an order closes at most what its strategy holds.
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

    fn lack_funds(&mut self, surface: Surface, asset: crate::AssetId, code: i32) {
        let block = TradingBlock::Funds(surface, asset);
        let (times, last) = self.trading.short_of.entry((surface, asset)).or_default();
        (*times, *last) = (times.saturating_add(1), self.now);
        let agreed = *times >= FUNDS_AGREE || self.trading.blocks.contains_key(&block);
        if agreed || self.available(surface, asset) <= Amount::ZERO {
            self.block(block, code);
        }
    }

    /// The venue accepted an order. That disproves what was said before against orders like it.
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

    /// An answer to a cancel. Answers whether it was a probe of the trading right.
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

    /// An answer to a countdown, which needs the trading right too.
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

    /// A route that needs the trading right refused the key.
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
            // A person had one order try. Two answers showed it before, so that one more is enough.
            right_of(&mut self.trading, surface).next.get_or_insert(now);
            self.block(key, code);
        } else {
            // Ambiguous alone: another route is asked at once.
            right_of(&mut self.trading, surface).next = Some(now);
            if of_orders {
                // Other routes accept the key, and no order is accepted.
                self.block(TradingBlock::Account(surface), code);
            }
        }
        self.probe_if_due(surface);
    }

    /// A route that needs the trading right accepted the key, for a request made at that time.
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

    /// An account reading says whether the account may trade.
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

    /// The venue accepts no request on a surface for so long; 0 where it does again.
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
