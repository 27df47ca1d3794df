//! The admin server: what a running instance shows and takes, over HTTP on loopback.
//!
//! It holds no state of the run: it shows what was published last, and hands commands to whoever
//! steers. Everything about it is bounded: connections, time, sizes.

mod answer;
mod connections;
mod gate;
mod routes;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::address_file::AddressFile;
use crate::beat::Beat;
use crate::metrics::Metrics;
use crate::steer::Steer;
use crate::token::Token;
use crate::view::Published;

pub(crate) use answer::SERVER;

/// How often samples of metrics are moved out of their buffers: see [`Metrics::upkeep`].
const UPKEEP_EVERY: Duration = Duration::from_secs(1);

/// Where and how the server listens.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address; port 0 for any that is free.
    pub listen: SocketAddr,
    /// **Dangerous.** Listen on an address that is not loopback. Everybody who reaches it reads
    /// `/metrics`, `/health` and `/ready`, and hears the token of everybody else, for there is no
    /// TLS here: only behind a proxy or in a network that is ours alone.
    pub expose: bool,
    /// Folder of `admin.addr`.
    pub data_dir: PathBuf,
    /// A command that the engine did not answer for so long is answered with 504.
    pub answer_within: Duration,
    /// `/health` fails when the engine's loop made no progress for so long.
    pub stalled_after: Duration,
}

impl Settings {
    /// A free port on 127.0.0.1, ten seconds for the engine's answers and its progress.
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

/// What the server shows, and where commands go.
#[derive(Debug)]
pub struct Served {
    /// What was published last.
    pub published: watch::Receiver<Arc<Published>>,
    /// To the engine's loop.
    pub steer: mpsc::Sender<Steer>,
    /// Its sign of life.
    pub beat: Beat,
    /// What `/metrics` shows.
    pub metrics: Metrics,
}

/// A server that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is not loopback.
    #[error(
        "admin.listen {0} is not a loopback address, and the admin server has no TLS; use \
         127.0.0.1 or [::1], and reach it from elsewhere through ssh -L"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be bound.
    #[error("admin.listen {listen}: {error}; free the port or choose another, 0 for any")]
    Bind {
        /// Address.
        listen: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// `admin.addr` cannot be written.
    #[error("{path}: {error}; see that data_dir is there and can be written")]
    AddressFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// A running admin server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    /// Removed when the server goes.
    _address_file: AddressFile,
}

impl Server {
    /// Listens, and tells where in `<data_dir>/admin.addr`.
    pub async fn start(
        settings: Settings,
        token: Token,
        served: Served,
    ) -> Result<Self, StartError> {
        let listen = settings.listen;
        if !listen.ip().is_loopback() {
            if !settings.expose {
                return Err(StartError::NotLoopback(listen));
            }
            tracing::warn!(%listen, "the admin server is exposed beyond this machine, without TLS");
        }
        let bound = |error| StartError::Bind { listen, error };
        let listener = TcpListener::bind(listen).await.map_err(bound)?;
        let address = listener.local_addr().map_err(bound)?;
        let address_file = AddressFile::write(&settings.data_dir, address).map_err(|error| {
            let path = AddressFile::path(&settings.data_dir);
            StartError::AddressFile { path, error }
        })?;
        let (stop, stopped) = watch::channel(false);
        let metrics = served.metrics.clone();
        let gate = gate::Gate::new(address, settings.expose, token);
        let router = routes::router(settings, served, gate);
        let accepting = tokio::spawn(async move {
            tokio::select! {
                () = connections::serve(listener, router, stopped) => {}
                () = keep_up(metrics) => {}
            }
        });
        tracing::info!(%address, "the admin server listens");
        Ok(Self {
            address,
            stop,
            accepting,
            _address_file: address_file,
        })
    }

    /// The bound address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets those that are there end within two seconds, and removes
    /// `admin.addr`.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Err(error) = (&mut self.accepting).await {
            tracing::error!(%error, "the admin server ended badly");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn keep_up(metrics: Metrics) {
    let mut turns = tokio::time::interval(UPKEEP_EVERY);
    loop {
        turns.tick().await;
        metrics.upkeep();
    }
}
