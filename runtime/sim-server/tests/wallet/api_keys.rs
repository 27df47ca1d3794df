//! API keys by wallet signature.

use secrecy::SecretString;
use serde_json::Value;
use windvane_protocol::route::Surface;
use windvane_protocol::sign::{ApiKey, Credentials, Stamp};

use crate::fixture::{Answered, V1, Venue, stamp, wallet};

async fn number(venue: &Venue) -> u64 {
    let user = venue.keys(0).user.clone();
    let pairs = [
        ("address", user.as_str()),
        ("userOperationType", "CREATE_API_KEY"),
    ];
    let answer = venue.call("spot.get_nonce", V1, &pairs).await.ok();
    answer.as_u64().unwrap()
}

async fn create(
    venue: &Venue,
    credentials: &Credentials,
    number: u64,
    more: &[(&str, &str)],
) -> Answered {
    let mut pairs = vec![("userOperationType", "CREATE_API_KEY")];
    pairs.extend(more);
    let stamp = Stamp {
        nonce_us: number,
        ..stamp()
    };
    let prepared = venue.prepared(credentials, "spot.create_api_key", V1, &pairs, stamp);
    venue.send(Surface::Spot, &prepared).await
}

fn key(pair: &Value) -> Credentials {
    let text = |name: &str| pair[name].as_str().unwrap().to_owned();
    Credentials {
        api_key: Some(ApiKey::new(
            text("apiKey"),
            SecretString::from(text("apiSecret")),
        )),
        ..Credentials::default()
    }
}

#[tokio::test]
async fn a_signed_sentence_makes_a_key_that_works() {
    let venue = Venue::new().await;
    let own = venue.credentials(0);
    let first = number(&venue).await;
    let pair = create(&venue, &own, first, &[("desc", "bot")]).await.ok();
    venue
        .call_with(&key(&pair), "spot.account", V1, &[])
        .await
        .ok();

    let used = create(&venue, &own, first, &[("desc", "bot 2")]).await;
    assert_eq!(used.code(), -1022, "a number is valid once: {}", used.body);
    let next = number(&venue).await;
    let label = create(&venue, &own, next, &[("desc", "bot")]).await;
    assert_eq!(label.code(), -1130, "labels are unique: {}", label.body);
    let long = create(&venue, &own, next, &[("desc", "a label of 21 letters")]).await;
    assert_eq!(long.code(), -1130);
    let ip = create(
        &venue,
        &own,
        next,
        &[("desc", "b"), ("apikeyIP", "somewhere")],
    )
    .await;
    assert_eq!(ip.code(), -1130);
    let late = create(&venue, &own, next, &[("desc", "b"), ("timestamp", "1000")]).await;
    assert_eq!(late.code(), -1021);
    let bound = [("desc", "b"), ("apikeyIP", "10.0.0.1,10.0.0.2")];
    let pair = create(&venue, &own, next, &bound).await.ok();
    let elsewhere = venue.call_with(&key(&pair), "spot.account", V1, &[]).await;
    assert_eq!(elsewhere.code(), -2015);
}

#[tokio::test]
async fn another_wallet_cannot_create_a_key() {
    let venue = Venue::new().await;
    let number = number(&venue).await;
    let mut thief = venue.credentials(0);
    thief.wallet = Some(wallet(&venue.keys(1).user_key));
    let user = venue.keys(0).user.clone();
    let forged = create(&venue, &thief, number, &[("address", &user), ("desc", "b")]).await;
    assert_eq!(forged.code(), -1022);
    let foreign = create(&venue, &thief, number, &[("desc", "b")]).await;
    assert_eq!(foreign.code(), -1022, "number of another address");
}
