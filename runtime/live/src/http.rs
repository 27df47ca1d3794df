//! Writes calls to the venue, each once and on a task of its own, and brings back what came.
//!
//! What changes something leaves on the engine's own thread, so that nobody has to be woken for it.
//! What only asks travels beside it, for its answers may be long.
//!
//! What may never enter here: judging answers, waiting for the budget, and sending again. The session
//! decides all of it.

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
use super::mailbox::{Came, Happened, Mailbox};

/// A runtime, and a client whose connections live there.
#[derive(Clone, Debug)]
pub struct Way {
    pub handle: Handle,
    pub client: Client,
}

/// Calls under way.
#[derive(Debug)]
pub struct Http {
    /// Of the engine's thread.
    own: Way,
    /// Of the rest of the process.
    beside: Way,
    mailbox: Mailbox,
    clock: Clock,
    flying: BTreeMap<CallId, Flying>,
}

/// A call whose task runs.
#[derive(Debug)]
struct Flying {
    task: AbortHandle,
    since: Instant,
    /// Its bytes were handed to the connection.
    has_left: Arc<AtomicBool>,
    /// What came back is on its way to the session. A task that panicked tells nothing.
    has_told: Arc<AtomicBool>,
}

impl Http {
    /// Calls by these ways; what comes back goes to this mailbox.
    pub fn new((own, beside): (Way, Way), mailbox: Mailbox, clock: Clock) -> Self {
        Self {
            own,
            beside,
            mailbox,
            clock,
            flying: BTreeMap::new(),
        }
    }

    /// Writes a call.
    pub fn send(&mut self, call: Call) {
        let way = if call.changes {
            &self.own
        } else {
            &self.beside
        };
        let has_left = Arc::new(AtomicBool::new(false));
        let (left, since) = (Arc::clone(&has_left), call.since);
        let since = since.map(|since| self.clock.moment(since));
        let client = way.client.clone().telling(Departure::new(move || {
            left.store(true, Ordering::Relaxed);
            if let Some(since) = since {
                let latency = since.elapsed().as_secs_f64();
                table::ORDER_LATENCY.of([]).record(latency);
            }
        }));
        let has_told = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&has_told);
        let (id, clock, mailbox) = (call.id, self.clock, self.mailbox.clone());
        let task = way.handle.spawn(async move {
            let came = if let Some(late) = late_by(call.leave_by, clock.now()) {
                Came::Late(late)
            } else {
                match client.exchange(call.route.surface, call.prepared).await {
                    Ok(answer) => Came::Answer(answer),
                    Err(failure) => Came::Failed(failure),
                }
            };
            told.store(true, Ordering::Relaxed);
            mailbox.tell(Happened::Came(id, came)).await;
        });
        let flying = Flying {
            task: task.abort_handle(),
            since: Instant::now(),
            has_left,
            has_told,
        };
        self.flying.insert(id, flying);
    }

    /// A call came back.
    pub fn came(&mut self, id: CallId) {
        self.flying.remove(&id);
    }

    /// Gives a call up: its connection is closed. Answers what became of it; `None` if what came back
    /// is on its way.
    pub fn abandon(&mut self, id: CallId) -> Option<Came> {
        if self.flying.get(&id)?.has_told.load(Ordering::Relaxed) {
            return None;
        }
        let flying = self.flying.remove(&id)?;
        flying.task.abort();
        let waited = flying.since.elapsed();
        Some(if flying.has_left.load(Ordering::Relaxed) {
            Came::Failed(Failure::Lost(Lost::Timeout(waited)))
        } else {
            Came::Late(waited)
        })
    }

    /// Puts a request together with its address and forgets it: an order is rare, and what it needs on
    /// its way would have left the processor's caches until the next one.
    pub fn rehearse(&self, surface: Surface, prepared: Prepared) {
        drop(std::hint::black_box(
            self.own.client.ready(surface, prepared),
        ));
    }
}

/// Counts a call that ended.
pub fn count(ended: &CallEnded) {
    let surface = ended.surface.to_string();
    let of = [surface.as_str(), ended.outcome];
    table::REQUESTS.of(of).increment(1);
    let took = Duration::from_nanos(ended.took_ns.unsigned_abs());
    let seconds = table::REQUEST_SECONDS.of([surface.as_str()]);
    seconds.record(took.as_secs_f64());
}
