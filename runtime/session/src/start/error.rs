//! Why a start ends without a run.

use windvane_client_core::outcome::NotDone;
use windvane_model::Surface;
use windvane_protocol::exchange_info;
use windvane_protocol::symbol_rules::RulesError;

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
    /// The exchange does not have the surface of an instrument.
    #[error("the exchange has no {0} market: correct instruments of the strategy that names {1}")]
    NoSurface(Surface, InstrumentName),
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
