//! The live binary and the fault simulator run the same session: a changed constant of the session
//! changes what both do.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use faults::life::{self, Options};
use faults::modules::Modules;
use windvane_model::planted::{Constant, change};
use windvane_tests::binary;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

/// The behaviour of a live run that the constants change.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    /// Whether the strategy's order reached the venue. If not, the program did not send it, because
    /// it had waited too long.
    places_orders: bool,
    /// The weight in its plan.
    planned: Option<String>,
    /// Its journal has more segments than the first one.
    has_short_segments: bool,
    /// It completed `on_stop` before it ended.
    ends_in_order: bool,
}

/// Runs the live binary against the simulated venue until its strategy has placed an order or was
/// too late.
fn run(changed: Option<Constant>) -> Shown {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let venue = Venue::start(&["--seed", "7"]);
    let mut launch = Launch::new(&venue, &data).modules(&["market_maker", "ema_cross"]);
    if let Some(constant) = changed {
        launch = launch.env("WINDVANE_CHANGED", constant.name());
    }
    let mut instance = launch.start();
    instance.ready();
    let places_orders = loop {
        if instance
            .log()
            .contains("ms to be sent: the dead man's switch may have acted already")
        {
            break false;
        }
        let orders = instance.answer("orders");
        if orders.as_array().is_some_and(|orders| !orders.is_empty()) {
            break true;
        }
    };
    let has_short_segments = std::fs::read_dir(data.join("journal")).unwrap().count() > 1;
    let log = instance.log();
    let plan = log
        .lines()
        .find(|line| line.contains("the plan of weights"));
    let planned = plan.and_then(|line| line.split("weight=").nth(1));
    Shown {
        places_orders,
        planned: planned.and_then(|rest| rest.split_whitespace().next().map(str::to_owned)),
        has_short_segments,
        ends_in_order: instance.terminate().success(),
    }
}

/// Seeds to run with each constant until one differs.
const SEEDS: std::ops::Range<u64> = 1..13;

/// The fingerprint of a seed's life.
fn lead(seed: u64, modules: &Modules, changed: Option<Constant>) -> String {
    change(changed);
    let options = Options {
        faults_ms: 6 * 60_000,
        ..Options::default()
    };
    let life = life::lead(seed, modules, &options).unwrap();
    change(None);
    life.fingerprint
}

#[test]
fn a_changed_constant_changes_the_live_run_and_a_seed() {
    binary::choose(Path::new(env!("CARGO_BIN_EXE_windvane-changed")));
    let modules = Modules::build().unwrap();
    let usual = run(None);
    assert!(usual.places_orders && usual.ends_in_order && !usual.has_short_segments);
    let seeds: Vec<_> = SEEDS.map(|seed| lead(seed, &modules, None)).collect();
    assert_eq!(
        lead(1, &modules, None),
        seeds[0],
        "a seed must always give the same life"
    );
    for constant in Constant::ALL {
        let (shown, name) = (run(Some(constant)), constant.name());
        let is_changed = match constant {
            Constant::LateOrder => !shown.places_orders,
            Constant::LaneReserve => shown.planned != usual.planned,
            Constant::SegmentBlocks => shown.has_short_segments,
            Constant::StopWithin => !shown.ends_in_order,
        };
        assert!(
            is_changed,
            "{name} must change the live run: {shown:?}, {usual:?}"
        );
        let mut all = SEEDS.zip(&seeds);
        let changes = all.any(|(seed, was)| lead(seed, &modules, Some(constant)) != *was);
        assert!(changes, "{name} must change the life of a seed");
    }
}
