//! Helpers that these tests share: a configuration with many own orders, and waits for states.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_tests::agreement;
use windvane_tests::binary;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

/// Longest wait for a state; it includes one build of the strategies.
pub const PATIENCE: Duration = Duration::from_mins(4);
/// Longest time until both sides agree once nothing changes any more.
pub const REST: Duration = Duration::from_mins(1);

/// Writes `configs/live-sim.toml` with a third strategy that has 200 resting orders in the book of
/// another instrument.
pub fn crowded(folder: &Path) -> PathBuf {
    let usual = std::fs::read_to_string(binary::root().join("configs/live-sim.toml")).unwrap();
    let roomy = usual
        .replace("max_open_orders = 50", "max_open_orders = 400")
        .replace(
            "max_orders_per_minute = 600",
            "max_orders_per_minute = 1100",
        );
    assert_ne!(usual, roomy, "the configuration has these limits");
    let grid = r#"
[[strategy]]
id = "grid"
module = "strategies/grid"
instruments = ["futures:ETHUSDT"]
streams = ["book"]
on_fault = "cancel"

[strategy.params]
qty = "0.01"
levels = 100
step_ticks = 100
"#;
    let file = folder.join("crowded.toml");
    std::fs::write(&file, roomy + grid).unwrap();
    file
}

/// `configs/live-sim.toml` with modules that are already built.
pub fn launch(venue: &Venue) -> Launch {
    let modules = ["market_maker", "ema_cross"];
    Launch::new(venue, &venue.folder().join("data")).modules(&modules)
}

/// Whether a status has this state.
pub fn state(is: &'static str) -> impl Fn(&Value) -> bool {
    move |status| status["state"] == is
}

/// Waits until the run is ready, and returns how long that took.
pub fn ready(instance: &mut Instance) -> Duration {
    let admin = instance.admin();
    let (_, took) = instance.until_shown(&admin, "/api/status", PATIENCE, &state("ready"));
    took
}

/// Waits until own orders rest at the venue.
pub fn trading(instance: &mut Instance, venue: &Venue) {
    let admin = instance.admin();
    let resting = |orders: &Value| {
        let orders = orders.as_array().into_iter().flatten();
        orders.into_iter().any(|order| order["status"] == "NEW")
    };
    instance.until_shown(&admin, "/api/orders", PATIENCE, &resting);
    assert!(!open_orders(&venue.account()).is_empty());
}

/// Number of positions of the venue's account.
pub fn positions(account: &Value) -> usize {
    account["positions"].as_array().unwrap().len()
}

/// Client order ids of the grid's orders with this status, from the venue's list.
pub fn of_grid(venue: &Venue, status: &str) -> Vec<String> {
    let account = venue.account();
    let orders = account["orders"].as_array().unwrap().iter();
    let of_status = orders.filter(|order| order["status"] == status);
    let ids = of_status.filter_map(|order| order["client_order_id"].as_str());
    ids.filter(|id| id.starts_with("grid."))
        .map(str::to_owned)
        .collect()
}

/// Open orders of the venue's account.
pub fn open_orders(account: &Value) -> Vec<&Value> {
    let orders = account["orders"].as_array().unwrap().iter();
    orders
        .filter(|order| order["open"] == json!(true))
        .collect()
}

/// Halts, waits until both sides agree and no order rests, and checks the other invariants.
pub fn halt_and_agree(instance: &mut Instance, venue: &Venue) -> (Value, Value) {
    let admin = instance.admin();
    admin.command("/api/halt");
    instance.until_shown(&admin, "/api/orders", REST, &|orders| *orders == json!([]));
    let (own, account) = agreed(instance, venue);
    assert_eq!(open_orders(&account), Vec::<&Value>::new());
    (own, account)
}

/// Waits until both sides agree, and checks the other invariants.
pub fn agreed(instance: &Instance, venue: &Venue) -> (Value, Value) {
    let (own, account) = agreement::wait(&instance.admin(), venue, REST)
        .unwrap_or_else(|differing| panic!("{differing:#?}\n{}", instance.log()));
    let wrongs = agreement::wrongs(&own, &account);
    assert!(wrongs.is_empty(), "{wrongs:#?}\n{}", instance.log());
    (own, account)
}

/// Waits until the venue's countdown has cancelled all resting orders.
pub fn dead_man(venue: &Venue, within: Duration) {
    let begin = Instant::now();
    while !open_orders(&venue.account()).is_empty() {
        assert!(
            begin.elapsed() < within,
            "orders still rest after their countdown"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    println!(
        "the venue's countdown cancelled all resting orders after {:?}",
        begin.elapsed()
    );
}

/// Compiles a library from its source that replaces system calls in a process that preloads it.
pub fn library(folder: &Path, name: &str, source: &str) -> PathBuf {
    let file = folder.join(name).with_extension("rs");
    std::fs::write(&file, source).unwrap();
    let library = folder.join(format!("lib{name}.so"));
    let compiler = Path::new(env!("CARGO")).with_file_name("rustc");
    let made = Command::new(compiler)
        .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
        .args([&library, &file])
        .status();
    assert!(made.unwrap().success(), "the library compiles");
    library
}
