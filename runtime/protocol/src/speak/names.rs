//! What both sides call the same thing: symbols and instruments, names and numbers of assets.
//! Tables only.

use std::collections::BTreeMap;

use windvane_model::{AssetId, Instrument, InstrumentId, Surface};

/// The engine's instruments and assets by the venue's names for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    instruments: Vec<Instrument>,
    symbols: [BTreeMap<String, InstrumentId>; 2],
    assets: Vec<String>,
    asset_ids: BTreeMap<String, AssetId>,
}

impl Names {
    /// The tables of an engine: its instruments and its asset names, each in the order of their
    /// ids. Of two of one name, the first counts.
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

    /// The instrument with this symbol; `None` for one that is not configured.
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

    /// How many instruments there are.
    pub fn instruments(&self) -> usize {
        self.instruments.len()
    }

    /// The asset with this name; `None` for one that no instrument has.
    pub fn asset(&self, name: &str) -> Option<AssetId> {
        self.asset_ids.get(name).copied()
    }

    /// The name of an asset.
    pub fn asset_name(&self, id: AssetId) -> Option<&str> {
        self.assets.get(usize::from(id.0)).map(String::as_str)
    }
}
