//! Wallet data besides balances, and its rules: builders, transfers, deposits and withdrawals.
//! `wallet_routes` has the handlers.

mod builders;
mod chains;
mod daily_limits;
mod movements;
mod report;
mod transfer_ids;
mod wallets;

pub(crate) use builders::{Attribution, Builder, fraction};
pub(crate) use chains::{CHAINS, Chain, chain_of, usd_price};
pub(crate) use daily_limits::{Spent, TOTAL_DAILY_USD, USER_DAILY_USD};
pub(crate) use movements::{Direction, Movement};
pub(crate) use report::report;
pub(crate) use wallets::Wallets;
