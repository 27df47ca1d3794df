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
use windvane_model::trading::{BlockState, TradingBlock, spends};
use windvane_supervision::blocks::opens;
use windvane_supervision::refusals::{Party, SERIES_MS, count_exit};

use super::super::Engine;

/// This many closes in a row with status REJECTED count as "there is nothing to reduce".
const REJECTED_CLOSES: usize = 3;
/// The code that an order event implies without stating it.
const NEW_ORDER_REJECTED: i32 = -2010;
/// `CANCEL_REJECTED` and `NO_SUCH_ORDER`: the key may cancel, and there is nothing to cancel.
const NOTHING_TO_CANCEL: [i32; 2] = [-2011, -2013];

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
            self.block_for_refusal(seq, refusal);
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
        if !opens(terms) || self.closes_own_position(party.0, terms) {
            return count_exit(&mut self.exit_refusals, party, refusal.code, self.now);
        }
        self.trading_status.count_refusal(party, refusal, self.now)
    }

    /// Whether an order closes at most the strategy's position.
    fn closes_own_position(&self, strategy: StrategyId, terms: &OrderTerms) -> bool {
        let own = &self.ledgers.strategies[usize::from(strategy.0)];
        let held = own.at(terms.instrument, terms.position_side).position.qty;
        let closable = -held * terms.side.sign();
        terms.qty.is_some_and(|qty| qty.0 <= closable)
    }

    fn block_for_refusal(&mut self, seq: OrderSeq, refusal: &Refusal) {
        let Some(order) = self.orders.known(seq) else {
            return;
        };
        let terms = order.terms;
        let rules = &self.instruments[usize::from(terms.instrument.0)];
        let (surface, asset) = (rules.surface, spends(rules, terms.side));
        let code = refusal.code;
        let block = match refusal.blame() {
            Blame::Key => {
                self.deny_trading_right(surface, code, true);
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
                self.block_for_funds(surface, asset, code);
                TradingBlock::Funds(surface, asset)
            }
            Blame::NotSent | Blame::ReduceOnly | Blame::Funds | Blame::Limit | Blame::Order => {
                return;
            }
        };
        self.trading_status.note_rejected(block);
    }

    fn block_for_funds(&mut self, surface: Surface, asset: windvane_model::AssetId, code: i32) {
        let block = TradingBlock::Funds(surface, asset);
        let agreed = self
            .trading_status
            .note_insufficient_balance(surface, asset, self.now);
        if agreed || self.available(surface, asset) <= Amount::ZERO {
            self.block(block, code);
        }
    }

    /// Handles an order that the venue accepted: it disproves earlier refusals of similar orders.
    pub(in super::super) fn note_accepted(&mut self, seq: OrderSeq) {
        let Some(order) = self.orders.known(seq).filter(|_| self.live.is_some()) else {
            return;
        };
        let (strategy, submitted) = (order.strategy, order.submitted);
        let (instrument, surface) = (order.instrument(), self.surface_of(order.instrument()));
        let rules = &self.instruments[usize::from(instrument.0)];
        let found = self
            .trading_status
            .accept(&mut self.exit_refusals, order, rules);
        for refusals in found.series {
            self.notices.push_back(Notice::RefusalsOver {
                time: self.now,
                strategy,
                instrument,
                refusals,
            });
        }
        for block in found.blocks {
            self.unblock(block);
        }
        self.confirm_trading_right(surface, submitted);
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
        if probed.is_some() {
            self.trading_status.note_probed(surface, self.now);
        }
        match outcome {
            Outcome::Done(_) => self.confirm_trading_right(surface, self.now),
            Outcome::Refused(refusal) if NOTHING_TO_CANCEL.contains(&refusal.code) => {
                self.confirm_trading_right(surface, self.now);
            }
            Outcome::Refused(refusal) if refusal.blame() == Blame::Key => {
                self.deny_trading_right(surface, refusal.code, false);
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
            Outcome::Done(_) => self.confirm_trading_right(surface, self.now),
            Outcome::Refused(refusal) if refusal.blame() == Blame::Key => {
                self.deny_trading_right(surface, refusal.code, false);
            }
            Outcome::Refused(_) | Outcome::Unknown => {}
        }
    }

    /// Handles a refusal of the key on a route that needs the trading right.
    fn deny_trading_right(&mut self, surface: Surface, code: i32, of_order: bool) {
        let denied = self
            .trading_status
            .deny_trading_right(surface, of_order, self.now);
        if let Some(block) = denied.block {
            self.block(block, code);
        }
        if denied.probes {
            self.probe_if_due(surface);
        }
    }

    /// Handles a response that proves the trading right, for a request made at time `asked`.
    fn confirm_trading_right(&mut self, surface: Surface, asked: Time) {
        if let Some(block) = self.trading_status.confirm_trading_right(surface, asked) {
            self.unblock(block);
        }
    }

    /// Handles an account snapshot that states whether the account may trade.
    pub(in super::super) fn note_can_trade(&mut self, surface: Surface, can_trade: bool) {
        let block = TradingBlock::CanTrade(surface);
        if !can_trade {
            self.block(block, 0);
        } else if self.trading_status.has(block) {
            // The earlier refusals of orders had the same cause.
            for block in [
                block,
                TradingBlock::Account(surface),
                TradingBlock::ReduceOnly(surface),
            ] {
                self.unblock(block);
            }
            self.trading_status.probe_now(surface, self.now);
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
        if self.trading_status.renew_stop(block, why, until) {
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
