//! Counts requests and refusals, and lists the accepted orders by client order id. A checker
//! compares these with the client's own records. All lists are bounded.

use std::collections::{BTreeMap, VecDeque};

use windvane_model::protocol::OrderUpdate;
use windvane_model::{ClientOrderId, ExecutionType, InstrumentId, Time, VenueOrderId};
use windvane_sim::StreamEvent;

use crate::request::Answer;

/// Maximum number of listed orders per account. More orders are only counted.
const ACCEPTED_MAX: usize = 10_000;

/// One accepted order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) order_id: VenueOrderId,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) instrument: InstrumentId,
    pub(crate) time: Time,
}

/// The accepted orders of one account.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The newest orders, oldest first.
    pub(crate) orders: VecDeque<Accepted>,
    /// Number of all orders.
    pub(crate) total: u64,
    /// How often each listed client order id was accepted.
    times: BTreeMap<ClientOrderId, u32>,
}

impl Ledger {
    fn accept(&mut self, order: Accepted) {
        self.total += 1;
        self.orders.push_back(order);
        *self.times.entry(order.client_order_id).or_default() += 1;
        if self.orders.len() > ACCEPTED_MAX
            && let Some(oldest) = self.orders.pop_front()
            && let Some(times) = self.times.get_mut(&oldest.client_order_id)
        {
            *times -= 1;
            if *times == 0 {
                self.times.remove(&oldest.client_order_id);
            }
        }
    }

    /// Client order ids that were accepted more than once, and how often.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = (&ClientOrderId, u32)> {
        let all = self.times.iter().map(|(id, times)| (id, *times));
        all.filter(|(_, times)| *times > 1)
    }
}

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Requests by the name of their route.
    pub(crate) routes: BTreeMap<&'static str, u64>,
    /// Responses by HTTP status, before any fault changes them.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Refusals by code.
    pub(crate) refusals: BTreeMap<i32, u64>,
    /// All user events, whether sent or not. Faults do not change this count.
    pub(crate) user_events: u64,
    pub(crate) accounts: BTreeMap<u16, Ledger>,
    /// Executions since the last read, if a reader asked for them.
    pub(crate) executions: Option<Vec<(u16, OrderUpdate)>>,
}

impl Counters {
    pub(crate) fn count(&mut self, route: &'static str) {
        *self.routes.entry(route).or_default() += 1;
    }

    pub(crate) fn answer(&mut self, answer: &Answer) {
        let status = answer
            .as_ref()
            .map_or_else(|refusal| refusal.status, |_| 200);
        *self.statuses.entry(status).or_default() += 1;
        if let Err(refusal) = answer {
            *self.refusals.entry(refusal.code).or_default() += 1;
        }
    }

    pub(crate) fn event(&mut self, account: u16, event: &StreamEvent) {
        self.user_events += 1;
        let StreamEvent::Order(order) = event else {
            return;
        };
        let update = &order.update;
        if let (Some(executions), Some(_)) = (&mut self.executions, update.fill) {
            executions.push((account, *update));
        }
        if update.execution == ExecutionType::New {
            let ledger = self.accounts.entry(account).or_default();
            ledger.accept(Accepted {
                order_id: update.order_id,
                client_order_id: update.client_order_id,
                instrument: update.instrument,
                time: update.transaction_time,
            });
        }
    }
}
