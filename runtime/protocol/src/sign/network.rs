//! The environments of the service, and the names of chains.

/// The environment of the service (docs/interface/conventions.md#surfaces).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// Production.
    #[default]
    Mainnet,
    /// The separate test environment.
    Testnet,
}

impl Network {
    /// Chain id in the domain of the v3 `Message`
    /// (docs/interface/conventions.md#signing-with-a-wallet).
    pub const fn signing_chain(self) -> u64 {
        match self {
            Self::Mainnet => 1666,
            Self::Testnet => 714,
        }
    }

    /// The label in `<brand>Chain` and in withdrawals
    /// (docs/interface/conventions.md#signing-management-routes,
    /// docs/interface/conventions.md#signing-withdrawals).
    pub const fn label(self) -> &'static str {
        match self {
            Self::Mainnet => "Mainnet",
            Self::Testnet => "Testnet",
        }
    }
}

/// Short name of a chain in withdrawals (docs/interface/conventions.md#signing-withdrawals); `None`
/// for other chains.
pub const fn chain_name(chain_id: u64) -> Option<&'static str> {
    match chain_id {
        1 => Some("ETH"),
        56 => Some("BSC"),
        42161 => Some("Arbitrum"),
        _ => None,
    }
}
