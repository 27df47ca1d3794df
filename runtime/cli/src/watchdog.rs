//! `windvane watchdog`: the process that `run` starts if spot orders need a watchdog. It is not for
//! people: its arguments contain what it watches, and it talks through pipes.

use clap::Args;

use super::Failure;
use super::place::Place;
use windvane_config::Config;
use windvane_live::connection::Needs;
use windvane_live::exchange;
use windvane_live::watchdog::{self, Plan, StderrWriter};

#[derive(Debug, Args)]
pub(super) struct Watchdog {
    #[command(flatten)]
    place: Place,
    /// The plan of what to watch, as JSON
    #[arg(long, value_name = "JSON")]
    plan: String,
}

impl Watchdog {
    pub(super) fn run(self) -> Result<(), Failure> {
        let aside = StderrWriter::stderr().map_err(Failure::failed)?;
        super::log_to("info", aside.clone());
        let ended = self.watch();
        aside.flush();
        ended
    }

    fn watch(self) -> Result<(), Failure> {
        let plan: Plan = serde_json::from_str(&self.plan)
            .map_err(|error| Failure::Usage(format!("--plan: {error}")))?;
        let config = self.place.config()?;
        let needs = needs(&config, self.place.api.map(Into::into));
        let settings = self.place.settings_of(&config, |_| Ok(needs))?;
        let exchange = |gateway| exchange::exchange(&config, gateway);
        super::block_on(watchdog::watch(
            settings,
            plan,
            exchange,
            &config.run.data_dir,
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
