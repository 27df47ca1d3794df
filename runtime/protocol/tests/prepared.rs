//! The bytes that `prepare` puts on the wire: one complete route of each scheme, and properties
//! that hold for all parameters.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;
use secrecy::SecretString;
use windvane_protocol::Brand;
use windvane_protocol::route::{Route, Scheme, Surface, Version, all, named};
use windvane_protocol::sign::{
    ApiKey, Credentials, Dialect, MessageDomain, Network, PrepareError, Prepared, SolanaKey, Stamp,
    Wallet, hmac, prepare, sentence, signer_of, solana, typed,
};
use windvane_protocol::wire::Parameters;

const STAMP: Stamp = Stamp {
    timestamp_ms: 1_700_000_000_000,
    nonce_us: 1_700_000_000_000_001,
    inner_nonce_us: 1_700_000_000_000_002,
};

fn dialect() -> Dialect {
    let mut brand = Brand::new("svc").unwrap();
    brand.login_sentence = Some("You are signing into svc".to_owned());
    Dialect {
        brand,
        network: Network::Mainnet,
        recv_window_ms: None,
    }
}

fn keys() -> Credentials {
    Credentials {
        api_key: Some(ApiKey::new("the-key", SecretString::from("the-secret"))),
        user: None,
        signer: Some(Wallet::from_bytes(&[1; 32]).unwrap()),
        wallet: Some(Wallet::from_bytes(&[2; 32]).unwrap()),
        solana: Some(SolanaKey::from_seed(&[3; 32])),
    }
}

fn parameters<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> Parameters {
    let mut parameters = Parameters::new();
    for (name, value) in pairs {
        parameters.push(name.as_ref(), value.as_ref());
    }
    parameters
}

fn request(name: &str, version: Option<Version>, pairs: &[(&str, &str)]) -> Prepared {
    let route = named(name).unwrap();
    prepare(
        route,
        version,
        &parameters(pairs),
        &dialect(),
        &keys(),
        STAMP,
    )
    .unwrap()
}

/// The request as readable text.
fn shown(prepared: &Prepared) -> String {
    let query = prepared.query.as_ref().map(|query| format!("?{query}"));
    let query = query.unwrap_or_default();
    let mut lines = vec![format!("{} {}{query}", prepared.method, prepared.path)];
    let headers = prepared.headers.iter();
    lines.extend(headers.map(|(name, value)| format!("{name}: {value}")));
    if let Some(body) = &prepared.body {
        lines.push(format!("\n{body}"));
    }
    let signed = prepared.signed.as_deref().unwrap_or("nothing");
    lines.push(format!("signed: {signed}"));
    lines.join("\n")
}

#[test]
fn open_routes_add_nothing() {
    let prepared = request("spot.depth", Some(Version::V3), &[("symbol", "BTCUSDT")]);
    insta::assert_snapshot!(shown(&prepared));
}

#[test]
fn api_key_routes_send_the_header_only() {
    let v1 = Some(Version::V1);
    let prepared = request("spot.create_listen_key", v1, &[]);
    insta::assert_snapshot!(shown(&prepared));
    let prepared = request("spot.keepalive_listen_key", v1, &[("listenKey", "abc")]);
    insta::assert_snapshot!(shown(&prepared));
}

#[test]
fn v3_historical_trades_send_an_api_key_if_there_is_one() {
    let prepare = |name: &str, version, credentials: &Credentials| {
        let pairs = parameters(&[("symbol", "BTCUSDT")]);
        let (route, dialect) = (named(name).unwrap(), dialect());
        prepare(route, Some(version), &pairs, &dialect, credentials, STAMP)
    };
    let (with, without) = (keys(), Credentials::default());
    let (spot, futures) = ("spot.historical_trades", "futures.historical_trades");
    let shows_key = |prepared: &Prepared| {
        let mut headers = prepared.headers.iter();
        headers.any(|(name, _)| *name == "X-MBX-APIKEY")
    };
    let sent = prepare(spot, Version::V3, &with).unwrap();
    assert!(shows_key(&sent));
    assert_eq!(sent.query.as_deref(), Some("symbol=BTCUSDT"));
    assert!(!shows_key(&prepare(spot, Version::V3, &without).unwrap()));
    // In v1 the documents agree that a key is needed.
    assert!(shows_key(&prepare(futures, Version::V1, &with).unwrap()));
    assert_eq!(
        prepare(futures, Version::V1, &without),
        Err(PrepareError::NoApiKey { route: futures })
    );
    // Other market data never sends the key.
    assert!(!shows_key(
        &prepare("spot.trades", Version::V3, &with).unwrap()
    ));
}

#[test]
fn hmac_deletes_sign_the_query() {
    let pairs = [
        ("symbol", "BTCUSDT"),
        ("origClientOrderIdList", r#"["a:1", "b"]"#),
    ];
    let prepared = request("futures.cancel_batch_orders", Some(Version::V1), &pairs);
    insta::assert_snapshot!(shown(&prepared));
}

#[test]
fn message_deletes_sign_the_body() {
    let pairs = [
        ("symbol", "BTCUSDT"),
        ("origClientOrderIdList", r#"["a:1", "b"]"#),
    ];
    let prepared = request("futures.cancel_batch_orders", Some(Version::V3), &pairs);
    insta::assert_snapshot!(shown(&prepared));
}

#[test]
fn transfers_of_the_chain_api_are_signed_by_the_wallet() {
    let pairs = [
        ("asset", "USDT"),
        ("amount", "1"),
        ("toAddress", "0x1"),
        ("clientTranId", "t"),
    ];
    let prepared = request("chain.transfer", Some(Version::V3), &pairs);
    insta::assert_snapshot!(shown(&prepared));
    let body = prepared.body.unwrap();
    let (msg, signature) = body.rsplit_once("&signature=").unwrap();
    let digest = MessageDomain::new(&dialect().brand, Network::Mainnet).digest(msg.as_bytes());
    let wallet = keys().wallet.unwrap().address();
    assert_eq!(signer_of(&digest, signature), Ok(wallet));
}

#[test]
fn management_routes_sign_typed_data() {
    let pairs = [
        ("builder", "0xAb"),
        ("maxFeeRate", "0.001"),
        ("builderName", "b&c"),
    ];
    let prepared = request("futures.approve_builder", Some(Version::V3), &pairs);
    insta::assert_snapshot!(shown(&prepared));
}

#[test]
fn management_parameters_are_sent_in_documented_order() {
    let pairs = [
        ("builderName", "b"),
        ("user", "0xme"),
        ("maxFeeRate", "0.1"),
        ("builder", "0x1"),
    ];
    let prepared = request("futures.approve_builder", Some(Version::V3), &pairs);
    let body = prepared.body.unwrap();
    let listed = "builder=0x1&maxFeeRate=0.1&builderName=b&svcChain=Mainnet&user=0xme&nonce=";
    assert!(body.starts_with(listed), "{body}");

    let (route, brand) = (named("futures.approve_builder").unwrap(), dialect().brand);
    let sent = [
        ("nonce", "7"),
        ("user", "0xme"),
        ("builderName", "b"),
        ("builder", "0x1"),
    ];
    let as_sent = typed::management(&brand, route, "P", sent.into_iter(), 56).unwrap();
    let as_listed = typed::management_as_listed(&brand, route, "P", sent.into_iter(), 56).unwrap();
    let listed = [
        ("builder", "0x1"),
        ("builderName", "b"),
        ("user", "0xme"),
        ("nonce", "7"),
    ];
    let expected = typed::management(&brand, route, "P", listed.into_iter(), 56).unwrap();
    assert_eq!(as_listed, expected);
    assert_ne!(as_sent, expected);
}

/// A verifier uses the fields in the order of the request
/// (docs/interface/conventions.md#signing-management-routes).
#[test]
fn the_sent_order_equals_the_order_of_the_signed_type() {
    let address = "0x21cf8ae13bb72632562c6fff438652ba1a151bb4";
    let given: [&[(&str, &str)]; 4] = [
        &[("agentAddress", address), ("nonce", "9")],
        &[
            ("nonce", "9"),
            ("signatureChainId", "1"),
            ("agentAddress", address),
        ],
        &[("user", "0xme"), ("agentAddress", address)],
        &[
            ("nonce", "9"),
            ("user", "0xme"),
            ("svcChain", "Testnet"),
            ("agentAddress", address),
        ],
    ];
    let order = [
        "agentAddress",
        "svcChain",
        "user",
        "nonce",
        "signatureChainId",
        "signature",
    ];
    for pairs in given {
        let prepared = request("futures.delete_agent", Some(Version::V3), pairs);
        let body = prepared.body.unwrap();
        let sent = body.split('&').map(|pair| pair.split_once('=').unwrap().0);
        assert_eq!(sent.collect::<Vec<_>>(), order, "{pairs:?}");
        let signed: serde_json::Value = serde_json::from_str(&prepared.signed.unwrap()).unwrap();
        let typed = signed["types"]["DelAgent"].as_array().unwrap().iter();
        let typed: Vec<_> = typed.map(|field| field["name"].as_str().unwrap()).collect();
        assert_eq!(
            typed,
            ["AgentAddress", "SvcChain", "User", "Nonce"],
            "{pairs:?}"
        );
    }
}

#[test]
fn solana_withdrawals_carry_two_signatures() {
    let pairs = [
        ("asset", "USDT"),
        ("chainId", "101"),
        ("amount", "31.50"),
        ("fee", "0.3"),
        ("receiver", "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"),
    ];
    let prepared = request("chain.perp_solana_withdraw", Some(Version::V3), &pairs);
    insta::assert_snapshot!(shown(&prepared));
    let body = prepared.body.unwrap();
    let signature = body
        .split("userSignature=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    let withdrawal = solana::Withdrawal {
        destination: pairs[4].1,
        token: "USDT",
        amount: "31.5",
        fee: "0.3",
        nonce: "1700000000000002",
    };
    let text = solana::text(&dialect().brand, Network::Mainnet, &withdrawal);
    let address = keys().solana.unwrap().address();
    assert!(solana::verifies(&address, &text, signature));
}

#[test]
fn api_keys_are_requested_by_a_signed_sentence() {
    let pairs = [("userOperationType", "CREATE_API_KEY"), ("desc", "my key")];
    let prepared = request("spot.create_api_key", Some(Version::V1), &pairs);
    insta::assert_snapshot!(shown(&prepared));
    let body = prepared.body.unwrap();
    let signature = body
        .split("userSignature=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    let digest = sentence::digest("You are signing into svc 1700000000000001");
    assert_eq!(
        signer_of(&digest, signature),
        Ok(keys().wallet.unwrap().address())
    );
}

#[test]
fn rpc_parameters_are_positional() {
    let pairs = [
        ("address", "0xab"),
        ("to", "5"),
        ("blockTag", "latest"),
        ("id", "[7]"),
    ];
    let prepared = request("{rpc}userFills", None, &pairs);
    insta::assert_snapshot!(shown(&prepared));
}

#[test]
fn given_fields_are_kept_and_the_signature_comes_last() {
    let pairs = [
        ("signature", "ff"),
        ("nonce", "7"),
        ("symbol", "BTCUSDT"),
        ("user", "0xme"),
    ];
    let prepared = request("futures.open_orders", Some(Version::V3), &pairs);
    let signer = keys().signer.unwrap().address();
    assert_eq!(
        prepared.query,
        Some(format!(
            "nonce=7&symbol=BTCUSDT&user=0xme&signer={signer}&signature=ff"
        ))
    );
}

#[test]
fn a_missing_key_is_named() {
    let none = Credentials::default();
    let refused = |name: &str, version, pairs: &[(&str, &str)]| {
        let pairs = parameters(pairs);
        prepare(
            named(name).unwrap(),
            Some(version),
            &pairs,
            &dialect(),
            &none,
            STAMP,
        )
        .unwrap_err()
    };
    let route = "futures.new_order";
    assert_eq!(
        refused(route, Version::V1, &[]),
        PrepareError::NoApiKey { route }
    );
    assert_eq!(
        refused(route, Version::V3, &[]),
        PrepareError::NoSigner { route }
    );
    let route = "futures.approve_builder";
    assert_eq!(
        refused(route, Version::V3, &[]),
        PrepareError::NoWallet { route }
    );
    let route = "spot.withdraw";
    let name = "receiver";
    let pairs = [("chainId", "56")];
    assert_eq!(
        refused(route, Version::V3, &pairs),
        PrepareError::NoParameter { route, name }
    );
    let chain_id = 9;
    let pairs = [("chainId", "9")];
    assert_eq!(
        refused(route, Version::V3, &pairs),
        PrepareError::UnknownChain { chain_id }
    );
    let refusal = refused("spot.depth", Version::V1, &[]);
    assert!(
        refusal.to_string().contains("not listed in version v1"),
        "{refusal}"
    );
}

/// Any text, and values that a naive encoder handles wrongly.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,12}",
        Just("a b+c&d=e%41#?/:;,\"{}[]\u{e9}\u{4e2d}\u{1f600}".to_owned()),
        Just(String::new()),
    ]
}

fn signed_routes() -> Vec<(&'static Route, Version)> {
    let rows = all().filter(|route| route.surface != Surface::Rpc);
    let rows = rows.flat_map(|route| route.listings.iter().map(move |row| (route, row)));
    rows.filter(|(_, row)| row.inner.is_none())
        .filter(|(_, row)| {
            matches!(
                row.scheme,
                Scheme::Hmac | Scheme::Message | Scheme::WalletMessage
            )
        })
        .filter_map(|(route, row)| Some((route, row.version?)))
        .collect()
}

/// The names and values that a server decodes from a form.
fn decoded(text: &str) -> Vec<(String, String)> {
    let decode = |text| -> String {
        let bytes = percent_encoding::percent_decode_str(text);
        bytes.decode_utf8().unwrap().into_owned()
    };
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

proptest! {
    #[test]
    fn signed_bytes_are_sent_unchanged(
        route in prop::sample::select(signed_routes()),
        pairs in prop::collection::vec(("[a-zA-Z]{1,8}X", any_value()), 0..6),
    ) {
        let (route, version) = route;
        let keys = keys();
        let sent = parameters(&pairs);
        let prepared = prepare(route, Some(version), &sent, &dialect(), &keys, STAMP).unwrap();
        prop_assert!(prepared.query.is_none() || prepared.body.is_none());
        let text = prepared.query.or(prepared.body).unwrap();
        let (signed, signature) = text.rsplit_once("&signature=").unwrap();
        prop_assert_eq!(Some(signed), prepared.signed.as_deref());
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        // All given parameters come first, unchanged.
        prop_assert_eq!(&decoded(signed)[..pairs.len()], &pairs[..]);

        let scheme = route.listing(Some(version)).unwrap().scheme;
        if scheme == Scheme::Hmac {
            let secret = SecretString::from("the-secret");
            prop_assert!(hmac::verifies(&secret, &[signed.as_bytes()], signature));
        } else {
            let domain = MessageDomain::new(&dialect().brand, Network::Mainnet);
            let key = if scheme == Scheme::Message { keys.signer } else { keys.wallet };
            let signer = signer_of(&domain.digest(signed.as_bytes()), signature);
            prop_assert_eq!(signer, Ok(key.unwrap().address()));
        }
    }
}

#[test]
fn neither_key_nor_signature_shows_in_debug() {
    for version in [Version::V1, Version::V3] {
        let prepared = request("spot.account", Some(version), &[]);
        let path = format!("GET /api/{version}/account");
        assert_eq!(format!("{prepared:?}"), path);
    }
    let shown = format!("{:?}", keys());
    assert!(
        !shown.contains("the-key") && !shown.contains("the-secret"),
        "{shown}"
    );
}
