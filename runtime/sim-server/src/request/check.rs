//! Checks a request's parameters against the route table: required parameters, types, bounds, and
//! parameters that must not be sent. The handlers check rules that depend on several parameters.
//!
//! Codes for parameters that must not be sent (docs/interface/errors.md#11xx):
//!
//! | parameter | code |
//! |---|---|
//! | a name twice, or more names than any request has | -1101 (when the query is split) |
//! | any name on a route without parameters | -1101 |
//! | a name that no route of the documents has | -1103 |
//! | a name that only other routes have | -1104 |
//! | a name that the route has, without a value | -1105, -1118, -1119; a list of orders -1102 |
//! | a name that the route has but this order may not carry | -1106, -1114 (the matching rules) |
//!
//! Every route, signed or not, accepts the parameters that authentication adds, because clients add
//! them to every request.

use windvane_protocol::route::{Bounds, Kind, Listing, Need, Param, Route};

use super::params::{decimal, flag, integer, invalid, missing};
use super::{Params, Refusal, Router};

/// Parameters that a route accepts in addition to the table.
const BESIDE: &[(&str, &[&str])] = &[
    // The interface has the values of newOrderRespType, and a code for other values, outside of the
    // table (docs/interface/orders.md#enumerations).
    ("spot.new_order", &["newOrderRespType", POST_ONLY, COST]),
    ("futures.new_order", &[POST_ONLY, COST]),
    // The interface lists no parameters for these routes; clients send the key as on spot.
    ("futures.keepalive_listen_key", &["listenKey"]),
    ("futures.close_listen_key", &["listenKey"]),
];

/// A widely used public client converts this option to `timeInForce=GTX`, but also leaves it in the
/// order.
const POST_ONLY: &str = "postOnly";
/// That client converts this option to `quoteOrderQty`, but also leaves it in the order.
const COST: &str = "cost";

/// Checks every parameter of a request, in the documents' order.
pub(crate) fn check(
    router: &Router,
    route: &Route,
    listing: &Listing,
    params: &Params,
) -> Result<(), Refusal> {
    check_values(route, listing, params)?;
    let mut one_of = listed(route, listing)
        .filter(|param| param.need == Need::OneOf)
        .peekable();
    if one_of.peek().is_some() && !one_of.any(|param| params.get(param.name).is_some()) {
        let names: Vec<_> = listed(route, listing)
            .filter(|param| param.need == Need::OneOf)
            .map(|param| format!("'{}'", param.name))
            .collect();
        let msg = format!(
            "Param {} must be sent, but both were empty/null!",
            names.join(" or ")
        );
        return Err(Refusal::new(-1102, msg));
    }
    check_read(router, route, listing, params)
}

/// Checks an order in `batchOrders` like an order that is sent alone.
pub(crate) fn check_entry(
    router: &Router,
    order: &Route,
    listing: &Listing,
    params: &Params,
) -> Result<(), Refusal> {
    check_values(order, listing, params)?;
    check_read(router, order, listing, params)
}

/// The parameters of a route in a version.
fn listed<'a>(route: &'a Route, listing: &Listing) -> impl Iterator<Item = &'a Param> {
    let version = listing.version;
    let of_version = move |p: &&Param| p.only.is_none() || p.only == version;
    route.params.iter().filter(of_version)
}

fn check_values(route: &Route, listing: &Listing, params: &Params) -> Result<(), Refusal> {
    for param in listed(route, listing) {
        match params.raw(param.name) {
            None | Some("") if param.need == Need::Required => return Err(missing(param.name)),
            None => {}
            Some("") => empty(param.name)?,
            Some(text) => value(param, text)?,
        }
    }
    Ok(())
}

/// Refuses parameters that the route does not read.
fn check_read(
    router: &Router,
    route: &Route,
    listing: &Listing,
    params: &Params,
) -> Result<(), Refusal> {
    let own = |name: &str| listed(route, listing).any(|p| p.name.eq_ignore_ascii_case(name));
    let beside = BESIDE.iter().filter(|(of, _)| *of == route.name);
    let beside: Vec<_> = beside.flat_map(|(_, names)| *names).collect();
    let takes = |name: &str| own(name) || beside.iter().any(|n| n.eq_ignore_ascii_case(name));
    let mut unread = Vec::new();
    for parsed in params.iter() {
        let authenticates = router.authenticates(&parsed.name);
        if authenticates && parsed.value.is_empty() {
            empty(&parsed.name)?;
        }
        if authenticates || takes(&parsed.name) {
            continue;
        }
        if !router.knows(&parsed.name) {
            let msg = format!("An unknown parameter was sent: '{}'.", parsed.name);
            return Err(Refusal::new(-1103, msg));
        }
        unread.push(format!("'{}'", parsed.name));
    }
    let sent = params.iter().count();
    if unread.is_empty() {
        Ok(())
    } else if route.params.is_empty() {
        let msg = format!(
            "Too many parameters; expected '0' and received '{}'.",
            unread.len()
        );
        Err(Refusal::new(-1101, msg))
    } else {
        let read = sent - unread.len();
        let msg = format!(
            "Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}': \
             {} not read.",
            unread.join(", ")
        );
        Err(Refusal::new(-1104, msg))
    }
}

/// The refusal of a parameter without a value, if it needs one. A whitelist may be empty
/// (docs/interface/futures.md#agent-and-builder-routes). So may the builder name, which one
/// description of approveBuilder requires and another does not list.
fn empty(name: &str) -> Result<(), Refusal> {
    match name {
        "ipWhitelist" | "apikeyIP" | "builderName" => Ok(()),
        "orderIdList" | "origClientOrderIdList" => Err(missing(name)),
        "newClientOrderId" => Err(Refusal::new(-1118, "New client order ID was empty.")),
        "origClientOrderId" => Err(Refusal::new(-1119, "Original client order ID was empty.")),
        name => {
            let msg = format!("Parameter '{name}' was empty.");
            Err(Refusal::new(-1105, msg))
        }
    }
}

fn value(param: &Param, text: &str) -> Result<(), Refusal> {
    match param.kind {
        Kind::Long | Kind::Int => drop(integer(param.name, text)?),
        Kind::Decimal => drop(decimal(param.name, text)?),
        Kind::Boolean => drop(flag(param.name, text)?),
        Kind::Enum(values) if !values.contains(&text) => return Err(bad_word(param.name)),
        Kind::Enum(_) | Kind::String | Kind::List | Kind::Address => {}
    }
    if param.name == "symbol"
        && !text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    {
        let msg = "Illegal characters found in parameter 'symbol'; legal range is \
                   '^[A-Z0-9-_.]{1,20}$'.";
        return Err(Refusal::new(-1100, msg));
    }
    if within(param, text) {
        Ok(())
    } else {
        Err(out_of_bounds(param, text))
    }
}

fn within(param: &Param, text: &str) -> bool {
    let number = |text: &str| decimal(param.name, text).ok();
    match param.bounds {
        // The number of list entries is checked where lists are read. The others have their own
        // codes, and are also checked where they are read.
        Bounds::Any
        | Bounds::Entries(_)
        | Bounds::NotNegative
        | Bounds::ClientOrderId
        | Bounds::SolanaAddress => true,
        Bounds::Range(low, high) => match (number(text), number(low), number(high)) {
            (Some(value), Some(low), Some(high)) => (low..=high).contains(&value),
            _ => false,
        },
        Bounds::Values(values) => text
            .parse::<i64>()
            .is_ok_and(|value| values.contains(&value)),
        Bounds::Length(low, high) => (low..=high).contains(&text.chars().count()),
        Bounds::AboveZero => number(text).is_some_and(|value| value > rust_decimal::Decimal::ZERO),
    }
}

/// The refusal of a word that is not a value of its parameter.
fn bad_word(name: &str) -> Refusal {
    let (code, msg) = match name {
        "side" => (-1117, "Invalid side."),
        "type" => (-1116, "Invalid orderType."),
        "timeInForce" => (-1115, "Invalid timeInForce."),
        "interval" => (-1120, "Invalid interval."),
        "newOrderRespType" => (-1136, "Invalid newOrderRespType."),
        "workingType" => (-4031, "Invalid working type."),
        "positionSide" => (-4060, "Invalid position side."),
        _ => return invalid(name),
    };
    Refusal::new(code, msg)
}

/// The refusal of a value outside its bounds.
fn out_of_bounds(param: &Param, text: &str) -> Refusal {
    // Only the depth route has a list of permitted limits.
    if let ("limit", Bounds::Values(_)) = (param.name, param.bounds) {
        return Refusal::new(-4021, format!("{text} is not valid depth limit."));
    }
    if let ("clientTranId", Bounds::Length(low, high)) = (param.name, param.bounds) {
        let msg = format!(
            "clientTranId is not valid: its length must be from {low} to {high} characters."
        );
        return Refusal::new(-4114, msg);
    }
    let (code, msg) = match param.name {
        "newClientOrderId" | "origClientOrderId" => (
            -4015,
            "Client order id is not valid: its length must not exceed 36 characters.",
        ),
        "leverage" => (-4028, "Leverage is not valid."),
        "amount" => (-4055, "Amount must be positive."),
        _ => return invalid(param.name),
    };
    Refusal::new(code, msg)
}
