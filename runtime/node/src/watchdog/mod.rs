//! The watchdog process of spot orders. Spot has no `countdownCancelAll`, so a run starts this
//! program a second time beside itself: that process cancels the run's own spot orders once the run
//! dies or its signs of health stay away, and ends (promise 4).
//!
//! They talk over the pipes of stdin and stdout, one JSON word a line. What is watched stands in the
//! arguments; keys do not: the process reads the configuration itself.
//!
//! What may never enter here: orders that the run did not place, and placing any.

mod aside;
mod keeper;
mod process;
mod sweep;

pub use aside::Aside;
pub use keeper::{Begin, Keeper};
pub use process::{WatchdogError, watch};

use serde::{Deserialize, Serialize};
use windvane_engine::ClientOrderId;

/// What a watchdog process watches. No secret is in it: it stands in the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Ids of the strategies whose orders are the run's.
    pub strategies: Vec<String>,
    /// Spot symbols that they may trade.
    pub symbols: Vec<String>,
    /// The run's epoch: orders of a later one are a later run's, which has a watchdog of its own.
    pub epoch: u64,
    /// It acts after so long without a sign of health, milliseconds.
    pub countdown_ms: u64,
    /// A request of the run cannot arrive later than so long after it was sent, milliseconds.
    pub absence_ms: u64,
    /// Orders may rest already: the countdown begins at once, not with the first sign.
    pub orders_may_rest: bool,
}

impl Plan {
    /// Whether an order is the run's, or of a run before it, by its client order id (promise 1).
    fn is_own(&self, client_order_id: &str) -> bool {
        let id = ClientOrderId::new(client_order_id).ok();
        id.as_ref()
            .and_then(ClientOrderId::parse_own)
            .is_some_and(|(strategy, epoch, _)| {
                epoch <= self.epoch && self.strategies.iter().any(|own| own == strategy)
            })
    }
}

/// What the run says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// It is healthy.
    Beat {
        /// One more than the last.
        number: u64,
        /// The venue wants nothing at all to be sent for so long, milliseconds.
        stopped_ms: u64,
    },
    /// It ends in order: nothing is to be cancelled.
    End,
}

/// What the watchdog process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// The venue took its key, and its clock was read.
    Armed,
    /// It heard a sign of health.
    Heard {
        /// Its number.
        number: u64,
    },
    /// It cancels.
    Acting,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_orders_of_this_run_and_of_runs_before_it_are_own() {
        let plan = Plan {
            strategies: vec!["mm".to_owned()],
            symbols: Vec::new(),
            epoch: 40,
            countdown_ms: 30_000,
            absence_ms: 10_000,
            orders_may_rest: false,
        };
        for own in ["mm.14.1", "mm.1.zz"] {
            assert!(plan.is_own(own), "{own}");
        }
        for other in [
            "mm.15.1",
            "mm2.14.1",
            "mm.14",
            "web_1",
            "",
            "mm.14.1.1",
            "x.14.1",
        ] {
            assert!(!plan.is_own(other), "{other}");
        }
    }
}
