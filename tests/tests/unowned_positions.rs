//! The operator removes a strategy that holds a position from the configuration. `reload` and
//! `check` warn before that, and the run that makes the position unowned logs it. A start that is
//! refused makes no position unowned.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::modules;
use windvane_tests::venue::Venue;

/// `configs/live-sim.toml` with modules that are already built, and a trend follower that trades
/// soon.
fn configuration() -> String {
    let mut text = include_str!("../../configs/live-sim.toml").to_owned();
    for strategy in ["market_maker", "ema_cross"] {
        let folder = format!("strategies/{strategy}");
        text = text.replace(&folder, &modules::built(strategy).display().to_string());
    }
    text.replace("fast = 100", "fast = 5")
        .replace("slow = 400", "slow = 20")
}

/// The configuration without the trend follower.
fn without_ema(text: &str) -> String {
    let at = text.find("[[strategy]]\nid = \"ema\"").unwrap();
    text[..at].to_owned()
}

/// The strategy's position in the one instrument; `None` if it is flat.
fn held(instance: &Instance, strategy: &Value) -> Option<String> {
    let positions = instance.answer("positions");
    let mut rows = positions.as_array().unwrap().iter();
    let row = rows.find(|row| row["strategy"] == *strategy)?;
    Some(row["qty"].as_str().unwrap().to_owned())
}

/// Trades until the follower holds a position, then halts. A pause would let it close the position.
fn until_held(instance: &mut Instance) -> String {
    loop {
        instance.until("positions", &|rows| {
            let mut rows = rows.as_array().unwrap().iter();
            rows.any(|row| row["strategy"] == "ema")
        });
        instance.answer("halt");
        instance.until("orders", &|orders| *orders == json!([]));
        if let Some(qty) = held(instance, &json!("ema")) {
            return qty;
        }
        instance.answer("resume");
    }
}

/// The lines of `windvane check` about positions.
fn checked(venue: &Venue, data: &Path, config: &Path) -> Vec<Value> {
    let output = Command::new(binary::path())
        .current_dir(binary::root())
        .args(["check", "--json", "--config"])
        .arg(config)
        .arg("--venue")
        .arg(venue.file())
        .arg("--set")
        .arg(format!("run.data_dir={}", data.display()))
        .output()
        .unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = printed["lines"].as_array().unwrap().iter();
    lines
        .filter(|line| line["area"] == "positions")
        .cloned()
        .collect()
}

#[test]
fn removing_a_strategy_warns_about_its_position() {
    let venue = Venue::start(&["--seed", "61"]);
    let (data, file) = (venue.folder().join("data"), venue.folder().join("own.toml"));
    let text = configuration();
    std::fs::write(&file, &text).unwrap();
    let launch = Launch::new(&venue, &data).config(&file);
    let mut instance = launch.start();
    instance.ready();
    let qty = until_held(&mut instance);
    let position = format!("ema holds {qty} futures:BTCUSDT");
    std::fs::write(&file, without_ema(&text)).unwrap();

    let refused = instance.run_verb(&["reload"]);
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(printed.contains(&position), "{printed}");
    assert!(
        printed.contains("windvane flatten --strategy ema"),
        "{printed}"
    );
    let log = instance.log();
    assert!(
        log.contains("would leave a position without a strategy"),
        "{log}"
    );
    assert_eq!(instance.terminate().code(), Some(0));

    let lines = checked(&venue, &data, &file);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["verdict"], "warn");
    let found = lines[0]["found"].as_str().unwrap();
    assert!(found.starts_with(&position), "{found}");
    let mend = lines[0]["mend"].as_str().unwrap();
    assert!(
        mend.contains("put it back into the configuration"),
        "{mend}"
    );
    let other = venue.folder().join("other.toml");
    std::fs::write(&other, &text).unwrap();
    assert_eq!(checked(&venue, &data, &other), Vec::<Value>::new());
    // Removing the instrument from the configuration has the same effect.
    std::fs::write(&other, text.replace("futures:BTCUSDT", "futures:ETHUSDT")).unwrap();
    let lines = checked(&venue, &data, &other);
    let named = |line: &Value| line["found"].as_str().unwrap().starts_with(&position);
    assert!(lines.iter().any(named), "{lines:?}");

    let mut instance = launch.start();
    instance.until("status", &|status| status["state"] == "halted");
    let log = instance.log();
    let reported =
        "belongs to no strategy any more, because its strategy or instrument is not configured";
    let line = log.lines().find(|line| line.contains(reported));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    for word in ["WARN", "ema", "futures:BTCUSDT", &qty, "close it by hand"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    assert_eq!(held(&instance, &json!("ema")), None);
    assert_ne!(
        held(&instance, &Value::Null),
        None,
        "the account still holds the position"
    );
    assert_eq!(instance.terminate().code(), Some(0));
}

/// The files of the journal with their sizes in bytes.
fn journal(data: &Path) -> BTreeMap<PathBuf, u64> {
    let mut files = BTreeMap::new();
    let mut folders = vec![data.join("journal")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path(), about.len());
            }
        }
    }
    files
}

#[test]
fn a_refused_start_changes_no_position_and_no_state() {
    let venue = Venue::start(&["--seed", "62"]);
    let (data, file) = (venue.folder().join("data"), venue.folder().join("own.toml"));
    let module = venue.folder().join("keeper.wasm");
    Guest::default().write(&module);
    let text = configuration();
    let keeper = format!(
        "\n[[strategy]]\nid = \"keeper\"\nmodule = \"{}\"\ninstruments = [\"futures:BTCUSDT\"]\n",
        module.display()
    );
    let text = text + &keeper;
    std::fs::write(&file, &text).unwrap();
    let launch = Launch::new(&venue, &data).config(&file);
    let mut instance = launch.start();
    instance.ready();
    let qty = until_held(&mut instance);
    let positions = instance.answer("positions");
    assert_eq!(instance.terminate().code(), Some(0));
    let log = std::fs::read_to_string(data.with_extension("log")).unwrap();
    let lines = log.lines();
    let of_stop: Vec<_> = lines
        .filter(|line| line.contains("positions stay open after this stop"))
        .collect();
    let named = format!("{qty} futures:BTCUSDT of ema");
    assert!(of_stop.len() == 1 && of_stop[0].contains(&named), "{log}");

    let segments = journal(&data);
    let bad = without_ema(&text).replace("\"touch\"", "\"neither\"");
    std::fs::write(&file, bad).unwrap();
    let refused = launch.output();
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("strategy maker refuses to start: "),
        "{printed}"
    );
    assert!(
        !printed.contains("belongs to no strategy"),
        "it did not come about: {printed}"
    );
    assert_eq!(journal(&data), segments);

    std::fs::write(&file, &text).unwrap();
    assert_eq!(checked(&venue, &data, &file), Vec::<Value>::new());
    let picky = Guest {
        load_refusal: "this was saved",
        ..Guest::default()
    };
    picky.write(&module);
    let mut instance = launch.start();
    instance.until("status", &|status| status["state"] == "halted");
    assert_eq!(held(&instance, &json!("ema")), Some(qty));
    assert_eq!(instance.answer("positions"), positions);
    let shown = instance.answer("strategies");
    let mut rows = shown.as_array().unwrap().iter();
    let keeper = rows.find(|row| row["id"] == "keeper").unwrap();
    assert_eq!(
        keeper["fault"], "state",
        "the strategy must get its state: {keeper}"
    );
    assert_eq!(instance.terminate().code(), Some(0));
    let replay = binary::run(["replay".as_ref(), data.as_os_str(), "--verify".as_ref()]);
    assert!(replay.status.success(), "{replay:?}");
}

#[test]
fn a_start_stopped_early_names_the_positions_of_the_journal() {
    let mut venue = Venue::start(&["--seed", "63"]);
    let data = venue.folder().join("data");
    let file = venue.folder().join("own.toml");
    std::fs::write(&file, configuration()).unwrap();
    let launch = Launch::new(&venue, &data)
        .config(&file)
        .set("run.on_stop=flatten");
    let mut instance = launch.start();
    instance.ready();
    let qty = until_held(&mut instance);
    instance.kill();
    venue.stop();

    let mut instance = launch.start();
    instance.until("status", &|status| {
        let reason = status["reason"].as_str().unwrap();
        reason.contains("reading the venue's clock")
    });
    let log_file = data.with_extension("log");
    assert_eq!(instance.terminate().code(), Some(1));
    let log = std::fs::read_to_string(log_file).unwrap();
    assert!(log.contains("nothing was cancelled or closed"), "{log}");
    assert!(
        log.contains(&format!("ema holds {qty} futures:BTCUSDT")),
        "{log}"
    );
}
