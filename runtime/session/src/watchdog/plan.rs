//! Which orders a watchdog protects.

use serde::{Deserialize, Serialize};
use windvane_model::{ClientOrderId, planted};

/// The orders that a watchdog protects. The plan is an argument of its process, so it must not
/// contain secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchdogPlan {
    /// Ids of the strategies of the run.
    pub strategies: Vec<String>,
    /// Spot symbols that they may trade.
    pub symbols: Vec<String>,
    /// The run's epoch. Orders of a later epoch belong to a later run, which has its own watchdog.
    pub epoch: u64,
    /// The watchdog acts after this time without a heartbeat, in milliseconds.
    pub countdown_ms: u64,
    /// A request of the run cannot arrive later than this after it was sent, in milliseconds.
    pub absence_ms: u64,
    /// Orders may already rest, so the countdown begins at once and not with the first heartbeat.
    pub orders_may_rest: bool,
}

impl WatchdogPlan {
    /// Whether an order belongs to the run or to a run before it, by its client order id
    /// (`docs/promises.md#1-order-ids`).
    pub fn is_own(&self, client_order_id: &str) -> bool {
        let id = ClientOrderId::new(client_order_id).ok();
        id.as_ref()
            .and_then(ClientOrderId::parse_own)
            .is_some_and(|(strategy, epoch, _)| {
                let is_later = epoch > self.epoch && !planted!(WatchdogTakesLaterOrders);
                !is_later && self.strategies.iter().any(|own| own == strategy)
            })
    }
}
