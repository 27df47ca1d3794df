//! `report.html`: one self-contained page about a run, which works offline. It loads no script,
//! style or network address, and all text from outside is escaped.

mod charts;
mod data;
mod page;
mod series;
mod tables;

pub use charts::Charts;
pub use page::render;

#[cfg(test)]
mod tests;
