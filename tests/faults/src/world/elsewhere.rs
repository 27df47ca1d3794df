//! Others trade on a symbol that no life has configured. The profit and loss of these positions
//! belong to the account. For a while they trade there three times a second, so that no two account
//! snapshots are equal.

use serde_json::json;

use super::incidents::Incident;
use super::{Event, MS, S, World};
use crate::disk::Damage;
use crate::fault_plan::Kind;

/// A futures symbol of the venue that no life has configured.
pub(super) const SYMBOL: &str = "DOGEUSDT";

impl World {
    /// Somebody trades on that symbol, closes the position, or funding is paid on it.
    pub(super) fn trade_elsewhere(&mut self) {
        let qty = self.elsewhere.between(4, 20) * 1_000;
        let act = match self.elsewhere.below(8) {
            0 => json!({"act": "close", "symbol": SYMBOL}),
            1 => json!({"act": "funding", "symbol": SYMBOL, "rate": "0.0004"}),
            place => {
                let side = if place % 2 == 0 { "BUY" } else { "SELL" };
                json!({"act": "place", "symbol": SYMBOL, "side": side, "type": "MARKET",
                    "quantity": qty.to_string()})
            }
        };
        self.count(Kind::Elsewhere);
        self.act(&act);
    }

    /// Others begin to trade frequently. In most cases the process is then killed, or the operator
    /// flattens.
    pub(super) fn begin_busy(&mut self) {
        let for_ms = self.busy.between(40_000, 90_000);
        let is_killed = self.busy.chance(600_000);
        let flatten_ms = self.busy.between(1_000, 12_000);
        let flattens = self.busy.chance(500_000);
        self.record_fault(format!("others trade three times a second for {for_ms} ms"));
        self.count(Kind::Busy);
        self.busy_until_ns = self.now_ns + for_ms * MS;
        self.queue
            .put(self.now_ns, Event::Incident(Incident::BusyTrade));
        if is_killed && self.process.is_some() {
            self.count(Kind::Crash);
            self.kill(Damage::None);
        }
        if flattens {
            let at_ns = self.now_ns + flatten_ms * MS;
            self.queue.put(at_ns, Event::Incident(Incident::Flatten));
            let at_ns = self.busy_until_ns + 10 * S;
            self.queue.put(at_ns, Event::Incident(Incident::GoOn(None)));
        }
    }

    /// Others buy or sell once.
    pub(super) fn trade_busily(&mut self) {
        if self.now_ns >= self.busy_until_ns {
            return;
        }
        let wait_ms = self.busy.between(200, 450);
        let at_ns = self.now_ns + wait_ms * MS;
        self.queue.put(at_ns, Event::Incident(Incident::BusyTrade));
        let qty = self.busy.between(1, 4) * 1_000;
        let side = if self.busy.chance(500_000) {
            "BUY"
        } else {
            "SELL"
        };
        self.act(
            &json!({"act": "place", "symbol": SYMBOL, "side": side, "type": "MARKET",
            "quantity": qty.to_string()}),
        );
    }
}
