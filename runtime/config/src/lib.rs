//! The configuration: one TOML file, overrides from the environment and the command line, and the
//! rules that every setting must satisfy.
//!
//! Every crate that runs something uses it: `recording`, `build`, `backtest`, `replay`, `live`,
//! `cli` and the fault simulator. It must not keep the text of a secret, only where each secret
//! is, and it must not open a connection.
//!
//! A later source overrides an earlier one: defaults, the profile of the venue, the file,
//! `WINDVANE__SECTION__KEY` variables, `--set key.path=value`, other arguments.

pub mod assembly;
mod change;
mod choice;
mod error;
mod instrument;
mod live;
mod profile;
mod profile_venue;
mod read;
mod secret;
mod sim;
mod strategy;
mod tree;
mod value;

use std::path::Path;

use serde::Deserialize;

pub use change::fixed_difference;
pub use error::{ConfigError, Place};
pub use instrument::InstrumentRules;
pub use live::{
    Account, Admin, Api, Endpoint, Heartbeat, Journal, Leave, MarketData, Mode, Names, Network,
    OnStart, PositionMode, Reconcile, Run, SigningChain, Venue, VenueLimits,
};
pub use profile::Profile;
pub use secret::{KeySource, Secret, SecretError};
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
    /// `[risk]`: limits of the whole account.
    pub risk: Risk,
    /// `[admin]`.
    pub admin: Admin,
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

impl Config {
    /// Reads a file and applies the overrides to it.
    pub fn load(file: &Path, overrides: &Overrides) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| ConfigError::Read {
            file: file.to_owned(),
            reason: error.to_string(),
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
        profile::fill(&mut root)?;
        let config: Self = read::read(&root)?;
        config.check(&root)?;
        Ok(config)
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
        for (at, rules) in self.instruments.iter().enumerate() {
            if self.instruments[..at]
                .iter()
                .any(|other| other.name == rules.name)
            {
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

#[cfg(test)]
mod tests;
