//! `windvane signer`: the process that holds the keys of a run, and the process that starts it. They
//! are not for people: `run` starts them, and they talk through sockets.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::Args;

use super::Failure;
use super::place::Place;
use super::run;
use windvane_client::Settings;
use windvane_config::Config;
use windvane_live::AccountDigests;
use windvane_live::signer::{self, OpenedOrders};
use windvane_live::watchdog::StderrWriter;
use windvane_signer::Policy;

#[derive(Debug, Args)]
pub(super) struct SignerVerb {
    #[command(flatten)]
    place: Place,
    /// Path of the socket to create; without it, this process holds the keys and serves its stdin
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The account to sign for, as JSON; without it, that of the keys
    #[arg(long, value_name = "JSON")]
    signed_account: Option<String>,
    /// Opening orders that an earlier signer counted, as JSON
    #[arg(long, value_name = "JSON")]
    opened: Option<String>,
    /// The first line of stdin has secrets of the configuration, which the run kept in memory
    #[arg(long)]
    secrets_on_stdin: bool,
    /// The same, from the socket that is stdout
    #[arg(long)]
    secrets_on_stdout: bool,
}

impl SignerVerb {
    pub(super) fn run(self) -> Result<(), Failure> {
        // Before any key is in memory.
        windvane_live::confinement::hide_memory();
        self.take_secrets().map_err(Failure::failed)?;
        let account = self.account()?;
        match &self.socket {
            Some(socket) => {
                log()?;
                let mut arguments = vec![OsString::from("signer")];
                arguments.extend(self.place.arguments());
                signer::keep(socket, &arguments, account).map_err(Failure::failed)
            }
            None => self.serve(account.as_ref()),
        }
    }

    fn take_secrets(&self) -> io::Result<()> {
        if self.secrets_on_stdin {
            windvane_config::take_secrets(&mut io::stdin().lock())?;
        }
        if self.secrets_on_stdout {
            let socket = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            windvane_config::take_secrets(&mut BufReader::new(socket))?;
        }
        Ok(())
    }

    fn opened(&self) -> Result<Option<OpenedOrders>, Failure> {
        let read = self.opened.as_deref().map(serde_json::from_str);
        read.transpose()
            .map_err(|error| Failure::Usage(format!("--opened: {error}")))
    }

    fn account(&self) -> Result<Option<AccountDigests>, Failure> {
        let read = self.signed_account.as_deref().map(serde_json::from_str);
        read.transpose()
            .map_err(|error| Failure::Usage(format!("--signed-account: {error}")))
    }

    fn serve(&self, account: Option<&AccountDigests>) -> Result<(), Failure> {
        // Every failure before this process can sign is reported through its socket.
        let config = self.place.config_again();
        let (config, refused) = match config {
            Ok(config) => (config, None),
            Err(failure) => (Config::default(), Some(failure)),
        };
        let prepared = || match refused {
            Some(failure) => Err(report(failure)),
            None => self.prepare(&config).map_err(report),
        };
        let opened = self.opened()?;
        let ready = || drop(log());
        signer::serve(&config, account, opened.as_ref(), prepared, ready).map_err(Failure::failed)
    }

    /// The keys and the policy.
    fn prepare(&self, config: &Config) -> Result<(Settings, Policy), Failure> {
        let needs = run::needs(config, self.place.api.map(Into::into));
        let settings = self.place.settings_of(config, |_| Ok(needs))?;
        let policy = signer::policy(config).map_err(Failure::usage)?;
        Ok((settings, policy))
    }
}

/// The text of a failure, and whether the configuration must be changed.
fn report(failure: Failure) -> (String, bool) {
    match failure {
        Failure::Usage(text) => (text, true),
        Failure::Failed(text)
        | Failure::NotRunning(text)
        | Failure::Differs(text)
        | Failure::Unverified(text) => (text, false),
    }
}

/// Log lines never wait for a terminal that does not read.
fn log() -> Result<(), Failure> {
    let lines = StderrWriter::stderr("signer: ").map_err(Failure::failed)?;
    super::log_to("info", lines);
    Ok(())
}

impl From<signer::SignerError> for Failure {
    fn from(error: signer::SignerError) -> Self {
        match error {
            signer::SignerError::Refused(_) => Self::usage(error),
            signer::SignerError::Failed(_) => Self::failed(error),
        }
    }
}
