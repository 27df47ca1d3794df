//! The result files of a run: `fills.csv`, `orders.csv`, `equity.csv`, `summary.json` and
//! `report.html`, which [`crate::html`] draws.
//!
//! `backtest` and `live` use it to write results, `replay` and `cli` use it to show figures. It must
//! not contain a decision about an order, or money as a floating-point number: it only writes
//! finished figures.

mod curve;
pub mod format;
mod histogram;
pub mod html;
mod rows;
mod summary;
mod terminal;
pub mod text;
pub mod utc;
mod writer;

pub use curve::{DRAWDOWN_SCALE, EquityCurve};
pub use histogram::{Histogram, Quantiles};
pub use rows::{EQUITY_HEADER, EquityRow, FILLS_HEADER, FillRow, ORDERS_HEADER, OrderRow};
pub use summary::{
    DataSummary, EngineVersions, EventCounts, InstrumentSummary, LatencySummary, QuarantineSummary,
    QueueSummary, RejectionCount, RulesSource, StrategySummary, Summary, TimeShare,
};
pub use terminal::summary_text;
pub use writer::{ResultError, ResultWriter};

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
