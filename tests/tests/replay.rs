//! `windvane replay` of the real binary on the journal of a real run. The modules must return the
//! same outputs again, and the replay must show how another module in place of one of them differs.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windvane_tests::admin::Sample;
use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::segment::damage;
use windvane_tests::venue::Venue;

/// Buys 0.01 BTC at market at each top of the book, and does nothing else.
const BUYER: Guest<'static> = Guest {
    on_event: "(if (i32.eq (local.get $kind) (i32.const 2))
      (then (drop (call $submit (i32.const 0) (i32.const 2) (i64.const 10) (i64.const 0)
        (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))))",
    ..Guest::EMPTY
};

fn replay(data: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let data = data.to_str().unwrap();
    let all = ["replay", data, "--json"].into_iter();
    let output = binary::run(all.chain(arguments.iter().copied()));
    let printed = serde_json::from_slice(&output.stdout);
    let printed = printed.unwrap_or_else(|_| json!(String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), printed)
}

/// The source of a strategy's answers (`module` or `journal`), and the hash of its module.
fn role<'a>(printed: &'a Value, id: &str) -> (&'a str, &'a str) {
    let mut roles = printed["modules"].as_array().unwrap().iter();
    let role = roles.find(|role| role["strategy"] == id).unwrap();
    let word = |field: &str| role[field].as_str().unwrap();
    (word("answers"), word("module_sha256"))
}

/// Whether the maker has an order.
fn quotes(orders: &Value) -> bool {
    let mut orders = orders.as_array().unwrap().iter();
    orders.any(|order| order["strategy"] == "maker")
}

/// The ids of the maker's orders.
fn quoted(orders: &Value) -> Vec<String> {
    let orders = orders.as_array().unwrap().iter();
    let own = orders.filter(|order| order["strategy"] == "maker");
    own.map(|order| order["client_order_id"].to_string())
        .collect()
}

/// The folder of a segment.
fn segment(data: &Path, number: u32) -> PathBuf {
    data.join("journal").join(format!("{number:08x}"))
}

/// Checks that a verification names the records that it could not compare. The journal has four
/// segments.
fn what_is_missing_is_told(data: &Path) {
    let missing = || {
        let (code, printed) = replay(data, &["--verify"]);
        assert_eq!(
            (code, &printed["equal"]),
            (Some(4), &json!(false)),
            "{printed:#}"
        );
        let problem = &printed["problems"][0]["what"];
        problem.as_str().unwrap().to_owned()
    };
    let away = data.join("away");
    for (number, word) in [
        (2, "are missing before it"),
        (4, "was durable and is not there"),
    ] {
        std::fs::rename(segment(data, number), &away).unwrap();
        let printed = missing();
        assert!(
            printed.contains(word) && printed.contains("record"),
            "{printed}"
        );
        std::fs::rename(&away, segment(data, number)).unwrap();
    }
    assert_eq!(replay(data, &["--verify"]).0, Some(0));

    damage(&segment(data, 2));
    missing();
}

#[test]
fn a_run_replays_equally_and_another_module_differs() {
    let venue = Venue::start(&["--seed", "51"]);
    let data = venue.folder().join("data");
    for _ in 0..2 {
        let mut instance = Instance::start(&venue, &data);
        instance.ready();
        instance.until("orders", &quotes);
        instance.kill();
    }
    let mut instance = Instance::start(&venue, &data);
    instance.ready();
    let first = quoted(&instance.until("orders", &quotes));
    instance.until("orders", &|orders| {
        quotes(orders) && quoted(orders) != first
    });
    // The buyer below needs tops of the book at which it can buy.
    let received = |instance: &Instance| {
        let metrics = instance.admin().metrics();
        let of_market = |sample: &&Sample| sample.name.starts_with("windvane_market_events_total");
        metrics
            .iter()
            .filter(of_market)
            .map(|sample| sample.value)
            .sum::<f64>()
    };
    while received(&instance) < 100.0 {
        instance.until("orders", &quotes);
    }
    assert_eq!(
        replay(&data, &["--verify"]).0,
        Some(1),
        "the journal is in use"
    );
    assert_eq!(instance.terminate().code(), Some(0));

    let (code, verified) = replay(&data, &["--verify"]);
    assert_eq!(code, Some(0), "{verified:#}");
    assert_eq!(verified["equal"], json!(true));
    // One segment for each start, and one for the states that the strategies saved at the orderly
    // end.
    assert_eq!(verified["segments"], json!(4));
    // The first quotes, and the quotes that replaced them.
    let answers = verified["module_answers"].as_u64().unwrap();
    assert!(answers >= 2, "{verified:#}");
    let (by, sha256) = role(&verified, "maker");
    assert_eq!((by, role(&verified, "ema").0), ("module", "module"));

    let kept = data.join("modules").join(format!("{sha256}.wasm"));
    let same = format!("maker={}", kept.display());
    let (code, same) = replay(&data, &["--module", &same]);
    assert_eq!(code, Some(0), "{same:#}");
    assert_eq!(same["changes"], json!([]), "{same:#}");
    assert!(
        same["simulated"]["old"]["orders_submitted"]
            .as_u64()
            .unwrap()
            > 0
    );
    assert_eq!(same["simulated"]["old"], same["simulated"]["new"]);

    let buyer = venue.folder().join("buyer.wasm");
    BUYER.write(&buyer);
    let buyer = format!("maker={}", buyer.display());
    let (code, other) = replay(&data, &["--module", &buyer]);
    assert_eq!(code, Some(0), "{other:#}");
    assert!(other["new"]["submits"].as_u64().unwrap() >= 3, "{other:#}");
    assert_eq!(other["new"]["cancels"], json!(0));
    assert!(other["old"]["submits"].as_u64().unwrap() >= 1, "{other:#}");
    let changes = other["changes"].as_array().unwrap();
    let first = changes
        .iter()
        .find(|change| change["only"] == "new")
        .unwrap();
    assert_eq!(
        (
            &first["intent"],
            &first["order"]["side"],
            &first["order"]["qty"]
        ),
        (&json!("submit"), &json!("Buy"), &json!("0.01"))
    );
    let simulated = &other["simulated"];
    assert!(
        simulated["new"]["fills"].as_u64().unwrap() >= 2,
        "{other:#}"
    );
    assert_eq!(simulated["old"], same["simulated"]["old"]);

    let (code, both) = replay(&data, &["--verify", "--module", &buyer]);
    assert_eq!(code, Some(0), "{both:#}");
    assert_eq!(
        (&both["equal"], &both["new"]),
        (&json!(true), &other["new"])
    );

    let module = std::fs::read(&kept).unwrap();
    std::fs::remove_file(&kept).unwrap();
    let (code, verified) = replay(&data, &[]);
    assert_eq!(code, Some(4), "{verified:#}");
    assert_eq!(role(&verified, "maker").0, "journal");
    assert_eq!(role(&verified, "ema").0, "module");
    let (code, printed) = replay(&data, &["--module", "nobody=no.wasm"]);
    assert_eq!(code, Some(2));
    let printed = printed.as_str().unwrap();
    assert!(
        printed.contains("the journal contains no strategy nobody"),
        "{printed}"
    );

    std::fs::write(&kept, "another file").unwrap();
    let (code, altered) = replay(&data, &["--verify"]);
    assert_eq!((code, &altered["equal"]), (Some(4), &json!(false)));
    std::fs::remove_file(&kept).unwrap();
    let (code, gone) = replay(&data, &["--verify"]);
    assert_eq!(
        (code, &gone["equal"]),
        (Some(4), &json!(false)),
        "no module could answer"
    );
    std::fs::write(&kept, module).unwrap();
    what_is_missing_is_told(&data);
}
