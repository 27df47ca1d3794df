//! One request and its response. This module reads the body, calls [`dispatch`]
//! under the lock, and applies the fault plan to the response.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::time::timeout;

use super::shared::Shared;
use super::websocket;
use crate::control;
use crate::dispatch;
use crate::faults::{Ended, Ending, ended};
use crate::request::{Port, Received, Refusal, Sent};

/// The longest body of a request, in bytes.
const BODY_MAX: usize = 64 * 1024;
/// How long a half-open connection is kept.
const HALF_OPEN: Duration = Duration::from_mins(10);

/// No response is sent, and the connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut without an answer")]
pub(super) struct Cut;

pub(super) async fn exchange(
    shared: Arc<Shared>,
    port: Port,
    ip: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Cut> {
    if port != Port::Control && websocket::is_upgrade(&request) {
        return upgrade(&shared, port, ip, request).await;
    }
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_MAX).collect();
    // A client that does not send the promised body must not keep a connection slot for ever.
    let body = match timeout(shared.body_within, body).await.map_err(|_| Cut)? {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let msg = format!("The request body is over {BODY_MAX} bytes.");
            let refusal = Refusal::new(-1130, msg).with_status(413);
            return response(refused(&shared, port, ip, refusal));
        }
        Err(_) => return Err(Cut),
    };
    let received = Received {
        port,
        ip,
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
        body: &body,
    };
    if port == Port::Control {
        return response(shared.at_present(|state, now| control::answer(state, &received, now)));
    }
    let plan = shared.at_present(|state, now| control::plan(state, &received, now));
    wait(plan.before_ms).await;
    let sent = if plan.handled {
        Some(shared.at_present(|state, now| dispatch::answer(state, &received, now)))
    } else {
        None
    };
    wait(plan.after_ms).await;
    match ended(plan.ending, sent) {
        Ended::Sent(sent) => response(sent),
        Ended::Cut => Err(Cut),
        Ended::HalfOpen => {
            tokio::time::sleep(HALF_OPEN).await;
            Err(Cut)
        }
    }
}

/// A WebSocket handshake. Faults can affect it like any request.
async fn upgrade(
    shared: &Arc<Shared>,
    port: Port,
    ip: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Cut> {
    let received = Received {
        port,
        ip,
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.uri().query().unwrap_or_default(),
        headers: request.headers(),
        body: &[],
    };
    let plan = shared.at_present(|state, now| control::plan(state, &received, now));
    wait(plan.before_ms.saturating_add(plan.after_ms)).await;
    match plan.ending {
        Ending::AsIs => websocket::accept(shared, port, ip, request)
            .or_else(|refusal| response(refused(shared, port, ip, refusal))),
        Ending::Instead(sent) => response(sent),
        Ending::Half | Ending::Cut => Err(Cut),
        Ending::HalfOpen => {
            tokio::time::sleep(HALF_OPEN).await;
            Err(Cut)
        }
    }
}

/// A refusal that does not go through [`dispatch`], with the header for the weight that the address
/// has used.
fn refused(shared: &Shared, port: Port, ip: IpAddr, refusal: Refusal) -> Sent {
    let mut sent = Sent::new(Err(refusal));
    if port != Port::Control {
        shared.at_present(|state, now| {
            let (limits, choices) = (&mut state.limits, &state.choices);
            limits.add_used_weight(choices, port.surface(), ip, now, &mut sent.headers);
        });
    }
    sent
}

async fn wait(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

fn response(sent: Sent) -> Result<Response<Full<Bytes>>, Cut> {
    let mut builder = Response::builder().status(sent.status);
    for (name, value) in sent.headers {
        builder = builder.header(name, value);
    }
    builder
        .body(Full::new(Bytes::from(sent.body)))
        .map_err(|error| {
            tracing::error!(%error, "a response could not be built, so the connection is cut");
            Cut
        })
}
