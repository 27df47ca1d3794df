//! Deposits: the exact calls that a user's own wallet must send on the source chain
//! (docs/interface/chain.md#deposits). This module sends and signs nothing. The documents omit all
//! addresses, so the caller provides each of them.

mod program;
mod vault;

use alloy_primitives::U256;
use serde::Serialize;

pub use program::{SolanaAccount, SolanaCall, SolanaMethod, SolanaRole, solana};
pub use vault::{EvmCall, EvmDeposit, evm};

/// Which account a deposit is credited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// The spot account.
    Spot,
    /// The futures account.
    Futures,
}

/// Why a deposit call cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DepositError {
    /// The chain has no vault.
    #[error("chain id = {0} has no deposit vault; use 1 (ETH), 56 (BSC) or 42161 (Arbitrum)")]
    Chain(u64),
    /// The amount is not a positive decimal, or the token has too few decimals for it.
    #[error(
        "amount = {amount:?} must be a positive decimal text with at most {decimals} digits after the point; check the token's decimals"
    )]
    Amount {
        /// The value as given.
        amount: String,
        /// Decimals of the token.
        decimals: u8,
    },
    /// The amount does not fit the method's argument.
    #[error(
        "amount = {amount:?} is too large in smallest units (at most {bits} bits); deposit in parts"
    )]
    TooLarge {
        /// The value as given.
        amount: String,
        /// Size of the argument.
        bits: u16,
    },
    /// The text is not an EVM address.
    #[error("{name} = {value:?} must be an EVM address, 0x and 40 hexadecimal digits")]
    Address {
        /// Name of the argument.
        name: &'static str,
        /// The value as given.
        value: String,
    },
    /// The mixed-case checksum of the address is wrong (EIP-55).
    #[error(
        "{name} = {value:?} has a wrong checksum: a digit may be wrong. With these digits the \
         address is {right:?}. Compare every digit with your source"
    )]
    Checksum {
        /// Name of the argument.
        name: &'static str,
        /// The value as given.
        value: String,
        /// The same digits with the right checksum.
        right: String,
    },
    /// Nobody has the key of the zero address.
    #[error("{name} is the zero address: assets sent there are lost; give the right address")]
    Zero {
        /// Name of the argument.
        name: &'static str,
    },
    /// A Solana account's address is missing or invalid.
    #[error(
        "account {name} = {value:?} must be a Solana address, base58 of 32 bytes; give the address, because the documents omit it"
    )]
    Account {
        /// Name of the account.
        name: &'static str,
        /// The value as given; empty if it was not given.
        value: String,
    },
}

/// How to deposit on SUI: to the address that a route returns (docs/interface/chain.md#sui).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiDeposit {
    /// The route to call.
    pub route: &'static str,
    /// Its parameter `network`.
    pub network: &'static str,
    /// The only account that can be credited.
    pub credits: &'static str,
}

/// Credits the spot account only. Transfer the asset to the address that this route returns.
pub const SUI: SuiDeposit = SuiDeposit {
    route: "chain.deposit_address",
    network: "SUI",
    credits: "spot",
};

/// Converts a decimal text in whole tokens into an exact integer in the token's smallest unit.
pub fn smallest_units(amount: &str, decimals: u8) -> Result<U256, DepositError> {
    let wrong = || DepositError::Amount {
        amount: amount.to_owned(),
        decimals,
    };
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    if fraction.is_empty() {
        return Err(wrong());
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let missing = usize::from(decimals).checked_sub(fraction.len());
    let missing = missing.ok_or_else(wrong)?;
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(wrong());
    }
    let text = format!("{whole}{fraction}{}", "0".repeat(missing));
    let units = U256::from_str_radix(&text, 10).map_err(|_| DepositError::TooLarge {
        amount: amount.to_owned(),
        bits: 256,
    })?;
    if units.is_zero() {
        Err(wrong())
    } else {
        Ok(units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_or_refused() {
        assert_eq!(smallest_units("0.000001", 6), Ok(U256::from(1)));
        assert_eq!(smallest_units("2", 0), Ok(U256::from(2)));
        assert_eq!(smallest_units("1.10", 1), Ok(U256::from(11)));
        for bad in [
            "",
            ".5",
            "1.",
            "0",
            "0.0",
            "-1",
            "+1",
            "1e3",
            "1.2345678",
            "1,5",
            "1.2.3",
        ] {
            assert!(smallest_units(bad, 6).is_err(), "{bad}");
        }
        assert!(smallest_units(&"9".repeat(80), 18).is_err());
    }
}
