//! The orderly stop of a run: how long `on_stop` may take, and which positions count as flat.

use std::collections::BTreeSet;

use windvane_engine::Engine;
use windvane_model::{InstrumentId, StrategyId, Surface, Time, constant};

/// How long `on_stop` may take, in addition to the waits that the venue imposes.
pub const STOP_WITHIN_MS: i64 = 10_000;
/// The longest wait that a stop accepts. A ban may be longer. Then the run ends, and the shell
/// lists the orders and positions that stay open.
pub const STOP_WAITS_MS: i64 = 150_000;

const MS: i64 = 1_000_000;

/// A requested stop.
#[derive(Debug)]
pub(crate) struct Stop {
    since: Time,
    by: Time,
    /// Positions that no order can close; they count as flat.
    dust: BTreeSet<(StrategyId, InstrumentId)>,
}

impl Stop {
    /// A stop that begins `now`.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            since: now,
            by: now.plus_ms(constant!(StopWithin, STOP_WITHIN_MS, changed: 0)),
            dust: BTreeSet::new(),
        }
    }

    /// When the run ends even if `on_stop` is not finished.
    pub(crate) const fn by(&self) -> Time {
        self.by
    }

    /// Notes that no order can close this spot position. On futures such a remainder counts as a
    /// position.
    pub(crate) fn note_dust(
        &mut self,
        engine: &Engine,
        strategy: StrategyId,
        instrument: InstrumentId,
    ) {
        let rules = engine.instrument(instrument);
        if rules.is_some_and(|rules| rules.surface == Surface::Spot) {
            self.dust.insert((strategy, instrument));
        }
    }

    /// Whether a position counts as flat because no order can close it.
    pub(crate) fn is_dust(&self, strategy: StrategyId, instrument: InstrumentId) -> bool {
        self.dust.contains(&(strategy, instrument))
    }

    /// Extends the stop until the waits of the venue are over, if they are not too long.
    pub(crate) fn sit_out(
        &mut self,
        now: Time,
        engine: &Engine,
        (surfaces, flattens): (&[Surface], bool),
    ) {
        let waits = surfaces.iter().filter_map(|surface| {
            let orders = engine.order_wait(*surface).filter(|_| flattens);
            engine.venue_wait(*surface).max(orders)
        });
        let Some(until) = waits.max() else { return };
        let left_ns = until.0.saturating_sub(engine.now().0).max(0);
        let end = Time(now.0.saturating_add(left_ns));
        if end.0 <= self.since.0.saturating_add(STOP_WAITS_MS * MS) {
            self.by = self.by.max(end.plus_ms(STOP_WITHIN_MS));
        }
    }
}
