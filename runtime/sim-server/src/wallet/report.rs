//! The wallet data of an account, for the exact state of the control port.

use serde_json::{Value, json};
use windvane_protocol::Assets;

use super::builders::Builder;
use super::wallets::{Own, Wallets};
use crate::account_id::AccountId;

/// The wallet data of an account.
pub(crate) fn report(wallets: &Wallets, assets: &Assets, id: AccountId, now_ms: i64) -> Value {
    let empty = Own::default();
    let own = wallets.get(id).unwrap_or(&empty);
    let movements = own.movements.iter();
    let movements: Vec<_> = movements.map(|m| m.record(assets, now_ms)).collect();
    json!({
        "private": own.is_private,
        "builders": own.builders.iter().map(Builder::report).collect::<Vec<_>>(),
        "movements": movements,
        "client_tran_ids": own.transfer_ids.all().collect::<Vec<_>>(),
    })
}
