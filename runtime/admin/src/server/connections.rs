//! Accepts and serves connections. One connection carries one request. `visits` says which one is
//! closed, and when.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use super::visits::{Arrival, Asked, Unknown, Visit};
use crate::socket::AdminSocket;

/// The time limit for a request's head.
const HEAD_WITHIN: Duration = Duration::from_secs(3);
/// A larger head is refused (431).
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long connections may take to end when the server stops.
const END_WITHIN: Duration = Duration::from_secs(2);
/// The pause after a failed accept, for example with too many open files.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Where connections come from.
pub(super) enum Listener {
    Tcp(TcpListener),
    Socket(AdminSocket),
}

/// Serves all listeners until `stopped` is true.
pub(super) async fn serve_all(
    listeners: Vec<Listener>,
    router: Router,
    stopped: watch::Receiver<bool>,
) {
    let mut serving = JoinSet::new();
    for listener in listeners {
        serving.spawn(serve(listener, router.clone(), stopped.clone()));
    }
    while serving.join_next().await.is_some() {}
}

async fn serve(listener: Listener, router: Router, mut stopped: watch::Receiver<bool>) {
    let unknown = Arc::new(Unknown::default());
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // An error means that the server is dropped, which is also a stop.
            _ = stopped.wait_for(|stopped| *stopped) => break,
            accepted = accept_into(&listener, &unknown, &router, &mut connections) => accepted,
        };
        if let Err(error) = accepted {
            tracing::warn!(%error, "the admin server cannot accept a connection; trying again");
            sleep(ACCEPT_AGAIN_AFTER).await;
        }
        while connections.try_join_next().is_some() {}
        // The new connection reads its request before the next ones can close it.
        yield_now().await;
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(END_WITHIN, ended).await.is_err() {
        connections.shutdown().await;
    }
}

/// Accepts a connection and serves it on a task of its own. Accepting never waits for a place.
async fn accept_into(
    listener: &Listener,
    unknown: &Arc<Unknown>,
    router: &Router,
    connections: &mut JoinSet<()>,
) -> io::Result<()> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, peer) = listener.accept().await?;
            let visit = unknown.arrive(Arrival::Tcp(peer.ip()));
            connections.spawn(connection(stream, router.clone(), visit));
        }
        Listener::Socket(socket) => {
            let stream = socket.accept().await?;
            let visit = unknown.arrive(Arrival::Socket);
            connections.spawn(connection(stream, router.clone(), visit));
        }
    }
    Ok(())
}

pub(super) async fn connection<S>(stream: S, router: Router, visit: Arc<Visit>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let routed = TowerToHyperService::new(router);
    let of_request = Arc::clone(&visit);
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let asked = request.uri().path_and_query().map(ToString::to_string);
        let extensions = request.extensions_mut();
        extensions.insert(Asked(asked.unwrap_or_default()));
        extensions.insert(Arc::clone(&of_request));
        routed.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = served => {
            if let Err(error) = ended {
                tracing::debug!(%error, "an admin connection ended with an error");
            }
        }
        () = visit.over() => {
            tracing::debug!("an admin connection took too long, or others needed its place");
        }
    }
    visit.leave_unknown();
}
