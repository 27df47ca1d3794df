//! `windvane run`: the unattended runtime.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::Failure;
use super::backtest::print_summary;
use super::place::Place;
use windvane_build::modules;
use windvane_config::{Api, Config, Mode};
use windvane_journal::Directory;
use windvane_live::confinement::{self, RunFiles};
use windvane_live::connection::{self, ConnectionError, Needs};
use windvane_live::memory;
use windvane_live::open_files;
use windvane_live::signer;
use windvane_live::watchdog;
use windvane_live::{self as live, Market, Pace, Playing};

#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    place: Place,
    /// Adopt the orders of another instance at once; without it, startup fails with exit code 2 if
    /// another instance places an order
    #[arg(long, conflicts_with = "data")]
    take_over: bool,
    /// Recording as the market of a paper run, instead of a venue; can be repeated
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// Speed of the recording: `max`, or a multiple of real time
    #[arg(long, value_name = "X", default_value = "1", requires = "data")]
    pace: Pace,
    /// Folder for the result files of a backtest: summary.json, fills.csv, orders.csv, equity.csv
    /// and report.html
    #[arg(long, value_name = "DIR", requires = "data")]
    out: Option<PathBuf>,
    /// Print only the summary of a recording that was played, as JSON
    #[arg(long, requires = "data")]
    json: bool,
    /// Folder for decoded recordings
    #[arg(long, value_name = "DIR", requires = "data")]
    cache: Option<PathBuf>,
}

impl Run {
    pub(super) fn run(self) -> Result<(), Failure> {
        memory::settle();
        let mut config = self.place.config()?;
        // Before anything is created there, or a key is read.
        Directory::require_place(&config.run.data_dir).map_err(Failure::usage)?;
        windvane_config::take_descriptors(&config);
        confinement::hide_memory();
        if config.run.mode == Mode::Live && !self.data.is_empty() {
            return Err(Failure::Usage(
                "--data needs a simulated account: set run.mode = \"paper\"".to_owned(),
            ));
        }
        let (market, on_loopback) = if self.data.is_empty() {
            let signs_elsewhere = config.run.mode == Mode::Live && !config.signer.in_process;
            let mut settings = if signs_elsewhere {
                self.place.settings_without_keys(&config)?
            } else {
                let needs = match config.run.mode {
                    Mode::Live => needs(&config, self.place.api.map(Into::into)),
                    // Public market data needs no key.
                    Mode::Paper => Needs::default(),
                };
                self.place.settings_of(&config, |_| Ok(needs))?
            };
            connection::require_for_run(&config, &settings.addresses)
                .map_err(ConnectionError::from)?;
            let on_loopback = settings.addresses.are_loopback();
            modules::refuse_sources(&config, on_loopback).map_err(Failure::usage)?;
            say_profile(&config);
            let signer = if signs_elsewhere {
                // Before this process confines itself: the signer must read the keys.
                let process = signer::Process::start(
                    Path::new(signer::THIS_PROGRAM),
                    self.place.arguments(),
                    &config,
                )?;
                // From here on, only the signer and its keeper have the keys.
                windvane_config::forget_secrets(&config.account_secrets());
                process.facts().name_user(&mut settings.credentials);
                Some(Box::new(process))
            } else {
                None
            };
            (Market::Venue(Box::new(settings), signer), on_loopback)
        } else {
            config.backtest.data = self.data;
            if self.cache.is_some() {
                config.backtest.cache = self.cache;
            }
            let playing = Playing {
                pace: self.pace,
                out: self.out.clone(),
            };
            // Recordings are no exchange.
            (Market::Recordings(playing), true)
        };
        open_files::warn_of_open_files(&config, &self.place.files());
        let files = RunFiles {
            files: self.place.files(),
            out: self.out.clone(),
            plays: matches!(market, Market::Recordings(_)),
        };
        confinement::warn_of_readable_keys(&config, &files);
        confinement::confine_run(&config, &files).map_err(Failure::usage)?;
        let begin = watchdog::ProcessArguments {
            arguments: self.place.arguments(),
        };
        let place = self.place.clone();
        let reread = Arc::new(move |meant: Option<&Path>| {
            place.must_be_of(meant)?;
            let config = place.config_again().map_err(|failure| match failure {
                Failure::Usage(text)
                | Failure::Failed(text)
                | Failure::NotRunning(text)
                | Failure::Differs(text)
                | Failure::Unverified(text) => text,
            })?;
            modules::refuse_sources(&config, on_loopback).map_err(|error| error.to_string())?;
            Ok(config)
        });
        let ended = super::block_on(live::run(&config, market, begin, reread, self.take_over))?;
        let summary = ended.map_err(|error| {
            if error.is_usage() {
                Failure::usage(error)
            } else {
                Failure::failed(error)
            }
        })?;
        match summary {
            Some(summary) => print_summary(&summary, self.out.as_deref(), self.json),
            None => Ok(()),
        }
    }
}

/// Logs the profile of a public venue.
fn say_profile(config: &Config) {
    let profile = config.venue.profile;
    if profile.is_public() {
        tracing::warn!(
            %profile,
            "the profile's values come from public documents; nothing was tried at this venue. \
             docs/venue-aster.md says what to verify first"
        );
    }
}

/// The keys that sign the requests of a run. The main wallet's key is never used if an agent's key
/// is configured.
pub(super) fn needs(config: &Config, api: Option<windvane_client::Api>) -> Needs {
    let venue = &config.venue;
    let apis = [venue.spot.api, venue.futures.api].map(|of| of.unwrap_or(venue.api));
    let wallet = match api {
        Some(api) => api == windvane_client::Api::V3,
        None => apis.contains(&Api::V3),
    };
    let key = match api {
        Some(api) => api == windvane_client::Api::V1,
        None => apis.contains(&Api::V1),
    };
    Needs {
        api_key: key,
        signer: wallet,
        ..Needs::default()
    }
}
