//! The source of a run's market data, as the caller chooses it.

use std::path::PathBuf;

use super::player::Pace;
use super::signer::Process;

/// The source of a run's market data.
#[derive(Debug)]
pub enum Market {
    /// The venue, through a client of these settings. If a signer signs, the settings have no keys.
    Venue(Box<windvane_client::Settings>, Option<Box<Process>>),
    /// The recordings of `backtest.data`.
    Recordings(Playing),
}

/// How recordings are played back.
#[derive(Clone, Debug)]
pub struct Playing {
    /// The speed.
    pub pace: Pace,
    /// The folder for the result files.
    pub out: Option<PathBuf>,
}
