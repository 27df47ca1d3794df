//! The metrics of a running instance. Every metric is a line of [`table`] and is written only
//! through that line, so each has a name, a unit and a meaning.
//!
//! Values are floating point, for people and alarms, and are never read back. Values that
//! `Published` already contains are taken from it when `/metrics` is read.

mod family;
mod page;
mod process;
pub mod table;

use std::sync::Arc;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::heartbeat::Heartbeat;
use crate::view::{Published, Scope, State, Strategy};

pub use ::metrics::{Counter, Histogram};
pub use family::{Counters, Family, Gauges, Kind, Line, Summaries};
pub use page::page;

/// The quantiles of a summary.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 1.0];

/// The recorder and the text of `/metrics`.
#[derive(Clone)]
pub struct Metrics {
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
}

/// The recorder cannot be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metrics of this process are already installed; install them only once, at the start")]
pub struct AlreadyInstalled;

impl Metrics {
    /// Makes this the recorder of the process: every line of [`table`] writes here from now on.
    /// Handles that were taken earlier have no effect.
    pub fn install() -> Result<Self, AlreadyInstalled> {
        let metrics = Self::detached();
        let recorder = Arc::clone(&metrics.recorder);
        metrics::set_global_recorder(recorder).map_err(|_| AlreadyInstalled)?;
        Ok(metrics)
    }

    /// A recorder that only receives writes inside [`Self::within`].
    pub fn detached() -> Self {
        let builder = PrometheusBuilder::new();
        // Only an empty list or a quantile out of range could be refused.
        let builder = builder
            .set_quantiles(&QUANTILES)
            .unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = Arc::new(builder.build_recorder());
        let handle = recorder.handle();
        let metrics = Self { recorder, handle };
        metrics.within(|| table::LINES.iter().for_each(Line::describe));
        metrics
    }

    /// Runs `write` so that lines of the table write to this recorder.
    pub fn within<T>(&self, write: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(&*self.recorder, write)
    }

    /// Moves samples of summaries out of their buffers, which would grow otherwise. The server
    /// calls it every second. Less often is not enough: after a minute without samples, the
    /// exporter's quantiles use only the newest block of 64 of the samples that arrive together.
    /// Sum and count use all of them.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// The text of `/metrics`, in the format of Prometheus.
    pub fn text(&self, published: &Published, heartbeat: &Heartbeat) -> String {
        self.within(|| {
            show_status(published, heartbeat);
            published.strategies.iter().for_each(show_strategy);
        });
        self.handle.render()
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

fn show_status(published: &Published, heartbeat: &Heartbeat) {
    let status = &published.status;
    for state in State::ALL {
        let is = f64::from(u8::from(state == status.state));
        table::STATE.of([state.as_str()]).set(is);
    }
    table::INFO
        .of([&status.version, status.mode.as_str()])
        .set(1.0);
    let since_seconds = status.since_ms as f64 / 1e3;
    table::STATE_SINCE.of([]).set(since_seconds);
    table::UPTIME.of([]).set(status.uptime_ms as f64 / 1e3);
    let reasons = status.degraded_reasons.len() as f64;
    table::DEGRADED_REASONS.of([]).set(reasons);
    table::DOUBTS.of([]).set(reasons);
    show_trading(published);
    table::LOOP_AGE.of([]).set(heartbeat.age().as_secs_f64());
    let behind = &status.journal;
    let behind_records = behind.written.saturating_sub(behind.durable);
    table::JOURNAL_BEHIND_RECORDS
        .of([])
        .set(behind_records as f64);
    table::JOURNAL_BEHIND_SECONDS
        .of([])
        .set(behind.behind_ms as f64 / 1e3);
    if let Some(bytes) = process::resident_bytes() {
        table::MEMORY.of([]).set(bytes as f64);
    }
}

/// Shows the trading status. An asset is listed only while its balance is too small, so its gauges
/// stay and return to 0. Strategies get no gauge, because no event reports the end of their unknown
/// orders.
fn show_trading(published: &Published) {
    let rows = published.status.trading.iter();
    for row in rows.filter(|row| row.scope != Scope::Strategy) {
        let what = [row.what.as_str()];
        let since_ms = row.since_ms.unwrap_or(0);
        let blocked = f64::from(u8::from(!row.open));
        table::TRADING_BLOCKED.of(what).set(blocked);
        table::TRADING_BLOCKED_SINCE
            .of(what)
            .set(since_ms as f64 / 1e3);
    }
}

fn show_strategy(strategy: &Strategy) {
    let id = [strategy.id.as_str()];
    let quarantined = strategy.state == crate::view::StrategyState::Quarantined;
    table::QUARANTINED
        .of(id)
        .set(f64::from(u8::from(quarantined)));
    table::OPEN_ORDERS.of(id).set(strategy.open_orders as f64);
    set_amount(&table::REALIZED_PNL, id, Some(&strategy.realized_pnl));
    set_amount(
        &table::UNREALIZED_PNL,
        id,
        strategy.unrealized_pnl.as_deref(),
    );
    set_amount(&table::FEES, id, Some(&strategy.fees));
    set_amount(&table::FUNDING, id, Some(&strategy.funding));
}

/// Sets an amount. An unknown amount is NaN instead of an old value.
fn set_amount(gauge: &Gauges<1>, strategy: [&str; 1], amount: Option<&str>) {
    let known = amount.and_then(|amount| amount.parse().ok());
    gauge.of(strategy).set(known.unwrap_or(f64::NAN));
}

#[cfg(test)]
mod tests;
