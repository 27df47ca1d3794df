//! Translates between the engine and the venue's wire format. A request of the engine becomes the
//! calls that it needs, and their responses become replies. User events and market frames become
//! inputs of the engine.
//!
//! This module has no IO, no clock and no signing, and it never decides to send again: the driver
//! of the engine does that. It never guesses. Each of these is an error with the name of its field:
//!
//! - a number that does not fit the engine's integers,
//! - an undocumented value where a documented one is needed,
//! - a response that is about another order or symbol than the request.
//!
//! If the request may have had an effect, its outcome is then [`Outcome::Unknown`], and the engine
//! queries the state.
//!
//! [`Outcome::Unknown`]: windvane_model::Outcome::Unknown

mod account;
mod batch;
mod encode;
mod figures;
mod market;
mod names;
mod order;
mod record;
mod reply;
mod rules;
mod user;

use rust_decimal::Decimal;
use windvane_model::{AssetId, ClientOrderId, InstrumentId, Surface};

pub use encode::EncodedCall;
pub use market::{Emit, MarketError, MarketReader, Missing};
pub use names::Names;
pub use reply::CallResult;

/// Encodes requests and decodes responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Instruments and assets.
    pub names: Names,
    /// Where the futures account is read.
    pub futures_account: FuturesAccount,
    /// Only routes of the core interface (docs/interface/README.md#core-and-public-facts) are used
    /// (`market_data = "documented"`).
    pub documented: bool,
}

/// Where futures balances and positions are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FuturesAccount {
    /// Account information (docs/interface/account.md#futures-account).
    Routes,
    /// The info endpoint (docs/interface/chain.md#info-endpoint). Its data may lag.
    Info {
        /// The main wallet's address.
        address: String,
    },
}

/// Decoded replies or events, with notes for the log about what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithNotes<T> {
    /// Replies or events, in order.
    pub items: Vec<T>,
    /// Notes about the parts that were left out, with the reasons.
    pub notes: Vec<Note>,
}

impl<T> WithNotes<T> {
    const fn new() -> Self {
        Self {
            items: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Something that was received but not passed on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// It belongs to a symbol that is not configured.
    #[error("{surface}:{symbol} is not configured: its {what} is ignored")]
    Symbol {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
        /// The ignored part.
        what: &'static str,
    },
    /// An open order with an id of this program, on a symbol that is not configured. No run cancels
    /// it.
    #[error(
        "order {order} is open on {surface}:{symbol}, which no strategy names: this run neither \
         cancels nor shows it; cancel it with windvane call, or name the symbol in a strategy"
    )]
    Elsewhere {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
        /// `clientOrderId`.
        order: ClientOrderId,
    },
    /// An open order from outside this program that does not fit the known rules.
    #[error(
        "an order from outside cannot be parsed: {order} on {surface}:{symbol} is ignored: {error}"
    )]
    Foreign {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
        /// `clientOrderId`.
        order: ClientOrderId,
        /// Why.
        error: DecodeError,
    },
    /// It is in an asset that no configured instrument uses.
    #[error("asset {asset} is not configured: its {what} is ignored")]
    Asset {
        /// Name.
        asset: String,
        /// The ignored part.
        what: &'static str,
    },
    /// A response could not be parsed: its outcome is unknown.
    #[error("the response of {route} cannot be parsed: {error}; it begins with {excerpt:?}")]
    Unreadable {
        /// Route.
        route: &'static str,
        /// Why.
        error: DecodeError,
        /// The beginning of the body.
        excerpt: String,
    },
    /// One call of a request has no result.
    #[error("the call of {route} has no result: its outcome counts as unknown")]
    Unanswered {
        /// Route.
        route: &'static str,
    },
    /// A part of a response is missing; the rest counts.
    #[error("{what} is not known yet: {route} was not sent, or got no response")]
    Part {
        /// Route.
        route: &'static str,
        /// The data that the part contains.
        what: &'static str,
    },
    /// A configured symbol is not in exchange information.
    #[error("{surface}:{symbol} is not listed any more: its last known rules stay in use")]
    Unlisted {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
    },
    /// An event that the engine does not use.
    #[error("user event {0:?} is ignored: the engine does not use it")]
    Event(String),
}

/// Why a request cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The instrument is not in the tables.
    #[error("instrument number {} is not in the table of names: make it of all instruments", .0.0)]
    Instrument(InstrumentId),
    /// The asset is not in the tables.
    #[error("asset number {} is not in the table of names", .0.0)]
    Asset(AssetId),
    /// The surface has no such parameter or route.
    #[error("{what} does not exist on {surface}: leave it out")]
    Surface {
        /// Parameter or route.
        what: &'static str,
        /// Surface.
        surface: Surface,
    },
    /// Position side and reduce-only exclude each other.
    #[error(
        "reduceOnly may not be sent with positionSide \
         (docs/interface/orders.md#place-a-futures-order): leave it out"
    )]
    ReduceOnlyInHedgeMode,
    /// The route is not in the core interface.
    #[error(
        "route {0} is not in the core interface (docs/interface/README.md#core-and-public-facts); \
         set market_data to \"auto\" or \"streams\" to allow it"
    )]
    Undocumented(&'static str),
    /// The request would be sent too long after it was decided.
    #[error("it waited {} ms to be sent: the dead man's switch may have acted already", .0.as_millis())]
    Late(std::time::Duration),
    /// The amount has more digits than a decimal can hold.
    #[error("quoteOrderQty of {0} units of 1e-8 has more than 28 digits")]
    Amount(i128),
}

/// Why a received message cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not the record that the documents describe.
    #[error("{0}")]
    Record(String),
    /// A number that does not fit the engine's integers.
    #[error("{field} {value} does not fit 64 bits (amounts: 1e22) at {scale} decimal places")]
    Figure {
        /// Field.
        field: &'static str,
        /// The value in the message.
        value: Decimal,
        /// The decimal places that are available.
        scale: u8,
    },
    /// A quantity below 0.
    #[error("{field} {value} is below 0")]
    Negative {
        /// Field.
        field: &'static str,
        /// The value in the message.
        value: Decimal,
    },
    /// A time beyond the year 2262.
    #[error("{field} {ms} is not a valid time in milliseconds")]
    Time {
        /// Field.
        field: &'static str,
        /// The value in the message.
        ms: i64,
    },
    /// An undocumented value, where a documented one is needed.
    #[error("{field} {word:?} is not a documented value")]
    Word {
        /// Field.
        field: &'static str,
        /// The value in the message.
        word: String,
    },
    /// A required field is absent.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The message is about something else than the request.
    #[error("the response is about {found:?}, but {requested:?} was requested")]
    Other {
        /// The id or symbol in the message.
        found: String,
        /// The id or symbol in the request.
        requested: String,
    },
    /// The account hides its state from the info endpoint.
    #[error(
        "accountPrivacy is {0}: the info endpoint hides the account; make the account public or \
         use the futures account routes (docs/interface/account.md#futures-account-routes)"
    )]
    Private(String),
}

/// The documented value, or an error that names the field.
fn known<T: Copy + std::fmt::Display>(
    field: &'static str,
    word: &crate::wire::Word<T>,
) -> Result<T, DecodeError> {
    word.known().copied().ok_or_else(|| DecodeError::Word {
        field,
        word: word.to_string(),
    })
}
