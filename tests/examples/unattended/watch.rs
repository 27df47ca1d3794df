//! Collects the states, metrics and memory of a run while it goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use windvane_tests::admin::Admin;

/// Counters that grow while a process lives.
const COUNTERS: &[&str] = &[
    "windvane_market_events_total",
    "windvane_orders_total",
    "windvane_fills_total",
    "windvane_fills_recovered_total",
    "windvane_heartbeats_total",
    "windvane_adjustments_total",
    "windvane_reconciliations_total",
    "windvane_stream_gaps_total",
    "windvane_requests_total",
    "windvane_bans_total",
    "windvane_quarantines_total",
    "windvane_state_moves_total",
    "windvane_order_latency_seconds_count",
];

/// The collected values.
#[derive(Default)]
pub struct Watch {
    pub faults: u32,
    pub kills: u32,
    states: BTreeMap<String, u32>,
    /// Counters of processes that ended, and of the last look at the running process.
    ended: BTreeMap<String, f64>,
    current: BTreeMap<String, f64>,
    /// Resident memory in kilobytes, every half minute.
    memory: Vec<u64>,
    last_memory: Option<Instant>,
    latency: BTreeMap<String, Vec<f64>>,
    /// For each ban, the highest number of requests that met it.
    ban_hits: BTreeMap<u64, u64>,
}

impl Watch {
    /// Collects the values of the process once.
    pub fn look(&mut self, admin: &Admin, pid: u32) {
        let status = admin.show("/api/status");
        let state = status.as_ref().and_then(|status| status["state"].as_str());
        let state = state.unwrap_or("silent").to_owned();
        *self.states.entry(state).or_default() += 1;
        for sample in admin.metrics() {
            if COUNTERS.iter().any(|name| sample.name.starts_with(name)) {
                self.current.insert(sample.name, sample.value);
            } else if sample.name.contains("latency_seconds{")
                || sample.name.contains("durable_seconds{")
            {
                self.latency
                    .entry(sample.name)
                    .or_default()
                    .push(sample.value);
            }
        }
        let due = self
            .last_memory
            .is_none_or(|at| at.elapsed() >= Duration::from_secs(30));
        if due && let Some(memory) = resident(pid) {
            self.memory.push(memory);
            self.last_memory = Some(Instant::now());
        }
    }

    /// Collects the hits of the switches that are on.
    pub fn look_at_bans(&mut self, faults: &Value) {
        for switch in faults["switches"].as_array().into_iter().flatten() {
            let hits = switch["hits"].as_u64().unwrap_or_default();
            if switch["switch"]["fault"] == "ban"
                && let Some(id) = switch["id"].as_u64()
            {
                let most = self.ban_hits.entry(id).or_default();
                *most = hits.max(*most);
            }
        }
    }

    /// Keeps the counters of a process that ends.
    pub fn process_ends(&mut self) {
        for (name, value) in std::mem::take(&mut self.current) {
            *self.ended.entry(name).or_default() += value;
        }
    }

    /// The sum of all counters whose name has this prefix and contains these words.
    pub fn count(&self, name: &str, arguments: &str) -> f64 {
        let all = self.ended.iter().chain(&self.current);
        let named = all.filter(|(key, _)| key.starts_with(name) && key.contains(arguments));
        named.map(|(_, value)| value).sum()
    }

    /// Prints the collected values.
    pub fn report(&self) {
        println!(
            "{} faults, {} kills; looks by state: {:?}",
            self.faults, self.kills, self.states
        );
        let mut all = self.ended.clone();
        for (name, value) in &self.current {
            *all.entry(name.clone()).or_default() += value;
        }
        for (name, value) in all {
            println!("  {name} {value}");
        }
        for (name, values) in &self.latency {
            let mut sorted: Vec<_> = values.iter().copied().filter(|one| *one > 0.0).collect();
            sorted.sort_by(f64::total_cmp);
            if let Some(middle) = sorted.get(sorted.len() / 2) {
                let last = sorted.last().copied().unwrap_or_default();
                println!("  {name}: median {middle:.6}, maximum {last:.6}");
            }
        }
        println!(
            "  requests that a ban met: {:?}",
            self.ban_hits.values().max()
        );
        println!("  resident memory every 30 s, KB: {:?}", self.memory);
    }

    /// Memory in kilobytes after the first fifth of the run, and at its end.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let early = self.memory.get(self.memory.len() / 5)?;
        Some((*early, *self.memory.last()?))
    }
}

/// Resident memory of a process in kilobytes.
fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
