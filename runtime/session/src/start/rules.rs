//! The instruments of a start, from exchange information.

use windvane_client_core::outcome::NotDone;
use windvane_engine::{Instrument, Surface};
use windvane_venue::symbol_rules::RulesError;
use windvane_venue::{Assets, exchange_info};

use super::InstrumentName;

/// Why a run cannot be made of what the venue says.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The venue refuses to say what it trades.
    #[error("{surface} exchange information: {not_done}")]
    Refused {
        /// Surface.
        surface: Surface,
        /// Why.
        not_done: NotDone,
    },
    /// What it says cannot be read.
    #[error("{surface}: {error}")]
    Unreadable {
        /// Surface.
        surface: Surface,
        /// Why.
        error: exchange_info::ExchangeInfoError,
    },
    /// The account of documents 1 to 3 is read by its address.
    #[error(
        "venue.market_data = \"documented\" reads the futures account by its wallet address: set \
         account.user"
    )]
    NoAddress,
    /// It does not trade an instrument.
    #[error("the venue does not list {0}: correct instruments of the strategy that names it")]
    NotListed(InstrumentName),
    /// An instrument's rules cannot be used.
    #[error("{name}: {error}")]
    Rules {
        /// The instrument.
        name: InstrumentName,
        /// Why.
        error: RulesError,
    },
}

/// The instruments, in the order of their names, and the assets of the venue.
pub(super) fn instruments(
    names: &[InstrumentName],
    texts: &[(Surface, String)],
) -> Result<(Vec<Instrument>, Assets), StartError> {
    let mut assets = Assets::default();
    let mut instruments = Vec::with_capacity(names.len());
    for name in names {
        let text = texts.iter().find(|(surface, _)| *surface == name.surface);
        let text = text.map_or("", |(_, text)| text.as_str());
        instruments.push(instrument(name, text, &mut assets)?);
    }
    // The account may hold other assets, and pay commissions in them.
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
) -> Result<Instrument, StartError> {
    let surface = name.surface;
    let unreadable = |error| StartError::Unreadable { surface, error };
    let entries = exchange_info::entries(text).map_err(unreadable)?;
    let entry = entries.iter().find(|(symbol, _)| *symbol == name.symbol);
    let (_, entry) = entry.ok_or_else(|| StartError::NotListed(name.clone()))?;
    let mut rules = exchange_info::symbol_rules(entry).map_err(unreadable)?;
    // An entry does not say its surface where it has no `contractType`; the route does.
    rules.surface = surface;
    rules.instrument(assets).map_err(|error| StartError::Rules {
        name: name.clone(),
        error,
    })
}
