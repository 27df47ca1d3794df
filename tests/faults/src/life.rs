//! A seed from its mix to its result.

use std::sync::Arc;

use alloy_primitives::Address;
use secrecy::SecretString;
use windvane_client_core::Api;
use windvane_client_core::gateway::Identity;
use windvane_config::assembly;
use windvane_config::{Config, Overrides};
use windvane_live::start;
use windvane_protocol::Brand;
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, Wallet};
use windvane_session::BLOCKS_UNDER_WAY;
use windvane_sim_server::AccountKeys;

use crate::log::Broken;
use crate::mix::{Choice, Mix};
use crate::modules::Modules;
use crate::process::{Setup, SignerTerms};
use crate::tally::Tally;
use crate::venue::Venue;
use crate::witness::Terms;
use crate::world::{BORN_NS, World};

/// What a life came to.
#[derive(Clone, Debug)]
pub struct Result {
    /// The seed.
    pub seed: u64,
    /// Hash of everything that the runtime did: bytes on the wire, chains of records.
    pub fingerprint: String,
    /// How long it lived, seconds.
    pub age_s: i64,
    /// Entries of its witness.
    pub entries: u64,
    /// What was done in it, and what went wrong.
    pub tally: Tally,
    /// The rule that was broken, if one was.
    pub broken: Option<Broken>,
    /// The last entries of the witness, where a rule was broken or all were asked for.
    pub context: Vec<String>,
}

/// The host of the venue.
const HOST: &str = "venue";

/// How a life is led.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which faults may be drawn.
    pub choice: Choice,
    /// Simulated time with faults, milliseconds.
    pub faults_ms: i64,
    /// The whole witness is kept.
    pub keep_all: bool,
    /// Judged by these rules alone; by all where none is named.
    pub rules: &'static [&'static str],
}

/// Leads the life of a seed.
///
/// # Errors
/// The simulator itself cannot be set up.
pub fn lead(
    seed: u64,
    modules: &Modules,
    options: &Options,
) -> std::result::Result<Result, String> {
    let mix = Mix::draw(seed, &options.choice, options.faults_ms);
    let config = Config::parse(&mix.config, "mix", &Overrides::default());
    let config = config.map_err(|error| format!("{error}\n{}", mix.config))?;
    let venue = Venue::new(seed, &mix, BORN_NS)?;
    let keys = venue.keys.first().ok_or("the venue has no account")?;
    let names = assembly::instrument_names(&config);
    let strategies = mix.terms.strategies.iter();
    let setup = Setup {
        surfaces: start::surfaces(&names),
        identity: identity(keys, &mix.terms)?,
        strategies: strategies
            .map(|s| (s.id.clone(), s.module.clone()))
            .collect(),
        builds: vec![0; config.strategies.len()],
        disk_room: match mix.faults.disk_room {
            0 => BLOCKS_UNDER_WAY,
            room => room,
        },
        modules: modules.clone(),
        signer: SignerTerms::of(seed),
        config,
        names,
        seed,
    };
    let mut world = World::new(Arc::new(setup), mix, venue, options);
    world.live();
    let wanted = world.log.broken.is_some() || options.keep_all;
    Ok(Result {
        seed,
        fingerprint: world.log.fingerprint(),
        age_s: world.age_s(),
        entries: world.log.entries(),
        tally: world.log.tally().clone(),
        broken: world.log.broken.clone(),
        context: if wanted {
            world.log.context().collect()
        } else {
            Vec::new()
        },
    })
}

fn identity(keys: &AccountKeys, terms: &Terms) -> std::result::Result<Identity, String> {
    let secret = |text: &str| SecretString::from(text.to_owned());
    let brand = Brand::new("svc").map_err(|error| error.to_string())?;
    let user: Address = keys.user.parse().map_err(|_| "the user is no address")?;
    let signer = Wallet::from_hex(&secret(&keys.signer_key)).map_err(|error| error.to_string())?;
    let api = if terms.v3 { Api::V3 } else { Api::V1 };
    Ok(Identity {
        dialect: Dialect {
            brand,
            network: Network::Mainnet,
            recv_window_ms: u32::try_from(terms.recv_window_ms).ok(),
        },
        credentials: Credentials {
            api_key: Some(ApiKey::new(keys.api_key.as_str(), secret(&keys.api_secret))),
            user: Some(user),
            signer: Some(signer),
            ..Credentials::default()
        },
        spot_api: api,
        futures_api: api,
        // All surfaces of the venue have one host.
        hosts: [const { Some(HOST) }; 4].map(|host| host.map(str::to_owned)),
    })
}
