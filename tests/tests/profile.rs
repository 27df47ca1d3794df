//! `venue.profile`: the real binary signs with the names and chain ids of a profile, and the
//! simulated venue verifies them with the same profile. Every address is replaced by loopback. Where
//! no address exists, nothing is sent and the error names the profile, the surface and the key.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

const AGENT: &str = "0x1111111111111111111111111111111111111111";

/// Keeps one order at rest, far below the bid.
const RESTS: &str = "(if (i32.eq (local.get $kind) (i32.const 2)) (then
    (global.set $tops (i64.add (global.get $tops) (i64.const 1)))
    (local.set $bid (i64.sub (local.get $a) (i64.div_s (local.get $a) (i64.const 20))))
    (if (i64.eq (global.get $tops) (i64.const 5)) (then
      (drop (call $submit (i32.const 0) (i32.const 16) (i64.const 100)
        (i64.sub (local.get $bid) (i64.rem_s (local.get $bid) (i64.const 1000)))
        (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))))";

/// A simulated venue with the names of a profile, and a client's configuration that has the
/// profile's names and the venue's addresses.
struct Stage {
    venue: Venue,
    config: PathBuf,
}

impl Stage {
    fn new(seed: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("venue.toml");
        std::fs::write(&own, "[venue]\nprofile = \"aster-testnet\"\n").unwrap();
        let venue = Venue::start_with(&own, &["--seed", seed]);
        let module = venue.folder().join("rests.wasm");
        let guest = Guest {
            on_event: RESTS,
            more: "(global $tops (mut i64) (i64.const 0))",
            ..Guest::default()
        };
        guest.write(&module);
        let config = venue.folder().join("client.toml");
        let stage = Self { venue, config };
        let text = stage.configuration(&module);
        std::fs::write(&stage.config, text).unwrap();
        stage
    }

    fn configuration(&self, module: &Path) -> String {
        let line = self.venue.line();
        let at = |surface: &str, part: &str| line[surface][part].as_str().unwrap().to_owned();
        let one = |surface: &str| line[surface].as_str().unwrap().to_owned();
        format!(
            r#"[run]
mode = "live"

[venue]
profile = "aster-testnet"
api = "v3"
spot.rest = "{}"
spot.ws = "{}"
futures.rest = "{}"
futures.ws = "{}"
chain.rest = "{}"
rpc.rest = "{}"

[account]
user = "{}"
signer = {{ env = "WINDVANE_SIGNER_KEY" }}
wallet = {{ env = "WINDVANE_WALLET_KEY" }}

[[strategy]]
id = "rests"
module = "{}"
instruments = ["futures:BTCUSDT"]
streams = ["book"]
"#,
            at("spot", "rest"),
            at("spot", "ws"),
            at("futures", "rest"),
            at("futures", "ws"),
            one("chain"),
            one("rpc"),
            self.key("user"),
            module.display(),
        )
    }

    fn key(&self, name: &str) -> &str {
        self.venue.line()["accounts"][0][name].as_str().unwrap()
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary::path());
        command
            .current_dir(binary::root())
            .arg(verb)
            .arg("--config")
            .arg(&self.config)
            .args(arguments)
            .env("WINDVANE_SIGNER_KEY", self.key("signerKey"))
            .env("WINDVANE_WALLET_KEY", self.key("userKey"));
        command.output().unwrap()
    }

    fn call(&self, route: &str, parameters: &str, more: &[&str]) -> Output {
        let mut arguments = vec!["--json", "--yes", route];
        arguments.extend(parameters.split_whitespace());
        arguments.extend(more);
        self.command("call", &arguments)
    }

    /// A call that must succeed.
    #[track_caller]
    fn answer(&self, route: &str, parameters: &str) -> Value {
        let output = self.call(route, parameters, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{route}: {stderr}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// A call that the venue must refuse with this code because of a changed setting.
    #[track_caller]
    fn refused(&self, route: &str, parameters: &str, set: &str, code: i64) {
        let output = self.call(route, parameters, &["--set", set]);
        assert_eq!(output.status.code(), Some(1), "{set}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["code"], code, "{set}: {said}");
    }
}

#[test]
fn requests_are_signed_with_the_names_and_chains_of_the_profile() {
    let stage = Stage::new("71");
    let sentence = stage.venue.line()["loginSentence"].as_str();
    assert_eq!(sentence, Some("You are signing into Astherus "));
    // The agent's message on both surfaces, with chain 714.
    stage.answer("spot.account", "");
    let order = "symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.01 price=1000";
    stage.refused("futures.new_order", order, "venue.network=mainnet", -1022);
    let account = stage.answer("futures.account", "");
    assert!(account["assets"].is_array(), "{account}");
    let other = "venue.names.signing_domain=SvcSignTransaction";
    stage.refused("spot.account", "", other, -1022);
    let other = "venue.signing_chain.testnet=1666";
    stage.refused("spot.account", "", other, -1022);
    // The wallet's typed data, with `asterChain` = `Testnet`.
    let agent = format!(
        "agentName=test agentAddress={AGENT} ipWhitelist= expired=4102444800000 \
         canSpotTrade=true canPerpTrade=true canWithdraw=false"
    );
    stage.refused(
        "futures.approve_agent",
        &agent,
        "venue.names.chain_parameter=svcChain",
        -1103,
    );
    stage.answer("futures.approve_agent", &agent);
    // The withdrawal's own signature, in the domain `Aster`.
    let user = stage.key("user").to_owned();
    let withdrawal = format!("chainId=56 asset=USDT amount=5 fee=1 receiver={user}");
    let lower = "venue.names.withdrawal_domain=aster";
    stage.refused("spot.withdraw", &withdrawal, lower, -1022);
    let withdrawn = stage.answer("spot.withdraw", &withdrawal);
    assert!(withdrawn["withdrawId"].is_string(), "{withdrawn}");
    // Paths and methods.
    let dry = stage.call("chain.locked_staking", "", &["--dry-run"]);
    let dry: Value = serde_json::from_slice(&dry.stdout).unwrap();
    let url = dry["url"].as_str().unwrap();
    assert!(
        url.ends_with("/aster-chain/v3/staking/getLockedAster"),
        "{url}"
    );
    stage.answer("chain.locked_staking", "");
    let balance = format!("address={user} blockTag=latest");
    let balance = stage.answer("aster_getBalance", &balance);
    assert!(balance["result"].is_object(), "{balance}");
}

#[test]
fn a_run_with_a_profile_trades_on_loopback_only() {
    let stage = Stage::new("72");
    let data = stage.venue.folder().join("data");
    let set = format!("run.data_dir={}", data.display());
    let output = stage.command("check", &["--json", "--set", &set]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said:#}");
    let lines = said["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| line["area"] == "venue").unwrap();
    assert_eq!(line["verdict"], "warn");
    let found = line["found"].as_str().unwrap();
    let replaced = "profile \"aster-testnet\"; the configuration replaces venue.spot.rest, \
                    venue.spot.ws, venue.futures.rest, venue.futures.ws, venue.chain.rest, \
                    venue.rpc.rest. Its values";
    assert!(found.starts_with(replaced), "{found}");

    let launch = Launch::own(&stage.config, &data)
        .env("WINDVANE_SIGNER_KEY", stage.key("signerKey"))
        .env("WINDVANE_WALLET_KEY", "not a key, and never read");
    let mut instance = launch.start();
    instance.ready();
    instance.until("orders", &|orders| {
        orders.as_array().is_some_and(|orders| !orders.is_empty())
    });
    only_loopback(instance.pid());
    let accepted = &stage.venue.account()["accepted"]["total"];
    assert!(accepted.as_u64() > Some(0), "{accepted}");
    let log = instance.log();
    assert_eq!(instance.terminate().code(), Some(0));
    assert!(log.contains("aster-testnet"), "{log}");
    assert!(!log.contains("asterdex"), "{log}");
    let orders = stage.venue.account();
    let orders = orders["orders"].as_array().unwrap();
    assert!(orders.iter().all(|order| order["open"] == json!(false)));
}

/// Asserts that every TCP connection of a process ends on this machine.
fn only_loopback(pid: u32) {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            let text = link.to_str()?.strip_prefix("socket:[")?;
            Some(text.trim_end_matches(']').to_owned())
        })
        .collect();
    let mut connections = 0;
    for (table, local) in [
        ("tcp", "0100007F"),
        ("tcp6", "0000000000000000FFFF00000100007F"),
    ] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
        for row in text.lines().skip(1) {
            let fields: Vec<&str> = row.split_whitespace().collect();
            let (remote, state, inode) = (fields[2], fields[3], fields[9]);
            // A listening socket has no other end.
            if state == "0A" || !sockets.iter().any(|socket| socket == inode) {
                continue;
            }
            assert!(remote.starts_with(local), "{table}: connected to {remote}");
            connections += 1;
        }
    }
    assert!(connections > 0, "the run has no connection");
}

/// Requires exit code 2 and one sentence with all of these parts.
#[track_caller]
fn names(output: &Output, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let mut lines = text.lines();
    let sentence = lines.find(|line| line.starts_with("error: ")).unwrap();
    for part in parts {
        assert!(
            sentence.contains(part),
            "{part:?} is missing in: {sentence}"
        );
    }
}

#[test]
fn a_surface_without_address_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let file = folder.path().join("c.toml");
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let testnet = file("[venue]\nprofile = \"aster-testnet\"\n");
    let call = |route: &str, parameter: &str| {
        let words = ["call", "--json", "--config", &testnet, route, parameter];
        binary::run(words.iter().filter(|word| !word.is_empty()))
    };
    let output = call("chain.locked_staking", "");
    let parts = ["chain", "\"aster-testnet\"", "set venue.chain.rest"];
    names(&output, &parts);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["outcome"], "refused");
    let output = call(
        "aster_openOrders",
        "address=0x1111111111111111111111111111111111111111",
    );
    names(&output, &["blockTag"]);
    let words = ["aster_getBalance", "blockTag=latest"];
    let address = format!("address={AGENT}");
    let output = binary::run(["call", "--config", &testnet, words[0], words[1], &address]);
    names(&output, &["rpc", "\"aster-testnet\"", "set venue.rpc.rest"]);

    // The info endpoint is the only source of the futures account with documented data.
    let strategy = "[[strategy]]\nid = \"a\"\nmodule = \"a.wasm\"\ninstruments = \
                    [\"futures:BTCUSDT\"]\n";
    let data = folder.path().join("data");
    let run = format!(
        "[run]\nmode = \"live\"\ndata_dir = \"{}\"\n",
        data.display()
    );
    let live = file(&format!(
        "{run}[venue]\nprofile = \"aster-testnet\"\nmarket_data = \"documented\"\n\
         [account]\nuser = \"{AGENT}\"\n{strategy}"
    ));
    let output = binary::run(["run", "--config", &live]);
    names(&output, &["rpc", "\"aster-testnet\"", "set venue.rpc.rest"]);
    assert!(!data.exists(), "a refused run created its data folder");

    // Paper streams, with the default profile, which has no address.
    let paper = file(&format!("{}{strategy}", run.replace("live", "paper")));
    let parts = ["REST", "futures", "\"simulated\"", "set venue.futures.rest"];
    names(&binary::run(["run", "--config", &paper]), &parts);
    let set = ["--set", "venue.futures.rest=http://127.0.0.1:9"];
    let output = binary::run(["run", "--config", &paper, set[0], set[1]]);
    let parts = [
        "WebSocket",
        "futures",
        "\"simulated\"",
        "set venue.futures.ws",
    ];
    names(&output, &parts);
    let words = [
        "watch",
        "BTCUSDT",
        "--surface",
        "futures",
        "--config",
        &paper,
    ];
    names(&binary::run(words), &parts);
    let output = binary::run(["check", "--json", "--config", &paper]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said:#}");
    let lines = said["lines"].as_array().unwrap();
    let missing = lines.iter().filter(|line| line["area"] == "address");
    let missing: Vec<_> = missing
        .map(|line| line["found"].as_str().unwrap())
        .collect();
    assert_eq!(missing.len(), 2, "{missing:?}");
    for (sentence, key) in missing
        .iter()
        .zip(["venue.futures.ws", "venue.futures.rest"])
    {
        assert!(sentence.contains("\"simulated\"") && sentence.ends_with(key));
    }
}

#[test]
fn routes_shows_the_profile_and_an_unknown_one_lists_the_known() {
    let shown = binary::succeed(["routes", "--profile", "aster-testnet"]);
    assert!(shown.contains("/aster-chain/v3/account/status"), "{shown}");
    assert!(shown.contains("\nprofile aster-testnet\n"), "{shown}");
    assert!(
        shown.ends_with("rpc      no address; set venue.rpc.rest\n"),
        "{shown}"
    );
    let usual = binary::succeed(["routes"]);
    assert_eq!(binary::succeed(["routes", "--profile", "simulated"]), usual);
    assert!(!usual.contains("profile"), "{usual}");
    let output = binary::run(["routes", "--profile", "asterdex"]);
    names(&output, &["\"simulated\", \"aster\", \"aster-testnet\""]);
}
