//! What two modules of one strategy would have come to on the market of a journal, each alone.

use std::path::Path;
use std::sync::Arc;

use windvane_model::config::EngineConfig;

use super::market::JournalMarket;
use super::rerun::Newcomer;
use windvane_backtest::BacktestError;
use windvane_backtest::play::{Played, play};
use windvane_build::modules::{self, Guest};
use windvane_config::{Config, PositionMode};
use windvane_session::SavedStrategy;

/// One strategy alone on its account, for a simulation of the old and of the new module.
#[derive(Debug)]
pub struct Trial {
    /// The account as the journal left it, flat, with this strategy alone.
    pub engine: EngineConfig,
    /// The strategy as the journal has it.
    pub saved: SavedStrategy,
}

/// What a module would have come to on the recorded market: its orders meet the simulated venue
/// on the terms of `[sim]`, and nothing else has happened to the account.
#[derive(Debug)]
pub struct Tried {
    /// The module that ran, where it was kept.
    pub old: Option<Played>,
    /// The newcomer.
    pub new: Option<Played>,
}

impl Trial {
    /// Lets both modules trade.
    ///
    /// # Errors
    /// See [`BacktestError`].
    pub fn run(
        &self,
        config: &Config,
        data_dir: &Path,
        new: &Newcomer,
    ) -> Result<Tried, BacktestError> {
        let host = modules::host().map_err(modules::ModuleError::from)?;
        let mut config = config.clone();
        config.account.position_mode = if self.engine.hedge_mode {
            PositionMode::Hedge
        } else {
            PositionMode::OneWay
        };
        let name = &self.saved.name;
        let play = |module: Arc<[u8]>| {
            let guest = Guest::load(&host, name, module, self.saved.made.clone());
            let guest = guest.map_err(|source| modules::ModuleError::Load {
                strategy: name.clone(),
                source,
            })?;
            let market = JournalMarket::new(data_dir, self.engine.instruments.clone());
            play(&config, self.engine.clone(), guest, market)
        };
        let old = modules::kept(data_dir, &self.saved.sha256);
        Ok(Tried {
            old: old.ok().map(play).transpose()?.flatten(),
            new: play(Arc::clone(&new.module))?,
        })
    }
}
