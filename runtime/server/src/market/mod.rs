//! The public market: symbols, books, trades, klines, tickers, marks and funding, and where they
//! come from.

use windvane_engine::{Instrument, Time};
use windvane_venue::Assets;

use crate::settings::Settings;
use crate::state::State;

/// Where the market comes from.
#[derive(Debug, Default)]
pub enum Source {
    /// A market of the server's own, drawn from the seed.
    #[default]
    Seeded,
}

/// Everything public that the venue knows.
#[derive(Debug)]
pub(crate) struct Board {}

impl Board {
    pub(crate) fn new(_settings: &Settings, _now: Time) -> Self {
        Self {}
    }

    /// The instruments of both surfaces; the place in the list is the id.
    pub(crate) fn instruments(&self) -> Vec<Instrument> {
        Vec::new()
    }

    /// The names of the assets that instruments speak of.
    pub(crate) fn assets(&self) -> Assets {
        Assets::default()
    }
}

/// Takes every market event up to `now` to the board, the accounts and the streams.
pub(crate) fn advance(_state: &mut State, _now: Time) {}
