//! A module that plays along beside the recorded one, and how a module begins in a replay.

use std::collections::BTreeMap;

use windvane_engine::event::EventKind;
use windvane_engine::input::FaultKind;
use windvane_engine::{Engine, Event, Intent, StrategyId, Time};
use windvane_host::FaultKind as HostFault;

use crate::strategies::{Guest, engine_fault};

/// A newcomer that plays along.
pub(super) struct Beside {
    pub(super) guest: Guest,
    /// Its timers by token: the engine does not know them.
    pub(super) timers: BTreeMap<i64, Time>,
    /// It failed.
    pub(super) fell: bool,
}

impl Beside {
    /// An event of a timer is for whoever set it.
    pub(super) fn hears(&self, event: &Event) -> bool {
        !self.fell && (event.kind != EventKind::Timer || self.timers.contains_key(&event.fields[0]))
    }

    pub(super) fn deliver(
        &mut self,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Vec<Intent>) {
        if event.kind == EventKind::Timer {
            self.timers.remove(&event.fields[0]);
        }
        let (engine, result) = self.guest.strategy.deliver(engine, event);
        drop(self.guest.strategy.take_output());
        if result.is_err() {
            self.fell = true;
            return (engine, Vec::new());
        }
        let intents = self.guest.strategy.intents().to_vec();
        self.keep_timers(&intents);
        (engine, intents)
    }

    pub(super) fn keep_timers(&mut self, intents: &[Intent]) {
        for intent in intents {
            match intent {
                Intent::SetTimer { time, token } => {
                    self.timers.insert(*token, *time);
                }
                Intent::CancelTimer { token } => {
                    self.timers.remove(token);
                }
                _ => {}
            }
        }
    }
}

/// `start`, then `load`, as the driver does it.
pub(super) fn begin_guest(
    guest: &mut Guest,
    engine: Box<Engine>,
    strategy: StrategyId,
    state: Option<&[u8]>,
) -> (Box<Engine>, Result<Vec<Intent>, FaultKind>) {
    let (params, instruments) = (guest.params.clone(), guest.instruments.clone());
    let (engine, result) = guest
        .strategy
        .start(engine, strategy, &params, &instruments);
    if let Err(fault) = result {
        let kind = match fault.kind {
            HostFault::Refused => FaultKind::Contract,
            kind => engine_fault(kind),
        };
        return (engine, Err(kind));
    }
    // `load` begins a callback of its own.
    let intents = guest.strategy.intents().to_vec();
    let loaded = state.map_or(Ok(()), |state| guest.strategy.load(state));
    drop(guest.strategy.take_output());
    (
        engine,
        loaded.map(|()| intents).map_err(|_| FaultKind::State),
    )
}
