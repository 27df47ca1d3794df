//! The dead man's switches and the rounds of reconciliation in the log: a trouble that goes on is not
//! written every second. Decides nothing.

use std::collections::BTreeMap;

use windvane_admin::metrics::table;
use windvane_engine::Engine;
use windvane_model::effect::HeartbeatNotice;
use windvane_model::{Instrument, InstrumentId, Notice, Surface};
use windvane_session::Quiet;

use super::clock::Clock;

/// Troubles that go on now.
pub struct Troubles {
    clock: Clock,
    /// Switches that are not renewed, by outcome.
    heartbeats: BTreeMap<(InstrumentId, &'static str), Quiet>,
    unexplained: BTreeMap<Surface, Quiet>,
}

impl Troubles {
    /// None yet.
    pub const fn new(clock: Clock) -> Self {
        Self {
            clock,
            heartbeats: BTreeMap::new(),
            unexplained: BTreeMap::new(),
        }
    }

    /// Tells of a notice, if it is one of these.
    pub fn tell(&mut self, engine: &Engine, notice: &Notice) {
        match notice {
            Notice::Heartbeat {
                instrument, what, ..
            } => self.heartbeat(engine, *instrument, *what),
            Notice::Reconciled { surface, clean, .. } => self.reconciled(*surface, *clean),
            _ => {}
        }
    }

    fn heartbeat(&mut self, engine: &Engine, id: InstrumentId, what: HeartbeatNotice) {
        let instrument = engine.instrument(id).map(Instrument::name);
        let instrument = instrument.unwrap_or_default();
        let (outcome, words) = match what {
            HeartbeatNotice::Renewed => ("renewed", ""),
            HeartbeatNotice::Failed => ("failed", "the venue did not arm the dead man's switch"),
            HeartbeatNotice::Withheld => (
                "withheld",
                "the dead man's switch is not renewed while the run is in doubt; windvane status names the doubt",
            ),
            HeartbeatNotice::Lapsed => (
                "lapsed",
                "the dead man's switch ran out: the venue may have cancelled the orders of the symbol",
            ),
        };
        table::HEARTBEATS
            .of([instrument.as_str(), outcome])
            .increment(1);
        if what == HeartbeatNotice::Renewed {
            tracing::debug!(instrument, "the dead man's switch is renewed");
            let of_instrument = self.heartbeats.iter_mut().filter(|((of, _), _)| *of == id);
            for ((_, outcome), quiet) in of_instrument {
                if let Some(count) = quiet.over() {
                    tracing::info!(
                        instrument,
                        after = outcome,
                        count,
                        "the dead man's switch is renewed again"
                    );
                }
            }
            return;
        }
        let quiet = self.heartbeats.entry((id, outcome)).or_default();
        if let Some(repeated) = quiet.again(self.clock.now()) {
            tracing::warn!(instrument, outcome, repeated, "{words}");
        }
    }

    fn reconciled(&mut self, surface: Surface, clean: bool) {
        let outcome = if clean { "clean" } else { "unexplained" };
        let name = [surface.as_str(), outcome];
        table::RECONCILIATIONS.of(name).increment(1);
        let quiet = self.unexplained.entry(surface).or_default();
        if clean {
            if let Some(count) = quiet.over() {
                tracing::info!(%surface, count, "the account and ours agree again");
            }
        } else if let Some(repeated) = quiet.again(self.clock.now()) {
            tracing::warn!(%surface, repeated, "the account and ours differ, and nothing explains it yet");
        }
    }
}
