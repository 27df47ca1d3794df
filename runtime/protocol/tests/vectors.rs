//! Signatures from other sources with public, worthless keys: published HMAC examples of similar
//! services, and EIP-712 values of an independent library. The signing functions and complete
//! prepared requests must reproduce each of them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use secrecy::SecretString;
use windvane_protocol::Brand;
use windvane_protocol::route::{Version, named};
use windvane_protocol::sign::{
    ApiKey, Credentials, Dialect, MessageDomain, Network, Prepared, Stamp, Wallet, hmac, prepare,
    signer_of, typed,
};
use windvane_protocol::wire::Parameters;

const AGENT_KEY: &str = "0x4fd0a42218f3eae43a6ce26d22544e986139a01e5b34a62db53757ffca81bae1";
const AGENT: &str = "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0";
const MAIN_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const MAIN: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

fn wallet(key: &str) -> Wallet {
    Wallet::from_hex(&SecretString::from(key)).unwrap()
}

fn brand() -> Brand {
    Brand::new("svc").unwrap()
}

fn dialect() -> Dialect {
    Dialect {
        brand: brand(),
        network: Network::Mainnet,
        recv_window_ms: Some(5000),
    }
}

fn parameters(pairs: &[(&str, &str)]) -> Parameters {
    let mut parameters = Parameters::new();
    for (name, value) in pairs {
        parameters.push(*name, *value);
    }
    parameters
}

fn both_wallets() -> Credentials {
    Credentials {
        signer: Some(wallet(AGENT_KEY)),
        wallet: Some(wallet(MAIN_KEY)),
        ..Credentials::default()
    }
}

fn v1_order(secret: &str, timestamp_ms: i64, order: &[(&str, &str)]) -> Prepared {
    let credentials = Credentials {
        api_key: Some(ApiKey::new("key", SecretString::from(secret))),
        ..Credentials::default()
    };
    let stamp = Stamp {
        timestamp_ms,
        nonce_us: 0,
        inner_nonce_us: 0,
    };
    let route = named("futures.new_order").unwrap();
    let version = Some(Version::V1);
    prepare(
        route,
        version,
        &parameters(order),
        &dialect(),
        &credentials,
        stamp,
    )
    .unwrap()
}

#[test]
fn hmac_1_limit_order_of_2020() {
    let secret = "2b5eb11e18796d12d88f13dc27dbbd02c2cc51ff7059765ed9821957d82bb4d9";
    let text = "symbol=BTCUSDT&side=BUY&type=LIMIT&quantity=1&price=9000&timeInForce=GTC\
                &recvWindow=5000&timestamp=1591702613943";
    let signature = "3c661234138461fcc7a7d8746c6558c9842d4e10870d2ecbedf7777cad694af9";
    let key = SecretString::from(secret);
    assert_eq!(hmac::hex_hmac(&key, &[text.as_bytes()]), signature);
    // The same text, half of it in the query and half in the body.
    let (query, body) = text.split_at(text.find("&quantity").unwrap());
    let mixed = [query.as_bytes(), body.as_bytes()];
    assert!(hmac::verifies(&key, &mixed, &signature.to_uppercase()));

    let order = [
        ("symbol", "BTCUSDT"),
        ("side", "BUY"),
        ("type", "LIMIT"),
        ("quantity", "1"),
        ("price", "9000"),
        ("timeInForce", "GTC"),
    ];
    let prepared = v1_order(secret, 1_591_702_613_943, &order);
    assert_eq!(prepared.signed.as_deref(), Some(text));
    assert_eq!(prepared.body, Some(format!("{text}&signature={signature}")));
    assert_eq!(prepared.query, None);
}

#[test]
fn hmac_2_limit_order_of_2025() {
    let secret = "fdde510a2b71fa43a43bff3e3cf7819c8c66df34633d338050f4f59664b3b313";
    let text = "symbol=BNBUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=5&price=1.1\
                &recvWindow=5000&timestamp=1756187806000";
    let signature = "e09169bf6c02ec4b29fa1bdc3a967f92c8c6cfcde0551ba1d477b2d3cf4c51b0";
    assert_eq!(
        hmac::hex_hmac(&SecretString::from(secret), &[text.as_bytes()]),
        signature
    );
    let order = [
        ("symbol", "BNBUSDT"),
        ("side", "BUY"),
        ("type", "LIMIT"),
        ("timeInForce", "GTC"),
        ("quantity", "5"),
        ("price", "1.1"),
    ];
    let prepared = v1_order(secret, 1_756_187_806_000, &order);
    assert_eq!(prepared.body, Some(format!("{text}&signature={signature}")));
}

#[test]
fn eip712_1_message_of_an_order_by_the_agent() {
    let msg = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=60000.1\
               &newClientOrderId=mm%3A1&nonce=1748310859508867\
               &user=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\
               &signer=0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0";
    let signature = "2eb4eb686861402778e538af123150a965dbe3460533870d3ca1c586079ed3c67c882f1a6351\
                     e8b2b1bde9fe045fa4f248cf7ba38478296a3d57740f43ed2a131b";
    let digest = MessageDomain::new(&brand(), Network::Mainnet).digest(msg.as_bytes());
    assert_eq!(
        hex::encode(digest),
        "4c114fc762d849b5d62ed4d1deebb8061ae1478fd914f99b9db1efa35ec186f9"
    );
    assert_eq!(wallet(AGENT_KEY).sign(&digest), signature);
    assert_eq!(signer_of(&digest, signature).unwrap().to_string(), AGENT);

    let order = parameters(&[
        ("symbol", "BTCUSDT"),
        ("side", "BUY"),
        ("type", "LIMIT"),
        ("timeInForce", "GTC"),
        ("quantity", "0.01"),
        ("price", "60000.1"),
        ("newClientOrderId", "mm:1"),
    ]);
    let stamp = Stamp {
        timestamp_ms: 0,
        nonce_us: 1_748_310_859_508_867,
        inner_nonce_us: 1_748_310_859_508_867,
    };
    let route = named("futures.new_order").unwrap();
    let version = Some(Version::V3);
    let prepared = prepare(route, version, &order, &dialect(), &both_wallets(), stamp).unwrap();
    assert_eq!(prepared.body, Some(format!("{msg}&signature={signature}")));
    assert_eq!(prepared.signed.as_deref(), Some(msg));
}

#[test]
fn eip712_2_message_in_the_test_environment() {
    let msg = "nonce=1&signer=0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0";
    let signature = "ba4845a4c92cb1d01ac19d46f26d14274f1005f56aec9fc2df6b76ffec07634c5f8cbf963c7a\
                     8844fc3ee59d36c8d0154fd40994380ffeec147de8bd823c70be1c";
    let digest = MessageDomain::new(&brand(), Network::Testnet).digest(msg.as_bytes());
    assert_eq!(wallet(AGENT_KEY).sign(&digest), signature);

    let credentials = Credentials {
        signer: Some(wallet(AGENT_KEY)),
        ..Credentials::default()
    };
    let dialect = Dialect {
        network: Network::Testnet,
        ..dialect()
    };
    let stamp = Stamp {
        timestamp_ms: 0,
        nonce_us: 1,
        inner_nonce_us: 1,
    };
    let route = named("spot.account").unwrap();
    let none = Parameters::new();
    let prepared = prepare(
        route,
        Some(Version::V3),
        &none,
        &dialect,
        &credentials,
        stamp,
    )
    .unwrap();
    assert_eq!(prepared.query, Some(format!("{msg}&signature={signature}")));
}

#[test]
fn eip712_3_approval_of_an_agent() {
    let approval = parameters(&[
        ("agentName", "bot1"),
        ("agentAddress", AGENT),
        ("ipWhitelist", ""),
        ("expired", "1967945395040"),
        ("canSpotTrade", "true"),
        ("canPerpTrade", "true"),
        ("canWithdraw", "false"),
    ]);
    let signature = "9cbc743e16eff9eb3358a4164ddd721590cf151e2dde1f1f041075ff4bcdae8e7bd52e6b1463\
                     b949d99df795043c7b5db515b1bdb0903ed54c1cfd299fd0b7891b";
    let route = named("futures.approve_agent").unwrap();
    let mut sent = approval.clone();
    sent.push("svcChain", "Mainnet");
    sent.push("user", MAIN);
    sent.push("nonce", "1748310859508867");
    let data = typed::management(&brand(), route, "ApproveAgent", sent.iter(), 56).unwrap();
    assert_eq!(
        hex::encode(data.digest()),
        "c5ccb2bbdc54d0d900095c6f962bb78dbe02202adeeced31645c3895bf9317bd"
    );
    assert_eq!(wallet(MAIN_KEY).sign(&data.digest()), signature);

    let stamp = Stamp {
        timestamp_ms: 0,
        nonce_us: 1_748_310_859_508_867,
        inner_nonce_us: 1_748_310_859_508_867,
    };
    let version = Some(Version::V3);
    let prepared = prepare(
        route,
        version,
        &approval,
        &dialect(),
        &both_wallets(),
        stamp,
    )
    .unwrap();
    let body = prepared.body.unwrap();
    assert!(body.ends_with(&format!("&signature={signature}")), "{body}");
    assert_eq!(prepared.signed.as_deref(), Some(data.json()));
}

#[test]
fn eip712_4_withdrawal_action() {
    let withdrawal = typed::Withdrawal {
        destination: MAIN,
        chain: "BSC",
        token: "USDT",
        amount: "31",
        fee: "0.3",
        nonce: "1761210000000000",
    };
    let data = typed::withdrawal_action(&brand(), Network::Mainnet, 56, &withdrawal).unwrap();
    assert_eq!(
        hex::encode(data.digest()),
        "e316e8d60e561e16c143eca9514275892a3be9abf57e98f8526799d705540cc4"
    );
    let signature = "8d838c83fc4345a4308140c9a229cf52b5c80fdfc34d098265c4eda95bae97302cdb3e35ce91\
                     e72d0e95da3e0189b131f254a36d0b0c32b8a50e4a836f1248f71c";
    assert_eq!(wallet(MAIN_KEY).sign(&data.digest()), signature);

    let request = parameters(&[
        ("chainId", "56"),
        ("asset", "USDT"),
        ("amount", "31"),
        ("fee", "0.3"),
        ("receiver", MAIN),
    ]);
    let credentials = Credentials {
        api_key: Some(ApiKey::new("key", SecretString::from("secret"))),
        ..both_wallets()
    };
    let stamp = Stamp {
        timestamp_ms: 1_761_210_000_000,
        nonce_us: 1_761_210_000_000_000,
        inner_nonce_us: 1_761_210_000_000_000,
    };
    let route = named("spot.withdraw").unwrap();
    for (version, nonce) in [(Version::V1, "&nonce="), (Version::V3, "&userNonce=")] {
        let dialect = dialect();
        let prepared = prepare(
            route,
            Some(version),
            &request,
            &dialect,
            &credentials,
            stamp,
        );
        let body = prepared.unwrap().body.unwrap();
        let inner = format!("{nonce}1761210000000000&userSignature={signature}&");
        assert!(body.contains(&inner), "{body}");
    }
}
