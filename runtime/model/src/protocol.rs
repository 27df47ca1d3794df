//! The messages between the runtime and a venue, real or simulated: requests, the replies to them,
//! and the events of the user data streams. Neither side sees the other's state.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{ClientOrderId, InstrumentId, Time, VenueOrderId};
use crate::order::{
    ExecutionType, NewOrder, OrderStatus, OrderTerms, OrderType, PositionSide, Price, Qty, Side,
    Surface, TimeInForce,
};
use crate::state_report::{StateReport, StatedPosition, Subject};

pub use crate::statement::{BalanceUpdate, Fill, OrderReport, PositionUpdate};

/// A request to the venue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Place order (docs/interface/orders.md#routes).
    Place(NewOrder),
    /// Place multiple orders, at most 5 (docs/interface/orders.md#place-several-orders).
    PlaceBatch(Vec<NewOrder>),
    /// Cancel order by `origClientOrderId`.
    Cancel {
        /// The instrument.
        instrument: InstrumentId,
        /// `origClientOrderId`.
        client_order_id: ClientOrderId,
    },
    /// Cancel multiple orders, at most 10 (docs/interface/orders.md#cancel-several-orders).
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
    /// Auto-cancel all open orders: `countdownCancelAll`
    /// (docs/interface/futures.md#countdowncancelall).
    Countdown {
        /// The instrument; futures only.
        instrument: InstrumentId,
        /// `countdownTime`; 0 disarms the countdown.
        countdown_ms: u64,
    },
    /// Query order by `origClientOrderId`.
    Query {
        /// The instrument.
        instrument: InstrumentId,
        /// `origClientOrderId`.
        client_order_id: ClientOrderId,
    },
    /// Change position mode (docs/interface/futures.md#position-mode): hedge or one-way, for every
    /// symbol.
    SetPositionMode {
        /// `dualSidePosition`.
        hedge: bool,
    },
    /// Change initial leverage (docs/interface/futures.md#leverage).
    SetLeverage {
        /// The instrument; futures only.
        instrument: InstrumentId,
        /// 1 to 125.
        leverage: u32,
    },
    /// Read a part of the account's state.
    Read(Subject),
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome<T> {
    /// The venue executed the request.
    Done(T),
    /// The venue rejected the request, and nothing changed.
    Refused(Refusal),
    /// The venue may or may not have executed it: 503, a timeout, a lost connection, -1006, -1007
    /// (`docs/promises.md#2-unknown-is-a-state`).
    Unknown,
}

/// A definite rejection: `{code, msg}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The venue's error code, negative.
    pub code: i32,
    /// The venue's message.
    pub msg: String,
}

/// The venue's reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Reply to [`Request::Place`]. A [`Request::PlaceBatch`] gets one for each of its orders, in
    /// the same order.
    Placed {
        /// The client order id of the order.
        client_order_id: ClientOrderId,
        /// Outcome.
        outcome: Outcome<OrderReport>,
    },
    /// Reply to [`Request::Cancel`]. A [`Request::CancelBatch`] gets one for each of its ids.
    Canceled {
        /// The client order id of the order.
        client_order_id: ClientOrderId,
        /// Outcome.
        outcome: Outcome<OrderReport>,
    },
    /// Reply to [`Request::CancelAll`].
    CanceledAll {
        /// The instrument.
        instrument: InstrumentId,
        /// Outcome.
        outcome: Outcome<()>,
    },
    /// Reply to [`Request::Countdown`].
    Countdown {
        /// The instrument.
        instrument: InstrumentId,
        /// The `countdownTime` that now applies.
        outcome: Outcome<u64>,
    },
    /// Reply to [`Request::Query`].
    Queried {
        /// The client order id of the order.
        client_order_id: ClientOrderId,
        /// Outcome.
        outcome: Outcome<OrderReport>,
    },
    /// Reply to [`Request::SetPositionMode`].
    PositionMode {
        /// Outcome.
        outcome: Outcome<()>,
    },
    /// Reply to [`Request::SetLeverage`].
    Leverage {
        /// The instrument.
        instrument: InstrumentId,
        /// The leverage that now applies.
        outcome: Outcome<u32>,
    },
    /// Reply to [`Request::Read`].
    Read {
        /// The subject of the request.
        subject: Subject,
        /// Outcome.
        outcome: Outcome<StateReport>,
    },
    /// Leverage and margin types, as an account snapshot states them.
    Margins(Vec<MarginTerms>),
    /// Every position of the account that is not flat, as the next account snapshot states it.
    Stated(Vec<StatedPosition>),
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
    /// Positions on symbols that are not configured, from an account event. Positions that are not
    /// listed have not changed.
    Stated(Vec<StatedPosition>),
}

/// Leverage and margin type of a symbol, as far as the venue reports them.
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
    /// The fill, if the event reports one.
    pub fill: Option<Fill>,
}

impl OrderUpdate {
    /// An update of an outside order of which only the id is known.
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

    /// The parameters of its order, as far as the event states them.
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

    /// The state of the order before this event.
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

/// Reason of an account update (`m`), grouped by how the ledger treats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum AccountReason {
    /// `ORDER`: a fill. The order event of the fill already covers the balance change.
    Order = 0,
    /// `FUNDING_FEE`.
    FundingFee = 1,
    /// Deposits, withdrawals and transfers, which are not profit or loss. On spot also every other
    /// change outside of orders.
    Other = 2,
    /// A charge or payment by the venue (`ADJUSTMENT`, options), or an unknown reason. It counts as
    /// profit or loss.
    Charge = 3,
    /// `INSURANCE_CLEAR`: a payment of the insurance fund after a liquidation. It counts as profit
    /// or loss.
    InsuranceClear = 4,
}

/// Balances and positions after a change. Entries that are not listed have not changed, so an empty
/// list never clears anything (docs/interface/README.md#14-partial-account-events).
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
    /// `T`, which is the same each time the venue sends the event. Spot events have no `T`; there
    /// it is `E`.
    pub transaction_time: Time,
    /// `E`, which orders the events (docs/interface/user-stream.md#order-of-events).
    pub event_time: Time,
}
