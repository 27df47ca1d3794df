//! The route and version of a refused request, and the advice where the venue does not serve it.

use std::fmt;

use windvane_protocol::route::{Route, Source, Surface, Version};

use crate::settings::{Api, default_version};

/// A route, and the version in which it was called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CalledRoute {
    /// The route.
    pub route: &'static Route,
    /// Its version; `None` for JSON-RPC.
    pub version: Option<Version>,
}

impl CalledRoute {
    /// Advice for the operator if the venue does not serve the route. It names another version
    /// only where one exists.
    pub fn advice_where_not_served(&self) -> String {
        let (name, surface) = (self.route.name, self.route.surface);
        let address = format!(
            "Check that venue.{surface}.rest is the address of the venue's {surface} routes"
        );
        let mut advice = match self.other() {
            Some((other, how)) => {
                let version = self.version.map_or("", Version::as_str);
                format!(
                    "Nothing was changed: the venue does not serve {name} as {version} at this \
                     address. {address}, or use its other version, {other}: {how}."
                )
            }
            None => format!(
                "Nothing was changed: the venue does not serve {name} at this address, and the \
                 route has no other version. {address}."
            ),
        };
        if self.route.source == Source::PublicFacts {
            advice.push_str(
                " The core interface (docs/interface/README.md#core-and-public-facts) does not \
                 have this route, and some venues do not either: with venue.market_data = \
                 \"documented\" a run does without such routes.",
            );
        }
        advice
    }

    /// The other version of the route, and how it is chosen.
    fn other(&self) -> Option<(Version, String)> {
        let mut versions = self.route.listings.iter().filter_map(|row| row.version);
        let other = versions.find(|version| Some(*version) != self.version)?;
        let api = match other {
            Version::V3 => Api::V3,
            Version::V1 | Version::V2 | Version::V4 => Api::V1,
        };
        let word = match api {
            Api::V1 => "v1",
            Api::V3 => "v3",
        };
        // No setting chooses the version of market data routes.
        let is_set = default_version(self.route, api) == Some(other);
        let how = match self.route.surface {
            surface @ (Surface::Spot | Surface::Futures) if is_set => {
                format!("set venue.{surface}.api = \"{word}\", or give windvane call --api {word}")
            }
            _ => format!("give windvane call --api {word}"),
        };
        Some((other, how))
    }
}

impl fmt::Debug for CalledRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.route.name)?;
        match self.version {
            Some(version) => write!(f, " {version}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use windvane_protocol::route;

    use super::*;

    fn advice(name: &str, version: Option<Version>) -> String {
        let route = route::named(name).unwrap();
        let advice = CalledRoute { route, version }.advice_where_not_served();
        assert!(!advice.contains("..") && !advice.contains("  "), "{advice}");
        assert!(advice.contains(route.name), "{advice}");
        advice
    }

    #[test]
    fn advice_names_the_other_version_and_its_setting() {
        let (v1, v3) = (Version::V1, Version::V3);
        for (route, version, other, how) in [
            ("spot.account", v1, "v3", "set venue.spot.api = \"v3\","),
            (
                "futures.new_order",
                v3,
                "v1",
                "set venue.futures.api = \"v1\",",
            ),
            (
                "futures.balance",
                v3,
                "v2",
                "set venue.futures.api = \"v1\",",
            ),
            (
                "futures.account",
                v3,
                "v4",
                "set venue.futures.api = \"v1\",",
            ),
        ] {
            let advice = advice(route, Some(version));
            let expected = format!("use its other version, {other}: {how}");
            assert!(advice.contains(&expected), "{advice}");
            assert!(advice.contains(&format!("as {version} at")), "{advice}");
        }
        let market_data = advice("futures.funding_info", Some(v1));
        assert!(market_data.contains("v3: give windvane call --api v3."));
        assert!(!market_data.contains(".api"), "no setting chooses it");
    }

    #[test]
    fn advice_for_a_single_version_names_the_address_to_check() {
        for route in route::all().filter(|route| route.listings.len() == 1) {
            let advice = advice(route.name, route.listings[0].version);
            assert!(advice.contains("no other version"), "{advice}");
            assert!(!advice.contains("api ="), "{advice}");
            let address = format!("venue.{}.rest", route.surface);
            assert!(advice.contains(&address), "{advice}");
        }
    }

    #[test]
    fn advice_says_that_some_venues_lack_undocumented_routes() {
        for route in route::all() {
            let advice = advice(route.name, route.listings[0].version);
            let is_public = route.source == Source::PublicFacts;
            assert_eq!(advice.contains("some venues do not"), is_public, "{advice}");
        }
    }
}
