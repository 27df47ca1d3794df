//! What the venue states about an order, a fill, a balance and a position, in events and responses
//! alike.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, ClientOrderId, InstrumentId, Time, TradeId, VenueOrderId};
use crate::order::{OrderStatus, PositionSide, Price, Qty};

/// An order object of a response: the venue's state of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderReport {
    /// `clientOrderId`.
    pub client_order_id: ClientOrderId,
    /// `orderId`.
    pub order_id: VenueOrderId,
    /// The instrument.
    pub instrument: InstrumentId,
    /// `status`.
    pub status: OrderStatus,
    /// `origQty`.
    pub orig_qty: Qty,
    /// `executedQty`.
    pub executed_qty: Qty,
    /// `cumQuote`.
    pub cum_quote: Amount,
    /// `updateTime`.
    pub update_time: Time,
}

/// One fill of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// `t`, unique per instrument.
    pub trade_id: TradeId,
    /// `L`.
    pub price: Price,
    /// `l`.
    pub qty: Qty,
    /// Price times quantity; `Y` on spot.
    pub quote_qty: Amount,
    /// `n`; positive if paid, 0 if the message omits it.
    pub fee: Amount,
    /// `N`.
    pub fee_asset: AssetId,
    /// `m`.
    pub maker: bool,
    /// `rp`: the realized profit as the venue states it, before fees. Futures only.
    pub realized_pnl: Option<Amount>,
}

/// One balance: `wb` and `bc` on futures; `f` and `l` on spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceUpdate {
    /// The asset.
    pub asset: AssetId,
    /// Wallet balance on futures; free plus locked on spot.
    pub total: Amount,
    /// Locked in open orders. On futures, the wallet balance less the available balance, where the
    /// venue reports it.
    pub locked: Amount,
    /// `bc`: change other than profit and commission; 0 on spot.
    pub change: Amount,
}

/// One position after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionUpdate {
    /// The instrument.
    pub instrument: InstrumentId,
    /// `ps`.
    pub position_side: PositionSide,
    /// `pa`, signed: negative when short.
    pub qty: Qty,
    /// `ep` times the quantity: the cost of the position, with the sign of the quantity.
    pub cost: Amount,
}
