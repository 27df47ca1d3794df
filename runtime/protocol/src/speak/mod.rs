//! The engine's words to the venue's wire and back: a request to the calls that it needs, their
//! answers to replies, user events and market frames to inputs.
//!
//! No IO, no clock, no signing, no decision to send again: whoever drives the engine has those.
//! A figure that does not fit the engine's integers, a word that is not in the documents where
//! one is needed, an answer that speaks of something else: each is an error with the name of its
//! field, never a guess. An answer to what may have had an effect is then [`Outcome::Unknown`],
//! which the engine asks about.
//!
//! [`Outcome::Unknown`]: windvane_model::Outcome::Unknown

mod account;
mod ask;
mod batch;
mod figures;
mod market;
mod names;
mod order;
mod reply;
mod rules;
mod user;

use rust_decimal::Decimal;
use windvane_model::{AssetId, ClientOrderId, InstrumentId, Surface};

pub use ask::Asked;
pub use market::{Emit, MarketError, MarketReader, Missing};
pub use names::Names;
pub use reply::Heard;

/// Says requests and understands answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// Instruments and assets.
    pub names: Names,
    /// Where the futures account is read.
    pub futures_account: FuturesAccount,
    /// Nothing outside documents 1 to 3 is said (`market_data = "documented"`).
    pub documented: bool,
}

/// Where futures balances and positions are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FuturesAccount {
    /// Account information (spec 4, section 4).
    Routes,
    /// The info endpoint (spec 3), which may lag.
    Info {
        /// The main wallet's address.
        address: String,
    },
}

/// What was understood, and what a log should say of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said<T> {
    /// Replies or events, in their order.
    pub said: Vec<T>,
    /// What was left out, and why.
    pub notes: Vec<Note>,
}

impl<T> Said<T> {
    const fn new() -> Self {
        Self {
            said: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Something that was heard and not passed on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// It belongs to a symbol that is not configured.
    #[error("{surface}:{symbol} is not configured: {what} left out")]
    Symbol {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
        /// What it was.
        what: &'static str,
    },
    /// An open order with an id like ours, on a symbol that is not configured: nobody cancels it.
    #[error(
        "order {order} rests on {surface}:{symbol}, which no strategy names: this run neither          cancels nor shows it; cancel it with windvane call, or name the symbol"
    )]
    Elsewhere {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
        /// `clientOrderId`.
        order: ClientOrderId,
    },
    /// An open order of others that does not fit the rules that are known here.
    #[error(
        "an order of others cannot be read: {order} on {surface}:{symbol} is left out: {error}"
    )]
    Foreign {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
        /// `clientOrderId`.
        order: ClientOrderId,
        /// Why.
        error: HearError,
    },
    /// It is in an asset that no configured instrument has.
    #[error("asset {asset} is not configured: {what} left out")]
    Asset {
        /// Name.
        asset: String,
        /// What it was.
        what: &'static str,
    },
    /// An answer could not be read: its outcome is unknown.
    #[error("the answer of {route} cannot be read: {error}; it begins with {excerpt:?}")]
    Unreadable {
        /// Route.
        route: &'static str,
        /// Why.
        error: HearError,
        /// The beginning of the body.
        excerpt: String,
    },
    /// A call of several has no outcome.
    #[error("there is no outcome of {route}: it counts as unknown")]
    Unanswered {
        /// Route.
        route: &'static str,
    },
    /// A part of an answer is missing; the rest counts.
    #[error("{what} is not known yet: {route} was not sent, or has no answer")]
    Part {
        /// Route.
        route: &'static str,
        /// What it would have told.
        what: &'static str,
    },
    /// A configured symbol is not in exchange information.
    #[error("{surface}:{symbol} is not listed any more: its known rules stay in use")]
    Unlisted {
        /// Surface.
        surface: Surface,
        /// Symbol.
        symbol: String,
    },
    /// An event that the engine has no use for.
    #[error("user event {0:?} is not for the engine")]
    Event(String),
}

/// Why a request cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpeakError {
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
    #[error("reduceOnly may not be sent with positionSide (spec 2, New order): leave it out")]
    ReduceOnlyInHedgeMode,
    /// The route is not in documents 1 to 3.
    #[error(
        "route {0} is not in documents 1 to 3; set market_data to \"auto\" or \"streams\" to allow it"
    )]
    Undocumented(&'static str),
    /// It would leave long after it was decided.
    #[error("it waited {} ms to leave: what covered it may be over", .0.as_millis())]
    Late(std::time::Duration),
    /// The amount has more digits than a decimal.
    #[error("quoteOrderQty of {0} units of 1e-8 has more than 28 digits")]
    Amount(i128),
}

/// Why something that was heard cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HearError {
    /// Not the record that the documents describe.
    #[error("{0}")]
    Record(String),
    /// A figure that the engine's integers do not hold.
    #[error("{field} {value} does not fit 64 bits (amounts: 1e22) at {scale} decimal places")]
    Figure {
        /// Field.
        field: &'static str,
        /// What it says.
        value: Decimal,
        /// The decimal places that there are.
        scale: u8,
    },
    /// A quantity below 0.
    #[error("{field} {value} is below 0")]
    Negative {
        /// Field.
        field: &'static str,
        /// What it says.
        value: Decimal,
    },
    /// A time beyond the year 2262.
    #[error("{field} {ms} is no time in milliseconds")]
    Time {
        /// Field.
        field: &'static str,
        /// What it says.
        ms: i64,
    },
    /// A word that the documents do not list, where one of theirs is needed.
    #[error("{field} {word:?} is not in the documents")]
    Word {
        /// Field.
        field: &'static str,
        /// What it says.
        word: String,
    },
    /// A field that is needed is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// It speaks of something else than what was asked.
    #[error("it is about {found:?}, not about {asked:?}")]
    Other {
        /// What it is about.
        found: String,
        /// What was asked for.
        asked: String,
    },
    /// The account hides what is on it from the info endpoint.
    #[error(
        "accountPrivacy is {0}: the info endpoint is no evidence; make the account public or use \
         the routes of document 4"
    )]
    Private(String),
}

/// A word of the documents, or an error that names its field.
fn known<T: Copy + std::fmt::Display>(
    field: &'static str,
    word: &crate::wire::Word<T>,
) -> Result<T, HearError> {
    word.known().copied().ok_or_else(|| HearError::Word {
        field,
        word: word.to_string(),
    })
}
