//! The signer process, with real processes: orders are signed by it alone, it is replaced when it ends
//! or hangs, it outlives a killed run until the watchdog is done, and its policy is obeyed.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::memory;
use windvane_tests::processes::{self, SIGNERS, Which};
use windvane_tests::resting::{self, accepted};
use windvane_tests::venue::Venue;

/// Longest wait for anything, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_mins(2);

fn wait(what: &str, mut is_it: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_it() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two strategies on futures, which quote all the time.
fn futures(venue: &Venue) -> Launch {
    Launch::new(venue, &venue.folder().join("data"))
        .modules(&["market_maker", "ema_cross"])
        .set("heartbeat.countdown_ms=6000")
        .set("heartbeat.interval_ms=1500")
}

/// Number of open orders of the account.
fn open(venue: &Venue) -> usize {
    resting::open(venue).len()
}

/// Waits until the signer processes of the run have ended.
fn until_signers_ended(launch: &Launch) {
    processes::wait_until_ended(launch.data(), &SIGNERS);
}

/// Waits until the venue accepted more orders than it has now.
fn trades_on(venue: &Venue) {
    let before = accepted(venue);
    wait("more orders are accepted", || accepted(venue) > before);
}

fn started(launch: &Launch, venue: &Venue) -> Instance {
    let mut instance = launch.start();
    instance.ready();
    wait("orders are accepted", || accepted(venue) > 0);
    instance
}

/// The secrets of the venue's account, as text and as the bytes that a key consists of.
fn secrets(venue: &Venue) -> Vec<Vec<u8>> {
    let keys = &venue.line()["accounts"][0];
    let mut all = Vec::new();
    for name in ["apiSecret", "signerKey", "userKey"] {
        let text = keys[name].as_str().unwrap();
        let bare = text.strip_prefix("0x").unwrap_or(text);
        all.push(bare.as_bytes().to_vec());
        if name != "apiSecret" {
            all.push(hex::decode(bare).unwrap());
        }
    }
    all
}

fn only_the_signer_holds_keys(api: &str, seed: &str) {
    let venue = Venue::start(&["--seed", seed]);
    let secrets = secrets(&venue);
    let secrets: Vec<&[u8]> = secrets.iter().map(Vec::as_slice).collect();
    let launch = futures(&venue)
        .set(&format!("venue.api={api}"))
        // So that this test may read its memory.
        .set("run.confine=false");
    let instance = started(&launch, &venue);
    assert_eq!(processes::of(launch.data(), Which::Signer).len(), 1);
    assert_eq!(processes::of(launch.data(), Which::Keeper).len(), 1);
    assert!(instance.log().contains("started the signer process"));
    assert!(!memory::contains(instance.pid(), &secrets));
    assert_eq!(instance.terminate().code(), Some(0));
    until_signers_ended(&launch);

    let launch = launch.set("signer.in_process=true");
    let instance = started(&launch, &venue);
    assert_eq!(
        processes::of(launch.data(), Which::Signer),
        Vec::<String>::new()
    );
    assert!(
        memory::contains(instance.pid(), &secrets),
        "the search finds the keys of a run that signs itself"
    );
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_run_with_an_api_key_holds_no_secret() {
    only_the_signer_holds_keys("v1", "71");
}

#[test]
fn a_run_with_an_agent_holds_no_key() {
    only_the_signer_holds_keys("v3", "72");
}

/// The secret of the venue's account: as it is, and as the program passes it to its processes.
fn api_secret(venue: &Venue) -> (String, String) {
    let text = venue.line()["accounts"][0]["apiSecret"].as_str().unwrap();
    (text.to_owned(), hex::encode(text))
}

fn is_only_in_the_signer(launch: &Launch, venue: &Venue) {
    let (text, passed) = api_secret(venue);
    let wanted = [text.as_bytes(), passed.as_bytes()];
    // Without confinement, so that this test may read the memory.
    let instance = started(&launch.clone().set("run.confine=false"), venue);
    let mut pids = processes::of(launch.data(), Which::Watchdog);
    pids.push(processes::one(launch.data(), Which::Keeper));
    pids.push(instance.pid().to_string());
    pids.push(processes::one(launch.data(), Which::Signer));
    for pid in &pids {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(!environment.is_empty());
        let found = |one: &&[u8]| environment.windows(one.len()).any(|part| part == *one);
        assert!(!wanted.iter().any(found), "process {pid}");
    }
    assert!(!memory::contains(instance.pid(), &wanted));
    let signer = pids[pids.len() - 1].parse().unwrap();
    assert!(
        memory::contains(signer, &wanted),
        "the search finds the key of the signer"
    );
    instance.kill();
    until_signers_ended(launch);
}

#[test]
fn a_run_holds_no_secret_of_its_environment() {
    let venue = Venue::start(&["--seed", "79"]);
    let launch = resting::launch(&venue, 2, "")
        .apart(&venue)
        .set("account.api_key={ env = \"WINDVANE_API_KEY\" }")
        .set("account.api_secret={ env = \"WINDVANE_API_SECRET\" }");
    is_only_in_the_signer(&launch, &venue);
}

/// A start without the secret in the environment, and a file that has it.
fn with_file(venue: &Venue) -> (Launch, std::path::PathBuf) {
    let file = venue.folder().join("secret");
    std::fs::write(&file, api_secret(venue).0).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
    let launch = resting::launch(venue, 2, "")
        .apart(venue)
        .env("WINDVANE_API_SECRET", "")
        .set("account.api_key={ env = \"WINDVANE_API_KEY\" }");
    (launch, file)
}

#[test]
fn a_run_holds_no_secret_of_a_descriptor() {
    let venue = Venue::start(&["--seed", "80"]);
    let (launch, file) = with_file(&venue);
    let launch = launch
        .after(&format!("exec 7<{}", file.display()))
        .set("account.api_secret={ fd = 7 }");
    is_only_in_the_signer(&launch, &venue);
}

#[test]
fn a_run_holds_no_secret_of_a_credential() {
    let venue = Venue::start(&["--seed", "81"]);
    let (launch, _) = with_file(&venue);
    let launch = launch
        .env("CREDENTIALS_DIRECTORY", venue.folder().to_str().unwrap())
        .set("account.api_secret={ credential = \"secret\" }");
    is_only_in_the_signer(&launch, &venue);
}

#[test]
fn a_killed_signer_is_replaced_and_orders_go_on() {
    let venue = Venue::start(&["--seed", "73"]);
    let launch = futures(&venue);
    let mut instance = started(&launch, &venue);
    for _ in 0..3 {
        let pid = processes::one(launch.data(), Which::Signer);
        processes::signal(&pid, "-9");
        processes::wait_until_replaced(launch.data(), Which::Signer, &pid);
        trades_on(&venue);
    }
    instance.ready();
    assert!(instance.log().contains("the signer process ended"));
    assert_eq!(instance.terminate().code(), Some(0));
    assert_eq!(open(&venue), 0);
    until_signers_ended(&launch);
}

#[test]
fn a_signer_that_hangs_is_replaced() {
    let venue = Venue::start(&["--seed", "74"]);
    let launch = futures(&venue);
    let mut instance = started(&launch, &venue);
    let pid = processes::one(launch.data(), Which::Signer);
    processes::signal(&pid, "-STOP");
    processes::wait_until_replaced(launch.data(), Which::Signer, &pid);
    trades_on(&venue);
    instance.ready();
    let log = instance.log();
    assert!(log.contains("the signer does not answer"), "{log}");
    assert!(
        log.contains("the signature did not arrive in time"),
        "{log}"
    );
    assert_eq!(instance.terminate().code(), Some(0));
    until_signers_ended(&launch);
}

#[test]
fn killed_signer_and_keeper_are_both_replaced() {
    // Nobody knows then how many opening orders were signed, and the configuration limits them.
    let venue = Venue::start(&["--seed", "75"]);
    let launch = futures(&venue);
    let mut instance = started(&launch, &venue);
    let pid = processes::one(launch.data(), Which::Signer);
    processes::signal(&processes::one(launch.data(), Which::Keeper), "-9");
    processes::signal(&pid, "-9");
    processes::wait_until_replaced(launch.data(), Which::Signer, &pid);
    wait("no opening order is signed in the first minute", || {
        instance.log().contains("this signer replaced another one")
    });
    trades_on(&venue);
    instance.ready();
    assert_eq!(instance.terminate().code(), Some(0));
    until_signers_ended(&launch);
}

#[test]
fn the_watchdog_of_a_killed_run_signs_through_the_signer() {
    let venue = Venue::start(&["--seed", "76"]);
    let launch = resting::launch(&venue, 3, "");
    let instance = started(&launch, &venue);
    wait("three orders rest", || open(&venue) == 3);
    let watchdog = processes::one(launch.data(), Which::Watchdog);
    let arguments = std::fs::read(format!("/proc/{watchdog}/cmdline")).unwrap();
    assert!(String::from_utf8_lossy(&arguments).contains("\0--signer\0"));
    instance.kill();
    wait("no order rests", || open(&venue) == 0);
    processes::wait_until_ended(launch.data(), &[Which::Watchdog]);
    until_signers_ended(&launch);
}

#[test]
fn the_countdown_of_a_killed_run_cancels_its_futures_orders() {
    let venue = Venue::start(&["--seed", "82"]);
    let launch = futures(&venue);
    let instance = started(&launch, &venue);
    wait("orders rest", || open(&venue) > 0);
    assert_eq!(
        processes::of(launch.data(), Which::Watchdog),
        Vec::<String>::new(),
        "a run without spot has no watchdog that could cancel"
    );
    instance.kill();
    wait("no order rests", || open(&venue) == 0);
    until_signers_ended(&launch);
}

#[test]
fn the_watchdog_of_a_killed_run_survives_the_death_of_the_signer() {
    let venue = Venue::start(&["--seed", "77"]);
    let launch = resting::launch(&venue, 3, "");
    let instance = started(&launch, &venue);
    wait("three orders rest", || open(&venue) == 3);
    let signer = processes::one(launch.data(), Which::Signer);
    instance.kill();
    processes::signal(&signer, "-9");
    wait("no order rests", || open(&venue) == 0);
    processes::wait_until_ended(launch.data(), &[Which::Watchdog]);
    until_signers_ended(&launch);
}

/// Places an order far below the bid of its instrument at each top of the book.
const FAR_ORDERS: Guest<'static> = Guest {
    on_event: "(if (i32.eq (local.get $kind) (i32.const 2)) (then
        (local.set $bid (i64.sub (local.get $a) (i64.div_s (local.get $a) (i64.const 20))))
        (drop (call $submit (local.get $instrument) (i32.const 0x10)
          (select (i64.const 100) (i64.const 10) (local.get $instrument))
          (i64.sub (local.get $bid) (i64.rem_s (local.get $bid) (i64.const 1000)))
          (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))",
    ..Guest::EMPTY
};

#[test]
fn a_halt_with_hundreds_of_orders_cancels_all_of_them() {
    let venue = Venue::start(&["--seed", "83"]);
    let module = venue.folder().join("far.wasm");
    FAR_ORDERS.write(&module);
    let file = venue.folder().join("far.toml");
    let text = r#"
[run]
mode = "live"

[heartbeat]
countdown_ms = 120000

[[strategy]]
id = "far"
module = "far.wasm"
instruments = ["futures:BTCUSDT", "futures:ETHUSDT"]
streams = ["book"]
"#;
    std::fs::write(&file, text).unwrap();
    let launch = Launch::new(&venue, &venue.folder().join("data"))
        .config(&file)
        .set(&format!("strategy.0.module={}", module.display()));
    let instance = started(&launch, &venue);
    // More cancels than a socket has room for. The countdown cannot have cancelled them.
    wait("hundreds of orders rest", || open(&venue) >= 390);
    assert_eq!(instance.done(&["halt"])["state"], "halted");
    let halted = Instant::now();
    wait("no order rests", || open(&venue) == 0);
    assert!(halted.elapsed() < Duration::from_secs(100));
    let log = instance.log();
    assert!(!log.contains("the signer does not answer"), "{log}");
    assert_eq!(instance.terminate().code(), Some(0));
    until_signers_ended(&launch);
}

#[test]
fn the_policy_file_limits_what_is_signed() {
    let venue = Venue::start(&["--seed", "78"]);
    let file = venue.folder().join("policy.toml");
    let policy = "opening_orders_per_minute = 100\n[[symbol]]\nname = \"futures:BTCUSDT\"\n\
                  max_quantity = \"0.001\"\n";
    std::fs::write(&file, policy).unwrap();
    let mode = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let launch = futures(&venue).set(&format!("signer.policy={}", file.display()));
    mode(0o666);
    let output = launch.output();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("chmod go-w"), "{text}");
    mode(0o600);
    let instance = launch.start();
    wait("the signer refuses an order", || {
        let log = instance.log();
        log.contains("the signer's policy forbids a request") && log.contains("max_quantity")
    });
    assert_eq!(accepted(&venue), 0);
    assert_eq!(instance.terminate().code(), Some(0));
    until_signers_ended(&launch);
}

/// Kills its watchdogs when it is dropped: without a signer they never end.
struct Watchdogs<'a>(&'a Launch);

impl Drop for Watchdogs<'_> {
    fn drop(&mut self) {
        processes::kill_watchdogs(self.0.data());
    }
}

#[test]
fn a_dead_keeper_with_keys_of_the_environment_is_reported_once() {
    const LAST: &str = "no other signer can be started";
    let venue = Venue::start(&["--seed", "80"]);
    let account = "[account]\napi_key = { env = \"WINDVANE_API_KEY\" }\n\
                   api_secret = { env = \"WINDVANE_API_SECRET\" }\n";
    let launch = resting::launch(&venue, 3, account).apart(&venue);
    let mut instance = started(&launch, &venue);
    let _watchdogs = Watchdogs(&launch);
    processes::kill(&processes::one(launch.data(), Which::Keeper));
    wait("the error is reported", || instance.log().contains(LAST));
    // The present signer goes on, and the run says what is at risk.
    let says = |status: &Value, what: &str| status.to_string().contains(what);
    instance.until("status", &|status| {
        status["state"] == "ready" && says(status, "signing ends with the present signer")
    });
    processes::kill(&processes::one(launch.data(), Which::Signer));
    instance.until("status", &|status| {
        let reasons = &status["degraded_reasons"];
        status["state"] == "degraded" && says(reasons, "spot orders stay open")
    });
    let log = instance.log();
    assert_eq!(log.matches(LAST).count(), 1, "{log}");
    assert!(
        log.contains("the signer does not answer, and no other can be started"),
        "{log}"
    );
    assert!(processes::of(launch.data(), Which::Signer).is_empty());
    instance.kill();
    until_signers_ended(&launch);
}
