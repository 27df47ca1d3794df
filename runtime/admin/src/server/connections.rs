//! Limits the number and the duration of connections. One connection carries one request. So a
//! client that only holds a connection blocks others no longer than a request's head may take.

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

/// The maximum number of connections; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 64;
/// The time limit for a request's head.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// The time limit for a connection, including the engine's answer.
const CONNECTION_FOR: Duration = Duration::from_secs(30);
/// A larger head is refused (431).
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long connections may take to end when the server stops.
const END_WITHIN: Duration = Duration::from_secs(2);
/// The pause after a failed accept, for example with too many open files.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Serves until `stopped` is true.
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
            // An error means that the server is dropped, which is also a stop.
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
    // The semaphore is never closed, so this always succeeds.
    let place = places.acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::warn!(%error, "the admin server cannot accept a connection; trying again");
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
        Ok(Err(error)) => tracing::debug!(%error, "an admin connection ended with an error"),
        Err(_) => tracing::debug!("an admin connection took too long"),
    }
}
