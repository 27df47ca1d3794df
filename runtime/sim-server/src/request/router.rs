//! Finds the route of a path and a method: the route table, with the brand filled in, sorted by
//! path.
//!
//! The documents show market data of spot only under v3 and of futures only under v1. For the other
//! version they say only "not shown". Services of this kind serve both, and public clients use
//! either. So each market data path is also served under the other version.

use std::collections::{BTreeMap, BTreeSet};

use windvane_protocol::Brand;
use windvane_protocol::route::{self, Listing, Route, Scheme, Security, Surface, Version};

use super::{Family, Received, Refusal, json_rpc};

/// Parameters that authentication adds. Every route accepts them.
const AUTHENTICATION: &[&str] = &[
    "timestamp",
    "recvWindow",
    "signature",
    "nonce",
    "user",
    "signer",
    "signatureChainId",
];

/// A route under one of its paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) route: &'static Route,
    pub(crate) listing: &'static Listing,
    pub(crate) scheme: Scheme,
}

/// Every path of the documents.
#[derive(Debug)]
pub(crate) struct Router {
    paths: BTreeMap<String, Vec<Found>>,
    /// JSON-RPC methods.
    methods: BTreeMap<String, Found>,
    /// Every parameter of any route, in lower case.
    names: BTreeSet<String>,
    /// Every parameter that authentication adds, in lower case.
    authentication: BTreeSet<String>,
}

impl Router {
    pub(crate) fn new(brand: &Brand) -> Self {
        let mut router = Self {
            paths: BTreeMap::new(),
            methods: BTreeMap::new(),
            names: BTreeSet::new(),
            authentication: BTreeSet::new(),
        };
        let listed = route::all().flat_map(|route| route.params);
        router.names = listed.map(|param| param.name.to_lowercase()).collect();
        let added = AUTHENTICATION.iter().copied();
        let own = std::iter::once(brand.chain_parameter.as_str());
        router.authentication = added.chain(own).map(str::to_lowercase).collect();
        for route in route::all() {
            for listing in route.listings {
                let found = Found {
                    route,
                    listing,
                    scheme: listing.scheme,
                };
                let path = brand.fill(listing.path);
                if route.surface == Surface::Rpc {
                    router.methods.insert(brand.fill(route.name), found);
                }
                if let Some((path, scheme)) = other_version(route, listing, &path) {
                    let found = Found { scheme, ..found };
                    router.paths.entry(path).or_default().push(found);
                }
                // A listed path takes precedence over another version of the same path.
                router.paths.entry(path).or_default().insert(0, found);
            }
        }
        router
    }

    /// Whether any route has a parameter of this name, in any case.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.contains(&name.to_lowercase())
    }

    /// Whether authentication adds a parameter of this name, in any case.
    pub(crate) fn authenticates(&self, name: &str) -> bool {
        self.authentication.contains(&name.to_lowercase())
    }

    /// The route of a request: 404 if the port has no route with this path, 405 if it has one but
    /// not with this method. The `method` of a JSON-RPC request selects its route. If it is missing
    /// or unknown, any JSON-RPC route is returned, and its handler reports the error.
    pub(crate) fn find(&self, received: &Received<'_>) -> Result<Found, Refusal> {
        let served = |found: &&Found| received.port.surfaces().contains(&found.route.surface);
        let all = self.paths.get(received.path).map_or(&[][..], Vec::as_slice);
        let mut of_port = all.iter().filter(served).peekable();
        let known = of_port.peek().is_some();
        let by_method = of_port.find(|found| found.route.method.as_str() == received.method);
        if let Some(found) = by_method {
            if found.route.surface != Surface::Rpc {
                return Ok(*found);
            }
            let method = json_rpc::method(received.body);
            let named = method.and_then(|method| self.methods.get(&method));
            return Ok(*named.unwrap_or(found));
        }
        let (method, path) = (received.method, received.path);
        let msg = format!("Path {path}, Method {method} is invalid.");
        let status = if known { 405 } else { 404 };
        Err(Refusal::new(-1020, msg).with_status(status))
    }
}

/// A market data path under the version that the documents do not show, and its security
/// (`MARKET_DATA` needs a key in v1 and nothing in v3:
/// docs/interface/conventions.md#security-labels).
fn other_version(route: &Route, listing: &Listing, path: &str) -> Option<(String, Scheme)> {
    if Family::of(route.name) != Family::Market {
        return None;
    }
    let (path, version) = match listing.version? {
        Version::V1 => (path.replacen("/v1/", "/v3/", 1), Version::V3),
        Version::V3 => (path.replacen("/v3/", "/v1/", 1), Version::V1),
        Version::V2 | Version::V4 => return None,
    };
    if route.listing(Some(version)).is_some() {
        return None;
    }
    let needs_key = route.security == Security::MarketData && version == Version::V1;
    let scheme = if needs_key {
        Scheme::ApiKey
    } else {
        Scheme::Open
    };
    Some((path, scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listing_is_found_by_its_path() {
        let brand = Brand::new("svc").unwrap();
        let router = Router::new(&brand);
        for route in route::all() {
            for listing in route.listings {
                let all = &router.paths[&brand.fill(listing.path)];
                let same = all
                    .iter()
                    .filter(|found| found.route.method == route.method);
                let names: Vec<_> = same.map(|found| found.route.name).collect();
                assert!(names.contains(&route.name), "{} in {names:?}", route.name);
                assert!(
                    names.len() == 1 || route.surface == Surface::Rpc,
                    "{names:?}"
                );
            }
        }
    }

    #[test]
    fn market_data_is_served_under_both_versions() {
        let router = Router::new(&Brand::new("svc").unwrap());
        let scheme = |path: &str| router.paths[path][0].scheme;
        assert_eq!(scheme("/fapi/v3/depth"), Scheme::Open);
        assert_eq!(scheme("/fapi/v3/historicalTrades"), Scheme::Open);
        assert_eq!(scheme("/fapi/v1/historicalTrades"), Scheme::ApiKey);
        assert_eq!(scheme("/api/v1/historicalTrades"), Scheme::ApiKey);
        assert!(
            !router
                .paths
                .contains_key("/fapi/v3/remainingOpenableNotionalValue")
        );
    }
}
