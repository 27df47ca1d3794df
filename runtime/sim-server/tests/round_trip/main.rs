//! Calls every route of the table in every listed version through client and server, so that no
//! route can be forgotten. The test first creates what a route needs to succeed. The response must
//! have every documented field and decode as the type of its route.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/http.rs"]
mod http;
#[path = "../common/keys.rs"]
mod keys;
#[path = "../common/own_client.rs"]
mod own_client;
mod setup;

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde_json::Value;
use windvane_client::Outcome;
use windvane_protocol::route::{self, Bounds, Kind, Need, Param, Scheme, Surface};
use windvane_protocol::sign::{ApiKey, Credentials, SolanaKey};
use windvane_protocol::wire::{Parameters, answers, futures, read};
use windvane_sim_server::AccountKeys;
use windvane_wire_examples as examples;

use keys::wallet;
use own_client::done;
use setup::{Setup, alone, client, example, set};

/// Documented fields that a response may lack, because they belong to one order type or one
/// position mode.
const OF_ONE_KIND: [&str; 5] = [
    ".activatePrice",
    ".priceRate",
    ".adlQuantile.HEDGE",
    ".adlQuantile.LONG",
    ".adlQuantile.SHORT",
];

/// Collects every field at any depth, with the kind of its value (text, number, ...). Indices of
/// list entries are not part of the path.
fn fields(value: &Value, path: &str, into: &mut BTreeMap<String, &'static str>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                fields(value, &format!("{path}.{name}"), into);
            }
        }
        Value::Array(entries) => {
            for value in entries {
                fields(value, path, into);
            }
        }
        Value::String(_) => drop(into.insert(path.to_owned(), "text")),
        Value::Number(_) => drop(into.insert(path.to_owned(), "number")),
        Value::Bool(_) => drop(into.insert(path.to_owned(), "boolean")),
        Value::Null => drop(into.insert(path.to_owned(), "null")),
    }
}

/// Documented fields that the response lacks or has with another kind of value.
fn differences(name: &str, text: &str) -> Vec<String> {
    let (mut listed, mut found) = (BTreeMap::new(), BTreeMap::new());
    let documented = example(name).answer;
    if documented.is_empty() {
        return Vec::new();
    }
    fields(&serde_json::from_str(documented).unwrap(), "", &mut listed);
    fields(&serde_json::from_str(text).unwrap(), "", &mut found);
    listed.retain(|path, _| !OF_ONE_KIND.iter().any(|name| path.ends_with(name)));
    let differs = |(path, kind): (String, &'static str)| match found.get(&path) {
        None => Some(format!("{path} is missing")),
        Some(other) if *other == kind || *other == "null" || kind == "null" => None,
        Some(other) => Some(format!("{path} is a {other}, documented as {kind}")),
    };
    listed.into_iter().filter_map(differs).collect()
}

#[tokio::test]
async fn every_route_in_every_version_is_answered_as_documented() {
    let mut setup = Setup::new().await;
    let mut faults = Vec::new();
    let mut calls = 0;
    for route in route::all() {
        for listing in route.listings {
            calls += 1;
            let which = format!("{} {:?} {}", route.name, listing.version, listing.path);
            match setup.call(route, listing).await.into_result() {
                Err(other) => faults.push(format!("{which}: {other}")),
                Ok(raw) => {
                    if let Err(error) = answers::check(route.name, &raw.text) {
                        faults.push(format!("{which}: {error}: {}", raw.text));
                    } else {
                        let differences = differences(route.name, &raw.text);
                        if !differences.is_empty() {
                            faults.push(format!("{which}: {differences:?}: {}", raw.text));
                        }
                    }
                }
            }
            setup.restore(route.name).await;
        }
    }
    assert!(faults.is_empty(), "{calls} calls:\n{}", faults.join("\n"));
    assert!(calls >= route::all().count());
}

#[tokio::test]
async fn an_order_with_a_builder_code_has_its_own_response() {
    let mut setup = Setup::new().await;
    let route = route::named("futures.builders").unwrap();
    setup.parameters(route).await;
    let examples = examples::all();
    let with_builder = examples.iter().find(|example| example.is_builder_order());
    let sent = set(&with_builder.unwrap().parameters, "price", "59000");
    let route = route::named("futures.new_order").unwrap();
    let v3 = Some(route::Version::V3);
    let raw = done(setup.client.call(route, v3, &sent).await);
    let answer: futures::BuilderOrder = read(&raw.text).unwrap();
    assert_eq!(answer.code.0, 200);
    assert!(answer.data.unwrap().order_id.is_some());
}

/// Keys that the server does not know. With `forged`, the public half is a real account's, and the
/// secret half is wrong.
fn foreign(keys: &AccountKeys, forged: bool) -> Credentials {
    let stranger = "0x4fd0a42218f3eae43a6ce26d22544e986139a01e5b34a62db53757ffca81bae1";
    let key = |key: &str| Some(ApiKey::new(key, SecretString::from("another secret")));
    let unknown = Credentials {
        api_key: key(&"0".repeat(64)),
        user: None,
        signer: Some(wallet(stranger)),
        wallet: Some(wallet(stranger)),
        solana: Some(SolanaKey::from_seed(&[1; 32])),
    };
    if !forged {
        return unknown;
    }
    Credentials {
        api_key: key(&keys.api_key),
        user: Some(keys.user.parse().unwrap()),
        ..unknown
    }
}

#[tokio::test]
async fn every_signed_route_refuses_foreign_keys() {
    for forged in [false, true] {
        let setup = Setup::new().await;
        let keys = foreign(&setup.running.accounts[0], forged);
        let thief = client(&setup.running, keys);
        for route in route::all() {
            for listing in route.listings {
                // A known API key alone is enough for routes that need no signature.
                let open = match listing.scheme {
                    Scheme::Open => listing.inner.is_none(),
                    Scheme::ApiKey => forged,
                    _ => false,
                };
                if open {
                    continue;
                }
                let sent = example(route.name).parameters;
                let outcome = thief
                    .call(alone(route, listing), listing.version, &sent)
                    .await;
                let Outcome::Refused(refusal) = &outcome else {
                    panic!("{} {}: {outcome:?}", route.name, listing.path);
                };
                // Unauthorized, a bad signature, or a malformed or unknown key.
                let code = refusal.code().unwrap_or_default();
                let known = [-1002, -1022, -2014, -2015].contains(&code);
                assert!(known, "{} {}: {refusal}", route.name, listing.path);
            }
        }
    }
}

#[tokio::test]
async fn every_route_names_a_missing_required_parameter() {
    let setup = Setup::new().await;
    for route in route::all().filter(|route| route.surface != Surface::Rpc) {
        for listing in route.listings {
            let mandatory = route.params.iter().filter(|param| {
                let here = param.only.is_none() || param.only == listing.version;
                here && param.need == Need::Required
            });
            for param in mandatory {
                // Parameters that signing fills in are never missing.
                let full = example(route.name).parameters;
                let filled = route.name == "spot.create_api_key" && param.name == "address";
                if filled || full.get(param.name).is_none() {
                    continue;
                }
                let without = full.iter().filter(|(name, _)| *name != param.name);
                let sent: Parameters = without.collect();
                let which = format!("{} {} without {}", route.name, listing.path, param.name);
                let (code, msg) = setup.refused(route, listing, &sent).await;
                assert_eq!(code, -1102, "{which}: {msg}");
                assert!(msg.contains(param.name), "{which}: {msg}");
            }
        }
    }
}

/// Values that the table forbids for a parameter, each with the expected code.
fn ruled_out(param: &Param) -> Vec<(String, i64)> {
    let of_kind: &[&str] = match param.kind {
        Kind::Long | Kind::Int => &["1.5", "many"],
        Kind::Decimal => &["1e5", "1,5"],
        Kind::Boolean => &["maybe"],
        Kind::Enum(_) => &["NO_SUCH_WORD"],
        Kind::List | Kind::Address | Kind::String => &[],
    };
    let code = match (param.kind, param.name) {
        (Kind::Enum(_), "side") => -1117,
        (Kind::Enum(_), "type") => -1116,
        (Kind::Enum(_), "timeInForce") => -1115,
        (Kind::Enum(_), "interval") => -1120,
        (Kind::Enum(_), "newOrderRespType") => -1136,
        (Kind::Enum(_), "workingType") => -4031,
        (Kind::Enum(_), "positionSide") => -4060,
        (Kind::Enum(_) | Kind::Boolean, _) => -1130,
        _ => -1100,
    };
    let mut values: Vec<_> = of_kind.iter().map(|v| ((*v).to_owned(), code)).collect();
    let own = match param.name {
        "leverage" => -4028,
        "amount" => -4055,
        "clientTranId" => -4114,
        "newClientOrderId" | "origClientOrderId" => -4015,
        _ => -1130,
    };
    match param.bounds {
        Bounds::Range(_, high) => values.push((format!("{high}1"), own)),
        Bounds::Values(_) if param.name == "limit" => values.push(("999999".to_owned(), -4021)),
        Bounds::Values(_) => values.push(("999999".to_owned(), own)),
        Bounds::Length(_, longest) => values.push(("x".repeat(longest + 1), own)),
        Bounds::AboveZero => values.extend(["0", "-1"].map(|v| (v.to_owned(), own))),
        Bounds::ClientOrderId => {
            values.extend([("x".repeat(37), -4015), ("a b".to_owned(), -1100)]);
        }
        Bounds::Any | Bounds::Entries(_) | Bounds::NotNegative | Bounds::SolanaAddress => {}
    }
    values
}

#[tokio::test]
async fn every_route_refuses_values_that_the_table_forbids() {
    let setup = Setup::new().await;
    let (mut tried, mut wrong) = (0, Vec::new());
    for route in route::all().filter(|route| route.surface != Surface::Rpc) {
        let listing = &route.listings[0];
        let here = |param: &&Param| param.only.is_none() || param.only == listing.version;
        for param in route.params.iter().filter(here) {
            for (value, expected) in ruled_out(param) {
                let full = example(route.name).parameters;
                let others = full.iter().filter(|(name, _)| *name != param.name);
                let sent: Parameters = others.chain([(param.name, value.as_str())]).collect();
                let (code, msg) = setup.refused(route, listing, &sent).await;
                if code != expected {
                    let which = format!("{} {}={value}", route.name, param.name);
                    wrong.push(format!("{which}: {code}, not {expected}: {msg}"));
                }
                tried += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 150, "{tried}");
}
