//! The strategies of a run as WebAssembly modules in the host.

use windvane_engine::event::Event;
use windvane_engine::input::FaultKind;
use windvane_engine::{Engine, Intent, StrategyId, Time};
use windvane_host::FaultKind as HostFault;
use windvane_session::InitResult;

use super::session::Guests;
use super::tally::Tally;
use crate::strategies::{Guest, engine_fault, show_lines};

/// All strategies of a run, in the order of the configuration.
pub struct HostedGuests {
    guests: Vec<Guest>,
    /// Why each failed, in the order of the guests; a failed instance is not called again.
    faults: Vec<Option<String>>,
}

impl HostedGuests {
    /// Strategies that have not begun.
    pub fn new(guests: Vec<Guest>) -> Self {
        let faults = vec![None; guests.len()];
        Self { guests, faults }
    }

    /// Strategies of a run that ended, each with its last fault.
    pub fn ended(guests: impl Iterator<Item = (Guest, Option<String>)>) -> Self {
        let (guests, faults) = guests.unzip();
        Self { guests, faults }
    }

    /// Why a strategy failed, in one sentence.
    pub fn fault(&self, strategy: StrategyId) -> Option<&str> {
        self.faults.get(usize::from(strategy.0))?.as_deref()
    }

    /// The strategies.
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }
}

impl Guests for HostedGuests {
    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        let guest = &mut self.guests[usize::from(strategy.0)];
        let (engine, result) =
            guest
                .strategy
                .start(engine, strategy, &guest.params, &guest.instruments);
        let result = match result {
            Ok(()) => InitResult::Ready,
            Err(fault) if fault.kind == HostFault::Refused => InitResult::Refused(fault.detail),
            Err(fault) => {
                tracing::warn!(strategy = %guest.name, %fault, "init failed");
                let kind = engine_fault(fault.kind);
                self.faults[usize::from(strategy.0)] = Some(fault.detail);
                InitResult::Fault(kind)
            }
        };
        (engine, result)
    }

    #[inline]
    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let guest = &mut self.guests[usize::from(strategy.0)];
        let (engine, result) = guest.strategy.deliver(engine, event);
        let result = result.map_err(|fault| {
            let (name, time_ns) = (&guest.name, event.time.0);
            tracing::warn!(strategy = %name, time_ns, %fault, "callback failed");
            let kind = engine_fault(fault.kind);
            self.faults[usize::from(strategy.0)] = Some(fault.detail);
            kind
        });
        (engine, result)
    }

    #[inline]
    fn intents(&self, strategy: StrategyId) -> &[Intent] {
        self.guests[usize::from(strategy.0)].strategy.intents()
    }

    #[inline]
    fn drain_output(&mut self, strategy: StrategyId, now: Time, tally: &mut Tally) {
        let guest = &mut self.guests[usize::from(strategy.0)];
        if guest.strategy.has_output() {
            show_output(guest, strategy, now, tally);
        }
    }
}

#[cold]
fn show_output(guest: &mut Guest, strategy: StrategyId, now: Time, tally: &mut Tally) {
    let output = guest.strategy.take_output();
    let name = &guest.name;
    show_lines(name, now, &output.logs);
    for point in output.plots {
        tally.plot(now, strategy, &point.series, point.value, point.scale);
    }
}
