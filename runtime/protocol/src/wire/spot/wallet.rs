//! Transfers, withdrawals and API keys of the spot surface
//! (docs/interface/account.md#account). [`crate::sign`] adds signatures and
//! nonces that are not given.

use std::fmt;

use rust_decimal::Decimal;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use crate::wire::common::{TransferResult, WithdrawResult};
use crate::wire::enums::{TransferKind, UserOperation};
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Whole};

request! {
    /// Perp-spot transfer (docs/interface/account.md#account).
    WalletTransfer = "spot.wallet_transfer" -> TransferResult {
        amount: Decimal = "amount",
        asset: String = "asset",
        /// Under 64 characters, unique within 7 days.
        client_tran_id: String = "clientTranId",
        kind: TransferKind = "kindType",
    }
}

request! {
    /// Transfer asset to other address (docs/interface/account.md#transfer-to-another-address). The
    /// receiver must be another existing account.
    SendToAddress = "spot.send_to_address" -> TransferResult {
        amount: Decimal = "amount",
        asset: String = "asset",
        /// EVM address.
        to_address: String = "toAddress",
        /// 20 to 63 characters.
        client_tran_id?: String = "clientTranId",
    }
}

record! {
    /// Withdraw fee estimate (docs/interface/account.md#withdrawal-fee).
    WithdrawFee {
        token_price: Exact = "tokenPrice",
        /// The minimum fee of a withdrawal.
        gas_cost: Exact = "gasCost",
        gas_usd_value: Exact = "gasUsdValue",
    }
}

request! {
    /// Get withdraw fee (docs/interface/account.md#withdrawal-fee).
    GetWithdrawFee = "spot.withdraw_fee" -> WithdrawFee {
        /// 1 (ETH), 56 (BSC), 42161 (Arbitrum).
        chain_id: String = "chainId",
        asset: String = "asset",
    }
}

request! {
    /// Withdraw (docs/interface/account.md#withdrawals). The withdrawal cannot be undone.
    Withdraw = "spot.withdraw" -> WithdrawResult {
        /// 1 (ETH), 56 (BSC), 42161 (Arbitrum).
        chain_id: String = "chainId",
        asset: String = "asset",
        amount: Decimal = "amount",
        fee: Decimal = "fee",
        /// The address of the current account.
        receiver: String = "receiver",
        /// v1; added if it is not given.
        nonce?: String = "nonce",
        /// v3 (docs/interface/conventions.md#signing-withdrawals); added if it is not given.
        user_nonce?: String = "userNonce",
        /// Added if it is not given.
        user_signature?: String = "userSignature",
    }
}

request! {
    /// Get user create API key nonce (docs/interface/account.md#api-keys). The response is a bare
    /// number.
    GetNonce = "spot.get_nonce" -> Whole {
        address: String = "address",
        operation: UserOperation = "userOperationType",
        /// `SOL` for the Solana network; otherwise ignored.
        network?: String = "network",
    }
}

request! {
    /// Create API key (docs/interface/account.md#api-keys), with the number of [`GetNonce`] as the
    /// nonce of the request.
    CreateApiKey = "spot.create_api_key" -> ApiKeyPair {
        address: String = "address",
        operation: UserOperation = "userOperationType",
        /// `SOL` for the Solana network; otherwise ignored.
        network?: String = "network",
        /// Added if it is not given.
        user_signature?: String = "userSignature",
        /// Addresses separated by commas.
        api_key_ip?: String = "apikeyIP",
        /// Label, at most 20 characters, unique within the account.
        label: String = "desc",
    }
}

/// API key pair (docs/interface/account.md#api-keys).
#[derive(Clone)]
pub struct ApiKeyPair {
    /// `apiKey`.
    pub api_key: String,
    /// `apiSecret`. The venue shows it only once.
    pub api_secret: SecretString,
}

impl fmt::Debug for ApiKeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ApiKeyPair");
        shown
            .field("api_key", &self.api_key)
            .finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for ApiKeyPair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Pair {
            api_key: String,
            api_secret: String,
        }
        let pair = Pair::deserialize(deserializer)?;
        Ok(Self {
            api_key: pair.api_key,
            api_secret: pair.api_secret.into(),
        })
    }
}

#[cfg(test)]
impl serde::Serialize for ApiKeyPair {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use secrecy::ExposeSecret;

        let secret = self.api_secret.expose_secret();
        let pair = [("apiKey", self.api_key.as_str()), ("apiSecret", secret)];
        serializer.collect_map(pair)
    }
}
