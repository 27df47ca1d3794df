//! The seam to an exchange: everything that a session has to know of one is asked here. It encodes
//! requests, decodes answers and frames, judges answers, signs, and lists what the exchange can do.
//!
//! A second exchange is one crate that implements [`Exchange`] and [`PublicFeed`]; the rest of the
//! session does not change. [`Documented`] is the exchange of documents 1 to 3.
//!
//! What may never enter here: decisions about orders, waiting, sockets.

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
use windvane_protocol::sign::{PrepareError, Prepared};
use windvane_protocol::speak::{Asked, FuturesAccount, Heard, Names, Said, SpeakError};

use crate::start::{InstrumentName, StartError};

pub use documented::Documented;
pub use feed::DocumentedFeed;
pub use weights::Recurring;

/// What an exchange can do, and what it costs.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// What it trades.
    pub surfaces: &'static [Surface],
    /// Surfaces whose orders a countdown of the exchange cancels. A watchdog process covers the others.
    pub countdown: &'static [Surface],
    /// Names of the routes that tell the modes of the account. Their answers are kept for a while: they
    /// cost much, and the user stream tells when they change.
    pub modes: &'static [&'static str],
    /// What a call weighs on a surface; 0 if the surface has no such call.
    pub weight: fn(Surface, Recurring) -> u32,
}

/// A question that the session asks for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// The instruments of a surface, and its limits.
    Listing(Surface),
    /// The clock of a surface. Its answer also shows the weight that is used, and costs least.
    Clock(Surface),
    /// The futures account, to find out whether the exchange has this route.
    FuturesAccount,
    /// A snapshot of the book of a symbol.
    Depth(Surface, &'a str),
    /// A listen key: the living one, which is prolonged, or a new one.
    CreateKey(Surface),
    /// The renewal of a listen key.
    RenewKey(Surface, &'a str),
    /// The open orders of a symbol.
    OpenOrders(Surface, &'a str),
    /// The end of an order, by its symbol and its client order id.
    Cancel(Surface, &'a str, &'a str),
}

/// Where a call is signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signing {
    /// By the exchange's own keys, at once.
    #[default]
    Here,
    /// By a signer elsewhere, which answers later: [`Output::Sign`](crate::Output::Sign). Calls that
    /// need no key are not sent there.
    Elsewhere,
}

/// One exchange. See the module's page.
pub trait Exchange: fmt::Debug + Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The budget of its requests, its clocks, and the bans of this address.
    fn gateway(&self) -> &Gateway;

    /// Instruments and assets by the exchange's names; empty before [`Self::know`].
    fn names(&self) -> &Names;

    /// Takes over what a start found out. Requests of the engine can be encoded from here on.
    fn know(&mut self, names: Names, futures_account: FuturesAccount);

    /// The calls that a request of the engine needs, to be made in this order.
    ///
    /// # Errors
    /// The request cannot be made.
    fn encode(&self, request: &Request) -> Result<Vec<Asked>, SpeakError>;

    /// The open orders of a surface in one call for each configured symbol, where a list of all costs more.
    ///
    /// # Errors
    /// The call is not to be used.
    fn open_orders_by_symbol(&self, surface: Surface) -> Result<Vec<Asked>, SpeakError>;

    /// The call of a question of the session; `None` if the exchange has no such call.
    fn ask(&self, question: Question<'_>) -> Option<Asked>;

    /// What a call costs of the budget.
    fn cost(&self, call: &Asked) -> Cost;

    /// A call with its time and its nonces, before it is signed.
    fn unsigned(&self, local_us: i64, call: &Asked) -> Unsigned;

    /// The bytes of a call; `None` if a signer elsewhere has to sign it.
    fn sign(&self, unsigned: &Unsigned) -> Option<Result<Prepared, PrepareError>>;

    /// The bytes of an order that is not sent, so that the next one finds its code in the caches. Uses up
    /// neither budget nor nonces; `None` where there is nothing to be gained.
    fn rehearse(&self, call: &Asked) -> Option<Prepared>;

    /// What became of a call, by its answer. Corrects the budget.
    ///
    /// # Errors
    /// It was not carried out, or perhaps not.
    fn judge(
        &self,
        now: Now,
        call: &Unsigned,
        sent: (&Cost, Departed),
        answer: Result<Answer<'_>, Failure>,
    ) -> Result<(), NotDone>;

    /// Whether a call was refused for its time: the clock of the exchange has to be read again.
    fn is_of_clock(&self, not_done: &NotDone) -> bool;

    /// Whether a renewal was refused because the listen key is not known any more.
    fn is_of_dead_key(&self, not_done: &NotDone) -> bool;

    /// The replies to a request, of what became of the calls of [`Self::encode`], in their order.
    fn reply(&self, request: &Request, heard: &[Heard<'_>]) -> Said<Reply>;

    /// The replies to a request that was not sent.
    fn refuse(&self, request: &Request, error: &SpeakError) -> Vec<Reply>;

    /// The clock in an answer to [`Question::Clock`], Unix milliseconds.
    fn clock_ms(&self, text: &str) -> Option<i64>;

    /// The listen key in an answer to [`Question::CreateKey`].
    fn listen_key(&self, text: &str) -> Option<String>;

    /// The path of the user stream of a listen key.
    fn user_stream(&self, key: &str) -> String;

    /// When the listen key of a user stream expired, by the exchange's clock in Unix milliseconds, if
    /// this frame tells so.
    fn key_expiry_ms(&self, text: &str) -> Option<i64>;

    /// What a frame of a user stream says.
    ///
    /// # Errors
    /// It cannot be understood: what it told is missed.
    fn user_event(&self, surface: Surface, text: &str) -> Result<Said<UserEvent>, String>;

    /// Whether an answer to [`Question::Listing`] is whole.
    ///
    /// # Errors
    /// Why it is not.
    fn check_listing(&self, text: &str) -> Result<(), String>;

    /// The instruments of these names, in their order, and the assets of the exchange, from the listings.
    ///
    /// # Errors
    /// An instrument is not listed, or its rules cannot be used.
    fn instruments(
        &self,
        names: &[InstrumentName],
        listings: &[(Surface, String)],
    ) -> Result<(Vec<Instrument>, Assets), StartError>;

    /// Client order ids in an answer to [`Question::OpenOrders`], of orders that have not ended: an exchange
    /// may list those of the last seconds.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn open_orders(&self, text: &str) -> Result<Vec<String>, String>;

    /// Whether [`Question::Cancel`] was refused because the order is over, or was never there.
    fn is_nothing_to_cancel(&self, not_done: &NotDone) -> bool;

    /// Whether an answer to [`Question::FuturesAccount`] is one, and not that of an exchange in trouble.
    fn is_account(&self, text: &str) -> bool;

    /// Where the futures account is read if there is no route for it; `None` if it cannot be.
    fn other_futures_account(&self) -> Option<FuturesAccount>;
}

/// A frame, and when it was read from its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The frame.
    pub text: String,
    /// By the shell's clock.
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

/// Takes market events in the order in which the engine is told of them.
pub type EmitMarket<'a> = dyn FnMut(InstrumentId, MarketEvent<'_>) + 'a;

/// The public data of one surface of an exchange: which connections carry what, what is polled, and what
/// frames say. Time is in milliseconds since the feed began.
pub trait PublicFeed: fmt::Debug + Send {
    /// Takes in what happened to its connections and questions.
    fn handle(&mut self, now_ms: u64, input: FeedInput<Received>);

    /// The next thing to do.
    fn poll(&mut self) -> Option<FeedOutput<Received>>;

    /// When it wants to be called again.
    fn timeout_ms(&self) -> u64;

    /// Decodes a frame of a connection, which is decoded once: for the connection, and for the market.
    /// Answers the instrument whose snapshot has to be fetched.
    fn frame(
        &mut self,
        now_ms: u64,
        connection: ConnectionId,
        text: &str,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId>;

    /// The same of a frame that came of polling.
    fn polled(&mut self, text: &str, emit: &mut EmitMarket<'_>) -> Option<InstrumentId>;

    /// The answer to [`Question::Depth`], or that there is none.
    fn snapshot(
        &mut self,
        instrument: InstrumentId,
        text: Option<&str>,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId>;

    /// Events of these symbols may have been missed.
    fn interrupted(&mut self, symbols: &[String], emit: &mut EmitMarket<'_>);
}
