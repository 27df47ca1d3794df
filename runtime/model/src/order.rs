//! The parameters of an order (its terms): sides, types, times in force, statuses, and the order
//! itself.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{ClientOrderId, InstrumentId};

/// Price mantissa at the instrument's price scale.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Price(pub i64);

/// Quantity mantissa at the instrument's quantity scale.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Qty(pub i64);

/// Declares an enum with one line for each value: its name, its number and its word.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        #[repr(u8)]
        pub enum $name { $($(#[$item_doc])* $item = $code,)* }

        impl $name {
            /// Every value, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$item,)*];

            /// The value as the venue spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$item => $text,)* }
            }
            /// The number of this value in journals and in the strategy contract.
            #[inline]
            pub const fn code(self) -> u8 {
                self as u8
            }
            /// The value with this number; `None` for an unknown number.
            #[inline]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$item),)* _ => None }
            }
            /// The value with this spelling; `None` for an unknown one.
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$item),)* _ => None }
            }
        }

        impl std::str::FromStr for $name {
            /// The text is not one of the venue's values.
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::from_text(text).ok_or(())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The surface of the venue on which an instrument trades.
    Surface {
        /// Spot.
        Spot = 0, "spot";
        /// Perpetual futures.
        Futures = 1, "futures";
    }
}

words! {
    /// Side of an order.
    Side {
        /// Buys the base asset.
        Buy = 0, "BUY";
        /// Sells the base asset.
        Sell = 1, "SELL";
    }
}

impl Side {
    /// The other side.
    #[inline]
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
    /// +1 for a buy, -1 for a sell.
    #[inline]
    pub const fn sign(self) -> i64 {
        match self {
            Self::Buy => 1,
            Self::Sell => -1,
        }
    }
}

words! {
    /// Position side: `BOTH` in one-way mode and on spot, `LONG` or `SHORT` in hedge mode.
    PositionSide {
        /// One-way mode.
        Both = 0, "BOTH";
        /// The long position of hedge mode.
        Long = 1, "LONG";
        /// The short position of hedge mode.
        Short = 2, "SHORT";
    }
}

words! {
    /// Order type (docs/interface/orders.md#enumerations).
    OrderType {
        /// Limit order.
        Limit = 0, "LIMIT";
        /// Market order.
        Market = 1, "MARKET";
        /// Stop-limit order.
        Stop = 2, "STOP";
        /// Stop-market order.
        StopMarket = 3, "STOP_MARKET";
        /// Take-profit limit order.
        TakeProfit = 4, "TAKE_PROFIT";
        /// Take-profit market order.
        TakeProfitMarket = 5, "TAKE_PROFIT_MARKET";
        /// Trailing stop; futures only.
        TrailingStopMarket = 6, "TRAILING_STOP_MARKET";
        /// The venue's own liquidation order. It appears in user events and is never sent.
        Liquidation = 7, "LIQUIDATION";
    }
}

/// What the documents say of an order type, one bit each.
mod fact {
    pub const SPOT: u8 = 1;
    pub const FUTURES: u8 = 1 << 1;
    pub const CONDITIONAL: u8 = 1 << 2;
    pub const MARKET: u8 = 1 << 3;
    pub const TRAILING: u8 = 1 << 4;
}

impl OrderType {
    /// The table of the order types. The mandatory parameters are in `rules/parameters.rs`.
    const fn facts(self) -> u8 {
        use fact::{CONDITIONAL, FUTURES, MARKET, SPOT, TRAILING};
        match self {
            Self::Limit => SPOT | FUTURES,
            Self::Market => SPOT | FUTURES | MARKET,
            Self::Stop | Self::TakeProfit => SPOT | FUTURES | CONDITIONAL,
            Self::StopMarket | Self::TakeProfitMarket => SPOT | FUTURES | CONDITIONAL | MARKET,
            Self::TrailingStopMarket => FUTURES | CONDITIONAL | MARKET | TRAILING,
            Self::Liquidation => MARKET,
        }
    }

    /// Whether a client may send it on this surface.
    #[inline]
    pub const fn is_sent_on(self, surface: Surface) -> bool {
        let fact = match surface {
            Surface::Spot => fact::SPOT,
            Surface::Futures => fact::FUTURES,
        };
        self.facts() & fact != 0
    }
    /// Whether it waits for a trigger before it enters the book
    /// (docs/interface/futures.md#conditional-orders).
    #[inline]
    pub const fn is_conditional(self) -> bool {
        self.facts() & fact::CONDITIONAL != 0
    }
    /// Whether it executes at the best available prices, at once or after its trigger.
    #[inline]
    pub const fn is_market(self) -> bool {
        self.facts() & fact::MARKET != 0
    }
    /// Whether its trigger follows the price. The venue then reports the present trigger price as
    /// `stopPrice`, which is not a term of the order.
    #[inline]
    pub const fn is_trailing(self) -> bool {
        self.facts() & fact::TRAILING != 0
    }
}

words! {
    /// Time in force.
    TimeInForce {
        /// Good until cancelled.
        Gtc = 0, "GTC";
        /// Immediate or cancel.
        Ioc = 1, "IOC";
        /// Fill or kill.
        Fok = 2, "FOK";
        /// Post-only.
        Gtx = 3, "GTX";
        /// Not visible in the order book.
        Hidden = 4, "HIDDEN";
    }
}

words! {
    /// The price that triggers a conditional order.
    WorkingType {
        /// The mark price.
        MarkPrice = 0, "MARK_PRICE";
        /// The last trade price; the default.
        ContractPrice = 1, "CONTRACT_PRICE";
    }
}

words! {
    /// Order status as the venue reports it.
    OrderStatus {
        /// Accepted and open.
        New = 0, "NEW";
        /// Filled in part.
        PartiallyFilled = 1, "PARTIALLY_FILLED";
        /// Filled entirely.
        Filled = 2, "FILLED";
        /// Cancelled by the user or by the countdown.
        Canceled = 3, "CANCELED";
        /// Not accepted by the matching engine.
        Rejected = 4, "REJECTED";
        /// Cancelled by the matching engine (time in force, market order not fully filled, ...).
        Expired = 5, "EXPIRED";
        /// Liquidation with the insurance fund.
        NewInsurance = 6, "NEW_INSURANCE";
        /// Liquidation against a counterparty.
        NewAdl = 7, "NEW_ADL";
    }
}

impl OrderStatus {
    /// Whether this is a terminal state.
    #[inline]
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Filled | Self::Canceled | Self::Rejected | Self::Expired
        )
    }
}

words! {
    /// The type of an order event (`x` of a user event).
    ExecutionType {
        /// Accepted.
        New = 0, "NEW";
        /// Cancelled.
        Canceled = 1, "CANCELED";
        /// Rejected by the matching engine.
        Rejected = 2, "REJECTED";
        /// A fill.
        Trade = 3, "TRADE";
        /// Expired.
        Expired = 4, "EXPIRED";
        /// A liquidation execution.
        Calculated = 5, "CALCULATED";
    }
}

/// The terms of an order are all its parameters except its id
/// (docs/interface/orders.md#place-a-spot-order, docs/interface/orders.md#place-a-futures-order). A
/// strategy's intent and a request to the venue carry the same terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderTerms {
    /// The instrument.
    pub instrument: InstrumentId,
    /// `side`.
    pub side: Side,
    /// `positionSide`; [`PositionSide::Both`] is not sent.
    pub position_side: PositionSide,
    /// `type`.
    pub order_type: OrderType,
    /// `timeInForce`.
    pub time_in_force: Option<TimeInForce>,
    /// `quantity`.
    pub qty: Option<Qty>,
    /// `quoteOrderQty`; spot MARKET BUY.
    pub quote_qty: Option<Amount>,
    /// `price`.
    pub price: Option<Price>,
    /// `stopPrice`.
    pub stop_price: Option<Price>,
    /// `activationPrice`.
    pub activation_price: Option<Price>,
    /// `callbackRate` in parts per million of the price: 0.1 percent is 1,000.
    pub callback_ppm: Option<u32>,
    /// `reduceOnly`.
    pub reduce_only: bool,
    /// `closePosition`.
    pub close_position: bool,
    /// `workingType`. With `None` the parameter is not sent, which means `CONTRACT_PRICE`.
    pub working_type: Option<WorkingType>,
    /// `priceProtect`.
    pub price_protect: bool,
}

impl OrderTerms {
    /// Terms with only the fields that every order has.
    pub const fn new(instrument: InstrumentId, side: Side, order_type: OrderType) -> Self {
        Self {
            instrument,
            side,
            position_side: PositionSide::Both,
            order_type,
            time_in_force: None,
            qty: None,
            quote_qty: None,
            price: None,
            stop_price: None,
            activation_price: None,
            callback_ppm: None,
            reduce_only: false,
            close_position: false,
            working_type: None,
            price_protect: false,
        }
    }
}

/// A new order as it is sent to the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewOrder {
    /// `newClientOrderId`.
    pub client_order_id: ClientOrderId,
    /// All other parameters.
    pub terms: OrderTerms,
}
