//! The admin server: shows the state of a running instance and takes commands, over HTTP on
//! loopback.
//!
//! It holds no state of the run. It shows the last published state and passes commands to the
//! engine's loop. Connections, times and sizes are limited.

mod access_control;
mod answer;
mod connections;
mod routes;
mod settings;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::address_file::AddressFile;
use crate::metrics::Metrics;
use crate::token::Token;

pub(crate) use answer::SERVER;
pub use settings::{Served, Settings};

/// How often metric samples are moved out of their buffers: see [`Metrics::upkeep`].
const UPKEEP_EVERY: Duration = Duration::from_secs(1);

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is not loopback.
    #[error(
        "admin.listen {0} is not a loopback address, and the admin server has no TLS; use \
         127.0.0.1 or [::1], and connect from elsewhere through ssh -L"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be bound.
    #[error(
        "admin.listen {listen}: {error}; free the port or choose another; 0 takes any free port"
    )]
    Bind {
        /// Address.
        listen: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// `admin.addr` cannot be written.
    #[error("{path}: {error}; check that data_dir exists and is writable")]
    AddressFile {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// A running admin server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    /// Removed when the server is dropped.
    _address_file: AddressFile,
}

impl Server {
    /// Starts to listen, and writes the address to `<data_dir>/admin.addr`.
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
            tracing::warn!(%listen, "the admin server is reachable from other machines without \
                                     TLS: others may read its token and control this run");
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
        let access_control = access_control::AccessControl::new(address, settings.expose, token);
        let router = routes::router(settings, served, access_control);
        let accepting = tokio::spawn(async move {
            tokio::select! {
                () = connections::serve(listener, router, stopped) => {}
                () = keep_up(metrics) => {}
            }
        });
        tracing::info!(%address, "the admin server is listening");
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

    /// Stops accepting connections, gives open ones two seconds to end, and removes `admin.addr`.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Err(error) = (&mut self.accepting).await {
            tracing::error!(%error, "the admin server ended with a panic");
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
