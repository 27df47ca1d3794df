//! The table contains every metric that is written, and the page matches the table.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::view::{Status, StrategyState};

fn published() -> Published {
    let status = Status {
        state: State::Degraded,
        version: "0.1.0".into(),
        degraded_reasons: vec!["a".into(), "b".into()],
        ..Status::default()
    };
    let strategy = Strategy {
        id: "mm".into(),
        state: StrategyState::Quarantined,
        open_orders: 3,
        realized_pnl: "-12.5".into(),
        ..Strategy::default()
    };
    Published {
        status,
        strategies: vec![strategy],
        ..Published::default()
    }
}

#[test]
fn the_page_matches_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/METRICS.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page(),
        "METRICS.md differs from the table; run: cargo xtask docs"
    );
}

#[test]
fn names_and_labels_follow_the_prometheus_rules() {
    let mut names = BTreeSet::new();
    for line in table::LINES {
        assert!(names.insert(line.name), "{} is there twice", line.name);
        assert!(line.name.starts_with("windvane_"), "{}", line.name);
        let words = format!("{}{}", line.name, line.labels.concat());
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(words.bytes().all(allowed), "{}", line.name);
        let total = line.name.ends_with("_total");
        assert_eq!(total, line.kind == Kind::Counter, "{}", line.name);
        assert!(line.meaning.ends_with('.') && !line.unit.is_empty());
        assert!(!line.meaning.contains('|'), "a cell of the page");
    }
}

#[test]
fn states_and_strategies_are_shown_as_published() {
    let text = Metrics::detached().text(&published(), &Heartbeat::new());
    for line in [
        "windvane_state{state=\"degraded\"} 1",
        "windvane_state{state=\"ready\"} 0",
        "windvane_degraded_reasons 2",
        "windvane_doubts 2",
        "windvane_info{version=\"0.1.0\",mode=\"paper\"} 1",
        "windvane_realized_pnl{strategy=\"mm\"} -12.5",
        "windvane_unrealized_pnl{strategy=\"mm\"} NaN",
        "windvane_quarantined{strategy=\"mm\"} 1",
        "windvane_open_orders{strategy=\"mm\"} 3",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} not in\n{text}");
    }
}

#[test]
fn a_summary_shows_its_median_and_its_99th_percentile() {
    let metrics = Metrics::detached();
    metrics.within(|| {
        let latency = table::ORDER_LATENCY.of([]);
        // More than one block at once would not count completely: see `upkeep`.
        latency.record(Duration::from_micros(500));
        metrics.upkeep();
        for micros in 1..=1000 {
            latency.record(Duration::from_micros(micros));
        }
    });
    metrics.upkeep();
    let text = metrics.text(&published(), &Heartbeat::new());
    let quantile = |q: &str| -> f64 {
        let start = format!("windvane_order_latency_seconds{{quantile=\"{q}\"}} ");
        let found = text.lines().find_map(|line| line.strip_prefix(&start));
        found.expect("the quantile is there").parse().unwrap()
    };
    assert!(
        (quantile("0.5") - 500e-6).abs() < 10e-6,
        "{}",
        quantile("0.5")
    );
    assert!((quantile("0.99") - 990e-6).abs() < 15e-6);
    assert!(text.contains("windvane_order_latency_seconds_count 1001"));
}

#[test]
fn the_process_has_one_recorder_and_lines_write_to_it() {
    let metrics = Metrics::install().unwrap();
    assert_eq!(Metrics::install().unwrap_err(), AlreadyInstalled);
    table::BANS.of(["spot"]).increment(1);
    let text = metrics.text(&published(), &Heartbeat::new());
    assert!(text.contains("windvane_bans_total{surface=\"spot\"} 1"));
}

#[test]
fn every_line_can_be_written_and_only_lines_are_rendered() {
    let metrics = Metrics::detached();
    metrics.within(|| {
        table::ORDERS.of(["mm", "sent"]).increment(1);
        table::BUDGET_WAIT.of(["cancel"]).record(0.5);
    });
    let text = metrics.text(&published(), &Heartbeat::new());
    let mut typed = 0;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("# TYPE ") else {
            continue;
        };
        let (name, kind) = rest.split_once(' ').unwrap();
        let documented = table::LINES.iter().find(|line| line.name == name);
        let documented = documented.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(kind, documented.kind.as_str());
        typed += 1;
    }
    assert!(typed > 10, "{text}");
    assert!(text.contains("windvane_orders_total{strategy=\"mm\",outcome=\"sent\"} 1"));
}
