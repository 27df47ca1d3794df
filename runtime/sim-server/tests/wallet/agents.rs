//! Agents and builders: approvals by a main wallet, and refusals without them.

use rust_decimal::Decimal;
use windvane_protocol::route::Surface;
use windvane_protocol::sign::Credentials;

use crate::fixture::{V3, Venue, stamp, wallet};

const AGENT_KEY: &str = "0x4fd0a42218f3eae43a6ce26d22544e986139a01e5b34a62db53757ffca81bae1";
const AGENT: &str = "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0";
const BUILDER: &str = "0x00000000000000000000000000000000000000b1";

/// Credentials of the first user's new agent, without the user's own key.
fn as_agent(venue: &Venue) -> Credentials {
    Credentials {
        user: Some(venue.keys(0).user.parse().unwrap()),
        signer: Some(wallet(AGENT_KEY)),
        ..Credentials::default()
    }
}

fn approval<'a>(spot: &'a str, perp: &'a str, expired: &'a str) -> [(&'a str, &'a str); 7] {
    [
        ("agentName", "bot 1"),
        ("agentAddress", AGENT),
        ("ipWhitelist", ""),
        ("expired", expired),
        ("canSpotTrade", spot),
        ("canPerpTrade", perp),
        ("canWithdraw", "false"),
    ]
}

const FAR: &str = "9967945395040";

#[tokio::test]
async fn an_agent_can_sign_from_approval_to_expiry() {
    let venue = Venue::new().await;
    let agent = as_agent(&venue);
    let cancel = [("symbol", "BTCUSDT")];
    let refused = venue
        .call_with(&agent, "futures.open_orders", V3, &[])
        .await;
    assert_eq!((refused.status, refused.code()), (401, -2015));

    let approved = venue
        .call("futures.approve_agent", V3, &approval("true", "false", FAR))
        .await;
    assert_eq!(approved.ok()["code"], 200);
    venue
        .call_with(&agent, "futures.open_orders", V3, &[])
        .await
        .ok();
    let trade = venue
        .call_with(&agent, "futures.cancel_all_orders", V3, &cancel)
        .await;
    assert_eq!(
        trade.code(),
        -2015,
        "no permission for perp trading: {}",
        trade.body
    );
    venue
        .call_with(&agent, "spot.cancel_all_orders", V3, &cancel)
        .await
        .ok();

    let update = |ips| {
        [
            ("agentAddress", AGENT),
            ("ipWhitelist", ips),
            ("canSpotTrade", "false"),
            ("canPerpTrade", "true"),
            ("canWithdraw", "false"),
        ]
    };
    venue
        .call("futures.update_agent", V3, &update("127.0.0.1,10.0.0.1"))
        .await
        .ok();
    venue
        .call_with(&agent, "futures.cancel_all_orders", V3, &cancel)
        .await
        .ok();
    let spot = venue
        .call_with(&agent, "spot.cancel_all_orders", V3, &cancel)
        .await;
    assert_eq!(spot.code(), -2015);
    venue
        .call("futures.update_agent", V3, &update("10.0.0.1"))
        .await
        .ok();
    let elsewhere = venue
        .call_with(&agent, "futures.open_orders", V3, &[])
        .await;
    assert_eq!(elsewhere.code(), -2015, "not on the whitelist");
    venue
        .call("futures.update_agent", V3, &update(""))
        .await
        .ok();

    let listed = venue
        .call_with(&agent, "futures.agents", V3, &[])
        .await
        .ok();
    let own = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["agentAddress"] == AGENT);
    let own = own.unwrap();
    assert_eq!(
        (&own["agentName"], &own["canPerpTrade"]),
        (&"bot 1".into(), &true.into())
    );
    assert_eq!(own["expired"], 9_967_945_395_040_i64);

    venue
        .call("futures.delete_agent", V3, &[("agentAddress", AGENT)])
        .await
        .ok();
    let revoked = venue
        .call_with(&agent, "futures.open_orders", V3, &[])
        .await;
    assert_eq!(revoked.code(), -2015);
    let twice = venue
        .call("futures.delete_agent", V3, &[("agentAddress", AGENT)])
        .await;
    assert_eq!(twice.code(), -1130);
}

#[tokio::test]
async fn approvals_that_the_main_wallet_did_not_sign_are_refused() {
    let venue = Venue::new().await;
    let name = "futures.approve_agent";
    let pairs = approval("true", "true", FAR);
    let mut thief = venue.credentials(0);
    thief.user = Some(venue.keys(0).user.parse().unwrap());
    thief.wallet = Some(wallet(AGENT_KEY));
    let wrong_key = venue.call_with(&thief, name, V3, &pairs).await;
    assert_eq!(wrong_key.code(), -1022);

    let own = venue.credentials(0);
    let mut tampered = venue.prepared(&own, name, V3, &pairs, stamp());
    let body = tampered.body.take().unwrap();
    tampered.body = Some(body.replace("canWithdraw=false", "canWithdraw=true"));
    assert_eq!(venue.send(Surface::Futures, &tampered).await.code(), -1022);

    let good = venue.prepared(&own, name, V3, &pairs, stamp());
    venue.send(Surface::Futures, &good).await.ok();
    let replayed = venue.send(Surface::Futures, &good).await;
    assert_eq!(replayed.code(), -4225);

    let mut old = stamp();
    old.nonce_us -= 60_000_000;
    let old = venue.prepared(&own, name, V3, &pairs, old);
    assert_eq!(venue.send(Surface::Futures, &old).await.code(), -4225);

    let expired = venue
        .call(name, V3, &approval("true", "true", "1000"))
        .await;
    assert_eq!(expired.code(), -1130);
    let mut testnet = pairs.to_vec();
    testnet.push(("svcChain", "Testnet"));
    assert_eq!(venue.call(name, V3, &testnet).await.code(), -1130);
}

/// A client may define the type once, sign the fields in the documents' order, and send them in any
/// order.
#[tokio::test]
async fn typed_data_may_have_the_order_of_the_documents() {
    let venue = Venue::new().await;
    let pairs = [
        ("builder", BUILDER),
        ("maxFeeRate", "0.001"),
        ("builderName", "b"),
    ];
    for (n, order) in [[0, 1, 2, 3, 4, 5, 6], [5, 4, 2, 1, 0, 3, 6]]
        .into_iter()
        .enumerate()
    {
        let own = venue.credentials(0);
        let mut prepared = venue.prepared(&own, "futures.approve_builder", V3, &pairs, stamp());
        let body = prepared.body.take().unwrap();
        let fields: Vec<_> = body.split('&').collect();
        let shuffled: Vec<_> = order.iter().map(|place| fields[*place]).collect();
        prepared.body = Some(format!("{}&{}", shuffled.join("&"), fields[7]));
        let answer = venue.send(Surface::Futures, &prepared).await;
        assert_eq!(answer.status, 200, "{n}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_signature_in_another_spelling_is_accepted() {
    let venue = Venue::new().await;
    let own = venue.credentials(0);
    let prepared = venue.prepared(&own, "futures.open_orders", V3, &[], stamp());
    let query = prepared.query.as_deref().unwrap();
    let (text, signature) = query.rsplit_once("signature=").unwrap();
    let mut upper = prepared.clone();
    upper.query = Some(format!("{text}signature=0x{}", signature.to_uppercase()));
    venue.send(Surface::Futures, &upper).await.ok();
    let other = venue.prepared(&own, "futures.open_orders", V3, &[], stamp());
    let mut foreign = other;
    foreign.query = Some(format!("{text}x=1&signature={signature}"));
    assert_eq!(venue.send(Surface::Futures, &foreign).await.code(), -1022);
}

#[tokio::test]
async fn a_builder_gets_no_more_than_the_user_approved() {
    let venue = Venue::new().await;
    let order = |rate| {
        [
            ("symbol", "BTCUSDT"),
            ("side", "BUY"),
            ("type", "MARKET"),
            ("quantity", "0.01"),
            ("builder", BUILDER),
            ("feeRate", rate),
        ]
    };
    let place = "futures.new_order";
    assert_eq!(venue.call(place, V3, &order("0.001")).await.code(), -2010);
    let approval = [
        ("builder", BUILDER),
        ("maxFeeRate", "0.001"),
        ("builderName", "b"),
    ];
    venue
        .call("futures.approve_builder", V3, &approval)
        .await
        .ok();
    assert_eq!(venue.call(place, V3, &order("0.0011")).await.code(), -2010);
    let placed = venue.call(place, V3, &order("0.001")).await.ok();
    assert_eq!(placed["code"], 200);
    let keys: Vec<_> = placed.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["code", "data", "msg"]);
    assert!(placed["data"]["orderId"].is_i64(), "{placed}");
    assert_eq!(placed["data"]["status"], "FILLED");

    venue
        .call(
            "futures.update_builder",
            V3,
            &[("builder", BUILDER), ("maxFeeRate", "0.0005")],
        )
        .await
        .ok();
    assert_eq!(venue.call(place, V3, &order("0.001")).await.code(), -2010);
    let listed = venue.call("futures.builders", V3, &[]).await.ok();
    assert_eq!(listed[0]["maxFeeRate"].to_string(), "0.0005");
    assert_eq!(listed[0]["userAddress"], venue.keys(0).user);
    assert_eq!(listed[0]["builderName"], "b");
    venue
        .call("futures.delete_builder", V3, &[("builder", BUILDER)])
        .await
        .ok();
    assert_eq!(venue.call(place, V3, &order("0.0001")).await.code(), -2010);
    let unknown = venue
        .call("futures.delete_builder", V3, &[("builder", BUILDER)])
        .await;
    assert_eq!(unknown.code(), -1130);

    let mut both = approval_with_builder();
    both.push(("maxFeeRate", "0.002"));
    venue.call("futures.approve_agent", V3, &both).await.ok();
    venue.call(place, V3, &order("0.002")).await.ok();
}

fn approval_with_builder() -> Vec<(&'static str, &'static str)> {
    let mut pairs = approval("true", "true", FAR).to_vec();
    pairs.push(("builder", BUILDER));
    pairs
}

fn decimal(value: &serde_json::Value) -> Decimal {
    value.as_str().unwrap().parse().unwrap()
}

/// Taker fee, and the order's fee for its builder.
const TAKER: &str = "0.0004";
const BUILDER_RATE: &str = "0.001";

#[tokio::test]
async fn a_fill_pays_the_venue_and_the_builder_in_one_commission() {
    let venue = Venue::new().await;
    let builder = venue.keys(1).user.clone();
    let (before, own_before) = (venue.perp(1, "USDT").await, venue.perp(0, "USDT").await);
    let approval = [("builder", builder.as_str()), ("maxFeeRate", BUILDER_RATE)];
    venue
        .call("futures.approve_builder", V3, &approval)
        .await
        .ok();
    let entry = format!(
        r#"[{{"symbol":"BTCUSDT","side":"BUY","type":"MARKET","quantity":"0.01","builder":"{builder}","feeRate":"{BUILDER_RATE}"}}]"#
    );
    let batch = venue
        .call("futures.batch_orders", V3, &[("batchOrders", &entry)])
        .await
        .ok();
    let id = batch[0]["orderId"].as_i64().expect("placed").to_string();
    let symbol = [("symbol", "BTCUSDT")];
    let trades = venue.call("futures.user_trades", V3, &symbol).await.ok();
    let rate: Decimal =
        TAKER.parse::<Decimal>().unwrap() + BUILDER_RATE.parse::<Decimal>().unwrap();
    let (mut fees, mut notional) = (Decimal::ZERO, Decimal::ZERO);
    for trade in trades.as_array().unwrap() {
        assert_eq!(trade["orderId"].to_string(), id);
        assert_eq!(
            decimal(&trade["commission"]),
            decimal(&trade["quoteQty"]) * rate
        );
        fees += decimal(&trade["commission"]);
        notional += decimal(&trade["quoteQty"]);
    }
    let income = [("symbol", "BTCUSDT"), ("incomeType", "COMMISSION")];
    let paid = venue.call("futures.income", V3, &income).await.ok();
    let paid: Decimal = paid
        .as_array()
        .unwrap()
        .iter()
        .map(|i| decimal(&i["income"]))
        .sum();
    assert_eq!(paid, -fees);
    let wallet = |text: String| text.parse::<Decimal>().unwrap();
    assert_eq!(
        wallet(venue.perp(0, "USDT").await),
        wallet(own_before) - fees
    );
    let share = notional * BUILDER_RATE.parse::<Decimal>().unwrap();
    assert_eq!(wallet(venue.perp(1, "USDT").await), wallet(before) + share);
    let own = venue.credentials(1);
    let earned = venue
        .call_with(&own, "futures.income", V3, &income)
        .await
        .ok();
    let earned: Decimal = earned
        .as_array()
        .unwrap()
        .iter()
        .map(|i| decimal(&i["income"]))
        .sum();
    assert_eq!(earned, share);
    // The next order has no code, so it pays only the venue.
    let plain = [
        ("symbol", "BTCUSDT"),
        ("side", "SELL"),
        ("type", "MARKET"),
        ("quantity", "0.01"),
    ];
    let sold = venue.call("futures.new_order", V3, &plain).await.ok();
    let trades = venue.call("futures.user_trades", V3, &symbol).await.ok();
    for trade in trades.as_array().unwrap() {
        if trade["orderId"] == sold["orderId"] {
            let fee = decimal(&trade["quoteQty"]) * TAKER.parse::<Decimal>().unwrap();
            assert_eq!(decimal(&trade["commission"]), fee);
        }
    }
    // A builder's code can be added to an order of any type.
    let coded = [("builder", builder.as_str()), ("feeRate", "0.0001")];
    let close = [
        ("symbol", "BTCUSDT"),
        ("side", "SELL"),
        ("type", "STOP_MARKET"),
        ("stopPrice", "1000"),
        ("closePosition", "true"),
    ];
    let stop = venue
        .call("futures.new_order", V3, &[&close[..], &coded].concat())
        .await;
    assert_eq!(stop.ok()["data"]["status"], "NEW");
}
