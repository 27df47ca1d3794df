//! Deposits on EVM chains: the ABI-encoded calls of the vault contract
//! (docs/interface/chain.md#evm-chains).

use alloy_primitives::{Address, U256, hex};
use alloy_sol_types::{SolCall, sol};
use serde::Serialize;

use super::{Credit, DepositError, smallest_units};

sol! {
    function approve(address spender, uint256 value);
    function depositFor(address currency, address forAddress, uint256 amount, uint256 broker);
}

/// The `broker` value that credits the spot account; any other value credits the futures account.
const BROKER_SPOT: u64 = 1000;

/// The `broker` value that this crate sends for the futures account.
const BROKER_FUTURES: u64 = 0;

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

/// A deposit on an EVM chain. Addresses are hexadecimal with `0x`.
#[derive(Clone, Copy, Debug)]
pub struct EvmDeposit<'a> {
    /// 1 (ETH), 56 (BSC) or 42161 (Arbitrum).
    pub chain_id: u64,
    /// The chain's vault contract.
    pub vault: &'a str,
    /// The token contract, or the placeholder of the native token.
    pub currency: &'a str,
    /// Whether `currency` is that placeholder.
    pub is_native: bool,
    /// The account to credit.
    pub for_address: &'a str,
    /// Decimal text in whole tokens.
    pub amount: &'a str,
    /// Decimals of the token.
    pub decimals: u8,
    /// Spot or futures.
    pub credit: Credit,
}

/// The calls of an EVM deposit, in the order in which to send them
/// (docs/interface/chain.md#evm-chains). For a token: the approval of the vault, then the deposit
/// with value 0. For the native token: the deposit with the amount as its value.
pub fn evm(deposit: &EvmDeposit<'_>) -> Result<Vec<EvmCall>, DepositError> {
    if !matches!(deposit.chain_id, 1 | 56 | 42161) {
        return Err(DepositError::Chain(deposit.chain_id));
    }
    let vault = not_zero("vault", deposit.vault)?;
    // The venue chooses the placeholder of the native token; it may be the zero address.
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
    let value = if deposit.is_native {
        amount
    } else {
        U256::ZERO
    };
    let deposit_for = depositForCall {
        currency,
        forAddress: credited,
        amount,
        broker,
    };
    let deposit_for = call(deposit.chain_id, vault, &deposit_for, value);
    if deposit.is_native {
        return Ok(vec![deposit_for]);
    }
    let approve = approveCall {
        spender: vault,
        value: amount,
    };
    let approve = call(deposit.chain_id, currency, &approve, U256::ZERO);
    Ok(vec![approve, deposit_for])
}

fn call<C: SolCall>(chain_id: u64, to: Address, call: &C, value: U256) -> EvmCall {
    EvmCall {
        chain_id,
        to: to.to_string(),
        method: C::SIGNATURE,
        data: hex::encode_prefixed(call.abi_encode()),
        value: value.to_string(),
    }
}

/// Parses an address: in one case, which has no checksum, or in mixed case with the checksum of
/// EIP-55.
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    const VAULT: &str = "0x1111111111111111111111111111111111111111";
    const TOKEN: &str = "0x2222222222222222222222222222222222222222";
    const USER: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

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
            "any broker except 1000"
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
        // One changed digit, and one letter in the wrong case.
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
                "forAddress = {wrong_case:?} has a wrong checksum: a digit may be wrong. \
                 With these digits the address is {USER:?}. Compare every digit with your source"
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
    fn the_zero_address_is_allowed_only_as_native_token() {
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
    fn other_chains_have_no_vault() {
        assert!(matches!(
            evm(&EvmDeposit {
                chain_id: 5,
                ..deposit(true)
            }),
            Err(DepositError::Chain(5))
        ));
    }
}
