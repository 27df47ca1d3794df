//! Prepares requests with any parameters and then parses them like a server. The raw bytes have the
//! given parameters in the given order, and the signature covers exactly these bytes.
//!
//! Input: one byte for the route, one for the version, then lines `name=value`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use windvane_protocol::Brand;
use windvane_protocol::route::{self, Kind, Listing, Route, Scheme, Surface};
use windvane_protocol::sign::{
    ApiKey, Credentials, Dialect, MessageDomain, Network, Prepared, SolanaKey, Stamp, Wallet, hmac,
    prepare, signer_of,
};
use windvane_protocol::wire::Parameters;

static DIALECT: LazyLock<Dialect> = LazyLock::new(|| Dialect {
    brand: brand(),
    network: Network::Mainnet,
    recv_window_ms: Some(5000),
});

fn brand() -> Brand {
    let mut brand = Brand::new("svc").expect("a word");
    brand.login_sentence = Some("You are signing into svc".to_owned());
    brand
}

static CREDENTIALS: LazyLock<Credentials> = LazyLock::new(|| {
    let wallet = |byte| Wallet::from_bytes(&[byte; 32]).expect("a key in the curve's order");
    Credentials {
        api_key: Some(ApiKey::new("key", SecretString::from("secret"))),
        user: None,
        signer: Some(wallet(1)),
        wallet: Some(wallet(2)),
        solana: Some(SolanaKey::from_seed(&[3; 32])),
    }
});

const STAMP: Stamp = Stamp {
    timestamp_ms: 1_723_161_256_313,
    nonce_us: 1_723_161_256_313_000,
    inner_nonce_us: 1_723_161_256_313_000,
};

fuzz_target!(|data: &[u8]| {
    let [route_byte, version_byte, lines @ ..] = data else {
        return;
    };
    let Ok(lines) = std::str::from_utf8(lines) else {
        return;
    };
    let routes: Vec<&'static Route> = route::all().collect();
    let route = routes[usize::from(*route_byte) % routes.len()];
    let listing = &route.listings[usize::from(*version_byte) % route.listings.len()];
    let given: Parameters = lines
        .split('\n')
        .filter_map(|line| line.split_once('='))
        .collect();
    let prepared = prepare(
        route,
        listing.version,
        &given,
        &DIALECT,
        &CREDENTIALS,
        STAMP,
    );
    if let Ok(prepared) = prepared {
        if route.surface == Surface::Rpc {
            let body = prepared.body.expect("JSON-RPC has a body");
            serde_json::from_str::<serde_json::Value>(&body).expect("the body is JSON");
        } else {
            verify(route, listing, &given, &prepared);
        }
    }
});

fn verify(route: &Route, listing: &Listing, given: &Parameters, prepared: &Prepared) {
    assert!(prepared.query.is_none() || prepared.body.is_none());
    let Some(raw) = prepared.query.as_deref().or(prepared.body.as_deref()) else {
        assert!(given.iter().all(|(name, _)| name == "signature"));
        return;
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%&=".contains(&byte);
    assert!(raw.bytes().all(is_plain), "{raw}");
    let is_typed = matches!(listing.scheme, Scheme::Typed(_));
    same_parameters((route, is_typed), given, raw);
    if let Some(query) = &prepared.query {
        let url = format!("http://127.0.0.1{}?{query}", prepared.path);
        let url = url::Url::parse(&url).expect("path and query make a URL");
        assert_eq!(
            url.query(),
            Some(query.as_str()),
            "no library changes the signed bytes"
        );
    }
    if given.get("signature").is_none() {
        signature_covers(listing.scheme, raw, prepared);
    }
}

/// The bytes start with the given parameters in their order; lists have no white space. Requests
/// that sign typed data have the order of the signed type, so there only the pairs must be equal.
fn same_parameters((route, is_typed): (&Route, bool), given: &Parameters, raw: &str) {
    let decoded = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .expect("UTF-8")
            .into_owned()
    };
    let mut sent: Vec<(String, String)> = raw
        .split('&')
        .map(|pair| pair.split_once('=').expect("every pair has a ="))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let given: Vec<_> = given
        .iter()
        .filter(|(name, _)| *name != "signature")
        .collect();
    assert!(sent.len() >= given.len());
    if is_typed {
        // The order of parameters of the same name is kept.
        let mut ordered = Vec::new();
        for (name, _) in &given {
            let at = sent.iter().position(|(sent_name, _)| sent_name == name);
            ordered.push(sent.remove(at.expect("each parameter is sent")));
        }
        sent = ordered;
    }
    for ((name, value), (sent_name, sent_value)) in given.iter().zip(&sent) {
        assert_eq!(name, sent_name);
        let is_list = |param: &route::Param| param.kind == Kind::List && param.name == *name;
        if route.params.iter().any(is_list) {
            let solid = |text: &str| text.split_ascii_whitespace().collect::<String>();
            assert_eq!(solid(value), solid(sent_value));
        } else {
            assert_eq!(value, sent_value);
        }
    }
}

fn signature_covers(scheme: Scheme, raw: &str, prepared: &Prepared) {
    let parts = raw.rsplit_once("&signature=");
    let credentials = &*CREDENTIALS;
    let signer = match scheme {
        Scheme::Open | Scheme::ApiKey => return,
        Scheme::Typed(_) => {
            assert!(parts.is_some(), "the signature is the last parameter");
            return;
        }
        Scheme::Hmac => None,
        Scheme::Message => credentials.signer.as_ref(),
        Scheme::WalletMessage => credentials.wallet.as_ref(),
    };
    let (covered, signature) = parts.expect("the signature is the last parameter");
    assert_eq!(prepared.signed.as_deref(), Some(covered));
    if let Some(signer) = signer {
        let domain = MessageDomain::new(&DIALECT.brand, DIALECT.network);
        let found = signer_of(&domain.digest(covered.as_bytes()), signature);
        assert_eq!(found, Ok(signer.address()));
    } else {
        let key = credentials.api_key.as_ref().expect("set above");
        assert!(hmac::verifies(
            &key.secret,
            &[covered.as_bytes()],
            signature
        ));
    }
}
