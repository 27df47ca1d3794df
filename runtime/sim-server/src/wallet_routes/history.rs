//! The history of deposits and withdrawals (docs/interface/chain.md#history).

use windvane_model::Surface;
use windvane_protocol::Assets;

use crate::request::{Answer, Body, Call};
use crate::wallet::Wallets;

/// The entries of the perp account, oldest first
/// (docs/interface/conventions.md#responses-and-types), of one chain or all.
pub(super) fn list(wallets: &Wallets, assets: &Assets, call: &Call<'_>) -> Answer {
    let id = call.account()?;
    let chain = call.params.get("chainId");
    let own = wallets.get(id);
    let records: Vec<_> = own
        .iter()
        .flat_map(|own| &own.movements)
        .filter(|movement| movement.surface == Surface::Futures)
        .filter(|movement| chain.is_none_or(|chain| movement.chain_id.to_string() == chain))
        .map(|movement| movement.record(assets, call.now_ms))
        .collect();
    Ok(Body::json(&records))
}
