//! The configuration: one TOML file, overrides from the environment and the command line, and the
//! rules that every setting must satisfy.
//!
//! Every crate that runs something uses it: `recording`, `build`, `backtest`, `replay`, `live`,
//! `cli` and the fault simulator. A [`Config`] must not contain the text of a secret, only where each
//! secret is. Secrets that can be read only once stay in memory beside it. The crate must not open a
//! connection.
//!
//! A later source overrides an earlier one: defaults, the profile of the venue, the file,
//! `WINDVANE__SECTION__KEY` variables, `--set key.path=value`, other arguments.

pub mod assembly;
mod change;
mod choice;
mod descriptor;
mod error;
mod instrument;
mod live;
mod profile;
mod profile_venue;
mod read;
mod secret;
mod secret_environment;
mod secret_store;
mod sim;
mod strategy;
mod tree;
mod value;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use change::fixed_difference;
pub use error::{ConfigError, Place};
pub use instrument::InstrumentRules;
pub use live::{
    Account, Admin, Api, Compile, Endpoint, Heartbeat, Journal, Leave, MarketData, Mode, Names,
    Network, OnStart, PositionMode, Reconcile, Run, Signer, SigningChain, Venue, VenueLimits,
};
pub use profile::Profile;
pub use secret::{KeySource, Secret, SecretError, credentials_folder};
pub use secret_environment::{
    SECRETS_VARIABLE, adopt_secrets, can_erase_secrets, erase_secrets, take_descriptors,
};
pub use secret_store::{forget_secrets, secrets_line, take_secrets};
pub use sim::{Backtest, Fees, Holding, Latency, OnDamage, Queue, Sim};
pub use strategy::{Capability, Limits, OnLiquidation, Risk, Strategy, Stream};
pub use windvane_session::InstrumentName;

/// A whole configuration. Every section is optional: a command requires only the settings it uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Name of the configuration: the file name without folder and extension.
    #[serde(skip)]
    pub name: String,
    /// `[run]`.
    pub run: Run,
    /// `[venue]`.
    pub venue: Venue,
    /// `[account]`.
    pub account: Account,
    /// `[heartbeat]`.
    pub heartbeat: Heartbeat,
    /// `[reconcile]`.
    pub reconcile: Reconcile,
    /// `[journal]`.
    pub journal: Journal,
    /// `[compile]`.
    pub compile: Compile,
    /// `[risk]`: limits of the whole account.
    pub risk: Risk,
    /// `[admin]`.
    pub admin: Admin,
    /// `[signer]`.
    pub signer: Signer,
    /// `[[strategy]]`.
    #[serde(rename = "strategy")]
    pub strategies: Vec<Strategy>,
    /// `[[instrument]]`.
    #[serde(rename = "instrument")]
    pub instruments: Vec<InstrumentRules>,
    /// `[backtest]`.
    pub backtest: Backtest,
    /// `[sim]`.
    pub sim: Sim,
}

/// The settings that override a file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Environment variables; those that do not start with `WINDVANE__` are ignored.
    pub env: Vec<(String, String)>,
    /// The `key.path=value` arguments of `--set`, in command-line order.
    pub set: Vec<String>,
}

impl Overrides {
    /// Takes the process's environment and these `--set` arguments.
    pub fn from_process(set: Vec<String>) -> Self {
        let text = |name: std::ffi::OsString| name.into_string().ok();
        let env = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Self {
            env: env.collect(),
            set,
        }
    }
}

/// Longest configuration file, bytes. One with 100 strategies has about 100 KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The largest number of strategies. Each of them has a share of every event's time, and many checks
/// compare each strategy with all others.
pub const STRATEGIES_MAX: usize = 256;

impl Config {
    /// Reads a file and applies the overrides to it.
    pub fn load(file: &Path, overrides: &Overrides) -> Result<Self, ConfigError> {
        let text = windvane_files::read_text_bounded(file, FILE_BYTES_MAX).map_err(|error| {
            ConfigError::Read {
                file: file.to_owned(),
                reason: error.to_string(),
            }
        })?;
        let mut config = Self::parse(&text, &file.display().to_string(), overrides)?;
        config.name = file
            .file_stem()
            .map_or_else(String::new, |stem| stem.display().to_string());
        Ok(config)
    }

    /// Parses `text`. Error messages call it `file`.
    pub fn parse(text: &str, file: &str, overrides: &Overrides) -> Result<Self, ConfigError> {
        let mut root = tree::parse(text, file)?;
        tree::apply_env(&mut root, overrides.env.iter().cloned())?;
        for argument in &overrides.set {
            tree::apply_set(&mut root, argument)?;
        }
        require_few_strategies(&root)?;
        profile::fill(&mut root)?;
        let config: Self = read::read(&root)?;
        config.check(&root)?;
        Ok(config)
    }

    /// The files with secrets: keys, keystores, passwords and the admin server's token.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let keystores = self.keystores().into_iter();
        let plain = self.secrets().into_iter().filter_map(Secret::file);
        keystores.chain(plain).map(Path::to_owned).collect()
    }

    /// Whether it names any key of an account.
    pub fn has_keys(&self) -> bool {
        let account = &self.account;
        let plain = [&account.api_key, &account.api_secret, &account.solana];
        let keys = [&account.signer, &account.wallet];
        plain.iter().any(|key| key.is_some()) || keys.iter().any(|key| key.is_some())
    }

    /// Checks the rules that involve more than one setting.
    fn check(&self, root: &tree::Node) -> Result<(), ConfigError> {
        let refuse = |key: String, value: Option<String>, rule: String| ConfigError::Value {
            place: root.place_of(&key),
            key,
            value,
            rule,
        };
        for (at, strategy) in self.strategies.iter().enumerate() {
            let same = |other: &Strategy| other.id == strategy.id;
            if let Some(first) = self.strategies[..at].iter().position(same) {
                return Err(refuse(
                    format!("strategy.{at}.id"),
                    Some(format!("{:?}", strategy.id.as_str())),
                    format!("is already the id of strategy.{first}; give each strategy its own id"),
                ));
            }
        }
        let mut names = BTreeSet::new();
        for (at, rules) in self.instruments.iter().enumerate() {
            if !names.insert(&rules.name) {
                return Err(refuse(
                    format!("instrument.{at}.name"),
                    Some(format!("\"{}\"", rules.name)),
                    "already has an [[instrument]] section; keep only one per instrument"
                        .to_owned(),
                ));
            }
        }
        let Heartbeat {
            countdown_ms,
            interval_ms,
        } = self.heartbeat;
        if interval_ms > countdown_ms / 2 {
            return Err(refuse(
                "heartbeat.interval_ms".to_owned(),
                Some(interval_ms.to_string()),
                format!(
                    "leaves no time for a second renewal within heartbeat.countdown_ms, which is \
                     {countdown_ms}; it must be at most half of that"
                ),
            ));
        }
        Ok(())
    }
}

fn require_few_strategies(root: &tree::Node) -> Result<(), ConfigError> {
    let Some(tree::Value::List(strategies)) = root.get("strategy").map(|node| &node.value) else {
        return Ok(());
    };
    let Some(surplus) = strategies.get(STRATEGIES_MAX) else {
        return Ok(());
    };
    Err(ConfigError::Value {
        place: surplus.place.clone(),
        key: format!("strategy.{STRATEGIES_MAX}"),
        value: None,
        rule: format!(
            "is one of {} [[strategy]] sections; at most {STRATEGIES_MAX} are allowed: remove some, or \
             use several instances with an account each",
            strategies.len()
        ),
    })
}

#[cfg(test)]
mod tests;
