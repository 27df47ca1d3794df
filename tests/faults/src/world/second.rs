//! Another instance of the runtime on the account, with its own data folder and the same
//! strategies. Its order ids look like ours, but no process of our folder used them. It places an
//! order every few seconds, and cancels its orders when its operator stops it.

use serde_json::json;
use windvane_model::{ClientOrderId, OrderSeq};

use super::incidents::Incident;
use super::{BORN_NS, Event, S, World};
use crate::fault_plan::Kind;
use crate::random::Random;

/// Its clock was behind ours when it started, so that no process of ours has its epoch.
const STARTED_BEFORE_S: u64 = 100_000;
/// Time from the end of the other instance until the operator resumes our process. By then the
/// venue has reported everything that the other instance did.
const SETTLED_NS: i64 = 15 * S;

/// The other instance, as the world knows it.
#[derive(Debug)]
pub struct Second {
    chance: Random,
    /// Number of its starts.
    starts: u64,
    /// Number of orders since its start.
    placed: u64,
    /// Its open orders: symbol and id.
    open: Vec<(String, String)>,
    runs: bool,
}

impl Second {
    /// A world without another instance.
    pub fn new(seed: u64) -> Self {
        Self {
            chance: Random::of(seed, "second instance"),
            starts: 0,
            placed: 0,
            open: Vec::new(),
            runs: false,
        }
    }

    /// Its random sequence.
    pub const fn chance(&mut self) -> &mut Random {
        &mut self.chance
    }
}

impl World {
    pub(super) fn second_begins(&mut self) {
        if self.second.runs {
            return;
        }
        self.second.runs = true;
        self.second.starts += 1;
        self.second.placed = 0;
        self.count(Kind::Second);
        self.second_places();
    }

    /// It places another order, or its operator stops it.
    pub(super) fn second_acts(&mut self) {
        if !self.second.runs {
            return;
        }
        if self.second.chance.chance(200_000) {
            self.second_stops();
        } else {
            self.second_places();
        }
    }

    /// Its operator stops it, and later resumes our process.
    fn second_stops(&mut self) {
        self.second_ends();
        let at_ns = self.now_ns + SETTLED_NS;
        self.queue.put(at_ns, Event::Incident(Incident::GoOn(None)));
    }

    fn second_places(&mut self) {
        let Some(strategy) = self.setup.config.strategies.first() else {
            return;
        };
        let second = &mut self.second;
        second.placed += 1;
        let born_s = (BORN_NS / S).unsigned_abs();
        let epoch = born_s - STARTED_BEFORE_S + second.starts;
        let id = ClientOrderId::own(&strategy.id, epoch, OrderSeq(second.placed));
        let id = id.as_str().to_owned();
        let first = self.setup.names.first();
        let symbol = first.map_or_else(String::new, |name| name.symbol.clone());
        second.open.push((symbol.clone(), id.clone()));
        let next_ns = self.now_ns + second.chance.between(S, 8 * S);
        let placed = self.act(&json!({
            "act": "place", "symbol": symbol, "side": "BUY", "price": "58000",
            "quantity": "0.001", "client_order_id": id,
        }));
        if !placed {
            // Without new orders nothing shows that it is alive, so its operator stops it.
            self.second.open.pop();
            return self.second_stops();
        }
        self.queue
            .put(next_ns, Event::Incident(Incident::SecondActs));
    }

    /// It cancels its orders and ends.
    pub(super) fn second_ends(&mut self) {
        self.second.runs = false;
        for (symbol, id) in std::mem::take(&mut self.second.open) {
            self.act(&json!({"act": "cancel", "symbol": symbol, "client_order_id": id}));
        }
    }
}
