//! Every example in `CONTROL.md` works as written, and every name has an example.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::venue::Venue;

const PAGE: &str = include_str!("../../CONTROL.md");

/// One `curl` line: method, path, body.
fn example(line: &str) -> (&str, &str, &str) {
    let (_, rest) = line.split_once("$CONTROL").unwrap();
    let end = rest.find([' ', '"']).unwrap_or(rest.len());
    let (path, rest) = rest.split_at(end);
    let body = rest.split_once("-d '").map_or("", |(_, body)| {
        body.strip_suffix('\'').expect("a closing quote")
    });
    let method = match (line.contains("-X DELETE"), body) {
        (true, _) => "DELETE",
        (false, "") => "GET",
        (false, _) => "POST",
    };
    (method, path, body)
}

/// The names that an error message lists.
async fn names(venue: &Venue, path: &str, body: &str) -> BTreeSet<String> {
    let answer = venue.control("POST", path, body).await;
    assert_eq!(answer.status, 400);
    let msg = answer.json()["msg"].as_str().unwrap().to_owned();
    let (_, list) = msg.split_once("one of ").expect("a list of names");
    list.split(", ").map(str::to_owned).collect()
}

#[tokio::test]
async fn every_example_works_and_every_name_has_one() {
    let venue = Venue::start().await;
    let faults = names(&venue, "/faults", r#"{"fault":"?"}"#).await;
    let acts = names(&venue, "/act", r#"{"act":"?"}"#).await;
    let mut shown = (BTreeSet::new(), BTreeSet::new());
    let lines = PAGE.lines().filter(|line| line.starts_with("curl "));
    for line in lines {
        let (method, path, body) = example(line);
        let answer = venue.control(method, path, body).await;
        assert_eq!(answer.status, 200, "{line}\n{}", answer.body);
        if let Ok(Value::Object(sent)) = serde_json::from_str(body) {
            let name = |field: &str| sent.get(field).and_then(Value::as_str).map(str::to_owned);
            shown.0.extend(name("fault"));
            shown.1.extend(name("act"));
        }
    }
    assert_eq!(shown, (faults, acts), "a name has no example");
    assert!(venue.state().await["faults"]["switches"] == Value::Array(Vec::new()));
}

#[tokio::test]
async fn errors_name_the_problem() {
    let venue = Venue::start().await;
    for (path, body, wanted) in [
        ("/faults", "[1]", "JSON object"),
        ("/faults", r#"{"fault":"lost","cuont":1}"#, "cuont"),
        ("/faults", r#"{"fault":"unknown","how":"503"}"#, "accepted"),
        (
            "/faults",
            r#"{"fault":"lost","probability":"2"}"#,
            "between 0 and 1",
        ),
        (
            "/act",
            r#"{"act":"place","symbol":"NONE","side":"BUY"}"#,
            "NONE",
        ),
        ("/act", r#"{"act":"fill","order_id":77}"#, "77"),
        (
            "/faults",
            r#"{"fault":"skew","ms":9223372036854775807}"#,
            "a year",
        ),
        ("/faults", r#"{"fault":"html","status":99}"#, "99"),
        (
            "/act",
            r#"{"act":"deposit","asset":"USDT","amount":"79228162514264337593543950335"}"#,
            "10^15",
        ),
        (
            "/act",
            r#"{"act":"funding","symbol":"BTCUSDT","rate":"92233720368"}"#,
            "-1 to 1",
        ),
        (
            "/act",
            r#"{"act":"trade","symbol":"BTCUSDT","price":"90000000000000000","quantity":"1"}"#,
            "too large",
        ),
        (
            "/act",
            r#"{"act":"deposit","asset":"USDT","amount":"-1"}"#,
            "positive",
        ),
        (
            "/act",
            r#"{"act":"liquidate","account":99,"symbol":"BTCUSDT"}"#,
            "99",
        ),
        (
            "/act",
            r#"{"act":"place","symbol":"BTCUSDT","side":"BUY","price":"1.123456789","quantity":1}"#,
            "decimals",
        ),
        ("/faults", r#"{"fault":"lost","for_ms":-5}"#, "-5"),
        ("/faults", r#"{"fault":"ban","status":500}"#, "429 or 418"),
        (
            "/faults",
            r#"{"fault":"empty","route":"nope.route"}"#,
            "nope.route",
        ),
        ("/faults", r#"{"fault":"lost","event":"NOPE"}"#, "NOPE"),
        ("/faults", r#"{"fault":"lost","account":99}"#, "99"),
        ("/faults", r#"{"fault":"gap","topic":"nope@x"}"#, "nope@x"),
        (
            "/faults",
            r#"{"fault":"gap","topic":"btcusdt@x*"}"#,
            "btcusdt@x*",
        ),
        ("/act", r#"{"act":"ban","for_ms":-5}"#, "-5"),
    ] {
        let answer = venue.control("POST", path, body).await;
        assert_eq!(answer.status, 400, "{body}");
        let msg = answer.json()["msg"].as_str().unwrap().to_owned();
        assert!(msg.contains(wanted), "{body}: {msg}");
    }
    for topic in ["*", "btc*", "btcusdt@*", "btcusdt@kline_1m", "!markPrice*"] {
        venue.fault(json!({ "fault": "gap", "topic": topic })).await;
    }
    assert_eq!(venue.control("DELETE", "/faults/99", "").await.status, 404);
    assert_eq!(venue.control("GET", "/nothing", "").await.status, 404);
    for query in ["account=9", "account=", "brief=1", "x"] {
        let path = format!("/state?{query}");
        assert_eq!(venue.control("GET", &path, "").await.status, 400, "{query}");
    }
}
