//! Liquidation and auto-deleveraging: strategies give up what the venue closed, people are notified,
//! and the configured reaction follows. `windvane_evidence::forced` keeps the venue's reports of
//! its own orders.

use windvane_evidence::close_gains::RealizedGain;
use windvane_evidence::forced::{DueClose, ForcedOrder};
use windvane_evidence::lag::READ_LAG_MS;
use windvane_model::decimal::{Amount, div_half_even, pow10};
use windvane_model::effect::Notice;
use windvane_model::event::EventKind;
use windvane_model::forced::{
    ForcedClose, ForcedCloseReport, ForcedShare, OnLiquidation, pro_rata,
};
use windvane_model::ids::{InstrumentId, StrategyId, Time, TradeId, VenueOrderId};
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::protocol::{AccountUpdate, Fill, OrderUpdate};
use windvane_model::run_state::KillSwitch;
use windvane_model::state_report::OpenOrder;
use windvane_model::{encode, planted};

use super::{Engine, narrow};

/// A payment of the insurance fund belongs to a forced close that was reported at most this long
/// before.
const CLEARED_MS: i64 = 60_000;

/// Event flag: the closing order was a sell.
const SOLD_BIT: u32 = 2;
/// The value for "none" in every event.
const NONE: i64 = i64::MIN;

impl Engine {
    /// Forced closes since the operator last resumed, the oldest first. There is one entry per
    /// order of the venue, with the sum of its closes so far.
    pub fn forced_closes(&self) -> impl Iterator<Item = &(Time, ForcedCloseReport)> {
        self.forced.reports.iter()
    }

    /// The configured reaction to a forced close.
    pub const fn on_liquidation(&self) -> OnLiquidation {
        self.forced.reaction()
    }

    pub(super) const fn set_on_liquidation(&mut self, reaction: OnLiquidation) {
        self.forced.set_reaction(reaction);
    }

    /// The operator resumed, which accepts all earlier forced closes.
    pub(super) fn accept_forced_closes(&mut self) {
        self.forced.reports.clear();
    }

    /// The kind of forced close of an outside order, by this event or an earlier one; `None` if it
    /// is not forced.
    pub(super) fn forced_by(&self, update: &OrderUpdate) -> Option<ForcedClose> {
        if self.surface_of(update.instrument) != Surface::Futures || planted!(LiquidationIgnored) {
            return None;
        }
        self.forced.kind_of(update)
    }

    /// The part of an external fill that is not booked yet. A fill of a forced close may have no
    /// trade id: then the order's total shows the new part.
    pub(super) fn new_outside_fill(&mut self, update: &OrderUpdate, forced: bool) -> Option<Fill> {
        let fill = update.fill?;
        let key = (update.instrument, update.order_id);
        if forced && fill.trade_id.0 <= 0 {
            return self.forced.new_part(update, &fill);
        }
        if self.was_external_trade_booked(update.instrument, fill.trade_id) {
            return None;
        }
        self.forced.absorb(key, &fill)
    }

    /// Remembers a booked fill of an outside party.
    pub(super) fn remember_outside_fill(&mut self, update: &OrderUpdate, fill: &Fill) {
        let fee = self.fee_in_quote(update.instrument, fill);
        self.forced.remember_fill(update, fill, fee);
    }

    /// Remembers a fill in the account's initial state: no strategy gives up anything for it.
    pub(super) fn remember_found_fill(&mut self, update: &OrderUpdate, fill: &Fill) {
        let fee = self.fee_in_quote(update.instrument, fill);
        self.forced.remember_found_fill(update, fill, fee);
    }

    fn fee_in_quote(&self, instrument: InstrumentId, fill: &Fill) -> Amount {
        let rules = &self.instruments[usize::from(instrument.0)];
        if fill.fee_asset == rules.quote {
            fill.fee
        } else {
            Amount::ZERO
        }
    }

    /// Whether this trade of an order was counted as an outside party's. The trade id alone is not
    /// enough, because the other side of the trade may also be an order of this account.
    pub(super) fn was_counted_outside(
        &self,
        id: InstrumentId,
        order: VenueOrderId,
        trade: TradeId,
    ) -> bool {
        self.forced.knows((id, order)) && self.external_trades[usize::from(id.0)].contains(&trade)
    }

    /// Settles a forced close when its event arrives, reports it, and applies the reaction. `moved`
    /// is the quantity by which the fill of this event changed the account. Any other part was
    /// settled with an account snapshot, unless it is still due.
    pub(super) fn take_forced_close(
        &mut self,
        kind: ForcedClose,
        update: &OrderUpdate,
        fill: Option<&Fill>,
        (moved, realized_pnl): (i64, Amount),
    ) {
        let (known, whole) = self.forced.take_reported(kind, update);
        let (id, side) = (update.instrument, whole.position_side);
        let fresh = fill.map_or(0, |fill| fill.qty.0).min(moved);
        let earlier = self.take_due_close(id, side, whole.side, whole.qty - fresh, |qty| {
            Some(whole.part(qty).quote)
        });
        if known && fresh + earlier == 0 {
            return;
        }
        let due = DueClose {
            made: update.transaction_time,
            ..whole.part(fresh + earlier)
        };
        let stated = fill.and_then(|fill| fill.realized_pnl);
        let (report, rest) = self.settle(id, &due, (kind, update.order_id));
        let report = ForcedCloseReport {
            kind,
            order_id: update.order_id,
            client_order_id: Some(update.client_order_id),
            qty: whole.qty,
            quote: whole.quote,
            fee: whole.fee,
            realized_pnl: stated.unwrap_or(realized_pnl),
            ..report
        };
        self.out_of_order.keep_unowned_part(rest, &report, self.now);
        self.report_forced_close(report);
    }

    /// Takes a quantity that this order closed from the strategies on that side, and notifies them.
    /// The external ledger already contains it. Returns a report without the order's identity, and
    /// the part that no strategy held.
    pub(super) fn settle(
        &mut self,
        instrument: InstrumentId,
        due: &DueClose,
        by: ForcedOrder,
    ) -> (ForcedCloseReport, DueClose) {
        let (closing, side) = (due.side, due.position_side);
        let held = |qty: i64| (-closing.sign() * qty).max(0);
        let external = self.ledgers.external.at(instrument, side).position.qty;
        let own = self.ledgers.strategies.iter();
        let mut holders: Vec<i64> = own
            .map(|own| held(own.at(instrument, side).position.qty))
            .collect();
        holders.push(held(external - closing.sign() * due.qty));
        let lot = self.instruments[usize::from(instrument.0)].filters.lot_size;
        let step = lot.map_or(1, |lot| lot.step_size);
        let parts = pro_rata(&holders, due.qty, step);
        let mut shares = Vec::new();
        for (index, qty) in parts.iter().copied().enumerate() {
            if qty != 0 && index != self.strategies.len() {
                let strategy = StrategyId(index as u16);
                shares.push(self.give_share(strategy, instrument, &due.part(qty), Some(by)));
            }
        }
        let rest = due.part(due.qty - parts.iter().sum::<i64>());
        let (later, rest) = self.share_with_later_fills(instrument, rest, Some(by));
        shares.extend(later);
        self.watch_losses_after_fill();
        let taken: i64 = shares.iter().map(|share| share.qty).sum();
        let report = ForcedCloseReport {
            kind: ForcedClose::Liquidation,
            instrument,
            side: closing,
            position_side: side,
            order_id: VenueOrderId(0),
            client_order_id: None,
            qty: due.qty,
            quote: due.quote,
            realized_pnl: shares.iter().map(|share| share.realized_pnl).sum(),
            fee: due.fee,
            shares,
            unowned: due.qty - taken,
            left: self.account_qty(instrument, side),
            reaction: self.forced.reaction(),
            kill_switch_changed: false,
        };
        (report, rest)
    }

    pub(super) fn account_qty(&self, instrument: InstrumentId, side: PositionSide) -> i64 {
        self.ledgers.account.at(instrument, side).position.qty
    }

    /// Takes a part of a close from one strategy, and notifies it. The external ledger already
    /// contains the part. `by` is the order of a forced close; `None` if another outside party
    /// closed.
    pub(super) fn give_share(
        &mut self,
        strategy: StrategyId,
        instrument: InstrumentId,
        part: &DueClose,
        by: Option<ForcedOrder>,
    ) -> ForcedShare {
        let (closing, side) = (part.side, part.position_side);
        let external = &mut self.ledgers.external.at_mut(instrument, side).position;
        external.fill(closing.opposite(), part.qty, part.quote);
        external.fees -= part.fee;
        let own = &mut self.ledgers.strategies[usize::from(strategy.0)]
            .at_mut(instrument, side)
            .position;
        let realized_pnl = own.fill(closing, part.qty, part.quote);
        own.fees += part.fee;
        let left = own.qty;
        let share = ForcedShare {
            strategy,
            qty: part.qty,
            realized_pnl,
            left,
        };
        if let Some(by) = by {
            self.deliver_forced_close(instrument, part, by, &share);
        }
        self.deliver_position(strategy, instrument, side);
        self.cancel_exits(strategy, (instrument, side), closing);
        share
    }

    /// Notifies a strategy of the quantity that a forced close took from it.
    fn deliver_forced_close(
        &mut self,
        instrument: InstrumentId,
        part: &DueClose,
        (kind, order): ForcedOrder,
        share: &ForcedShare,
    ) {
        let rules = &self.instruments[usize::from(instrument.0)];
        let average = div_half_even(
            part.quote.0 * i128::from(pow10(rules.qty_scale)),
            i128::from(part.qty.max(1)),
        );
        // If the close was noticed only by a balance, its price and commission are unknown. Then
        // the profit is the change of the balance, with the commission already deducted.
        let is_known = kind != ForcedClose::Unreported || order.0 != 0;
        let stated = |amount: Amount| if is_known { narrow(amount) } else { NONE };
        let fields = [
            stated(Amount(average)),
            part.qty,
            stated(part.fee),
            narrow(share.realized_pnl),
            kind.code(),
            share.left,
        ];
        let sold = u32::from(part.side == Side::Sell) << SOLD_BIT;
        let flags = u32::from(part.position_side.code()) | sold;
        let event = self.event(EventKind::ForcedClose, instrument, flags, fields, order.0);
        self.deliver(share.strategy, event);
    }

    /// Notifies people of a forced close and applies the configured reaction.
    pub(super) fn report_forced_close(&mut self, report: ForcedCloseReport) {
        let kill_switch = match self.forced.reaction() {
            OnLiquidation::Halt if self.kill_switch != KillSwitch::Halted => {
                Some(KillSwitch::Halted)
            }
            OnLiquidation::Pause if self.kill_switch == KillSwitch::Clear => {
                Some(KillSwitch::Paused)
            }
            _ => None,
        };
        let report = ForcedCloseReport {
            kill_switch_changed: kill_switch.is_some(),
            ..report
        };
        self.record_forced_close(&report);
        self.forced.reports.add(self.now, &report);
        self.notices.push_back(Notice::ForcedClose {
            time: self.now,
            report: Box::new(report),
        });
        match kill_switch {
            Some(KillSwitch::Halted) => self.halt(),
            Some(kill_switch) => self.set_kill_switch(kill_switch),
            None => {}
        }
    }

    pub(super) fn record_forced_close(&mut self, report: &ForcedCloseReport) {
        encode::record_forced_close(&mut self.recorder, self.now, report);
    }

    /// Handles a payment of the insurance fund, which proves a liquidation even if its order event
    /// was lost.
    pub(super) fn take_insurance_clear(&mut self, update: &AccountUpdate) {
        let now = self.now;
        let lately = |(at, _): &(Time, ForcedCloseReport)| now <= at.plus_ms(CLEARED_MS);
        if self.forced.reports.iter().any(lately) || planted!(LiquidationIgnored) {
            return;
        }
        for balance in &update.balances {
            let reported = update.positions.first().map(|one| one.instrument);
            let quotes = |id: &InstrumentId| {
                let rules = &self.instruments[usize::from(id.0)];
                rules.surface == Surface::Futures && rules.quote == balance.asset
            };
            let mut quoted = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
            let Some(instrument) = reported.or_else(|| quoted.find(quotes)) else {
                continue;
            };
            self.report_forced_close(ForcedCloseReport {
                kind: ForcedClose::Liquidation,
                instrument,
                side: Side::Sell,
                position_side: PositionSide::Both,
                order_id: VenueOrderId(0),
                client_order_id: None,
                qty: 0,
                quote: Amount::ZERO,
                realized_pnl: balance.change,
                fee: Amount::ZERO,
                shares: Vec::new(),
                unowned: 0,
                left: 0,
                reaction: self.forced.reaction(),
                kill_switch_changed: false,
            });
        }
        self.reconcile_soon(update.surface);
    }

    /// Handles a listed forced order, as far as a snapshot showed its close: the account contains
    /// that part, and the strategies give it up. The list may be newer than the snapshot. Returns
    /// `false` if it must be requested again, because no snapshot shows the close yet.
    pub(super) fn take_forced_order(&mut self, listed: &OpenOrder) -> bool {
        let (report, terms) = (&listed.report, &listed.terms);
        let (id, side) = (report.instrument, terms.position_side);
        let key = (id, report.order_id);
        let (whole_qty, whole_quote) = (report.executed_qty.0, report.cum_quote);
        let (was_reported, known_qty) = self.forced.known_of(key);
        let reported = if was_reported { known_qty } else { 0 };
        // Some of its events may have been lost.
        let qty = whole_qty - reported;
        if qty <= 0 {
            return true;
        }
        let quote = whole_quote.part(qty, whole_qty);
        let closed = self.take_due_close(id, side, terms.side, qty, |part| {
            Some(quote.part(part, qty))
        });
        let gained = self.due_gains.take((id, side), terms.side, closed);
        let own = Some(report.order_id);
        let moved = self.listed_shifts.take_moved(
            &mut self.out_of_order,
            (id, side),
            terms.side,
            qty - closed,
            own,
        );
        let shown = closed + moved;
        let is_contained = self
            .agreed_at(self.surface_of(id))
            .is_some_and(|agreed| report.update_time.plus_ms(READ_LAG_MS) <= agreed);
        let booked = if was_reported { 0 } else { known_qty };
        if shown + booked == 0 && !is_contained {
            return false;
        }
        let kind = ForcedClose::of_listed(report);
        if was_reported && shown == 0 {
            let found = if is_contained { qty } else { shown };
            self.forced.find_listed(kind, listed, found);
            return true;
        }
        // A later event of a fill that the account already contains must book nothing.
        let is_found = was_reported || known_qty == 0;
        let found = if is_contained { qty } else { shown };
        let found = if is_found { found } else { 0 };
        let whole = self.forced.take_listed(kind, listed, found);
        // Its trades are booked, and the strategies gave up nothing yet, so all of it must be
        // settled. Later own fills may have left less than it closed.
        let shown = if closed > 0 {
            shown.max(whole.qty)
        } else {
            shown
        };
        let mut gained = gained.filter(|_| moved == 0);
        let split = gained.as_mut().map(|gained| {
            let price = |part: i64| quote.part(part, qty);
            self.split_fee((id, side), terms.side, gained, price)
        });
        let due = DueClose {
            side: terms.side,
            position_side: side,
            qty: shown,
            quote: quote.part(shown, qty),
            fee: whole.fee.part(shown, whole.qty.max(1)) + split.unwrap_or_default(),
            made: report.update_time,
        };
        let (settled, rest) = self.settle(id, &due, (kind, report.order_id));
        let report = ForcedCloseReport {
            kind,
            order_id: report.order_id,
            client_order_id: Some(report.client_order_id),
            qty,
            quote,
            realized_pnl: gained.map_or(settled.realized_pnl, |gained| gained.realized),
            ..settled
        };
        self.out_of_order.keep_unowned_part(rest, &report, self.now);
        self.report_forced_close(report);
        true
    }

    /// Reports a close whose order the venue does not know.
    pub(super) fn report_unknown_order(&mut self, key: (InstrumentId, VenueOrderId), made: Time) {
        let Some(whole) = self.forced.take_unknown(key) else {
            return;
        };
        let (id, side) = (key.0, whole.position_side);
        let closed = self.take_due_close(id, side, whole.side, whole.qty, |qty| {
            Some(whole.part(qty).quote)
        });
        if closed == 0 {
            return;
        }
        let gained = self.due_gains.take((id, side), whole.side, closed);
        let due = DueClose {
            made,
            ..whole.part(closed)
        };
        let (report, rest) = self.settle(id, &due, (ForcedClose::Unreported, key.1));
        let report = ForcedCloseReport {
            kind: ForcedClose::Unreported,
            order_id: key.1,
            realized_pnl: gained.map_or(report.realized_pnl, |gained| gained.realized),
            ..report
        };
        self.out_of_order.keep_unowned_part(rest, &report, self.now);
        self.report_forced_close(report);
    }

    /// Separates the commission from a gain, and returns it. An order states the value of a close,
    /// while the balance showed the value less the commission. The commission was booked as a worse
    /// price until now.
    pub(super) fn split_fee(
        &mut self,
        (id, side): (InstrumentId, PositionSide),
        closing: Side,
        gained: &mut RealizedGain,
        price: impl Fn(i64) -> Amount,
    ) -> Amount {
        let fee = gained.fee(closing, price);
        if fee == Amount::ZERO {
            return Amount::ZERO;
        }
        for ledger in [&mut self.ledgers.account, &mut self.ledgers.external] {
            let position = &mut ledger.at_mut(id, side).position;
            position.realized_pnl += fee;
            position.fees += fee;
        }
        gained.realized += fee;
        fee
    }
}
