//! Converts exchange information that was read again into rules of the configured instruments.
//! Their scales do not change, because all known prices and quantities of the instruments use them.

use windvane_model::state_report::ListedRules;
use windvane_model::{InstrumentId, Surface};

use super::{Adapter, DecodeError, Note};
use crate::exchange_info;

/// The rules of those configured instruments of a surface that exchange information lists.
pub(super) fn listed(
    adapter: &Adapter,
    surface: Surface,
    body: &str,
    notes: &mut Vec<Note>,
) -> Result<Vec<ListedRules>, DecodeError> {
    let unreadable =
        |error: exchange_info::ExchangeInfoError| DecodeError::Record(error.to_string());
    let entries = exchange_info::entries(body).map_err(unreadable)?;
    let mut all = Vec::new();
    for id in (0..adapter.names.instruments()).map(|index| InstrumentId(index as u16)) {
        let Some(known) = adapter.names.rules(id) else {
            continue;
        };
        if known.surface != surface {
            continue;
        }
        let entry = entries.iter().find(|(symbol, _)| *symbol == known.symbol);
        let Some((_, entry)) = entry else {
            notes.push(Note::Unlisted {
                surface,
                symbol: known.symbol.clone(),
            });
            continue;
        };
        let mut rules = exchange_info::symbol_rules(entry).map_err(unreadable)?;
        // An entry without `contractType` does not state its surface; the route does.
        rules.surface = surface;
        all.push(ListedRules {
            instrument: id,
            rules: rules.at_scales_of(known).map_err(|error| error.to_string()),
        });
    }
    Ok(all)
}
