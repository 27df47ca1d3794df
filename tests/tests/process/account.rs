//! How a real process handles the venue's reports about the account as a whole.

use rust_decimal::Decimal;
use serde_json::{Value, json};
use windvane_tests::venue::Venue;

use super::support::{self, REST, state};

const DEGRADED_REASON: &str =
    "the venue issued a margin call: add margin or reduce positions, then windvane resume";

fn number(row: &Value, field: &str) -> Decimal {
    row[field].as_str().unwrap().parse().unwrap()
}

/// The futures wallet of the venue's account, and the notional of its positions.
fn standing(venue: &Venue) -> (Value, Decimal) {
    let account = venue.account();
    let notional = |row: &Value| number(row, "qty").abs() * number(row, "mark_price");
    let positions = account["positions"].as_array().unwrap().iter();
    let wallet = account["balances"]["futures"][0].clone();
    assert_eq!(wallet["asset"], "USDT");
    (wallet, positions.map(notional).sum())
}

#[test]
fn a_margin_call_degrades_until_a_person_resumes() {
    let venue = Venue::start(&["--seed", "71"]);
    let mut instance = support::launch(&venue).start();
    support::ready(&mut instance);
    let admin = instance.admin();
    let act = |what: Value| venue.control("/act", &what);
    act(
        json!({"act": "place", "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET",
        "quantity": "0.5"}),
    );
    // Money is taken away until 1.12 times the maintenance margin is left. The venue sends a margin
    // call below 1.25.
    let (wallet, _) = standing(&venue);
    let amount = number(&wallet, "max_withdraw") * Decimal::new(9, 1);
    act(
        json!({"act": "withdraw", "asset": "USDT", "amount": amount.trunc().to_string(),
        "cause": "ADMIN_WITHDRAW"}),
    );
    let (wallet, notional) = standing(&venue);
    let left = number(&wallet, "maintenance_margin") * Decimal::new(112, 2);
    let equity = number(&wallet, "wallet") + number(&wallet, "unrealized");
    let rate = ((equity - left) / notional).trunc_with_scale(6);
    act(json!({"act": "funding", "symbol": "BTCUSDT", "rate": rate.to_string()}));

    let called = |status: &Value| {
        let reasons = status["degraded_reasons"].as_array();
        reasons.is_some_and(|reasons| reasons.contains(&json!(DEGRADED_REASON)))
    };
    let (status, _) = instance.until_shown(&admin, "/api/status", REST, &called);
    assert_eq!(status["state"], "degraded");
    admin.command("/api/resume");
    instance.until_shown(&admin, "/api/status", REST, &state("ready"));
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn positions_without_a_journal_wait_for_the_operator() {
    let venue = Venue::start(&["--seed", "75"]);
    let launch = support::launch(&venue);
    let mut instance = launch.start();
    support::ready(&mut instance);
    let buy = json!({"act": "place", "symbol": "BTCUSDT", "side": "BUY", "type": "MARKET",
        "quantity": "0.5"});
    venue.control("/act", &buy);
    assert_eq!(instance.terminate().code(), Some(0));
    std::fs::remove_dir_all(launch.data().join("journal")).unwrap();

    let mut instance = launch.start();
    let admin = instance.admin();
    let lost = |status: &Value| {
        let reason = status["reason"].as_str().unwrap_or_default();
        status["state"] == "degraded"
            && reason.contains("not known which strategy owns the positions")
    };
    instance.until_shown(&admin, "/api/status", REST, &lost);
    admin.command("/api/resume");
    instance.until_shown(&admin, "/api/status", REST, &state("ready"));
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_start_survives_unreadable_responses() {
    let venue = Venue::start(&["--seed", "76"]);
    let empty = json!({"fault": "empty", "route": "futures.exchange_info", "count": 2});
    venue.control("/faults", &empty);
    assert_eq!(venue.hits(), Some(0));
    let mut instance = support::launch(&venue).start();
    support::ready(&mut instance);
    assert_eq!(venue.hits(), None, "both faults were used");
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_start_falls_back_to_the_info_endpoint() {
    for (seed, refusal) in [("77", "404"), ("78", "refused")] {
        let venue = Venue::start(&["--seed", seed]);
        venue.control("/choices", &json!({"account-route": refusal}));
        let launch = support::launch(&venue).set("venue.market_data=auto");
        let mut instance = launch.start();
        support::ready(&mut instance);
        assert!(instance.log().contains("the info endpoint is used"));
        assert_eq!(instance.terminate().code(), Some(0));
    }
}
