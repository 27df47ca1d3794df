//! The changed strategies of a reload start one after the other.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod guests;
#[path = "../../engine/tests/support/mod.rs"]
mod support;

use guests::{NOW, Script, Scripted};
use std::collections::VecDeque;

use support::{BTC, MM, OTHER, config, live_config};
use windvane_engine::Engine;
use windvane_model::codec::{RecordBody, RecordedInput};
use windvane_model::config::{EngineConfig, StrategyTerms};
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::forced::OnLiquidation;
use windvane_model::input::{Command, FaultKind};
use windvane_model::live::OnStop;
use windvane_model::{Event, EventKind, Intent, Level, MarketEvent, StrategyId, Time};
use windvane_session::{
    Checkpoint, Driver, EngineLoop, Input, JournalEvent, Made, Output, Reload, ReloadGuests,
    ReloadStarts, START_MAX_MS, Session, StartFailure, StartJob,
};

/// The version of the running instances.
const OLD: u8 = 1;
const NEW: u8 = 2;

/// Two strategies. An instance is its version, which is also its saved state.
struct PairScript {
    instances: [u8; 2],
    /// The events of the order book: the strategy and the version of its instance.
    called: Vec<(StrategyId, u8)>,
    saved: [Option<Vec<u8>>; 2],
    /// The strategies that saved their state since the last look.
    saves: Vec<StrategyId>,
    save_fails: bool,
}

type Pair = Scripted<PairScript>;

impl Script for PairScript {
    const COUNT: usize = 2;

    fn receive(&mut self, strategy: StrategyId, _: &Engine, event: &Event) {
        if event.kind == EventKind::BookTop {
            let version = self.instances[usize::from(strategy.0)];
            self.called.push((strategy, version));
        }
    }

    fn save(&mut self, strategy: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        if self.save_fails {
            return Err(FaultKind::Trap);
        }
        self.saves.push(strategy);
        let place = usize::from(strategy.0);
        self.saved[place] = Some(vec![self.instances[place]]);
        Ok(self.saved[place].clone())
    }

    fn made(&self) -> Vec<Made> {
        self.instances.iter().map(Pair::made_of).collect()
    }
}

impl ReloadGuests for Pair {
    type Instance = u8;

    fn instance(&self, strategy: StrategyId) -> &u8 {
        &self.instances[usize::from(strategy.0)]
    }

    fn replace(&mut self, strategy: StrategyId, instance: u8) -> u8 {
        std::mem::replace(&mut self.instances[usize::from(strategy.0)], instance)
    }

    fn another(instance: &u8) -> u8 {
        *instance
    }

    fn start(
        _: &mut u8,
        _: StrategyId,
        _: &mut EngineLoop,
        _: Option<&[u8]>,
    ) -> Result<Vec<Intent>, StartFailure> {
        Ok(Vec::new())
    }

    fn module(instance: &u8) -> [u8; 32] {
        [*instance; 32]
    }

    fn made_of(instance: &u8) -> Made {
        Made {
            params: vec![*instance],
            ..Made::default()
        }
    }

    fn take_instruments(_: &mut u8, _: &u8) {}
}

fn session() -> Session<Pair> {
    session_of(config())
}

fn session_of(mut config: EngineConfig) -> Session<Pair> {
    config.keep_journal = true;
    let pair = Scripted(PairScript {
        instances: [OLD; 2],
        called: Vec::new(),
        saved: [None, None],
        saves: Vec::new(),
        save_fails: false,
    });
    let mut driver = Driver::new(Engine::new(config).unwrap(), pair, true);
    driver.start(NOW, &[None, None], &[]).unwrap();
    guests::session(driver, &["mm", "other"], [OLD; 32])
}

/// Applies a reload that changes both strategies.
fn reloaded(session: &mut Session<Pair>) -> ReloadStarts<Pair> {
    let config = config();
    let terms = config.strategies.iter().map(|one| StrategyTerms {
        limits: one.limits.clone(),
        on_fault: one.on_fault,
    });
    let reload = Reload {
        instances: vec![NEW; 2],
        limits: config.limits,
        strategies: terms.collect(),
        on_stop: OnStop::Cancel,
        on_liquidation: OnLiquidation::default(),
    };
    let mut trial = session.begin_reload(NOW, reload).unwrap();
    trial.run();
    session.apply_reload(NOW, trial).unwrap()
}

/// The strategies and versions that an event of the order book calls.
fn called(session: &mut Session<Pair>, now: Time, bid: i64) -> Vec<(StrategyId, u8)> {
    let level = |price| Level { price, qty: 1 };
    let event = MarketEvent::Top {
        update_id: bid,
        bid: level(bid),
        ask: level(bid + 1),
    };
    let instrument = BTC;
    session.handle(now, Input::Market { instrument, event });
    std::mem::take(&mut session.guests_mut().called)
}

fn end(session: &mut Session<Pair>, now: Time, mut job: StartJob<Pair>) -> Result<(), String> {
    job.run();
    session.end_start(now, job).result.map(drop)
}

/// The outputs of the session. Each block becomes durable.
fn outputs(session: &mut Session<Pair>, now: Time) -> VecDeque<Output> {
    let mut outputs = VecDeque::new();
    while let Some(output) = session.poll_output() {
        if let Output::Append(block) = &output {
            let durable = JournalEvent::Durable(block.last_record);
            session.handle(now, Input::Journal(durable));
        }
        outputs.push_back(output);
    }
    outputs
}

/// The checkpoint of the segment that begins.
fn checkpoint(session: &mut Session<Pair>, now: Time) -> Option<(Checkpoint, u64)> {
    outputs(session, now)
        .into_iter()
        .find_map(|output| match output {
            Output::Roll(bytes, at) => {
                Some((Checkpoint::from_bytes(&bytes).unwrap(), at.last_record))
            }
            _ => None,
        })
}

#[test]
fn an_old_instance_goes_on_until_its_start_begins() {
    let mut session = session();
    let mut starts = reloaded(&mut session);
    assert_eq!(starts.len(), 2);
    let first = session.next_start(NOW, &mut starts).unwrap();
    assert_eq!(first.strategy(), MM);
    assert!(session.next_start(NOW, &mut starts).is_none());
    session.guests_mut().saves.clear();
    assert_eq!(called(&mut session, NOW, 100), [(OTHER, OLD)]);
    assert_eq!(end(&mut session, NOW, first), Ok(()));
    assert!(session.is_starting(), "no segment may begin yet");
    assert_eq!(called(&mut session, NOW, 101), [(MM, NEW), (OTHER, OLD)]);
    let second = session.next_start(NOW, &mut starts).unwrap();
    assert_eq!(second.strategy(), OTHER);
    assert_eq!(session.driver().guests().saves.last(), Some(&OTHER));
    assert_eq!(called(&mut session, NOW, 102), [(MM, NEW)]);
    assert_eq!(end(&mut session, NOW, second), Ok(()));
    assert!(!session.is_starting());
    assert!(session.next_start(NOW, &mut starts).is_none());
    assert_eq!(called(&mut session, NOW, 103), [(MM, NEW), (OTHER, NEW)]);
}

#[test]
fn a_start_that_hangs_does_not_hold_or_stop_the_next_one() {
    let mut session = session();
    let mut starts = reloaded(&mut session);
    let hangs = session.next_start(NOW, &mut starts).unwrap();
    let by = NOW.plus_ms(START_MAX_MS);
    session.handle(by, Input::Timeout);
    assert_eq!(session.engine().fault(MM), Some(FaultKind::Host));
    assert_eq!(session.engine().fault(OTHER), None);
    assert_eq!(called(&mut session, by, 100), [(OTHER, OLD)]);
    let next = session.next_start(by, &mut starts).unwrap();
    assert_eq!(next.strategy(), OTHER);
    // It has all of its time.
    let almost = by.plus_ms(START_MAX_MS - 1);
    session.handle(almost, Input::Timeout);
    assert_eq!(session.engine().fault(OTHER), None);
    assert_eq!(end(&mut session, almost, next), Ok(()));
    assert_eq!(called(&mut session, almost, 101), [(OTHER, NEW)]);
    assert!(end(&mut session, almost, hangs).is_err());
    assert_eq!(session.engine().fault(MM), Some(FaultKind::Host));
}

#[test]
fn a_strategy_that_fails_before_its_start_gets_its_instance_only() {
    let mut session = session();
    let mut starts = reloaded(&mut session);
    let first = session.next_start(NOW, &mut starts).unwrap();
    session.guests_mut().save_fails = true;
    assert_eq!(end(&mut session, NOW, first), Ok(()));
    assert!(session.next_start(NOW, &mut starts).is_none());
    assert!(starts.is_empty() && !session.is_starting());
    assert_eq!(session.engine().fault(OTHER), Some(FaultKind::Trap));
    assert_eq!(*session.driver().guests().instance(OTHER), NEW);
    session.guests_mut().save_fails = false;
    let job = session.steer(NOW, OTHER, Command::Resume).unwrap();
    assert_eq!(end(&mut session, NOW, job.unwrap()), Ok(()));
}

#[test]
fn a_stop_drops_the_starts_that_have_not_begun() {
    let mut session = session();
    let mut starts = reloaded(&mut session);
    let first = session.next_start(NOW, &mut starts).unwrap();
    session.handle(NOW, Input::Stop);
    assert!(session.next_start(NOW, &mut starts).is_none());
    assert!(starts.is_empty());
    drop(end(&mut session, NOW, first));
    assert!(!session.is_starting());
    assert_eq!(*session.driver().guests().instance(OTHER), OLD);
}

#[test]
fn a_segment_after_a_start_that_was_given_up_has_the_new_instance() {
    let mut session = session();
    outputs(&mut session, NOW);
    let mut starts = reloaded(&mut session);
    let hangs = session.next_start(NOW, &mut starts).unwrap();
    let by = NOW.plus_ms(START_MAX_MS);
    session.handle(by, Input::Timeout);
    let next = session.next_start(by, &mut starts).unwrap();
    assert_eq!(end(&mut session, by, next), Ok(()));
    // The hanging start is not over. A replay starts the next instance from the checkpoint.
    session.handle(by, Input::Timeout);
    let (checkpoint, _) = checkpoint(&mut session, by).unwrap();
    let place = usize::from(MM.0);
    assert_eq!(checkpoint.strategies[place].sha256, [NEW; 32]);
    assert_eq!(checkpoint.strategies[place].made.params, [NEW]);
    assert!(end(&mut session, by, hangs).is_err());
    let resumed = session.steer(by, MM, Command::Resume).unwrap().unwrap();
    assert_eq!(end(&mut session, by, resumed), Ok(()));
    assert!(called(&mut session, by, 100).contains(&(MM, NEW)));
}

#[test]
fn a_journal_that_fails_during_a_start_begins_a_segment_at_once() {
    let mut session = session_of(EngineConfig {
        live: Some(live_config()),
        ..config()
    });
    outputs(&mut session, NOW);
    let mut starts = reloaded(&mut session);
    let first = session.next_start(NOW, &mut starts).unwrap();
    let later = NOW.plus_ms(2_000);
    session.handle(later, Input::Timeout);
    assert!(checkpoint(&mut session, later).is_none(), "a start waits");
    session.handle(later, Input::Journal(JournalEvent::Failed));
    let is_degraded = |session: &Session<Pair>| {
        session
            .engine()
            .degraded_reasons()
            .contains(&DegradedReason::Journal)
    };
    assert!(is_degraded(&session));
    session.handle(later, Input::Timeout);
    let (_, at) = checkpoint(&mut session, later).unwrap();
    session.handle(later, Input::Journal(JournalEvent::Rolled(at)));
    assert!(!is_degraded(&session));
    assert!(session.is_starting());
    // The new segment says which instances start in it.
    session.handle(later.plus_ms(200), Input::Timeout);
    let blocks = outputs(&mut session, later).into_iter();
    let mut blocks = blocks.filter_map(|output| match output {
        Output::Append(block) => Some(block),
        _ => None,
    });
    assert!(blocks.any(|block| {
        let records = block.records().map(|(_, record)| record.unwrap());
        let mut bodies = records.map(|record| record.body);
        bodies.any(|body| matches!(body, RecordBody::Input(RecordedInput::Reconfigure(_))))
    }));
    assert_eq!(end(&mut session, later, first), Ok(()));
}
