//! Runs a second module of a strategy beside the recorded one in a replay.

use std::collections::BTreeMap;
use std::sync::Arc;

use windvane_engine::Engine;
use windvane_model::event::EventKind;
use windvane_model::{Event, Intent, Time};

use windvane_build::modules::Guest;

/// A module that runs beside the recorded one.
#[derive(Clone, Debug)]
pub struct NewModule {
    /// The strategy's id.
    pub id: String,
    /// The module.
    pub module: Arc<[u8]>,
}

/// A module that receives the same events as the recorded one.
pub(super) struct Shadow {
    pub(super) guest: Guest,
    /// Its timers by token. The replayed engine does not know them.
    pub(super) timers: BTreeMap<i64, Time>,
    /// Whether it failed. Then it receives nothing more.
    pub(super) failed: bool,
}

impl Shadow {
    /// Whether it receives this event. A timer event only goes to the module that set the timer.
    pub(super) fn receives(&self, event: &Event) -> bool {
        !self.failed
            && (event.kind != EventKind::Timer || self.timers.contains_key(&event.fields[0]))
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
            self.failed = true;
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
