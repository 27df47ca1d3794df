//! The time rule of v1 (docs/interface/conventions.md#signing-with-an-api-key).

use crate::request::{Params, Refusal, invalid, missing};

/// Default of `recvWindow`.
const WINDOW_DEFAULT_MS: i64 = 5_000;
/// Maximum of `recvWindow`.
const WINDOW_MAX_MS: i64 = 60_000;
/// How far a timestamp may be ahead of the server's clock.
const AHEAD_MS: i64 = 1_000;

/// Checks `timestamp < serverTime + 1000` and `serverTime - timestamp <= recvWindow` (-1021).
pub(crate) fn check_time(params: &Params, clock_ms: i64) -> Result<(), Refusal> {
    let timestamp = params.integer("timestamp")?;
    let timestamp = timestamp.ok_or_else(|| missing("timestamp"))?;
    let window = params.integer("recvWindow")?.unwrap_or(WINDOW_DEFAULT_MS);
    if !(0..=WINDOW_MAX_MS).contains(&window) {
        return Err(invalid("recvWindow"));
    }
    if timestamp >= clock_ms.saturating_add(AHEAD_MS) {
        let msg = "Timestamp for this request was 1000ms ahead of the server's time.";
        return Err(Refusal::new(-1021, msg));
    }
    if clock_ms.saturating_sub(timestamp) > window {
        let msg = "Timestamp for this request is outside of the recvWindow.";
        return Err(Refusal::new(-1021, msg));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windvane_protocol::route::Surface;

    fn at(query: &str) -> i32 {
        let params = Params::parse(Surface::Spot, query, "").unwrap();
        check_time(&params, 100_000).map_or_else(|refusal| refusal.code, |()| 0)
    }

    #[test]
    fn the_time_rule_has_exact_bounds() {
        assert_eq!(at("timestamp=100999"), 0);
        assert_eq!(at("timestamp=101000"), -1021);
        assert_eq!(at("timestamp=95000"), 0);
        assert_eq!(at("timestamp=94999"), -1021);
        assert_eq!(at("timestamp=40000&recvWindow=60000"), 0);
        assert_eq!(at("timestamp=100000&recvWindow=60001"), -1130);
        assert_eq!(at("timestamp=abc"), -1100);
        assert_eq!(at("recvWindow=5"), -1102);
    }
}
