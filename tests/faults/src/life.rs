//! Runs one seed, from its fault plan to its result.

use std::sync::Arc;

use alloy_primitives::Address;
use secrecy::SecretString;
use windvane_client_core::Api;
use windvane_client_core::gateway::Identity;
use windvane_config::assembly;
use windvane_config::{Config, Overrides};
use windvane_live::startup_steps;
use windvane_protocol::Brand;
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, Wallet};
use windvane_session::BLOCKS_UNDER_WAY;
use windvane_sim_server::AccountKeys;

use crate::fault_plan::{Choice, FaultPlan};
use crate::log::Broken;
use crate::modules::Modules;
use crate::process::{Setup, SignerTerms};
use crate::tally::Tally;
use crate::venue::Venue;
use crate::witness::Terms;
use crate::world::{BORN_NS, World};

/// The result of a life.
#[derive(Clone, Debug)]
pub struct Result {
    /// The seed.
    pub seed: u64,
    /// Hash of everything that the runtime did: bytes on the wire, and the hashes of its records.
    pub fingerprint: String,
    /// Simulated age in seconds.
    pub age_s: i64,
    /// Number of witness entries.
    pub entries: u64,
    /// Counts of what happened and what failed.
    pub tally: Tally,
    /// The broken rule, if any.
    pub broken: Option<Broken>,
    /// The last witness entries, if a rule was broken or all entries were requested.
    pub context: Vec<String>,
}

/// The host name of the venue.
const HOST: &str = "venue";

/// Options of a life.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The faults that may be drawn.
    pub choice: Choice,
    /// Simulated time with faults, milliseconds.
    pub faults_ms: i64,
    /// Keeps all witness entries.
    pub keep_all: bool,
    /// Only these rules are judged; all rules if the list is empty.
    pub rules: &'static [&'static str],
}

/// Runs the life of a seed.
///
/// # Errors
/// If the simulator itself cannot be set up.
pub fn lead(
    seed: u64,
    modules: &Modules,
    options: &Options,
) -> std::result::Result<Result, String> {
    let fault_plan = FaultPlan::draw(seed, &options.choice, options.faults_ms);
    let config = Config::parse(&fault_plan.config, "mix", &Overrides::default());
    let config = config.map_err(|error| format!("{error}\n{}", fault_plan.config))?;
    let venue = Venue::new(seed, &fault_plan, BORN_NS)?;
    let keys = venue.keys.first().ok_or("the venue has no account")?;
    let names = assembly::instrument_names(&config);
    let strategies = fault_plan.terms.strategies.iter();
    let setup = Setup {
        surfaces: startup_steps::surfaces(&names),
        identity: identity(keys, &fault_plan.terms)?,
        strategies: strategies
            .map(|s| (s.id.clone(), s.module.clone()))
            .collect(),
        builds: vec![0; config.strategies.len()],
        disk_room: match fault_plan.faults.disk_room {
            0 => BLOCKS_UNDER_WAY,
            room => room,
        },
        modules: modules.clone(),
        signer: SignerTerms::of(seed),
        config,
        names,
        seed,
    };
    let mut world = World::new(Arc::new(setup), fault_plan, venue, options);
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
    let user: Address = keys
        .user
        .parse()
        .map_err(|_| "the user is not an address")?;
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
        // All surfaces of this venue have the same host.
        hosts: [const { Some(HOST) }; 4].map(|host| host.map(str::to_owned)),
    })
}
