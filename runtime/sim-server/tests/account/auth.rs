//! Both authentication schemes and their refusals.

use crate::fixture::{Answered, Sent, Venue, nonce_us, now_ms, stamped};

const ACCOUNT: &str = "/api/v1/account";

async fn hmac(venue: &Venue, key: Option<&str>, query: String) -> (u16, i64) {
    let sent = Sent {
        method: "GET",
        path: ACCOUNT,
        query,
        key,
        ..Sent::default()
    };
    venue.send(sent).await.refusal()
}

#[tokio::test]
async fn an_api_key_must_be_present_valid_and_known() {
    let venue = Venue::new().await;
    let query = || venue.hmac_signed(&stamped(""), "");
    assert_eq!(hmac(&venue, None, query()).await, (401, -2014));
    assert_eq!(hmac(&venue, Some("short"), query()).await, (401, -2014));
    let unknown = "0".repeat(64);
    assert_eq!(hmac(&venue, Some(&unknown), query()).await, (401, -2015));
    let upper = venue.keys().api_key.to_uppercase();
    assert_eq!(
        hmac(&venue, Some(&upper), query()).await,
        (401, -2015),
        "the case of keys matters"
    );
}

#[tokio::test]
async fn an_hmac_covers_the_raw_query_and_must_be_last() {
    let venue = Venue::new().await;
    let key = Some(venue.keys().api_key.clone());
    let ask = async |query: String| hmac(&venue, key.as_deref(), query).await;
    let good = venue.hmac_signed(&stamped("recvWindow=60000"), "");
    assert_eq!(ask(good.clone()).await, (200, 0));
    let (text, signature) = good.split_once("&signature=").unwrap();
    let upper = signature.to_uppercase();
    assert_eq!(ask(format!("{text}&signature={upper}")).await, (200, 0));
    assert_eq!(ask(format!("{text}&SIGNATURE={signature}")).await, (200, 0));
    assert_eq!(
        ask(format!("signature={signature}&{text}")).await,
        (400, -1022)
    );
    assert_eq!(ask(format!("{text}&signature=00")).await, (400, -1022));
    assert_eq!(ask(text.to_owned()).await, (400, -1102));
    // The same values, but encoded differently from the signed text.
    let other = text.replace("60000", "6000%30");
    assert_eq!(
        ask(format!("{other}&signature={signature}")).await,
        (400, -1022)
    );
}

#[tokio::test]
async fn query_and_body_are_signed_as_one_text_without_a_separator() {
    let venue = Venue::new().await;
    let query = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC";
    let body = venue.hmac_signed(&stamped("quantity=0.01&price=50000"), query);
    let order = |query: &str, body: String| Sent {
        method: "POST",
        path: "/api/v1/order",
        query: query.to_owned(),
        body,
        key: Some(venue.keys().api_key.as_str()),
    };
    let placed = venue.send(order(query, body)).await.ok();
    assert_eq!(placed["status"], "NEW");
    // A DELETE may have a form body.
    let text = format!("symbol=BTCUSDT&orderId={}", placed["orderId"]);
    let body = venue.hmac_signed(&stamped(&text), "");
    let mut sent = order("", body);
    sent.method = "DELETE";
    assert_eq!(venue.send(sent).await.ok()["status"], "CANCELED");
    // On spot a name may appear only in the query or only in the body.
    let body = venue.hmac_signed(&stamped("symbol=BTCUSDT"), "symbol=BTCUSDT");
    let twice = venue.send(order("symbol=BTCUSDT", body)).await;
    assert_eq!(twice.refusal(), (400, -1101));
}

#[tokio::test]
async fn on_futures_the_query_beats_the_body() {
    let venue = Venue::new().await;
    let query = "symbol=BTCUSDT&leverage=7";
    let body = venue.hmac_signed(&stamped("leverage=9"), query);
    let sent = Sent {
        method: "POST",
        path: "/fapi/v1/leverage",
        query: query.to_owned(),
        body,
        key: Some(venue.keys().api_key.as_str()),
    };
    assert_eq!(venue.send(sent).await.ok()["leverage"], 7);
}

#[tokio::test]
async fn the_time_rule_refuses_old_and_early_requests() {
    let venue = Venue::new().await;
    let key = Some(venue.keys().api_key.clone());
    let ask = async |text: String| hmac(&venue, key.as_deref(), venue.hmac_signed(&text, "")).await;
    let at = |shift: i128| format!("timestamp={}", now_ms() as i128 + shift);
    assert_eq!(ask(at(-20_000)).await, (400, -1021));
    assert_eq!(ask(at(5_000)).await, (400, -1021));
    let wide = format!("recvWindow=60000&{}", at(-20_000));
    assert_eq!(ask(wide).await, (200, 0));
    let wider = format!("recvWindow=60001&{}", at(0));
    assert_eq!(ask(wider).await, (400, -1130));
    assert_eq!(ask("recvWindow=5000".to_owned()).await, (400, -1102));
}

async fn message(venue: &Venue, key: &str, text: &str) -> Answered {
    venue.v3_by(key, "GET", "/fapi/v3/balance", text).await
}

#[tokio::test]
async fn a_message_is_signed_by_an_agent_or_the_user() {
    let venue = Venue::new().await;
    let keys = venue.keys();
    let (user, signer) = (keys.user.to_lowercase(), &keys.signer);
    let text =
        |user: &str, signer: &str| format!("nonce={}&user={user}&signer={signer}", nonce_us());
    message(&venue, &keys.signer_key, &text(&user, signer))
        .await
        .ok();
    message(&venue, &keys.user_key, &text(&user, &user))
        .await
        .ok();
    // `user` may be omitted if the signer belongs to exactly one account.
    let alone = format!("nonce={}&signer={signer}", nonce_us());
    message(&venue, &keys.signer_key, &alone).await.ok();
    // Signed with a key that does not belong to `signer`.
    let other = &venue.running.accounts[1];
    let refused = message(&venue, &other.signer_key, &text(&user, signer)).await;
    assert_eq!(refused.refusal(), (400, -1022));
    // The agent of another user.
    let refused = message(&venue, &other.signer_key, &text(&user, &other.signer)).await;
    assert_eq!(refused.refusal(), (401, -2015));
    let refused = message(&venue, &keys.signer_key, &format!("signer={signer}")).await;
    assert_eq!(refused.refusal(), (400, -1102));
    let refused = message(&venue, &keys.signer_key, &format!("nonce={}", nonce_us())).await;
    assert_eq!(refused.refusal(), (400, -1102));
}

#[tokio::test]
async fn a_signature_may_have_0x_and_any_case() {
    let venue = Venue::new().await;
    let keys = venue.keys();
    for dress in [|s: &str| format!("0x{s}"), |s: &str| s.to_uppercase()] {
        let text = format!(
            "nonce={}&user={}&signer={}",
            nonce_us(),
            keys.user,
            keys.signer
        );
        let signed = Venue::message_signed(&keys.signer_key, &text);
        let (text, signature) = signed.split_once("&signature=").unwrap();
        let sent = Sent {
            method: "GET",
            path: "/fapi/v3/balance",
            query: format!("{text}&signature={}", dress(signature)),
            ..Sent::default()
        };
        venue.send(sent).await.ok();
    }
}

#[tokio::test]
async fn a_nonce_is_valid_once_and_near_the_clock() {
    let venue = Venue::new().await;
    let keys = venue.keys();
    let with = |nonce: u64| format!("nonce={nonce}&user={}&signer={}", keys.user, keys.signer);
    let nonce = nonce_us();
    message(&venue, &keys.signer_key, &with(nonce)).await.ok();
    let again = message(&venue, &keys.signer_key, &with(nonce)).await;
    assert_eq!(again.refusal(), (400, -4225));
    // The order of nonces does not matter inside the window.
    message(&venue, &keys.signer_key, &with(nonce - 1_000_000))
        .await
        .ok();
    let early = message(&venue, &keys.signer_key, &with(nonce + 30_000_000)).await;
    assert_eq!(early.refusal(), (400, -4225));
    let seconds = message(&venue, &keys.signer_key, &with(nonce / 1_000_000)).await;
    assert_eq!(seconds.refusal(), (400, -4225));
}

#[tokio::test]
async fn v3_accepts_an_hmac_without_wallet_fields() {
    let venue = Venue::new().await;
    for path in ["/fapi/v3/balance", "/api/v3/account"] {
        venue.v1("GET", path, "").await.ok();
    }
}

#[tokio::test]
async fn listen_keys_and_market_data_need_a_key_only_in_v1() {
    let venue = Venue::new().await;
    let ask = async |method: &str, path: &str, key: Option<&str>| {
        let sent = Sent {
            method,
            path,
            query: if method == "GET" {
                "symbol=BTCUSDT"
            } else {
                ""
            }
            .to_owned(),
            key,
            ..Sent::default()
        };
        venue.send(sent).await.refusal()
    };
    let key = Some(venue.keys().api_key.as_str());
    assert_eq!(ask("POST", "/fapi/v1/listenKey", key).await, (200, 0));
    assert_eq!(ask("POST", "/fapi/v1/listenKey", None).await, (401, -2014));
    assert_eq!(ask("POST", "/fapi/v3/listenKey", None).await, (400, -1102));
    venue.v3("POST", "/fapi/v3/listenKey", "").await.ok();
    assert_eq!(
        ask("GET", "/fapi/v1/historicalTrades", None).await,
        (401, -2014)
    );
    let all = Sent {
        method: "GET",
        path: "/api/v3/historicalTrades",
        query: "symbol=BTCUSDT".to_owned(),
        ..Sent::default()
    };
    venue.send(all).await.ok();
}

#[tokio::test]
async fn account_routes_under_v2_and_v4_accept_both_schemes() {
    let venue = Venue::new().await;
    for path in [
        "/fapi/v2/balance",
        "/fapi/v2/positionRisk",
        "/fapi/v4/account",
    ] {
        venue.v1("GET", path, "").await.ok();
        venue.v3("GET", path, "").await.ok();
        let sent = Sent {
            method: "GET",
            path,
            ..Sent::default()
        };
        assert_eq!(venue.send(sent).await.refusal(), (401, -2014), "{path}");
    }
}

#[tokio::test]
async fn noop_uses_the_nonce_of_the_cancelled_request() {
    let venue = Venue::new().await;
    let keys = venue.keys();
    let with = |nonce: u64| format!("nonce={nonce}&user={}&signer={}", keys.user, keys.signer);
    let noop = async |nonce: u64| {
        venue
            .v3_by(&keys.signer_key, "POST", "/api/v3/noop", &with(nonce))
            .await
    };
    let used = nonce_us();
    message(&venue, &keys.signer_key, &with(used)).await.ok();
    let done = noop(used).await.ok();
    assert_eq!(done["code"], 200);
    assert!(done["msg"].is_string() && done.as_object().unwrap().len() == 2);
    assert_eq!(noop(used).await.refusal(), (400, -4225), "cancelled once");
    // `noop` also uses up a nonce that was not used before.
    let fresh = nonce_us();
    noop(fresh).await.ok();
    let late = message(&venue, &keys.signer_key, &with(fresh)).await;
    assert_eq!(late.refusal(), (400, -4225));
    assert_eq!(noop(1).await.refusal(), (400, -4225), "far from the clock");
    let unsigned = Sent {
        method: "POST",
        path: "/api/v3/noop",
        ..Sent::default()
    };
    assert_eq!(venue.send(unsigned).await.refusal(), (400, -1102));
    venue.v1("POST", "/api/v3/noop", "").await.ok();
    let nonce = format!("nonce={}", nonce_us());
    venue.v1("POST", "/api/v3/noop", &nonce).await.ok();
    // On spot the route exists only under v3; on futures it does not exist.
    assert_eq!(venue.v1("POST", "/api/v1/noop", "").await.status, 404);
    assert_eq!(venue.v1("POST", "/fapi/v3/noop", "").await.status, 404);
}
