//! The types of a row of the route table.

use std::fmt;

/// The part of the service that serves a route. Each part has its own base addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surface {
    /// Spot.
    Spot,
    /// Perpetual futures.
    Futures,
    /// Chain API (docs/interface/chain.md#chain-routes).
    Chain,
    /// JSON-RPC info endpoint (docs/interface/chain.md#info-endpoint).
    Rpc,
}

/// The version in a route's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `v1`: HMAC.
    V1,
    /// `v2`: HMAC; two account routes (docs/interface/conventions.md#versions).
    V2,
    /// `v3`: wallet signatures.
    V3,
    /// `v4`: HMAC; one account route.
    V4,
}

/// HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
}

/// The security label of a route, as the documents print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Security {
    /// No authentication; also for routes without a label
    /// (docs/interface/conventions.md#security-labels).
    None,
    /// Signed; places, changes or cancels.
    Trade,
    /// Signed; reads the account.
    UserData,
    /// API key only in v1, signed in v3 (docs/interface/conventions.md#security-labels).
    UserStream,
    /// API key in v1. In v3 an API key is sent if there is one: the core interface requires it,
    /// public facts do not (docs/interface/conventions.md#where-descriptions-differ).
    MarketData,
    /// Signed; moves assets between the wallets
    /// (docs/interface/account.md#transfers-between-wallets).
    Transfer,
    /// A wallet's signature over the movement (docs/interface/chain.md#authentication).
    Withdraw,
}

/// How a request to one path is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Nothing is added, except an available API key for `MARKET_DATA`.
    Open,
    /// Header `X-MBX-APIKEY`.
    ApiKey,
    /// API key, `timestamp`, `recvWindow`, HMAC `signature`
    /// (docs/interface/conventions.md#signing-with-an-api-key).
    Hmac,
    /// `nonce`, `user`, `signer`, EIP-712 `Message` of the agent
    /// (docs/interface/conventions.md#signing-with-a-wallet).
    Message,
    /// `user`, `nonce`, EIP-712 `Message` of the main wallet; no `signer` (the chain API's
    /// transfers: docs/interface/conventions.md#messages-of-the-main-wallet).
    WalletMessage,
    /// Typed data of this primary type by the main wallet
    /// (docs/interface/conventions.md#signing-management-routes).
    Typed(&'static str),
}

/// An additional signature inside the business parameters, made by the main wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerSignature {
    /// `userSignature` over the withdrawal `Action`. Its nonce is sent in this parameter (`nonce`
    /// or `userNonce`; docs/interface/conventions.md#signing-withdrawals).
    Withdrawal {
        /// The parameter's name.
        nonce: &'static str,
    },
    /// `userSignature` over the text of a Solana withdrawal (Ed25519), with the nonce in
    /// `userNonce`.
    SolanaWithdrawal,
    /// `userSignature` over the API-key sentence (EIP-191) and the nonce that `getNonce` returned.
    Sentence,
}

/// The request weight of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The weight is the same for every call.
    Fixed(u32),
    /// The weight depends on whether `symbol` is sent.
    BySymbol {
        /// With `symbol`.
        with: u32,
        /// Without.
        without: u32,
    },
    /// The weight depends on `limit`: the first entry whose bound is at or above it counts.
    ByLimit {
        /// The `limit` that counts if none is sent.
        default: u32,
        /// Pairs of largest limit and weight, ascending.
        steps: &'static [(u32, u32)],
    },
    /// The documents do not show the weight; it is planned as 1.
    NotShown,
}

/// The limits that a request counts against in addition to its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// No other limit.
    WeightOnly,
    /// One order of the account's ORDERS limits.
    Order,
    /// As many orders as the list in `batchOrders` has entries.
    BatchOrders,
    /// A separate limit: requests per minute and IP.
    PerMinute(u32),
}

/// The type of a parameter, as the documents name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// STRING.
    String,
    /// LONG.
    Long,
    /// INT or INTEGER.
    Int,
    /// DECIMAL.
    Decimal,
    /// BOOLEAN, or a STRING with the value `true` or `false`.
    Boolean,
    /// ENUM with these values.
    Enum(&'static [&'static str]),
    /// A JSON list, sent as text.
    List,
    /// A wallet address (STRING).
    Address,
}

/// Whether a parameter must be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Must be sent.
    Required,
    /// May be sent.
    Optional,
    /// At least one of the route's parameters with this mark must be sent.
    OneOf,
}

/// The documented bounds of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// No bound, or a rule that depends on more than this parameter.
    Any,
    /// An integer or decimal in this range, both ends included, as text.
    Range(&'static str, &'static str),
    /// One of these integers.
    Values(&'static [i64]),
    /// A text with at least and at most this many characters.
    Length(usize, usize),
    /// A list with at most this many entries.
    Entries(usize),
    /// A decimal greater than 0; as text if the parameter is a STRING.
    AboveZero,
    /// An integer or decimal of 0 or more; as text if the parameter is a STRING.
    NotNegative,
    /// An order's client id: 1 to 36 letters, digits and `.:/_-`
    /// (docs/interface/orders.md#place-a-futures-order).
    ClientOrderId,
    /// A Solana address: 32 bytes in base58.
    SolanaAddress,
}

/// One business parameter. Parameters that the authentication adds (`timestamp`, `nonce`,
/// `signature`, ...) follow from [`Scheme`] and are not listed, unless the caller must choose them.
/// An inner signature and its nonce are listed, as in the documents; they are added if the caller
/// does not give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name as documented.
    pub name: &'static str,
    /// Type of the value.
    pub kind: Kind,
    /// Required or not.
    pub need: Need,
    /// Bounds.
    pub bounds: Bounds,
    /// The value that counts if the parameter is not sent, as text.
    pub default: Option<&'static str>,
    /// The only version that has this parameter; `None` if all versions have it.
    pub only: Option<Version>,
}

/// The part of the interface that describes a route
/// (docs/interface/README.md#core-and-public-facts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The core: spot.
    Spec1,
    /// The core: futures.
    Spec2,
    /// The core: chain API and info endpoint.
    Spec3,
    /// Public facts, not verified against the service.
    PublicFacts,
}

/// One version of a route: its path and its authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The version; `None` for JSON-RPC, because its path has no version.
    pub version: Option<Version>,
    /// Path template.
    pub path: &'static str,
    /// Authentication.
    pub scheme: Scheme,
    /// Inner signature.
    pub inner: Option<InnerSignature>,
}

/// One route in all its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Name, equal across versions: `futures.new_order`; the method for JSON-RPC.
    pub name: &'static str,
    /// Surface.
    pub surface: Surface,
    /// Method.
    pub method: Method,
    /// Label.
    pub security: Security,
    /// Weight.
    pub weight: Weight,
    /// Other limits that a call counts against.
    pub counted: Counted,
    /// Parameters in the documents' order.
    pub params: &'static [Param],
    /// The paths, one for each version.
    pub listings: &'static [Listing],
    /// The record of the response, as the documents describe it.
    pub answer: &'static str,
    /// The document that describes it.
    pub source: Source,
    /// The route may change the account or move assets, so an unknown outcome must be settled by a
    /// query.
    pub changes: bool,
}

impl Route {
    /// The listing of the route in a version.
    pub fn listing(&self, version: Option<Version>) -> Option<&'static Listing> {
        self.listings
            .iter()
            .find(|listing| listing.version == version)
    }
}

impl Listing {
    /// Whether a request needs a nonce of its own.
    pub const fn takes_nonce(&self) -> bool {
        let outside = matches!(
            self.scheme,
            Scheme::Message | Scheme::WalletMessage | Scheme::Typed(_)
        );
        outside || self.inner.is_some()
    }
}

impl Surface {
    /// All four surfaces.
    pub const ALL: [Self; 4] = [Self::Spot, Self::Futures, Self::Chain, Self::Rpc];

    /// The name in the route table and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spot => "spot",
            Self::Futures => "futures",
            Self::Chain => "chain",
            Self::Rpc => "rpc",
        }
    }
}

impl Method {
    /// The name in an HTTP request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

impl Version {
    /// The path segment.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
        }
    }
}

impl Security {
    /// The label as printed in the documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Trade => "TRADE",
            Self::UserData => "USER_DATA",
            Self::UserStream => "USER_STREAM",
            Self::MarketData => "MARKET_DATA",
            Self::Transfer => "TRANSFER",
            Self::Withdraw => "WITHDRAW",
        }
    }
}

impl Source {
    /// The name in the printed table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spec1 | Self::Spec2 | Self::Spec3 => "core",
            Self::PublicFacts => "public facts",
        }
    }
}

impl Weight {
    /// The weight of a request with these parameters.
    pub fn of(self, has_symbol: bool, limit: Option<u32>) -> u32 {
        match self {
            Self::Fixed(weight) => weight,
            Self::BySymbol { with, without } => {
                if has_symbol {
                    with
                } else {
                    without
                }
            }
            Self::ByLimit { default, steps } => {
                let limit = limit.unwrap_or(default);
                let step = steps.iter().find(|(largest, _)| limit <= *largest);
                step.or(steps.last()).map_or(1, |(_, weight)| *weight)
            }
            Self::NotShown => 1,
        }
    }
}

macro_rules! display_word {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}
display_word!(Surface, Method, Version, Security, Source);
