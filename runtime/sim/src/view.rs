//! The account as the REST routes show it: orders, balances, positions and margin. `query` fills
//! these types.

use windvane_model::{
    Amount, AssetId, ClientOrderId, InstrumentId, OrderStatus, OrderTerms, OrderType, PositionSide,
    Price, Qty, Surface, Time, TimeInForce, VenueOrderId,
};

/// An order, open or finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderView {
    /// `clientOrderId`.
    pub client_order_id: ClientOrderId,
    /// `orderId`.
    pub order_id: VenueOrderId,
    /// Surface.
    pub surface: Surface,
    /// Its parameters as sent. `origType` is the order type in them.
    pub terms: OrderTerms,
    /// `type`: LIMIT or MARKET after its condition has held, else the type as sent.
    pub order_type: OrderType,
    /// `timeInForce`.
    pub time_in_force: TimeInForce,
    /// `status`.
    pub status: OrderStatus,
    /// `origQty`.
    pub qty: Qty,
    /// `executedQty`.
    pub executed: Qty,
    /// `cumQuote`.
    pub cum_quote: Amount,
    /// `avgPrice`, scale 8; 0 without a fill.
    pub average_price: i64,
    /// `activatePrice` of a trailing stop.
    pub activation_price: Option<Price>,
    /// `time`.
    pub created: Time,
    /// `updateTime`.
    pub updated: Time,
}

/// One spot balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpotBalance {
    /// The asset.
    pub asset: AssetId,
    /// `free`.
    pub free: Amount,
    /// `locked`.
    pub locked: Amount,
}

/// The futures account of one margin asset (docs/interface/account.md#futures-balances,
/// docs/interface/account.md#futures-account).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuturesBalance {
    /// The asset.
    pub asset: AssetId,
    /// `walletBalance`, including isolated wallets.
    pub wallet: Amount,
    /// `crossWalletBalance`, without isolated wallets.
    pub cross_wallet: Amount,
    /// `crossUnPnl`: unrealized profit of crossed positions.
    pub cross_unrealized: Amount,
    /// `unrealizedProfit` of all positions.
    pub unrealized: Amount,
    /// `positionInitialMargin`.
    pub position_margin: Amount,
    /// `openOrderInitialMargin`.
    pub open_order_margin: Amount,
    /// `maintMargin`.
    pub maintenance_margin: Amount,
    /// `availableBalance`, not negative.
    pub available: Amount,
    /// `maxWithdrawAmount`: available without unrealized profit.
    pub max_withdraw: Amount,
}

/// A position side of a futures symbol (docs/interface/futures.md#position-risk), with or without a
/// position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionView {
    /// The instrument.
    pub instrument: InstrumentId,
    /// `positionSide`.
    pub position_side: PositionSide,
    /// `positionAmt`, negative when short.
    pub qty: Qty,
    /// Entry price times quantity, with the sign of the quantity.
    pub cost: Amount,
    /// `entryPrice`, scale 8; 0 without a position.
    pub entry_price: i64,
    /// `markPrice`, scale 8; 0 if unknown.
    pub mark_price: i64,
    /// `liquidationPrice`, scale 8, with the prices of other symbols unchanged; 0 if there is no
    /// such price.
    pub liquidation_price: i64,
    /// Value at the mark price, with the sign of the quantity.
    pub notional: Amount,
    /// `unRealizedProfit`.
    pub unrealized: Amount,
    /// `cr`: profit before fees that was realized so far.
    pub realized: Amount,
    /// `leverage`.
    pub leverage: u32,
    /// `maxNotionalValue` at that leverage.
    pub notional_max: Amount,
    /// `marginType`.
    pub isolated: bool,
    /// `isolatedWallet`: 0 in cross margin.
    pub isolated_wallet: Amount,
    /// `positionInitialMargin`.
    pub position_margin: Amount,
    /// `openOrderInitialMargin`.
    pub open_order_margin: Amount,
    /// `maintMargin`.
    pub maintenance_margin: Amount,
    /// `adlQuantile`: 0 without profit, else 1 to 4 by profit over initial margin.
    pub adl_quantile: u8,
    /// `updateTime`.
    pub updated: Time,
}
