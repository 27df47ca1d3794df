//! `windvane watchdog`: the process that `run` starts if spot orders need a watchdog. It is not for
//! people: its arguments contain what it watches, and it talks through pipes.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::place::Place;
use windvane_config::Config;
use windvane_journal::Directory;
use windvane_live::confinement;
use windvane_live::connection::Needs;
use windvane_live::watchdog::{self, Plan, StderrWriter};
use windvane_live::{exchange, signer};

#[derive(Debug, Args)]
pub(super) struct Watchdog {
    #[command(flatten)]
    place: Place,
    /// The plan of what to watch, as JSON
    #[arg(long, value_name = "JSON")]
    plan: String,
    /// Socket of the signer process; without it, this process reads the keys and signs
    #[arg(long, value_name = "PATH")]
    signer: Option<PathBuf>,
    /// The first line of stdin has secrets of the configuration, which the run keeps in memory
    #[arg(long)]
    secrets_on_stdin: bool,
}

impl Watchdog {
    pub(super) fn run(self) -> Result<(), Failure> {
        let aside = StderrWriter::stderr("watchdog: ").map_err(Failure::failed)?;
        super::log_to("info", aside.clone());
        let ended = self.watch();
        aside.flush();
        ended
    }

    fn watch(self) -> Result<(), Failure> {
        let plan: Plan = serde_json::from_str(&self.plan)
            .map_err(|error| Failure::Usage(format!("--plan: {error}")))?;
        if self.secrets_on_stdin {
            windvane_config::take_secrets(&mut std::io::stdin().lock()).map_err(Failure::failed)?;
        }
        let config = self.place.config_again()?;
        Directory::require_own(&config.run.data_dir).map_err(Failure::usage)?;
        let signer = self.signer.as_deref();
        let settings = if signer.is_some() {
            self.place.settings_without_keys(&config)?
        } else {
            let needs = needs(&config, self.place.api.map(Into::into));
            self.place.settings_of(&config, |_| Ok(needs))?
        };
        confinement::confine_watchdog(&config);
        let exchange =
            |gateway| exchange::signed(&config, gateway, signer::place(signer.is_some()));
        super::block_on(watchdog::watch(
            settings,
            plan,
            exchange,
            (&config.run.data_dir, signer),
        ))?
        .map_err(Failure::failed)
    }
}

/// The keys that sign spot requests.
fn needs(config: &Config, api: Option<windvane_client::Api>) -> Needs {
    let venue = &config.venue;
    let configured = venue.spot.api.unwrap_or(venue.api);
    let wallet = match api {
        Some(api) => api == windvane_client::Api::V3,
        None => configured == windvane_config::Api::V3,
    };
    Needs {
        api_key: !wallet,
        signer: wallet,
        ..Needs::default()
    }
}
