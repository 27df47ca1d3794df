//! Requests and responses of the chain API (docs/interface/chain.md#chain-routes). [`crate::sign`]
//! adds signatures and nonces that are not given.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::common::{TransferResult, WithdrawResult};
use super::enums::{
    MovementState, MovementType, PrivacyStatus, SignatureType, TransferKind, TransferStatus,
};
use super::fields::{record, request};
use super::scalar::{Exact, Text, Whole, Word};

record! {
    /// Account status.
    AccountStatus {
        status: Word<PrivacyStatus> = "status",
    }
}

request! {
    /// Privacy status of the account.
    GetAccountStatus = "chain.account_status" -> AccountStatus {}
}

request! {
    /// Changes the privacy status; the change is broadcast to the chain.
    ModifyAccountStatus = "chain.modify_account_status" -> AccountStatus {
        status: PrivacyStatus = "status",
    }
}

record! {
    /// Staking total.
    LockedStaking {
        period_code: Text = "periodCode",
        total_volume: Exact = "totalVolume",
    }
}

request! {
    /// Platform tokens in all staking positions of 208 weeks on the network.
    GetLockedStaking = "chain.locked_staking" -> LockedStaking {}
}

record! {
    /// Transfer to address result.
    AddressTransfer {
        transfer_id: Text = "transferId",
        asset: String = "asset",
        amount: Exact = "amount",
        to_address: String = "toAddress",
        /// Milliseconds.
        timestamp?: Whole = "timestamp",
        status: Word<TransferStatus> = "status",
    }
}

request! {
    /// Transfers to the address of another registered user. The transfer cannot be undone.
    Transfer = "chain.transfer" -> AddressTransfer {
        asset: String = "asset",
        /// Above 0.
        amount: Decimal = "amount",
        to_address: String = "toAddress",
        /// The venue makes one if it is absent.
        client_tran_id?: String = "clientTranId",
    }
}

record! {
    /// Deposit address.
    DepositAddress {
        network: String = "network",
        address: String = "address",
    }
}

request! {
    /// Deposit address of the spot account.
    GetDepositAddress = "chain.deposit_address" -> DepositAddress {
        /// Default `SUI`.
        network?: String = "network",
    }
}

request! {
    /// Withdraws from the perp account to an EVM address.
    PerpWithdraw = "chain.perp_withdraw" -> WithdrawResult {
        asset: String = "asset",
        /// The target chain.
        chain_id: i64 = "chainId",
        amount: Decimal = "amount",
        fee: Decimal = "fee",
        receiver: String = "receiver",
        /// Added if it is not given.
        user_nonce?: String = "userNonce",
        signature_type?: SignatureType = "signatureType",
        /// Added if it is not given; `SafeWallet` needs several, separated by commas.
        user_signature?: String = "userSignature",
    }
}

request! {
    /// Withdraws from the spot account to an EVM address.
    SpotWithdraw = "chain.spot_withdraw" -> WithdrawResult {
        asset: String = "asset",
        /// The chain that the asset belongs to.
        chain_id: i64 = "chainId",
        /// The chain of the signature's domain; default `chainId`.
        signature_chain_id?: i64 = "signatureChainId",
        amount: Decimal = "amount",
        fee: Decimal = "fee",
        receiver: String = "receiver",
        /// Added if it is not given.
        user_nonce?: String = "userNonce",
        signature_type?: SignatureType = "signatureType",
        /// Added if it is not given; `SafeWallet` needs several, separated by commas.
        user_signature?: String = "userSignature",
    }
}

request! {
    /// Withdraws from the perp account to a Solana address.
    PerpSolanaWithdraw = "chain.perp_solana_withdraw" -> WithdrawResult {
        asset: String = "asset",
        chain_id: i64 = "chainId",
        amount: Decimal = "amount",
        fee: Decimal = "fee",
        receiver: String = "receiver",
        /// Added if it is not given.
        user_nonce?: String = "userNonce",
        /// Added if it is not given.
        user_signature?: String = "userSignature",
    }
}

request! {
    /// Withdraws from the spot account to a Solana address.
    SpotSolanaWithdraw = "chain.spot_solana_withdraw" -> WithdrawResult {
        asset: String = "asset",
        chain_id: i64 = "chainId",
        amount: Decimal = "amount",
        fee: Decimal = "fee",
        receiver: String = "receiver",
        /// Added if it is not given.
        user_nonce?: String = "userNonce",
        /// Added if it is not given.
        user_signature?: String = "userSignature",
    }
}

record! {
    /// Withdraw info.
    WithdrawInfo {
        user_daily_limit: Exact = "userDailyLimit",
        user_remaining_daily_limit: Exact = "userRemainingDailyLimit",
        total_daily_limit: Exact = "totalDailyLimit",
        total_remaining_daily_limit: Exact = "totalRemainingDailyLimit",
        /// By asset.
        balances: BTreeMap<String, WithdrawBalance> = "balances",
    }
}

record! {
    /// The amounts of one asset that may be withdrawn.
    WithdrawBalance {
        currency: String = "currency",
        spot_total_withdraw_amount: Exact = "spotTotalWithdrawAmount",
        perp_total_withdraw_amount: Exact = "perpTotalWithdrawAmount",
        daily_limit: Exact = "dailyLimit",
        /// By chain id.
        chain_balances: BTreeMap<String, ChainBalance> = "chainBalances",
    }
}

record! {
    /// The amounts of one asset that may be withdrawn to one chain.
    ChainBalance {
        chain_id: Whole = "chainId",
        spot_max_withdraw_amount: Exact = "spotMaxWithdrawAmount",
        perp_max_withdraw_amount: Exact = "perpMaxWithdrawAmount",
        chain_limit: Exact = "chainLimit",
        withdraw_fee: Exact = "withdrawFee",
    }
}

request! {
    /// Limits and withdrawable amounts, by asset and chain.
    GetWithdrawInfo = "chain.withdraw_info" -> WithdrawInfo {}
}

record! {
    /// Deposit/withdraw history entry.
    Movement {
        id: Text = "id",
        movement_type: Word<MovementType> = "type",
        asset: String = "asset",
        amount: Exact = "amount",
        state: Word<MovementState> = "state",
        tx_hash?: String = "txHash",
        /// Milliseconds.
        time: Whole = "time",
        chain_id?: Whole = "chainId",
        account_type?: String = "accountType",
    }
}

request! {
    /// Deposits and withdrawals of the perp account.
    GetDepositWithdrawHistory = "chain.deposit_withdraw_history" -> Vec<Movement> {
        chain_id?: String = "chainId",
    }
}

request! {
    /// Moves assets between the spot wallet and the perp account.
    PerpWalletTransfer = "chain.perp_wallet_transfer" -> TransferResult {
        asset: String = "asset",
        /// Above 0.
        amount: Decimal = "amount",
        client_tran_id: String = "clientTranId",
        kind: TransferKind = "kindType",
    }
}

request! {
    /// Moves assets between the spot wallet and the perp account.
    SpotWalletTransfer = "chain.spot_wallet_transfer" -> TransferResult {
        asset: String = "asset",
        /// Above 0.
        amount: Decimal = "amount",
        client_tran_id: String = "clientTranId",
        kind: TransferKind = "kindType",
    }
}

record! {
    /// Withdraw fee estimate.
    WithdrawFee {
        gas_price: Whole = "gasPrice",
        gas_limit: Whole = "gasLimit",
        native_price: Exact = "nativePrice",
        token_price: Exact = "tokenPrice",
        gas_cost: Exact = "gasCost",
        gas_usd_value: Exact = "gasUsdValue",
    }
}

request! {
    /// Estimates the fee of a withdrawal.
    GetWithdrawFee = "chain.withdraw_fee" -> WithdrawFee {
        chain_id: i64 = "chainId",
        asset: String = "asset",
    }
}
