//! Choices of the configuration that decide what is asked, and in which version.
//!
//! What may never enter here: addresses, keys, files, environment variables.

use windvane_protocol::route::{Method, Route, Security, Surface, Version};

/// How signed requests are made where a route has more than one version.
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
    /// Nothing outside documents 1 to 3: `tradepro`, and budgeted polling.
    Documented,
    /// The public streams of spec 4, section 5.
    Streams,
    /// Streams, falling back per topic.
    #[default]
    Auto,
}

/// The version of a route for a way of signing.
///
/// Futures market data is always the version that the documents show, `v1`; routes that have no
/// version of the wanted kind are called in the one they have. JSON-RPC has none.
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

/// Whether a route reads market data, which nobody signs.
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
    fn signed_routes_follow_the_api_as_far_as_they_are_listed() {
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
