//! The chain API (docs/interface/chain.md#chain-routes). Transfers and withdrawals move assets:
//! settle an unknown outcome with a query, and never send the request again.

use windvane_protocol::wire::chain::{
    GetAccountStatus, GetDepositAddress, GetDepositWithdrawHistory, GetLockedStaking,
    GetWithdrawFee, GetWithdrawInfo, ModifyAccountStatus, PerpSolanaWithdraw, PerpWalletTransfer,
    PerpWithdraw, SpotSolanaWithdraw, SpotWalletTransfer, SpotWithdraw, Transfer,
};

super::methods! {
    Chain, "chain";
    /// Privacy status of the account.
    account_status(GetAccountStatus);
    /// Changes the privacy status.
    modify_account_status(ModifyAccountStatus, ModifyAccountStatus::new(PrivacyStatus::Private));
    /// Platform tokens locked in staking positions of 208 weeks.
    locked_staking(GetLockedStaking);
    /// Sends assets to a registered user's address.
    transfer(Transfer, Transfer::new("USDT", 5, "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0"));
    /// Deposit address of the spot account.
    deposit_address(GetDepositAddress, GetDepositAddress::new().network("SUI"));
    /// Withdraws from the perp account to an EVM address.
    perp_withdraw(PerpWithdraw, PerpWithdraw::new("USDT", 56, 31, Decimal::new(3, 1),
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"));
    /// Withdraws from the perp account to a Solana address.
    perp_solana_withdraw(PerpSolanaWithdraw, PerpSolanaWithdraw::new("USDT", 101, 31, 1,
        "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"));
    /// Limits and withdrawable amounts.
    withdraw_info(GetWithdrawInfo);
    /// Deposits and withdrawals of the perp account.
    deposit_withdraw_history(GetDepositWithdrawHistory,
        GetDepositWithdrawHistory::new().chain_id("56"));
    /// Moves assets between the spot wallet and the perp account.
    perp_wallet_transfer(PerpWalletTransfer,
        PerpWalletTransfer::new("USDT", 10, "transfer-3", TransferKind::FutureToSpot));
    /// Withdraws from the spot account to an EVM address.
    spot_withdraw(SpotWithdraw, SpotWithdraw::new("USDT", 56, 31, Decimal::new(3, 1),
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"));
    /// Withdraws from the spot account to a Solana address.
    spot_solana_withdraw(SpotSolanaWithdraw, SpotSolanaWithdraw::new("USDT", 101, 31, 1,
        "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"));
    /// Moves assets between the spot wallet and the perp account.
    spot_wallet_transfer(SpotWalletTransfer,
        SpotWalletTransfer::new("USDT", 10, "transfer-4", TransferKind::SpotToFuture));
    /// Estimates the fee of a withdrawal.
    withdraw_fee(GetWithdrawFee, GetWithdrawFee::new(56, "USDT"));
}
