//! Requests with errors that are found before authentication.

use crate::fixture::{Sent, Venue, raw};

async fn get(venue: &Venue, path: &str, query: &str) -> (u16, i64) {
    let sent = Sent {
        method: "GET",
        path,
        query: query.to_owned(),
        ..Sent::default()
    };
    venue.send(sent).await.refusal()
}

#[tokio::test]
async fn unknown_paths_and_methods_are_json_refusals() {
    let venue = Venue::new().await;
    assert_eq!(get(&venue, "/fapi/v1/nothing", "").await, (404, -1020));
    assert_eq!(get(&venue, "/fapi/v1/leverage", "").await, (405, -1020));
    // The spot port does not serve futures paths.
    let address = venue.running.addresses.spot;
    let request =
        format!("GET /fapi/v1/ping HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert_eq!(raw(address, request.as_bytes()).await.status, 404);
}

#[tokio::test]
async fn broken_encodings_duplicates_and_bad_values_have_their_codes() {
    let venue = Venue::new().await;
    let cases = [
        ("symbol=%zz", -1100),
        ("symbol=%ff", -1100),
        ("symbol=BTC%20USDT", -1100),
        ("symbol=BTCUSDT&symbol=BTCUSDT", -1101),
        ("symbol=BTCUSDT&SYMBOL=BTCUSDT", -1101),
        ("", -1102),
        ("symbol=", -1102),
        ("symbol=BTCUSDT&limit=", -1105),
        ("symbol=BTCUSDT&limit=5.5", -1100),
        ("symbol=BTCUSDT&nobody=1", -1103),
        ("symbol=NOTHING", -1121),
    ];
    for (query, code) in cases {
        let refusal = get(&venue, "/fapi/v1/depth", query).await;
        assert_eq!(refusal, (400, code), "{query}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_or_not_utf8_is_refused() {
    let venue = Venue::new().await;
    let address = venue.running.addresses.spot;
    let long = 70_000;
    let head = |length: usize| {
        format!(
            "POST /api/v1/order HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\
             Content-Type: application/x-www-form-urlencoded; charset=UTF-8\r\n\
             Connection: close\r\n\r\n"
        )
    };
    let mut bytes = head(long).into_bytes();
    bytes.extend(vec![b'a'; long]);
    assert_eq!(raw(address, &bytes).await.status, 413);
    let mut bytes = head(3).into_bytes();
    bytes.extend([b'a', b'=', 0xff]);
    assert_eq!(raw(address, &bytes).await.refusal(), (400, -1100));
}

#[tokio::test]
async fn every_response_has_the_used_weight_of_its_address() {
    let venue = Venue::new().await;
    let used = async |path: &str, query: &str| {
        let sent = Sent {
            method: "GET",
            path,
            query: query.to_owned(),
            ..Sent::default()
        };
        let result = venue.send(sent).await;
        result.headers["x-mbx-used-weight-1m"]
            .parse::<u32>()
            .unwrap()
    };
    let before = used("/fapi/v1/ping", "").await;
    assert_eq!(
        used("/fapi/v1/depth", "symbol=BTCUSDT&limit=1000").await,
        before + 20
    );
    assert_eq!(used("/fapi/v1/nothing", "").await, before + 21);
    assert_eq!(used("/fapi/v1/ticker/24hr", "").await, before + 61);
    assert_eq!(
        used("/api/v3/ping", "").await,
        1,
        "spot has a weight counter of its own"
    );
}
