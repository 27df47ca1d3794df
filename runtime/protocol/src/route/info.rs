//! The JSON-RPC info endpoint (docs/interface/chain.md#info-endpoint) as data. Its parameters are
//! positional, in this order.

use super::row::{may, must, row};
use super::types::Kind::{Address, Long, String};
use super::types::{Listing, Param, Route, Scheme, Source, Surface, Weight::Fixed};

const RPC: (Surface, Source) = (Surface::Rpc, Source::Spec3);

/// All methods share one path without a version and without authentication
/// (docs/interface/chain.md#info-endpoint).
const INFO: Listing = Listing {
    version: None,
    path: "/info",
    scheme: Scheme::Open,
    inner: None,
};

const ADDRESS: Param = must("address", Address);
/// Null or empty text means all symbols.
const SYMBOL: Param = may("symbol", String);
const BLOCK_TAG: Param = must("blockTag", String);

pub(super) const ROUTES: &[Route] = &[
    row!(RPC "{rpc}getBalance", Post [INFO], None, Fixed(1))
        .takes(&[ADDRESS, BLOCK_TAG])
        .answers("JSON-RPC balance result"),
    row!(RPC "{rpc}openOrders", Post [INFO], None, Fixed(1))
        .takes(&[ADDRESS, SYMBOL, BLOCK_TAG])
        .answers("JSON-RPC open orders result"),
    row!(RPC "{rpc}userFills", Post [INFO], None, Fixed(1))
        .takes(&[
            ADDRESS,
            SYMBOL,
            may("from", Long),
            may("to", Long),
            BLOCK_TAG,
        ])
        .answers("JSON-RPC fills result"),
];
