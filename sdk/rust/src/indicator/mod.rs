//! Indicators in integer arithmetic, with the same result on every machine.
//!
//! Inputs are mantissas of prices or other numbers, up to 2^44 in size. Larger ones saturate.
//! Results are [`Fixed`]: the input's unit with 16 binary places. Each indicator documents its
//! rounding. Each update takes constant time, amortised for [`Extremes`]. Memory is allocated once,
//! in `new`.

mod atr;
mod deviation;
mod ema;
mod extremes;
mod fixed;
mod rsi;
mod sma;
mod vwap;
mod wilder;
mod window;

pub use atr::Atr;
pub use deviation::{Bands, Bollinger, StdDev};
pub use ema::Ema;
pub use extremes::Extremes;
pub use fixed::Fixed;
pub use rsi::Rsi;
pub use sma::Sma;
pub use vwap::{RollingVwap, Vwap};
pub use wilder::Wilder;
use window::Window;
