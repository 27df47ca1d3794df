//! Instrument names in configuration files and messages.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use windvane_model::Surface;

/// An instrument of one surface: `spot:SYMBOL` or `futures:SYMBOL`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstrumentName {
    /// Surface.
    pub surface: Surface,
    /// The venue's symbol.
    pub symbol: String,
}

impl InstrumentName {
    /// Parses `spot:SYMBOL` or `futures:SYMBOL`.
    pub fn parse(text: &str) -> Option<Self> {
        let (surface, symbol) = text.split_once(':')?;
        let allowed = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        let valid = (1..=32).contains(&symbol.len()) && symbol.bytes().all(allowed);
        valid.then_some(Self {
            surface: Surface::from_text(surface)?,
            symbol: symbol.to_owned(),
        })
    }
}

impl fmt::Display for InstrumentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.surface, self.symbol)
    }
}

impl<'de> Deserialize<'de> for InstrumentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).ok_or_else(|| {
            D::Error::custom("must be spot:SYMBOL or futures:SYMBOL, such as futures:BTCUSDT")
        })
    }
}

/// The surfaces of these instruments.
pub fn surfaces(names: &[InstrumentName]) -> Vec<Surface> {
    let all = Surface::ALL.iter().copied();
    all.filter(|surface| names.iter().any(|name| name.surface == *surface))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;

    #[test]
    fn an_instrument_name_contains_its_surface() {
        let name = InstrumentName::parse("futures:BTCUSDT").unwrap();
        assert_eq!(name.to_string(), "futures:BTCUSDT");
        for bad in [
            "BTCUSDT",
            "future:BTCUSDT",
            "spot:btcusdt",
            "spot:",
            "spot:BTC-USDT",
        ] {
            assert_eq!(InstrumentName::parse(bad), None, "{bad}");
        }
    }
}
