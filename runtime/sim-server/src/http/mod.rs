//! The listeners: one per port, HTTP/1 with keep-alive and upgrades. Bytes in, bytes out; what
//! they mean is [`dispatch`]'s.

mod answer;
mod check;
mod chosen;
pub(crate) mod dispatch;
mod exchange;
mod params;
mod router;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windvane_model::Time;
use windvane_protocol::route::Surface;

pub(crate) use answer::{Answer, Body, Refusal, Sent, error_body};
pub(crate) use check::check_entry;
pub(crate) use dispatch::Call;
pub(crate) use exchange::{Ended, ended};
pub(crate) use params::{Params, decimal, integer, invalid, missing};
pub(crate) use router::{Found, Router};

use crate::state::State;

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Spot: REST and WebSocket.
    Spot,
    /// Futures, and the paths of chain API and info endpoint.
    Futures,
    /// Chain API.
    Chain,
    /// JSON-RPC info endpoint.
    Rpc,
    /// Fault switches and the full truth.
    Control,
}

impl Port {
    /// In the order of their numbers.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Spot,
        Self::Futures,
        Self::Chain,
        Self::Rpc,
        Self::Control,
    ];

    /// The surfaces that it answers. Futures answers the chain's and the info endpoint's too: the
    /// paths differ, and configurations often name one base address for the three.
    pub(crate) const fn surfaces(self) -> &'static [Surface] {
        match self {
            Self::Spot => &[Surface::Spot],
            Self::Futures => &[Surface::Futures, Surface::Chain, Surface::Rpc],
            Self::Chain => &[Surface::Chain],
            Self::Rpc => &[Surface::Rpc],
            Self::Control => &[],
        }
    }

    /// The surface that a request for no route is charged to.
    pub(crate) fn surface(self) -> Surface {
        self.surfaces().first().copied().unwrap_or(Surface::Spot)
    }
}

/// What the tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// How long the body of a request may take.
    body_within: Duration,
}

impl Shared {
    pub(crate) const fn new(state: State) -> Self {
        Self {
            body_within: state.settings.body_within,
            state: Mutex::new(state),
        }
    }

    /// Does something with the state at the venue's present time.
    pub(crate) fn at_present<T>(&self, act: impl FnOnce(&mut State, Time) -> T) -> T {
        let mut state = self.state();
        let now = state.choices.venue_time(now());
        act(&mut state, now)
    }

    /// The state, locked. Never held across an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wall clock: the venue's time is never sped up.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    Time(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// A connection's place among those of its port, which a WebSocket keeps beyond its handshake.
pub(crate) type Slot = Arc<OwnedSemaphorePermit>;

/// Answers the connections of one port, for ever.
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
                // Out of descriptors, most likely: wait until some are closed.
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

/// No answer is sent: the connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut without an answer")]
pub(crate) struct Cut;
