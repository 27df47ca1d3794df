//! Where the server listens, and what it shows and passes on.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::heartbeat::Heartbeat;
use crate::metrics::Metrics;
use crate::steer::Steer;
use crate::view::Published;

/// Where and how the server listens.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// **Dangerous.** Listen on an address that is not loopback. Then everyone who reaches it can
    /// read `/metrics`, `/health` and `/ready`, and can read the tokens of other clients, because
    /// there is no TLS here. Use it only behind a proxy or in a private network.
    pub expose: bool,
    /// Folder of `admin.addr`.
    pub data_dir: PathBuf,
    /// The time limit for the engine's answer to a command. After it the response is 504.
    pub answer_within: Duration,
    /// `/health` fails if the engine's loop makes no progress for this time.
    pub stalled_after: Duration,
}

impl Settings {
    /// A free port on 127.0.0.1, and ten seconds for the engine's answers and its progress.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            expose: false,
            data_dir: data_dir.into(),
            answer_within: Duration::from_secs(10),
            stalled_after: Duration::from_secs(10),
        }
    }
}

/// The sources and sinks of the server.
#[derive(Debug)]
pub struct Served {
    /// The last published state.
    pub published: watch::Receiver<Arc<Published>>,
    /// Sends commands to the engine's loop.
    pub steer: mpsc::Sender<Steer>,
    /// The sign of life of that loop.
    pub heartbeat: Heartbeat,
    /// The content of `/metrics`.
    pub metrics: Metrics,
}
