//! The strategies of a run as WebAssembly modules in the host.

use windvane_engine::Engine;
use windvane_host::{FaultKind as HostFault, PlotPoint};
use windvane_model::event::Event;
use windvane_model::input::FaultKind;
use windvane_model::{Intent, StrategyId, Time};
use windvane_session::{Guests, InitResult};

use windvane_build::modules::{AllLines, Guest, engine_fault};

/// All strategies of a run, in the order of the configuration.
pub struct HostedGuests {
    guests: Vec<Guest>,
    /// For each strategy, why it failed. A failed instance is not called again.
    faults: Vec<Option<String>>,
    /// Plot points since the last call of `take_points`.
    points: Vec<(StrategyId, Time, PlotPoint)>,
    /// For each strategy, its share of the log.
    lines: Vec<AllLines>,
}

impl HostedGuests {
    /// Strategies that have not started yet.
    pub fn new(guests: Vec<Guest>) -> Self {
        let faults = vec![None; guests.len()];
        Self::with_faults(guests, faults)
    }

    fn with_faults(guests: Vec<Guest>, faults: Vec<Option<String>>) -> Self {
        let lines = guests.iter().map(|_| AllLines::default()).collect();
        Self {
            guests,
            faults,
            points: Vec::new(),
            lines,
        }
    }

    /// Strategies of a run that has ended, each with its last fault.
    pub fn ended(guests: impl Iterator<Item = (Guest, Option<String>)>) -> Self {
        let (guests, faults) = guests.unzip();
        Self::with_faults(guests, faults)
    }

    /// Why a strategy failed, in one sentence. `None` if it did not fail.
    pub fn fault(&self, strategy: StrategyId) -> Option<&str> {
        self.faults.get(usize::from(strategy.0))?.as_deref()
    }

    /// Whether there are new plot points.
    #[inline]
    pub const fn has_points(&self) -> bool {
        !self.points.is_empty()
    }

    /// Removes and returns the plot points since the last call, in order.
    pub fn take_points(&mut self) -> std::vec::Drain<'_, (StrategyId, Time, PlotPoint)> {
        self.points.drain(..)
    }

    /// Reports the log lines that were lost, at the end of the run.
    pub fn end(&mut self, now: Time) {
        for (guest, lines) in self.guests.iter().zip(&mut self.lines) {
            lines.end(&guest.name, now);
        }
    }

    /// The strategies.
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }
}

impl Guests for HostedGuests {
    fn count(&self) -> usize {
        self.guests.len()
    }

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

    /// A backtest starts without saved states and saves none.
    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        Ok(None)
    }

    fn load(&mut self, strategy: StrategyId, _: &[u8]) -> Result<(), String> {
        Err(format!("strategy {} has no saved state", strategy.0))
    }

    #[inline]
    fn show_output(&mut self, strategy: StrategyId, now: Time) {
        if self.guests[usize::from(strategy.0)].strategy.has_output() {
            self.take_output(strategy, now);
        }
    }
}

impl HostedGuests {
    #[cold]
    fn take_output(&mut self, strategy: StrategyId, now: Time) {
        let guest = &mut self.guests[usize::from(strategy.0)];
        let output = guest.strategy.take_output();
        self.lines[usize::from(strategy.0)].show(&guest.name, now, &output.logs);
        let points = output.plots.into_iter();
        self.points
            .extend(points.map(|point| (strategy, now, point)));
    }
}
