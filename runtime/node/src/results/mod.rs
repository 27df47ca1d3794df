//! The result files of a run: `fills.csv`, `orders.csv`, `equity.csv`, `summary.json` and
//! `report.html`, which [`crate::report`] draws. This module only writes finished figures. It makes
//! no decision about an order, and money is never a floating-point number.

mod curve;
mod histogram;
mod rows;
mod summary;
pub mod text;
pub mod utc;
mod writer;

pub use curve::{DRAWDOWN_SCALE, EquityCurve};
pub use histogram::{Histogram, Quantiles};
pub use rows::{EQUITY_HEADER, EquityRow, FILLS_HEADER, FillRow, ORDERS_HEADER, OrderRow};
pub use summary::{
    DataSummary, EngineVersions, InstrumentSummary, LatencySummary, QuarantineSummary,
    QueueSummary, RejectionCount, RulesSource, StrategySummary, Summary, TimeShare,
};
pub use writer::{ResultError, ResultWriter};

/// The bytes as hexadecimal text, two digits per byte.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(digit).collect()
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
