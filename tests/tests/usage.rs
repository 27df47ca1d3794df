//! An error in a configuration, its data or its modules ends with exit code 2 and one sentence that
//! says what to do.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use windvane_tests::binary::{self, succeed};
use windvane_tests::guest::Guest;

/// A correct configuration for a folder with a recording and a module.
const GOOD: &str = r#"[backtest]
data = ["session.gz"]
cache = "cache"

[[instrument]]
name = "futures:BTCUSDT"
tick = "0.10"
step = "0.001"

[[strategy]]
id = "idle"
module = "idle.wasm"
instruments = ["futures:BTCUSDT"]

[sim]
start_balance = { "futures:USDT" = "10000" }
seed = 1
"#;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let session = folder.path().join("session.gz");
        let arguments = ["data", "generate", "--minutes", "1", "--out"];
        succeed(arguments.iter().map(Path::new).chain([session.as_path()]));
        Guest::default().write(&folder.path().join("idle.wasm"));
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `windvane` in the folder.
    fn windvane(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary::path());
        command.current_dir(self.folder.path()).args(arguments);
        command.output().unwrap()
    }

    fn backtest(&self, config: &str, more: &[&str]) -> Output {
        std::fs::write(self.file("c.toml"), config).unwrap();
        self.windvane(&[&["backtest", "--config", "c.toml"], more].concat())
    }

    /// Runs a backtest with `from` in the correct configuration replaced. It must be refused with a
    /// sentence that contains all of `says`.
    #[track_caller]
    fn refuses(&self, from: &str, to: &str, says: &[&str]) {
        assert!(GOOD.contains(from), "{from}");
        refused(&self.backtest(&GOOD.replace(from, to), &[]), says);
    }

    /// Runs a backtest with additional arguments, which must be refused.
    #[track_caller]
    fn refuses_argument(&self, arguments: &[&str], says: &[&str]) {
        refused(&self.backtest(GOOD, arguments), says);
    }
}

/// Requires exit code 2, empty stdout, and one line on stderr that contains all of `says`.
#[track_caller]
fn refused(output: &Output, says: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        output.stdout.is_empty(),
        "an error must not print to stdout"
    );
    assert!(text.starts_with("error: "), "{text}");
    assert_eq!(
        text.trim_end().lines().count(),
        1,
        "the error must be one line: {text}"
    );
    for says in says {
        assert!(text.contains(says), "{says:?} is missing in: {text}");
    }
}

#[test]
fn the_base_configuration_is_valid() {
    let bench = Bench::new();
    let output = bench.backtest(GOOD, &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn errors_name_the_key_value_and_line() {
    let bench = Bench::new();
    bench.refuses(
        "seed = 1",
        "sead = 1",
        &["c.toml line 17", "`sim.sead`", "`sim.seed`"],
    );
    bench.refuses(
        "seed = 1",
        "seed = \"one\"",
        &["c.toml line 17", "`sim.seed`", "\"one\""],
    );
    bench.refuses("seed = 1", "seed = ", &["c.toml line 17", "not valid TOML"]);
    bench.refuses(
        "instruments = [",
        "instrument = [",
        &[
            "c.toml line 13",
            "`strategy.0.instrument`",
            "`strategy.0.instruments`",
        ],
    );
}

#[test]
fn missing_files_are_named_with_a_remedy() {
    let bench = Bench::new();
    refused(
        &bench.windvane(&["backtest", "--config", "none.toml"]),
        &["none.toml", "--config"],
    );
    bench.refuses(
        "session.gz",
        "none.gz",
        &["none.gz", "windvane data generate --out none.gz"],
    );
    bench.refuses_argument(
        &["--data", "other.gz"],
        &["other.gz", "windvane data generate"],
    );
    bench.refuses(
        "idle.wasm",
        "none.wasm",
        &["strategy idle", "none.wasm", "Cargo.toml", ".wasm"],
    );
    std::fs::create_dir(bench.file("hollow")).unwrap();
    bench.refuses(
        "idle.wasm",
        "hollow",
        &["strategy idle", "hollow", "Cargo.toml"],
    );
}

#[test]
fn strategies_and_valid_ids_are_required() {
    let bench = Bench::new();
    let (before, rest) = GOOD.split_once("[[strategy]]").unwrap();
    let (strategy, after) = rest.split_once("[sim]").unwrap();
    let none = format!("{before}[sim]{after}");
    refused(
        &bench.backtest(&none, &[]),
        &["[[strategy]]", "id, module and instruments"],
    );
    let twice = format!("{before}[[strategy]]{strategy}[[strategy]]{strategy}[sim]{after}");
    refused(
        &bench.backtest(&twice, &[]),
        &["c.toml line 16", "`strategy.1.id`", "\"idle\""],
    );
    for bad in ["Idle", "much-too-long", "a b", ""] {
        bench.refuses(
            "\"idle\"",
            &format!("\"{bad}\""),
            &[
                "c.toml line 11",
                "`strategy.0.id`",
                "1 to 8 characters of a-z, 0-9 and -",
            ],
        );
    }
}

#[test]
fn modules_that_are_not_strategies_are_refused() {
    let bench = Bench::new();
    std::fs::write(bench.file("text.wasm"), "not a module\n").unwrap();
    bench.refuses(
        "idle.wasm",
        "text.wasm",
        &["strategy idle", "not a valid WebAssembly module"],
    );
    std::fs::write(bench.file("cut.wasm"), b"\0asm\x01\0\0\0\x01\x7f").unwrap();
    bench.refuses(
        "idle.wasm",
        "cut.wasm",
        &["strategy idle", "not a valid WebAssembly module"],
    );
    let foreign = Guest {
        imports: r#"(import "wasi_snapshot_preview1" "fd_write"
            (func (param i32 i32 i32 i32) (result i32)))"#,
        ..Guest::default()
    };
    foreign.write(&bench.file("foreign.wasm"));
    bench.refuses(
        "idle.wasm",
        "foreign.wasm",
        &["strategy idle", "wasi_snapshot_preview1", "no WASI"],
    );
    bench.refuses(
        "[sim]",
        "capabilities = [\"account\"]\n[sim]",
        &["strategy idle", "`orders`", "strategy.capabilities"],
    );
}

#[test]
fn params_that_a_strategy_refuses_end_the_run() {
    let bench = Bench::new();
    let refuses = Guest {
        refusal: "`qty` must be positive",
        ..Guest::default()
    };
    refuses.write(&bench.file("refuses.wasm"));
    bench.refuses(
        "idle.wasm",
        "refuses.wasm",
        &["strategy idle", "`qty` must be positive", "params"],
    );
    let verbose = Guest {
        refusal: "two\nlines",
        ..Guest::default()
    };
    verbose.write(&bench.file("verbose.wasm"));
    bench.refuses(
        "idle.wasm",
        "verbose.wasm",
        &["strategy idle", "two lines; correct"],
    );
}

#[test]
fn recordings_need_the_instrument_and_an_event() {
    let bench = Bench::new();
    bench.refuses(
        "instruments = [\"futures:BTCUSDT\"]",
        "instruments = [\"futures:ETHUSDT\"]",
        &["futures:ETHUSDT", "futures:BTCUSDT", "backtest.data"],
    );
    // Configured rules of an instrument do not replace its market data.
    let stated = GOOD.replace("BTCUSDT", "ETHUSDT");
    refused(
        &bench.backtest(&stated, &[]),
        &["futures:ETHUSDT", "futures:BTCUSDT", "backtest.data"],
    );
    let both = "instruments = [\"futures:BTCUSDT\", \"futures:ETHUSDT\"]";
    let both = GOOD.replace("instruments = [\"futures:BTCUSDT\"]", both);
    refused(
        &bench.backtest(&both, &[]),
        &["futures:ETHUSDT is in no recording"],
    );
    std::fs::write(bench.file("empty.txt"), "").unwrap();
    bench.refuses(
        "session.gz",
        "empty.txt",
        &["empty.txt", "no market event", "windvane data generate"],
    );
}

#[test]
fn invalid_overrides_are_refused() {
    let bench = Bench::new();
    bench.refuses_argument(&["--set", "sim.sead=2"], &["--set sim.sead", "`sim.seed`"]);
    bench.refuses_argument(&["--set", "strategy.7.id=x"], &["--set strategy.7.id"]);
    bench.refuses_argument(&["--set", "sim.seed.x=1"], &["--set sim.seed.x"]);
    bench.refuses_argument(&["--set", "sim.seed"], &["--set sim.seed", "="]);
    bench.refuses_argument(&["--set", "sim.leverage=x"], &["--set sim.leverage"]);
}

#[test]
fn help_exits_with_success() {
    let bench = Bench::new();
    for arguments in [
        &["--help"][..],
        &["backtest", "--help"],
        &["data", "--help"],
    ] {
        let output = bench.windvane(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("Usage: windvane"), "{text}");
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn invalid_calls_send_nothing_and_name_the_reason() {
    let bench = Bench::new();
    let spot = ["--set", "venue.spot.rest=http://127.0.0.1:9"];
    for (arguments, says) in [
        (&["spot.nwe_order"][..], "spot.new_order"),
        (&["spot.depth"], "requires symbol"),
        (&["spot.depth", "symbol=A", "limit=7"], "limit = \"7\""),
        (&["futures.ping"], "REST address of futures"),
        (&["spot.account"], "API key"),
        (&["spot.account", "--api", "v3"], "agent"),
    ] {
        refused(
            &bench.windvane(&[&["call"], arguments, &spot].concat()),
            &[says],
        );
    }
    let key = "account.api_key={env=\"WINDVANE_TEST_NO_SUCH_VARIABLE\"}";
    let call = ["call", "spot.account", "--set", key];
    refused(
        &bench.windvane(&[&call, &spot[..]].concat()),
        &[
            "account.api_key",
            "WINDVANE_TEST_NO_SUCH_VARIABLE",
            "set it",
        ],
    );
    let ws = ["--set", "venue.spot.ws=ws://127.0.0.1:9"];
    refused(
        &bench.windvane(&[&["watch", "user"][..], &spot, &ws].concat()),
        &["spot.create_listen_key", "API key"],
    );
    // A route that needs no key does not read it.
    let dry = ["call", "spot.ping", "--dry-run", "--set", key];
    let output = bench.windvane(&[&dry, &spot[..]].concat());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        r#"{"method":"GET","url":"http://127.0.0.1:9/api/v3/ping","headers":{},"body":null,"signed_string":null}"#
    );
}

#[test]
fn deposits_are_printed_as_calls_for_the_users_own_wallet() {
    let bench = Bench::new();
    let (vault, token) = (
        "0x".to_owned() + &"11".repeat(20),
        "0x".to_owned() + &"22".repeat(20),
    );
    let user = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    let output = bench.windvane(&[
        "deposit",
        "evm",
        "--chain-id",
        "56",
        "--vault",
        &vault,
        "--token",
        &token,
        "--for",
        user,
        "--amount",
        "1.5",
        "--decimals",
        "18",
        "--to",
        "spot",
    ]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let calls = answer["calls"].as_array().unwrap();
    assert_eq!(
        (calls.len(), &calls[0]["to"], &calls[1]["to"]),
        (2, &token.into(), &vault.into())
    );
    let data = calls[1]["data"].as_str().unwrap();
    assert!(
        data.ends_with("03e8"),
        "the call must name broker 1000, which credits spot: {data}"
    );
    let output = bench.windvane(&["deposit", "sui"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["route"], "chain.deposit_address");
    refused(
        &bench.windvane(&[
            "deposit",
            "solana",
            "--program",
            "x",
            "--amount",
            "1",
            "--to",
            "futures",
            "--with",
            "banker=y",
        ]),
        &["banker", "depositSol", "solVault"],
    );
}

#[test]
fn asset_transfers_need_a_confirmation() {
    let bench = Bench::new();
    let call = [
        "call",
        "spot.wallet_transfer",
        "amount=1",
        "asset=USDT",
        "clientTranId=a",
        "kindType=SPOT_FUTURE",
        "--set",
        "venue.spot.rest=http://127.0.0.1:9",
        "--set",
        "account.api_key={env=\"PATH\"}",
        "--set",
        "account.api_secret={env=\"PATH\"}",
    ];
    let mut command = Command::new(binary::path());
    command.current_dir(bench.folder.path()).args(call);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    refused(&output, &["spot.wallet_transfer", "amount=1", "--yes"]);
}
