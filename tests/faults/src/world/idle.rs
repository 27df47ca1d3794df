//! A paused run whose account still loses money. Others trade on a symbol that is not configured,
//! and funding is paid there, often while the process is down. There is no own fill and no price of
//! an own position, so the loss must be counted from the account alone.

use rust_decimal::Decimal;
use serde_json::json;
use windvane_model::input::Command;

use super::elsewhere::SYMBOL;
use super::incidents::Incident;
use super::{Event, MS, S, World};
use crate::disk::Damage;
use crate::fault_plan::Kind;

/// Time from the first start to the pause of the operator.
const PAUSE_NS: i64 = 3 * S;

impl World {
    /// Plans the pause, if the seed has it, and its first event.
    pub(super) fn plan_idle(&mut self) {
        if self.fault_plan.faults.idle_s > 0 {
            let at_ns = self.now_ns + PAUSE_NS;
            self.queue.put(at_ns, Event::Incident(Incident::Idle));
        }
    }

    /// The operator pauses again in case somebody resumed, and the account loses money.
    pub(super) fn idle(&mut self) {
        self.count(Kind::Idle);
        self.command(Command::Pause, None);
        let wait_ns = self.idle.wait_ns(self.fault_plan.faults.idle_s);
        self.queue
            .put(self.now_ns + wait_ns, Event::Incident(Incident::Idle));
        let held = self.held_elsewhere();
        if held == 0 || self.idle.chance(300_000) {
            let side = if self.idle.chance(500_000) {
                "BUY"
            } else {
                "SELL"
            };
            let qty = self.idle.between(4, 10) * 1_000;
            self.act(
                &json!({"act": "place", "symbol": SYMBOL, "side": side, "type": "MARKET",
                "quantity": qty.to_string()}),
            );
            return;
        }
        if self.process.is_some() && self.idle.chance(700_000) {
            self.count(Kind::Crash);
            self.kill(Damage::None);
        }
        let at_ns = self.now_ns + self.idle.between(1, 50) * MS;
        self.queue
            .put(at_ns, Event::Incident(Incident::IdleFunding));
    }

    /// The account pays funding.
    pub(super) fn pay_funding_elsewhere(&mut self) {
        let rate = if self.held_elsewhere() > 0 {
            "0.003"
        } else {
            "-0.003"
        };
        self.act(&json!({"act": "funding", "symbol": SYMBOL, "rate": rate, "account": 0}));
    }

    /// The sign of the account's net position on that symbol.
    fn held_elsewhere(&mut self) -> i64 {
        let truth = self.venue.truth(true, self.now_ns);
        let positions = truth["accounts"][0]["positions"].as_array();
        let positions = positions.into_iter().flatten();
        let held = positions.filter(|one| one["symbol"] == SYMBOL);
        let qty = held.filter_map(|one| one["qty"].as_str()?.parse::<Decimal>().ok());
        match qty.sum::<Decimal>() {
            none if none.is_zero() => 0,
            net if net.is_sign_negative() => -1,
            _ => 1,
        }
    }
}
