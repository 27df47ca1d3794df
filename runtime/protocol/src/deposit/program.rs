//! Deposits on Solana: the methods of the program with their accounts in order
//! (docs/interface/chain.md#solana).

use std::collections::BTreeMap;

use alloy_primitives::hex;
use serde::Serialize;

use super::{Credit, DepositError, smallest_units};

/// Methods of the Solana program (docs/interface/chain.md#solana).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolanaMethod {
    /// Deposits the native token.
    DepositSol,
    /// Deposits an SPL token.
    DepositToken,
}

/// An account that a Solana method takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolanaRole {
    /// Name as documented.
    pub name: &'static str,
    /// Whether the account signs.
    pub is_signer: bool,
    /// Whether the account is written.
    pub is_writable: bool,
}

/// An account at its position in an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SolanaAccount {
    /// Name as documented; `program` for the program itself.
    pub name: &'static str,
    /// Base58.
    pub address: String,
    /// Whether the account signs.
    pub is_signer: bool,
    /// Whether the account is written.
    pub is_writable: bool,
}

/// One instruction for the program. The documents name the method and its one argument but not how
/// the method is encoded before it. So no instruction bytes are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SolanaCall {
    /// The program.
    pub program: String,
    /// Method name.
    pub method: &'static str,
    /// The argument `amount` in the smallest unit.
    pub amount: u64,
    /// The argument as the eight bytes of a `u64`, little-endian, hexadecimal.
    pub amount_bytes: String,
    /// The accounts, in order.
    pub accounts: Vec<SolanaAccount>,
}

const DEPOSIT_SOL: &[SolanaRole] = &[
    role("signer", true, true),
    role("admin", false, false),
    role("solVault", false, true),
    role("systemProgram", false, false),
];

const DEPOSIT_TOKEN: &[SolanaRole] = &[
    role("signer", true, false),
    role("admin", false, false),
    role("bank", false, false),
    role("tokenVaultAuthority", false, false),
    role("tokenVault", false, true),
    role("depositor", false, true),
    role("tokenMint", false, false),
    role("tokenProgram", false, false),
    role("associatedTokenProgram", false, false),
    role("systemProgram", false, false),
];

impl SolanaMethod {
    /// Name as documented.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DepositSol => "depositSol",
            Self::DepositToken => "depositToken",
        }
    }

    /// The accounts in order, without the program at the end.
    pub const fn roles(self) -> &'static [SolanaRole] {
        match self {
            Self::DepositSol => DEPOSIT_SOL,
            Self::DepositToken => DEPOSIT_TOKEN,
        }
    }
}

/// The instruction of a Solana deposit. `addresses` maps the documented account names to addresses.
/// The program is added as the last account if the deposit credits the spot account.
pub fn solana(
    method: SolanaMethod,
    program: &str,
    addresses: &BTreeMap<String, String>,
    amount: &str,
    decimals: u8,
    credit: Credit,
) -> Result<SolanaCall, DepositError> {
    let units = smallest_units(amount, decimals)?;
    let units = u64::try_from(units).map_err(|_| DepositError::TooLarge {
        amount: amount.to_owned(),
        bits: 64,
    })?;
    let mut accounts = Vec::new();
    for role in method.roles() {
        let address = addresses.get(role.name).map_or("", String::as_str);
        accounts.push(placed(role, address)?);
    }
    let itself = placed(&role("program", false, false), program)?;
    if credit == Credit::Spot {
        accounts.push(itself);
    }
    Ok(SolanaCall {
        program: program.to_owned(),
        method: method.name(),
        amount: units,
        amount_bytes: hex::encode(units.to_le_bytes()),
        accounts,
    })
}

const fn role(name: &'static str, is_signer: bool, is_writable: bool) -> SolanaRole {
    SolanaRole {
        name,
        is_signer,
        is_writable,
    }
}

fn placed(role: &SolanaRole, address: &str) -> Result<SolanaAccount, DepositError> {
    if bs58::decode(address).onto(&mut [0; 32]) != Ok(32) {
        return Err(DepositError::Account {
            name: role.name,
            value: address.to_owned(),
        });
    }
    Ok(SolanaAccount {
        name: role.name,
        address: address.to_owned(),
        is_signer: role.is_signer,
        is_writable: role.is_writable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin";

    #[test]
    fn solana_accounts_are_in_order_with_the_program_last_for_spot() {
        for method in [SolanaMethod::DepositSol, SolanaMethod::DepositToken] {
            let addresses: BTreeMap<String, String> = (1u8..)
                .zip(method.roles())
                .map(|(byte, role)| (role.name.to_owned(), bs58::encode([byte; 32]).into_string()))
                .collect();
            let call = |credit| solana(method, PROGRAM, &addresses, "2", 9, credit).unwrap();
            let (spot, futures) = (call(Credit::Spot), call(Credit::Futures));
            assert_eq!(spot.amount, 2_000_000_000);
            assert_eq!(spot.amount_bytes, "0094357700000000");
            assert_eq!(spot.accounts.last().unwrap().address, PROGRAM);
            assert_eq!(spot.accounts[..futures.accounts.len()], futures.accounts);
            let names: Vec<_> = futures
                .accounts
                .iter()
                .map(|account| account.name)
                .collect();
            let roles: Vec<_> = method.roles().iter().map(|role| role.name).collect();
            assert_eq!(names, roles);

            let mut missing = addresses.clone();
            missing.remove("admin");
            let error = solana(method, PROGRAM, &missing, "2", 9, Credit::Spot).unwrap_err();
            assert!(error.to_string().contains("admin"), "{error}");
        }
    }
}
