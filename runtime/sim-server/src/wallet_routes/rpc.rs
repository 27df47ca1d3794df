//! The JSON-RPC info endpoint (docs/interface/chain.md#info-endpoint): balances, open orders and
//! fills of an address, without authentication. `id` is returned unchanged, whatever JSON value it
//! is. Fills are sorted newest first (docs/interface/chain.md#fills).
//!
//! The documents leave some points open, which are decided here:
//!
//! - Errors are JSON-RPC 2.0 error objects with HTTP status 200.
//! - An address without an account has empty records.
//! - An account whose privacy is PRIVATE (`accountPrivacy` = `enabled`) also shows empty records.
//! - Orders and fills belong to the futures surface, as the balances do.
//! - `latest` is the only block tag.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use windvane_model::{Amount, InstrumentId, PositionSide, Side, Surface};
use windvane_sim::{OrderView, PositionView};

use super::values::number;
use crate::account_id::AccountId;
use crate::accounts::of_user;
use crate::choices::figures::entry_price;
use crate::choices::{InfoLag, InfoPositions};
use crate::figures;
use crate::request::json_rpc::{self, RpcRequest};
use crate::request::{Body, Call, evm_address};
use crate::state::State;

/// Time of block 1. Earlier data is not shown.
const GENESIS_MS: i64 = 1_772_678_119_418;

/// Maximum number of open orders or fills per response.
const RECORDS_MAX: usize = 1_000;

/// Maximum time span of fills.
const SPAN_MAX_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// An error object: code and message.
type RpcError = (i32, String);

/// Answers a request body. Errors have status 200 too.
pub(super) fn answer(state: &mut State, call: &Call<'_>) -> Body {
    let request = match json_rpc::read(call.body) {
        Ok(request) => request,
        Err((code, message)) => return failed(code, message),
    };
    let id = request.id.map_or("null", RawValue::get);
    envelope(id, result(state, call.now_ms, &request))
}

fn failed(code: i32, message: &str) -> Body {
    envelope("null", Err((code, message.to_owned())))
}

fn envelope(id: &str, result: Result<Value, RpcError>) -> Body {
    let outcome = match result {
        Ok(result) => format!("\"result\":{result}"),
        Err((code, message)) => {
            format!("\"error\":{}", json!({ "code": code, "message": message }))
        }
    };
    Body(format!("{{{outcome},\"id\":{id},\"jsonrpc\":\"2.0\"}}"))
}

fn result(state: &mut State, now_ms: i64, request: &RpcRequest<'_>) -> Result<Value, RpcError> {
    let Some(method) = request.method.as_str().filter(|_| request.jsonrpc == "2.0") else {
        return Err((
            -32600,
            "Invalid request: jsonrpc must be \"2.0\", method a text".to_owned(),
        ));
    };
    let own = method.strip_prefix(&state.settings.brand.rpc_prefix);
    let unknown = || (-32601, format!("Method not found: {method}"));
    let params = Positional::read(&request.params)?;
    match own.ok_or_else(unknown)? {
        "getBalance" => {
            params.check_tag(1)?;
            balance(state, &params)
        }
        "openOrders" => {
            params.check_tag(2)?;
            open_orders(state, &params)
        }
        "userFills" => {
            params.check_tag(4)?;
            user_fills(state, &params, now_ms)
        }
        _ => Err(unknown()),
    }
}

/// Positional parameters. Trailing ones may be omitted.
struct Positional<'a>(&'a [Value]);

impl<'a> Positional<'a> {
    fn read(params: &'a Value) -> Result<Self, RpcError> {
        let list = params
            .as_array()
            .ok_or_else(|| bad("params must be an array"))?;
        Ok(Self(list))
    }

    fn at(&self, place: usize) -> Option<&'a Value> {
        self.0.get(place).filter(|value| !value.is_null())
    }

    fn check_tag(&self, place: usize) -> Result<(), RpcError> {
        match self.at(place).and_then(Value::as_str) {
            Some("latest") => Ok(()),
            _ => Err(bad(&format!(
                "params[{place}] must be the block tag \"latest\""
            ))),
        }
    }

    fn address(&self) -> Result<(&'a str, alloy_primitives::Address), RpcError> {
        let text = self.at(0).and_then(Value::as_str);
        let text = text.ok_or_else(|| bad("params[0] must be an address"))?;
        let address = evm_address(text).ok_or_else(|| bad("params[0] must be an address"))?;
        Ok((text, address))
    }

    /// `None` for all symbols.
    fn symbol(&self) -> Result<Option<&'a str>, RpcError> {
        match self.at(1) {
            None => Ok(None),
            Some(Value::String(symbol)) => Ok(Some(symbol.as_str()).filter(|s| !s.is_empty())),
            Some(_) => Err(bad("params[1] must be a symbol, \"\" or null")),
        }
    }

    fn time(&self, place: usize) -> Result<Option<i64>, RpcError> {
        let number = |value: &Value| {
            let text = value.as_str().and_then(|text| text.parse().ok());
            value.as_i64().or(text)
        };
        let read = |value| {
            let time = number(value).filter(|time| *time >= 0);
            time.ok_or_else(|| bad(&format!("params[{place}] must be milliseconds or null")))
        };
        self.at(place).map(read).transpose()
    }
}

fn bad(reason: &str) -> RpcError {
    (-32602, format!("Invalid params: {reason}"))
}

/// The account, if it may be shown, and its privacy value.
fn visible(
    state: &mut State,
    address: alloy_primitives::Address,
) -> (Option<AccountId>, &'static str) {
    match of_user(&state.accounts, address) {
        Some(id) if state.wallets.own(id).is_private => (None, "enabled"),
        found => (found, "disabled"),
    }
}

fn balance(state: &mut State, params: &Positional<'_>) -> Result<Value, RpcError> {
    let (shown, address) = params.address()?;
    let (account, privacy) = visible(state, address);
    let (mut assets, mut positions) = (Vec::new(), Vec::new());
    if let Some(id) = account {
        let moment = state.moment(id, state.behind::<InfoLag>());
        let wallets = moment
            .futures
            .iter()
            .filter(|balance| balance.wallet.0 != 0);
        for balance in wallets {
            assets.push(json!({
                "asset": state.assets.name(balance.asset),
                "walletBalance": number(balance.wallet.to_decimal()),
            }));
        }
        let all = state.choices.of::<InfoPositions>() == InfoPositions::All;
        let listed = moment
            .positions
            .iter()
            .filter(|view| all || view.qty.0 != 0);
        positions.extend(listed.map(|held| position(state, id, held)));
    }
    Ok(json!({
        "address": shown,
        "accountPrivacy": privacy,
        "perpAssets": assets,
        "positions": [{ "tradingProduct": "perps", "positions": positions }],
    }))
}

fn position(state: &State, id: AccountId, held: &PositionView) -> Value {
    let rules = state.rules(held.instrument);
    let [bid, ask] = open_notional(state, id, held.instrument, held.position_side);
    json!({
        "id": format!("{}_{}", rules.symbol, held.position_side),
        "symbol": rules.symbol,
        "collateral": state.assets.name(rules.quote),
        "positionAmount": figures::qty(rules, held.qty.0),
        "entryPrice": entry_price(&state.choices, rules, held.entry_price),
        "unrealizedProfit": figures::amount(held.unrealized),
        "notionalValue": figures::amount(held.notional),
        "markPrice": figures::fine_price(held.mark_price),
        "leverage": held.leverage,
        "isolated": held.isolated,
        "isolatedWallet": figures::amount(held.isolated_wallet),
        "adl": held.adl_quantile,
        "positionSide": held.position_side.as_str(),
        "marginValue": figures::amount(held.position_margin),
        "askNotional": figures::amount(ask),
        "bidNotional": figures::amount(bid),
    })
}

/// The notional of the open buy and sell orders of a position side.
fn open_notional(
    state: &State,
    id: AccountId,
    instrument: InstrumentId,
    side: PositionSide,
) -> [Amount; 2] {
    let rules = state.rules(instrument);
    let mut sums = [Amount::ZERO; 2];
    for order in state.account(id).venue.open(Some(instrument)) {
        let price = order.terms.price.or(order.terms.stop_price);
        if let Some(price) = price.filter(|_| order.terms.position_side == side) {
            let left = order.qty.0 - order.executed.0;
            sums[usize::from(order.terms.side == Side::Sell)] += rules.notional(price.0, left);
        }
    }
    sums
}

fn open_orders(state: &mut State, params: &Positional<'_>) -> Result<Value, RpcError> {
    let (shown, address) = params.address()?;
    let symbol = params.symbol()?;
    let (account, privacy) = visible(state, address);
    let at = state.behind::<InfoLag>();
    let shown_orders = |id| state.open_orders(id, Surface::Futures, at);
    let orders = account.map_or_else(Vec::new, shown_orders);
    let wanted = |order: &&OrderView| {
        let rules = state.rules(order.terms.instrument);
        order.created.millis() >= GENESIS_MS && symbol.is_none_or(|symbol| rules.symbol == symbol)
    };
    let records: Vec<_> = orders
        .iter()
        .filter(wanted)
        .take(RECORDS_MAX)
        .map(|order| {
            let rules = state.rules(order.terms.instrument);
            json!({
                "orderId": order.order_id.0.to_string(),
                "symbol": rules.symbol,
                "side": order.terms.side.as_str(),
                "type": order.order_type.as_str(),
                "origQty": figures::qty(rules, order.qty.0),
                "status": order.status.as_str(),
            })
        })
        .collect();
    Ok(json!({ "address": shown, "accountPrivacy": privacy, "openOrders": records }))
}

fn user_fills(state: &mut State, params: &Positional<'_>, now_ms: i64) -> Result<Value, RpcError> {
    let (shown, address) = params.address()?;
    let symbol = params.symbol()?;
    let (from, to) = span(params.time(2)?, params.time(3)?, now_ms)?;
    let (account, privacy) = visible(state, address);
    let account = account.filter(|_| from >= GENESIS_MS);
    let mut fills = Vec::new();
    if let Some(id) = account {
        let until = state.behind::<InfoLag>();
        let trades = state.account(id).history.trades.iter().rev();
        let trades = trades.filter(|trade| until.is_none_or(|until| trade.time <= until));
        let in_span = trades.filter(|trade| (from..=to).contains(&trade.time.millis()));
        for trade in in_span.filter(|trade| trade.surface == Surface::Futures) {
            let rules = state.rules(trade.instrument);
            if symbol.is_some_and(|symbol| rules.symbol != symbol) {
                continue;
            }
            if fills.len() == RECORDS_MAX {
                break;
            }
            fills.push(json!({
                "symbol": rules.symbol,
                "side": trade.side.as_str(),
                "price": figures::price(rules, trade.fill.price.0),
                "qty": figures::qty(rules, trade.fill.qty.0),
                "time": trade.time.millis(),
            }));
        }
    }
    Ok(json!({
        "address": shown,
        "accountPrivacy": privacy,
        "startTime": from,
        "endTime": to,
        "fills": fills,
    }))
}

/// Start and end of the search (docs/interface/chain.md#fills): 7 days from the given bound, or the
/// last 7 days.
fn span(from: Option<i64>, to: Option<i64>, now_ms: i64) -> Result<(i64, i64), RpcError> {
    let (from, to) = match (from, to) {
        (Some(from), Some(to)) => (from, to),
        (Some(from), None) => (from, from.saturating_add(SPAN_MAX_MS)),
        (None, Some(to)) => (to - SPAN_MAX_MS, to),
        (None, None) => (now_ms - SPAN_MAX_MS, now_ms),
    };
    if from > to {
        return Err(bad("from must not be after to"));
    }
    if to - from > SPAN_MAX_MS {
        return Err(bad("from and to must not be more than 7 days apart"));
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_depends_on_the_given_bounds() {
        let now = GENESIS_MS + 2 * SPAN_MAX_MS;
        let week = SPAN_MAX_MS;
        assert_eq!(span(None, None, now), Ok((now - week, now)));
        assert_eq!(
            span(None, Some(now - 5), now),
            Ok((now - 5 - week, now - 5))
        );
        assert_eq!(span(Some(now), None, now), Ok((now, now + week)));
        assert_eq!(span(Some(1), Some(1 + week), now), Ok((1, 1 + week)));
        assert_eq!(span(Some(1), Some(2 + week), now).unwrap_err().0, -32602);
        assert_eq!(span(Some(2), Some(1), now).unwrap_err().0, -32602);
    }

    #[test]
    fn an_id_is_returned_unchanged() {
        let Body(text) = envelope("1.00e5", Err((-1, "x".to_owned())));
        assert_eq!(
            text,
            r#"{"error":{"code":-1,"message":"x"},"id":1.00e5,"jsonrpc":"2.0"}"#
        );
    }
}
