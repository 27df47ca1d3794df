//! Which configurations are accepted or refused, and the error messages that the user sees.

use super::*;
use windvane_model::decimal::Decimal;
use windvane_model::order::Surface;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, "c.toml", &Overrides::default())
}

fn refusal(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn with_set(text: &str, set: &[&str]) -> Result<Config, ConfigError> {
    let set = set.iter().map(|&argument| argument.to_owned()).collect();
    Config::parse(
        text,
        "c.toml",
        &Overrides {
            env: Vec::new(),
            set,
        },
    )
}

fn with_env(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let env = env.iter().map(own).collect();
    Config::parse(
        text,
        "c.toml",
        &Overrides {
            env,
            set: Vec::new(),
        },
    )
}

const STRATEGY: &str = r#"
[[strategy]]
id = "mm-btc"
module = "strategies/market_maker"
instruments = ["futures:BTCUSDT"]
streams = ["trade", "book", "bar:1m"]
params = { qty = "0.01", half_spread_ticks = 5 }
limits = { fuel_per_event = 2000000, memory_mb = 64, callback_ms = 50, cpu_percent = 25, max_position_notional = "20000" }
on_fault = "flatten"
"#;

#[test]
fn an_empty_file_is_a_configuration() {
    let config = parse("").unwrap();
    assert!(config.strategies.is_empty());
    assert_eq!(config.sim.seed, 1);
    assert_eq!(
        config.sim.latency,
        Latency::Constant {
            feed_ns: 1_000_000,
            order_ns: 5_000_000
        }
    );
}

#[test]
fn every_key_of_the_reference_is_known() {
    let config = parse(include_str!("../../../configs/reference.toml")).unwrap();
    assert_eq!(config.run.on_stop, Leave::Cancel);
    assert_eq!(
        config.venue.spot.rest.as_deref(),
        Some("http://127.0.0.1:18080")
    );
    assert_eq!(config.venue.futures.api, Some(Api::V3));
    assert_eq!(
        config.account.api_key,
        Some(Secret::Env("WINDVANE_API_KEY".to_owned()))
    );
    assert!(matches!(
        config.account.wallet,
        Some(KeySource::Keystore { .. })
    ));
    assert_eq!(config.risk.price_collar, Some(Decimal::new(5, 2)));
    assert_eq!(
        config.strategies[0].instruments[0].surface,
        Surface::Futures
    );
    assert_eq!(
        config.strategies[0].limits.max_position_notional,
        Some(Decimal::from(20_000))
    );
    assert_eq!(config.sim.queue, Queue::RiskAverse);
}

#[test]
fn the_reference_lists_every_name_with_its_default() {
    let config = parse(include_str!("../../../configs/reference.toml")).unwrap();
    let names = &config.venue.names;
    let given = [
        &names.signing_domain,
        &names.withdrawal_domain,
        &names.withdrawal_field,
        &names.chain_parameter,
        &names.path_segment,
        &names.rpc_prefix,
        &names.login_sentence,
    ];
    assert!(given.iter().all(|name| name.is_some()), "{names:?}");
    let mut derived = parse("[venue]\nbrand = \"svc\"")
        .unwrap()
        .venue
        .brand()
        .unwrap();
    derived.login_sentence = Some("Sign in:".to_owned());
    assert_eq!(config.venue.brand().unwrap(), derived);
}

#[test]
fn the_reference_has_the_defaults_of_profile_chains_and_limits() {
    let config = parse(include_str!("../../../configs/reference.toml")).unwrap();
    let usual = Venue::default();
    assert_eq!(config.venue.profile, usual.profile);
    assert_eq!(config.venue.signing_chain, usual.signing_chain);
    assert_eq!(config.venue.limits, usual.limits);
    assert_eq!(config.venue.futures.user_ws, config.venue.futures.ws);
}

#[test]
fn the_configurations_of_aster_take_everything_from_the_profile() {
    let paper = parse(include_str!("../../../configs/paper-aster.toml")).unwrap();
    let live = parse(include_str!("../../../configs/live-aster.toml")).unwrap();
    for config in [&paper, &live] {
        assert_eq!(config.venue.profile, Profile::Aster);
        assert_eq!(config.venue.overridden().unwrap(), [""; 0]);
    }
    assert_eq!(paper.run.mode, Mode::Paper);
    assert_eq!(paper.account, Account::default(), "paper needs no key");
    assert_eq!(live.run.mode, Mode::Live);
    assert_eq!(live.venue.api, Api::V3);
    assert_ne!(live.run.data_dir, paper.run.data_dir);
    let account = &live.account;
    assert!(account.signer.is_some() && account.user.is_some());
    assert_eq!(account.wallet, None, "the main wallet's key is not needed");
    let risk = &live.risk;
    let small = [risk.max_order_notional, risk.max_position_notional];
    for limit in small {
        assert!(limit.is_some_and(|limit| limit <= Decimal::from(500)));
    }
    assert!(risk.max_open_orders.is_some() && risk.max_orders_per_minute.is_some());
    assert!(risk.price_collar.is_some() && risk.max_drawdown.is_some());
    assert!(
        risk.max_daily_loss
            .is_some_and(|loss| loss <= Decimal::from(50))
    );
    assert_eq!(risk.on_liquidation, OnLiquidation::Halt);
}

#[test]
fn names_are_derived_from_the_brand_unless_they_are_given() {
    let text = "[venue]\nbrand = \"acme\"\n[venue.names]\npath_segment = \"ac\"\n\
                login_sentence = \"Sign in: \"";
    let brand = parse(text).unwrap().venue.brand().unwrap();
    assert_eq!(brand.signing_domain, "AcmeSignTransaction");
    assert_eq!(brand.fill("/{brand}-chain"), "/ac-chain");
    assert_eq!(brand.login_sentence.as_deref(), Some("Sign in:"));
    assert!(
        parse("[venue]\nbrand = \"a b\"")
            .unwrap()
            .venue
            .brand()
            .is_err()
    );
}

#[test]
fn a_strategy_is_read_with_its_parameters() {
    let config = parse(STRATEGY).unwrap();
    let strategy = &config.strategies[0];
    assert_eq!(strategy.id.as_str(), "mm-btc");
    assert_eq!(
        strategy.streams,
        [
            Stream::Trade,
            Stream::Book,
            Stream::Bar {
                interval_ms: 60_000
            }
        ]
    );
    assert_eq!(
        strategy.params.to_string(),
        r#"{"half_spread_ticks":5,"qty":"0.01"}"#
    );
    assert_eq!(strategy.on_fault, Leave::Flatten);
    assert_eq!(strategy.capabilities, None);
    assert_eq!(
        strategy.limits.risk().max_position_notional,
        Some(Decimal::from(20_000))
    );
}

#[test]
fn an_unknown_key_error_names_its_line_and_the_nearest_key() {
    let cases = [
        (
            "[sim]\nseed = 1\nmaintenance = 3\n",
            "c.toml line 3: unknown key `sim.maintenance`; the nearest known key is \
             `sim.maintenance_rate`",
        ),
        (
            "\n[bactest]\ndata = []\n",
            "c.toml line 2: unknown key `bactest`; the nearest known key is `backtest`",
        ),
        (
            "[sim]\nfees = { maker = 0.1, takr = 0.2 }\n",
            "c.toml line 2: unknown key `sim.fees.takr`; the nearest known key is `sim.fees.taker`",
        ),
        (
            "[venue]\nspot.rst = \"http://127.0.0.1:1\"\n",
            "c.toml line 2: unknown key `venue.spot.rst`; the nearest known key is \
             `venue.spot.rest`",
        ),
        (
            "[[strategy]]\nid = \"a\"\nmodul = \"x\"\n",
            "c.toml line 3: unknown key `strategy.0.modul`; the nearest known key is \
             `strategy.0.module`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn a_bad_value_is_refused_with_line_key_value_and_rule() {
    let cases = [
        (
            "[sim]\nseed = -1",
            "line 2: `sim.seed` = -1: must be a whole number, 0 or more",
        ),
        (
            "[sim]\nseed = \"x\"",
            "line 2: `sim.seed` = \"x\": must be a whole number",
        ),
        (
            "[sim]\nleverage = 200",
            "line 2: `sim.leverage` = 200: must be a whole number from 1 to",
        ),
        (
            "[sim]\nqueue = \"fifo\"",
            "line 2: `sim.queue` = \"fifo\": must be one of \"risk-averse\"",
        ),
        ("[sim]\nqueue = \"nome\"", "(did you mean \"none\"?)"),
        (
            "[sim]\nqueue = 3",
            "line 2: `sim.queue` = 3: must be one of",
        ),
        (
            "[sim]\nfees = { maker = \"a\" }",
            "`sim.fees.maker` = \"a\": must be a decimal number",
        ),
        (
            "[sim]\nfees = { maker = nan }",
            "`sim.fees.maker` = nan: must be a decimal number",
        ),
        (
            "[sim]\nfees = { taker = 2 }",
            "`sim.fees.taker` = 2: must be a fraction between -1 and 1",
        ),
        (
            "[sim]\nlatency_ms = { feed = -1 }",
            "`sim.latency_ms.feed` = -1: must be milliseconds",
        ),
        (
            "[sim]\nstart_balance = { USDT = 1 }",
            "must be spot:ASSET or futures:ASSET",
        ),
        (
            "[sim]\nstart_balance = { \"spot:USDT\" = -1 }",
            "`sim.start_balance.spot:USDT` = -1: must not be negative",
        ),
        ("sim = 5", "line 1: `sim` must be a table, not an integer"),
        (
            "[risk]\nprice_collar = 5",
            "`risk.price_collar` = 5: must be a fraction over 0",
        ),
        (
            "[risk]\nmax_order_notional = 0",
            "`risk.max_order_notional` = 0: must be over 0",
        ),
        (
            "[run]\nmode = \"papr\"",
            "must be one of \"paper\", \"live\" (did you mean \"paper\"?)",
        ),
        (
            "[run]\ndata_dir = 5",
            "`run.data_dir` = 5: must be a path as a string",
        ),
        (
            "[run]\ndata_dir = \"\"",
            "line 2: `run.data_dir` = \"\": must name a folder",
        ),
        (
            "[venue]\nfutures.ws = \"http://x\"",
            "must be an address that starts with ws:// or wss://",
        ),
        (
            "[venue]\nrecv_window_ms = 70000",
            "= 70000: must be milliseconds from 1 to 60000",
        ),
        ("[account]\nuser = \"0x12\"", "must be a wallet address"),
        (
            "[account]\nmulti_assets = 1",
            "`account.multi_assets` = 1: must be true or false",
        ),
        (
            "[heartbeat]\ninterval_ms = 40000",
            "line 2: `heartbeat.interval_ms` = 40000: leaves no time for a second renewal",
        ),
        (
            "[heartbeat]\ncountdown_ms = 30000\ninterval_ms = 15001",
            "line 3: `heartbeat.interval_ms` = 15001: leaves no time for a second renewal within \
             heartbeat.countdown_ms, which is 30000; it must be at most half of that",
        ),
        (
            "[heartbeat]\ninterval_ms = 0",
            "`heartbeat.interval_ms` = 0: must be milliseconds from 1 to 3600000",
        ),
        (
            "[heartbeat]\ncountdown_ms = 3600001",
            "`heartbeat.countdown_ms` = 3600001: must be milliseconds from 1 to 3600000",
        ),
        (
            "[reconcile]\ninterval_ms = 86400000",
            "`reconcile.interval_ms` = 86400000: must be milliseconds from 1 to 3600000",
        ),
        (
            "[admin]\nlisten = \"localhost\"",
            "must be an IP address and a port",
        ),
        (
            "[admin]\nlisten = \"0.0.0.0:9999\"",
            "line 2: `admin.listen` = \"0.0.0.0:9999\": must be a loopback address",
        ),
        (
            "[backtest]\ndata = \"x.gz\"",
            "`backtest.data` = \"x.gz\": must be a list",
        ),
        (
            "[backtest]\ndata = [\"a\", 5]",
            "`backtest.data.1` = 5: must be a path as a string",
        ),
        (
            "[backtest]\non_damage = \"ignore\"",
            "must be one of \"skip\", \"fail\"",
        ),
        ("[sim\nseed = 1", "c.toml line 1: not valid TOML"),
        (
            "[sim]\nseed = 1\nseed = 2",
            "c.toml line 3: not valid TOML: duplicate key",
        ),
    ];
    for (text, expected) in cases {
        let message = refusal(text);
        assert!(
            message.contains(expected),
            "{message}\n  does not contain: {expected}"
        );
        assert!(
            !message.contains('\n'),
            "the message has several lines: {message}"
        );
    }
}

#[test]
fn timers_are_accepted_up_to_one_hour() {
    let hour = "[heartbeat]\ncountdown_ms = 3600000\ninterval_ms = 1800000\n\
                [reconcile]\ninterval_ms = 3600000";
    let config = parse(hour).unwrap();
    assert_eq!(config.heartbeat.interval_ms, 1_800_000);
    assert_eq!(config.reconcile.interval_ms, 3_600_000);
}

#[test]
fn a_bad_strategy_is_refused() {
    let cases = [
        (
            "id = \"mm-btc\"",
            "id = \"MM\"",
            "line 3: `strategy.0.id` = \"MM\": must have 1 to 8",
        ),
        (
            "id = \"mm-btc\"",
            "",
            "line 2: `strategy.0` has no `id`; add it",
        ),
        (
            "futures:BTC",
            "BTC",
            "`strategy.0.instruments.0` = \"BTCUSDT\": must be spot:SYMBOL or",
        ),
        (
            "[\"futures:BTCUSDT\"]",
            "[]",
            "must name at least one instrument",
        ),
        (
            "bar:1m",
            "bar:1x",
            "`strategy.0.streams.2` = \"bar:1x\": must be trade, book, mark or bar",
        ),
        (
            "fuel_per_event = 2000000",
            "fuel_per_event = 0",
            "`strategy.0.limits.fuel_per_event` = 0: must be over 0",
        ),
        (
            "memory_mb = 64",
            "memory_mb = 9000",
            "must be mebibytes from 1 to 4095",
        ),
        (
            "callback_ms = 50",
            "callback_ms = 0",
            "`strategy.0.limits.callback_ms` = 0: must be milliseconds from 1 to 10000",
        ),
        (
            "cpu_percent = 25",
            "cpu_percent = 101",
            "`strategy.0.limits.cpu_percent` = 101: must be percent from 1 to 100",
        ),
        (
            "\"flatten\"",
            "\"panic\"",
            "`strategy.0.on_fault` = \"panic\": must be one of",
        ),
        (
            "params = {",
            "params = [ \"a\" ]\nlimits = {}\n#",
            "`strategy.0.params` must be a table",
        ),
    ];
    for (from, to, expected) in cases {
        let text = STRATEGY.replacen(from, to, 1);
        let text = if from == "params = {" {
            text.replacen("limits = { fuel", "#limits = { fuel", 1)
        } else {
            text
        };
        let message = refusal(&text);
        assert!(
            message.contains(expected),
            "{message}\n  does not contain: {expected}"
        );
    }
}

#[test]
fn two_strategies_do_not_share_an_id() {
    let message = refusal(&format!("{STRATEGY}{STRATEGY}"));
    assert_eq!(
        message,
        "c.toml line 12: `strategy.1.id` = \"mm-btc\": is already the id of strategy.0; \
         give each strategy its own id"
    );
}

#[test]
fn decimals_are_exact_as_strings_and_as_numbers() {
    for value in ["0.1", "\"0.1\"", "1e-1", "\"1e-1\""] {
        let config = parse(&format!("[sim]\nmaintenance_rate = {value}")).unwrap();
        assert_eq!(config.sim.maintenance_rate, Decimal::new(1, 1), "{value}");
    }
    let config = parse("[sim]\nfees = { maker = 0.0000000000000000000000000001 }").unwrap();
    assert_eq!(config.sim.fees.maker, Decimal::new(1, 28));
    let config = parse("[sim]\nlatency_ms = { feed = 0.25, order = \"1.5\" }").unwrap();
    assert_eq!(
        config.sim.latency,
        Latency::Constant {
            feed_ns: 250_000,
            order_ns: 1_500_000
        }
    );
}

#[test]
fn set_reaches_every_setting() {
    let config = with_set(
        STRATEGY,
        &[
            "strategy.0.params.qty=0.02",
            "strategy.0.params.note=two words",
            "strategy.0.streams.1=\"mark\"",
            "sim.start_balance={ \"spot:USDT\" = 5 }",
            "sim.start_balance.spot:BTC=0.1",
            "backtest.data=[\"a.gz\"]",
            "backtest.data.1=b.gz",
            "sim.seed = 7",
        ],
    )
    .unwrap();
    let strategy = &config.strategies[0];
    assert_eq!(strategy.params["qty"], 0.02);
    assert_eq!(strategy.params["note"], "two words");
    assert_eq!(strategy.streams[1], Stream::Mark);
    let balances: Vec<String> = config
        .sim
        .start_balance
        .iter()
        .map(|(holding, value)| format!("{holding}={value}"))
        .collect();
    assert_eq!(balances, ["spot:BTC=0.1", "spot:USDT=5"]);
    assert_eq!(config.backtest.data, [Path::new("a.gz"), Path::new("b.gz")]);
    assert_eq!(config.sim.seed, 7);
}

#[test]
fn a_bad_set_names_itself() {
    let cases = [
        (
            "sim.seed=x",
            "--set sim.seed: `sim.seed` = \"x\": must be a whole number",
        ),
        (
            "sim.sed=1",
            "--set sim.sed: unknown key `sim.sed`; the nearest known key is `sim.seed`",
        ),
        (
            "sim.seed",
            "--set sim.seed: has no value; write --set key.path=value",
        ),
        ("sim..seed=1", "--set sim..seed: has an empty step"),
        (
            "strategy.5.id=x",
            "--set strategy.5.id: `5` is not an index of a list of length 1; write 0 to 1",
        ),
        (
            "strategy.0.id.x=1",
            "`x` cannot be set: its parent is a string",
        ),
    ];
    for (set, expected) in cases {
        let message = with_set(STRATEGY, &[set]).expect_err(set).to_string();
        assert!(
            message.contains(expected),
            "{message}\n  does not contain: {expected}"
        );
    }
}

#[test]
fn the_environment_overrides_the_file_and_set_the_environment() {
    let env = [
        ("WINDVANE__SIM__SEED", "3"),
        ("WINDVANE__SIM__LATENCY_MS__ORDER", "9"),
        ("WINDVANE__STRATEGY__0__ID", "other"),
        ("WINDVANE_API_KEY", "not an override"),
        ("HOME", "/"),
    ];
    let text = format!("[sim]\nseed = 2\n{STRATEGY}");
    let config = with_env(&text, &env).unwrap();
    assert_eq!(config.sim.seed, 3);
    assert_eq!(
        config.sim.latency,
        Latency::Constant {
            feed_ns: 1_000_000,
            order_ns: 9_000_000
        }
    );
    assert_eq!(config.strategies[0].id.as_str(), "other");
    let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let both = Overrides {
        env: env.iter().map(own).collect(),
        set: vec!["sim.seed=4".to_owned()],
    };
    assert_eq!(Config::parse(&text, "c.toml", &both).unwrap().sim.seed, 4);
    let message = with_env("", &[("WINDVANE__SIM__SED", "3")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "environment variable WINDVANE__SIM__SED: unknown key `sim.sed`; the nearest known key is \
         `sim.seed`"
    );
}

#[test]
fn a_secret_in_the_configuration_is_refused_and_not_repeated() {
    let spellings = [
        "[account]\napi_key = \"hunter2\"",
        "[account]\napi_secret = [\"hunter2\"]",
        "[account]\nsigner = \"hunter2\"",
        "[account]\napikey = \"hunter2\"",
        "[account]\nwallet = { keystore = \"k.json\", password = \"hunter2\" }",
        "[admin]\ntoken = \"hunter2\"",
    ];
    for text in spellings {
        let error = parse(text).expect_err(text);
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let message = refusal(spellings[0]);
    assert!(
        message.contains("the configuration never contains a secret"),
        "{message}"
    );
    let error = with_set("", &["account.api_key=hunter2"]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    let error = with_env("", &[("WINDVANE__ACCOUNT__API_KEY", "hunter2")]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn a_secret_has_one_source() {
    let message = refusal("[account]\napi_key = { env = \"A\", file = \"b\" }");
    assert!(
        message.contains("must have exactly one of env, file, credential and fd"),
        "{message}"
    );
    let message = refusal("[account]\nwallet = { keystore = \"k.json\" }");
    assert!(
        message.contains("keystore and password together"),
        "{message}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Path::new("no/such.toml"), &Overrides::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read configuration no/such.toml: ")
    );
}

#[test]
fn instrument_rules_are_exact_decimals() {
    let text = "[[instrument]]\nname = \"futures:BTCUSDT\"\ntick = 0.10\nstep = \"0.001\"\n";
    let config = parse(text).unwrap();
    assert_eq!(config.instruments[0].tick, Decimal::new(1, 1));
    assert_eq!(config.instruments[0].step, Decimal::new(1, 3));
    let message = refusal(&text.replace("0.10", "0"));
    assert!(
        message.contains("line 3: `instrument.0.tick` = 0: must be over 0"),
        "{message}"
    );
    let twice = refusal(&format!("{text}{text}"));
    assert!(twice.contains("line 6: `instrument.1.name`"), "{twice}");
}

#[test]
fn every_ready_configuration_is_read() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let file = entry.unwrap().path();
        if file
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let config = Config::load(&file, &Overrides::default());
            let config = config.unwrap_or_else(|error| panic!("{error}"));
            let is_of_use = !config.strategies.is_empty() || config.venue.spot.rest.is_some();
            assert!(is_of_use, "{} has no strategy and no venue", file.display());
            count += 1;
        }
    }
    assert!(count >= 7, "only {count} configurations found");
}

#[test]
fn only_loopback_addresses_are_on_this_machine() {
    let venue = |address: &str| {
        let text = format!("[venue]\nfutures.rest = \"{address}\"\n");
        parse(&text).unwrap().venue.is_on_this_machine()
    };
    for here in [
        "http://127.0.0.1:1",
        "http://localhost/path",
        "http://[::1]:80",
        "https://127.9.9.9",
    ] {
        assert!(venue(here), "{here}");
    }
    for elsewhere in [
        "https://exchange.example",
        "http://127.0.0.1.example",
        "http://127.0.0.1@exchange.example",
        "http://10.0.0.1",
    ] {
        assert!(!venue(elsewhere), "{elsewhere}");
    }
    assert!(
        !parse("[venue]\nprofile = \"aster\"\n")
            .unwrap()
            .venue
            .is_on_this_machine()
    );
}

#[test]
fn every_file_with_a_secret_is_named() {
    let text = r#"
[account]
api_key = { env = "KEY" }
api_secret = { file = "a" }
signer = { file = "b" }
wallet = { keystore = "c", password = { file = "d" } }
[admin]
token = { file = "e" }
"#;
    let config = parse(text).unwrap();
    let mut files = config.secret_files();
    files.sort();
    let names = ["a", "b", "c", "d", "e"].map(std::path::PathBuf::from);
    assert_eq!(files, names);
    assert!(config.has_keys());
    assert!(!parse("").unwrap().has_keys());
}

#[test]
fn limits_of_the_compiler_have_a_least_value() {
    assert_eq!(parse("").unwrap().compile.memory_mb, 4096);
    for text in ["memory_mb = 63", "seconds = 0", "seconds = 86401"] {
        let error = parse(&format!("[compile]\n{text}\n")).unwrap_err();
        assert!(error.to_string().contains("must be"), "{error}");
    }
}

/// This many strategies, each with its own id.
fn strategies(number: usize) -> String {
    let section = |at: usize| STRATEGY.replace("mm-btc", &format!("mm-{at}"));
    (0..number).map(section).collect()
}

#[test]
fn too_many_strategies_are_refused_before_anything_is_compared() {
    assert_eq!(
        parse(&strategies(STRATEGIES_MAX)).unwrap().strategies.len(),
        STRATEGIES_MAX
    );
    // Each section has nine lines, and the text begins with an empty one.
    let line = 9 * STRATEGIES_MAX + 2;
    for number in [STRATEGIES_MAX + 1, 10_000] {
        let refused = refusal(&strategies(number));
        let begin = format!("c.toml line {line}: `strategy.256` is one of {number} [[strategy]]");
        assert!(refused.starts_with(&begin), "{refused}");
        assert!(refused.contains("at most 256"), "{refused}");
    }
}

#[test]
fn a_second_section_of_an_instrument_is_named() {
    let section =
        |name: &str| format!("[[instrument]]\nname = \"futures:{name}\"\ntick = 0.1\nstep = 0.1\n");
    let names = ["A", "B", "C", "B"].map(section).concat();
    let refused = refusal(&names);
    assert!(refused.contains("`instrument.3.name`"), "{refused}");
}
