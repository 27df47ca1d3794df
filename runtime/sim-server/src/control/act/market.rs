//! Actions on the rules of a symbol, and trades of others.

use rust_decimal::Decimal;
use serde_json::json;
use windvane_model::decimal::MARK_SCALE;
use windvane_model::instrument::SymbolStatus;
use windvane_model::{Instrument, MarketEvent, Surface, Time, VenueOrderId};

use super::arguments::{
    ActError, Done, account_of, amount_of, instrument_of, mantissa_of, price_of, qty_of, unfit,
};
use crate::faults::{Fields, required};
use crate::state::State;

/// Changes rules of a symbol, its status and filters, for exchange information and for every
/// account. Fields that are not sent keep their values, and open orders stay.
pub(super) fn rules(state: &mut State, mut fields: Fields) -> Done {
    let id = instrument_of(state, &mut fields)?;
    let mut rules = state.rules(id).clone();
    if let Some(status) = fields.text("status")? {
        rules.status = match status.as_str() {
            "TRADING" => SymbolStatus::Trading,
            _ => SymbolStatus::Other(status),
        };
    }
    change_prices(&mut rules, &mut fields)?;
    change_quantities(&mut rules, &mut fields)?;
    change_bounds(&mut rules, &mut fields)?;
    fields.finish()?;
    let fits = |error: windvane_sim::VenueConfigError| ActError::Refused {
        code: -1130,
        msg: error.to_string(),
    };
    for account in &mut state.accounts {
        account.venue.set_rules(id, rules.clone()).map_err(fits)?;
    }
    if let Some(shown) = state.board.instrument_mut(id) {
        *shown = rules;
    }
    Ok(json!({}))
}

/// The largest multiplier of a percent filter.
const MULTIPLIER_MAX: Decimal = Decimal::ONE_THOUSAND;

fn mantissa(
    fields: &mut Fields,
    field: &'static str,
    scale: u8,
    target: &mut i64,
) -> Result<(), ActError> {
    if let Some(value) = fields.decimal(field)? {
        let exact = mantissa_of(field, value, scale)?;
        if exact < 0 {
            return Err(unfit(field, &value.to_string(), "must not be negative"));
        }
        *target = exact;
    }
    Ok(())
}

fn change_prices(rules: &mut Instrument, fields: &mut Fields) -> Result<(), ActError> {
    let scale = rules.price_scale;
    let mut filter = rules.filters.price.unwrap_or_default();
    let before = filter;
    mantissa(fields, "tick_size", scale, &mut filter.tick_size)?;
    mantissa(fields, "min_price", scale, &mut filter.min_price)?;
    mantissa(fields, "max_price", scale, &mut filter.max_price)?;
    if filter != before {
        rules.filters.price = Some(filter);
    }
    Ok(())
}

fn change_quantities(rules: &mut Instrument, fields: &mut Fields) -> Result<(), ActError> {
    let scale = rules.qty_scale;
    let mut filter = rules.filters.lot_size.unwrap_or_default();
    let before = filter;
    mantissa(fields, "step_size", scale, &mut filter.step_size)?;
    mantissa(fields, "min_qty", scale, &mut filter.min_qty)?;
    mantissa(fields, "max_qty", scale, &mut filter.max_qty)?;
    if filter != before {
        rules.filters.lot_size = Some(filter);
    }
    Ok(())
}

fn change_bounds(rules: &mut Instrument, fields: &mut Fields) -> Result<(), ActError> {
    if let Some(value) = fields.decimal("min_notional")? {
        rules.filters.min_notional = Some(amount_of("min_notional", value)?);
    }
    let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    if let Some(limit) = fields.whole("max_num_orders")? {
        rules.filters.max_num_orders = Some(count(limit));
    }
    if let Some(limit) = fields.whole("max_num_algo_orders")? {
        rules.filters.max_num_algo_orders = Some(count(limit));
    }
    if let Some(filter) = &mut rules.filters.percent_price {
        let parts: [(_, &mut Decimal); 2] = [
            ("multiplier_up", &mut filter.multiplier_up),
            ("multiplier_down", &mut filter.multiplier_down),
        ];
        for (field, target) in parts {
            if let Some(value) = fields.decimal(field)? {
                if value < Decimal::ZERO || value > MULTIPLIER_MAX {
                    return Err(unfit(field, &value.to_string(), "must lie in 0 to 1000"));
                }
                *target = value;
            }
        }
    }
    Ok(())
}

/// Continues order and trade ids at these values, so that a new venue can replace an older one.
pub(super) fn ids(state: &mut State, mut fields: Fields) -> Done {
    let account = account_of(state, &mut fields)?;
    let order = fields.signed("order_id")?;
    let trade = fields.signed("trade_id")?;
    fields.finish()?;
    if let Some(id) = order {
        let venue = &mut state.account_mut(account).venue;
        venue.order_ids_after(VenueOrderId(id.saturating_sub(1)));
    }
    if let Some(id) = trade {
        state.board.continue_trades_at(id);
    }
    Ok(json!({}))
}

/// Executes a trade between others now. Like any market trade, it can fill and trigger orders, and
/// it is published.
pub(super) fn trade(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let id = instrument_of(state, &mut fields)?;
    let price = required("price", fields.decimal("price"))?;
    let qty = required("quantity", fields.decimal("quantity"))?;
    let (price, qty) = (
        price_of(state, id, "price", price)?.0,
        qty_of(state, id, "quantity", qty)?.0,
    );
    let buyer_is_maker = fields.boolean("buyer_is_maker")?.unwrap_or(false);
    fields.finish()?;
    let bad = |field, value: i64| unfit(field, &value.to_string(), "must be positive");
    if price <= 0 {
        return Err(bad("price", price));
    }
    if qty <= 0 {
        return Err(bad("quantity", qty));
    }
    let event = MarketEvent::Trade {
        price,
        qty,
        trade_id: 0,
        buyer_is_maker,
    };
    crate::audience::inject(state, now, id, &event);
    Ok(json!({}))
}

/// Sets a mark price now. Like any mark of the market, it can trigger orders and liquidate, and it
/// is published. The source's next mark does not depend on it.
pub(super) fn mark(state: &mut State, mut fields: Fields, now: Time) -> Done {
    let id = instrument_of(state, &mut fields)?;
    let price = required("price", fields.decimal("price"))?;
    let mark = mantissa_of("price", price, MARK_SCALE)?;
    fields.finish()?;
    if mark <= 0 {
        return Err(unfit("price", &price.to_string(), "must be positive"));
    }
    if state.rules(id).surface != Surface::Futures {
        return Err(unfit("surface", "spot", "must be futures"));
    }
    let event = MarketEvent::Mark {
        mark,
        index: mark,
        funding_rate: 0,
        next_funding: Time::NEVER,
    };
    crate::audience::inject(state, now, id, &event);
    Ok(json!({}))
}
