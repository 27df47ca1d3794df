//! Formats values for people: escaped, grouped, with units.

use std::fmt;

use windvane_model::decimal::{Amount, div_half_even, pow10};
use windvane_model::outside_text;

/// Text from outside, escaped for an element or a quoted attribute, without hidden characters, and
/// cut at [`outside_text::MESSAGE_MAX`].
pub(crate) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = outside_text::message(self.0);
        let mut rest = &*text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// An integer with thousands separators.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An amount with this number of decimals (at most 8), rounded half to even, with thousands
/// separators and a real minus sign.
pub fn money(amount: Amount, places: u8) -> String {
    let places = places.min(8);
    let rounded = div_half_even(amount.0, pow10(8 - places).into());
    let one = pow10(places).unsigned_abs();
    let magnitude = rounded.unsigned_abs();
    let sign = if rounded < 0 { "\u{2212}" } else { "" };
    let whole = grouped((magnitude / u128::from(one)) as u64);
    let part = magnitude % u128::from(one);
    let width = usize::from(places);
    if width == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part:0width$}")
    }
}

/// Like [`money`], with a plus sign if it is positive.
pub fn signed_money(amount: Amount, places: u8) -> String {
    let plus = if amount.0 > 0 { "+" } else { "" };
    format!("{plus}{}", money(amount, places))
}

/// A fraction at scale 8 as a percentage. `signed` adds a plus sign to positive values.
pub fn percent(fraction: i128, signed: bool) -> String {
    let amount = Amount(fraction * 100);
    let small = amount.0 != 0 && amount.0.abs() < 10_000_000;
    let places = if small { 4 } else { 2 };
    let text = if signed {
        signed_money(amount, places)
    } else {
        money(amount, places)
    };
    format!("{text}\u{202f}%")
}

/// `part / whole` as a percentage with one decimal, or a dash if `whole` is 0.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "\u{2013}".to_owned();
    }
    let tenths = div_half_even(i128::from(part) * 1000, whole.into());
    format!("{}.{}\u{202f}%", tenths / 10, tenths % 10)
}

/// A duration in nanoseconds, in a suitable unit.
pub fn duration(ns: i64) -> String {
    const UNITS: [(i64, &str); 3] = [(1_000, "\u{b5}s"), (1_000_000, "ms"), (1_000_000_000, "s")];
    let seconds = ns / 1_000_000_000;
    if ns < 1_000 {
        return format!("{ns}\u{202f}ns");
    }
    if seconds >= 60 {
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
        return match (days, hours) {
            (0, 0) => format!("{minutes}\u{202f}min {:02}\u{202f}s", seconds % 60),
            (0, _) => format!("{hours}\u{202f}h {minutes:02}\u{202f}min"),
            _ => format!("{days}\u{202f}d {hours:02}\u{202f}h"),
        };
    }
    let (unit_ns, unit) = UNITS
        .into_iter()
        .rfind(|(unit_ns, _)| ns >= *unit_ns)
        .unwrap_or(UNITS[0]);
    // Three significant digits.
    let places: u8 = match ns / unit_ns {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    let scaled = i128::from(ns) * i128::from(pow10(8)) / i128::from(unit_ns);
    format!("{}\u{202f}{unit}", money(Amount(scaled), places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_leave_its_element() {
        let text = Escaped("<script>alert('1 & \"2\"')</script>").to_string();
        assert_eq!(
            text,
            "&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;"
        );
    }

    #[test]
    fn amounts_are_grouped_and_rounded() {
        let cases = [
            (123_456_789_012_345, 2, "1,234,567.89"),
            (-150_000_000, 2, "\u{2212}1.50"),
            (500_000, 2, "0.00"),
            (1_500_000, 2, "0.02"),
            (100_000_000_000, 0, "1,000"),
        ];
        for (units, places, expected) in cases {
            assert_eq!(money(Amount(units), places), expected);
        }
        assert_eq!(signed_money(Amount(100_000_000), 1), "+1.0");
        assert_eq!(percent(1_234_567, false), "1.23\u{202f}%");
        assert_eq!(percent(-1_234, true), "\u{2212}0.0012\u{202f}%");
        assert_eq!(share(1, 3), "33.3\u{202f}%");
    }

    #[test]
    fn durations_have_a_suitable_unit() {
        let cases = [
            (12, "12\u{202f}ns"),
            (1_500, "1.50\u{202f}\u{b5}s"),
            (5_000_000, "5.00\u{202f}ms"),
            (12_300_000_000, "12.3\u{202f}s"),
            (61_000_000_000, "1\u{202f}min 01\u{202f}s"),
            (3_660_000_000_000, "1\u{202f}h 01\u{202f}min"),
            (90_000_000_000_000, "1\u{202f}d 01\u{202f}h"),
        ];
        for (ns, expected) in cases {
            assert_eq!(duration(ns), expected);
        }
    }
}
