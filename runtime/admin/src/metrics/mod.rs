//! The metrics of a running instance: every one of them is a line of [`table`], and can be written
//! through that line alone, so that none is without a name, a unit and a meaning.
//!
//! Figures are for people and alarms: floating point, and never read back. What `Published`
//! already says is taken from there when somebody reads `/metrics`.

mod family;
mod page;
mod process;
pub mod table;

use std::sync::Arc;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::beat::Beat;
use crate::view::{Published, Scope, State, Strategy};

pub use ::metrics::{Counter, Histogram};
pub use family::{Counters, Family, Gauges, Kind, Line, Summaries};
pub use page::page;

/// What summaries show of the last minute.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 1.0];

/// The recorder, and the text of `/metrics`.
#[derive(Clone)]
pub struct Metrics {
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
}

/// Metrics that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metrics of this process are installed already; install them once, at the start")]
pub struct AlreadyInstalled;

impl Metrics {
    /// Makes this the recorder of the process: every line of [`table`] writes here from now on.
    /// Handles that were taken from a line before stay without effect.
    pub fn install() -> Result<Self, AlreadyInstalled> {
        let metrics = Self::detached();
        let recorder = Arc::clone(&metrics.recorder);
        metrics::set_global_recorder(recorder).map_err(|_| AlreadyInstalled)?;
        Ok(metrics)
    }

    /// A recorder that only [`Self::within`] writes to.
    pub fn detached() -> Self {
        let builder = PrometheusBuilder::new();
        // The list is neither empty nor out of range, which is all that could be refused.
        let builder = builder
            .set_quantiles(&QUANTILES)
            .unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = Arc::new(builder.build_recorder());
        let handle = recorder.handle();
        let metrics = Self { recorder, handle };
        metrics.within(|| table::LINES.iter().for_each(Line::describe));
        metrics
    }

    /// Runs `write` so that lines of the table write here, whatever the process's recorder is.
    pub fn within<T>(&self, write: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(&*self.recorder, write)
    }

    /// Moves samples of summaries out of their buffers, which grow without it; the server does it
    /// every second. Seldom would not do: of the samples that come at once after a minute without
    /// any, the exporter's quantiles take only the newest block of 64 (sum and count take all).
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// The text of `/metrics`, in the format of Prometheus.
    pub fn text(&self, published: &Published, beat: &Beat) -> String {
        self.within(|| {
            show_status(published, beat);
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

fn show_status(published: &Published, beat: &Beat) {
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
    table::DOUBTS.of([]).set(status.doubts.len() as f64);
    show_trading(published);
    table::LOOP_AGE.of([]).set(beat.age().as_secs_f64());
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

/// An asset is listed only while it is short: its gauges stay, and go back to 0. Nothing says that orders of
/// unknown outcome are settled, so that a strategy has no gauge.
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

/// An amount that is not known is shown as no number rather than as an old one.
fn set_amount(gauge: &Gauges<1>, strategy: [&str; 1], amount: Option<&str>) {
    let known = amount.and_then(|amount| amount.parse().ok());
    gauge.of(strategy).set(known.unwrap_or(f64::NAN));
}

#[cfg(test)]
mod tests;
