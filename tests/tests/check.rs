//! `windvane check` of the real binary against the simulated venue. It reports whether a run can
//! start and what to fix, and it changes nothing.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::instance::Instance;
use windvane_tests::venue::Venue;

fn check(venue: &Venue, data: &Path, set: &[&str]) -> (Output, Value) {
    let mut command = Command::new(binary::path());
    command
        .current_dir(binary::root())
        .args([
            "check",
            "--json",
            "--config",
            "configs/live-sim.toml",
            "--venue",
        ])
        .arg(venue.file())
        .arg("--set")
        .arg(format!("run.data_dir={}", data.display()));
    for set in set {
        command.args(["--set", set]);
    }
    let output = command.output().unwrap();
    let printed = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, printed)
}

/// Lines of an area whose verdict is not `ok`.
fn complaints<'a>(printed: &'a Value, area: &str) -> Vec<&'a str> {
    let lines = printed["lines"].as_array().unwrap().iter();
    let of_area = lines.filter(|line| line["area"] == area && line["verdict"] != "ok");
    of_area
        .map(|line| line["found"].as_str().unwrap())
        .collect()
}

#[test]
fn a_correct_configuration_passes_and_changes_nothing() {
    let venue = Venue::start(&["--seed", "31"]);
    let data = venue.folder().join("data");
    let (output, printed) = check(&venue, &data, &[]);
    assert_eq!(output.status.code(), Some(0), "{printed:#} {output:?}");
    assert_eq!(printed["go"], json!(true));
    let areas: Vec<_> = printed["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| &line["area"])
        .collect();
    for area in [
        "configuration",
        "data",
        "confinement",
        "module",
        "keys",
        "address",
        "clock",
        "instruments",
        "limits",
        "weights",
        "strategy",
        "account",
        "permissions",
        "modes",
        "leverage",
        "orders",
        "trades",
        "user stream",
        "market data",
    ] {
        assert!(
            areas.contains(&&json!(area)),
            "{area} is missing: {areas:?}"
        );
    }
    let heartbeats = printed["plan"][0]["uses"].as_array().unwrap().iter();
    let heartbeats: Vec<_> = heartbeats
        .filter(|one| one["what"] == "heartbeats")
        .collect();
    assert_eq!(
        (&heartbeats[0]["weight"], &heartbeats[0]["sum"]),
        (&json!(10), &json!(60))
    );
    let text = format!("{output:?}");
    let account = &venue.line()["accounts"][0];
    for key in ["apiKey", "apiSecret", "userKey", "signerKey"] {
        let key = account[key].as_str().unwrap();
        assert!(
            !text.contains(key.trim_start_matches("0x")),
            "a key is printed"
        );
    }
    assert_eq!(venue.account()["orders"], json!([]));
    assert!(!data.exists(), "check created a data folder");
}

#[test]
fn problems_are_named_and_bad_configurations_exit_with_2() {
    let venue = Venue::start(&["--seed", "32"]);
    let data = venue.folder().join("data");
    let (output, printed) = check(&venue, &data, &["account.position_mode=hedge"]);
    assert_eq!(output.status.code(), Some(1), "{printed:#}");
    assert!(
        complaints(&printed, "modes")[0].contains("the account's mode is one-way"),
        "{printed:#}"
    );

    let many = ["heartbeat.interval_ms=200"];
    let (output, printed) = check(&venue, &data, &many);
    assert_eq!(output.status.code(), Some(2), "{printed:#}");
    let refused = complaints(&printed, "weights").join("");
    assert!(refused.contains("heartbeats 3000"), "{refused}");
    assert!(refused.contains("at most 0 symbols fit"), "{refused}");
    let run = Command::new(binary::path())
        .current_dir(binary::root())
        .args([
            "run",
            "--config",
            "configs/live-sim.toml",
            "--set",
            many[0],
            "--venue",
        ])
        .arg(venue.file())
        .arg("--set")
        .arg(format!("run.data_dir={}", data.display()))
        .output()
        .unwrap();
    let sentence = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(2), "{sentence}");
    assert!(sentence.contains("at most 0 symbols fit"), "{sentence}");

    let (output, printed) = check(
        &venue,
        &data,
        &["strategy.0.instruments=[\"futures:NOUSDT\"]"],
    );
    assert_eq!(output.status.code(), Some(2), "{printed:#}");
    assert!(
        complaints(&printed, "instruments")[0].contains("futures:NOUSDT"),
        "{printed:#}"
    );

    let (output, printed) = check(&venue, &data, &["strategy.0.params.qty=none"]);
    assert_eq!(output.status.code(), Some(2), "{printed:#}");
    assert!(
        complaints(&printed, "strategy")[0].starts_with("maker refuses"),
        "{printed:#}"
    );
}

#[test]
fn run_and_check_refuse_an_invalid_configuration() {
    let venue = Venue::start(&["--seed", "37"]);
    let data = venue.folder().join("data");
    for verb in ["run", "check"] {
        for (set, rule) in [
            (
                "heartbeat.interval_ms=20000",
                "leaves no time for a second renewal",
            ),
            ("heartbeat.countdown_ms=4000000", "from 1 to 3600000"),
        ] {
            let output = Command::new(binary::path())
                .current_dir(binary::root())
                .args([verb, "--config", "configs/live-sim.toml", "--venue"])
                .arg(venue.file())
                .args(["--set", set, "--set"])
                .arg(format!("run.data_dir={}", data.display()))
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{verb}: {printed}");
            assert!(printed.contains(rule), "{verb}: {printed}");
        }
    }
    assert!(!data.exists(), "a data folder was created");
}

#[test]
fn an_admin_server_that_cannot_start_is_a_no_go() {
    let venue = Venue::start(&["--seed", "35"]);
    let data = venue.folder().join("data");
    let (output, _) = check(&venue, &data, &["admin.listen=0.0.0.0:9999"]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("must be a loopback address"), "{printed}");

    let nowhere = venue.folder().join("nowhere");
    let token = format!(
        "admin.token={{ file = {:?} }}",
        nowhere.display().to_string()
    );
    let (output, printed) = check(&venue, &data, &[&token]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let complaint = complaints(&printed, "admin")[0];
    assert!(complaint.contains("cannot read secret file"), "{complaint}");

    let received = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("admin.listen={}", received.local_addr().unwrap());
    let (output, printed) = check(&venue, &data, &[&listen]);
    // A run starts without its port, so this is a warning.
    assert_eq!(output.status.code(), Some(0), "{printed:#}");
    let complaint = complaints(&printed, "admin")[0];
    assert!(
        complaint.contains("in use") && complaint.contains("try again"),
        "{complaint}"
    );
}

#[test]
fn a_disk_without_room_is_a_no_go() {
    let venue = Venue::start(&["--seed", "38"]);
    let data = venue.folder().join("data");
    for made in [false, true] {
        if made {
            std::fs::create_dir(&data).unwrap();
        }
        // On a full disk, files can be created but not filled. A file size limit behaves in the
        // same way.
        let output = Command::new("sh")
            .current_dir(binary::root())
            .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"])
            .arg(binary::path())
            .args(["check", "--json", "--config", "configs/live-sim.toml"])
            .arg("--venue")
            .arg(venue.file())
            .arg("--set")
            .arg(format!("run.data_dir={}", data.display()))
            .output()
            .unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(printed["go"], json!(false), "{printed:#}");
        let complaint = complaints(&printed, "data")[0];
        assert!(complaint.contains("too large"), "{complaint}");
    }
}

#[test]
fn wrong_keys_are_reported_as_the_problem() {
    let venue = Venue::start(&["--seed", "36"]);
    let data = venue.folder().join("data");
    let futures = &venue.line()["futures"];
    let address = |part: &str| format!("venue.futures.{part}={}", futures[part].as_str().unwrap());
    let key = venue.line()["accounts"][0]["apiKey"]
        .as_str()
        .unwrap()
        .to_owned();
    let output = Command::new(binary::path())
        .current_dir(binary::root())
        .args(["check", "--config", "configs/live-sim.toml", "--set"])
        .args([&address("rest"), "--set", &address("ws"), "--set"])
        .arg(format!("run.data_dir={}", data.display()))
        .env("WINDVANE_API_KEY", key)
        .env("WINDVANE_API_SECRET", "0".repeat(64))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("no-go: ") && printed.contains("-1022"),
        "{printed}"
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("correct account.api_secret") && !text.contains("try the check again"),
        "{text}"
    );
}

#[test]
fn only_paper_mode_works_without_keys() {
    let venue = Venue::start(&["--seed", "33"]);
    let data = venue.folder().join("data");
    let futures = &venue.line()["futures"];
    let address = |part: &str| format!("venue.futures.{part}={}", futures[part].as_str().unwrap());
    let run = |mode: &str, key: Option<&str>| {
        let mut command = Command::new(binary::path());
        command
            .current_dir(binary::root())
            .args(["check", "--json", "--config", "configs/live-sim.toml"])
            .args([
                "--set",
                &address("rest"),
                "--set",
                &address("ws"),
                "--set",
                mode,
                "--set",
            ])
            .arg(format!("run.data_dir={}", data.display()))
            .env_remove("WINDVANE_API_KEY")
            .env_remove("WINDVANE_API_SECRET");
        command.envs(key.map(|key| ("WINDVANE_API_KEY", key)));
        let output = command.output().unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), printed)
    };
    for (key, why) in [(None, "is not set"), (Some(" "), "is empty")] {
        let (code, printed) = run("run.mode=live", key);
        assert_eq!(code, Some(2), "{printed:#}");
        let complaint = complaints(&printed, "keys")[0];
        assert!(
            complaint.contains(&format!("WINDVANE_API_KEY {why}")),
            "{complaint}"
        );
    }
    let (code, printed) = run("run.mode=paper", None);
    assert_eq!(code, Some(0), "{printed:#}");
}

#[test]
fn a_folder_in_use_fails_and_foreign_orders_are_warnings() {
    let venue = Venue::start(&["--seed", "34"]);
    let data = venue.folder().join("data");
    let mut instance = Instance::start(&venue, &data);
    instance.ready();
    let order = [
        "symbol=BTCUSDT",
        "side=BUY",
        "type=LIMIT",
        "timeInForce=GTC",
        "quantity=0.01",
    ];
    let mut order: Vec<String> = order.map(str::to_owned).to_vec();
    order.push("price=30000".to_owned());
    venue.answer("v1", "futures.new_order", &order);
    let (output, printed) = check(&venue, &data, &[]);
    assert_eq!(output.status.code(), Some(1), "{printed:#}");
    assert!(
        complaints(&printed, "data")[0].contains("another instance, pid "),
        "{printed:#}"
    );
    assert!(
        complaints(&printed, "orders")[0].contains("1 of others"),
        "{printed:#}"
    );
    // The running instance must not be disturbed.
    assert_eq!(instance.answer("status")["state"], "ready");
    assert_eq!(instance.terminate().code(), Some(0));
}
