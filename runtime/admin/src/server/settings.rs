//! Where the server listens, and what it shows and passes on.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::heartbeat::Heartbeat;
use crate::metrics::Metrics;
use crate::steer::{Command, RELOAD_WITHIN};
use crate::steering::SteerSender;
use crate::token::Token;
use crate::view::Published;

/// Where and how the server listens. It always listens on the Unix socket `admin.sock` in the data
/// folder.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Listen on a TCP address too.
    pub tcp: Option<Tcp>,
    /// `/metrics` needs neither the socket nor the token.
    pub open_metrics: bool,
    /// Folder of `admin.sock` and `admin.addr`. This process must have locked it.
    pub data_dir: PathBuf,
    /// The time limit for the engine's answer to a command other than a reload. After it the response
    /// is 504.
    pub answer_within: Duration,
    /// The same for a reload, which builds modules.
    pub reload_within: Duration,
    /// How long a client may take to receive an answer, in addition to the time above.
    pub transfer_within: Duration,
    /// How long the server waits before it tries a TCP address again that another program has.
    pub listen_again_after: Duration,
    /// `/health` fails if the engine's loop makes no progress for this time.
    pub stalled_after: Duration,
}

/// A TCP address of the server.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The address. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// **Dangerous.** Listen on an address that is not loopback. Then everyone who reaches it can
    /// read `/health` and `/ready`, and can read the tokens of clients that send one, because there
    /// is no TLS here. Use it only behind a proxy or in a private network.
    pub expose: bool,
    /// What a client must know.
    pub token: Token,
}

impl Settings {
    /// Only the socket, and ten seconds for the engine's answers and its progress.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            tcp: None,
            open_metrics: false,
            data_dir: data_dir.into(),
            answer_within: Duration::from_secs(10),
            reload_within: RELOAD_WITHIN,
            transfer_within: Duration::from_secs(30),
            listen_again_after: Duration::from_secs(5),
            stalled_after: Duration::from_secs(10),
        }
    }

    /// The time limit of the engine's answer to a command that waits for this time.
    pub(crate) fn answer_to(&self, command: Command, wait: Duration) -> Duration {
        match command {
            Command::Reload => self.reload_within.max(self.answer_within),
            _ => self.answer_within + wait,
        }
    }
}

impl Tcp {
    /// An address of this machine.
    pub const fn new(listen: SocketAddr, token: Token) -> Self {
        Self {
            listen,
            expose: false,
            token,
        }
    }
}

/// The sources and sinks of the server.
#[derive(Debug)]
pub struct Served {
    /// The last published state.
    pub published: watch::Receiver<Arc<Published>>,
    /// Sends commands to the engine's loop.
    pub steer: SteerSender,
    /// The sign of life of that loop.
    pub heartbeat: Heartbeat,
    /// The content of `/metrics`.
    pub metrics: Metrics,
}
