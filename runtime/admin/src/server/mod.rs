//! The admin server: shows the state of a running instance and takes commands, over HTTP on a Unix
//! socket and, if wanted, on loopback.
//!
//! It holds no state of the run. It shows the last published state and passes commands to the
//! engine's loop. Connections, times and sizes are limited.

mod access_control;
mod answer;
mod connections;
#[cfg(fuzzing)]
pub mod fuzzing;
mod routes;
mod settings;
mod tcp;
mod visits;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::address_file::AddressFile;
use crate::metrics::Metrics;
use crate::proof::Nonces;
use crate::socket::{self, AdminSocket};
use crate::token::TokenError;

pub(crate) use answer::SERVER;
pub use settings::{Served, Settings, Tcp};

use connections::Listener;
use tcp::{Listening, Pending};

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
    /// The address cannot be bound, and that will not change: it is not one of this machine, or this
    /// user may not use the port. A port that another program has does not prevent a start.
    #[error(
        "admin.listen {listen}: {error}; choose an address of this machine and a port over 1023; port 0 \
         takes any free one"
    )]
    Bind {
        /// Address.
        listen: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// The Unix socket cannot be made.
    #[error(
        "{path}: {error}; check that data_dir exists, is writable and is on a file system with Unix \
         sockets"
    )]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The system gave no random bytes.
    #[error(transparent)]
    Random(#[from] TokenError),
    /// `admin.addr` cannot be written or removed.
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
    listening: watch::Receiver<Listening>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    /// Removed when the server is dropped.
    _address_file: Option<AddressFile>,
}

impl Server {
    /// Starts to listen on `<data_dir>/admin.sock`, and on the TCP address of the settings, which it
    /// writes to `<data_dir>/admin.addr`. Files that an earlier process left are replaced or removed.
    /// If another program has the TCP address, the server starts with the socket only, and tries the
    /// address again; the status says so.
    ///
    /// # Errors
    /// An address is not allowed or cannot be bound, or the data folder cannot be written.
    pub async fn start(settings: Settings, served: Served) -> Result<Self, StartError> {
        let data_dir = settings.data_dir.clone();
        let path = socket::path(&data_dir);
        let mut listeners = Vec::new();
        let (mut address, mut address_file, mut pending) = (None, None, None);
        let mut listening = watch::channel(Listening::default()).1;
        match &settings.tcp {
            None => {}
            Some(tcp) => match tcp::listen(tcp).await {
                Ok((listener, bound)) => {
                    listeners.push(Listener::Tcp(listener));
                    address_file = Some(write_address(&data_dir, bound)?);
                    address = Some(bound);
                    let state = Listening {
                        address,
                        problem: None,
                    };
                    listening = watch::channel(state).1;
                }
                Err(StartError::Bind { listen, error }) if tcp::may_become_free(&error) => {
                    tracing::error!(
                        %listen,
                        %error,
                        "could not listen on admin.listen: another program may have the port. The run \
                         starts, and commands use the socket admin.sock; other HTTP clients cannot \
                         reach the run, and tell that program the token if they send it. Free the \
                         port: the run tries again every few seconds"
                    );
                    let (waits, state) = Pending::new(listen, &settings, &error);
                    (pending, listening) = (Some(waits), state);
                }
                Err(error) => return Err(error),
            },
        }
        if address.is_none() {
            AddressFile::remove_stale(&data_dir)
                .map_err(|error| address_failed(&data_dir, error))?;
        }
        match AdminSocket::listen(&data_dir) {
            Ok(socket) => listeners.push(Listener::Socket(socket)),
            // The operator still has the TCP address.
            Err(error) if address.is_some() => {
                let path = path.display();
                tracing::warn!(
                    %path,
                    %error,
                    "could not make admin.sock: the commands use the TCP address of admin.listen"
                );
            }
            Err(error) => return Err(StartError::Socket { path, error }),
        }
        let (stop, stopped) = watch::channel(false);
        let metrics = served.metrics.clone();
        // An address that is not free yet has a fixed port.
        let named = address.or(settings.tcp.as_ref().map(|tcp| tcp.listen));
        let nonces = Arc::new(Nonces::new()?);
        let access_control = access_control::AccessControl::new(&settings, named, nonces);
        let router = routes::router(settings, (served, listening.clone()), access_control);
        let later = pending.map(|pending| pending.serve(router.clone(), stopped.clone()));
        let accepting = tokio::spawn(async move {
            let later = async {
                if let Some(later) = later {
                    later.await;
                }
            };
            let serving =
                async { tokio::join!(connections::serve_all(listeners, router, stopped), later) };
            tokio::select! {
                ((), ()) = serving => {}
                () = keep_up(metrics) => {}
            }
        });
        let socket = socket::path(&data_dir);
        let socket = socket.display();
        if let Some(address) = address {
            tracing::info!(%socket, %address, "the admin server is listening");
        } else {
            tracing::info!(%socket, "the admin server is listening");
        }
        Ok(Self {
            listening,
            stop,
            accepting,
            _address_file: address_file,
        })
    }

    /// The bound TCP address; `None` with the socket only, and while another program has the address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listening.borrow().address
    }

    /// Stops accepting connections, gives open ones two seconds to end, and removes `admin.sock` and
    /// `admin.addr`.
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

fn write_address(data_dir: &Path, address: SocketAddr) -> Result<AddressFile, StartError> {
    AddressFile::write(data_dir, address).map_err(|error| address_failed(data_dir, error))
}

fn address_failed(data_dir: &Path, error: io::Error) -> StartError {
    let path = AddressFile::path(data_dir);
    StartError::AddressFile { path, error }
}

async fn keep_up(metrics: Metrics) {
    let mut turns = tokio::time::interval(UPKEEP_EVERY);
    loop {
        turns.tick().await;
        metrics.upkeep();
    }
}
