//! The route table: every route of the documents as data. The only behaviour is lookup:
//! [`crate::sign`] signs requests, and [`crate::wire`] has their parameters and responses as types.
//!
//! Paths and names are templates: `{brand}` is replaced with the brand word, `{Brand}` with the
//! word with an upper-case first letter, and `{rpc}` with the JSON-RPC prefix
//! (docs/interface/conventions.md#brand-words). [`crate::Brand::fill`] replaces them.

mod chain;
mod enums;
mod futures;
mod futures_market;
mod info;
mod orders;
mod row;
mod spot;
mod spot_market;
mod types;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use orders::{BATCH_ORDER, mandatory};
pub use types::{
    Bounds, Counted, InnerSignature, Kind, Listing, Method, Need, Param, Route, Scheme, Security,
    Source, Surface, Version, Weight,
};

const LISTS: [&[Route]; 6] = [
    spot::ROUTES,
    spot_market::ROUTES,
    futures::ROUTES,
    futures_market::ROUTES,
    chain::ROUTES,
    info::ROUTES,
];

/// Every route, by surface and in the order of the documents.
pub fn all() -> impl Iterator<Item = &'static Route> {
    LISTS.into_iter().flatten()
}

/// The route of a request type of [`crate::wire`], found at compile time: a request without a route
/// does not compile.
pub(crate) struct Of<R>(std::marker::PhantomData<R>);

impl<R: crate::wire::Request> Of<R> {
    pub(crate) const ROUTE: &'static Route = find(R::ROUTE);
}

const fn find(name: &str) -> &'static Route {
    let mut list = 0;
    while list < LISTS.len() {
        let mut row = 0;
        while row < LISTS[list].len() {
            if same(LISTS[list][row].name.as_bytes(), name.as_bytes()) {
                return &LISTS[list][row];
            }
            row += 1;
        }
        list += 1;
    }
    panic!("no route has this name")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The route with this name: as the template spells it (`{rpc}getBalance`), or with any prefix in
/// place of `{rpc}` (`svc_getBalance`).
pub fn named(name: &str) -> Option<&'static Route> {
    if let Some(route) = BY_NAME.get(name) {
        return Some(route);
    }
    let (_, method) = name.rsplit_once('_')?;
    info::ROUTES
        .iter()
        .find(|route| route.name.strip_prefix("{rpc}") == Some(method))
}

/// An index by name, because every request looks up its route by name.
static BY_NAME: LazyLock<BTreeMap<&str, &Route>> =
    LazyLock::new(|| all().map(|route| (route.name, route)).collect());
