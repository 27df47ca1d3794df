//! Checks one value against the rules of its parameter in the route table. Lists are in `list`.

use rust_decimal::Decimal;
use windvane_protocol::route::{Bounds, Kind, Need, Param};
use windvane_protocol::sign::solana;

use super::error::CallError;

/// Checks that `value` is valid for the parameter.
pub(super) fn check(param: &Param, value: &str) -> Result<(), CallError> {
    // The JSON-RPC methods and address lists accept empty text. A required parameter must not be
    // empty.
    let may_be_empty = param.need != Need::Required && param.bounds == Bounds::Any;
    if value.is_empty() && may_be_empty && matches!(param.kind, Kind::String) {
        return Ok(());
    }
    if is_kind(param.kind, value) && is_within(param, value) && !value.is_empty() {
        return Ok(());
    }
    Err(refuse(param.name, value, rule(param)))
}

/// Checks that `value` is valid for a field of the authentication.
pub(super) fn check_added(name: &str, value: &str) -> Result<(), CallError> {
    let (is_right, rule) = match name {
        "recvWindow" => (
            value.parse::<u32>().is_ok_and(|window| window <= 60_000),
            "an integer from 0 to 60000",
        ),
        "timestamp" => (is_integer(value), "Unix time in milliseconds"),
        "nonce" | "signatureChainId" => (
            is_integer(value) && value.parse::<u64>().is_ok(),
            "a positive integer",
        ),
        "user" | "signer" => (is_address(value), ADDRESS),
        _ => (!value.is_empty(), "a text that is not empty"),
    };
    if is_right {
        return Ok(());
    }
    Err(refuse(name, value, rule.to_owned()))
}

const ADDRESS: &str = "an address: 0x and 40 hexadecimal digits";

/// The rule for the value, as text.
pub(super) fn rule(param: &Param) -> String {
    let is_number = matches!(param.bounds, Bounds::AboveZero | Bounds::NotNegative);
    let kind = match param.kind {
        Kind::String if is_number => "a decimal without exponent".to_owned(),
        Kind::String => "a text".to_owned(),
        Kind::Long | Kind::Int => "an integer".to_owned(),
        Kind::Decimal => "a decimal without exponent".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Enum(names) => format!("one of {}", names.join(", ")),
        Kind::List => "a JSON list".to_owned(),
        Kind::Address => ADDRESS.to_owned(),
    };
    match param.bounds {
        Bounds::Any => kind,
        Bounds::Range(low, high) => format!("{kind} from {low} to {high}"),
        Bounds::Values(values) => {
            let values: Vec<_> = values.iter().map(i64::to_string).collect();
            format!("one of {}", values.join(", "))
        }
        Bounds::Length(low, high) => format!("{kind} of {low} to {high} characters"),
        Bounds::Entries(most) => format!("{kind} of at most {most} entries"),
        Bounds::AboveZero => format!("{kind} greater than 0"),
        Bounds::NotNegative => format!("{kind} of 0 or more"),
        Bounds::ClientOrderId => "1 to 36 letters, digits and . : / _ -".to_owned(),
        Bounds::SolanaAddress => "a Solana address: 32 bytes in base58".to_owned(),
    }
}

fn is_kind(kind: Kind, value: &str) -> bool {
    match kind {
        // Lists are checked entry by entry.
        Kind::String | Kind::List => true,
        Kind::Long | Kind::Int => is_integer(value),
        Kind::Decimal => decimal(value).is_some(),
        // The documents write `priceProtect` in upper case and all other flags in lower case.
        Kind::Boolean => matches!(value, "true" | "false" | "TRUE" | "FALSE"),
        Kind::Enum(names) => names.contains(&value),
        Kind::Address => is_address(value),
    }
}

fn is_within(param: &Param, value: &str) -> bool {
    match param.bounds {
        Bounds::Any | Bounds::Entries(_) => true,
        Bounds::Range(low, high) => {
            let bounds = decimal(low).zip(decimal(high));
            bounds
                .zip(decimal(value))
                .is_some_and(|((low, high), value)| low <= value && value <= high)
        }
        Bounds::Values(values) => value.parse().is_ok_and(|value| values.contains(&value)),
        Bounds::Length(low, high) => (low..=high).contains(&value.chars().count()),
        Bounds::AboveZero => decimal(value).is_some_and(|value| value > Decimal::ZERO),
        Bounds::NotNegative => decimal(value).is_some() && !value.starts_with('-'),
        Bounds::ClientOrderId => is_client_order_id(value),
        Bounds::SolanaAddress => solana::is_address(value),
    }
}

/// Digits with an optional minus. A plus does not occur in documented numbers.
fn is_integer(value: &str) -> bool {
    !value.starts_with('+') && value.parse::<i64>().is_ok()
}

/// Digits with at most one decimal point between them, and an optional minus (no exponents:
/// docs/interface/README.md#7-decimals).
fn decimal(value: &str) -> Option<Decimal> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_plain.then(|| Decimal::from_str_exact(value).ok())?
}

fn is_client_order_id(value: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b".:/_-".contains(&b);
    (1..=36).contains(&value.len()) && value.bytes().all(is_allowed)
}

fn is_address(value: &str) -> bool {
    let digits = value.strip_prefix("0x").unwrap_or("");
    digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn refuse(name: &str, value: &str, rule: String) -> CallError {
    CallError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        rule,
    }
}
