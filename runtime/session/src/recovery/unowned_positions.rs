//! Positions that are left to people: those whose strategy or instrument was removed from the
//! configuration, and those that a stop should have closed. This module only reads the engine.

use std::fmt;

use windvane_engine::Engine;
use windvane_model::order::PositionSide;
use windvane_model::{Instrument, InstrumentId, StrategyId};

/// A position of a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnownedPosition {
    /// The strategy's id.
    pub strategy: String,
    /// The instrument's name.
    pub instrument: String,
    /// Its side; `Both` in one-way mode.
    pub side: PositionSide,
    /// Quantity; negative if short.
    pub qty: String,
}

impl fmt::Display for UnownedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (strategy, qty, instrument) = (&self.strategy, &self.qty, &self.instrument);
        write!(f, "{strategy} holds {qty} {instrument}")?;
        match self.side {
            PositionSide::Both => Ok(()),
            side => write!(f, " {}", side.as_str()),
        }
    }
}

/// The positions of strategies that `is_meant` accepts.
pub fn strategy_positions(
    engine: &Engine,
    is_meant: impl Fn(StrategyId, InstrumentId) -> bool,
) -> Vec<UnownedPosition> {
    let mut positions = Vec::new();
    for (place, ledger) in engine.ledgers().strategies.iter().enumerate() {
        let strategy = StrategyId(place as u16);
        let open = ledger.iter().filter(|(_, _, held)| held.position.qty != 0);
        for (id, side, held) in open.filter(|(id, ..)| is_meant(strategy, *id)) {
            let (Some(name), Some(rules)) = (engine.strategy_name(strategy), engine.instrument(id))
            else {
                continue;
            };
            positions.push(UnownedPosition {
                strategy: name.to_owned(),
                instrument: rules.name(),
                side,
                qty: rules.qty(held.position.qty).normalize().to_string(),
            });
        }
    }
    positions
}

/// The strategies and instruments of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Configured {
    /// The ids of the strategies.
    pub strategies: Vec<String>,
    /// The names of the instruments.
    pub instruments: Vec<String>,
}

/// The positions that belong to no strategy after a start with this configuration, because it lacks
/// their strategy or instrument.
pub fn unowned_positions(engine: &Engine, configured: &Configured) -> Vec<UnownedPosition> {
    strategy_positions(engine, |strategy, instrument| {
        let name = engine.strategy_name(strategy);
        let mut strategies = configured.strategies.iter();
        let instrument = engine.instrument(instrument).map(Instrument::name);
        !strategies.any(|one| Some(one.as_str()) == name)
            || instrument.is_some_and(|name| !configured.instruments.contains(&name))
    })
}
