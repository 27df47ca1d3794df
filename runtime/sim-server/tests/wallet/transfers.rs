//! Transfers between the wallets of a user, and to other users.

use crate::fixture::{V1, V3, Venue};

#[tokio::test]
async fn money_moves_between_spot_and_perp_in_every_version() {
    let venue = Venue::new().await;
    let before = (venue.spot(0, "USDT").await, venue.perp(0, "USDT").await);
    let routes = [
        ("spot.wallet_transfer", V1),
        ("spot.wallet_transfer", V3),
        ("futures.wallet_transfer", V1),
        ("futures.wallet_transfer", V3),
        ("chain.perp_wallet_transfer", V3),
        ("chain.spot_wallet_transfer", V3),
    ];
    for (n, (name, version)) in routes.into_iter().enumerate() {
        let id = format!("t{n}");
        let kind = if n % 2 == 0 {
            "SPOT_FUTURE"
        } else {
            "FUTURE_SPOT"
        };
        let pairs = [
            ("amount", "1.5"),
            ("asset", "USDT"),
            ("clientTranId", id.as_str()),
            ("kindType", kind),
        ];
        let answer = venue.call(name, version, &pairs).await.ok();
        assert_eq!(answer["status"], "SUCCESS");
        assert!(answer["tranId"].is_i64(), "{answer}");
    }
    let after = (venue.spot(0, "USDT").await, venue.perp(0, "USDT").await);
    assert_eq!(before, after);
}

#[tokio::test]
async fn transfers_that_break_a_rule_are_refused_with_its_code() {
    let venue = Venue::new().await;
    let long = "x".repeat(64);
    let cases = [
        (["0", "USDT", "a", "SPOT_FUTURE"], -4055),
        (["-1", "USDT", "a", "SPOT_FUTURE"], -4055),
        (["1", "USDT", long.as_str(), "SPOT_FUTURE"], -4114),
        (["100000000", "USDT", "a", "SPOT_FUTURE"], -2018),
        (["100000000", "USDT", "a", "FUTURE_SPOT"], -2018),
        (["1", "NOPE", "a", "SPOT_FUTURE"], -1130),
        (["1", "USDT", "a", "SIDEWAYS"], -1130),
        (["0.123456789", "USDT", "a", "SPOT_FUTURE"], -1111),
        (["1", "USDT", "", "SPOT_FUTURE"], -1102),
        (["1", "USDT", "a", "SPOT_FUTURE"], 0),
        (["1", "USDT", "a", "SPOT_FUTURE"], -4115),
        // Ids are unique per account, not per route.
        (["1", "USDT", "a", "FUTURE_SPOT"], -4115),
    ];
    for ([amount, asset, id, kind], code) in cases {
        let pairs = [
            ("amount", amount),
            ("asset", asset),
            ("clientTranId", id),
            ("kindType", kind),
        ];
        for (name, version) in [
            ("spot.wallet_transfer", V1),
            ("futures.wallet_transfer", V3),
        ] {
            let answer = venue.call(name, version, &pairs).await;
            assert_eq!(answer.code(), code, "{pairs:?} {name}: {}", answer.body);
            if code == 0 {
                break;
            }
        }
    }
}

fn pairs<'a>(to: &'a str, id: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("amount", "2"),
        ("asset", "USDT"),
        ("toAddress", to),
        ("clientTranId", id),
    ]
}

#[tokio::test]
async fn money_can_be_sent_to_another_user_only() {
    let venue = Venue::new().await;
    let other = venue.keys(1).user.clone();
    let before = venue.spot(1, "USDT").await.parse::<f64>().unwrap();
    let id = "x".repeat(20);
    let sent = venue
        .call("spot.send_to_address", V1, &pairs(&other, &id))
        .await
        .ok();
    assert_eq!(sent["status"], "SUCCESS");
    let sent = venue
        .call("chain.transfer", V3, &pairs(&other.to_lowercase(), "short"))
        .await
        .ok();
    assert_eq!(sent["status"], "SUCCESS");
    assert!(
        sent["transferId"].is_string() && sent["amount"] == "2",
        "{sent}"
    );
    let after = venue.spot(1, "USDT").await.parse::<f64>().unwrap();
    assert!((after - before - 4.0).abs() < 1e-9, "{before} {after}");

    let own = venue.keys(0).user.clone();
    let stranger = "0x00000000000000000000000000000000000000aa";
    let fresh = "y".repeat(20);
    let cases = [
        (own.as_str(), fresh.as_str(), -1130),
        (stranger, fresh.as_str(), -1130),
        (
            "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin",
            fresh.as_str(),
            -1130,
        ),
        (other.as_str(), "nineteen-characters", -4114),
        (other.as_str(), id.as_str(), -4115),
    ];
    for (to, id, code) in cases {
        let answer = venue.call("spot.send_to_address", V1, &pairs(to, id)).await;
        assert_eq!(answer.code(), code, "{to} {id}: {}", answer.body);
    }
}
