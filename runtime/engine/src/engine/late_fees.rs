//! Commissions that the event of a fill leaves out: the engine reads the venue's list of the
//! account's trades, and books the commissions that it states. Which differences they explain is
//! decided in `windvane_evidence::late_fees`.

use std::collections::BTreeSet;

use windvane_evidence::connection::{Connection, Round, RoundStep};
use windvane_evidence::estimates::EstimatedFee;
use windvane_evidence::late_fees::{Contained, LateFee, SURFACE, shares_by_value};
use windvane_model::decimal::Amount;
use windvane_model::effect::Notice;
use windvane_model::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::ledger::{Grains, NetFill};
use windvane_model::order::{Qty, Side, Surface};
use windvane_model::planted;
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::state_report::AccountTrade;

use super::Engine;

impl Engine {
    /// Remembers a fill that was booked without a commission.
    pub(super) fn note_late_fee(
        &mut self,
        owner: Option<StrategyId>,
        update: &OrderUpdate,
        fill: &Fill,
        in_snapshot: bool,
    ) {
        let is_reported = fill.fee != Amount::ZERO || fill.trade_id.0 <= 0;
        if is_reported
            || planted!(LateFeesIgnored)
            || self.surface_of(update.instrument) != SURFACE
            || self.connection_mut(SURFACE).is_none()
        {
            return;
        }
        self.late_fees.wait_for(LateFee {
            instrument: update.instrument,
            side: update.position_side,
            owner,
            order_id: update.order_id,
            trade_id: fill.trade_id,
            value: fill.quote_qty,
            made: update.transaction_time,
            booked: self.now,
            in_snapshot,
        });
    }

    /// Requests the list of the account's trades for commissions, if a balance differs and no other
    /// read is running.
    pub(super) fn ask_for_fees(&mut self, surface: Surface) {
        if surface != SURFACE || !self.late_fees.is_due(self.now) {
            return;
        }
        if self.evidence().fee_trades().next().is_none() {
            return;
        }
        let idle = |connection: &mut Connection| {
            connection.round.is_idle() && connection.stream_up && !connection.no_trades
        };
        if self.connection_mut(SURFACE).is_some_and(idle) {
            let step = self.step_of_fees();
            if let Some(connection) = self.connection_mut(SURFACE) {
                connection.round = Round::of_step(step);
            }
            self.ask_next(SURFACE);
        }
    }

    /// The step of a reconciliation round that reads the trades of fills without a commission.
    pub(super) fn step_of_fees(&mut self) -> RoundStep {
        self.late_fees.note_asked(self.now);
        let instruments: BTreeSet<_> = self.evidence().fee_trades().map(|(id, _)| id).collect();
        RoundStep::Fees(instruments.into_iter().collect())
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
        let asked = self.late_fees.asked();
        let had = self.evidence().late_fee_count();
        let may_come = |late: &LateFee| {
            let is_over = !more || newest.is_some_and(|newest| late.trade_id < newest);
            late.instrument != instrument || !is_over || !late.is_listed_by(asked)
        };
        self.late_fees.retain(may_come);
        self.fills_from_totals.retain_awaiting_fee(may_come);
        let left = self.evidence().late_fee_count();
        let evidence = self.evidence();
        let wanted = evidence.late_fee_fills().any(|late| late.booked <= asked);
        self.late_fees.set_wanted(wanted);
        let Some(connection) = self.connection_mut(SURFACE) else {
            return;
        };
        if let RoundStep::Fees(left) = &mut connection.round.step {
            left.pop_front();
        }
        self.settle_account_event(SURFACE);
        self.watch_losses_after_fill();
        self.ask_next(SURFACE);
        if left < had {
            // The listed trades do not explain the present difference.
            self.reconcile_soon(SURFACE);
        }
    }

    /// Books the commissions that listed trades state for fills that were booked without one.
    pub(super) fn settle_fees(&mut self, instrument: InstrumentId, trades: &[AccountTrade]) {
        for trade in trades {
            let key = (instrument, trade.order_id, trade.fill.trade_id);
            if let Some((late, estimate)) = self.fills_from_totals.take_awaiting_fee(key) {
                self.book_late_fee(&late, &trade.fill, estimate);
            } else if let Some(late) = self.late_fees.take(instrument, trade) {
                self.book_late_fee(&late, &trade.fill, Amount::ZERO);
            }
        }
    }

    /// Books the commission of a fill that was booked with this estimate.
    fn book_late_fee(&mut self, late: &LateFee, fill: &Fill, estimate: Amount) {
        let (fee, asset) = (fill.fee, fill.fee_asset);
        let in_snapshot = late.in_snapshot;
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
            self.late_fees.note_rate(cost, fill.quote_qty);
            self.charge(late, cost - estimate);
            if !is_quote {
                *self.other_fees.entry(asset).or_default() += fee;
            }
            if !is_quote && !in_snapshot {
                self.fee_costs.total += cost;
            }
        }
        if !in_snapshot {
            self.remember_account(surface);
            self.move_fee(surface, late.booked, quote, estimate);
            self.move_fee(surface, late.booked, asset, -fee);
        }
        self.notify_late_fee(late, fee, asset, estimate);
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
            self.deliver_position(strategy, id, side);
        }
    }

    fn notify_late_fee(&mut self, late: &LateFee, fee: Amount, asset: AssetId, estimate: Amount) {
        self.notices.push_back(Notice::LateFee {
            time: self.now,
            strategy: late.owner,
            instrument: late.instrument,
            order_id: late.order_id,
            trade_id: late.trade_id,
            fee,
            asset,
            estimate,
            in_balance: late.in_snapshot,
        });
    }

    fn charge(&mut self, late: &LateFee, cost: Amount) {
        let mut left = cost;
        if late.owner.is_none() {
            for (strategy, share) in self.forced.add_fee((late.instrument, late.order_id), cost) {
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

    /// Changes a balance, now and in the remembered past states of the account from `since` on.
    fn move_fee(&mut self, surface: Surface, since: Time, asset: AssetId, amount: Amount) {
        self.balances.entry((surface, asset)).or_default().total += amount;
        if let Some(connection) = self.connection_mut(surface) {
            connection.history.move_since(since, asset, amount);
        }
    }

    /// Replaces an estimated commission by the true one, when an event or the list of the account's
    /// trades reports the fill. `qty` is the part of the fill that was booked from order totals.
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
        let Some(estimate) = self.fills_from_totals.take_estimate(seq, qty, value) else {
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
            in_snapshot: estimate.in_snapshot,
        };
        let fill = Fill {
            qty: Qty(qty),
            fee: fill.fee.part(qty, fill.qty.0),
            quote_qty: value,
            ..*fill
        };
        // Events of spot always state the commission: no fill is free there.
        if fill.fee != Amount::ZERO || self.surface_of(late.instrument) != SURFACE {
            if fill.fee != estimate.fee || fill.fee_asset != self.evidence().quote_of(&late) {
                self.book_late_fee(&late, &fill, estimate.fee);
            }
            return;
        }
        self.fills_from_totals.keep_estimate(late, estimate.fee);
    }

    /// Forgets older fills after a snapshot requested at this time agreed with the books: they had
    /// no commission.
    pub(super) fn forget_free_fills(&mut self, surface: Surface, asked: Time) {
        if surface == SURFACE {
            self.late_fees.forget_free(asked);
        }
    }

    /// Shares a sum of commissions among the fills, in proportion to their value.
    pub(super) fn share_fees(&mut self, cost: Amount) {
        let fills = self.late_fees.take_all();
        self.charge_by_value(&fills, cost);
    }

    pub(super) fn charge_by_value(&mut self, fills: &[LateFee], cost: Amount) {
        let values: Vec<Amount> = fills.iter().map(|late| late.value).collect();
        for (late, share) in fills.iter().zip(shares_by_value(&values, cost)) {
            self.charge(late, share);
        }
    }

    /// Notes an accepted account snapshot: it includes commissions that the strategies' ledgers
    /// lack. It contains every booked fill, or the fills up to its own time if that is known.
    pub(super) fn fees_are_in_snapshot(&mut self, surface: Surface, has_all_fills: bool) {
        let connection = self.evidence().connection(surface);
        let taken = connection
            .and_then(|connection| connection.reconciled_until)
            .map(Contained::UpTo);
        let contained = if has_all_fills {
            Some(Contained::All)
        } else {
            taken
        };
        let Some(contained) = contained else {
            return;
        };
        let (orders, instruments) = (&self.orders, &self.instruments);
        self.fills_from_totals
            .note_snapshot(surface, contained, orders, instruments);
        if surface == SURFACE {
            self.late_fees.note_snapshot(contained);
        }
    }

    /// Returns to strategies the amount by which estimated commissions were too high, in proportion
    /// to the value of the fills.
    pub(super) fn correct_estimates(&mut self, asset: AssetId, amount: Amount) {
        let evidence = self.evidence();
        let estimates = evidence
            .estimated_commissions()
            .filter(|fee| fee.quote == asset);
        let estimates: Vec<EstimatedFee> = estimates.collect();
        let values: Vec<Amount> = estimates.iter().map(|fee| fee.value).collect();
        for (fee, share) in estimates.iter().zip(shares_by_value(&values, amount)) {
            let own = self.ledgers.owner(fee.owner);
            own.at_mut(fee.instrument, fee.side).position.fees += -share;
            let account = self.ledgers.account.at_mut(fee.instrument, fee.side);
            account.position.fees += -share;
        }
    }
}
