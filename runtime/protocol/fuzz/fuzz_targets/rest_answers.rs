//! Responses of every route, from any bytes. There is no panic, and the judgement follows the
//! documents whatever the body contains.
//!
//! Input: one byte for the route, one for the status, then the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windvane_protocol::error::{Judgement, judge};
use windvane_protocol::market_stream::{Feed, polling};
use windvane_protocol::user_stream::Surface;
use windvane_protocol::wire::answers;
use windvane_protocol::wire::enums::Interval;
use windvane_protocol::{exchange_info, route};

const STATUSES: [u16; 10] = [200, 204, 400, 401, 403, 418, 429, 500, 502, 503];

fuzz_target!(|data: &[u8]| {
    let [route_byte, status_byte, body @ ..] = data else {
        return;
    };
    let body = String::from_utf8_lossy(body);
    let status = STATUSES[usize::from(*status_byte) % STATUSES.len()];
    let retry_after = (*status_byte >= 128).then_some("7");
    promised(status, retry_after, &body);

    let routes = route::all().count();
    let route = route::all().nth(usize::from(*route_byte) % routes);
    let name = route.map_or("", |route| route.name);
    let _ = answers::check(name, &body);
    polled(&body);
});

/// Checks the properties that every body must have.
fn promised(status: u16, retry_after: Option<&str>, body: &str) {
    match (status, judge(status, retry_after, body)) {
        (503, judgement) => assert!(matches!(judgement, Judgement::Unknown(_))),
        (418 | 429, judgement) => assert!(matches!(judgement, Judgement::Wait(_))),
        (200..=299, Judgement::Success) => {
            let body = body.trim_start_matches('\u{feff}').trim();
            let is_json = serde_json::from_str::<serde_json::Value>(body).is_ok();
            // A number that does not fit a `Value`, or JSON that is nested too deeply for it, is
            // still JSON.
            assert!(body.is_empty() || is_json || !body.starts_with('<'));
        }
        (_, Judgement::Success) => panic!("{status} must not be a success"),
        _ => {}
    }
}

fn polled(body: &str) {
    for feed in [
        Feed::BookTicker,
        Feed::MarkPrice { every_second: false },
        Feed::Ticker,
        Feed::MiniTicker,
        Feed::Depth { fast: false },
        Feed::Trade,
        Feed::AggTrade,
        Feed::Kline(Interval::Minute1),
    ] {
        for surface in [Surface::Spot, Surface::Futures] {
            let _ = polling::payloads(feed, surface, "BTCUSDT", 0, body);
        }
    }
    if let Ok(entries) = exchange_info::entries(body) {
        for (_, entry) in entries {
            let _ = exchange_info::surface(entry);
        }
    }
}
