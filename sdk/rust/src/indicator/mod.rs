//! Indicators in integer arithmetic: the same result on every machine.
//!
//! Inputs are mantissas (of prices, of anything) up to 2^44 in size; larger ones saturate. Results
//! are [`Fixed`]: the input's unit with 16 binary places. Rounding is documented with each. Every
//! update takes constant time, amortised for [`Extremes`]; memory is taken once, in `new`.

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
