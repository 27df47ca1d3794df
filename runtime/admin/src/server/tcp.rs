//! The TCP address of the server. If another program has it, the server starts with the Unix socket
//! only, and tries again until it gets the address: a run must not depend on a port that every user
//! of the machine can take.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;

use super::connections::{self, Listener};
use super::{Settings, StartError, Tcp};
use crate::address_file::AddressFile;

/// Where the server listens besides its socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Listening {
    /// The bound TCP address.
    pub(super) address: Option<SocketAddr>,
    /// Why the wanted address is not bound yet, for people.
    pub(super) problem: Option<String>,
}

/// An address that another program has.
pub(super) struct Pending {
    listen: SocketAddr,
    data_dir: PathBuf,
    again_after: Duration,
    listening: watch::Sender<Listening>,
}

impl Pending {
    /// Publishes why the address is not bound. Returns the task that waits for it, and the state.
    pub(super) fn new(
        listen: SocketAddr,
        settings: &Settings,
        error: &io::Error,
    ) -> (Self, watch::Receiver<Listening>) {
        let problem = format!(
            "admin.listen {listen} is not in use: {error}. The run trades, and the socket admin.sock \
             works; HTTP clients get no answer of this run. The run tries the address again every \
             few seconds: free the port"
        );
        let (listening, state) = watch::channel(Listening {
            address: None,
            problem: Some(problem),
        });
        let pending = Self {
            listen,
            data_dir: settings.data_dir.clone(),
            again_after: settings.listen_again_after,
            listening,
        };
        (pending, state)
    }

    /// Waits for the address and serves it until `stopped` is true.
    pub(super) async fn serve(self, router: Router, mut stopped: watch::Receiver<bool>) {
        let (listener, _address_file) = tokio::select! {
            // An error means that the server is dropped, which is also a stop.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            bound = self.bind() => bound,
        };
        connections::serve_all(vec![Listener::Tcp(listener)], router, stopped).await;
    }

    async fn bind(&self) -> (TcpListener, Option<AddressFile>) {
        loop {
            sleep(self.again_after).await;
            match bind(self.listen).await {
                Ok((listener, address)) => return (listener, self.bound(address)),
                Err(error) => {
                    tracing::debug!(listen = %self.listen, %error, "admin.listen is still not free");
                }
            }
        }
    }

    /// Publishes the address, and writes it to its file.
    fn bound(&self, address: SocketAddr) -> Option<AddressFile> {
        let file = AddressFile::write(&self.data_dir, address);
        let file = file.inspect_err(|error| {
            let path = AddressFile::path(&self.data_dir);
            tracing::warn!(
                path = %path.display(), %error,
                "could not write admin.addr: commands use the socket admin.sock. Trading is not affected"
            );
        });
        self.listening.send_replace(Listening {
            address: Some(address),
            problem: None,
        });
        tracing::info!(%address, "the admin server is listening on admin.listen too: the address is free now");
        file.ok()
    }
}

/// Binds the address of the settings.
///
/// # Errors
/// It is not allowed, or cannot be bound.
pub(super) async fn listen(tcp: &Tcp) -> Result<(TcpListener, SocketAddr), StartError> {
    let listen = tcp.listen;
    if !listen.ip().is_loopback() {
        if !tcp.expose {
            return Err(StartError::NotLoopback(listen));
        }
        tracing::warn!(%listen, "the admin server is reachable from other machines without \
                                 TLS: others may read its token and control this run");
    }
    let bound = bind(listen).await;
    bound.map_err(|error| StartError::Bind { listen, error })
}

async fn bind(listen: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Whether the address can become free without a change of the configuration.
pub(super) fn may_become_free(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::AddrNotAvailable
            | ErrorKind::PermissionDenied
            | ErrorKind::InvalidInput
            | ErrorKind::Unsupported
    )
}
