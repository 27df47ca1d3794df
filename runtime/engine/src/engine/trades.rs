//! The account's trades, as the venue lists them ("account trades"). The engine reads the list
//! where the stream may have missed fills, and books each trade once, under the order to which it
//! belongs.

use windvane_evidence::connection::{RETRY_MS, Round, RoundStep};
use windvane_model::effect::Notice;
use windvane_model::ids::{InstrumentId, OrderSeq, Time, TradeId};
use windvane_model::order::{OrderStatus, Surface};
use windvane_model::order_state::OrderMove;
use windvane_model::planted;
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::state_report::AccountTrade;

use super::Engine;

impl Engine {
    /// Plans to read the list of the account's trades, because fills may have been missed: in every
    /// reconciliation round after the stream connected, until one left nothing unexplained.
    pub(super) fn plan_trades(&mut self, surface: Surface) {
        let instruments = self.instruments_of(surface);
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        let missed = connection.last_clean_round.is_none() && !connection.no_trades;
        connection.round.step = if missed {
            RoundStep::Trades(instruments)
        } else {
            RoundStep::Account
        };
    }

    pub(super) fn take_trades(
        &mut self,
        surface: Surface,
        instrument: InstrumentId,
        trades: &[AccountTrade],
        more: bool,
    ) {
        // A trade of an own order whose venue order id is not known yet could be mistaken for an
        // outside trade. Such orders are queried first.
        let nameless = self.orders.iter().any(|order| {
            order.instrument() == instrument && order.venue_order_id.is_none() && !order.held
        });
        let of_nobody = |trade: &AccountTrade| self.orders.of_venue(trade.order_id).is_none();
        if nameless && trades.iter().any(of_nobody) && !planted!(OwnTradeAsExternal) {
            self.reconcile_later(surface, RETRY_MS.0);
            return;
        }
        let index = usize::from(instrument.0);
        let verified = self.verified_trade(instrument);
        let live = self.live.as_ref();
        let is_lost = live.is_some_and(|live| live.is_recovering_lost_account(surface));
        let offset_ns = self.clock_offset_ns(surface).unwrap_or_default();
        let up = self.stream_up.get(&surface).filter(|_| is_lost);
        // Fills after the stream connected are reported on the stream, and are newer than the
        // initial state.
        let found_until = up.map(|up| Time(up.0.saturating_add(offset_ns)));
        self.note_recent_orders(instrument, trades);
        let is_new =
            |trade: &&AccountTrade| verified.is_none_or(|known| trade.fill.trade_id > known);
        for trade in trades.iter().filter(is_new) {
            if verified.is_none() || found_until.is_some_and(|until| trade.time <= until) {
                self.note_initial_trade(instrument, trade);
            } else {
                self.take_trade(instrument, trade);
            }
        }
        self.settle_fees(instrument, trades);
        let newest = trades.iter().map(|trade| trade.fill.trade_id).max();
        self.verified_trades[index] = verified.max(newest).or(Some(TradeId(0)));
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        if let RoundStep::Trades(left) = &mut connection.round.step
            && (!more || verified.is_none())
        {
            left.pop_front();
        }
        self.ask_next(surface);
    }

    /// The newest trade of an instrument up to which all trades are booked. Ids of two instruments
    /// cannot be compared.
    pub(super) fn verified_trade(&self, instrument: InstrumentId) -> Option<TradeId> {
        if planted!(TradeCursorShared) {
            return self.verified_trades.iter().copied().max().flatten();
        }
        self.verified_trades[usize::from(instrument.0)]
    }

    /// Handles a trade from before the first reconciliation round. The initial state of the account
    /// already contains it, so its event, if it still arrives, books nothing. A snapshot that may
    /// be from before it does not count as the initial state. Fills of an order since its adoption
    /// still belong to its strategy.
    fn note_initial_trade(&mut self, instrument: InstrumentId, trade: &AccountTrade) {
        if self.orders.of_venue(trade.order_id).is_some() {
            self.take_trade(instrument, trade);
            return;
        }
        if !self.was_external_trade_booked(instrument, trade.fill.trade_id)
            && let Some(update) = self.update_of(instrument, trade, None)
        {
            self.remember_found_fill(&update, &trade.fill);
        }
        let (now, surface) = (self.now, self.surface_of(instrument));
        if let Some(connection) = self.connection_mut(surface) {
            connection.history.note_fill(trade.time, now);
        }
    }

    /// Books a listed trade of the account that the stream may have missed.
    fn take_trade(&mut self, instrument: InstrumentId, trade: &AccountTrade) {
        let owner = self.orders.of_venue(trade.order_id).map(|order| order.seq);
        let Some(update) = self.update_of(instrument, trade, owner) else {
            return;
        };
        match owner {
            None => self.take_external(&update, false),
            Some(_)
                if self.was_counted_outside(instrument, trade.order_id, trade.fill.trade_id) => {}
            Some(seq) => {
                let mut fill = trade.fill;
                let Some(order) = self.orders.known_mut(seq) else {
                    return;
                };
                let whole = fill.qty.0;
                fill.qty.0 = order.absorb_trade(fill.trade_id, whole);
                self.replace_estimate(seq, &update, &trade.fill, whole - fill.qty.0);
                if fill.qty.0 == 0 {
                    return;
                }
                if fill.qty.0 < whole {
                    fill.quote_qty = fill.quote_qty.part(fill.qty.0, whole);
                    fill.fee = fill.fee.part(fill.qty.0, whole);
                }
                self.take_missed_fill(seq, &update, &fill);
            }
        }
    }

    /// A listed trade of the account, in the form of the order event that would have reported it.
    fn update_of(
        &mut self,
        instrument: InstrumentId,
        trade: &AccountTrade,
        owner: Option<OrderSeq>,
    ) -> Option<OrderUpdate> {
        let template = match owner {
            Some(seq) => self.orders.known_mut(seq)?.as_update(),
            None => OrderUpdate::external(instrument, trade.order_id),
        };
        Some(OrderUpdate {
            order_id: trade.order_id,
            side: if planted!(PositionSideMixed) {
                template.side
            } else {
                trade.side
            },
            position_side: trade.position_side,
            status: OrderStatus::PartiallyFilled,
            transaction_time: trade.time,
            event_time: trade.time,
            fill: Some(trade.fill),
            ..template
        })
    }

    /// Reads the trades of one instrument out of turn, because a fill is missing.
    pub(super) fn read_trades(&mut self, surface: Surface, instrument: InstrumentId) {
        let Some(connection) = self.connection_mut(surface) else {
            return;
        };
        // A round that reads the account reaches the trades only after two snapshots that agree. If
        // such a round waits for its next snapshot, it reads the trades first. Every other round
        // reads them soon anyway.
        if connection.round.is_of_fees() {
            connection.give_up_round();
        }
        if connection.round.is_idle() {
            connection.round = Round::of_trades(instrument);
        } else if connection.round.waits_for_snapshot() {
            connection.round.step = RoundStep::Trades([instrument].into());
            connection.round.last_differences = None;
        } else {
            return;
        }
        self.ask_next(surface);
    }

    /// Marks all trades up to the newest as booked, because the snapshot agrees with the books.
    pub(super) fn verify_trades(&mut self, surface: Surface) {
        for index in 0..self.instruments.len() {
            if self.instruments[index].surface == surface && self.verified_trades[index].is_some() {
                let newest = self.newest_trades[index];
                self.verified_trades[index] = self.verified_trades[index].max(newest);
            }
        }
    }

    /// Books a fill that only the list of the account's trades reported, or that was derived from
    /// an order's totals.
    pub(super) fn take_missed_fill(&mut self, seq: OrderSeq, update: &OrderUpdate, fill: &Fill) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let before = order.state;
        let counted = order.count_fill(fill.trade_id, fill.qty.0, fill.quote_qty);
        if !counted && !planted!(TradesNotDeduplicated) {
            return;
        }
        order.reported_qty = order.reported_qty.max(order.executed_qty);
        let complete = order.remaining_qty() == 0 && order.terms.qty.is_some();
        let strategy = order.strategy;
        self.apply_own_fill(seq, strategy, update, fill);
        self.notices.push_back(Notice::Recovered {
            time: self.now,
            order: seq,
            fill: *fill,
        });
        let mv = if complete {
            OrderMove::FillAll
        } else {
            OrderMove::FillPart
        };
        self.move_order(seq, mv, before, true);
    }
}
