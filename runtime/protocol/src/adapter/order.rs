//! Converts order objects of responses into reports and terms. A spot order has the fields of a
//! futures order except those of positions. So both kinds are handled as futures orders.

use rust_decimal::Decimal;
use windvane_model::protocol::OrderReport;
use windvane_model::state_report::OpenOrder;
use windvane_model::{
    Amount, ClientOrderId, Instrument, InstrumentId, OrderTerms, OrderType, PositionSide, Price,
    Qty, TimeInForce, VenueOrderId,
};

use super::figures::{amount, exact, nearest, product, quantity, time};
use super::{DecodeError, known};
use crate::wire::futures::Order;
use crate::wire::{Exact, Flag, Word, spot};

/// Copies a spot order into the fields of a futures order.
pub(super) fn as_futures(order: spot::Order) -> Order {
    Order {
        client_order_id: order.client_order_id,
        cum_qty: order.cum_qty,
        cum_quote: order.cum_quote,
        executed_qty: order.executed_qty,
        order_id: order.order_id,
        avg_price: order.avg_price,
        orig_qty: order.orig_qty,
        price: order.price,
        reduce_only: Flag(false),
        side: order.side,
        position_side: Word::Known(PositionSide::Both),
        status: order.status,
        stop_price: order.stop_price,
        close_position: None,
        symbol: order.symbol,
        time: order.time,
        time_in_force: order.time_in_force,
        order_type: order.order_type,
        orig_type: order.orig_type,
        activate_price: None,
        price_rate: None,
        update_time: order.update_time,
        working_type: None,
        price_protect: None,
    }
}

/// The state of an order.
pub(super) fn report(
    id: InstrumentId,
    rules: &Instrument,
    order: &Order,
) -> Result<OrderReport, DecodeError> {
    let executed = order.executed_qty.0;
    let cum_quote = match (order.cum_quote, order.avg_price) {
        (Some(quote), _) => amount("cumQuote", quote.0)?,
        (None, _) if executed.is_zero() => Amount::ZERO,
        (None, Some(average)) => product("avgPrice", average.0, executed)?,
        (None, None) => return Err(DecodeError::Missing("cumQuote")),
    };
    let updated = order.update_time.or(order.time).unwrap_or_default();
    Ok(OrderReport {
        client_order_id: ClientOrderId::from_venue(&order.client_order_id),
        order_id: VenueOrderId(order.order_id.0),
        instrument: id,
        status: known("status", &order.status)?,
        orig_qty: Qty(quantity("origQty", order.orig_qty.0, rules.qty_scale)?),
        executed_qty: Qty(quantity("executedQty", executed, rules.qty_scale)?),
        cum_quote,
        update_time: time("updateTime", updated.0)?,
    })
}

/// An order of a list, with its terms.
pub(super) fn open_order(
    id: InstrumentId,
    rules: &Instrument,
    order: &Order,
) -> Result<OpenOrder, DecodeError> {
    let price = |field, value: Option<Exact>| {
        let value = value.filter(|value| !value.0.is_zero());
        let mantissa = value.map(|value| nearest(field, value.0, rules.price_scale));
        Ok(mantissa.transpose()?.map(Price))
    };
    let report = report(id, rules, order)?;
    let original_type = order.orig_type.as_ref().unwrap_or(&order.order_type);
    let order_type = type_of(original_type, order.price.0);
    let mut terms = OrderTerms::new(id, known("side", &order.side)?, order_type);
    terms.position_side = known("positionSide", &order.position_side)?;
    terms.time_in_force = order.time_in_force.known().copied();
    terms.qty = (report.orig_qty.0 != 0).then_some(report.orig_qty);
    terms.price = price("price", Some(order.price))?;
    terms.stop_price = price(
        "stopPrice",
        order.stop_price.filter(|_| !order_type.is_trailing()),
    )?;
    terms.activation_price = price("activatePrice", order.activate_price)?;
    terms.callback_ppm = order.price_rate.map(callback).transpose()?;
    terms.reduce_only = order.reduce_only.0;
    terms.close_position = order.close_position.is_some_and(|flag| flag.0);
    terms.working_type = match &order.working_type {
        Some(word) => word.known().copied(),
        None => None,
    };
    terms.price_protect = order.price_protect.is_some_and(|flag| flag.0);
    Ok(OpenOrder { report, terms })
}

/// An undocumented type can only belong to an order from outside this program. For such an order
/// only quantity and money matter. Its price shows whether it is a limit order.
pub(super) fn type_of(word: &Word<OrderType>, price: Decimal) -> OrderType {
    match word {
        Word::Known(known) => *known,
        Word::Other(_) if price.is_zero() => OrderType::Market,
        Word::Other(_) => OrderType::Limit,
    }
}

/// An undocumented or missing time in force counts as GTC: the order stays open.
pub(super) fn time_in_force(word: Option<&Word<TimeInForce>>) -> TimeInForce {
    let known = word.and_then(Word::known);
    known.copied().unwrap_or(TimeInForce::Gtc)
}

/// Converts percent to parts per million.
fn callback(percent: Exact) -> Result<u32, DecodeError> {
    let ppm = exact("priceRate", percent.0, 4)?;
    u32::try_from(ppm).map_err(|_| DecodeError::Figure {
        field: "priceRate",
        value: percent.0,
        scale: 4,
    })
}
