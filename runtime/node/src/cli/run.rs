//! `windvane run`: the unattended runtime.

use clap::Args;

use super::Failure;
use super::place::Place;
use crate::config::{Api, Config, Mode};
use crate::connection::Needs;
use crate::live;
use crate::watchdog;

#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    place: Place,
}

impl Run {
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.place.config()?;
        if config.run.mode == Mode::Paper {
            return Err(Failure::Usage(
                "run.mode = \"paper\" is not there yet: set run.mode = \"live\"; against \
                 `windvane venue` no money is real"
                    .to_owned(),
            ));
        }
        let needs = needs(&config, self.place.api.map(Into::into));
        let settings = self.place.settings_of(&config, |_| Ok(needs))?;
        let begin = watchdog::Begin {
            arguments: self.place.arguments(),
        };
        super::block_on(live::run(&config, settings, begin))?.map_err(|error| {
            if error.is_usage() {
                Failure::usage(error)
            } else {
                Failure::failed(error)
            }
        })
    }
}

/// The keys that sign what a run sends; never the main wallet's, where an agent's is configured.
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
