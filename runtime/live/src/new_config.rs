//! Reads a new configuration for a reload, and builds its modules. This may take minutes, so it
//! runs outside the engine's thread. `reload` applies the result.

use std::path::Path;
use std::sync::Arc;

use windvane_admin::{Refused, Steer};

use super::guests::LiveGuests;
use crate::confinement::unreachable_module;
use windvane_build::modules::{self, Guest};
use windvane_config::{Config, fixed_difference};
use windvane_session::ReloadTrial;

/// Reads the configuration in the same way as at the start, or returns the error as text. If the
/// caller names a file, it must be the file of the start.
pub type ReadConfig = Arc<dyn Fn(Option<&Path>) -> Result<Config, String> + Send + Sync>;

/// The result of reading for a reload, with its command.
pub struct Reload {
    /// The command that asked for it.
    pub steer: Steer,
    /// The new configuration, or the error.
    pub new_config: Result<NewConfig, ReloadFailure>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

/// A reload whose new instances were tested.
pub struct TestedReload {
    /// The command that asked for it.
    pub steer: Steer,
    /// The new configuration.
    pub config: Config,
    /// The difference, as text.
    pub changes: Vec<String>,
    /// The result of the test.
    pub trial: ReloadTrial<LiveGuests>,
}

impl std::fmt::Debug for TestedReload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestedReload").finish_non_exhaustive()
    }
}

/// A configuration with its modules, none of which is started.
pub struct NewConfig {
    pub(super) config: Config,
    pub(super) guests: Vec<Guest>,
}

/// Why a reload failed.
pub struct ReloadFailure {
    pub(super) refused: Refused,
    /// The configuration that was read, if it needs a restart.
    pub(super) config: Option<Box<Config>>,
}

impl From<Refused> for ReloadFailure {
    fn from(refused: Refused) -> Self {
        Self {
            refused,
            config: None,
        }
    }
}

/// Reads, builds and compiles. May take minutes.
pub fn read(
    old: &Config,
    read_config: &ReadConfig,
    meant: Option<&Path>,
) -> Result<NewConfig, ReloadFailure> {
    let config = read_config(meant).map_err(|error| Refused {
        error,
        what_to_do: "correct the configuration and run windvane reload again; nothing was changed"
            .to_owned(),
    })?;
    if let Some(key) = fixed_difference(old, &config) {
        let refused = Refused {
            error: format!("{key} cannot change while running"),
            what_to_do:
                "set it back and run windvane reload, or stop the instance and start it again; \
                 nothing was changed"
                    .to_owned(),
        };
        return Err(ReloadFailure {
            refused,
            config: Some(Box::new(config)),
        });
    }
    if let Some((error, what_to_do)) = unreachable_module(old, &config) {
        let what_to_do = what_to_do.to_owned();
        return Err(Refused { error, what_to_do }.into());
    }
    let guests = modules::load_for_run(&config, &mut |step| tracing::info!(step, "building"));
    let guests = guests.map_err(|error| Refused {
        error: error.to_string(),
        what_to_do: "fix the module and run windvane reload again; nothing was changed".to_owned(),
    })?;
    if let Err(error) = modules::keep(&guests, &config.run.data_dir) {
        tracing::warn!(%error, "could not archive the modules: a replay of this run will use their \
                                recorded outputs. Trading is not affected");
    }
    Ok(NewConfig { config, guests })
}
