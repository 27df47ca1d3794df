//! Indices of one process as those of the next one, whose configuration may be another.

use std::collections::BTreeMap;

use crate::ids::{AssetId, InstrumentId, StrategyId};
use crate::instrument::Instrument;

/// Maps the indices of the old process to those of the new one.
pub struct Names {
    /// Assets.
    pub assets: BTreeMap<AssetId, AssetId>,
    /// Instruments.
    pub instruments: BTreeMap<InstrumentId, InstrumentId>,
    /// Strategies.
    pub strategies: BTreeMap<StrategyId, StrategyId>,
}

impl Names {
    /// Compares the assets, instruments and names of strategies of the old process with those of
    /// the new one.
    pub fn new(
        assets: (&[String], &[String]),
        instruments: (&[Instrument], &[Instrument]),
        strategies: (&[&str], &[&str]),
    ) -> Self {
        let assets = same(assets.0, assets.1, Clone::clone);
        let instruments = same(instruments.0, instruments.1, Instrument::name);
        let strategies = same(strategies.0, strategies.1, |name| (*name).to_owned());
        Self {
            assets: assets
                .map(|(old, new)| (AssetId(old), AssetId(new)))
                .collect(),
            instruments: instruments
                .map(|(old, new)| (InstrumentId(old), InstrumentId(new)))
                .collect(),
            strategies: strategies
                .map(|(old, new)| (StrategyId(old), StrategyId(new)))
                .collect(),
        }
    }
}

/// The positions of items with the same name in both lists.
fn same<T>(old: &[T], new: &[T], name: impl Fn(&T) -> String) -> impl Iterator<Item = (u16, u16)> {
    let pairs = old.iter().enumerate().filter_map(|(from, item)| {
        let to = new.iter().position(|other| name(other) == name(item))?;
        Some((from as u16, to as u16))
    });
    pairs.collect::<Vec<_>>().into_iter()
}
