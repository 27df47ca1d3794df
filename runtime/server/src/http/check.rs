//! A request's parameters against the route table: what must be sent, of which type, within
//! which bounds. Rules that depend on more than one parameter are the handlers'.

use windvane_venue::route::{Bounds, Kind, Listing, Need, Param, Route};

use super::params::{decimal, flag, integer, invalid, missing};
use super::{Params, Refusal, Router};

/// Checks every parameter of the route, in the documents' order.
pub(super) fn check(
    router: &Router,
    route: &Route,
    listing: &Listing,
    params: &Params,
) -> Result<(), Refusal> {
    let listed = || {
        let of_version = |p: &&Param| p.only.is_none() || p.only == listing.version;
        route.params.iter().filter(of_version)
    };
    for param in listed() {
        match params.raw(param.name) {
            None | Some("") if param.need == Need::Required => return Err(missing(param.name)),
            None => {}
            Some("") => empty(param)?,
            Some(text) => value(param, text)?,
        }
    }
    let mut one_of = listed()
        .filter(|param| param.need == Need::OneOf)
        .peekable();
    if one_of.peek().is_some() && !one_of.any(|param| params.get(param.name).is_some()) {
        let names: Vec<_> = listed()
            .filter(|param| param.need == Need::OneOf)
            .map(|param| format!("'{}'", param.name))
            .collect();
        let msg = format!(
            "Param {} must be sent, but both were empty/null!",
            names.join(" or ")
        );
        return Err(Refusal::new(-1102, msg));
    }
    check_known(router, params)
}

/// A name that no route of the documents has (-1103). One that only other routes have is left
/// unread: clients send what is common to several.
fn check_known(router: &Router, params: &Params) -> Result<(), Refusal> {
    match params.iter().find(|parsed| !router.knows(&parsed.name)) {
        Some(parsed) => {
            let msg = format!("An unknown parameter was sent: '{}'.", parsed.name);
            Err(Refusal::new(-1103, msg))
        }
        None => Ok(()),
    }
}

/// An optional parameter without a value. A whitelist may be empty (spec 2, updateAgent), and so
/// may a list of alternatives of which another is sent.
fn empty(param: &Param) -> Result<(), Refusal> {
    match param.name {
        "ipWhitelist" | "apikeyIP" => Ok(()),
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
        Kind::Enum(words) if !words.contains(&text) => return Err(bad_word(param.name)),
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
        // Lists are counted, and the others refused with codes of their own, where they are read.
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

/// The code of a word that its parameter does not have.
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

/// The code of a value outside its bounds.
fn out_of_bounds(param: &Param, text: &str) -> Refusal {
    // Only depth lists the limits that it takes.
    if let ("limit", Bounds::Values(_)) = (param.name, param.bounds) {
        return Refusal::new(-4021, format!("{text} is not valid depth limit."));
    }
    let (code, msg) = match param.name {
        "newClientOrderId" | "origClientOrderId" => (
            -4015,
            "Client order id is not valid: its length must not exceed 36 characters.",
        ),
        "clientTranId" => (
            -4114,
            "clientTranId is not valid: its length must be under 64 characters.",
        ),
        "leverage" => (-4028, "Leverage is not valid."),
        "amount" => (-4055, "Amount must be positive."),
        _ => return invalid(param.name),
    };
    Refusal::new(code, msg)
}
