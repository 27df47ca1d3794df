//! Orderly stops and restarts by the operator, and reloads with other parameters and modules. Also
//! a disk that accepts nothing for so long that the journal has no room left, and changes of the
//! account's modes.

use std::sync::Arc;

use serde_json::{Value, json};

use windvane_config::Leave;

use super::incidents::Incident;
use super::{Event, MS, S, World};
use crate::fault_plan::Kind;
use crate::process::In;
use crate::tally;
use crate::witness::{StrategyTerms, WitnessEvent};

/// Time from the moment when the disk accepts data again until the operator resumes.
const SETTLED_MS: i64 = 60_000;
/// Shortest and longest time for which such a disk accepts nothing, milliseconds.
const FULL_MS: (i64, i64) = (20_000, 180_000);

impl World {
    /// The operator stops the run, and sometimes sends a second stop.
    pub(super) fn stop_in_order(&mut self) {
        let loses_patience = self.stops.chance(100_000);
        let after_ms = self.stops.between(0, 9_000);
        self.record_fault("the operator: stop".to_owned());
        self.count(Kind::Stop);
        self.deliver(self.life, In::Stop);
        if loses_patience {
            let at_ns = self.now_ns + after_ms * MS;
            self.queue.put(at_ns, Event::Deliver(self.life, In::Stop));
        }
    }

    /// The process ended after a stop; the next one starts after a while.
    pub(super) fn process_stopped(&mut self, how: &str) {
        self.log.count(if how == "stopped" {
            tally::STOPPED
        } else {
            tally::HURRIED
        });
        self.carry_frames();
        let truth = self.venue.truth(false, self.now_ns);
        self.see(WitnessEvent::Stopped {
            process: self.life,
            how: how.to_owned(),
            truth,
        });
        if self.disk.failed {
            // A failed disk loses the blocks that it was given.
            self.end_process(Some(crate::disk::Damage::None));
        } else {
            self.end_process(None);
        }
        let mut away_ms = self.stops.between(50, 20_000);
        if !self.faults_on {
            // The stop began before the faults ended.
            self.faults_ended_ns = self.faults_ended_ns.max(self.now_ns);
            away_ms = 50;
        }
        self.queue.put(self.now_ns + away_ms * MS, Event::Start);
    }

    /// Most reloads find other parameters, limits, builds of modules, or another `on_stop`.
    pub(super) fn change_setup(&mut self) {
        let changes = self.reloads.chance(800_000);
        let mut next = (*self.setup).clone();
        let on_stop = [Leave::Cancel, Leave::Keep, Leave::Flatten];
        let on_stop = self.reloads.pick(&on_stop).copied();
        if let Some(on_stop) = on_stop.filter(|_| changes && self.reloads.chance(300_000)) {
            next.config.run.on_stop = on_stop;
        }
        for (place, strategy) in next.config.strategies.iter_mut().enumerate() {
            let ticks = self.reloads.between(1, 8);
            let has_build = self.reloads.chance(300_000);
            let has_params = self.reloads.chance(500_000);
            let has_limit = self.reloads.chance(300_000);
            let most = u32::try_from(self.reloads.between(2, 20)).ok();
            if !changes {
                continue;
            }
            if has_limit {
                strategy.limits.max_open_orders = most;
            }
            if has_build {
                next.builds[place] = next.builds[place].wrapping_add(1);
            }
            for key in ["half_spread_ticks", "distance_ticks"] {
                if let Some(value) = strategy.params.get_mut(key).filter(|_| has_params) {
                    *value = ticks.into();
                }
            }
        }
        if changes {
            self.log.count(tally::CHANGED);
            self.setup = Arc::new(next);
        }
    }

    /// The disk accepts nothing for a long time.
    pub(super) fn fill_disk(&mut self) {
        let for_ms = self.full.between(FULL_MS.0, FULL_MS.1);
        self.count(Kind::Full);
        self.record_fault(format!(
            "the disk accepts nothing for {} s",
            for_ms * MS / S
        ));
        self.disk_hangs_until = self.now_ns + for_ms * MS;
        self.trouble_kill_switches(true);
        // In some cases the operator halts the run because of that, and the process is killed
        // before the disk has stored the halt.
        let halts = self.full.chance(400_000);
        let halt_ms = self.full.between(500, 5_000);
        let kill_ms = halt_ms + self.full.between(100, 3_000);
        if halts {
            for (after_ms, incident) in [
                (halt_ms, Incident::HaltNow),
                (kill_ms, Incident::KillNow),
                (for_ms + SETTLED_MS, Incident::GoOn(None)),
            ] {
                let at_ns = self.now_ns + after_ms * MS;
                self.queue.put(at_ns, Event::Incident(incident));
            }
        }
    }

    /// Somebody changes a mode of the account; the venue refuses another position mode while
    /// something is open.
    pub(super) fn change_modes(&mut self) {
        let is_multi = self.modes.chance(600_000);
        let for_ms = self.modes.between(2_000, 60_000);
        let act = if is_multi {
            json!({"act": "multi_assets", "on": true})
        } else {
            json!({"act": "position_mode", "hedge": !self.fault_plan.terms.hedge})
        };
        self.count(Kind::Modes);
        if self.act(&act) {
            self.log.count(tally::MODE_CHANGED);
            self.modes_on.0 |= is_multi;
            self.modes_on.1 |= !is_multi;
        }
        let at_ns = self.now_ns + for_ms * MS;
        self.queue.put(at_ns, Event::Incident(Incident::ModesBack));
    }

    /// Sets the account of a life in hedge mode before the first start.
    pub(super) fn begin_hedge_mode(&mut self) {
        let on_both = |one: &StrategyTerms| {
            let has = |surface| one.instruments.iter().any(|name| name.starts_with(surface));
            has("spot:") && has("futures:")
        };
        if self.fault_plan.terms.strategies.iter().any(on_both) {
            self.count(Kind::Surfaces);
        }
        if self.fault_plan.terms.hedge {
            self.count(Kind::Hedge);
            self.act(&json!({"act": "position_mode", "hedge": true}));
        }
    }

    /// In hedge mode an act of others on a position names its position side. Most of these orders
    /// open a position, some close one.
    pub(super) fn sided(&mut self, act: &Value) -> Value {
        let mut act = act.clone();
        let word = act["act"].as_str().unwrap_or_default();
        let is_of_spot = act["surface"] == "spot";
        if !self.fault_plan.terms.hedge || is_of_spot || !matches!(word, "place" | "adl") {
            return act;
        }
        let buys = act["side"] == "BUY";
        let goes_long = match word {
            "place" => buys != self.sides.chance(300_000),
            _ => self.sides.chance(500_000),
        };
        act["position_side"] = json!(if goes_long { "LONG" } else { "SHORT" });
        act
    }

    /// Somebody changes the modes back. The venue accepts that only while nothing is open, so they
    /// first cancel and close everything.
    pub(super) fn restore_modes(&mut self) {
        let (is_multi, is_other) = self.modes_on;
        if is_multi || is_other {
            self.clear_account();
        }
        if is_multi && self.act(&json!({"act": "multi_assets", "on": false})) {
            self.modes_on.0 = false;
        }
        let hedge = self.fault_plan.terms.hedge;
        if is_other && self.act(&json!({"act": "position_mode", "hedge": hedge})) {
            self.modes_on.1 = false;
        }
    }

    /// A person cancels all futures orders and closes all positions.
    fn clear_account(&mut self) {
        let truth = self.venue.truth(true, self.now_ns);
        let rows = |name: &str| {
            truth["accounts"][0][name]
                .as_array()
                .cloned()
                .unwrap_or_default()
        };
        for order in rows("orders") {
            if order["surface"] == "futures" {
                self.act(&json!({"act": "cancel", "order_id": order["order_id"]}));
            }
        }
        for position in rows("positions") {
            self.act(&json!({"act": "close", "symbol": position["symbol"]}));
        }
    }
}
