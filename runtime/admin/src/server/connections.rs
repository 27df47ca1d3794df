//! Connections: how many, for how long. One connection carries one request, so that nobody who
//! only holds a connection keeps others out for longer than it takes to write a request's head.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections at once; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 64;
/// A request's head is there within this.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Nothing here takes longer, the engine's answer included.
const CONNECTION_FOR: Duration = Duration::from_secs(30);
/// A head that is larger is refused (431).
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// What connections have for their end when the server stops.
const END_WITHIN: Duration = Duration::from_secs(2);
/// After a failure to accept, such as too many open files.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Serves until `stopped` says so.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let next = accept(&listener, Arc::clone(&places));
        let (stream, place) = tokio::select! {
            // An error is a server that is gone: the same as a stop.
            _ = stopped.wait_for(|stopped| *stopped) => break,
            accepted = next => accepted,
        };
        connections.spawn(connection(stream, router.clone(), place));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(END_WITHIN, ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn accept(
    listener: &TcpListener,
    places: Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so that a place always comes.
    let place = places.acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::warn!(%error, "the admin server cannot accept a connection");
                sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, router: Router, _place: Option<OwnedSemaphorePermit>) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    match timeout(CONNECTION_FOR, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "an admin connection ended badly"),
        Err(_) => tracing::debug!("an admin connection took too long"),
    }
}
