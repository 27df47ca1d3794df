//! Tests of the only loop around the engine.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../engine/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

use support::{Account, MM, config, fill, limit, report};
use windvane_engine::Engine;
use windvane_model::input::FaultKind;
use windvane_model::{
    Event, Input, Notice, OrderStatus, Outcome, Request, Side, StrategyId, Time, UserEvent,
};
use windvane_session::{EffectHandler, EngineLoop, feed_answer};

/// Strategies that fail at every event.
#[derive(Default)]
struct Failing {
    calls: u32,
}

impl EffectHandler for Failing {
    fn deliver(
        &mut self,
        _: StrategyId,
        engine: Box<Engine>,
        _: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        self.calls += 1;
        (engine, Err(FaultKind::Trap))
    }

    fn settle(
        &mut self,
        now: Time,
        strategy: StrategyId,
        engine: &mut Engine,
        _: &Event,
        result: Result<(), FaultKind>,
    ) {
        feed_answer(now, strategy, engine, result.map(|()| [].as_slice()));
    }

    fn send(&mut self, _: Time, _: u64, _: Box<Request>) {}

    fn notice(&mut self, _: &Engine, _: Notice) {}
}

#[test]
fn a_strategy_that_failed_is_not_called_again() {
    let mut account = Account::new(config());
    account.top(1_000, 1_002);
    let order = account.submit(MM, limit(Side::Buy, 900, 10));
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    let now = account.now;
    let mut core = EngineLoop::new(account.engine);
    // A fill leads to several events for the strategy of its order.
    let event = UserEvent::Order(fill(id, Side::Buy, 1, 10, 10, OrderStatus::Filled));
    core.handle(now, Input::User(&event));
    let mut failing = Failing::default();
    core.drain(now, &mut failing);
    assert_eq!(core.engine().fault(MM), Some(FaultKind::Trap));
    assert_eq!(failing.calls, 1);
}

/// The fault simulator tests the loop that trades only if there is no second loop.
#[test]
fn only_the_engine_loop_polls_effects_and_notices() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in [
        "runtime/engine/src",
        "runtime/session/src",
        "runtime/backtest/src",
        "runtime/replay/src",
        "runtime/live/src",
        "runtime/cli/src",
        "tests/faults/src",
    ] {
        let mut files = Vec::new();
        sources(&root.join(folder), &mut files);
        assert!(!files.is_empty(), "{folder}");
        let drains = |path: &PathBuf| {
            let source = std::fs::read_to_string(path).unwrap();
            // Unit tests may poll an engine directly, and the engine defines both functions.
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            let mut lines = code
                .lines()
                .map(str::trim)
                .filter(|line| !line.starts_with("//") && !line.starts_with("pub fn poll_"));
            lines.any(|line| line.contains("poll_effect") || line.contains("poll_notice"))
        };
        found.extend(files.into_iter().filter(drains));
    }
    let only = root.join("runtime/session/src/engine_loop.rs");
    assert_eq!(found, [only]);
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}
