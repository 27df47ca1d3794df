//! The user data stream: fills, order updates, balances, funding. Late, duplicate and missing
//! updates are normal; the venue's values win (`docs/promises.md#3-the-venue-is-the-authority`).

use windvane_model::decimal::{AMOUNT_SCALE, Amount, pow10};
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Adjustment, Cause, Notice};
use windvane_model::event::EventKind;
use windvane_model::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, TradeId};
use windvane_model::ledger::{Grains, NetFill};
use windvane_model::order::{OrderStatus, PositionSide, Side, Surface};
use windvane_model::order_state::OrderMove;
use windvane_model::protocol::{
    BalanceUpdate, Fill, MarginTerms, OrderUpdate, PositionUpdate, UserEvent,
};
use windvane_model::{encode, ledger, planted};

use super::{Engine, narrow};

/// Profit that a fill realized, before fees: in the account's position and in its owner's.
struct Realized {
    account: Amount,
    own: Amount,
}

impl Engine {
    pub(super) fn handle_user_event(&mut self, event: &UserEvent) {
        match event {
            UserEvent::Order(update) => {
                self.handle_order_update(update);
                self.review_missing_coins();
                if usize::from(update.instrument.0) < self.instruments.len() {
                    self.settle_account_event(self.surface_of(update.instrument));
                }
            }
            UserEvent::Account(update) => {
                self.note_user_event(update.surface);
                self.remember_account(update.surface);
                self.handle_account_update(update);
                self.settle_account_event(update.surface);
            }
            UserEvent::Stated(positions) => self.take_reported_positions(positions),
            UserEvent::MarginCall if planted!(MarginCallIgnored) => {}
            UserEvent::MarginCall => self.set_degraded(DegradedReason::MarginCall, true),
            UserEvent::PositionMode { hedge } => {
                if !planted!(ModeEventIgnored) {
                    self.take_position_mode(*hedge);
                }
            }
            UserEvent::AssetMode { multi_assets } => self.take_asset_mode(*multi_assets),
            UserEvent::Leverage {
                instrument,
                leverage,
            } => {
                let terms = MarginTerms {
                    instrument: *instrument,
                    leverage: Some(*leverage),
                    isolated: None,
                };
                self.note_margin(&terms, true);
            }
            UserEvent::MarginType {
                instrument,
                isolated,
            } => {
                let terms = MarginTerms {
                    instrument: *instrument,
                    leverage: None,
                    isolated: Some(*isolated),
                };
                self.note_margin(&terms, true);
            }
        }
        self.review_listed_positions();
    }

    fn handle_order_update(&mut self, update: &OrderUpdate) {
        if usize::from(update.instrument.0) >= self.instruments.len() {
            return;
        }
        self.note_user_event(self.surface_of(update.instrument));
        let Some(seq) = self.own_order(update) else {
            self.take_external(update, true);
            return;
        };
        if update.fill.is_none()
            && self.concerns_triggered_order(seq, update.order_id, update.executed_qty.0)
        {
            return;
        }
        self.revive_by_event(seq, update);
        // Such a fill was booked before its order was adopted, and the adopted order's executed
        // quantity includes it.
        let fill = update.fill.as_ref().filter(|fill| {
            !self.was_counted_outside(update.instrument, update.order_id, fill.trade_id)
        });
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        order.venue_order_id = Some(update.order_id);
        order.reported_qty = order.reported_qty.max(update.executed_qty.0);
        let is_first = !std::mem::replace(&mut order.on_stream, true);
        order.lost = None;
        let seen_again = order.denied.take().is_some();
        if update.status.is_final() {
            order.reported_final = Some(update.transaction_time);
        }
        let before = order.state;
        let mut filled = false;
        let is_new =
            update.executed_qty.0 > order.recovered_qty || planted!(RecoveredNotDeduplicated);
        if let Some(late) = fill.filter(|_| !is_new) {
            let left = order.absorb_trade(late.trade_id, late.qty.0);
            self.replace_estimate(seq, update, late, late.qty.0 - left);
        }
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        if let Some(fill) = fill.filter(|_| is_new) {
            let mut fill = *fill;
            if planted!(CumulativeFill) {
                fill.qty = update.executed_qty;
            }
            let fill = &fill;
            filled = order.count_fill(fill.trade_id, fill.qty.0, fill.quote_qty);
            if filled {
                let strategy = order.strategy;
                self.apply_own_fill(seq, strategy, update, fill);
            }
        }
        let mv = match update.status {
            OrderStatus::New | OrderStatus::NewInsurance | OrderStatus::NewAdl => OrderMove::Accept,
            OrderStatus::PartiallyFilled => OrderMove::FillPart,
            OrderStatus::Filled => OrderMove::FillAll,
            OrderStatus::Canceled => OrderMove::Cancel,
            OrderStatus::Rejected => OrderMove::Reject,
            OrderStatus::Expired => OrderMove::Expire,
        };
        self.note_rejected(seq, mv, before);
        self.move_order(seq, mv, before, filled);
        self.note_skipped_fill(seq, update);
        if seen_again {
            self.reconcile_after_denial(update.instrument);
        }
        if is_first || filled {
            self.note_order_news(self.surface_of(update.instrument), update);
        }
    }

    /// The own order of an update: its id has a strategy's name, our epoch, and a number that was
    /// given to that strategy. Every other order on the account is external.
    fn own_order(&mut self, update: &OrderUpdate) -> Option<OrderSeq> {
        let id = update.client_order_id;
        self.known(&id).or_else(|| self.adopt_update(update))
    }

    /// Books a fill once in every ledger, and reports it to its strategy.
    pub(super) fn apply_own_fill(
        &mut self,
        seq: OrderSeq,
        strategy: StrategyId,
        update: &OrderUpdate,
        fill: &Fill,
    ) {
        let (instrument, side) = (update.instrument, update.position_side);
        self.release(seq, fill.qty.0);
        self.count_flattening_fill(strategy);
        self.undo_settlement(strategy, update, fill);
        let realized = self.book_fill(Some(strategy), update, fill);
        let own = self.ledgers.strategies[usize::from(strategy.0)].at(instrument, side);
        let own_position = own.position;
        let flags = u32::from(fill.maker) | u32::from(update.side == Side::Sell) << 1;
        let fields = [
            fill.price.0,
            fill.qty.0,
            narrow(fill.fee),
            narrow(realized.own),
            fill.trade_id.0,
            own_position.qty,
        ];
        let event = self.event(EventKind::Fill, instrument, flags, fields, seq.0 as i64);
        self.deliver(strategy, event);
        self.deliver_position(strategy, instrument, side);
        self.note_own_fill(strategy, update, fill);
        let position = self.ledgers.account.at(instrument, side).position.qty;
        if let Some(order) = self.orders.known_mut(seq) {
            let notice = Notice::Filled {
                time: self.now,
                executed: update.transaction_time,
                strategy,
                order: order.clone(),
                fill: *fill,
                realized_pnl: realized.account,
                position,
            };
            self.notices.push_back(notice);
        }
    }

    pub(super) fn deliver_position(
        &mut self,
        strategy: StrategyId,
        id: InstrumentId,
        side: PositionSide,
    ) {
        let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
        let own = ledger.at(id, side).position;
        let (cost, realized) = (narrow(own.cost), narrow(own.realized_pnl));
        let fields = [own.qty, cost, realized, 0, 0, 0];
        let event = self.event(EventKind::Position, id, u32::from(side.code()), fields, 0);
        self.deliver(strategy, event);
    }

    /// Reports its positions to a new instance: its saved state does not contain them.
    pub(super) fn deliver_positions(&mut self, strategy: StrategyId) {
        for index in 0..self.instruments.len() {
            let id = InstrumentId(index as u16);
            for side in PositionSide::ALL.iter().copied() {
                let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
                if ledger.at(id, side).position.qty != 0 {
                    self.deliver_position(strategy, id, side);
                }
            }
        }
    }

    /// Books a fill in the account's ledger, the owner's ledger and the balances.
    fn book_fill(
        &mut self,
        owner: Option<StrategyId>,
        update: &OrderUpdate,
        fill: &Fill,
    ) -> Realized {
        let (id, side, now) = (update.instrument, update.position_side, self.now);
        let side = match (side, update.side) {
            (PositionSide::Short, Side::Buy) if planted!(SidesConfused) => PositionSide::Long,
            (PositionSide::Long, Side::Sell) if planted!(SidesConfused) => PositionSide::Short,
            (side, _) => side,
        };
        self.remember_account(self.surface_of(id));
        let kept = self.preserved_by_snapshot(update, fill);
        self.note_late_fee(owner, update, fill, kept.is_some());
        if let Some(connection) = self.connection_mut(self.surface_of(id)) {
            connection.fill_value = fill.quote_qty;
            // A fill that was derived from order totals has the time of its order's last change.
            if fill.trade_id.0 > 0 {
                connection.history.note_fill(update.transaction_time, now);
            }
        }
        let newest = &mut self.newest_trades[usize::from(id.0)];
        let in_order = Some(fill.trade_id) > *newest;
        *newest = (*newest).max(Some(fill.trade_id));
        let was_confirmed = self.is_entry_confirmed(id, side);
        let instrument = &self.instruments[usize::from(id.0)];
        let (surface, base, quote) = (instrument.surface, instrument.base, instrument.quote);
        let base_qty = Amount::notional(1, 0, fill.qty.0, instrument.qty_scale);
        let grains = Grains::of(instrument);
        let fee_in_base = surface == Surface::Spot && fill.fee_asset == base;
        let quote_qty = fill.quote_qty;
        let net = NetFill {
            side: update.side,
            qty: fill.qty.0,
            quote: quote_qty,
            fee: if fee_in_base { fill.fee } else { Amount::ZERO },
        };
        let is_other = fill.fee_asset != quote && !fee_in_base;
        let cost = if is_other {
            self.cost_of_fee(surface, fill)
        } else {
            Amount::ZERO
        };
        let account = &mut self.ledgers.account.at_mut(id, side).position;
        let account = account.fill_net(&net, grains);
        if in_order && was_confirmed {
            self.confirm_entry(id, side);
        }
        let position = &mut self.ledgers.owner(owner).at_mut(id, side).position;
        let own = position.fill_net(&net, grains);
        if fill.fee_asset == quote {
            position.fees += fill.fee;
            self.ledgers.account.at_mut(id, side).position.fees += fill.fee;
        } else if !fee_in_base {
            *self.other_fees.entry(fill.fee_asset).or_default() += fill.fee;
            position.fees += cost;
            self.ledgers.account.at_mut(id, side).position.fees += cost;
            // The snapshot that contained the fill had lowered the balance, and that was counted
            // then.
            if kept.is_none() {
                self.fee_costs.total += cost;
            }
        }
        match surface {
            Surface::Futures => self.add_balance(surface, quote, account),
            Surface::Spot => {
                let sign = |amount: Amount| {
                    if update.side == Side::Buy {
                        amount
                    } else {
                        -amount
                    }
                };
                self.add_balance(surface, base, sign(base_qty));
                self.add_balance(surface, quote, -sign(quote_qty));
            }
        }
        self.add_balance(surface, fill.fee_asset, -fill.fee);
        if planted!(BooksContradict) {
            let position = &mut self.ledgers.owner(owner).at_mut(id, side).position;
            position.fees += fill.fee;
        }
        if planted!(FeeTwice) {
            self.add_balance(surface, fill.fee_asset, -fill.fee);
        }
        if let Some(kept) = kept {
            self.restore_preserved(&kept);
        }
        self.check_holding(id, side);
        self.watch_losses_after_fill();
        Realized { account, own }
    }

    fn add_balance(&mut self, surface: Surface, asset: AssetId, amount: Amount) {
        self.balances.entry((surface, asset)).or_default().total += amount;
    }

    /// Handles an order or a fill of an outside party on this account: liquidation, ADL, or the
    /// user's own trading. `by_event` means that an event reported it, so that the kind of its
    /// order is known.
    pub(super) fn take_external(&mut self, update: &OrderUpdate, by_event: bool) {
        let mut realized_pnl = Amount::ZERO;
        self.note_external_order(update);
        let forced = self.forced_by(update);
        let fill = self.new_outside_fill(update, forced.is_some());
        let mut moved = 0;
        if let Some(fill) = &fill {
            let (id, side) = (update.instrument, update.position_side);
            let before = self.ledgers.account.at(id, side).position.qty;
            realized_pnl = self.book_fill(None, update, fill).account;
            let after = self.ledgers.account.at(id, side).position.qty;
            moved = (before - after).saturating_abs();
            self.remember_outside_fill(update, fill);
            if forced.is_none() {
                self.note_outside_fill(update, before, realized_pnl, by_event);
            }
        }
        if fill.is_some() || update.fill.is_none() {
            self.notices.push_back(Notice::External {
                time: self.now,
                update: *update,
                realized_pnl,
            });
        }
        // A known fill may be the first report that its order is a forced close.
        if let Some(kind) = forced {
            self.take_forced_close(kind, update, fill.as_ref(), (moved, realized_pnl));
        }
    }

    /// Whether an external fill was booked before. The last trade ids of each instrument are kept.
    pub(super) fn was_external_trade_booked(
        &mut self,
        instrument: InstrumentId,
        trade_id: TradeId,
    ) -> bool {
        const KEPT: usize = 1024;
        let seen = &mut self.external_trades[usize::from(instrument.0)];
        if seen.contains(&trade_id) {
            return true;
        }
        if seen.len() == KEPT {
            seen.pop_front();
        }
        seen.push_back(trade_id);
        false
    }

    /// Overwrites a balance with the venue's value, and reports a difference. A change that has its
    /// own explanation (funding, a transfer) does not count as a difference.
    pub(super) fn take_balance(&mut self, surface: Surface, update: &BalanceUpdate, cause: Cause) {
        let balance = self.balances.entry((surface, update.asset)).or_default();
        let expected = balance.total + update.change;
        // Futures events contain only the wallet balance.
        let locked = match (surface, cause) {
            (Surface::Futures, Cause::Event | Cause::Commission) => balance.locked,
            _ => update.locked,
        };
        let changed = (balance.total, balance.locked) != (update.total, locked);
        (balance.total, balance.locked) = (update.total, locked);
        if expected != update.total {
            let adjustment = Adjustment::Balance {
                surface,
                asset: update.asset,
                from: expected,
                to: update.total,
            };
            let cause = match cause {
                Cause::Event
                    if self.evidence().is_rounding(
                        surface,
                        update.asset,
                        update.total - expected,
                    ) =>
                {
                    Cause::Rounding
                }
                cause => cause,
            };
            self.report_adjustment(adjustment, cause);
        }
        if changed {
            let fields = [
                narrow(update.total),
                narrow(locked),
                i64::from(update.asset.0),
                0,
                0,
                0,
            ];
            let flags = u32::from(surface.code());
            let event = self.event(EventKind::Balance, InstrumentId(0), flags, fields, 0);
            for index in 0..self.strategies.len() {
                self.deliver(StrategyId(index as u16), event);
            }
        }
    }

    /// Records and reports a correction by the venue's evidence.
    pub(super) fn report_adjustment(&mut self, adjustment: Adjustment, cause: Cause) {
        if self.live.is_some() {
            encode::record_adjustment(&mut self.recorder, self.now, &adjustment, cause);
        }
        self.notices.push_back(Notice::Adjusted {
            time: self.now,
            adjustment,
            cause,
        });
    }

    pub(super) fn take_position(&mut self, update: &PositionUpdate, cause: Cause) {
        if usize::from(update.instrument.0) >= self.instruments.len() {
            return;
        }
        let (id, side) = (update.instrument, update.position_side);
        let position = &mut self.ledgers.account.at_mut(id, side).position;
        let (from, to) = (position.qty, update.qty.0);
        if from == to {
            return;
        }
        let cost = update.cost - position.cost;
        position.qty = to;
        position.cost = update.cost;
        let external = &mut self.ledgers.external.at_mut(id, side).position;
        external.qty += to - from;
        external.cost += cost;
        let adjustment = Adjustment::Position {
            instrument: id,
            side,
            from,
            to,
        };
        self.report_adjustment(adjustment, cause);
    }

    /// Books a funding payment in the ledger of its instrument, and shares it among the sub-ledgers
    /// by their quantities.
    ///
    /// The event does not name the instrument (docs/interface/user-stream.md#account_update). The
    /// engine chooses the open position whose expected payment, quantity times mark times rate, is
    /// nearest. If that position was closed in between, the payment stays unowned, in the first
    /// instrument of that asset.
    pub(super) fn book_funding(&mut self, balance: &BalanceUpdate) {
        let (asset, amount) = (balance.asset, balance.change);
        let funded = self.funded_position(asset, amount, |_| true);
        self.book_funding_at(funded, amount);
    }

    /// Books a funding payment whose instrument the income history names.
    pub(super) fn book_funding_of(
        &mut self,
        instrument: InstrumentId,
        asset: AssetId,
        amount: Amount,
    ) {
        let funded = self.funded_position(asset, amount, |id| id == instrument);
        self.book_funding_at(funded, amount);
    }

    fn book_funding_at(&mut self, funded: Option<(InstrumentId, PositionSide)>, amount: Amount) {
        self.notices.push_back(Notice::Funding {
            time: self.now,
            amount,
        });
        let Some((id, side)) = funded else {
            return;
        };
        let position = &mut self.ledgers.account.at_mut(id, side).position;
        position.funding += amount;
        let (whole, mut left) = (position.qty, amount);
        let mark = self.mark(id);
        for index in 0..self.strategies.len() {
            let own = &mut self.ledgers.strategies[index].at_mut(id, side).position;
            if own.qty == 0 {
                continue;
            }
            let share = if whole == 0 {
                Amount::ZERO
            } else {
                part(amount, own.qty, whole)
            };
            own.funding += share;
            left -= share;
            let (rate, price) = mark.map_or((0, 0), |mark| (mark.funding_rate, mark.mark));
            let fields = [narrow(share), rate, price, 0, 0, 0];
            let event = self.event(EventKind::Funding, id, 0, fields, 0);
            self.deliver(StrategyId(index as u16), event);
        }
        // The rounding remainder, and the share of unowned positions.
        self.ledgers.external.at_mut(id, side).position.funding += left;
    }

    fn funded_position(
        &self,
        asset: AssetId,
        amount: Amount,
        may_be: impl Fn(InstrumentId) -> bool,
    ) -> Option<(InstrumentId, PositionSide)> {
        let pays = |id: InstrumentId| {
            let instrument = &self.instruments[usize::from(id.0)];
            may_be(id) && instrument.surface == Surface::Futures && instrument.quote == asset
        };
        let candidates = self
            .ledgers
            .account
            .iter()
            .filter(|(id, _, holding)| holding.position.qty != 0 && pays(*id));
        let distance = |id: InstrumentId, qty: i64| {
            let instrument = &self.instruments[usize::from(id.0)];
            let expected = self.mark(id).map_or(Amount::ZERO, |mark| {
                let value = ledger::value(instrument, qty, mark.mark);
                part(value, mark.funding_rate, pow10(AMOUNT_SCALE))
            });
            (amount + expected).abs()
        };
        candidates
            .min_by_key(|(id, _, holding)| distance(*id, holding.position.qty))
            .or_else(|| self.ledgers.account.iter().find(|(id, ..)| pays(*id)))
            .map(|(id, side, _)| (id, side))
    }
}

/// `amount * numerator / denominator` with any signs, rounded half to even.
fn part(amount: Amount, numerator: i64, denominator: i64) -> Amount {
    if denominator < 0 {
        (-amount).part(numerator, -denominator)
    } else {
        amount.part(numerator, denominator)
    }
}
