//! The interface to an exchange. Everything in the session that depends on the exchange is behind
//! it: encoding requests, decoding responses and frames, classifying responses, signing, and the
//! list of capabilities.
//!
//! A second exchange is one crate that implements [`Exchange`] and [`PublicFeed`]; the rest of the
//! session does not change. [`Documented`] is the exchange of docs/interface.
//!
//! This module must never contain decisions about orders, waiting, or sockets.

mod documented;
mod feed;
mod listings;
mod weights;

use std::fmt;

use windvane_client_core::Gateway;
use windvane_client_core::budget::{Cost, Departed};
use windvane_client_core::gateway::{Answer, Failure, Now, Unsigned};
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::feed::{ConnectionId, FeedInput, FeedOutput, Text};
use windvane_model::{
    Instrument, InstrumentId, MarketEvent, Reply, Request, Surface, Time, UserEvent,
};
use windvane_protocol::Assets;
use windvane_protocol::adapter::{
    CallResult, EncodeError, EncodedCall, FuturesAccount, Names, WithNotes,
};
use windvane_protocol::sign::{PrepareError, Prepared};

use crate::instrument_name::InstrumentName;
use crate::startup_error::StartupError;

pub use documented::Documented;
pub use feed::DocumentedFeed;

/// Levels of a depth snapshot (the local book: docs/interface/market-data.md#joining-a-local-book).
pub const DEPTH_LEVELS: &str = "1000";

/// The capabilities of an exchange, and their cost.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// The surfaces that it trades.
    pub surfaces: &'static [Surface],
    /// Surfaces whose orders can be cancelled by a countdown of the exchange. A watchdog process
    /// covers the others.
    pub countdown: &'static [Surface],
    /// Names of the routes that report the account's modes. Their responses are cached: they cost
    /// much weight, and the user stream reports changes.
    pub modes: &'static [&'static str],
    /// The weight of a call on a surface; 0 if the surface has no such call.
    pub weight: fn(Surface, Recurring) -> u32,
}

/// A call that a run makes repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recurring {
    /// The clock.
    Clock,
    /// The instruments and the limits.
    Listing,
    /// A snapshot of a book.
    Depth,
    /// The countdown that cancels the orders of a symbol.
    Heartbeat,
    /// The open orders of all symbols.
    OpenOrders,
    /// The open orders of one symbol.
    OpenOrdersOfSymbol,
    /// The account.
    Account,
    /// The futures account, by the info endpoint.
    AccountInfo,
    /// The fills of the account.
    AccountTrades,
    /// The renewal of a listen key.
    RenewKey,
    /// All routes that report the modes of the account.
    Modes,
}

/// A query that the session makes for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query<'a> {
    /// The instruments of a surface, and its limits.
    Listing(Surface),
    /// The clock of a surface. The response also shows the used weight, and costs least.
    Clock(Surface),
    /// The futures account, to find out whether the exchange has this route.
    FuturesAccount,
    /// A snapshot of the book of a symbol.
    Depth(Surface, &'a str),
    /// Creation of a listen key. The exchange prolongs the existing key or returns a new one.
    CreateKey(Surface),
    /// Renewal of a listen key.
    RenewKey(Surface, &'a str),
    /// The open orders of a symbol.
    OpenOrders(Surface, &'a str),
    /// Cancel of an order, by its symbol and its client order id.
    Cancel(Surface, &'a str, &'a str),
}

/// Where a call is signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signing {
    /// By the keys of this process, at once.
    #[default]
    Here,
    /// By a signer elsewhere, which responds later: [`Output::Sign`](crate::Output::Sign). Calls
    /// that need no key are not sent to it.
    Elsewhere,
}

/// One exchange. See the module documentation.
pub trait Exchange: fmt::Debug + Send + Sync {
    /// Its capabilities.
    fn capabilities(&self) -> Capabilities;

    /// Its request budget, its clocks, and the bans of this address.
    fn gateway(&self) -> &Gateway;

    /// Instruments and assets by the exchange's names; empty before [`Self::configure`].
    fn names(&self) -> &Names;

    /// Takes the results of a start. From here on, requests of the engine can be encoded.
    fn configure(&mut self, names: Names, futures_account: FuturesAccount);

    /// The calls of an engine request, to be made in this order.
    ///
    /// # Errors
    /// The request cannot be encoded.
    fn encode_request(&self, request: &Request) -> Result<Vec<EncodedCall>, EncodeError>;

    /// The calls to list the open orders of a surface, one for each configured symbol. Use them if
    /// one list of all orders costs more.
    ///
    /// # Errors
    /// The route must not be used.
    fn open_orders_by_symbol(&self, surface: Surface) -> Result<Vec<EncodedCall>, EncodeError>;

    /// The call of a session query; `None` if the exchange has no such call.
    fn encode_query(&self, query: Query<'_>) -> Option<EncodedCall>;

    /// The budget cost of a call.
    fn cost(&self, call: &EncodedCall) -> Cost;

    /// A call with its timestamp and nonces, before it is signed.
    fn unsigned(&self, local_us: i64, call: &EncodedCall) -> Unsigned;

    /// The signed bytes of a call; `None` if a signer elsewhere must sign it.
    fn sign(&self, unsigned: &Unsigned) -> Option<Result<Prepared, PrepareError>>;

    /// The signed bytes of an order that is not sent, so that the next order finds its code in the
    /// processor caches. This does not use up budget or nonces. `None` if it would have no benefit.
    fn rehearse(&self, call: &EncodedCall) -> Option<Prepared>;

    /// Classifies the response to a call, and corrects the budget.
    ///
    /// # Errors
    /// The call was not carried out, or it is unknown whether it was.
    fn judge(
        &self,
        now: Now,
        call: &Unsigned,
        sent: (&Cost, Departed),
        answer: Result<Answer<'_>, Failure>,
    ) -> Result<(), NotDone>;

    /// Whether a call was refused because of its timestamp, so that the clock must be read again.
    fn is_of_clock(&self, not_done: &NotDone) -> bool;

    /// Whether a renewal was refused because the listen key does not exist any more.
    fn is_of_dead_key(&self, not_done: &NotDone) -> bool;

    /// The replies to a request, from the results of its calls ([`Self::encode_request`]) in their order.
    fn decode_reply(&self, request: &Request, results: &[CallResult<'_>]) -> WithNotes<Reply>;

    /// The replies to a request that was not sent.
    fn refuse(&self, request: &Request, error: &EncodeError) -> Vec<Reply>;

    /// The clock in a response to [`Query::Clock`], in Unix milliseconds.
    fn clock_ms(&self, text: &str) -> Option<i64>;

    /// The listen key in a response to [`Query::CreateKey`].
    fn listen_key(&self, text: &str) -> Option<String>;

    /// The path of the user stream of a listen key.
    fn user_stream(&self, key: &str) -> String;

    /// When the listen key of a user stream expired, by the exchange's clock in Unix milliseconds;
    /// `None` if the frame does not report an expiry.
    fn key_expiry_ms(&self, text: &str) -> Option<i64>;

    /// Decodes a frame of a user stream.
    ///
    /// # Errors
    /// The frame cannot be decoded. Its events are lost.
    fn user_event(&self, surface: Surface, text: &str) -> Result<WithNotes<UserEvent>, String>;

    /// Checks whether a response to [`Query::Listing`] is complete.
    ///
    /// # Errors
    /// The reason why it is not.
    fn check_listing(&self, text: &str) -> Result<(), String>;

    /// The instruments with these names, in the same order, and the assets of the exchange, from
    /// the listings.
    ///
    /// # Errors
    /// An instrument is not listed, or its rules cannot be used.
    fn instruments(
        &self,
        names: &[InstrumentName],
        listings: &[(Surface, String)],
    ) -> Result<(Vec<Instrument>, Assets), StartupError>;

    /// The client order ids of the orders in a response to [`Query::OpenOrders`] that are still
    /// open. An exchange may also list orders that ended in the last seconds.
    ///
    /// # Errors
    /// The reason why the response cannot be read.
    fn open_orders(&self, text: &str) -> Result<Vec<String>, String>;

    /// Whether [`Query::Cancel`] was refused because the order has ended or never existed.
    fn is_nothing_to_cancel(&self, not_done: &NotDone) -> bool;

    /// Whether a response to [`Query::FuturesAccount`] is an account. An exchange in trouble may
    /// send something else.
    fn is_account(&self, text: &str) -> bool;

    /// Where the futures account is read if it has no route; `None` if that is not possible.
    fn other_futures_account(&self) -> Option<FuturesAccount>;
}

/// A frame, and when it was read from its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The frame.
    pub text: String,
    /// Arrival, by the shell's clock.
    pub at: Time,
}

impl Text for Received {
    fn with_text(&self, text: String) -> Self {
        Self { text, at: self.at }
    }
}

impl AsRef<str> for Received {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// Receives market events, in the order in which the engine receives them.
pub type EmitMarket<'a> = dyn FnMut(InstrumentId, MarketEvent<'_>) + 'a;

/// The public data of one surface of an exchange: its connections, its polls and the content of its
/// frames. Time is in milliseconds since the feed began.
pub trait PublicFeed: fmt::Debug + Send {
    /// Handles an event of its connections or polls.
    fn handle(&mut self, now_ms: u64, input: FeedInput<Received>);

    /// The next thing to do.
    fn poll(&mut self) -> Option<FeedOutput<Received>>;

    /// When it must be called again.
    fn timeout_ms(&self) -> u64;

    /// Decodes a frame of a connection once, for the connection and for the market. Returns the
    /// instrument whose snapshot must be requested.
    fn frame(
        &mut self,
        now_ms: u64,
        connection: ConnectionId,
        text: &str,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId>;

    /// Decodes a frame from polling. Returns the instrument whose snapshot must be requested.
    fn polled(&mut self, text: &str, emit: &mut EmitMarket<'_>) -> Option<InstrumentId>;

    /// The response to [`Query::Depth`], or `None` if the request failed.
    fn snapshot(
        &mut self,
        instrument: InstrumentId,
        text: Option<&str>,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId>;

    /// Events of these symbols may have been missed.
    fn interrupted(&mut self, symbols: &[String], emit: &mut EmitMarket<'_>);
}
