//! Converts user events of spot and futures into events of the engine. A spot event has the fields
//! of a futures event except those of positions. So both kinds are handled as futures events.
//!
//! This module does not check order, duplicates or gaps: the engine identifies fills by their trade
//! id.

use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, Fill, OrderUpdate, UserEvent,
};
use windvane_model::{
    Amount, ClientOrderId, ExecutionType, Instrument, InstrumentId, OrderStatus, OrderType,
    PositionSide, Price, Qty, Surface, TradeId, VenueOrderId,
};

use super::account::{RawPosition, spot_balance};
use super::figures::{amount, nearest, product, quantity, time};
use super::order::{time_in_force, type_of};
use super::{Adapter, DecodeError, Note, WithNotes, known};
use crate::user_stream::{
    AccountConfigUpdate, AccountUpdate as FuturesAccount, ExecutionReport, ForcedClose, MarginType,
    OrderUpdate as FuturesOrder, OutboundAccountPosition, UpdateReason, UserStreamEvent,
};
use crate::wire::{Exact, Whole, Word};

impl Adapter {
    /// The engine events of one user event. Most events give one. Events of symbols that are not
    /// configured give none, and a change of the account's modes gives up to two.
    ///
    /// # Errors
    /// A value of the event does not fit the engine. The content must then be read over REST.
    pub fn user_event(&self, event: &UserStreamEvent) -> Result<WithNotes<UserEvent>, DecodeError> {
        let mut decoded = WithNotes::new();
        match event {
            UserStreamEvent::ExecutionReport(report) => self.spot_order(report, &mut decoded)?,
            UserStreamEvent::OrderTradeUpdate(event) => {
                let reported = ReportedOrder {
                    surface: Surface::Futures,
                    order: &event.order,
                    event_ms: event.event_ms,
                    quote_qty: None,
                };
                self.order(&reported, &mut decoded)?;
            }
            UserStreamEvent::OutboundAccountPosition(event) => {
                self.spot_account(event, &mut decoded)?;
            }
            UserStreamEvent::AccountUpdate(event) => self.futures_account(event, &mut decoded)?,
            UserStreamEvent::MarginCall(_) => decoded.items.push(UserEvent::MarginCall),
            UserStreamEvent::AccountConfigUpdate(event) => self.config(event, &mut decoded)?,
            UserStreamEvent::ListenKeyExpired(_) => {
                decoded
                    .notes
                    .push(Note::Event("listenKeyExpired".to_owned()));
            }
            UserStreamEvent::Other(other) => {
                let name = other.event.clone().unwrap_or_default();
                decoded.notes.push(Note::Event(name));
            }
        }
        Ok(decoded)
    }

    fn spot_order(
        &self,
        report: &ExecutionReport,
        decoded: &mut WithNotes<UserEvent>,
    ) -> Result<(), DecodeError> {
        let reported = ReportedOrder {
            surface: Surface::Spot,
            order: &as_futures(report),
            event_ms: report.event_ms,
            quote_qty: report.last_quote,
        };
        self.order(&reported, decoded)
    }

    fn order(
        &self,
        reported: &ReportedOrder<'_>,
        decoded: &mut WithNotes<UserEvent>,
    ) -> Result<(), DecodeError> {
        let order = reported.order;
        let notes = &mut decoded.notes;
        let symbol = self.configured(reported.surface, &order.symbol, "order update", notes);
        let Some((id, rules)) = symbol else {
            return Ok(());
        };
        let fill = self.fill(reported, rules, notes)?;
        let update = update(reported, id, rules, fill)?;
        decoded.items.push(UserEvent::Order(update));
        Ok(())
    }

    /// The fill, if the execution is a fill with a quantity.
    fn fill(
        &self,
        reported: &ReportedOrder<'_>,
        rules: &Instrument,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Fill>, DecodeError> {
        let order = reported.order;
        if !order.is_fill() || order.last_qty.0.is_zero() {
            return Ok(None);
        }
        let trade_id = order.trade_id.filter(|id| id.0 > 0);
        let trade_id = match trade_id {
            Some(id) => id,
            // A forced order without a public trade. The engine identifies such a fill by the
            // order's total.
            None if is_forced(order) => Whole(0),
            None => return Err(DecodeError::Missing("t, the trade id of a fill,")),
        };
        let asset = order.commission_asset.as_deref();
        let (fee, fee_asset) = self.fee(rules, order.commission, asset, notes)?;
        let average = order.avg_price.filter(|_| is_forced(order));
        let last_price = match order.last_price {
            price if price.0.is_zero() => average.unwrap_or(price),
            price => price,
        };
        let quote_qty = match reported.quote_qty.filter(|quote| !quote.0.is_zero()) {
            Some(quote) => amount("Y", quote.0)?,
            None => product("L", last_price.0, order.last_qty.0)?,
        };
        let realized_pnl = match reported.surface {
            Surface::Spot => None,
            Surface::Futures => order.realized_profit,
        };
        Ok(Some(Fill {
            trade_id: TradeId(trade_id.0),
            price: price("L", last_price, rules)?,
            qty: Qty(quantity("l", order.last_qty.0, rules.qty_scale)?),
            quote_qty,
            fee,
            fee_asset,
            maker: order.is_maker.is_some_and(|flag| flag.0),
            realized_pnl: realized_pnl.map(|pnl| amount("rp", pnl.0)).transpose()?,
        }))
    }

    fn spot_account(
        &self,
        event: &OutboundAccountPosition,
        decoded: &mut WithNotes<UserEvent>,
    ) -> Result<(), DecodeError> {
        let mut balances = Vec::with_capacity(event.balances.len());
        for reported in &event.balances {
            let held = reported.free.0.max(reported.locked.0);
            if let Some(asset) = self.asset(&reported.asset, held, &mut decoded.notes) {
                balances.push(spot_balance(asset, reported.free, reported.locked)?);
            }
        }
        // The document does not list the values of the reason; its only example is a withdrawal. So
        // every reason that does not name money coming in or going out may belong to an order.
        let word = event.reason.as_deref().unwrap_or_default();
        let comes_or_goes = ["DEPOSIT", "WITHDRAW", "TRANSFER"];
        let reason = if comes_or_goes.iter().any(|part| word.contains(part)) {
            AccountReason::Other
        } else {
            AccountReason::Order
        };
        decoded.items.push(UserEvent::Account(AccountUpdate {
            surface: Surface::Spot,
            reason,
            balances,
            positions: Vec::new(),
            transaction_time: time("E", event.event_ms.0)?,
            event_time: time("E", event.event_ms.0)?,
        }));
        Ok(())
    }

    fn futures_account(
        &self,
        event: &FuturesAccount,
        decoded: &mut WithNotes<UserEvent>,
    ) -> Result<(), DecodeError> {
        let change = &event.change;
        let mut balances = Vec::with_capacity(change.balances.len());
        for reported in &change.balances {
            let Some(asset) = self.asset(&reported.asset, reported.wallet.0, &mut decoded.notes)
            else {
                continue;
            };
            balances.push(BalanceUpdate {
                asset,
                total: amount("wb", reported.wallet.0)?,
                locked: Amount::ZERO,
                change: amount("bc", reported.change.unwrap_or_default().0)?,
            });
        }
        let mut positions = Vec::with_capacity(change.positions.len());
        for reported in &change.positions {
            let held = RawPosition {
                symbol: &reported.symbol,
                side: &reported.side,
                qty: reported.amount.0,
                entry_price: Some(reported.entry_price.0),
            };
            positions.extend(self.position(&held)?);
        }
        let stated = change.positions.iter().filter_map(|reported| {
            let figures = [
                Some(reported.amount),
                Some(reported.entry_price),
                reported.unrealized_pnl,
            ];
            self.stated(&reported.symbol, &reported.side, figures)
        });
        let others: Vec<_> = stated
            .filter(|reported| reported.instrument.is_none())
            .collect();
        if !others.is_empty() {
            decoded.items.push(UserEvent::Stated(others));
        }
        if change.reason == Word::Known(UpdateReason::MarginTypeChange) {
            for reported in &change.positions {
                let instrument = self.names.instrument(Surface::Futures, &reported.symbol);
                let isolated = match reported.margin_type {
                    Some(Word::Known(reported)) => Some(reported == MarginType::Isolated),
                    _ => None,
                };
                if let (Some(instrument), Some(isolated)) = (instrument, isolated) {
                    let changed = UserEvent::MarginType {
                        instrument,
                        isolated,
                    };
                    decoded.items.push(changed);
                }
            }
        }
        let reason = match change.reason {
            Word::Known(UpdateReason::Order) => AccountReason::Order,
            Word::Known(UpdateReason::FundingFee) => AccountReason::FundingFee,
            Word::Known(UpdateReason::InsuranceClear) => AccountReason::InsuranceClear,
            Word::Known(reason) if moves_money(reason) => AccountReason::Other,
            _ => AccountReason::Charge,
        };
        decoded.items.push(UserEvent::Account(AccountUpdate {
            surface: Surface::Futures,
            reason,
            balances,
            positions,
            transaction_time: time("T", event.transaction_ms.0)?,
            event_time: time("E", event.event_ms.0)?,
        }));
        Ok(())
    }

    /// `ac` and `ai`: the documents state that one of them is present.
    fn config(
        &self,
        event: &AccountConfigUpdate,
        decoded: &mut WithNotes<UserEvent>,
    ) -> Result<(), DecodeError> {
        if let Some(change) = &event.leverage {
            let notes = &mut decoded.notes;
            let symbol = self.configured(Surface::Futures, &change.symbol, "leverage", notes);
            let leverage = u32::try_from(change.leverage.0).map_err(|_| DecodeError::Figure {
                field: "l",
                value: change.leverage.0.into(),
                scale: 0,
            })?;
            if let Some((instrument, _)) = symbol {
                decoded.items.push(UserEvent::Leverage {
                    instrument,
                    leverage,
                });
            }
        }
        if let Some(modes) = &event.modes {
            let hedge = modes
                .hedge
                .map(|flag| UserEvent::PositionMode { hedge: flag.0 });
            let assets = modes.multi_assets.map(|flag| UserEvent::AssetMode {
                multi_assets: flag.0,
            });
            decoded.items.extend(hedge.into_iter().chain(assets));
        }
        Ok(())
    }
}

/// An order update with the data that its order object does not contain.
struct ReportedOrder<'a> {
    surface: Surface,
    order: &'a FuturesOrder,
    event_ms: Whole,
    /// Quote quantity of the fill, if the event has it.
    quote_qty: Option<Exact>,
}

fn update(
    reported: &ReportedOrder<'_>,
    instrument: InstrumentId,
    rules: &Instrument,
    fill: Option<Fill>,
) -> Result<OrderUpdate, DecodeError> {
    let order = reported.order;
    let order_type = reported_type(order);
    let stop_price = order.stop_price.filter(|_| !order_type.is_trailing());
    let stop_price = stop_price.unwrap_or_default();
    let position_side = match &order.position_side {
        Some(word) => known("ps", word)?,
        None => PositionSide::Both,
    };
    Ok(OrderUpdate {
        client_order_id: ClientOrderId::from_venue(&order.client_order_id),
        order_id: VenueOrderId(order.order_id.0),
        instrument,
        side: known("S", &order.side)?,
        position_side,
        order_type,
        time_in_force: time_in_force(order.time_in_force.as_ref()),
        orig_qty: Qty(quantity("q", order.qty.0, rules.qty_scale)?),
        price: price("p", order.price.unwrap_or_default(), rules)?,
        stop_price: price("sp", stop_price, rules)?,
        reduce_only: order.reduce_only.is_some_and(|flag| flag.0),
        execution: known("x", &order.execution_type)?,
        status: known("X", &order.status)?,
        executed_qty: Qty(quantity("z", order.cum_qty.0, rules.qty_scale)?),
        transaction_time: time("T", order.trade_ms.0)?,
        event_time: time("E", reported.event_ms.0)?,
        fill,
    })
}

/// Whether the venue placed the order itself. Any of the event's marks is enough
/// (docs/interface/user-stream.md#order_trade_update).
fn is_forced(order: &FuturesOrder) -> bool {
    order.forced_close().is_some()
        || order.order_type == Word::Known(OrderType::Liquidation)
        || order.execution_type == Word::Known(ExecutionType::Calculated)
        || order.status == Word::Known(OrderStatus::NewInsurance)
        || order.status == Word::Known(OrderStatus::NewAdl)
}

/// The type with which the order was placed, which a trigger does not change. A liquidation is
/// recognized by its type or by its client order id
/// (docs/interface/user-stream.md#order_trade_update).
fn reported_type(order: &FuturesOrder) -> OrderType {
    let is_liquidation = order.order_type == Word::Known(OrderType::Liquidation)
        || order.forced_close() == Some(ForcedClose::Liquidation);
    if is_liquidation {
        return OrderType::Liquidation;
    }
    let reported = order.original_type.as_ref().unwrap_or(&order.order_type);
    type_of(reported, order.price.unwrap_or_default().0)
}

fn price(field: &'static str, value: Exact, rules: &Instrument) -> Result<Price, DecodeError> {
    nearest(field, value.0, rules.price_scale).map(Price)
}

/// Copies a spot report into the fields of a futures order.
fn as_futures(report: &ExecutionReport) -> FuturesOrder {
    FuturesOrder {
        symbol: report.symbol.clone(),
        client_order_id: report.client_order_id.clone(),
        side: report.side.clone(),
        order_type: report.order_type.clone(),
        time_in_force: report.time_in_force.clone(),
        qty: report.qty,
        price: report.price,
        avg_price: report.avg_price,
        stop_price: report.stop_price,
        execution_type: report.execution_type.clone(),
        status: report.status.clone(),
        order_id: report.order_id,
        last_qty: report.last_qty,
        cum_qty: report.cum_qty,
        last_price: report.last_price,
        commission_asset: report.commission_asset.clone(),
        commission: report.commission,
        trade_ms: report.transaction_ms,
        trade_id: report.trade_id,
        bids_notional: None,
        asks_notional: None,
        is_maker: report.is_maker,
        reduce_only: None,
        working_type: None,
        original_type: report.original_type.clone(),
        position_side: None,
        close_all: None,
        activation_price: None,
        callback_rate: None,
        realized_profit: None,
    }
}

/// Whether the reason is money that came in or went out, not profit or loss.
const fn moves_money(reason: UpdateReason) -> bool {
    use UpdateReason as R;
    matches!(
        reason,
        R::Deposit
            | R::Withdraw
            | R::WithdrawReject
            | R::AdminDeposit
            | R::AdminWithdraw
            | R::MarginTransfer
            | R::MarginTypeChange
            | R::AssetTransfer
            | R::AutoExchange
    )
}
