//! Pays builders (docs/interface/futures.md#orders-with-a-builder-code). A builder whose address is
//! the main wallet of an account here is paid into its futures wallet.

use windvane_model::Surface;
use windvane_sim::{Cause, OrderEvent};

use crate::account_id::AccountId;
use crate::accounts::{Income, of_user};
use crate::state::State;

/// Pays the builder its share of a fill.
pub(super) fn pay(state: &mut State, id: AccountId, event: &OrderEvent) {
    let update = &event.update;
    let Some(attribution) = state.wallets.attribution(id, update) else {
        return;
    };
    let (Some(fill), Some(payee)) = (update.fill, of_user(&state.accounts, attribution.builder))
    else {
        return;
    };
    let share = attribution.share(fill.quote_qty);
    let (now, asset) = (state.now, fill.fee_asset);
    let account = state.account_mut(payee);
    let venue = &mut account.venue;
    let credited = venue.credit(now, Surface::Futures, asset, share, Cause::Adjustment);
    // A share that rounds to zero is not paid.
    if credited.is_ok() {
        account.history.keep_income(Income {
            instrument: Some(update.instrument),
            kind: "COMMISSION",
            amount: share,
            asset,
            info: "BUILDER_FEE".to_owned(),
            time: update.transaction_time,
            tran_id: 0,
            trade_id: Some(fill.trade_id.0),
        });
    }
}
