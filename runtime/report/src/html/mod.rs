//! `report.html`: one self-contained page about a run that opens offline. No script or style of
//! others, no address of the network, and every text that comes from outside is escaped.

mod charts;
mod data;
mod page;
mod series;
mod tables;

pub use charts::Charts;
pub use page::render;

#[cfg(test)]
mod tests;
