//! Limits as the venue states them: `rateLimits` of exchange information, and the headers that
//! report current use (docs/interface/limits.md#headers).

use windvane_protocol::route::Surface;

/// The unit of a limit: request weight, or orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// `REQUEST_WEIGHT`: sum of weights, per IP.
    Weight,
    /// ORDERS: orders placed, per account.
    Orders,
}

/// One entry of `rateLimits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The unit that the limit counts.
    pub kind: LimitKind,
    /// Interval of the limit, in milliseconds.
    pub interval_ms: u64,
    /// Highest permitted sum in one interval.
    pub limit: u32,
}

/// Use of one limit, as the venue reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The unit that the limit counts.
    pub kind: LimitKind,
    /// Interval of the limit, in milliseconds.
    pub interval_ms: u64,
    /// Sum that the venue counted in its current interval so far.
    pub used: u32,
}

const MINUTE_MS: u64 = 60_000;

/// The limits of the documents, used until exchange information is read. Where the documents show
/// several samples (docs/interface/limits.md#limits-in-force), this is the smallest one.
pub fn documented(surface: Surface) -> Vec<RateLimit> {
    let weight = |limit| RateLimit {
        kind: LimitKind::Weight,
        interval_ms: MINUTE_MS,
        limit,
    };
    let orders = |limit| RateLimit {
        kind: LimitKind::Orders,
        ..weight(limit)
    };
    match surface {
        Surface::Spot => vec![weight(1_200), orders(100)],
        // The documents state no limits for the Chain API and JSON-RPC, so take the lowest of the
        // others.
        Surface::Chain | Surface::Rpc => vec![weight(1_200)],
        Surface::Futures => vec![weight(2_400), orders(1_200)],
    }
}

impl RateLimit {
    /// Parses a `rateLimits` entry. `None` for kinds and intervals that the documents do not list,
    /// and for numbers that are not positive.
    pub fn from_fields(kind: &str, interval: &str, interval_num: i64, limit: i64) -> Option<Self> {
        let kind = match kind {
            "REQUEST_WEIGHT" => LimitKind::Weight,
            "ORDERS" => LimitKind::Orders,
            _ => return None,
        };
        let unit_ms = match interval {
            // A unit of its own in newer public documents of the exchange Aster.
            "TEN_SECONDS" => 10_000,
            _ => unit_ms(interval.chars().next()?)?,
        };
        let interval_num = u64::try_from(interval_num).ok().filter(|num| *num > 0)?;
        Some(Self {
            kind,
            interval_ms: unit_ms.checked_mul(interval_num)?,
            limit: u32::try_from(limit).ok().filter(|limit| *limit > 0)?,
        })
    }
}

impl Used {
    /// Parses a header `X-MBX-USED-WEIGHT-<intervalNum><intervalLetter>` or
    /// `X-MBX-ORDER-COUNT-...`. The name may be in any case. `None` for every other header.
    pub fn from_header(name: &str, value: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let weight = name.strip_prefix("x-mbx-used-weight-");
        let orders = name.strip_prefix("x-mbx-order-count-");
        let (kind, interval) = match (weight, orders) {
            (Some(interval), _) => (LimitKind::Weight, interval),
            (_, Some(interval)) => (LimitKind::Orders, interval),
            _ => return None,
        };
        let letter = interval.chars().next_back()?;
        let number = interval.strip_suffix(letter)?.parse::<u64>().ok()?;
        Some(Self {
            kind,
            interval_ms: unit_ms(letter.to_ascii_uppercase())?.checked_mul(number)?,
            used: value.trim().parse().ok()?,
        })
    }
}

const fn unit_ms(letter: char) -> Option<u64> {
    match letter {
        'S' => Some(1_000),
        'M' => Some(MINUTE_MS),
        'H' => Some(60 * MINUTE_MS),
        'D' => Some(24 * 60 * MINUTE_MS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_kind_and_interval_in_any_case() {
        let used = Used::from_header("x-mbx-used-weight-1m", "37").unwrap();
        assert_eq!(used.kind, LimitKind::Weight);
        assert_eq!((used.interval_ms, used.used), (60_000, 37));
        let used = Used::from_header("X-MBX-ORDER-COUNT-10S", "2").unwrap();
        assert_eq!(used.kind, LimitKind::Orders);
        assert_eq!((used.interval_ms, used.used), (10_000, 2));
        for (name, value) in [
            ("x-mbx-used-weight", "1"),
            ("x-mbx-used-weight-", "1"),
            ("x-mbx-used-weight-1X", "1"),
            ("x-mbx-used-weight-1m", "many"),
            ("content-type", "1"),
            ("x-mbx-order-count-é", "1"),
        ] {
            assert_eq!(Used::from_header(name, value), None, "{name}");
        }
    }

    #[test]
    fn entries_of_unknown_kind_are_left_out() {
        let entry = RateLimit::from_fields("ORDERS", "SECOND", 10, 300).unwrap();
        assert_eq!((entry.interval_ms, entry.limit), (10_000, 300));
        let same = RateLimit::from_fields("ORDERS", "TEN_SECONDS", 1, 300);
        assert_eq!(same, Some(entry));
        assert_eq!(RateLimit::from_fields("RAW_REQUESTS", "MINUTE", 1, 5), None);
        assert_eq!(RateLimit::from_fields("ORDERS", "MINUTE", 0, 5), None);
        assert_eq!(RateLimit::from_fields("ORDERS", "MINUTE", 1, -5), None);
    }
}
