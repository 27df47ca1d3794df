//! Which rule an intent breaks, with the values and the venue's code for it.

use crate::decimal::Decimal;

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The rule.
    pub rule: Rule,
    /// The value that breaks it.
    pub value: Decimal,
    /// The bound that it breaks.
    pub limit: Decimal,
}

/// A rule. The numbers are part of the strategy contract and never change their meaning:
/// `submit` answers minus this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Rule {
    /// The instrument is unknown or not granted to the strategy.
    UnknownInstrument = 1,
}
