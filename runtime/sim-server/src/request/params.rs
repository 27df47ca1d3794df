//! The parameters of query and form body: split, percent-decoded, in the order received. The case
//! of names does not matter (docs/interface/README.md#8-signed-bytes). The signed bytes are never
//! rebuilt from this form.

use alloy_primitives::Address;
use percent_encoding::percent_decode_str;
use rust_decimal::Decimal;
use windvane_protocol::route::Surface;

use super::Refusal;

/// Maximum number of parameters per request.
const PARAMETERS_MAX: usize = 100;

/// One parameter, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The parameters of a request, in the order received: query first, then body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<Parsed>);

impl Params {
    /// Splits query and body. A name that appears twice in one of them is refused (-1101). A name
    /// that appears in both is refused on spot; on other surfaces the query value counts
    /// (docs/interface/conventions.md#parameters).
    pub(crate) fn parse(surface: Surface, query: &str, body: &str) -> Result<Self, Refusal> {
        let mut all = split(query)?;
        let from_query = all.len();
        for parsed in split(body)? {
            let twice = all[..from_query]
                .iter()
                .any(|q| same(&q.name, &parsed.name));
            if !twice {
                all.push(parsed);
            } else if surface == Surface::Spot {
                return Err(duplicate(&parsed.name));
            }
        }
        if all.len() > PARAMETERS_MAX {
            let msg = format!(
                "Too many parameters; expected '{PARAMETERS_MAX}' and received '{}'.",
                all.len()
            );
            return Err(Refusal::new(-1101, msg));
        }
        Ok(Self(all))
    }

    /// Parameters that are already decoded, from an entry of a JSON list.
    pub(crate) fn from_pairs(pairs: Vec<(String, String)>) -> Result<Self, Refusal> {
        let mut all: Vec<Parsed> = Vec::with_capacity(pairs.len());
        for (name, value) in pairs {
            if all.iter().any(|other| same(&other.name, &name)) {
                return Err(duplicate(&name));
            }
            all.push(Parsed { name, value });
        }
        Ok(Self(all))
    }

    /// The value of a parameter as it was sent; it may be empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|p| same(&p.name, name));
        found.map(|p| p.value.as_str())
    }

    /// The value of a parameter, if it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// The value of a required parameter (-1102 if it is missing).
    pub(crate) fn required(&self, name: &str) -> Result<&str, Refusal> {
        self.get(name).ok_or_else(|| missing(name))
    }

    /// An integer (-1100 if it is malformed).
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        self.get(name).map(|text| integer(name, text)).transpose()
    }

    /// A decimal (-1100 if it is malformed).
    pub(crate) fn decimal(&self, name: &str) -> Result<Option<Decimal>, Refusal> {
        self.get(name).map(|text| decimal(name, text)).transpose()
    }

    /// `true` or `false` in any case (-1130 for other values).
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.get(name).map(|text| flag(name, text)).transpose()
    }

    /// All parameters, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Parsed> {
        self.0.iter()
    }
}

/// Compares names without case.
fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn duplicate(name: &str) -> Refusal {
    Refusal::new(
        -1101,
        format!("Duplicate values for a parameter '{name}' detected."),
    )
}

/// A required parameter was not sent, or is empty (-1102).
pub(crate) fn missing(name: &str) -> Refusal {
    let msg = format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed.");
    Refusal::new(-1102, msg)
}

/// A value that its parameter does not permit (-1130).
pub(crate) fn invalid(name: &str) -> Refusal {
    Refusal::new(
        -1130,
        format!("Data sent for parameter '{name}' is not valid."),
    )
}

fn illegal(name: &str, legal: &str) -> Refusal {
    let msg = format!("Illegal characters found in parameter '{name}'; legal range is '{legal}'.");
    Refusal::new(-1100, msg)
}

/// Parses digits with an optional minus sign.
pub(crate) fn integer(name: &str, text: &str) -> Result<i64, Refusal> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(illegal(name, "^[0-9]{1,20}$"));
    }
    text.parse().map_err(|_| invalid(name))
}

/// Parses decimal text without an exponent (docs/interface/README.md#7-decimals).
pub(crate) fn decimal(name: &str, text: &str) -> Result<Decimal, Refusal> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let numeric = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !numeric(whole) || !numeric(fraction) {
        return Err(illegal(name, "^([0-9]{1,20})(\\.[0-9]{1,20})?$"));
    }
    // Zeros at either end do not change the value, and there may be more of them than the type can
    // hold.
    let (whole, fraction) = (
        whole.trim_start_matches('0'),
        fraction.trim_end_matches('0'),
    );
    let sign = if text.starts_with('-') { "-" } else { "" };
    let shortest = format!("{sign}0{whole}.{fraction}");
    let read = |text: &str| Decimal::from_str_exact(text.trim_end_matches('.'));
    match (read(&shortest), read(&format!("0{whole}"))) {
        (Ok(value), _) => Ok(value),
        (Err(_), Ok(_)) => {
            let msg = format!(
                "Precision of parameter '{name}' is over the maximum defined for this asset."
            );
            Err(Refusal::new(-1111, msg))
        }
        // The value exceeds every bound, so the check of the bound refuses it.
        (Err(_), Err(_)) if sign.is_empty() => Ok(Decimal::MAX),
        (Err(_), Err(_)) => Ok(Decimal::MIN),
    }
}

/// Parses `true` or `false`.
pub(crate) fn flag(name: &str, text: &str) -> Result<bool, Refusal> {
    if text.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err(invalid(name))
    }
}

/// Parses an EVM address with the prefix `0x`; case does not matter. `None` if the text is not an
/// address.
pub(crate) fn evm_address(text: &str) -> Option<Address> {
    text.strip_prefix("0x")
        .or(text.strip_prefix("0X"))?
        .parse()
        .ok()
}

fn split(text: &str) -> Result<Vec<Parsed>, Refusal> {
    let mut all: Vec<Parsed> = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let parsed = Parsed {
            name: decode(name)?,
            value: decode(value)?,
        };
        if all.iter().any(|other| same(&other.name, &parsed.name)) {
            return Err(duplicate(&parsed.name));
        }
        all.push(parsed);
    }
    Ok(all)
}

/// Decodes one part of a form: `+` is a space, `%XX` is a byte, and the bytes must be UTF-8 (-1100
/// otherwise).
fn decode(text: &str) -> Result<String, Refusal> {
    let bad = || {
        let msg = format!("Illegal characters found in a parameter: '{text}' is not form-encoded.");
        Refusal::new(-1100, msg)
    };
    let mut after = text.split('%');
    after.next();
    let escaped = |part: &str| {
        let digits = part.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    };
    if !after.all(escaped) {
        return Err(bad());
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    let decoded = decoded.map_err(|_| bad())?;
    if decoded.chars().any(char::is_control) {
        return Err(bad());
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    fn parse(surface: Surface, query: &str, body: &str) -> Result<Params, i32> {
        Params::parse(surface, query, body).map_err(|refusal| refusal.code)
    }

    #[test]
    fn names_have_no_case_and_values_are_decoded() {
        let params = parse(Surface::Spot, "SYMBOL=BTCUSDT&a=%2Fb+c", "side=BUY").unwrap();
        assert_eq!(params.raw("symbol"), Some("BTCUSDT"));
        assert_eq!(params.raw("A"), Some("/b c"));
        assert_eq!(params.raw("Side"), Some("BUY"));
    }

    #[test]
    fn duplicates_are_refused_and_on_futures_the_query_wins() {
        assert_eq!(parse(Surface::Futures, "a=1&A=2", ""), Err(-1101));
        assert_eq!(parse(Surface::Spot, "a=1", "a=2"), Err(-1101));
        let params = parse(Surface::Futures, "a=1", "a=2").unwrap();
        assert_eq!(params.raw("a"), Some("1"));
    }

    #[test]
    fn bad_escapes_bad_utf8_and_control_characters_are_refused() {
        for query in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=%00"] {
            assert_eq!(parse(Surface::Spot, query, ""), Err(-1100), "{query}");
        }
    }

    #[test]
    fn numbers_have_digits_only() {
        assert_eq!(decimal("p", "1e5").unwrap_err().code, -1100);
        assert_eq!(decimal("p", ".").unwrap_err().code, -1100);
        assert_eq!(decimal("p", "0.10").unwrap(), Decimal::new(10, 2));
        assert_eq!(integer("n", "1.5").unwrap_err().code, -1100);
        assert_eq!(
            integer("n", "99999999999999999999").unwrap_err().code,
            -1130
        );
    }

    proptest! {
        #[test]
        fn encoded_values_round_trip(values in proptest::collection::vec("[^\\x00-\\x1f\\x7f-\\x9f]{0,20}", 0..8)) {
            let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            let named = values.iter().enumerate();
            let text: Vec<_> = named.map(|(n, value)| format!("p{n}={}", encode(value))).collect();
            let params = Params::parse(Surface::Futures, &text.join("&"), "").unwrap();
            for (n, value) in values.iter().enumerate() {
                prop_assert_eq!(params.raw(&format!("P{n}")), Some(value.as_str()));
            }
        }

        #[test]
        fn no_text_panics(query in ".*", body in ".*", number in ".{0,40}") {
            let _ = Params::parse(Surface::Spot, &query, &body);
            let _ = (integer("n", &number), decimal("n", &number), flag("n", &number));
        }
    }
}
