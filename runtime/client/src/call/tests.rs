//! Tests arguments as people write them, and dry runs of every route.

use proptest::prelude::*;
use secrecy::SecretString;
use windvane_protocol::route::Kind;
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, SolanaKey, Wallet};

use windvane_protocol::Brand;

use super::*;
use crate::settings::Addresses;

/// A worthless public test key.
const MAIN: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
pub(super) const ADDRESS: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

const SOLANA: &str = "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV";

fn brand() -> Brand {
    let mut brand = Brand::new("svc").unwrap();
    brand.login_sentence = Some("You are signing into Svc".to_owned());
    brand
}

pub(super) fn parse(name: &str, arguments: &[&str]) -> Result<Call, CallError> {
    Call::parse(name, arguments, &settings(), &Options::default())
}

pub(super) fn refusal(name: &str, arguments: &[&str]) -> String {
    parse(name, arguments).unwrap_err().to_string()
}

fn client() -> Client {
    Client::new(settings()).unwrap()
}

pub(super) fn settings() -> Settings {
    let mut addresses = Addresses::default();
    for surface in Surface::ALL {
        addresses = addresses.rest(surface, "http://127.0.0.1:9").unwrap();
    }
    let key = Wallet::from_hex(&SecretString::from(MAIN)).unwrap();
    let credentials = Credentials {
        api_key: Some(ApiKey::new("key", SecretString::from("secret"))),
        user: None,
        signer: Some(key.clone()),
        wallet: Some(key),
        solana: Some(SolanaKey::from_seed(&[7; 32])),
    };
    let dialect = Dialect {
        brand: brand(),
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    Settings::new(addresses, dialect, credentials)
}

/// A valid value of a parameter.
fn sample(param: &route::Param) -> String {
    let text = match (param.kind, param.bounds) {
        (_, route::Bounds::Values(values)) => return values[0].to_string(),
        (_, route::Bounds::Range(low, _)) => return low.to_owned(),
        (_, route::Bounds::Length(low, _)) => return "x".repeat(low.max(1)),
        (_, route::Bounds::ClientOrderId) => "mm:1",
        (_, route::Bounds::SolanaAddress) => SOLANA,
        (Kind::Enum(names), _) => names[0],
        (Kind::Long | Kind::Int, _) => "56",
        (Kind::Boolean, _) if param.name == "closePosition" => "false",
        (Kind::Boolean, _) => "true",
        (Kind::List, _) => match param.name {
            "batchOrders" => {
                r#"[{"symbol": "A", "side": "BUY", "type": "MARKET", "quantity": "1"}]"#
            }
            "orderIdList" => "[1, 2]",
            _ => r#"["a", "b"]"#,
        },
        (Kind::Address, _) => ADDRESS,
        (Kind::String, _) if param.name.to_lowercase().ends_with("nonce") => "56",
        (Kind::Decimal | Kind::String, _) => "0.5",
    };
    text.to_owned()
}

#[test]
fn every_route_has_a_dry_run_in_every_api() {
    let client = client();
    for route in route::all() {
        for api in [Api::V1, Api::V3] {
            if arguments::version(route, api).is_err() {
                continue;
            }
            let options = Options {
                api: Some(api),
                timestamp_ms: Some(1_591_702_613_943),
                nonce_us: Some(1_748_310_859_508_867),
                ..Options::default()
            };
            let version = arguments::version(route, api).unwrap();
            let arguments: Vec<_> = route
                .params
                .iter()
                .filter(|param| param.only.is_none() || param.only == version)
                .filter(|param| !param.name.ends_with("ignature") && param.name != "timestamp")
                .map(|param| format!("{}={}", param.name, sample(param)))
                .collect();
            let call = Call::parse(route.name, &arguments, &settings(), &options);
            let call = call.unwrap_or_else(|error| panic!("{}: {error}", route.name));
            let dry = call.dry_run(&client);
            let dry = dry.unwrap_or_else(|error| panic!("{}: {error}", route.name));
            assert_eq!(dry.method, route.method.as_str());
            let path = brand().fill(route.listing(call.version()).unwrap().path);
            assert!(
                dry.url.starts_with(&format!("http://127.0.0.1:9{path}")),
                "{}",
                dry.url
            );
            assert_eq!(call.dry_run(&client).unwrap(), dry, "{}", route.name);
        }
    }
}

#[test]
fn no_secret_shows_in_debug_or_in_refusals() {
    let client = client();
    let shown = format!("{:?} {client:?}", settings());
    let digits = MAIN.trim_start_matches("0x");
    assert!(
        !shown.contains(digits) && !shown.contains("\"secret\""),
        "{shown}"
    );
    let seed = "0707070707";
    assert!(
        !shown.contains(seed) && !shown.contains("[7, 7, 7"),
        "{shown}"
    );
}

#[test]
fn debug_output_of_responses_and_dry_runs_has_no_secret() {
    let dry = parse("spot.account", &[])
        .unwrap()
        .dry_run(&client())
        .unwrap();
    assert_eq!(format!("{dry:?}"), "GET http://127.0.0.1:9/api/v1/account");
    let raw = RawAnswer {
        status: 200,
        headers: http::HeaderMap::new(),
        text: r#"{"apiKey":"k","apiSecret":"s"}"#.to_owned(),
    };
    assert_eq!(format!("{raw:?}"), "HTTP 200, 30 bytes");
}

#[test]
fn a_dry_run_is_the_published_hmac_example() {
    let client = {
        let secret = "2b5eb11e18796d12d88f13dc27dbbd02c2cc51ff7059765ed9821957d82bb4d9";
        let mut settings = settings();
        settings.credentials.api_key = Some(ApiKey::new("key", SecretString::from(secret)));
        Client::new(settings).unwrap()
    };
    let arguments = [
        "symbol=BTCUSDT",
        "side=BUY",
        "type=LIMIT",
        "quantity=1",
        "price=9000",
        "timeInForce=GTC",
        "recvWindow=5000",
    ];
    let options = Options {
        surface: Some(Surface::Futures),
        timestamp_ms: Some(1_591_702_613_943),
        ..Options::default()
    };
    let call = Call::parse("new_order", &arguments, &settings(), &options).unwrap();
    let dry = call.dry_run(&client).unwrap();
    assert_eq!(dry.url, "http://127.0.0.1:9/fapi/v1/order");
    assert_eq!(dry.headers["X-MBX-APIKEY"], "key");
    let signature = "3c661234138461fcc7a7d8746c6558c9842d4e10870d2ecbedf7777cad694af9";
    let body = dry.body.unwrap();
    assert_eq!(body.split_once("&signature=").unwrap().1, signature);
    assert_eq!(
        dry.signed_string.unwrap(),
        body.split_once("&signature=").unwrap().0
    );
}

#[test]
fn a_route_name_may_be_full_or_unambiguously_short() {
    assert_eq!(
        parse("withdraw_info", &[]).unwrap().route().name,
        "chain.withdraw_info"
    );
    for name in ["svc_getBalance", "getBalance", "{rpc}getBalance"] {
        let address = format!("address={ADDRESS}");
        let call = parse(name, &[&address, "blockTag=latest"]).unwrap();
        assert_eq!(call.route().name, "{rpc}getBalance");
    }
    assert_eq!(
        refusal("ping", &[]),
        "ping is a route of spot and of futures: write it in full or give --surface"
    );
    assert_eq!(
        refusal("spot.nwe_order", &[]),
        "no route spot.nwe_order; did you mean spot.new_order? `windvane routes` prints them all"
    );
    let options = Options {
        surface: Some(Surface::Chain),
        ..Options::default()
    };
    let refused = Call::parse("spot.ping", &[] as &[&str], &settings(), &options);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "--surface chain: spot.ping is not a route of it; omit --surface or choose another"
    );
}

#[test]
fn refusals_name_field_value_and_rule() {
    for (arguments, text) in [
        (
            &["symbol=BTCUSDT", "limit=0"][..],
            "limit = \"0\" must be an integer from 1 to 1000",
        ),
        (
            &["symbol=BTCUSDT", "limit=many"],
            "limit = \"many\" must be an integer from 1 to 1000",
        ),
        (
            &["symbol=BTCUSDT", "limit=+5"],
            "limit = \"+5\" must be an integer from 1 to 1000",
        ),
        (
            &["limit=5"],
            "spot.trades requires symbol: give symbol=VALUE (a text)",
        ),
        (&["symbol="], "symbol = \"\" must be a text"),
        (
            &["symbol"],
            "argument \"symbol\" must be NAME=VALUE: put the name before it",
        ),
        (
            &["symbol=A", "symbol=B"],
            "symbol is given twice: give it once",
        ),
    ] {
        assert_eq!(refusal("spot.trades", arguments), text);
    }
    assert_eq!(
        refusal("spot.query_order", &["symbol=BTCUSDT"]),
        "spot.query_order requires orderId or origClientOrderId: give one of them"
    );
    assert_eq!(
        refusal("spot.ping", &["a=1"]),
        "spot.ping takes no parameters: leave out a"
    );
    assert_eq!(
        refusal(
            "futures.countdown_cancel_all",
            &["symbol=A", "countdowntime=5"]
        ),
        "futures.countdown_cancel_all has no parameter countdowntime; did you mean countdownTime?"
    );
    let order = ["symbol=A", "side=BUY", "type=LIMIT", "price=1e3"];
    assert_eq!(
        refusal("spot.new_order", &order),
        "price = \"1e3\" must be a decimal without exponent of 0 or more"
    );
}

#[test]
fn amounts_of_withdrawals_and_fee_rates_are_plain_decimals() {
    let evm = ["chainId=56", "asset=USDT"];
    let receiver = format!("receiver={ADDRESS}");
    let withdraw = |name: &str, amount: &str, fee: &str, receiver: &str| {
        let (amount, fee) = (format!("amount={amount}"), format!("fee={fee}"));
        let options = Options {
            api: Some(Api::V3),
            ..Options::default()
        };
        let arguments = [evm[0], evm[1], &amount, &fee, receiver];
        Call::parse(name, &arguments, &settings(), &options).map_err(|error| error.to_string())
    };
    let above = "must be a decimal without exponent greater than 0";
    let fee_rule = "must be a decimal without exponent of 0 or more";
    let solana = format!("receiver={SOLANA}");
    for (name, receiver) in [
        ("spot.withdraw", &receiver),
        ("chain.perp_withdraw", &receiver),
        ("chain.spot_withdraw", &receiver),
        ("chain.perp_solana_withdraw", &solana),
        ("chain.spot_solana_withdraw", &solana),
    ] {
        assert!(withdraw(name, "1.5", "0", receiver).is_ok(), "{name}");
        for bad in ["1e1", "abc", "0", "-1", ""] {
            assert_eq!(
                withdraw(name, bad, "0", receiver).unwrap_err(),
                format!("amount = {bad:?} {above}"),
                "{name}"
            );
        }
        for bad in ["abc", "-3", "1e-3"] {
            assert_eq!(
                withdraw(name, "1", bad, receiver).unwrap_err(),
                format!("fee = {bad:?} {fee_rule}"),
                "{name}"
            );
        }
    }
    assert_eq!(
        withdraw("chain.perp_solana_withdraw", "1", "0", &receiver).unwrap_err(),
        format!("receiver = {ADDRESS:?} must be a Solana address: 32 bytes in base58")
    );
    let builder = format!("builder={ADDRESS}");
    assert_eq!(
        refusal("futures.update_builder", &[&builder, "maxFeeRate=1e-3"]),
        format!("maxFeeRate = \"1e-3\" {fee_rule}")
    );
}

#[test]
fn a_parameter_of_another_version_names_that_version() {
    let builder = format!("builder={ADDRESS}");
    assert_eq!(
        refusal("futures.new_order", &["symbol=A", &builder]),
        "futures.new_order has builder only in v3: give --api v3"
    );
}

#[test]
fn authentication_fields_may_be_given_in_their_version() {
    assert!(parse("spot.account", &["recvWindow=3000", "timestamp=5"]).is_ok());
    assert_eq!(
        refusal("spot.account", &["recvWindow=60001"]),
        "recvWindow = \"60001\" must be an integer from 0 to 60000"
    );
    let options = Options {
        api: Some(Api::V3),
        ..Options::default()
    };
    let refused = Call::parse("spot.account", &["recvWindow=3000"], &settings(), &options);
    assert!(refused.is_err());
    let nonce = Call::parse("spot.account", &["nonce=3000"], &settings(), &options).unwrap();
    let dry = nonce.dry_run(&client()).unwrap();
    assert!(dry.url.contains("nonce=3000&user=0x"), "{}", dry.url);
}

#[test]
fn routes_that_move_money_or_grant_rights_need_confirmation() {
    let asks: Vec<_> = route::all()
        .filter(|route| {
            let call = Call {
                route,
                version: None,
                parameters: Parameters::new(),
                options: Options::default(),
            };
            call.confirmation().is_some()
        })
        .map(|route| route.name)
        .collect();
    assert_eq!(
        asks,
        [
            "spot.wallet_transfer",
            "spot.send_to_address",
            "spot.withdraw",
            "spot.create_api_key",
            "futures.wallet_transfer",
            "futures.approve_agent",
            "futures.update_agent",
            "futures.approve_builder",
            "futures.update_builder",
            "chain.transfer",
            "chain.perp_withdraw",
            "chain.perp_solana_withdraw",
            "chain.perp_wallet_transfer",
            "chain.spot_withdraw",
            "chain.spot_solana_withdraw",
            "chain.spot_wallet_transfer",
        ]
    );
}

#[test]
fn the_venue_time_is_needed_only_without_a_given_time() {
    let needs = |name: &str, api: Api, arguments: &[&str], options: Options| {
        let options = Options {
            api: Some(api),
            ..options
        };
        let call = Call::parse(name, arguments, &settings(), &options).unwrap();
        call.needs_time()
    };
    let none = Options::default();
    assert!(needs("spot.account", Api::V1, &[], none));
    assert!(needs("spot.account", Api::V1, &["recvWindow=50"], none));
    assert!(!needs("spot.account", Api::V1, &["timestamp=5"], none));
    assert!(needs("spot.account", Api::V3, &[], none));
    assert!(!needs("spot.account", Api::V3, &["nonce=5"], none));
    let stamped = Options {
        timestamp_ms: Some(5),
        ..none
    };
    assert!(!needs("spot.account", Api::V1, &[], stamped));
    assert!(needs("spot.account", Api::V3, &[], stamped));
    let numbered = Options {
        nonce_us: Some(5),
        ..none
    };
    assert!(!needs("spot.account", Api::V3, &[], numbered));
    assert!(needs("spot.account", Api::V1, &[], numbered));
    assert!(!needs("spot.ping", Api::V3, &[], none));
    assert!(!needs("spot.create_listen_key", Api::V1, &[], none));
    // A v3 withdrawal has two nonces; a v1 withdrawal has a nonce and a timestamp.
    let receiver = format!("receiver={ADDRESS}");
    let withdrawal = ["chainId=56", "asset=USDT", "amount=5", "fee=1", &receiver];
    let with = |more: &'static [&str]| withdrawal.iter().chain(more).copied().collect::<Vec<_>>();
    assert!(needs("spot.withdraw", Api::V3, &with(&["nonce=5"]), none));
    let both = with(&["nonce=5", "userNonce=6"]);
    assert!(!needs("spot.withdraw", Api::V3, &both, none));
    assert!(needs("spot.withdraw", Api::V1, &with(&["nonce=5"]), none));
    let both = with(&["nonce=5", "timestamp=6"]);
    assert!(!needs("spot.withdraw", Api::V1, &both, none));
}

#[test]
fn an_unlisted_signing_version_is_refused() {
    let version = |name: &str, api: Api| {
        let found = arguments::version(route::named(name).unwrap(), api);
        found.map_err(|error| error.to_string())
    };
    assert_eq!(
        version("spot.send_to_address", Api::V3),
        Err(
            "spot.send_to_address is not listed in v3: leave out --api v3 or give --api v1, \
             which sends v1"
                .to_owned()
        )
    );
    assert!(version("futures.remaining_openable_notional", Api::V3).is_err());
    assert_eq!(version("chain.transfer", Api::V1), Ok(Some(Version::V3)));
    assert_eq!(version("spot.account", Api::V3), Ok(Some(Version::V3)));
    // Market data is sent in the version that exists; JSON-RPC has no version.
    assert_eq!(version("futures.depth", Api::V3), Ok(Some(Version::V1)));
    assert_eq!(version("spot.depth", Api::V1), Ok(Some(Version::V3)));
    assert_eq!(version("{rpc}getBalance", Api::V3), Ok(None));
    assert_eq!(version("futures.account", Api::V1), Ok(Some(Version::V4)));
    assert_eq!(version("futures.balance", Api::V1), Ok(Some(Version::V2)));
}

#[test]
fn the_two_nonces_of_a_withdrawal_differ_and_rise() {
    let receiver = format!("receiver={ADDRESS}");
    let withdrawal = ["chainId=56", "asset=USDT", "amount=5", "fee=1", &receiver];
    let call = parse("chain.perp_withdraw", &withdrawal).unwrap();
    let client = client();
    let mut last = 0;
    for _ in 0..3 {
        let body = call.dry_run(&client).unwrap().body.unwrap();
        for name in ["userNonce=", "nonce="] {
            let mut pairs = body.split('&');
            let nonce = pairs.find_map(|pair| pair.strip_prefix(name));
            let nonce: u64 = nonce.unwrap().parse().unwrap();
            assert!(nonce > last, "{name} {body}");
            last = nonce;
        }
    }
}

#[test]
fn an_api_key_is_not_signed_with_a_made_up_nonce() {
    let arguments = ["userOperationType=CREATE_API_KEY", "desc=bot"];
    let call = parse("spot.create_api_key", &arguments).unwrap();
    assert_eq!(call.dry_run(&client()), Err(CallError::VenueNonce));
}

proptest! {
    #[test]
    fn no_argument_causes_a_panic(
        at in 0_usize..200, given in proptest::collection::vec("[a-zA-Z]{0,12}=?.{0,20}", 0..4),
        named in proptest::collection::vec((0_usize..12, ".{0,30}"), 0..8), v3 in any::<bool>(),
    ) {
        let routes: Vec<_> = route::all().collect();
        let route = routes[at % routes.len()];
        let own = named.iter().filter_map(|(at, value)| {
            Some(format!("{}={value}", route.params.get(*at)?.name))
        });
        let arguments: Vec<String> = given.into_iter().chain(own).collect();
        let options = Options {
            api: Some(if v3 { Api::V3 } else { Api::V1 }),
            ..Options::default()
        };
        if let Ok(call) = Call::parse(route.name, &arguments, &settings(), &options) {
            // An accepted call is either sent byte for byte or refused.
            let dry = call.dry_run(&client());
            if let Ok(dry) = dry {
                prop_assert!(dry.url.is_ascii());
            }
        }
    }
}
