//! The `[venue]` section that a profile alone gives, and where a configuration differs from it.

use super::error::ConfigError;
use super::profile::Profile;
use super::{Config, Endpoint, Overrides, Venue};

impl Profile {
    /// The profile's values, without any configuration.
    ///
    /// # Errors
    /// The profile's file breaks a rule of the configuration; a test excludes it.
    pub fn venue(self) -> Result<Venue, ConfigError> {
        let text = format!("[venue]\nprofile = \"{self}\"");
        Ok(Config::parse(&text, "profile", &Overrides::default())?.venue)
    }
}

impl Venue {
    /// The keys whose values differ from the profile's, such as `spot.rest`.
    ///
    /// # Errors
    /// See [`Profile::venue`].
    pub fn overridden(&self) -> Result<Vec<&'static str>, ConfigError> {
        let own = self.profile.venue()?;
        // Without an own address of the user stream, `ws` serves it.
        let user_ws = |given: &Endpoint, own: &Endpoint| {
            given.user_ws.is_none() || given.user_ws == own.user_ws
        };
        let keys = [
            ("brand", self.brand == own.brand),
            ("network", self.network == own.network),
            ("spot.rest", self.spot.rest == own.spot.rest),
            ("spot.ws", self.spot.ws == own.spot.ws),
            ("spot.user_ws", user_ws(&self.spot, &own.spot)),
            ("futures.rest", self.futures.rest == own.futures.rest),
            ("futures.ws", self.futures.ws == own.futures.ws),
            ("futures.user_ws", user_ws(&self.futures, &own.futures)),
            ("chain.rest", self.chain.rest == own.chain.rest),
            ("rpc.rest", self.rpc.rest == own.rpc.rest),
            ("names", self.names == own.names),
            ("signing_chain", self.signing_chain == own.signing_chain),
            ("limits", self.limits == own.limits),
        ];
        let differ = keys.into_iter().filter(|(_, same)| !same);
        Ok(differ.map(|(key, _)| key).collect())
    }
}

#[cfg(test)]
mod tests {
    use windvane_protocol::sign::Network as Signing;

    use super::*;
    use crate::Network;

    fn venue(text: &str) -> Venue {
        Config::parse(text, "c.toml", &Overrides::default())
            .unwrap()
            .venue
    }

    fn refusal(text: &str) -> String {
        let refused = Config::parse(text, "c.toml", &Overrides::default());
        refused.unwrap_err().to_string()
    }

    #[test]
    fn each_profile_has_only_known_keys() {
        for profile in Profile::ALL {
            let venue = profile.venue().unwrap();
            assert_eq!(venue.profile, profile);
            assert!(venue.brand().is_ok(), "{profile}");
            assert_eq!(venue.overridden().unwrap(), [""; 0], "{profile}");
        }
    }

    #[test]
    fn the_default_profile_equals_the_defaults() {
        let simulated = Profile::Simulated.venue().unwrap();
        assert_eq!(simulated, Venue::default());
        assert_eq!(venue(""), simulated);
        assert_eq!(venue("[run]\nmode = \"live\""), simulated);
        for endpoint in [
            &simulated.spot,
            &simulated.futures,
            &simulated.chain,
            &simulated.rpc,
        ] {
            assert_eq!(*endpoint, Endpoint::default());
        }
    }

    #[test]
    fn the_networks_of_the_profiles_use_the_documented_chains() {
        for profile in Profile::ALL {
            let venue = profile.venue().unwrap();
            let chains = (venue.signing_chain.mainnet, venue.signing_chain.testnet);
            let documented = (
                Signing::Mainnet.signing_chain(),
                Signing::Testnet.signing_chain(),
            );
            assert_eq!(chains, documented, "{profile}");
        }
    }

    #[test]
    fn the_names_of_aster_are_those_of_its_documents() {
        for profile in [Profile::Aster, Profile::AsterTestnet] {
            let brand = profile.venue().unwrap().brand().unwrap();
            assert_eq!(brand.signing_domain, "AsterSignTransaction");
            assert_eq!(brand.withdrawal_domain, "Aster");
            assert_eq!(brand.withdrawal_field, "aster chain");
            assert_eq!(brand.chain_parameter, "asterChain");
            assert_eq!(
                brand.fill("/{brand}-chain/v3/staking/getLocked{Brand}"),
                "/aster-chain/v3/staking/getLockedAster"
            );
            assert_eq!(brand.fill("{rpc}getBalance"), "aster_getBalance");
            let sentence = brand.login_sentence.as_deref();
            assert_eq!(sentence, Some("You are signing into Astherus"));
        }
        let chain = |profile: Profile, network| {
            profile
                .venue()
                .unwrap()
                .brand()
                .unwrap()
                .signing_chain(network)
        };
        assert_eq!(chain(Profile::Aster, Signing::Mainnet), 1666);
        assert_eq!(chain(Profile::AsterTestnet, Signing::Testnet), 714);
    }

    #[test]
    fn the_test_environment_has_no_address_of_chain_and_info() {
        let testnet = Profile::AsterTestnet.venue().unwrap();
        assert_eq!(testnet.network, Network::Testnet);
        assert_eq!((testnet.chain.rest, testnet.rpc.rest), (None, None));
        let production = Profile::Aster.venue().unwrap();
        assert_eq!(production.network, Network::Mainnet);
        for endpoint in [&production.chain, &production.rpc] {
            assert!(endpoint.rest.is_some());
        }
        for venue in [&testnet.spot, &testnet.futures, &production.spot] {
            assert!(venue.rest.is_some() && venue.ws.is_some());
        }
    }

    #[test]
    fn every_public_address_is_encrypted() {
        for profile in Profile::ALL {
            let venue = profile.venue().unwrap();
            for endpoint in [&venue.spot, &venue.futures, &venue.chain, &venue.rpc] {
                let rest = endpoint.rest.iter().map(|rest| (rest, "https://"));
                let streams = endpoint.ws.iter().chain(&endpoint.user_ws);
                for (address, scheme) in rest.chain(streams.map(|ws| (ws, "wss://"))) {
                    assert!(address.starts_with(scheme), "{address}");
                }
            }
        }
    }

    #[test]
    fn a_configuration_overrides_a_profile_key_by_key() {
        let own = venue(
            "[venue]\nprofile = \"aster\"\nfutures.rest = \"http://127.0.0.1:1\"\napi = \"v3\"\n\
             [venue.names]\nwithdrawal_domain = \"Other\"\n[venue.signing_chain]\nmainnet = 7\n\
             [venue.limits]\nspot_streams = 50\n",
        );
        let profile = Profile::Aster.venue().unwrap();
        assert_eq!(own.futures.rest.as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(own.futures.ws, profile.futures.ws);
        assert_eq!(own.spot, profile.spot);
        assert_eq!(own.names.withdrawal_domain.as_deref(), Some("Other"));
        assert_eq!(own.names.signing_domain, profile.names.signing_domain);
        assert_eq!(own.signing_chain.mainnet, 7);
        assert_eq!(own.signing_chain.testnet, 714);
        assert_eq!(
            own.brand().unwrap().signing_chain(Signing::Mainnet),
            7,
            "signatures use the overridden chain"
        );
        assert_eq!(own.limits.spot_streams, 50);
        assert_eq!(own.limits.futures_streams, profile.limits.futures_streams);
        assert_eq!(
            own.overridden().unwrap(),
            ["futures.rest", "names", "signing_chain", "limits"]
        );
    }

    #[test]
    fn set_and_environment_choose_and_override_a_profile() {
        let overrides = Overrides {
            env: vec![(
                "WINDVANE__VENUE__PROFILE".to_owned(),
                "aster-testnet".to_owned(),
            )],
            set: vec!["venue.spot.ws=ws://127.0.0.1:2".to_owned()],
        };
        let venue = Config::parse("", "c.toml", &overrides).unwrap().venue;
        assert_eq!(venue.profile, Profile::AsterTestnet);
        assert_eq!(venue.spot.ws.as_deref(), Some("ws://127.0.0.1:2"));
        assert_eq!(
            venue.spot.rest.as_deref(),
            Some("https://sapi.asterdex-testnet.com")
        );
    }

    #[test]
    fn an_own_stream_address_also_serves_the_user_stream() {
        let testnet = Profile::AsterTestnet.venue().unwrap();
        assert!(testnet.futures.user_ws.is_some());
        let text = "[venue]\nprofile = \"aster-testnet\"\n";
        let own = venue(&format!("{text}futures.ws = \"ws://127.0.0.1:1\""));
        assert_eq!(own.futures.user_ws, None);
        let both = "futures = { ws = \"ws://127.0.0.1:1\", user_ws = \"ws://127.0.0.1:2\" }";
        let own = venue(&format!("{text}{both}"));
        assert_eq!(own.futures.user_ws.as_deref(), Some("ws://127.0.0.1:2"));
    }

    #[test]
    fn the_network_selects_the_chain_of_a_profile() {
        for profile in Profile::ALL {
            let text = format!("[venue]\nprofile = \"{profile}\"\nnetwork = \"testnet\"");
            let brand = venue(&text).brand().unwrap();
            assert_eq!(brand.signing_chain(Signing::Testnet), 714, "{profile}");
        }
    }

    #[test]
    fn an_unknown_profile_lists_the_known_ones() {
        assert_eq!(
            refusal("[venue]\nprofile = \"astre\""),
            "c.toml line 2: `venue.profile` = \"astre\": must be one of \"simulated\", \"aster\", \
             \"aster-testnet\" (did you mean \"aster\"?)"
        );
        let sentence = refusal("[venue]\nprofile = 3");
        assert!(
            sentence.contains("must be one of \"simulated\""),
            "{sentence}"
        );
        let sentence = refusal("venue = 3");
        assert!(sentence.contains("`venue` must be a table"), "{sentence}");
        let sentence = refusal("[venue]\nprofile = \"aster\"\nspot = \"x\"");
        assert!(
            sentence.contains("`venue.spot` must be a table"),
            "{sentence}"
        );
    }

    #[test]
    fn limits_out_of_range_are_refused() {
        for (key, rule) in [
            ("spot_streams = 0", "must be a whole number from 1 to"),
            (
                "messages_per_second = 1",
                "must be a whole number from 2 to",
            ),
            ("connection_hours = 0", "must be hours from 1 to"),
            ("nonce_window_ms = 0", "must be milliseconds from 1 to"),
        ] {
            let sentence = refusal(&format!("[venue.limits]\n{key}"));
            assert!(sentence.contains(rule), "{sentence}");
        }
        let sentence = refusal("[venue.signing_chain]\nmainnet = 0");
        assert!(sentence.contains("must be a chain id"), "{sentence}");
    }
}
