//! Indicators in integer arithmetic: the same result on every machine.
//!
//! Inputs are mantissas (of prices, of anything) up to 2^46 in size; larger ones saturate. Results
//! are [`Fixed`]: the input's unit with 16 binary places. Rounding is documented with each.

mod ema;
mod fixed;
mod sma;
mod window;

pub use ema::Ema;
pub use fixed::Fixed;
pub use sma::Sma;
use window::Window;
