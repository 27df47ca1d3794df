//! Answers of every route, from any bytes: no panic, and the judgement keeps what the documents
//! promise whatever the body says.
//!
//! Input: one byte for the route, one for the status, then the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windvane_venue::error::{Judgement, judge};
use windvane_venue::market_stream::polling;
use windvane_venue::wire::answers;
use windvane_venue::{BookLevels, exchange_info, route};

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

/// What holds for every body.
fn promised(status: u16, retry_after: Option<&str>, body: &str) {
    match (status, judge(status, retry_after, body)) {
        (503, judgement) => assert!(matches!(judgement, Judgement::Unknown(_))),
        (418 | 429, judgement) => assert!(matches!(judgement, Judgement::Wait(_))),
        (200..=299, Judgement::Success) => {
            let body = body.trim_start_matches('\u{feff}').trim();
            let is_json = serde_json::from_str::<serde_json::Value>(body).is_ok();
            // A number that no `Value` holds, or a nesting too deep for it, is JSON still.
            assert!(body.is_empty() || is_json || !body.starts_with('<'));
        }
        (_, Judgement::Success) => panic!("{status} is no success"),
        _ => {}
    }
}

fn polled(body: &str) {
    let mut levels = BookLevels::default();
    if let Ok(snapshot) = polling::book("BTCUSDT", body, &mut levels) {
        let _ = polling::top_of(&snapshot, &levels);
    }
    let _ = polling::tops(body);
    let _ = polling::marks(body);
    let _ = polling::trades("BTCUSDT", body);
    let _ = polling::aggregates("BTCUSDT", body);
    let _ = polling::tickers(body);
    let _ = polling::funding_payments(body);
    if let Ok(entries) = exchange_info::entries(body) {
        for (_, entry) in entries {
            let _ = exchange_info::surface(entry);
        }
    }
}
