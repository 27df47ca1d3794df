//! Withdrawals: two signatures, limits, and the history.

use windvane_protocol::route::Surface;

use crate::fixture::{V1, V3, Venue, stamp, wallet};

const ELSEWHERE: &str = "0x00000000000000000000000000000000000000aa";

fn pairs<'a>(amount: &'a str, receiver: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("chainId", "56"),
        ("asset", "USDT"),
        ("amount", amount),
        ("fee", "0.3"),
        ("receiver", receiver),
    ]
}

#[tokio::test]
async fn every_withdrawal_route_accepts_both_signatures() {
    let venue = Venue::new().await;
    let user = venue.keys(0).user.clone();
    let solana = venue.credentials(0).solana.unwrap().address();
    let spot = venue.spot(0, "USDT").await.parse::<f64>().unwrap();
    let perp = venue.perp(0, "USDT").await.parse::<f64>().unwrap();
    let routes = [
        ("spot.withdraw", V1, user.as_str()),
        ("spot.withdraw", V3, user.as_str()),
        ("chain.perp_withdraw", V3, ELSEWHERE),
        ("chain.perp_solana_withdraw", V3, solana.as_str()),
        ("chain.spot_withdraw", V3, ELSEWHERE),
        ("chain.spot_solana_withdraw", V3, solana.as_str()),
    ];
    for (name, version, receiver) in routes {
        let answer = venue
            .call(name, version, &pairs("31.50", receiver))
            .await
            .ok();
        assert!(answer["withdrawId"].is_string(), "{name}: {answer}");
        assert!(
            answer["hash"].as_str().unwrap().starts_with("0x"),
            "{name}: {answer}"
        );
    }
    let spot_after = venue.spot(0, "USDT").await.parse::<f64>().unwrap();
    let perp_after = venue.perp(0, "USDT").await.parse::<f64>().unwrap();
    assert!(
        (spot - spot_after - 63.0).abs() < 1e-9,
        "{spot} {spot_after}"
    );
    assert!(
        (perp - perp_after - 126.0).abs() < 1e-9,
        "{perp} {perp_after}"
    );

    let history = venue
        .call("chain.deposit_withdraw_history", V3, &[])
        .await
        .ok();
    let history = history.as_array().unwrap();
    assert_eq!(history.len(), 4, "perp entries only: {history:?}");
    assert_eq!(history[0]["type"], "WITHDRAW");
    assert_eq!(history[0]["amount"], "31.5");
    let other_chain = [("chainId", "1")];
    let none = venue
        .call("chain.deposit_withdraw_history", V3, &other_chain)
        .await
        .ok();
    assert_eq!(none.as_array().unwrap().len(), 0);

    let info = venue.call("chain.withdraw_info", V3, &[]).await.ok();
    assert_eq!(info["userRemainingDailyLimit"], "999811");
    assert!(
        info["balances"]["USDT"]["chainBalances"]["56"]["withdrawFee"].is_string(),
        "{info}"
    );
}

#[tokio::test]
async fn spot_may_sign_for_another_chain() {
    let venue = Venue::new().await;
    let mut request = pairs("31", ELSEWHERE).to_vec();
    request.push(("signatureChainId", "1"));
    venue.call("chain.spot_withdraw", V3, &request).await.ok();
    let mut foreign = venue.credentials(0);
    foreign.user = Some(venue.keys(0).user.parse().unwrap());
    foreign.wallet = Some(wallet(&venue.keys(1).user_key));
    let wrong = venue
        .call_with(&foreign, "chain.spot_withdraw", V3, &request)
        .await;
    assert_eq!(wrong.code(), -1022, "{}", wrong.body);
}

#[tokio::test]
async fn a_withdrawal_that_the_wallet_did_not_sign_is_refused() {
    let venue = Venue::new().await;
    let own = venue.credentials(0);
    let name = "chain.perp_withdraw";
    // The inner signature covers 31 and the request has 32. Both outer signatures are valid.
    let signed = venue.prepared(&own, name, V3, &pairs("31", ELSEWHERE), stamp());
    let body = signed.body.unwrap();
    let field = |name: &str| {
        let (_, rest) = body.split_once(&format!("{name}=")).unwrap();
        rest.split('&').next().unwrap().to_owned()
    };
    let (nonce, signature) = (field("userNonce"), field("userSignature"));
    let with = |amount| {
        let mut all = pairs(amount, ELSEWHERE).to_vec();
        all.push(("userNonce", nonce.as_str()));
        all.push(("userSignature", signature.as_str()));
        all
    };
    assert_eq!(venue.call(name, V3, &with("32")).await.code(), -1022);
    venue.call(name, V3, &with("31")).await.ok();
    let again = venue.call(name, V3, &with("31")).await;
    assert_eq!(
        again.code(),
        -4225,
        "a signed nonce is valid once: {}",
        again.body
    );

    let solana = venue.credentials(0).solana.unwrap().address();
    let mut forged = pairs("31", &solana).to_vec();
    let made = windvane_protocol::sign::SolanaKey::from_seed(&[1; 32]).sign("something else");
    forged.push(("userSignature", made.as_str()));
    let refused = venue.call("chain.perp_solana_withdraw", V3, &forged).await;
    assert_eq!(refused.code(), -1022);
}

#[tokio::test]
async fn rules_of_withdrawals_have_their_codes() {
    let venue = Venue::new().await;
    let user = venue.keys(0).user.clone();
    let cases = [
        (pairs("0", &user), -4055),
        (pairs("0.3", &user), -1130),
        (pairs("900000", &user), -2018),
        (pairs("2000000", &user), -1130),
        (pairs("31", ELSEWHERE), -1130),
    ];
    for (pairs, code) in cases {
        let answer = venue.call("spot.withdraw", V1, &pairs).await;
        assert_eq!(answer.code(), code, "{pairs:?}: {}", answer.body);
    }
    // More than the perp account has, so the rest comes from spot.
    venue
        .call("spot.withdraw", V1, &pairs("150000", &user))
        .await
        .ok();
    assert_eq!(venue.perp(0, "USDT").await, "0");
    assert_eq!(venue.spot(0, "USDT").await, "50000");
}

#[tokio::test]
async fn an_agent_withdraws_only_where_it_may() {
    let venue = Venue::new().await;
    let signer = venue.keys(0).signer.clone();
    let update = [
        ("agentAddress", signer.as_str()),
        ("canSpotTrade", "true"),
        ("canPerpTrade", "true"),
        ("canWithdraw", "false"),
    ];
    venue.call("futures.update_agent", V3, &update).await.ok();
    let refused = venue
        .call("chain.perp_withdraw", V3, &pairs("31", ELSEWHERE))
        .await;
    assert_eq!(refused.code(), -2015, "{}", refused.body);
}

#[tokio::test]
async fn fees_are_estimated_on_both_surfaces() {
    let venue = Venue::new().await;
    let pairs = [("chainId", "56"), ("asset", "USDT")];
    for version in [V1, V3] {
        let fee = venue.call("spot.withdraw_fee", version, &pairs).await.ok();
        assert!(
            fee["gasCost"].is_number() && fee["tokenPrice"].is_number(),
            "{fee}"
        );
    }
    let fee = venue.call("chain.withdraw_fee", V3, &pairs).await.ok();
    assert!(
        fee["gasCost"].is_string() && fee["gasPrice"].is_i64(),
        "{fee}"
    );
    let unknown = [("chainId", "5"), ("asset", "USDT")];
    assert_eq!(
        venue.call("chain.withdraw_fee", V3, &unknown).await.code(),
        -1130
    );
    let total = venue.call("chain.locked_staking", V3, &[]).await.ok();
    assert!(total["totalVolume"].is_number(), "{total}");
    let deposit = venue.call("chain.deposit_address", V3, &[]).await.ok();
    assert_eq!(deposit["network"], "SUI");
}

#[tokio::test]
async fn a_nonce_of_the_outer_message_is_valid_once() {
    let venue = Venue::new().await;
    let own = venue.credentials(0);
    let transfer = [
        ("amount", "1"),
        ("asset", "USDT"),
        ("clientTranId", "once"),
        ("kindType", "SPOT_FUTURE"),
    ];
    let prepared = venue.prepared(&own, "chain.spot_wallet_transfer", V3, &transfer, stamp());
    venue.send(Surface::Chain, &prepared).await.ok();
    assert_eq!(venue.send(Surface::Chain, &prepared).await.code(), -4225);
}

#[tokio::test]
async fn outside_deposits_are_in_the_history() {
    let venue = Venue::new().await;
    let act = r#"{"act":"deposit","surface":"futures","asset":"USDT","amount":"12.5"}"#;
    venue.control("/act", act).await.ok();
    let history = venue
        .call("chain.deposit_withdraw_history", V3, &[])
        .await
        .ok();
    assert_eq!(history[0]["type"], "DEPOSIT");
    assert_eq!(
        (&history[0]["amount"], &history[0]["state"]),
        (&"12.5".into(), &"COMPLETED".into())
    );
}

/// The body of a chain withdrawal with only the main wallet's inner signature.
fn action_alone(body: &str) -> String {
    let outer = ["nonce=", "signer=", "signature=", "user="];
    let kept = body.split('&');
    let kept = kept.filter(|pair| !outer.iter().any(|name| pair.starts_with(name)));
    kept.collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn a_chain_withdrawal_needs_only_the_main_wallets_action() {
    let venue = Venue::new().await;
    let own = venue.credentials(0);
    for (name, account) in [
        ("chain.perp_withdraw", "perp"),
        ("chain.spot_withdraw", "spot"),
    ] {
        let pairs = pairs("31.50", ELSEWHERE);
        let mut prepared = venue.prepared(&own, name, V3, &pairs, stamp());
        let body = action_alone(prepared.body.as_deref().unwrap());
        assert!(!body.contains("signer="), "{body}");
        for changed in [
            body.replace("31.50", "31.51"),
            format!("{body}&user={}", venue.keys(1).user),
        ] {
            prepared.body = Some(changed);
            let refused = venue.send(Surface::Chain, &prepared).await;
            assert_eq!(refused.code(), -1022, "{name}: {}", refused.body);
        }
        prepared.body = Some(body.clone());
        let answer = venue.send(Surface::Chain, &prepared).await.ok();
        assert!(answer["withdrawId"].is_string(), "{name}: {answer}");
        let again = venue.send(Surface::Chain, &prepared).await;
        assert_eq!(again.code(), -4225, "a signed nonce is valid once");
        let left = match account {
            "perp" => venue.perp(0, "USDT").await,
            _ => venue.spot(0, "USDT").await,
        };
        assert_eq!(left, "99968.5", "the signer's own account pays");
        prepared.body = Some(format!("{body}&nonce=1"));
        let half = venue.send(Surface::Chain, &prepared).await;
        assert_eq!(half.code(), -1102, "the outer signature is incomplete");
    }
}
