//! Errors that end a start.

use windvane_client_core::outcome::NotDone;
use windvane_model::Surface;
use windvane_protocol::exchange_info;
use windvane_protocol::symbol_rules::RulesError;

use crate::instrument_name::InstrumentName;

/// Why a run cannot begin with the venue's information.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The venue refuses to send its exchange information.
    #[error("{surface} exchange information: {not_done}")]
    Refused {
        /// Surface.
        surface: Surface,
        /// Why.
        not_done: NotDone,
    },
    /// The exchange information cannot be read.
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
    /// `market_data = "documented"` allows only the core interface
    /// (docs/interface/README.md#core-and-public-facts). Its one source for the futures account
    /// needs the wallet address, and `account.user` is not set.
    #[error(
        "venue.market_data = \"documented\" reads the futures account by its wallet address: set \
         account.user"
    )]
    NoAddress,
    /// The venue does not list an instrument.
    #[error("the venue does not list {0}: correct instruments of the strategy that names it")]
    NotListed(InstrumentName),
    /// The rules of an instrument cannot be used.
    #[error("{name}: {error}")]
    Rules {
        /// The instrument.
        name: InstrumentName,
        /// Why.
        error: RulesError,
    },
}
