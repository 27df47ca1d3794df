//! User events with all fields of their wire format (docs/interface/user-stream.md#user-stream),
//! for a server that sends that format. The engine's
//! [`UserEvent`](windvane_model::protocol::UserEvent) has fewer fields: only those that a
//! strategy's runtime uses.
//!
//! A venue made with [`Venue::with_stream`](crate::Venue::with_stream) returns every user event through [`Venue::poll_stream`](crate::Venue::poll_stream)
//! and none through [`Venue::poll`](crate::Venue::poll), which then returns only replies. Their order is the same.

use windvane_model::protocol::{AccountReason, OrderUpdate};
use windvane_model::{Amount, InstrumentId, Price, Time, TradeId};

use crate::view::{FuturesBalance, OrderView, PositionView, SpotBalance};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// Why balances or positions changed: `m` of an account update
        /// (docs/interface/user-stream.md#account_update).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause { $($(#[$doc])* $name,)* }

        impl Cause {
            /// Every cause.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The cause as the venue spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

causes! {
    /// A deposit.
    Deposit = "DEPOSIT";
    /// A withdrawal.
    Withdraw = "WITHDRAW";
    /// A fill, or an order that locks or releases balance.
    Order = "ORDER";
    /// A funding payment.
    FundingFee = "FUNDING_FEE";
    /// A withdrawal that was returned.
    WithdrawReject = "WITHDRAW_REJECT";
    /// A correction by the venue.
    Adjustment = "ADJUSTMENT";
    /// A payment of the insurance fund.
    InsuranceClear = "INSURANCE_CLEAR";
    /// A deposit by the venue.
    AdminDeposit = "ADMIN_DEPOSIT";
    /// A withdrawal by the venue.
    AdminWithdraw = "ADMIN_WITHDRAW";
    /// Margin of an isolated position was added or reduced.
    MarginTransfer = "MARGIN_TRANSFER";
    /// The margin type of a symbol changed.
    MarginTypeChange = "MARGIN_TYPE_CHANGE";
    /// A transfer between the surfaces, or to another account.
    AssetTransfer = "ASSET_TRANSFER";
    /// An exchange of assets in multi-assets mode.
    AutoExchange = "AUTO_EXCHANGE";
}

impl Cause {
    pub(crate) const fn reason(self) -> AccountReason {
        match self {
            Self::Order => AccountReason::Order,
            Self::FundingFee => AccountReason::FundingFee,
            Self::Adjustment => AccountReason::Charge,
            Self::InsuranceClear => AccountReason::InsuranceClear,
            _ => AccountReason::Other,
        }
    }
}

/// One user event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// `executionReport` or `ORDER_TRADE_UPDATE`.
    Order(Box<OrderEvent>),
    /// `outboundAccountPosition`.
    Spot {
        /// `m`.
        cause: Cause,
        /// `B`.
        balances: Vec<SpotBalance>,
        /// `T`.
        time: Time,
    },
    /// `ACCOUNT_UPDATE`.
    Futures {
        /// `m`.
        cause: Cause,
        /// `B`: the balance, and `bc`.
        balances: Vec<(FuturesBalance, Amount)>,
        /// `P`.
        positions: Vec<PositionView>,
        /// `T`.
        time: Time,
    },
    /// `MARGIN_CALL`.
    MarginCall {
        /// `cw`; `None` if the call is for an isolated position.
        cross_wallet: Option<Amount>,
        /// `p`: the positions in danger.
        positions: Vec<PositionView>,
        /// The time of the call.
        time: Time,
    },
    /// `ACCOUNT_CONFIG_UPDATE` with `ac`.
    Leverage {
        /// `s`.
        instrument: InstrumentId,
        /// `l`.
        leverage: u32,
        /// `T`.
        time: Time,
    },
    /// `ACCOUNT_CONFIG_UPDATE` with `ai`.
    Config {
        /// `j`.
        multi_assets: bool,
        /// `d`.
        hedge: bool,
        /// `T`.
        time: Time,
    },
}

/// The counterparty of a fill. A venue for several accounts makes one public market from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The displayed quantity of the other side at this price. The order was the taker, or the
    /// maker if the other side came to its price.
    Level(i64),
    /// A public trade that the venue received.
    Trade,
    /// An order of another account ([`Venue::meet`](crate::Venue::meet)).
    Order(Deal),
    /// A counterparty that is not in the book ([`Venue::fill_order`](crate::Venue::fill_order)).
    Outside,
    /// The insurance fund, or the counterparty of auto-deleveraging: not part of the market.
    Fund,
}

/// A trade with another account, from the view of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deal {
    /// Its id, the same for both.
    pub trade_id: TradeId,
    /// Its price, the same for both.
    pub price: Price,
    /// Whether this account was the maker.
    pub maker: bool,
}

/// An order update, with the order after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderEvent {
    /// The update.
    pub update: OrderUpdate,
    /// The order after it.
    pub order: OrderView,
    /// Notional of the open buys and sells of its position side: `b` and `a`. Futures only.
    pub open_notional: [Amount; 2],
    /// The counterparty of the fill, if this is a fill.
    pub met: Option<Met>,
}
