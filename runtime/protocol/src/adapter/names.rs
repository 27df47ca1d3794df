//! Maps between the names of the venue and the ids of the engine: symbols and instruments, asset
//! names and asset ids. Tables only.

use std::collections::BTreeMap;

use windvane_model::{AssetId, Instrument, InstrumentId, Surface};

/// The engine's instruments and assets, indexed by the venue's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    instruments: Vec<Instrument>,
    symbols: [BTreeMap<String, InstrumentId>; 2],
    assets: Vec<String>,
    asset_ids: BTreeMap<String, AssetId>,
}

impl Names {
    /// Builds the tables from an engine's instruments and asset names, each in the order of their
    /// ids. If a name occurs twice, the first entry counts.
    pub fn new(instruments: &[Instrument], assets: &[String]) -> Self {
        let mut symbols: [BTreeMap<String, InstrumentId>; 2] = Default::default();
        for (id, instrument) in (0..=u16::MAX).zip(instruments) {
            let table = &mut symbols[instrument.surface as usize];
            let entry = table.entry(instrument.symbol.clone());
            entry.or_insert(InstrumentId(id));
        }
        let mut asset_ids = BTreeMap::new();
        for (id, name) in (0..=u16::MAX).zip(assets) {
            asset_ids.entry(name.clone()).or_insert(AssetId(id));
        }
        Self {
            instruments: instruments.to_vec(),
            symbols,
            assets: assets.to_vec(),
            asset_ids,
        }
    }

    /// The instrument with this symbol; `None` if it is not configured.
    pub fn instrument(&self, surface: Surface, symbol: &str) -> Option<InstrumentId> {
        self.symbols[surface as usize].get(symbol).copied()
    }

    /// The symbols of a surface.
    pub fn symbols(&self, surface: Surface) -> impl Iterator<Item = &str> {
        self.symbols[surface as usize].keys().map(String::as_str)
    }

    /// Symbol, scales and rules of an instrument.
    pub fn rules(&self, id: InstrumentId) -> Option<&Instrument> {
        self.instruments.get(usize::from(id.0))
    }

    /// The number of instruments.
    pub fn instruments(&self) -> usize {
        self.instruments.len()
    }

    /// The asset with this name; `None` if no instrument uses it.
    pub fn asset(&self, name: &str) -> Option<AssetId> {
        self.asset_ids.get(name).copied()
    }

    /// The name of an asset.
    pub fn asset_name(&self, id: AssetId) -> Option<&str> {
        self.assets.get(usize::from(id.0)).map(String::as_str)
    }
}
