//! Simulates the old and the new module of one strategy on the market of a journal, each alone.

use std::path::Path;
use std::sync::Arc;

use windvane_model::config::EngineConfig;

use super::journal_to_recording::JournalRecording;
use super::shadow::NewModule;
use windvane_backtest::BacktestError;
use windvane_backtest::play::{Played, play};
use windvane_build::modules::{self, Guest, Loader};
use windvane_config::{Config, PositionMode};
use windvane_session::SavedStrategy;

/// The inputs for a simulation of one strategy, alone on its account.
#[derive(Debug)]
pub struct Simulation {
    /// The account as the journal left it, but flat and with this strategy alone.
    pub engine: EngineConfig,
    /// The strategy as the journal saved it.
    pub saved: SavedStrategy,
}

/// The results of both modules on the recorded market. Their orders go to the simulated venue with
/// the settings of `[sim]`. Nothing else happens on the account.
#[derive(Debug)]
pub struct SimulationResult {
    /// The recorded module, if its file was kept.
    pub old: Option<Played>,
    /// The new module.
    pub new: Option<Played>,
}

impl Simulation {
    /// Simulates both modules.
    ///
    /// # Errors
    /// See [`BacktestError`].
    pub fn run(
        &self,
        config: &Config,
        data_dir: &Path,
        new: &NewModule,
    ) -> Result<SimulationResult, BacktestError> {
        let loader = Loader::new(config.compile).map_err(modules::ModuleError::from)?;
        let mut config = config.clone();
        config.account.position_mode = if self.engine.hedge_mode {
            PositionMode::Hedge
        } else {
            PositionMode::OneWay
        };
        let name = &self.saved.name;
        let play = |module: Arc<[u8]>| {
            let guest = Guest::load(&loader, name, module, self.saved.made.clone());
            let guest = guest.map_err(|source| modules::ModuleError::Load {
                strategy: name.clone(),
                source,
            })?;
            let market = JournalRecording::new(data_dir, self.engine.instruments.clone());
            play(&config, self.engine.clone(), guest, market)
        };
        let old = modules::kept(data_dir, &self.saved.sha256);
        Ok(SimulationResult {
            old: old.ok().map(play).transpose()?.flatten(),
            new: play(Arc::clone(&new.module))?,
        })
    }
}
