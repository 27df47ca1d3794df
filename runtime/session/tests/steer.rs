//! Operator commands for one strategy. A resume takes the strategy out of quarantine.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../engine/tests/support/mod.rs"]
mod support;

use support::config;
use windvane_client_core::streams::StreamSettings;
use windvane_engine::Engine;
use windvane_model::input::{Command, FaultKind};
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_model::run_state::KillSwitch;
use windvane_model::{Event, Input, Intent, StrategyId, Time};
use windvane_session::{
    Account, BLOCKS_UNDER_WAY, Clock, Driver, Freed, Guests, InitResult, KillSwitchState, Parts,
    Renewed, Session,
};

const ONE: StrategyId = StrategyId(0);
const NOW: Time = Time(1_700_000_000_000_000_000);

/// A strategy with a saved state.
#[derive(Default)]
struct Saver {
    saved: Option<Vec<u8>>,
    /// `load` fails.
    forgets: bool,
    /// No new instance can be made.
    is_gone: bool,
    /// The states that new instances received.
    given: Vec<Vec<u8>>,
}

impl Guests for Saver {
    fn count(&self) -> usize {
        1
    }

    fn saved(&self, _: StrategyId) -> Option<Vec<u8>> {
        self.saved.clone()
    }

    fn renew(&mut self, _: StrategyId) -> Result<(), String> {
        if self.is_gone {
            return Err("gone".to_owned());
        }
        Ok(())
    }

    fn init(&mut self, _: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        (engine, InitResult::Ready)
    }

    fn deliver(
        &mut self,
        _: StrategyId,
        engine: Box<Engine>,
        _: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        (engine, Ok(()))
    }

    fn intents(&self, _: StrategyId) -> &[Intent] {
        &[]
    }

    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        Ok(self.saved.clone())
    }

    fn load(&mut self, _: StrategyId, state: &[u8]) -> Result<(), String> {
        if self.forgets {
            return Err("of another version".to_owned());
        }
        self.given.push(state.to_vec());
        Ok(())
    }

    fn show_output(&mut self, _: StrategyId, _: Time) {}
}

/// A session whose strategy is paused by the operator and in quarantine.
fn quarantined(guests: Saver) -> Session<Saver> {
    let mut config = config();
    config.strategies.truncate(1);
    let mut driver = Driver::new(Engine::new(config).unwrap(), guests, true);
    driver.start(NOW, &[None]).unwrap();
    let (strategy, kind) = (ONE, FaultKind::Trap);
    driver.handle(NOW, Input::Fault { strategy, kind });
    let command = Command::Pause;
    driver.handle(NOW, Input::Steer { strategy, command });
    let parts = Parts {
        driver,
        account: Account::Venue,
        requests: None,
        clock: Clock::counted(NOW, NOW),
        modules: vec![("one".to_owned(), [0; 32])],
        surfaces: Vec::new(),
        streams: StreamSettings::default(),
        public: None,
        kill_switch: KillSwitchState::new(
            StoredKillSwitches::default(),
            std::iter::once("one".to_owned()),
        ),
        flattens: false,
        blocks_under_way: BLOCKS_UNDER_WAY,
    };
    Session::new(NOW, parts)
}

fn state(session: &Session<Saver>) -> (bool, KillSwitch) {
    let engine = session.engine();
    (engine.fault(ONE).is_some(), engine.kill_switch_of(ONE))
}

#[test]
fn a_resume_frees_a_strategy_with_its_last_saved_state() {
    let saved = Some(b"what it knew".to_vec());
    let mut session = quarantined(Saver {
        saved,
        ..Saver::default()
    });
    let freed = session.steer(NOW, ONE, Command::Resume).unwrap();
    let with_state = Freed {
        renewed: Renewed::WithState,
        had_state: true,
    };
    assert_eq!(freed, Some(with_state));
    assert_eq!(state(&session), (false, KillSwitch::Clear));
    let given = &session.driver().guests().given;
    assert_eq!(*given, [b"what it knew".to_vec()]);
    // The strategy is out of quarantine, so a second resume starts no new instance.
    assert_eq!(session.steer(NOW, ONE, Command::Resume), Ok(None));
}

#[test]
fn a_strategy_that_cannot_load_its_state_is_freed_without_it() {
    let mut session = quarantined(Saver {
        saved: Some(Vec::new()),
        forgets: true,
        ..Saver::default()
    });
    let freed = session.steer(NOW, ONE, Command::Resume).unwrap().unwrap();
    assert!(matches!(freed.renewed, Renewed::Fresh(_)), "{freed:?}");
    assert_eq!(state(&session), (false, KillSwitch::Clear));
}

#[test]
fn a_strategy_without_a_new_instance_stays_in_quarantine() {
    let mut session = quarantined(Saver {
        is_gone: true,
        ..Saver::default()
    });
    let refused = session.steer(NOW, ONE, Command::Resume).unwrap_err();
    assert!(refused.contains("gone"), "{refused}");
    assert_eq!(state(&session), (true, KillSwitch::Paused));
}

#[test]
fn other_commands_start_no_new_instance() {
    let mut session = quarantined(Saver::default());
    assert_eq!(session.steer(NOW, ONE, Command::Halt), Ok(None));
    assert_eq!(state(&session), (true, KillSwitch::Halted));
}
