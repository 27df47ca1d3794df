//! What is said between the runtime and a venue, real or simulated: requests, the answers to
//! them, and the events of the user data streams. Neither side sees the other's state.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, ClientOrderId, InstrumentId, Time, TradeId, VenueOrderId};
use crate::order::{
    ExecutionType, NewOrder, OrderStatus, OrderTerms, OrderType, PositionSide, Price, Qty, Side,
    Surface, TimeInForce,
};
use crate::truth::{StatedPosition, Subject, Truth};

/// A request to the venue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Place order (spec 1 and 2).
    Place(NewOrder),
    /// Place multiple orders, at most 5 (spec 2).
    PlaceBatch(Vec<NewOrder>),
    /// Cancel order by `origClientOrderId`.
    Cancel {
        /// The instrument.
        instrument: InstrumentId,
        /// `origClientOrderId`.
        client_order_id: ClientOrderId,
    },
    /// Cancel multiple orders, at most 10 (spec 2).
    CancelBatch {
        /// The instrument.
        instrument: InstrumentId,
        /// `origClientOrderIdList`.
        client_order_ids: Vec<ClientOrderId>,
    },
    /// Cancel all open orders of a symbol.
    CancelAll {
        /// The instrument.
        instrument: InstrumentId,
    },
    /// Auto-cancel all open orders: `countdownCancelAll` (spec 2).
    Countdown {
        /// The instrument; futures only.
        instrument: InstrumentId,
        /// `countdownTime`; 0 stops the timer.
        countdown_ms: u64,
    },
    /// Query order by `origClientOrderId`.
    Query {
        /// The instrument.
        instrument: InstrumentId,
        /// `origClientOrderId`.
        client_order_id: ClientOrderId,
    },
    /// Change position mode (spec 2): hedge or one-way, for every symbol.
    SetPositionMode {
        /// `dualSidePosition`.
        hedge: bool,
    },
    /// Change initial leverage (spec 4, section 4).
    SetLeverage {
        /// The instrument; futures only.
        instrument: InstrumentId,
        /// 1 to 125.
        leverage: u32,
    },
    /// Ask for the state of the account.
    Read(Subject),
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome<T> {
    /// The venue did it.
    Done(T),
    /// The venue refused; nothing happened.
    Refused(Refusal),
    /// It may or may not have happened: 503, a timeout, a cut connection, -1006, -1007
    /// (promise 2).
    Unknown,
}

/// A definite refusal: `{code, msg}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The venue's error code, negative.
    pub code: i32,
    /// The venue's message.
    pub msg: String,
}

/// The venue's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Place`], and one for each order of a [`Request::PlaceBatch`], in its order.
    Placed {
        /// The order that it speaks of.
        client_order_id: ClientOrderId,
        /// Outcome.
        outcome: Outcome<OrderReport>,
    },
    /// To [`Request::Cancel`], and one for each id of a [`Request::CancelBatch`].
    Canceled {
        /// The order that it speaks of.
        client_order_id: ClientOrderId,
        /// Outcome.
        outcome: Outcome<OrderReport>,
    },
    /// To [`Request::CancelAll`].
    CanceledAll {
        /// The instrument.
        instrument: InstrumentId,
        /// Outcome.
        outcome: Outcome<()>,
    },
    /// To [`Request::Countdown`].
    Countdown {
        /// The instrument.
        instrument: InstrumentId,
        /// `countdownTime` that is now in force.
        outcome: Outcome<u64>,
    },
    /// To [`Request::Query`].
    Queried {
        /// The order that it speaks of.
        client_order_id: ClientOrderId,
        /// Outcome.
        outcome: Outcome<OrderReport>,
    },
    /// To [`Request::SetPositionMode`].
    PositionMode {
        /// Outcome.
        outcome: Outcome<()>,
    },
    /// To [`Request::SetLeverage`].
    Leverage {
        /// The instrument.
        instrument: InstrumentId,
        /// The leverage now in force.
        outcome: Outcome<u32>,
    },
    /// To [`Request::Read`].
    Read {
        /// What was asked for.
        subject: Subject,
        /// Outcome.
        outcome: Outcome<Truth>,
    },
    /// What the answer to a read of the account says of leverage and margin types.
    Margins(Vec<MarginTerms>),
    /// Every position of the account that is not flat, as the reading that follows states it.
    Stated(Vec<StatedPosition>),
}

/// An order object of an answer: the venue's state of one order.
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

/// An event of a user data stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserEvent {
    /// `executionReport` (spot) or `ORDER_TRADE_UPDATE` (futures).
    Order(OrderUpdate),
    /// `outboundAccountPosition` (spot) or `ACCOUNT_UPDATE` (futures).
    Account(AccountUpdate),
    /// `MARGIN_CALL`.
    MarginCall,
    /// `ACCOUNT_CONFIG_UPDATE` with `ac`: the leverage of a symbol.
    Leverage {
        /// The instrument.
        instrument: InstrumentId,
        /// New leverage.
        leverage: u32,
    },
    /// `ACCOUNT_CONFIG_UPDATE` with `ai`: the position mode.
    PositionMode {
        /// Hedge mode.
        hedge: bool,
    },
    /// `ACCOUNT_CONFIG_UPDATE` with `ai`: the asset mode.
    AssetMode {
        /// Multi-assets margin.
        multi_assets: bool,
    },
    /// `ACCOUNT_UPDATE` with `MARGIN_TYPE_CHANGE`: the margin type of a symbol.
    MarginType {
        /// The instrument.
        instrument: InstrumentId,
        /// Isolated margin; crossed otherwise.
        isolated: bool,
    },
    /// Positions on symbols that are not configured, as an account event states them. What it does
    /// not list has not changed.
    Stated(Vec<StatedPosition>),
}

/// Leverage and margin type of a symbol, as far as they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginTerms {
    /// The instrument; futures only.
    pub instrument: InstrumentId,
    /// `leverage`.
    pub leverage: Option<u32>,
    /// Isolated margin; crossed otherwise.
    pub isolated: Option<bool>,
}

/// One order update of a user data stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderUpdate {
    /// `c`.
    pub client_order_id: ClientOrderId,
    /// `i`.
    pub order_id: VenueOrderId,
    /// The instrument of `s`.
    pub instrument: InstrumentId,
    /// `S`.
    pub side: Side,
    /// `ps`; `Both` on spot.
    pub position_side: PositionSide,
    /// `o`.
    pub order_type: OrderType,
    /// `f`.
    pub time_in_force: TimeInForce,
    /// `q`.
    pub orig_qty: Qty,
    /// `p`; 0 for market orders.
    pub price: Price,
    /// `sp` or `P`; 0 when unused.
    pub stop_price: Price,
    /// `R`.
    pub reduce_only: bool,
    /// `x`.
    pub execution: ExecutionType,
    /// `X`.
    pub status: OrderStatus,
    /// `z`.
    pub executed_qty: Qty,
    /// `T`.
    pub transaction_time: Time,
    /// `E`.
    pub event_time: Time,
    /// The fill, when the execution is one.
    pub fill: Option<Fill>,
}

impl OrderUpdate {
    /// An update of an order of which only its id is known, and that is not ours.
    pub fn external(instrument: InstrumentId, order_id: VenueOrderId) -> Self {
        Self {
            client_order_id: ClientOrderId::unknown(),
            order_id,
            instrument,
            side: Side::Buy,
            position_side: PositionSide::Both,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Gtc,
            orig_qty: Qty(0),
            price: Price(0),
            stop_price: Price(0),
            reduce_only: false,
            execution: ExecutionType::Trade,
            status: OrderStatus::PartiallyFilled,
            executed_qty: Qty(0),
            transaction_time: Time(0),
            event_time: Time(0),
            fill: None,
        }
    }

    /// The terms of its order, as far as the event tells them.
    pub fn terms(&self) -> OrderTerms {
        let known = |price: Price| (price.0 != 0).then_some(price);
        let mut terms = OrderTerms::new(self.instrument, self.side, self.order_type);
        terms.position_side = self.position_side;
        terms.time_in_force = Some(self.time_in_force);
        terms.qty = Some(self.orig_qty);
        terms.price = known(self.price);
        terms.stop_price = known(self.stop_price);
        terms.reduce_only = self.reduce_only;
        terms
    }

    /// The order before this event.
    pub fn report(&self) -> OrderReport {
        let filled = self.fill.map_or(0, |fill| fill.qty.0);
        OrderReport {
            client_order_id: self.client_order_id,
            order_id: self.order_id,
            instrument: self.instrument,
            status: OrderStatus::New,
            orig_qty: self.orig_qty,
            executed_qty: Qty(self.executed_qty.0 - filled),
            cum_quote: Amount::ZERO,
            update_time: self.event_time,
        }
    }
}

/// One fill of an own order.
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
    /// `n`; positive when paid. 0 when omitted.
    pub fee: Amount,
    /// `N`.
    pub fee_asset: AssetId,
    /// `m`.
    pub maker: bool,
    /// `rp`: the realized profit that the venue states, before fees; futures only.
    pub realized_pnl: Option<Amount>,
}

/// Reason of an account update (`m`), as far as the ledger treats it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum AccountReason {
    /// `ORDER`: a fill; its balance changes are already in the fill.
    Order = 0,
    /// `FUNDING_FEE`.
    FundingFee = 1,
    /// Deposits, withdrawals and transfers, which are neither profit nor loss; on spot whatever
    /// came or went outside of orders.
    Other = 2,
    /// What the venue charges or pays (`ADJUSTMENT`, options), and every reason
    /// that is not known: a profit or a loss.
    Charge = 3,
    /// `INSURANCE_CLEAR`: what the insurance fund paid after a liquidation, a profit or a loss.
    InsuranceClear = 4,
}

/// Balances and positions after a change. What is not listed has not changed: an empty list
/// never wipes anything (spec 4, section 6, point 14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountUpdate {
    /// Surface of the account.
    pub surface: Surface,
    /// `m`.
    pub reason: AccountReason,
    /// `B`.
    pub balances: Vec<BalanceUpdate>,
    /// `P`.
    pub positions: Vec<PositionUpdate>,
    /// `T`, the same each time that an event is sent; on spot, whose events have none, `E`.
    pub transaction_time: Time,
    /// `E`, by which events are ordered (spec 2, Events).
    pub event_time: Time,
}

/// One balance: `wb` and `bc` on futures; `f` and `l` on spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceUpdate {
    /// The asset.
    pub asset: AssetId,
    /// Wallet balance on futures; free plus locked on spot.
    pub total: Amount,
    /// Locked in open orders; on futures the wallet less what is available, where that is told.
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
    /// `ep` times the quantity: the cost of the position, signed like the quantity.
    pub cost: Amount,
}
