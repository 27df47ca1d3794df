//! The venue's protocol as far as the rules need it, written from the documents: orders, cancels,
//! countdowns, order objects and order events.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use crate::witness::{Answer, Request};

/// A new order as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// `newClientOrderId`.
    pub id: String,
    /// `surface:SYMBOL`.
    pub instrument: String,
    /// `side` is `BUY`.
    pub buys: bool,
    /// `positionSide`; empty if the order has none.
    pub position_side: String,
    /// `quantity`; 0 if the order has none.
    pub qty: Decimal,
    /// `price`, if the order has one.
    pub price: Option<Decimal>,
    /// The venue itself prevents the order from opening anything: by `reduceOnly`, or because it
    /// closes a side of hedge mode.
    pub reduces: bool,
    /// `reduceOnly` or `closePosition` was sent.
    pub flagged: bool,
}

impl Placed {
    /// The name of its position, as from [`book`].
    pub fn book(&self) -> String {
        book(&self.instrument, &self.position_side)
    }
}

/// The name of a position: in one-way mode the instrument; in hedge mode `futures:BTCUSDT LONG` or
/// `futures:BTCUSDT SHORT`.
pub fn book(instrument: &str, position_side: &str) -> String {
    match position_side {
        "" | "BOTH" => instrument.to_owned(),
        side => format!("{instrument} {side}"),
    }
}

/// All position names that an account may have for an instrument.
pub fn books(instrument: &str) -> [String; 3] {
    ["BOTH", "LONG", "SHORT"].map(|side| book(instrument, side))
}

/// The position name of a record of the venue's state, which is a position or a trade.
pub fn book_of(record: &Value) -> String {
    let word = |field| {
        record
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let surface = match word("surface") {
        "" => "futures",
        surface => surface,
    };
    let instrument = format!("{surface}:{}", word("symbol"));
    book(&instrument, word("position_side"))
}

/// The instrument of a position.
pub fn instrument_of(book: &str) -> &str {
    book.split(' ').next().unwrap_or_default()
}

/// Whether an order closes a side of hedge mode; the venue lets such an order open nothing
/// (docs/interface/orders.md#place-a-futures-order).
pub fn closes_side(buys: bool, position_side: &str) -> bool {
    matches!((buys, position_side), (false, "LONG") | (true, "SHORT"))
}

/// The venue's report about an order.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// `clientOrderId`.
    pub id: String,
    /// `orderId`.
    pub number: Option<i64>,
    /// `status`.
    pub status: String,
    /// `executedQty`.
    pub executed: Decimal,
}

impl Report {
    /// Whether only late reports may follow (docs/interface/orders.md#order-status).
    pub fn is_final(&self) -> bool {
        matches!(
            self.status.as_str(),
            "FILLED" | "CANCELED" | "REJECTED" | "EXPIRED"
        )
    }
}

/// The kind of a request, as far as the rules need it.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestKind {
    /// New order, or several.
    Place(Vec<Placed>),
    /// Cancel order, or several: the client order ids.
    Cancel(Vec<String>),
    /// `countdownCancelAll`: instrument and milliseconds.
    Countdown(String, i64),
    /// Query order.
    Query(String),
    /// Current open orders.
    OpenOrders,
    /// The list of the account's trades of an instrument.
    Trades(String),
    /// Any other read.
    Read,
    /// Anything else that may change something.
    Change,
}

/// The kind of a request.
pub fn request_kind(request: &Request) -> RequestKind {
    let last = request.path.rsplit('/').next().unwrap_or_default();
    let id = || request.param("origClientOrderId").unwrap_or_default();
    match (request.method.as_str(), last) {
        ("POST", "order") => RequestKind::Place(vec![placed(request)]),
        ("POST", "batchOrders") => RequestKind::Place(placed_batch(request)),
        ("DELETE", "order") => RequestKind::Cancel(vec![id().to_owned()]),
        ("DELETE", "batchOrders") => RequestKind::Cancel(cancelled_batch(request)),
        ("POST", "countdownCancelAll") => {
            let ms = request
                .param("countdownTime")
                .and_then(|ms| ms.parse().ok());
            RequestKind::Countdown(instrument(request), ms.unwrap_or(-1))
        }
        ("GET", "order" | "openOrder") => RequestKind::Query(id().to_owned()),
        ("GET", "openOrders") => RequestKind::OpenOrders,
        ("GET", "userTrades") => RequestKind::Trades(instrument(request)),
        // Requests about listen keys change nothing, and the info endpoint is read by POST.
        (_, "listenKey" | "noop" | "info") | ("GET", _) => RequestKind::Read,
        _ => RequestKind::Change,
    }
}

/// Whether an order id is one that no order ever has: its number is the largest of 64 bits, or 0. A
/// cancel of it tests whether the key may trade.
pub fn is_probe(id: &str) -> bool {
    id.ends_with(".3w5e11264sgsf") || id.ends_with(".0")
}

/// Whether a response reports success.
pub fn is_done(answer: &Answer) -> bool {
    answer.status == 200
}

/// The error code of a refusal.
pub fn code(answer: &Answer) -> Option<i64> {
    answer.json()?.get("code")?.as_i64()
}

/// How long nothing may be sent after a rate limit refusal, nanoseconds: one minute if the response
/// has no time (docs/interface/limits.md#429-418-and-bans).
pub fn wait_ns(answer: &Answer) -> Option<i64> {
    const MINUTE_NS: i64 = 60_000_000_000;
    if !matches!(answer.status, 403 | 418 | 429) {
        return None;
    }
    let named = answer.header("retry-after");
    let named = named.and_then(|text| text.parse::<i64>().ok());
    Some(named.map_or(MINUTE_NS, |seconds| seconds.saturating_mul(1_000_000_000)))
}

/// Whether a response says for certain that nothing was done. 5xx and the codes of unknown outcomes
/// do not (-1000, -1001, -1006, -1007: docs/interface/errors.md#10xx).
pub fn is_refusal(answer: &Answer) -> bool {
    let unknown = matches!(code(answer), None | Some(-1000 | -1001 | -1006 | -1007));
    (400..500).contains(&answer.status) && (!unknown || matches!(answer.status, 418 | 429))
}

/// All orders that a response reports.
pub fn reports(answer: &Answer) -> Vec<Report> {
    let Some(body) = answer.json().filter(|_| is_done(answer)) else {
        return Vec::new();
    };
    match &body {
        Value::Array(list) => list.iter().filter_map(report).collect(),
        one => report(one).into_iter().collect(),
    }
}

/// All trades that a response reports: order, trade and quantity.
pub fn trades(answer: &Answer) -> Vec<(i64, i64, Decimal)> {
    let Some(Value::Array(list)) = answer.json().filter(|_| is_done(answer)) else {
        return Vec::new();
    };
    let read = |trade: &Value| {
        let number = |field| trade.get(field).and_then(Value::as_i64);
        Some((
            number("orderId")?,
            number("id")?,
            self::number(trade, "qty")?,
        ))
    };
    list.iter().filter_map(read).collect()
}

fn report(order: &Value) -> Option<Report> {
    Some(Report {
        id: text(order, "clientOrderId")?,
        number: order.get("orderId").and_then(Value::as_i64),
        status: text(order, "status")?,
        executed: number(order, "executedQty")?,
    })
}

/// The order that a user event reports: `executionReport` or `ORDER_TRADE_UPDATE`.
pub fn event_report(event: &str) -> Option<Report> {
    let event: Value = serde_json::from_str(event).ok()?;
    // A combined stream wraps its payload.
    let event = event.get("data").unwrap_or(&event);
    let order = match event.get("e")?.as_str()? {
        "executionReport" => event,
        "ORDER_TRADE_UPDATE" => event.get("o")?,
        _ => return None,
    };
    Some(Report {
        id: text(order, "c")?,
        number: order.get("i").and_then(Value::as_i64),
        status: text(order, "X")?,
        executed: number(order, "z")?,
    })
}

/// A decimal field, written as text or as a number.
pub fn number(record: &Value, field: &str) -> Option<Decimal> {
    match record.get(field)? {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// A text field.
pub fn text(record: &Value, field: &str) -> Option<String> {
    record.get(field)?.as_str().map(str::to_owned)
}

/// A decimal that the witness has as text.
pub fn decimal(text: &str) -> Decimal {
    text.parse().unwrap_or_default()
}

/// The strategy in an own id `<strategy>.<epoch>.<sequence>` (`docs/promises.md#1-order-ids`).
pub fn strategy(id: &str) -> &str {
    id.split('.').next().unwrap_or_default()
}

/// Whether the strategies can hold nothing in these instruments: no position of the account is
/// larger than what others traded there.
///
/// # Errors
/// The position that is larger, as text.
pub fn is_flat(
    account: &Value,
    strategies: &BTreeSet<String>,
    instruments: &BTreeSet<String>,
) -> Result<(), String> {
    let rows = |name: &str| account[name].as_array().into_iter().flatten();
    let order_id = |row: &Value| row.get("order_id").and_then(Value::as_i64);
    let ids: BTreeMap<_, _> = rows("orders")
        .filter_map(|order| Some((order_id(order)?, text(order, "client_order_id")?)))
        .collect();
    for position in rows("positions") {
        let book = book_of(position);
        if !instruments.contains(instrument_of(&book)) {
            continue;
        }
        let others = rows("trades").filter(|trade| {
            let id = order_id(trade).and_then(|id| ids.get(&id));
            let own = id.is_some_and(|id| strategies.contains(strategy(id)));
            !own && book_of(trade) == book
        });
        let by_hand: Decimal = others.filter_map(|trade| number(trade, "qty")).sum();
        let held = number(position, "qty").unwrap_or_default().abs();
        if held > by_hand {
            return Err(format!(
                "{held} of {book}, of which others traded {by_hand}"
            ));
        }
    }
    Ok(())
}

fn instrument(request: &Request) -> String {
    let symbol = request.param("symbol").unwrap_or_default();
    format!("{}:{symbol}", request.surface)
}

fn placed(request: &Request) -> Placed {
    let field = |name: &str| request.param(name);
    let flag = |name: &str| field(name).is_some_and(|flag| flag.eq_ignore_ascii_case("true"));
    let buys = field("side") == Some("BUY");
    let position_side = field("positionSide").unwrap_or_default();
    let flagged = flag("reduceOnly") || flag("closePosition");
    Placed {
        id: field("newClientOrderId").unwrap_or_default().to_owned(),
        instrument: instrument(request),
        buys,
        qty: field("quantity").map(decimal).unwrap_or_default(),
        price: field("price").map(decimal),
        reduces: flagged || closes_side(buys, position_side),
        position_side: position_side.to_owned(),
        flagged,
    }
}

fn placed_batch(request: &Request) -> Vec<Placed> {
    let list = request.param("batchOrders").unwrap_or_default();
    let list: Vec<Value> = serde_json::from_str(list).unwrap_or_default();
    let flag = |order: &Value, name: &str| {
        let flag = order.get(name);
        flag.is_some_and(|flag| flag == true || flag == "true")
    };
    let placed = |order: &Value| {
        let buys = text(order, "side").as_deref() == Some("BUY");
        let position_side = text(order, "positionSide").unwrap_or_default();
        let flagged = flag(order, "reduceOnly");
        Placed {
            id: text(order, "newClientOrderId").unwrap_or_default(),
            instrument: format!(
                "{}:{}",
                request.surface,
                text(order, "symbol").unwrap_or_default()
            ),
            buys,
            qty: number(order, "quantity").unwrap_or_default(),
            price: number(order, "price"),
            reduces: flagged || closes_side(buys, &position_side),
            position_side,
            flagged,
        }
    };
    list.iter().map(placed).collect()
}

fn cancelled_batch(request: &Request) -> Vec<String> {
    let list = request.param("origClientOrderIdList").unwrap_or_default();
    serde_json::from_str(list).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_both_surfaces_report_orders() {
        let spot = r#"{"e":"executionReport","c":"a.1.2","X":"NEW","z":"0.5"}"#;
        let futures = r#"{"e":"ORDER_TRADE_UPDATE","o":{"c":"a.1.2","X":"NEW","z":"0.5"}}"#;
        assert_eq!(event_report(spot), event_report(futures));
        assert_eq!(event_report(spot).unwrap().executed, decimal("0.5"));
        assert_eq!(event_report(r#"{"e":"ACCOUNT_UPDATE","a":{}}"#), None);
    }

    #[test]
    fn only_definite_refusals_are_refusals() {
        let answer = |status, body: &str| Answer {
            status,
            headers: Vec::new(),
            body: body.to_owned(),
        };
        assert!(is_refusal(&answer(400, r#"{"code":-2010,"msg":""}"#)));
        assert!(is_refusal(&answer(429, "<html>")));
        assert!(!is_refusal(&answer(400, r#"{"code":-1007,"msg":""}"#)));
        assert!(!is_refusal(&answer(403, "<html>")));
        assert!(!is_refusal(&answer(503, r#"{"code":-2010,"msg":""}"#)));
    }
}
