//! Commissions that the event of a fill leaves out. Spec 2 (`ORDER_TRADE_UPDATE`) omits both
//! commission fields without a commission. So either the commission is zero, or the venue states it
//! only in the balance and in the account trade.
//!
//! - The engine remembers a fill without a commission.
//! - If a balance then differs by at most the possible commissions, the engine reads the account
//!   trades of the fills, at most every [`AGAIN_MS`]. It books each commission once. Until then the
//!   account's loss limits use the balance of the event, and the run stays ready.
//! - If the trade of a fill is not listed after the longest lag, or the account agrees with the
//!   books after the fill, the fill had no commission.
//!
//! If the venue serves no account trades, only the balance shows the commissions. So the engine
//! takes the account event of the fills at once, if its balance is lower by at most the possible
//! commissions. Account snapshots may be behind for as long as fills go on; they correct the
//! balance if no account event came. Each fill gets its share of the change in proportion to its
//! value.

mod estimates;
mod stated;

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{Amount, div_half_even};
use windvane_model::effect::Notice;
use windvane_model::ids::{
    AssetId, InstrumentId, OrderSeq, StrategyId, Time, TradeId, VenueOrderId,
};
use windvane_model::ledger::{Grains, NetFill};
use windvane_model::order::{PositionSide, Qty, Side, Surface};
use windvane_model::planted;
use windvane_model::protocol::{BalanceUpdate, Fill, OrderUpdate};
use windvane_model::truth::{AccountTrade, AccountTruth};

use super::Engine;
use super::lag::READ_LAG_MS;
use super::reconcile::{Round, Step};
use super::session::Line;
use super::snapshot::Names;

pub(super) use estimates::{ESTIMATED_MS, EstimatedFee};

/// Events of this surface may leave out commissions.
const SURFACE: Surface = Surface::Futures;
/// Time between two reads of account trades: one read returns the commissions of all fills in
/// between.
const AGAIN_MS: i64 = 3_000;
/// The largest commission of a fill while no rate is known, in ppm: 1 percent. The documents name
/// no bound.
const FEE_MAX_PPM: i64 = 10_000;
/// The smallest bound once a rate is known, in ppm: 0.1 percent. A maker's rate says nothing about
/// a taker's.
const FEE_USUAL_PPM: i64 = 1_000;
/// At most this many fills are remembered.
const WAITING_MAX: usize = 1_000;

/// Fills whose commission is not known.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LateFees {
    waiting: VecDeque<LateFee>,
    /// A balance differs, so account trades must be read.
    wanted: bool,
    /// When account trades were last read for commissions.
    asked: Option<Time>,
    /// The highest commission that account trades stated for such fills, in ppm of the fill.
    highest_ppm: Option<i64>,
}

/// The fills that an account snapshot contains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Contained {
    /// Every booked fill.
    All,
    /// The fills that the venue made up to this time.
    UpTo(Time),
}

impl Contained {
    /// Whether the snapshot contains a fill of this time. A fill of unknown time may be newer.
    pub(super) fn has(self, made: Time) -> bool {
        match self {
            Self::All => true,
            Self::UpTo(taken) => made != Time::default() && made <= taken,
        }
    }
}

/// A fill whose commission is not known.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LateFee {
    instrument: InstrumentId,
    side: PositionSide,
    owner: Option<StrategyId>,
    order_id: VenueOrderId,
    trade_id: TradeId,
    value: Amount,
    /// The venue's time of the fill.
    made: Time,
    booked: Time,
    /// An account snapshot that contains the fill was accepted: its balance includes the
    /// commission.
    in_reading: bool,
}

impl LateFee {
    /// Whether a list requested at this time contains the trade.
    pub(super) fn is_listed_by(&self, asked: Time) -> bool {
        asked >= self.booked.plus_ms(READ_LAG_MS)
    }

    /// The identity of the fill.
    pub(super) const fn key(&self) -> (InstrumentId, VenueOrderId, TradeId) {
        (self.instrument, self.order_id, self.trade_id)
    }

    /// The same fill under the ids of another configuration; `None` if that has no such instrument.
    pub(super) fn renamed(&self, names: &Names) -> Option<Self> {
        let instrument = *names.instruments.get(&self.instrument)?;
        let owner = self.owner;
        let owner = owner.and_then(|owner| names.strategies.get(&owner).copied());
        Some(Self {
            instrument,
            owner,
            ..*self
        })
    }

    /// Notes that an account snapshot which contains these fills was accepted.
    pub(super) fn note_reading(&mut self, contained: Contained) {
        self.in_reading |= contained.has(self.made);
    }

    /// The order id is compared too, because two own orders that traded with each other share a
    /// trade id.
    fn is_same_fill(&self, other: &Self) -> bool {
        let id = |late: &Self| (late.instrument, late.trade_id, late.order_id);
        id(self) == id(other)
    }
}

impl Engine {
    /// Remembers a fill that was booked without a commission.
    pub(super) fn note_late_fee(
        &mut self,
        owner: Option<StrategyId>,
        update: &OrderUpdate,
        fill: &Fill,
        in_reading: bool,
    ) {
        let is_told = fill.fee != Amount::ZERO || fill.trade_id.0 <= 0;
        if is_told
            || planted!(LateFeesIgnored)
            || self.surface_of(update.instrument) != SURFACE
            || self.line_mut(SURFACE).is_none()
        {
            return;
        }
        self.wait_for_fee(LateFee {
            instrument: update.instrument,
            side: update.position_side,
            owner,
            order_id: update.order_id,
            trade_id: fill.trade_id,
            value: fill.quote_qty,
            made: update.transaction_time,
            booked: self.now,
            in_reading,
        });
    }

    fn wait_for_fee(&mut self, late: LateFee) {
        let waiting = &mut self.late_fees.waiting;
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(late);
    }

    /// Whether the account matches the statement, apart from commissions that account trades will
    /// state.
    pub(super) fn awaits_fees(&self, surface: Surface, statement: &AccountTruth) -> bool {
        self.tells_trades() && self.differs_by_fees(surface, statement)
    }

    fn tells_trades(&self) -> bool {
        let live = self.live.as_ref();
        let line = live.and_then(|live| live.lines.get(&SURFACE));
        line.is_some_and(|line| !line.no_trades)
    }

    /// Whether commissions of fills without a booked one, which account trades will state, may
    /// lower a balance by this amount.
    pub(super) fn may_lack_fees(&self, surface: Surface, asset: AssetId, moved: Amount) -> bool {
        let is_lower = surface == SURFACE && moved < Amount::ZERO;
        let waiting = || self.waiting_outside_reading();
        is_lower && self.tells_trades() && self.may_be_fees_of(&waiting(), asset, moved)
    }

    /// Like [`Engine::may_lack_fees`], or account trades will replace an estimate.
    pub(super) fn may_await_fees(&self, surface: Surface, asset: AssetId, moved: Amount) -> bool {
        let is_possible = surface == SURFACE && self.tells_trades();
        self.may_lack_fees(surface, asset, moved)
            || (is_possible && self.may_be_estimates(&self.waiting_outside_reading(), asset, moved))
    }

    /// Whether the account matches the statement, apart from unknown commissions.
    fn differs_by_fees(&self, surface: Surface, statement: &AccountTruth) -> bool {
        let differs = |told: &BalanceUpdate| {
            let moved = told.total - self.balance(surface, told.asset).total;
            (moved != Amount::ZERO).then(|| self.may_be_fees(told.asset, moved))
        };
        let mut different = statement.balances.iter().filter_map(differs).peekable();
        surface == SURFACE
            && (!self.late_fees.waiting.is_empty() || self.has_young_estimate())
            && self.positions_agree(&statement.positions)
            && different.peek().is_some()
            && different.all(|may_be| may_be)
    }

    fn may_be_fees(&self, asset: AssetId, moved: Amount) -> bool {
        let waiting = self.waiting_outside_reading();
        self.may_be_fees_of(&waiting, asset, moved) || self.may_be_estimates(&waiting, asset, moved)
    }

    fn waiting_outside_reading(&self) -> Vec<LateFee> {
        let waiting = self.late_fees.waiting.iter();
        waiting.filter(|late| !late.in_reading).copied().collect()
    }

    /// The highest possible commission of a fill with this value.
    fn most_fee(&self, value: Amount) -> i128 {
        // The price of another asset changes between the fill and the comparison.
        let known = self.late_fees.highest_ppm;
        let usual = |ppm: i64| (ppm.saturating_mul(3) / 2).max(FEE_USUAL_PPM);
        let most_ppm = known.map_or(FEE_MAX_PPM, usual);
        value.abs().part(most_ppm, 1_000_000).0
    }

    /// Whether the commissions of these fills may change a balance by this amount.
    fn may_be_fees_of(&self, fills: &[LateFee], asset: AssetId, moved: Amount) -> bool {
        let most = |late: &LateFee| self.most_fee(late.value);
        let in_asset = fills.iter().filter(|late| self.quote_of(late) == asset);
        let own: i128 = in_asset.map(most).sum();
        if own > 0 {
            return moved.abs().0 <= own;
        }
        let all: i128 = fills.iter().map(most).sum();
        let value = self.value_in_equity(asset, moved);
        all > 0 && value.is_none_or(|value| value.abs().0 <= all)
    }

    /// The quote asset of a fill's instrument.
    fn quote_of(&self, late: &LateFee) -> AssetId {
        self.instruments[usize::from(late.instrument.0)].quote
    }

    /// The change of equity that a pending account event shows for commissions that are not booked
    /// yet.
    pub(super) fn fees_to_come(&self) -> Amount {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&SURFACE));
        let statement = line.and_then(|line| line.told.as_ref());
        let Some((statement, _)) = statement.filter(|(told, _)| self.awaits_fees(SURFACE, told))
        else {
            return Amount::ZERO;
        };
        // A commission lowers equity. An increase of a balance may be a deposit.
        self.gain_of_fees(statement).min(Amount::ZERO)
    }

    /// The difference of the balances, in the equity asset.
    fn gain_of_fees(&self, statement: &AccountTruth) -> Amount {
        let balances = statement.balances.iter().map(|told| {
            let moved = told.total - self.balance(SURFACE, told.asset).total;
            if self.is_outside_equity(SURFACE, told.asset) {
                let value = self.value_in_equity(told.asset, moved);
                value.unwrap_or_else(|| -self.estimated_fees(-moved) - self.young_sum(-moved))
            } else {
                self.worth(SURFACE, told.asset, moved)
            }
        });
        balances.sum()
    }

    /// The estimated value of paid commissions in an asset without a price, from the value of their
    /// fills.
    pub(super) fn estimated_fees(&self, paid: Amount) -> Amount {
        let waiting = self.late_fees.waiting.iter();
        let waiting = waiting.filter(|late| !late.in_reading);
        if paid > Amount::ZERO {
            self.estimated_fees_of(waiting)
        } else {
            Amount::ZERO
        }
    }

    fn estimated_fees_of<'a>(&self, fills: impl Iterator<Item = &'a LateFee>) -> Amount {
        let live = self.live.as_ref();
        let fee_ppm = live.map_or(0, |live| live.config.fee_estimate_ppm);
        fills.map(|late| late.value.part(fee_ppm, 1_000_000)).sum()
    }

    /// Requests account trades, because a balance differs by at most the possible commissions.
    pub(super) fn want_fees(&mut self) {
        self.late_fees.wanted = true;
    }

    /// Reads account trades for commissions, if a balance differs and no other read is running.
    pub(super) fn ask_for_fees(&mut self, surface: Surface) {
        let is_due = |asked: Time| self.now >= asked.plus_ms(AGAIN_MS);
        let is_due = self.late_fees.asked.is_none_or(is_due) && self.fee_trades().next().is_some();
        if surface != SURFACE || !self.late_fees.wanted || !is_due {
            return;
        }
        let idle = |line: &mut Line| line.round.is_idle() && line.stream_up && !line.no_trades;
        if self.line_mut(SURFACE).is_some_and(idle) {
            let step = self.step_of_fees();
            if let Some(line) = self.line_mut(SURFACE) {
                line.round = Round::of_step(step);
            }
            self.ask_next(SURFACE);
        }
    }

    /// The step of a round that reads the trades of fills without a commission.
    pub(super) fn step_of_fees(&mut self) -> Step {
        self.late_fees.asked = Some(self.now);
        let instruments: BTreeSet<_> = self.fee_trades().map(|(id, _)| id).collect();
        Step::Fees(instruments.into_iter().collect())
    }

    /// The first trade of an instrument to read for commissions.
    pub(super) fn first_late_fee(&self, instrument: InstrumentId) -> Option<TradeId> {
        let of_instrument = self.fee_trades().filter(|(id, _)| *id == instrument);
        of_instrument.map(|(_, trade_id)| trade_id).min()
    }

    /// The fills whose account trades may state a commission.
    fn fee_trades(&self) -> impl Iterator<Item = (InstrumentId, TradeId)> {
        let fills = self.late_fee_fills();
        fills.map(|late| (late.instrument, late.trade_id))
    }

    /// The fills whose event left out the commission: without a booked commission, or with an
    /// estimate.
    fn late_fee_fills(&self) -> impl Iterator<Item = &LateFee> {
        let waiting = self.late_fees.waiting.iter();
        waiting.chain(self.stated_fills.unstated())
    }

    fn late_fee_count(&self) -> usize {
        self.late_fee_fills().count()
    }

    /// Takes the trades that were requested for commissions.
    pub(super) fn take_fee_trades(
        &mut self,
        instrument: InstrumentId,
        trades: &[AccountTrade],
        more: bool,
    ) {
        self.settle_fees(instrument, trades);
        let newest = trades.iter().map(|trade| trade.fill.trade_id).max();
        let asked = self.late_fees.asked.unwrap_or_default();
        let had = self.late_fee_count();
        let may_come = |late: &LateFee| {
            let is_over = !more || newest.is_some_and(|newest| late.trade_id < newest);
            late.instrument != instrument || !is_over || !late.is_listed_by(asked)
        };
        self.late_fees.waiting.retain(may_come);
        self.stated_fills.retain_unstated(may_come);
        let left = self.late_fee_count();
        let wanted = self.late_fee_fills().any(|late| late.booked <= asked);
        self.late_fees.wanted = wanted;
        let Some(line) = self.line_mut(SURFACE) else {
            return;
        };
        if let Step::Fees(left) = &mut line.round.step {
            left.pop_front();
        }
        self.explain_statement(SURFACE);
        self.watch_losses_after_fill();
        self.ask_next(SURFACE);
        if left < had {
            // Account trades do not explain the present difference.
            self.reconcile_soon(SURFACE);
        }
    }

    /// Books the commissions that account trades state for fills without one.
    pub(super) fn settle_fees(&mut self, instrument: InstrumentId, trades: &[AccountTrade]) {
        for trade in trades {
            let key = (instrument, trade.order_id, trade.fill.trade_id);
            if let Some((late, estimate)) = self.take_unstated(key) {
                self.book_late_fee(&late, &trade.fill, estimate);
                continue;
            }
            let is_same = |late: &LateFee| {
                late.instrument == instrument
                    && (late.trade_id, late.order_id) == (trade.fill.trade_id, trade.order_id)
            };
            let waiting = &mut self.late_fees.waiting;
            if let Some(place) = waiting.iter().position(is_same) {
                let late = if planted!(LateFeeTwice) {
                    waiting.get(place).copied()
                } else {
                    waiting.remove(place)
                };
                let fee = trade.fill.fee;
                if fee == Amount::ZERO {
                    self.note_rate(Amount::ZERO, trade.fill.quote_qty);
                } else if let Some(late) = late {
                    self.book_late_fee(&late, &trade.fill, Amount::ZERO);
                }
            }
        }
    }

    /// Notes the rate of a commission that a trade stated: its cost and the value of its fill.
    fn note_rate(&mut self, cost: Amount, value: Amount) {
        let parts = cost.abs().0.saturating_mul(1_000_000);
        let ppm = parts.checked_div(value.abs().0).unwrap_or_default();
        let ppm = i64::try_from(ppm).unwrap_or(FEE_MAX_PPM).min(FEE_MAX_PPM);
        // Rounded up, so that any commission counts as at least one ppm.
        let ppm = ppm + i64::from(cost != Amount::ZERO);
        self.late_fees.highest_ppm = self.late_fees.highest_ppm.max(Some(ppm));
    }

    /// Books the commission of a fill that was booked with this estimate.
    fn book_late_fee(&mut self, late: &LateFee, fill: &Fill, estimate: Amount) {
        let (fee, asset) = (fill.fee, fill.fee_asset);
        let in_reading = late.in_reading;
        let rules = &self.instruments[usize::from(late.instrument.0)];
        let (surface, quote) = (rules.surface, rules.quote);
        let surface = if planted!(LateFeeOnFutures) {
            SURFACE
        } else {
            surface
        };
        let is_quote = asset == quote;
        let is_base = surface == Surface::Spot && asset == rules.base;
        if is_base {
            self.charge(late, -estimate);
            self.pay_in_base(late, fill);
        } else {
            let cost = if is_quote {
                fee
            } else {
                self.cost_of_fee(surface, fill)
            };
            self.note_rate(cost, fill.quote_qty);
            self.charge(late, cost - estimate);
            if !is_quote {
                *self.other_fees.entry(asset).or_default() += fee;
            }
            if !is_quote && !in_reading {
                self.fee_costs.total += cost;
            }
        }
        if !in_reading {
            self.remember_account(surface);
            self.move_fee(surface, late.booked, quote, estimate);
            self.move_fee(surface, late.booked, asset, -fee);
        }
        self.tell_late_fee(late, fee, asset, estimate);
    }

    /// Books a spot commission in the base asset, which lowers the owner's position.
    fn pay_in_base(&mut self, late: &LateFee, fill: &Fill) {
        let (id, side) = (late.instrument, late.side);
        let grains = Grains::of(&self.instruments[usize::from(id.0)]);
        let paid = NetFill {
            // A commission is paid on either side of the fill.
            side: Side::Sell,
            qty: fill.qty.0,
            quote: fill.quote_qty,
            fee: fill.fee,
        };
        let owner = &mut self.ledgers.owner(late.owner).at_mut(id, side).position;
        owner.pay_in_base(&paid, grains);
        let account = &mut self.ledgers.account.at_mut(id, side).position;
        account.pay_in_base(&paid, grains);
        if let Some(strategy) = late.owner {
            self.tell_position(strategy, id, side);
        }
    }

    fn tell_late_fee(&mut self, late: &LateFee, fee: Amount, asset: AssetId, estimate: Amount) {
        self.notices.push_back(Notice::LateFee {
            time: self.now,
            strategy: late.owner,
            instrument: late.instrument,
            order_id: late.order_id,
            trade_id: late.trade_id,
            fee,
            asset,
            estimate,
            in_balance: late.in_reading,
        });
    }

    fn charge(&mut self, late: &LateFee, cost: Amount) {
        let mut left = cost;
        if late.owner.is_none() {
            for (strategy, share) in self.add_forced_fee((late.instrument, late.order_id), cost) {
                let own = self.ledgers.owner(Some(strategy));
                own.at_mut(late.instrument, late.side).position.fees += share;
                left -= share;
            }
        }
        let own = self.ledgers.owner(late.owner);
        own.at_mut(late.instrument, late.side).position.fees += left;
        let account = self.ledgers.account.at_mut(late.instrument, late.side);
        account.position.fees += cost;
    }

    /// Changes a balance, now and in the remembered moments since then.
    fn move_fee(&mut self, surface: Surface, since: Time, asset: AssetId, amount: Amount) {
        self.balances.entry((surface, asset)).or_default().total += amount;
        if let Some(line) = self.line_mut(surface) {
            line.past.move_since(since, asset, amount);
        }
    }

    /// Replaces an estimated commission by the true one, when the event or the account trade of the
    /// fill arrives. `qty` is the part of the fill that was booked from order totals.
    pub(super) fn replace_estimate(
        &mut self,
        seq: OrderSeq,
        update: &OrderUpdate,
        fill: &Fill,
        qty: i64,
    ) {
        if qty <= 0 {
            return;
        }
        let value = fill.quote_qty.part(qty, fill.qty.0);
        let Some(estimate) = self.take_estimate(seq, qty, value) else {
            return;
        };
        let owner = self.orders.known(seq).map(|order| order.strategy);
        let late = LateFee {
            instrument: update.instrument,
            side: update.position_side,
            owner,
            order_id: update.order_id,
            trade_id: fill.trade_id,
            value,
            made: update.transaction_time,
            booked: estimate.booked,
            in_reading: estimate.in_reading,
        };
        let fill = Fill {
            qty: Qty(qty),
            fee: fill.fee.part(qty, fill.qty.0),
            quote_qty: value,
            ..*fill
        };
        // Events of spot always state the commission: no fill is free there.
        if fill.fee != Amount::ZERO || self.surface_of(late.instrument) != SURFACE {
            if fill.fee != estimate.fee || fill.fee_asset != self.quote_of(&late) {
                self.book_late_fee(&late, &fill, estimate.fee);
            }
            return;
        }
        self.keep_estimate(late, estimate.fee);
    }

    /// Forgets older fills after a snapshot requested at this time agreed with the books: they had
    /// no commission.
    pub(super) fn forget_free_fills(&mut self, surface: Surface, asked: Time) {
        if surface != SURFACE {
            return;
        }
        let waiting = &mut self.late_fees.waiting;
        waiting.retain(|late| late.in_reading || !late.is_listed_by(asked));
        self.late_fees.wanted &= !waiting.is_empty();
    }

    /// The sum of the commissions shown by a snapshot that is about to be accepted, if account
    /// trades do not state them.
    pub(super) fn fees_by_agreement(
        &self,
        surface: Surface,
        account: &AccountTruth,
    ) -> Option<Amount> {
        // The part that belongs to fills with an estimate is not known.
        let is_fees = !self.tells_trades()
            && !self.has_young_estimate()
            && self.differs_by_fees(surface, account);
        is_fees.then(|| -self.gain_of_fees(account))
    }

    /// Shares a sum of commissions among the fills, in proportion to their value.
    pub(super) fn share_fees(&mut self, cost: Amount) {
        let fills = Vec::from(std::mem::take(&mut self.late_fees.waiting));
        self.charge_by_value(&fills, cost);
    }

    fn charge_by_value(&mut self, fills: &[LateFee], cost: Amount) {
        let values: Vec<Amount> = fills.iter().map(|late| late.value).collect();
        for (late, share) in fills.iter().zip(shares_by_value(&values, cost)) {
            self.charge(late, share);
        }
    }

    /// Notes an accepted account snapshot: it includes commissions that the strategies' ledgers
    /// lack. It contains every booked fill, or the fills up to its own time if that is known.
    pub(super) fn fees_are_in_reading(&mut self, surface: Surface, has_all_fills: bool) {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let taken = line.and_then(|line| line.taken).map(Contained::UpTo);
        let contained = if has_all_fills {
            Some(Contained::All)
        } else {
            taken
        };
        let Some(contained) = contained else {
            return;
        };
        self.estimates_are_in_reading(surface, contained);
        if surface == SURFACE {
            for late in &mut self.late_fees.waiting {
                late.note_reading(contained);
            }
            self.late_fees.wanted = !self.late_fees.waiting.is_empty();
        }
    }

    /// Takes over the fills that an earlier process waited for.
    pub(super) fn inherit_late_fees(&mut self, from: &Self, names: &Names) {
        for late in &from.late_fees.waiting {
            self.late_fees.waiting.extend(late.renamed(names));
        }
        self.late_fees.wanted = !self.late_fees.waiting.is_empty();
        self.late_fees.highest_ppm = from.late_fees.highest_ppm;
    }
}

/// Shares an amount among fills in proportion to their value. The shares sum to the amount.
fn shares_by_value(values: &[Amount], amount: Amount) -> Vec<Amount> {
    let mut value: Amount = values.iter().map(|value| value.abs()).sum();
    let mut left = amount;
    let share = |own: &Amount| {
        let own = own.abs();
        let share = if value == Amount::ZERO {
            Amount::ZERO
        } else {
            Amount(div_half_even(left.0.saturating_mul(own.0), value.0))
        };
        (value, left) = (value - own, left - share);
        share
    };
    values.iter().map(share).collect()
}
