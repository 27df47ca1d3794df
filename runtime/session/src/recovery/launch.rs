//! The order in which a process begins after the journal and the venue were read: its engine, the
//! checkpoint of its first segment, its kill switches, its strategies. The shell gets the
//! checkpoint only after that, so that a refused start leaves the journal unchanged.

use windvane_model::config::EngineConfig;
use windvane_model::forced::OnLiquidation;
use windvane_model::kill_switch::StoredKillSwitches;
use windvane_model::record::Chain;
use windvane_model::{StrategyId, Surface, Time};

use super::{Before, PreviousState, RecoverError};
use crate::account::Account;
use crate::activation::{Activation, Foreign, activate};
use crate::checkpoint::{Module, new_checkpoint};
use crate::clock::Clock;
use crate::driver::Driver;
use crate::guests::Guests;
use crate::kill_switch::KillSwitchState;

/// The last saved state of each strategy, in the order of the configuration.
pub type States = Vec<Option<Vec<u8>>>;

/// Inputs of a beginning process, in addition to [`PreviousState`].
#[derive(Debug)]
pub struct LaunchTerms<'a> {
    /// The shell's clock.
    pub now: Time,
    /// The first time of the recording that is played; `None` if the engine follows the shell's
    /// clock.
    pub played_from: Option<Time>,
    /// The present configuration, with the epoch that was reserved for this process.
    pub engine: EngineConfig,
    /// Facts about other processes.
    pub before: Before,
    /// The modules of the strategies, in order.
    pub modules: &'a [Module],
    /// The account. A simulated account continues from [`PreviousState::paper`].
    pub account: Account,
    /// The content of the kill switch file.
    pub kill_switch: StoredKillSwitches,
    /// Set if the data folder belongs to another account. The run begins paused then.
    pub foreign: Option<Foreign<'a>>,
    /// Orders do not wait for the disk.
    pub is_unwaited: bool,
    /// The reaction to a liquidation.
    pub on_liquidation: OnLiquidation,
    /// The surfaces that are traded.
    pub surfaces: &'a [Surface],
    /// Public data comes from streams. A simulated account missed the events before the connection.
    pub is_streamed: bool,
}

/// A process that began. It has sent nothing yet.
#[derive(Debug)]
pub struct Launched<G> {
    /// The first segment of this process. The journal begins it after all other parts of the shell
    /// are ready, and before anything is sent.
    pub first: FirstSegment,
    /// Engine and strategies. The strategies have started.
    pub driver: Driver<G>,
    /// The account.
    pub account: Account,
    /// The engine's clock.
    pub clock: Clock,
    /// The kill switches and their reasons.
    pub kill_switch: KillSwitchState,
}

/// The beginning of the first segment. A later start recovers only what the checkpoint contains.
#[derive(Debug)]
pub struct FirstSegment {
    /// Its checkpoint: the engine before this process recorded anything, with the last saved
    /// states.
    pub checkpoint: Vec<u8>,
    /// The position at which the journal continues.
    pub at: Chain,
}

impl PreviousState {
    /// Begins a process. `guests` makes the strategies, which get their saved states.
    ///
    /// # Errors
    /// The present configuration or the venue's rules cannot be used, or a strategy that did not
    /// start before with this module and these parameters refuses to start.
    pub fn launch<G: Guests>(
        mut self,
        terms: LaunchTerms<'_>,
        guests: impl FnOnce(&States) -> G,
    ) -> Result<Launched<G>, RecoverError> {
        let (now, modules) = (terms.now, terms.modules);
        let last = self.checkpoint.take();
        let mut engine = self.succeed(terms.engine, &terms.before)?;
        let state_of = |(name, _): &Module| last.as_ref()?.state_of(name);
        let states: States = modules.iter().map(state_of).collect();
        let guests = guests(&states);
        let made = guests.made();
        let is_known = |(place, module): (usize, &Module)| {
            let made = made.get(place)?;
            let known = last.as_ref()?.has_instance(module, made);
            known.then_some(StrategyId(place as u16))
        };
        let known: Vec<_> = modules.iter().enumerate().filter_map(is_known).collect();
        let mut account = terms.account;
        let snapshot = engine.snapshot();
        let saved = states.clone();
        let first = FirstSegment {
            checkpoint: new_checkpoint(snapshot, saved, modules, made, account.to_bytes())
                .to_bytes(),
            at: engine.chain(),
        };
        let clock = match terms.played_from {
            Some(from) => Clock::played(from, engine.now()),
            None => Clock::counted(now, engine.now()),
        };
        let now = clock.at(now);
        let mut driver = Driver::new(engine, guests, true);
        if terms.is_unwaited {
            driver.durable(now, u64::MAX);
        }
        let names = modules.iter().map(|(name, _)| name.clone());
        let mut kill_switch = KillSwitchState::new(terms.kill_switch, names);
        let mut with = Activation {
            kill_switch: &mut kill_switch,
            foreign: terms.foreign,
            states: &states,
            known: &known,
            on_liquidation: terms.on_liquidation,
            surfaces: terms.surfaces,
            is_streamed: terms.is_streamed,
        };
        let activated = activate(now, &mut driver, &mut account, &mut with);
        activated.map_err(|(strategy, reason)| RecoverError::Refused {
            strategy: modules
                .get(usize::from(strategy.0))
                .map_or_else(String::new, |(name, _)| name.clone()),
            reason,
        })?;
        kill_switch.update_from(driver.engine());
        Ok(Launched {
            first,
            driver,
            account,
            clock,
            kill_switch,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use windvane_engine::Engine;
    use windvane_model::config::{OnFault, StrategyConfig};
    use windvane_model::ids::StrategyName;
    use windvane_model::input::FaultKind;
    use windvane_model::kill_switch::{StoredKillSwitch, StrategyKillSwitch};
    use windvane_model::risk::RiskLimits;
    use windvane_model::run_state::KillSwitch;
    use windvane_model::{Event, Intent};

    use super::*;
    use crate::checkpoint::Checkpoint;
    use crate::guests::InitResult;
    use crate::recovery::{JournalContent, recover_state};
    use crate::testing::live_config;

    /// Strategies that note which of them started and which got a saved state.
    #[derive(Default)]
    struct Noted {
        count: usize,
        refuses: Option<StrategyId>,
        started: Vec<StrategyId>,
        loaded: Vec<(StrategyId, Vec<u8>)>,
    }

    impl Guests for Noted {
        fn count(&self) -> usize {
            self.count
        }

        fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
            self.started.push(strategy);
            if self.refuses == Some(strategy) {
                return (engine, InitResult::Refused("no such period".to_owned()));
            }
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
            Ok(None)
        }

        fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String> {
            self.loaded.push((strategy, state.to_vec()));
            Ok(())
        }

        fn show_output(&mut self, _: StrategyId, _: Time) {}
    }

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn config(epoch: u64) -> EngineConfig {
        let strategy = |name: &str| StrategyConfig {
            name: StrategyName::new(name).unwrap(),
            subscriptions: Vec::new(),
            limits: RiskLimits::default(),
            on_fault: OnFault::Cancel,
        };
        EngineConfig {
            epoch,
            keep_journal: true,
            strategies: NAMES.map(strategy).to_vec(),
            live: Some(live_config()),
            ..EngineConfig::default()
        }
    }

    fn modules() -> Vec<Module> {
        NAMES.map(|name| (name.to_owned(), [7; 32])).to_vec()
    }

    /// The state of an earlier process. Its epoch is 7, and its strategy `c` saved a state.
    fn left() -> PreviousState {
        let mut engine = Engine::new(config(7)).unwrap();
        let at = engine.chain();
        let states = vec![None, None, Some(b"kept".to_vec())];
        let made = vec![crate::Made::default(); NAMES.len()];
        recover_state(JournalContent {
            is_authority: true,
            checkpoint: new_checkpoint(engine.snapshot(), states, &modules(), made, None)
                .to_bytes(),
            blocks: Vec::new(),
            base: at,
            next: at,
        })
    }

    fn terms(modules: &[Module]) -> LaunchTerms<'_> {
        LaunchTerms {
            now: Time::from_millis(1_000),
            played_from: None,
            engine: config(8),
            before: Before::default(),
            modules,
            account: Account::Venue,
            kill_switch: StoredKillSwitches::default(),
            foreign: None,
            is_unwaited: false,
            on_liquidation: OnLiquidation::default(),
            surfaces: &[Surface::Futures],
            is_streamed: true,
        }
    }

    fn noted() -> Noted {
        Noted {
            count: NAMES.len(),
            ..Noted::default()
        }
    }

    #[test]
    fn the_checkpoint_has_the_engine_before_the_strategies_start() {
        let modules = modules();
        let terms = LaunchTerms {
            foreign: Some(Foreign {
                difference: "the folder belongs to another account",
                what_to_do: "resume or stop",
            }),
            ..terms(&modules)
        };
        let launched = left().launch(terms, |_| noted()).unwrap();
        let engine = launched.driver.engine();
        assert_eq!(engine.kill_switch(), KillSwitch::Paused);
        assert!(engine.records() > 0);
        let checkpoint = Checkpoint::from_bytes(&launched.first.checkpoint).unwrap();
        let before = Engine::restore(&checkpoint.engine).unwrap();
        assert_eq!(
            (before.epoch(), before.kill_switch()),
            (8, KillSwitch::Clear)
        );
        assert_eq!(before.chain(), launched.first.at);
        assert_eq!(checkpoint.state_of("c"), Some(b"kept".to_vec()));
    }

    #[test]
    fn the_kill_switch_applies_before_the_strategies_start() {
        let modules = modules();
        let quarantined = StrategyKillSwitch {
            quarantine: Some(("trap".to_owned(), "unreachable".to_owned())),
            ..StrategyKillSwitch::default()
        };
        let kill_switch = StoredKillSwitches {
            account: StoredKillSwitch::Halted {
                reason: "the operator".to_owned(),
            },
            strategies: BTreeMap::from([("b".to_owned(), quarantined)]),
            ..StoredKillSwitches::default()
        };
        let terms = LaunchTerms {
            kill_switch: kill_switch.clone(),
            ..terms(&modules)
        };
        let launched = left().launch(terms, |_| noted()).unwrap();
        let guests = launched.driver.guests();
        assert_eq!(guests.started, [StrategyId(0), StrategyId(2)]);
        assert_eq!(guests.loaded, [(StrategyId(2), b"kept".to_vec())]);
        assert_eq!(launched.driver.engine().kill_switch(), KillSwitch::Halted);
        assert_eq!(*launched.kill_switch.file_content(), kill_switch);
    }

    fn refusing() -> Noted {
        Noted {
            refuses: Some(StrategyId(1)),
            ..noted()
        }
    }

    #[test]
    fn a_strategy_that_started_before_cannot_hold_up_the_others() {
        let modules = modules();
        let launched = left().launch(terms(&modules), |_| refusing()).unwrap();
        let (engine, guests) = (launched.driver.engine(), launched.driver.guests());
        assert_eq!(engine.fault(StrategyId(1)), Some(FaultKind::Contract));
        assert_eq!(guests.started, [0, 1, 2].map(StrategyId));
        let stored = &launched.kill_switch.file_content().strategies["b"];
        assert!(stored.quarantine.is_some(), "{stored:?}");
    }

    #[test]
    fn a_refused_start_of_a_new_module_has_no_checkpoint() {
        let mut modules = modules();
        modules[1].1 = [8; 32];
        let refused = left().launch(terms(&modules), |_| refusing());
        let error = refused.map(|launched| launched.first).unwrap_err();
        assert_eq!(
            error.to_string(),
            "strategy b refuses to start: no such period"
        );
    }
}
