//! The venue's addresses and the account's keys: arguments that client commands share.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use windvane_client::Settings;
use windvane_protocol::route::Surface;

use super::Failure;
use windvane_config::Config;
use windvane_live::connection::{self, ConnectionError, Needs, VenueLine};

/// The venue's addresses and the account's keys: arguments that commands share.
#[derive(Clone, Debug, Args)]
pub(super) struct Place {
    /// Configuration file; its [venue] and [account] are used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a setting, such as venue.api=v3; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// File with the line that `windvane venue` printed; its addresses and test keys are used
    #[arg(long, value_name = "FILE")]
    venue: Option<PathBuf>,
    /// Number of the account in that line
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "venue")]
    account: usize,
    /// How requests are signed, instead of venue.api
    #[arg(long, value_enum)]
    pub(super) api: Option<Api>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Api {
    V1,
    V3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SurfaceWord {
    Spot,
    Futures,
    Chain,
    Rpc,
}

impl From<Api> for windvane_client::Api {
    fn from(api: Api) -> Self {
        match api {
            Api::V1 => Self::V1,
            Api::V3 => Self::V3,
        }
    }
}

impl From<SurfaceWord> for Surface {
    fn from(word: SurfaceWord) -> Self {
        match word {
            SurfaceWord::Spot => Self::Spot,
            SurfaceWord::Futures => Self::Futures,
            SurfaceWord::Chain => Self::Chain,
            SurfaceWord::Rpc => Self::Rpc,
        }
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        Self::usage(error)
    }
}

impl Place {
    /// Command-line arguments that give the same settings. `run` passes them to the watchdog
    /// process.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: &OsStr| arguments.extend([name.into(), value.into()]);
        if let Some(file) = &self.config {
            add("--config", file.as_os_str());
        }
        for set in &self.set {
            add("--set", set.as_ref());
        }
        if let Some(file) = &self.venue {
            add("--venue", file.as_os_str());
            add("--account", self.account.to_string().as_ref());
        }
        match self.api {
            Some(Api::V1) => add("--api", "v1".as_ref()),
            Some(Api::V3) => add("--api", "v3".as_ref()),
            None => {}
        }
        arguments
    }

    /// The files that are read again at each reload.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.config.iter().chain(&self.venue).cloned().collect()
    }

    /// Refuses a configuration file other than the one in these arguments.
    pub(super) fn must_be_of(&self, meant: Option<&Path>) -> Result<(), String> {
        let Some(meant) = meant else { return Ok(()) };
        let whole = |file: &Path| std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        match self.config.as_deref().map(whole) {
            Some(own) if own == whole(meant) => Ok(()),
            own => {
                let own = own.map_or_else(|| "no file".to_owned(), |own| own.display().to_string());
                let meant = meant.display();
                Err(format!(
                    "the instance was started with {own}, not with {meant}; a reload reads the \
                     same file again"
                ))
            }
        }
    }

    /// Reads the configuration at the begin of a command, and erases its secrets from the environment.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        super::configuration(self.config.as_deref(), &self.set)
    }

    /// Reads the configuration again in a process that must not start again: for a reload, and in the
    /// processes of a run, whose environment has no secrets.
    pub(super) fn config_again(&self) -> Result<Config, Failure> {
        super::read_configuration(self.config.as_deref(), &self.set)
    }

    /// Settings of a client, with the keys that it needs.
    pub(super) fn settings_of(
        &self,
        config: &Config,
        needs: impl FnOnce(&Settings) -> Result<Needs, Failure>,
    ) -> Result<Settings, Failure> {
        self.refuse_addresses()?;
        let mut settings = match &self.venue {
            Some(file) => VenueLine::read(file)?.settings(config, self.account)?,
            None => connection::settings(config)?,
        };
        if let Some(api) = self.api {
            settings.spot_api = api.into();
            settings.futures_api = api.into();
        }
        let needs = needs(&settings)?;
        if self.venue.is_none() {
            settings.credentials = connection::credentials(&config.account, needs)?;
        } else if needs.solana {
            // The simulated venue's line contains no Solana wallet.
            let only = Needs {
                solana: true,
                ..Needs::default()
            };
            settings.credentials.solana = connection::credentials(&config.account, only)?.solana;
        }
        Ok(settings)
    }

    /// Settings of a client for a process that does not sign: without keys.
    pub(super) fn settings_without_keys(&self, config: &Config) -> Result<Settings, Failure> {
        self.refuse_addresses()?;
        let mut settings = match &self.venue {
            Some(file) => connection::line_settings(file, config)?,
            None => connection::settings(config)?,
        };
        if let Some(api) = self.api {
            settings.spot_api = api.into();
            settings.futures_api = api.into();
        }
        Ok(settings)
    }

    /// Refuses addresses in `--set` together with `--venue`, because they would have no effect.
    fn refuse_addresses(&self) -> Result<(), Failure> {
        let is_address = |set: &&String| {
            let key = set.split('=').next().unwrap_or_default().trim();
            let last = key.rsplit('.').next();
            key.starts_with("venue.") && matches!(last, Some("rest" | "ws" | "user_ws"))
        };
        match self.set.iter().find(is_address) {
            Some(set) if self.venue.is_some() => Err(Failure::Usage(format!(
                "--set {set}: --venue already gives the addresses; remove one of the two"
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(set: &str, venue: Option<&str>) -> Place {
        Place {
            config: None,
            set: vec![set.to_owned()],
            venue: venue.map(PathBuf::from),
            account: 0,
            api: None,
        }
    }

    #[test]
    fn an_address_in_set_is_refused_with_a_venue_file() {
        let set = "venue.futures.rest=http://127.0.0.1:1";
        let refused = place(set, Some("line.json")).refuse_addresses();
        let Err(Failure::Usage(text)) = refused else {
            panic!("the address was accepted")
        };
        assert!(text.starts_with("--set venue.futures.rest="), "{text}");
        assert!(place(set, None).refuse_addresses().is_ok());
        let other = place("venue.brand=svc", Some("line.json"));
        assert!(other.refuse_addresses().is_ok());
    }
}
