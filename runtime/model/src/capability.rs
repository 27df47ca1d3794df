//! Capabilities: import interfaces of the strategy contract that are linked only if the
//! configuration grants them. The interface `fault` is not a capability, because every strategy has
//! it. An ambient capability must never be added here.

use serde::Deserialize;

/// One import interface of `sdk/wit/strategy.wit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Capability {
    /// Functions `submit`, `cancel` and `cancel-all`.
    Orders = 0,
    /// Own position and orders, and the account's balances.
    Account = 1,
    /// Book, last prices and instrument rules.
    Market = 2,
    /// Timers.
    Timers = 3,
    /// Log lines.
    Log = 4,
    /// Named series.
    Plot = 5,
}

impl Capability {
    /// Every capability, in the order of the contract.
    pub const ALL: [Self; 6] = [
        Self::Orders,
        Self::Account,
        Self::Market,
        Self::Timers,
        Self::Log,
        Self::Plot,
    ];

    /// The interface's name in the contract and in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Account => "account",
            Self::Market => "market",
            Self::Timers => "timers",
            Self::Log => "log",
            Self::Plot => "plot",
        }
    }

    /// The capability with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
