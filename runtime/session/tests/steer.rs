//! Operator commands for one strategy. A resume takes the strategy out of quarantine.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod guests;
#[path = "../../engine/tests/support/mod.rs"]
mod support;

use guests::{NOW, Script, Scripted};
use support::{BTC, config};
use windvane_engine::Engine;
use windvane_model::config::StrategyTerms;
use windvane_model::forced::OnLiquidation;
use windvane_model::input::{Command, FaultKind};
use windvane_model::instrument::SymbolStatus;
use windvane_model::live::OnStop;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::{Event, EventKind, Input, Intent, Level, MarketEvent, StrategyId};
use windvane_session::{
    BeginError, Driver, EngineLoop, Input as SessionInput, KillSwitchState, Made, Reload,
    ReloadGuests, Renewed, START_MAX_MS, Session, StartFailure, Started,
};

const ONE: StrategyId = StrategyId(0);

/// A strategy with a saved state.
#[derive(Default)]
struct SaverScript {
    saved: Option<Vec<u8>>,
    /// The instance in place.
    instance: Instance,
    /// The results of the starts, with the states that the new instances received.
    started: Vec<Result<Option<Vec<u8>>, String>>,
    /// The events that the instance in place received.
    received: Vec<EventKind>,
}

type Saver = Scripted<SaverScript>;

impl Script for SaverScript {
    fn saved(&self) -> Option<Vec<u8>> {
        self.saved.clone()
    }

    fn receive(&mut self, _: StrategyId, _: &Engine, event: &Event) {
        self.received.push(event.kind);
    }

    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        Ok(self.saved.clone())
    }

    fn trouble(&self) -> Option<&str> {
        let last = self.started.last()?;
        last.as_ref().err().map(String::as_str)
    }

    fn started(&mut self, result: Result<Option<&[u8]>, &str>) {
        self.started.push(match result {
            Ok(state) => Ok(state.map(<[u8]>::to_vec)),
            Err(reason) => Err(reason.to_owned()),
        });
    }
}

/// An instance of the strategy, which may fail to load its state.
#[derive(Clone, Copy, Default)]
struct Instance {
    forgets: bool,
    refuses: bool,
}

impl ReloadGuests for Saver {
    type Instance = Instance;

    fn instance(&self, _: StrategyId) -> &Instance {
        &self.instance
    }

    fn replace(&mut self, _: StrategyId, instance: Instance) -> Instance {
        std::mem::replace(&mut self.instance, instance)
    }

    fn another(instance: &Instance) -> Instance {
        *instance
    }

    fn start(
        instance: &mut Instance,
        _: StrategyId,
        engine: &mut EngineLoop,
        state: Option<&[u8]>,
    ) -> Result<Vec<Intent>, StartFailure> {
        // A strategy that starts may not order.
        assert_eq!(engine.engine().run_state(), RunState::Booting);
        let error = if instance.refuses {
            BeginError::Refused("no such period".to_owned())
        } else if instance.forgets && state.is_some() {
            BeginError::State("of another version".to_owned())
        } else {
            let (time, token) = (NOW.plus_ms(5), 7);
            return Ok(vec![Intent::SetTimer { time, token }]);
        };
        let details = String::new();
        Err(StartFailure { error, details })
    }

    fn module(instance: &Instance) -> [u8; 32] {
        [u8::from(instance.refuses) + 1; 32]
    }

    fn made_of(_: &Instance) -> Made {
        Made::default()
    }

    fn take_instruments(_: &mut Instance, _: &Instance) {}
}

/// A session whose strategy is paused by the operator and in quarantine.
fn quarantined(guests: Saver) -> Session<Saver> {
    let mut config = config();
    config.strategies.truncate(1);
    let mut driver = Driver::new(Engine::new(config).unwrap(), guests, true);
    driver.start(NOW, &[None], &[]).unwrap();
    let (strategy, kind) = (ONE, FaultKind::Trap);
    driver.handle(NOW, Input::Fault { strategy, kind });
    let command = Command::Pause;
    driver.handle(NOW, Input::Steer { strategy, command });
    guests::session(driver, &["one"], [0; 32])
}

fn top(bid: i64) -> SessionInput<'static> {
    let level = |price| Level { price, qty: 1 };
    SessionInput::Market {
        instrument: BTC,
        event: MarketEvent::Top {
            update_id: bid,
            bid: level(bid),
            ask: level(bid + 1),
        },
    }
}

fn state(session: &Session<Saver>) -> (bool, KillSwitch) {
    let engine = session.engine();
    (engine.fault(ONE).is_some(), engine.kill_switch_of(ONE))
}

/// Carries out a resume and its start at once.
fn resumed(session: &mut Session<Saver>) -> Result<Option<Started>, String> {
    let job = session.steer(NOW, ONE, Command::Resume)?;
    Ok(job.map(|mut job| {
        job.run();
        session.end_start(NOW, job)
    }))
}

#[test]
fn a_resume_frees_a_strategy_with_its_last_saved_state() {
    let saved = Some(b"what it knew".to_vec());
    let mut session = quarantined(Scripted(SaverScript {
        saved: saved.clone(),
        ..SaverScript::default()
    }));
    let started = resumed(&mut session).unwrap().unwrap();
    assert_eq!(started.result, Ok(Renewed::WithState));
    assert!(started.had_state);
    assert_eq!(state(&session), (false, KillSwitch::Clear));
    assert_eq!(session.driver().guests().started, [Ok(saved)]);
    // The strategy is out of quarantine, so a second resume starts no new instance.
    assert!(session.steer(NOW, ONE, Command::Resume).unwrap().is_none());
}

#[test]
fn a_strategy_that_cannot_load_its_state_is_freed_without_it() {
    let instance = Instance {
        forgets: true,
        ..Instance::default()
    };
    let mut session = quarantined(Scripted(SaverScript {
        saved: Some(Vec::new()),
        instance,
        ..SaverScript::default()
    }));
    let started = resumed(&mut session).unwrap().unwrap();
    let fresh = Renewed::Fresh("of another version".to_owned());
    assert_eq!(started.result, Ok(fresh));
    assert_eq!(state(&session), (false, KillSwitch::Clear));
    assert_eq!(session.driver().guests().started, [Ok(None)]);
}

#[test]
fn a_strategy_that_refuses_to_start_stays_in_quarantine() {
    let instance = Instance {
        refuses: true,
        ..Instance::default()
    };
    let mut session = quarantined(Scripted(SaverScript {
        instance,
        ..SaverScript::default()
    }));
    let started = resumed(&mut session).unwrap().unwrap();
    assert!(started.result.unwrap_err().contains("no such period"));
    assert_eq!(state(&session), (true, KillSwitch::Paused));
}

#[test]
fn other_commands_start_no_new_instance() {
    let mut session = quarantined(Saver::default());
    assert!(session.steer(NOW, ONE, Command::Halt).unwrap().is_none());
    assert_eq!(state(&session), (true, KillSwitch::Halted));
}

#[test]
fn a_starting_strategy_gets_its_events_when_the_start_ends() {
    let mut session = quarantined(Saver::default());
    let mut job = session.steer(NOW, ONE, Command::Resume).unwrap().unwrap();
    assert!(session.is_starting());
    // The fault is cleared, but the new instance is not there yet.
    assert!(session.engine().fault(ONE).is_none());
    assert_eq!(session.driver().guests().received, []);
    // The command of the resume waits for the end. Other commands do not.
    assert_eq!(session.engine().kill_switch_of(ONE), KillSwitch::Paused);
    session.handle(NOW, SessionInput::Command(Command::Pause, None));
    session.handle(NOW, top(100));
    assert_eq!(session.driver().guests().received, []);
    job.run();
    let started = session.end_start(NOW, job);
    assert_eq!(started.result, Ok(Renewed::WithState));
    assert!(!session.is_starting());
    let received = &session.driver().guests().received;
    assert!(received.contains(&EventKind::RuntimeState), "{received:?}");
    // Market data of the meantime is old, so it is not delivered.
    assert!(!received.contains(&EventKind::BookTop), "{received:?}");
    session.handle(NOW, top(101));
    let received = &session.driver().guests().received;
    assert_eq!(received.last(), Some(&EventKind::BookTop));
    // The timer of `start` is set.
    assert!(session.engine().has_timer(ONE, 7));
}

#[test]
fn a_halt_during_the_start_of_a_resume_stays_in_effect() {
    for command in [Command::Halt, Command::Flatten, Command::Pause] {
        let mut session = quarantined(Saver::default());
        let mut job = session.steer(NOW, ONE, Command::Resume).unwrap().unwrap();
        assert!(session.steer(NOW, ONE, command).unwrap().is_none());
        let held = session.engine().kill_switch_of(ONE);
        assert_ne!(held, KillSwitch::Clear);
        job.run();
        let started = session.end_start(NOW, job);
        assert_eq!(started.result, Ok(Renewed::WithState));
        assert_eq!(state(&session), (false, held), "{command:?}");
    }
}

#[test]
fn a_resume_during_a_stop_is_refused() {
    let mut session = quarantined(Saver::default());
    session.handle(NOW, SessionInput::Stop);
    let refused = session.steer(NOW, ONE, Command::Resume).unwrap_err();
    assert!(!refused.is_empty());
    assert_eq!(session.engine().fault(ONE), Some(FaultKind::Trap));
}

#[test]
fn a_start_that_takes_too_long_is_given_up() {
    let mut session = quarantined(Saver::default());
    let mut job = session.steer(NOW, ONE, Command::Resume).unwrap().unwrap();
    let by = NOW.plus_ms(START_MAX_MS);
    assert!(session.poll_timeout().is_some_and(|(due, _)| due <= by));
    session.handle(by, SessionInput::Timeout);
    assert_eq!(session.engine().fault(ONE), Some(FaultKind::Host));
    assert!(!session.is_starting());
    let refused = session.steer(by, ONE, Command::Resume).unwrap_err();
    assert!(refused.contains("not over yet"), "{refused}");
    job.run();
    let started = session.end_start(by, job);
    assert!(started.result.unwrap_err().contains("60 s"));
    assert_eq!(session.engine().fault(ONE), Some(FaultKind::Host));
    assert!(session.steer(by, ONE, Command::Resume).unwrap().is_some());
}

#[test]
fn a_stop_does_not_wait_for_a_start() {
    let mut session = quarantined(Saver::default());
    let mut job = session.steer(NOW, ONE, Command::Resume).unwrap().unwrap();
    session.handle(NOW, SessionInput::Stop);
    session.handle(NOW, SessionInput::Stop);
    job.run();
    let started = session.end_start(NOW, job);
    assert!(started.result.is_err());
    assert_eq!(session.driver().guests().received, []);
}

fn reload(instance: Instance) -> Reload<Instance> {
    let config = config();
    let terms = StrategyTerms {
        limits: config.strategies[0].limits.clone(),
        on_fault: config.strategies[0].on_fault,
    };
    Reload {
        instances: vec![instance],
        limits: config.limits,
        strategies: vec![terms],
        on_stop: OnStop::Cancel,
        on_liquidation: OnLiquidation::default(),
    }
}

/// A session whose strategy runs.
fn running() -> Session<Saver> {
    let mut session = quarantined(Saver::default());
    resumed(&mut session).unwrap();
    let guests = session.guests_mut();
    guests.started.clear();
    guests.received.clear();
    session
}

#[test]
fn a_reload_that_fails_its_test_never_stops_the_running_instance() {
    let mut session = running();
    let next = Instance {
        refuses: true,
        ..Instance::default()
    };
    let mut trial = session.begin_reload(NOW, reload(next)).unwrap();
    // The running instance is called during the test.
    session.handle(NOW, top(100));
    assert_eq!(session.driver().guests().received, [EventKind::BookTop]);
    let records = session.engine().records();
    trial.run();
    let refused = session.apply_reload(NOW, trial).unwrap_err();
    assert!(refused.to_string().contains("no such period"), "{refused}");
    assert_eq!(session.engine().records(), records);
    assert_eq!(session.driver().guests().started, []);
}

#[test]
fn a_second_reload_waits_for_the_start_of_the_first() {
    let mut session = running();
    let saved = Some(b"state at the reload".to_vec());
    session.guests_mut().saved.clone_from(&saved);
    // The hash of the module differs, so the reload changes the strategy.
    session.guests_mut().instance.refuses = true;
    let next = Instance::default();
    let mut trial = session.begin_reload(NOW, reload(next)).unwrap();
    trial.run();
    let mut starts = session.apply_reload(NOW, trial).unwrap();
    assert_eq!(starts.len(), 1);
    for job in [None, session.next_start(NOW, &mut starts)] {
        let refused = session.begin_reload(NOW, reload(next)).unwrap_err();
        assert!(refused.to_string().contains("not over yet"), "{refused}");
        let Some(mut job) = job else { continue };
        job.run();
        assert_eq!(session.end_start(NOW, job).result, Ok(Renewed::WithState));
    }
    assert_eq!(session.driver().guests().started, [Ok(saved)]);
    assert!(session.begin_reload(NOW, reload(next)).is_ok());
}

/// The kind of the quarantine in the kill switch file.
fn stored(session: &Session<Saver>) -> Option<String> {
    let file = session.kill_switch().file_content();
    let (kind, _) = file.strategies.get("one")?.quarantine.clone()?;
    Some(kind)
}

#[test]
fn the_file_keeps_a_quarantine_until_its_resume_ended_well() {
    let mut session = quarantined(Saver::default());
    let trap = FaultKind::Trap.as_str().to_owned();
    assert_eq!(stored(&session).as_ref(), Some(&trap));
    let mut job = session.steer(NOW, ONE, Command::Resume).unwrap().unwrap();
    session.handle(NOW, SessionInput::Command(Command::Pause, None));
    assert_eq!(stored(&session), Some(trap));
    // A process that dies now leaves a journal without the fault. The next one takes it from the file.
    let file = session.kill_switch().file_content().clone();
    let next = KillSwitchState::new(file, std::iter::once("one".to_owned()));
    let missing = next.missing(session.engine());
    let (strategy, kind) = (ONE, FaultKind::Trap);
    assert_eq!(missing, [Input::Fault { strategy, kind }]);
    job.run();
    let started = session.end_start(NOW, job);
    assert_eq!(started.result, Ok(Renewed::WithState));
    assert_eq!(stored(&session), None);

    let mut session = quarantined(Saver::default());
    let job = session.steer(NOW, ONE, Command::Resume).unwrap();
    let by = NOW.plus_ms(START_MAX_MS);
    session.handle(by, SessionInput::Timeout);
    assert!(job.is_some());
    assert_eq!(stored(&session).as_deref(), Some(FaultKind::Host.as_str()));
}

#[test]
fn the_run_state_is_the_last_event_of_a_start() {
    let mut config = config();
    config.strategies.truncate(1);
    let mut driver = Driver::new(Engine::new(config).unwrap(), Saver::default(), true);
    driver.start(NOW, &[None], &[]).unwrap();
    driver.begin_start(NOW, ONE);
    driver.handle(NOW, Input::Command(Command::Pause));
    driver.handle(NOW, Input::Command(Command::Resume));
    let status = SymbolStatus::Other("CLOSE".to_owned());
    let (instrument, status) = (BTC, &status);
    driver.handle(NOW, Input::SymbolStatus { instrument, status });
    driver.end_start(NOW, ONE, Ok(&[]));
    let received = &driver.guests().received;
    let states = received
        .iter()
        .filter(|kind| **kind == EventKind::RuntimeState);
    assert_eq!(states.count(), 1, "{received:?}");
    assert_eq!(received.last(), Some(&EventKind::RuntimeState));
    let rules = received.iter().filter(|kind| **kind == EventKind::Rules);
    assert_eq!(rules.count(), 2, "{received:?}");
}
