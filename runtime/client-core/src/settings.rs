//! Settings that decide which requests are sent, and in which version.
//!
//! This module contains no addresses, keys, files or environment variables.

use windvane_protocol::route::{Method, Route, Security, Surface, Version};

/// How requests are signed if a route has more than one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Api {
    /// HMAC.
    #[default]
    V1,
    /// Wallet signatures.
    V3,
}

/// Where market data comes from (`market_data` in the configuration).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarketData {
    /// Only the core interface (docs/interface/README.md#core-and-public-facts):
    /// `tradepro`, and polling within the budget.
    Documented,
    /// The public streams of docs/interface/market-data.md#public-streams.
    Streams,
    /// Streams; polling for each topic whose stream does not work.
    #[default]
    Auto,
}

/// The version in which a route is called with this way of signing.
///
/// Futures market data always uses the documented version, `v1`. A route without a version of the
/// wanted kind is called in the version that it has. JSON-RPC has no versions.
pub fn default_version(route: &Route, api: Api) -> Option<Version> {
    let listed = |version| {
        let found = route.listings.iter().find(|row| row.version == version);
        found.map(|row| row.version)
    };
    let wanted: &[Version] = match api {
        Api::V3 if route.surface == Surface::Futures && is_market_data(route) => &[Version::V1],
        Api::V3 => &[Version::V3],
        Api::V1 => &[Version::V1, Version::V2, Version::V4],
    };
    let found = wanted.iter().find_map(|version| listed(Some(*version)));
    found.unwrap_or_else(|| route.listings.first().and_then(|row| row.version))
}

/// Whether a route reads market data, which needs no signature.
pub fn is_market_data(route: &Route) -> bool {
    route.method == Method::Get && matches!(route.security, Security::None | Security::MarketData)
}

#[cfg(test)]
mod tests {
    use windvane_protocol::route;

    use super::*;

    fn version(name: &str, api: Api) -> Option<Version> {
        default_version(route::named(name).unwrap(), api)
    }

    #[test]
    fn market_data_is_called_in_the_documented_version() {
        for api in [Api::V1, Api::V3] {
            assert_eq!(version("spot.depth", api), Some(Version::V3));
            assert_eq!(version("futures.depth", api), Some(Version::V1));
            assert_eq!(version("futures.funding_info", api), Some(Version::V1));
        }
    }

    #[test]
    fn signed_routes_use_the_chosen_api_where_it_is_listed() {
        assert_eq!(version("spot.new_order", Api::V1), Some(Version::V1));
        assert_eq!(version("spot.new_order", Api::V3), Some(Version::V3));
        assert_eq!(version("futures.balance", Api::V1), Some(Version::V2));
        assert_eq!(version("futures.balance", Api::V3), Some(Version::V3));
        assert_eq!(version("futures.account", Api::V1), Some(Version::V4));
        assert_eq!(version("futures.approve_agent", Api::V1), Some(Version::V3));
        assert_eq!(version("spot.create_api_key", Api::V3), Some(Version::V1));
        assert_eq!(version("chain.transfer", Api::V1), Some(Version::V3));
        assert_eq!(version("{rpc}getBalance", Api::V3), None);
    }
}
