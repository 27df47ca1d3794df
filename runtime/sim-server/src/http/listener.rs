//! The listener of one port.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::exchange;
use super::shared::{Shared, Slot};
use crate::request::Port;

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
