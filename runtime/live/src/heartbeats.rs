//! Logs problems of the dead man's switches and of reconciliation. A problem that lasts is not
//! logged every second. It makes no decisions.

use std::collections::BTreeMap;

use windvane_admin::metrics::table;
use windvane_engine::Engine;
use windvane_model::effect::HeartbeatNotice;
use windvane_model::{Instrument, InstrumentId, Notice, Surface};
use windvane_session::LogThrottle;

use super::clock::Clock;

/// Problems that last at this time.
pub struct Troubles {
    clock: Clock,
    /// Switches that are not renewed, by outcome.
    heartbeats: BTreeMap<(InstrumentId, &'static str), LogThrottle>,
    unexplained: BTreeMap<Surface, LogThrottle>,
}

impl Troubles {
    /// No problem yet.
    pub const fn new(clock: Clock) -> Self {
        Self {
            clock,
            heartbeats: BTreeMap::new(),
            unexplained: BTreeMap::new(),
        }
    }

    /// Logs a notice, if it is about a heartbeat or a reconciliation.
    pub fn log_notice(&mut self, engine: &Engine, notice: &Notice) {
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
        let (outcome, text) = match what {
            HeartbeatNotice::Renewed => ("renewed", ""),
            HeartbeatNotice::Failed => (
                "failed",
                "the venue did not arm the dead man's switch; the engine tries again, and orders \
                 that may rest wait for it",
            ),
            HeartbeatNotice::Withheld => (
                "withheld",
                "the dead man's switch is not renewed while the run is degraded: the venue cancels \
                 the symbol's orders when it runs out; windvane status shows the reason",
            ),
            HeartbeatNotice::Lapsed => (
                "lapsed",
                "the dead man's switch ran out: the venue may have cancelled the symbol's orders; \
                 windvane orders shows which are open",
            ),
        };
        table::HEARTBEATS
            .of([instrument.as_str(), outcome])
            .increment(1);
        if what == HeartbeatNotice::Renewed {
            tracing::debug!(instrument, "renewed the dead man's switch");
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
            tracing::warn!(instrument, outcome, repeated, "{text}");
        }
    }

    fn reconciled(&mut self, surface: Surface, clean: bool) {
        let outcome = if clean { "clean" } else { "unexplained" };
        let name = [surface.as_str(), outcome];
        table::RECONCILIATIONS.of(name).increment(1);
        let quiet = self.unexplained.entry(surface).or_default();
        if clean {
            if let Some(count) = quiet.over() {
                tracing::info!(%surface, count, "the account and the engine's books agree again");
            }
        } else if let Some(repeated) = quiet.again(self.clock.now()) {
            tracing::warn!(
                %surface,
                repeated,
                "the account and the engine's books differ, and no event explains it yet; the \
                 account is read again"
            );
        }
    }
}
