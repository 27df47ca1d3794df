//! The instruments of the documented exchange, from its exchange information.

use windvane_model::{Instrument, Surface};
use windvane_protocol::{Assets, exchange_info};

use crate::instrument_name::InstrumentName;
use crate::startup_error::StartupError;

/// The instruments, in the order of `names`, and the assets of the venue.
pub(super) fn instruments(
    names: &[InstrumentName],
    texts: &[(Surface, String)],
) -> Result<(Vec<Instrument>, Assets), StartupError> {
    let mut assets = Assets::default();
    let mut instruments = Vec::with_capacity(names.len());
    for name in names {
        let text = texts.iter().find(|(surface, _)| *surface == name.surface);
        let text = text.map_or("", |(_, text)| text.as_str());
        instruments.push(instrument(name, text, &mut assets)?);
    }
    // The account may hold other assets, or pay commissions in them.
    for (_, text) in texts {
        for asset in exchange_info::assets(text) {
            assets.id(&asset);
        }
    }
    Ok((instruments, assets))
}

fn instrument(
    name: &InstrumentName,
    text: &str,
    assets: &mut Assets,
) -> Result<Instrument, StartupError> {
    let surface = name.surface;
    let unreadable = |error| StartupError::Unreadable { surface, error };
    let entries = exchange_info::entries(text).map_err(unreadable)?;
    let entry = entries.iter().find(|(symbol, _)| *symbol == name.symbol);
    let (_, entry) = entry.ok_or_else(|| StartupError::NotListed(name.clone()))?;
    let mut rules = exchange_info::symbol_rules(entry).map_err(unreadable)?;
    // An entry without `contractType` does not name its surface, but the route does.
    rules.surface = surface;
    rules
        .instrument(assets)
        .map_err(|error| StartupError::Rules {
            name: name.clone(),
            error,
        })
}
