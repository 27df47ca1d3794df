//! Sends requests to the venue, each once and in its own task, and brings the results back.
//!
//! Requests that change something leave from the engine's own thread, so that no other thread must
//! be woken. Queries run on other threads, because their responses may be long.
//!
//! This file does not judge responses, wait for the budget or send anything again. The session
//! decides all of that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use windvane_admin::metrics::table;
use windvane_client::{Client, Departure, Lost};
use windvane_client_core::gateway::Failure;
use windvane_protocol::route::Surface;
use windvane_protocol::sign::Prepared;
use windvane_session::{Call, CallEnded, CallId, late_by};

use super::clock::Clock;
use super::mailbox::{CallOutcome, LoopEvent, Mailbox};

/// An async runtime, and a client whose connections live on it.
#[derive(Clone, Debug)]
pub struct RuntimeClient {
    pub handle: Handle,
    pub client: Client,
}

/// Requests in flight.
#[derive(Debug)]
pub struct Http {
    /// The runtime of the engine's thread.
    own: RuntimeClient,
    /// The runtime of the other threads.
    shared: RuntimeClient,
    mailbox: Mailbox,
    clock: Clock,
    in_flight: BTreeMap<CallId, InFlight>,
}

/// A request whose task is running.
#[derive(Debug)]
struct InFlight {
    task: AbortHandle,
    since: Instant,
    /// Its bytes were handed to the connection.
    has_left: Arc<AtomicBool>,
    /// Its result is on the way to the session. A task that panicked never sets this.
    has_reported: Arc<AtomicBool>,
}

impl Http {
    /// Sends requests on these runtimes. Results go to `mailbox`.
    pub fn new(
        (own, shared): (RuntimeClient, RuntimeClient),
        mailbox: Mailbox,
        clock: Clock,
    ) -> Self {
        Self {
            own,
            shared,
            mailbox,
            clock,
            in_flight: BTreeMap::new(),
        }
    }

    /// Sends a request.
    pub fn send(&mut self, call: Call) {
        let runtime = if call.changes {
            &self.own
        } else {
            &self.shared
        };
        let has_left = Arc::new(AtomicBool::new(false));
        let (left, since) = (Arc::clone(&has_left), call.since);
        let since = since.map(|since| self.clock.moment(since));
        let client = runtime
            .client
            .clone()
            .with_departure(Departure::new(move || {
                left.store(true, Ordering::Relaxed);
                if let Some(since) = since {
                    let latency = since.elapsed().as_secs_f64();
                    table::ORDER_LATENCY.of([]).record(latency);
                }
            }));
        let has_reported = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&has_reported);
        let (id, clock, mailbox) = (call.id, self.clock, self.mailbox.clone());
        let task = runtime.handle.spawn(async move {
            let outcome = if let Some(late) = late_by(call.leave_by, clock.now()) {
                CallOutcome::Late(late)
            } else {
                match client.exchange(call.route.surface, call.prepared).await {
                    Ok(answer) => CallOutcome::Answer(answer),
                    Err(failure) => CallOutcome::Failed(failure),
                }
            };
            reported.store(true, Ordering::Relaxed);
            mailbox.post(LoopEvent::CallEnded(id, outcome)).await;
        });
        let in_flight = InFlight {
            task: task.abort_handle(),
            since: Instant::now(),
            has_left,
            has_reported,
        };
        self.in_flight.insert(id, in_flight);
    }

    /// Removes a request whose result arrived.
    pub fn remove(&mut self, id: CallId) {
        self.in_flight.remove(&id);
    }

    /// Gives up a request and closes its connection. Returns its result, or `None` if the result is
    /// already on the way to the session.
    pub fn abandon(&mut self, id: CallId) -> Option<CallOutcome> {
        if self
            .in_flight
            .get(&id)?
            .has_reported
            .load(Ordering::Relaxed)
        {
            return None;
        }
        let in_flight = self.in_flight.remove(&id)?;
        in_flight.task.abort();
        let waited = in_flight.since.elapsed();
        Some(if in_flight.has_left.load(Ordering::Relaxed) {
            CallOutcome::Failed(Failure::Lost(Lost::Timeout(waited)))
        } else {
            CallOutcome::Late(waited)
        })
    }

    /// Prepares a request for its connection and drops it. Orders are rare, so without this the
    /// code and data of that path would leave the processor's caches before the next order.
    pub fn rehearse(&self, surface: Surface, prepared: Prepared) {
        drop(std::hint::black_box(
            self.own.client.ready(surface, prepared),
        ));
    }
}

/// Counts a finished request in the metrics.
pub fn count(ended: &CallEnded) {
    let surface = ended.surface.to_string();
    let of = [surface.as_str(), ended.outcome];
    table::REQUESTS.of(of).increment(1);
    let took = Duration::from_nanos(ended.took_ns.unsigned_abs());
    let seconds = table::REQUEST_SECONDS.of([surface.as_str()]);
    seconds.record(took.as_secs_f64());
}
