//! The check of the settings before a server starts, and why a server cannot start.

use super::Settings;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port is not available.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another --port, or 0")]
    Bind {
        /// The port.
        port: u16,
        /// The system's error.
        source: std::io::Error,
    },
    /// The five ports would exceed the highest port number.
    #[error("port = {0} leaves no room for five ports; choose one up to 65531, or 0")]
    Port(u16),
    /// Too few or too many accounts.
    #[error("accounts = {0} must lie between 2 and {max}", max = Settings::ACCOUNTS_MAX)]
    Accounts(u16),
    /// No account can trade these instruments.
    #[error("the market's instruments cannot form a venue: {0}")]
    Venue(#[from] windvane_sim::VenueConfigError),
}

/// Refuses settings with which no venue can run.
pub(crate) fn check_settings(settings: &Settings) -> Result<(), StartError> {
    if (2..=Settings::ACCOUNTS_MAX).contains(&settings.accounts) {
        Ok(())
    } else {
        Err(StartError::Accounts(settings.accounts))
    }
}
