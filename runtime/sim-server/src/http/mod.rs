//! The listeners: one per port, HTTP/1 with keep-alive and upgrades. They only move bytes;
//! [`dispatch`] interprets them.

mod chosen;
pub(crate) mod dispatch;
mod exchange;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windvane_model::Time;

use crate::request::Port;
use crate::state::State;

/// The state that the tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Time limit for receiving the body of a request.
    body_within: Duration,
}

impl Shared {
    pub(crate) const fn new(state: State) -> Self {
        Self {
            body_within: state.settings.body_within,
            state: Mutex::new(state),
        }
    }

    /// Calls `act` with the state and the venue's present time.
    pub(crate) fn at_present<T>(&self, act: impl FnOnce(&mut State, Time) -> T) -> T {
        let mut state = self.state();
        let now = state.choices.venue_time(now());
        act(&mut state, now)
    }

    /// Locks the state. The lock is never held across an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wall clock. The venue's time always runs at normal speed.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    Time(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// A connection's slot among those of its port. A WebSocket keeps the slot after its handshake.
pub(crate) type Slot = Arc<OwnedSemaphorePermit>;

/// Serves the connections of one port until the server ends.
pub(crate) async fn serve(listener: TcpListener, port: Port, shared: Arc<Shared>) {
    let (most, head_within) = {
        let settings = &shared.state().settings;
        (settings.limits.connections, settings.head_within)
    };
    let slots = Arc::new(Semaphore::new(most));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // The process probably has no file descriptors left, so wait until some connections
                // close.
                tracing::warn!(%error, ?port, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        let slot: Slot = Arc::new(slot);
        tokio::spawn(async move {
            let service = service_fn(|mut request| {
                request.extensions_mut().insert(Arc::clone(&slot));
                exchange::exchange(Arc::clone(&shared), port, peer.ip(), request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head_within)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            if let Err(error) = connection.await {
                tracing::debug!(%error, ?port, "a connection ended");
            }
        });
    }
}

/// No response is sent, and the connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut without an answer")]
pub(crate) struct Cut;
