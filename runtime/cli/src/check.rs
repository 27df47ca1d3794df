//! `windvane check`: runs the preflight checks and suggests fixes.

use clap::Args;

use super::place::Place;
use super::printing::{print_json, print_lines};
use super::{Failure, run};
use windvane_config::Mode;
use windvane_live::check::{self, CheckOptions};
use windvane_live::connection::Needs;

#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    place: Place,
    /// Print only JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.place.config()?;
        let paper = config.run.mode == Mode::Paper;
        let needs = if paper {
            Needs::default()
        } else {
            run::needs(&config, self.place.api.map(Into::into))
        };
        let (settings, no_keys) = match self.place.settings_of(&config, |_| Ok(needs)) {
            Ok(settings) => (settings, None),
            // Everything public can be checked without keys.
            Err(Failure::Usage(why)) => {
                let settings = self.place.settings_of(&config, |_| Ok(Needs::default()))?;
                (settings, Some(why))
            }
            Err(failure) => return Err(failure),
        };
        let keys = &settings.credentials;
        let mut not_set = Vec::new();
        if no_keys.is_none() && needs.api_key && keys.api_key.is_none() {
            not_set.push("api_key");
        }
        if no_keys.is_none() && needs.signer && keys.signer.is_none() && keys.wallet.is_none() {
            not_set.push("signer");
        }
        let options = CheckOptions {
            settings,
            no_keys,
            not_set,
            files: self.place.files(),
        };
        let report = super::block_on(check::check(&config, options))?;
        if self.json {
            print_json(&report.json().to_string())?;
        } else {
            print_lines(&report.text())?;
        }
        let first = report
            .lines
            .iter()
            .find(|line| line.verdict == check::Verdict::NoGo);
        match first.map(|line| format!("no-go: {}", line.found)) {
            None => Ok(()),
            Some(sentence) if report.is_wrong() => Err(Failure::Usage(sentence)),
            Some(sentence) => Err(Failure::Failed(sentence)),
        }
    }
}
