//! Writes calls to the venue, each once and on a task of its own, and brings back what came.
//!
//! What changes something leaves on the engine's own thread, so that nobody has to be woken for it.
//! What only asks travels beside it, for its answers may be long.
//!
//! What may never enter here: judging answers, waiting for the budget, and sending again. The session
//! decides all of it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use windvane_admin::metrics::table;
use windvane_client::{Client, Departure};
use windvane_session::{Call, CallId};
use windvane_venue::route::Surface;
use windvane_venue::sign::Prepared;

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
    flying: BTreeMap<CallId, AbortHandle>,
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
        let mut client = way.client.clone();
        if let Some(since) = call.since {
            let since = self.clock.moment(since);
            client = client.telling(Departure::new(move || {
                let latency = since.elapsed().as_secs_f64();
                table::ORDER_LATENCY.of([]).record(latency);
            }));
        }
        let (id, clock, mailbox) = (call.id, self.clock, self.mailbox.clone());
        let task = way.handle.spawn(async move {
            let late_ns = call
                .leave_by
                .map_or(0, |by| clock.now().0.saturating_sub(by.0));
            let came = if late_ns > 0 {
                Came::Late(Duration::from_nanos(late_ns.unsigned_abs()))
            } else {
                match client.exchange(call.route.surface, call.prepared).await {
                    Ok(answer) => Came::Answer(answer),
                    Err(failure) => Came::Failed(failure),
                }
            };
            mailbox.tell(Happened::Came(id, came)).await;
        });
        self.flying.insert(id, task.abort_handle());
    }

    /// A call came back.
    pub fn came(&mut self, id: CallId) {
        self.flying.remove(&id);
    }

    /// Nobody waits for this call any more: its connection is closed.
    pub fn abandon(&mut self, id: CallId) {
        if let Some(task) = self.flying.remove(&id) {
            task.abort();
        }
    }

    /// Puts a request together with its address and forgets it: an order is rare, and what it needs on
    /// its way would have left the processor's caches until the next one.
    pub fn rehearse(&self, surface: Surface, prepared: Prepared) {
        drop(std::hint::black_box(
            self.own.client.ready(surface, prepared),
        ));
    }
}
