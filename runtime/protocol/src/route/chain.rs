//! The chain API (docs/interface/chain.md#chain-routes) as data.
//!
//! The core interface does not show how its requests are authenticated; public facts do
//! (docs/interface/chain.md#authentication):
//!
//! - `USER_DATA` and TRADE routes without their own signature are signed like every v3 request.
//! - Transfers list `user`, `nonce` and `signature`: a `Message` of the main wallet.
//! - Withdrawals are v3. They name their inner nonce `userNonce` to separate it from the request's
//!   own `nonce`. A v3 withdrawal has two signatures, the agent's `Message` outside and the
//!   wallet's `Action` inside, so the outer signature is sent too. It also identifies the account
//!   that pays, which a Solana signature (Ed25519) cannot do.

use super::enums::TRANSFER_KIND;
use super::row::{at, may, must, row};
use super::types::Kind::{Address, Decimal, Enum, Int, String};
use super::types::{InnerSignature, Param, Route, Scheme, Source, Surface, Weight::Fixed};

const CHAIN: (Surface, Source) = (Surface::Chain, Source::Spec3);

const EVM: InnerSignature = InnerSignature::Withdrawal { nonce: "userNonce" };

/// Transfer between the perp account and spot, in either direction.
const WALLET_TRANSFER: &[Param] = &[
    must("asset", String),
    must("amount", Decimal).above_zero(),
    must("clientTranId", String).length(1, 63),
    must("kindType", TRANSFER_KIND),
];
const SIGNATURE_TYPE: Param =
    may("signatureType", Enum(&["EOA", "SafeWallet"])).default_value("EOA");

pub(super) const ROUTES: &[Route] = &[
    row!(CHAIN "chain.account_status",
        Get "/{brand}-chain" [v3] "/account/status", UserData, Fixed(1))
    .answers("Account status {status}"),
    row!(CHAIN "chain.modify_account_status",
        Post "/{brand}-chain" [v3] "/account/modify-status", Trade, Fixed(5))
    .takes(&[must("status", Enum(&["PUBLIC", "PRIVATE"]))])
    .answers("Account status {status}")
    .changes(),
    row!(CHAIN "chain.locked_staking",
        Get "/{brand}-chain" [v3] "/staking/getLocked{Brand}", None, Fixed(20))
    .answers("Staking total {periodCode, totalVolume}"),
    row!(CHAIN "chain.transfer", Post [
            at!("/{brand}-chain" v3 "/transfer" Withdraw).scheme(Scheme::WalletMessage),
        ], Withdraw, Fixed(50))
    .takes(&[
        must("asset", String),
        must("amount", Decimal).above_zero(),
        must("toAddress", Address),
        may("clientTranId", String).length(1, 63),
    ])
    .answers("Transfer to address result")
    .changes(),
    row!(CHAIN "chain.deposit_address",
        Get "/{brand}-chain" [v3] "/spot/user-deposit-address", UserData, Fixed(1))
    .takes(&[may("network", String).default_value("SUI")])
    .answers("Deposit address {network, address}"),
    row!(CHAIN "chain.perp_withdraw", Post [
            at!("/{brand}-chain" v3 "/perp/user-withdraw" Withdraw).inner(EVM),
        ], Withdraw, Fixed(5))
    .takes(&[
        must("asset", String),
        must("chainId", Int),
        must("amount", String).above_zero(),
        must("fee", String).not_negative(),
        must("receiver", Address),
        must("userNonce", String),
        SIGNATURE_TYPE,
        must("userSignature", String),
    ])
    .answers("Withdraw result {withdrawId, hash}")
    .changes(),
    row!(CHAIN "chain.perp_solana_withdraw", Post [
            at!("/{brand}-chain" v3 "/perp/user-solana-withdraw" Withdraw)
                .inner(InnerSignature::SolanaWithdrawal),
        ], Withdraw, Fixed(5))
    .takes(&[
        must("asset", String),
        must("chainId", Int),
        must("amount", String).above_zero(),
        must("fee", String).not_negative(),
        must("receiver", String).solana_address(),
        must("userNonce", String),
        must("userSignature", String),
    ])
    .answers("Withdraw result {withdrawId, hash}")
    .changes(),
    row!(CHAIN "chain.withdraw_info",
        Get "/{brand}-chain" [v3] "/perp/user-withdraw-info", UserData, Fixed(1))
    .answers("Withdraw info"),
    row!(CHAIN "chain.deposit_withdraw_history",
        Get "/{brand}-chain" [v3] "/perp/deposit-withdraw-history", UserData, Fixed(5))
    .takes(&[may("chainId", String)])
    .answers("array of Deposit/withdraw history entry"),
    row!(CHAIN "chain.perp_wallet_transfer", Post [
            at!("/{brand}-chain" v3 "/perp/wallet/transfer" Trade).scheme(Scheme::WalletMessage),
        ], Trade, Fixed(5))
    .takes(WALLET_TRANSFER)
    .answers("Wallet transfer result {tranId, status}")
    .changes(),
    row!(CHAIN "chain.spot_withdraw", Post [
            at!("/{brand}-chain" v3 "/spot/user-withdraw" Withdraw).inner(EVM),
        ], Withdraw, Fixed(5))
    .takes(&[
        must("asset", String),
        must("chainId", Int),
        may("signatureChainId", Int),
        must("amount", String).above_zero(),
        must("fee", String).not_negative(),
        must("receiver", Address),
        must("userNonce", String),
        SIGNATURE_TYPE,
        must("userSignature", String),
    ])
    .answers("Withdraw result {withdrawId, hash}")
    .changes(),
    row!(CHAIN "chain.spot_solana_withdraw", Post [
            at!("/{brand}-chain" v3 "/spot/user-solana-withdraw" Withdraw)
                .inner(InnerSignature::SolanaWithdrawal),
        ], Withdraw, Fixed(5))
    .takes(&[
        must("asset", String),
        must("chainId", Int),
        must("amount", Decimal).above_zero(),
        must("fee", Decimal).not_negative(),
        must("receiver", String).solana_address(),
        must("userNonce", String),
        must("userSignature", String),
    ])
    .answers("Withdraw result {withdrawId, hash}")
    .changes(),
    row!(CHAIN "chain.spot_wallet_transfer", Post [
            at!("/{brand}-chain" v3 "/spot/wallet/transfer" Trade).scheme(Scheme::WalletMessage),
        ], Trade, Fixed(5))
    .takes(WALLET_TRANSFER)
    .answers("Wallet transfer result {tranId, status}")
    .changes(),
    row!(CHAIN "chain.withdraw_fee",
        Get "/{brand}-chain" [v3] "/withdraw/estimateFee", None, Fixed(1))
    .takes(&[must("chainId", Int), must("asset", String)])
    .answers("Withdraw fee estimate {gasPrice, gasLimit, ..., gasUsdValue}"),
];
