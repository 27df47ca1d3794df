//! Deposits: the exact calls that a user's own wallet has to send on the source chain (spec 3,
//! Deposits). Nothing is sent or signed here. The documents omit all addresses, so each is the
//! caller's.

use std::collections::BTreeMap;

use alloy_primitives::{Address, U256, hex, keccak256};
use serde::Serialize;

/// `broker` that credits the spot account; any other credits the futures account.
const BROKER_SPOT: u64 = 1000;

/// `broker` sent for the futures account.
const BROKER_FUTURES: u64 = 0;

/// Which account a deposit is credited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// The spot account.
    Spot,
    /// The futures account.
    Futures,
}

/// A deposit that cannot be made so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DepositError {
    /// The chain has no vault.
    #[error(
        "chain id = {0} takes no deposits through a vault; use 1 (ETH), 56 (BSC) or 42161 (Arbitrum)"
    )]
    Chain(u64),
    /// The amount is no positive decimal that the token can hold.
    #[error(
        "amount = {amount:?} must be a positive decimal text with at most {decimals} digits after the point; check the token's decimals"
    )]
    Amount {
        /// As given.
        amount: String,
        /// Of the token.
        decimals: u8,
    },
    /// The amount does not fit the method's argument.
    #[error(
        "amount = {amount:?} is too large in smallest units (at most {bits} bits); deposit in parts"
    )]
    TooLarge {
        /// As given.
        amount: String,
        /// Of the argument.
        bits: u16,
    },
    /// An EVM address is none.
    #[error("{name} = {value:?} must be an EVM address, 0x and 40 hexadecimal digits")]
    Address {
        /// Which one.
        name: &'static str,
        /// As given.
        value: String,
    },
    /// Its capitals are a checksum that does not hold (EIP-55).
    #[error(
        "{name} = {value:?} has a wrong checksum, so that a digit of it may be wrong; these digits are \
         written {right:?}: compare each with its source"
    )]
    Checksum {
        /// Which one.
        name: &'static str,
        /// As given.
        value: String,
        /// The same digits with their checksum.
        right: String,
    },
    /// Nobody holds the key of the zero address.
    #[error("{name} is the zero address: what is sent there is lost; give the right one")]
    Zero {
        /// Which one.
        name: &'static str,
    },
    /// A Solana account's address is missing or none.
    #[error(
        "account {name} = {value:?} must be a Solana address, base58 of 32 bytes; give it, the documents omit it"
    )]
    Account {
        /// Which one.
        name: &'static str,
        /// As given, empty if it was not.
        value: String,
    },
}

/// One contract call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvmCall {
    /// Chain to send it on.
    pub chain_id: u64,
    /// Contract.
    pub to: String,
    /// Method with its argument types.
    pub method: &'static str,
    /// Selector and ABI-encoded arguments, hexadecimal with `0x`.
    pub data: String,
    /// Native value in the smallest unit, as decimal text.
    pub value: String,
}

/// What is deposited on an EVM chain. Addresses are hexadecimal with `0x`.
#[derive(Clone, Copy, Debug)]
pub struct EvmDeposit<'a> {
    /// 1 (ETH), 56 (BSC) or 42161 (Arbitrum).
    pub chain_id: u64,
    /// The chain's vault contract.
    pub vault: &'a str,
    /// Token contract, or the placeholder of the native token.
    pub currency: &'a str,
    /// Whether `currency` is that placeholder.
    pub is_native: bool,
    /// Account to credit.
    pub for_address: &'a str,
    /// Decimal text in whole tokens.
    pub amount: &'a str,
    /// Of the token.
    pub decimals: u8,
    /// Spot or futures.
    pub credit: Credit,
}

/// The calls of an EVM deposit in the order to send them: for a token the approval of the vault
/// and then the deposit with no value, for the native token the deposit with the amount as value
/// (spec 3, Deposits, EVM chains, 1 and 3).
pub fn evm(deposit: &EvmDeposit<'_>) -> Result<Vec<EvmCall>, DepositError> {
    if !matches!(deposit.chain_id, 1 | 56 | 42161) {
        return Err(DepositError::Chain(deposit.chain_id));
    }
    let vault = not_zero("vault", deposit.vault)?;
    // The native token's placeholder is the venue's choice.
    let currency = if deposit.is_native {
        address("currency", deposit.currency)?
    } else {
        not_zero("currency", deposit.currency)?
    };
    let credited = not_zero("forAddress", deposit.for_address)?;
    let amount = smallest_units(deposit.amount, deposit.decimals)?;
    let broker = U256::from(match deposit.credit {
        Credit::Spot => BROKER_SPOT,
        Credit::Futures => BROKER_FUTURES,
    });
    let call = |to: Address, method, words: &[[u8; 32]], value: U256| EvmCall {
        chain_id: deposit.chain_id,
        to: to.to_string(),
        method,
        data: call_data(method, words),
        value: value.to_string(),
    };
    let value = if deposit.is_native {
        amount
    } else {
        U256::ZERO
    };
    let deposit_for = call(
        vault,
        "depositFor(address,address,uint256,uint256)",
        &[
            currency.into_word().0,
            credited.into_word().0,
            amount.to_be_bytes(),
            broker.to_be_bytes(),
        ],
        value,
    );
    if deposit.is_native {
        return Ok(vec![deposit_for]);
    }
    let words = [vault.into_word().0, amount.to_be_bytes()];
    let approve = call(currency, "approve(address,uint256)", &words, U256::ZERO);
    Ok(vec![approve, deposit_for])
}

/// Methods of the Solana program (spec 3, Deposits, Solana).
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
    /// It signs.
    pub is_signer: bool,
    /// It is written.
    pub is_writable: bool,
}

/// An account in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SolanaAccount {
    /// Name as documented; `program` for the program itself.
    pub name: &'static str,
    /// Base58.
    pub address: String,
    /// It signs.
    pub is_signer: bool,
    /// It is written.
    pub is_writable: bool,
}

/// One instruction for the program. The documents name the method and its one argument; they do
/// not show how the method is encoded in front of it, so no instruction bytes are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SolanaCall {
    /// The program.
    pub program: String,
    /// Method.
    pub method: &'static str,
    /// The argument `amount` in the smallest unit.
    pub amount: u64,
    /// The argument as the eight bytes of a `u64`, little-endian, hexadecimal.
    pub amount_bytes: String,
    /// In order.
    pub accounts: Vec<SolanaAccount>,
}

/// Where a deposit on SUI goes: to the address that a route gives (spec 3, Deposits, SUI).
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

/// Spot account only: transfer the asset to the address that this route gives.
pub const SUI: SuiDeposit = SuiDeposit {
    route: "chain.deposit_address",
    network: "SUI",
    credits: "spot",
};

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

/// The instruction of a Solana deposit. `addresses` gives the accounts by their documented names;
/// the program stands last among the accounts where the spot account is to be credited.
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

/// A decimal text in whole tokens as an integer in the token's smallest unit, exactly.
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

/// An address in one case, which has no checksum, or with the one of EIP-55.
fn address(name: &'static str, value: &str) -> Result<Address, DepositError> {
    let digits = value.strip_prefix("0x").filter(|digits| digits.len() == 40);
    let address: Option<Address> = digits.and_then(|digits| digits.parse().ok());
    let (Some(digits), Some(address)) = (digits, address) else {
        return Err(DepositError::Address {
            name,
            value: value.to_owned(),
        });
    };
    let has = |is_of_case: fn(&u8) -> bool| digits.as_bytes().iter().any(is_of_case);
    let is_checked = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let right = address.to_checksum(None);
    if is_checked && right != value {
        return Err(DepositError::Checksum {
            name,
            value: value.to_owned(),
            right,
        });
    }
    Ok(address)
}

fn not_zero(name: &'static str, value: &str) -> Result<Address, DepositError> {
    let address = address(name, value)?;
    if address.is_zero() {
        return Err(DepositError::Zero { name });
    }
    Ok(address)
}

/// The first four bytes of the method's hash, then the arguments, 32 bytes each.
fn call_data(method: &str, words: &[[u8; 32]]) -> String {
    let mut data = keccak256(method)[..4].to_vec();
    data.extend(words.iter().flatten());
    hex::encode_prefixed(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VAULT: &str = "0x1111111111111111111111111111111111111111";
    const TOKEN: &str = "0x2222222222222222222222222222222222222222";
    const USER: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    const PROGRAM: &str = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin";

    fn deposit(is_native: bool) -> EvmDeposit<'static> {
        EvmDeposit {
            chain_id: 56,
            vault: VAULT,
            currency: TOKEN,
            is_native,
            for_address: USER,
            amount: "1.5",
            decimals: 18,
            credit: Credit::Spot,
        }
    }

    #[test]
    fn a_token_is_approved_first_and_sends_no_value() {
        let calls = evm(&deposit(false)).unwrap();
        // The selector of approve(address,uint256) is common knowledge: 0x095ea7b3.
        assert_eq!(
            calls[0].data,
            "0x095ea7b3\
             0000000000000000000000001111111111111111111111111111111111111111\
             00000000000000000000000000000000000000000000000014d1120d7b160000"
        );
        assert_eq!(
            (calls[0].to.as_str(), calls[0].value.as_str()),
            (TOKEN, "0")
        );
        let selector = hex::encode(&keccak256("depositFor(address,address,uint256,uint256)")[..4]);
        assert_eq!(
            calls[1].data,
            format!(
                "0x{selector}\
                 0000000000000000000000002222222222222222222222222222222222222222\
                 000000000000000000000000f39fd6e51aad88f6f4ce6ab8827279cfffb92266\
                 00000000000000000000000000000000000000000000000014d1120d7b160000\
                 00000000000000000000000000000000000000000000000000000000000003e8"
            )
        );
        assert_eq!(
            (calls[1].to.as_str(), calls[1].value.as_str()),
            (VAULT, "0")
        );
        assert_eq!(calls.len(), 2);
    }

    #[test]
    fn a_native_deposit_sends_its_amount_as_value() {
        let futures = EvmDeposit {
            credit: Credit::Futures,
            ..deposit(true)
        };
        let calls = evm(&futures).unwrap();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].value, "1500000000000000000");
        assert!(
            calls[0].data.ends_with(&"0".repeat(64)),
            "any broker but 1000"
        );
    }

    #[test]
    fn an_address_with_capitals_must_have_its_checksum() {
        fn given(for_address: &str) -> EvmDeposit<'_> {
            EvmDeposit {
                for_address,
                ..deposit(false)
            }
        }
        let (lower, upper) = (USER.to_lowercase(), USER[2..].to_uppercase());
        let calls = evm(&deposit(false)).unwrap();
        for same in [lower.clone(), format!("0x{upper}")] {
            assert_eq!(evm(&given(&same)).unwrap(), calls, "{same}");
        }
        // The examples of EIP-55.
        for right in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            assert!(evm(&given(right)).is_ok(), "{right}");
        }
        // One digit is another, and one letter has the other case.
        let wrong_case = USER.replace("F6F4", "f6F4");
        for wrong in [&USER.replace("51aad", "51aae"), &wrong_case] {
            let refused = evm(&given(wrong)).unwrap_err();
            assert!(
                matches!(refused, DepositError::Checksum { .. }),
                "{refused}"
            );
        }
        assert_eq!(
            evm(&given(&wrong_case)).unwrap_err().to_string(),
            format!(
                "forAddress = {wrong_case:?} has a wrong checksum, so that a digit of it may be \
                 wrong; these digits are written {USER:?}: compare each with its source"
            )
        );
        let too_long = format!("{USER}0");
        for none in [&lower[2..], "0x", "", " 0x", &USER[..41], &too_long] {
            assert!(
                matches!(evm(&given(none)), Err(DepositError::Address { .. })),
                "{none}"
            );
        }
    }

    #[test]
    fn the_zero_address_takes_nothing_but_may_stand_for_the_native_token() {
        const ZERO: &str = "0x0000000000000000000000000000000000000000";
        let refused = |deposit: EvmDeposit<'_>| match evm(&deposit) {
            Err(DepositError::Zero { name }) => name,
            other => panic!("{other:?}"),
        };
        let token = deposit(false);
        assert_eq!(
            refused(EvmDeposit {
                vault: ZERO,
                ..token
            }),
            "vault"
        );
        assert_eq!(
            refused(EvmDeposit {
                currency: ZERO,
                ..token
            }),
            "currency"
        );
        let to_nobody = EvmDeposit {
            for_address: ZERO,
            ..token
        };
        assert_eq!(refused(to_nobody), "forAddress");
        let native = EvmDeposit {
            currency: ZERO,
            ..deposit(true)
        };
        assert!(evm(&native).is_ok());
    }

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
        assert!(matches!(
            evm(&EvmDeposit {
                chain_id: 5,
                ..deposit(true)
            }),
            Err(DepositError::Chain(5))
        ));
    }

    #[test]
    fn solana_accounts_stand_in_order_and_the_program_last_for_spot() {
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
