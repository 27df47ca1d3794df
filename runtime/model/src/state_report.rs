//! The venue's state of an account, as REST reports it: open orders, balances and positions, and
//! the account's trades. Only reconciliation requests it.
//!
//! Entries that are not listed are unknown, so an empty list never clears anything
//! (docs/interface/README.md#14-partial-account-events). If a route lists everything, its reader
//! adds the zeros explicitly.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, ClientOrderId, InstrumentId, Time, TradeId, VenueOrderId};
use crate::instrument::Instrument;
use crate::order::{OrderTerms, PositionSide, Side, Surface};
use crate::statement::{BalanceUpdate, Fill, OrderReport, PositionUpdate};

/// The subject of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// Current open orders of every symbol (docs/interface/orders.md#open-orders).
    OpenOrders {
        /// Surface.
        surface: Surface,
    },
    /// Balances, positions and modes: account information
    /// (docs/interface/account.md#futures-account), or the info endpoint by wallet address
    /// (docs/interface/chain.md#info-endpoint).
    Account {
        /// Surface.
        surface: Surface,
    },
    /// The venue's list of the account's trades ("account trades",
    /// docs/interface/account.md#futures-trades), oldest first.
    Trades {
        /// The instrument.
        instrument: InstrumentId,
        /// The first trade id to return; `None` requests the latest page.
        from: Option<TradeId>,
    },
    /// The venue's own orders that closed positions (docs/interface/futures.md#forced-orders).
    ForcedOrders {
        /// The instrument; futures only.
        instrument: InstrumentId,
    },
    /// Exchange information: the rules of every instrument
    /// (docs/interface/market-data.md#exchange-information).
    Rules {
        /// Surface.
        surface: Surface,
    },
    /// Income history of the futures account (docs/interface/account.md#income), oldest first.
    Income {
        /// The venue's time of the first entry to return.
        from: Time,
    },
    /// Latest price on futures (docs/interface/market-data.md#futures-market-data) of an asset for
    /// which no configured instrument has a price.
    AssetPrice {
        /// The base asset of the symbol.
        asset: AssetId,
        /// Its quote asset.
        quote: AssetId,
    },
    /// An outside order with a trade in the venue's list of the account's trades
    /// (docs/interface/orders.md#query-an-order).
    OutsideOrder {
        /// The instrument; futures only.
        instrument: InstrumentId,
        /// `orderId`.
        order_id: VenueOrderId,
    },
    /// The client order id of an order with a trade in the venue's list of the account's trades
    /// (docs/interface/orders.md#query-an-order).
    TradedOrder {
        /// The instrument.
        instrument: InstrumentId,
        /// `orderId`.
        order_id: VenueOrderId,
    },
    /// The newest orders of an instrument in any state (docs/interface/orders.md#all-orders).
    NewestOrders {
        /// The instrument.
        instrument: InstrumentId,
    },
}

/// The response to a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateReport {
    /// Every open order of the surface.
    OpenOrders(Vec<OpenOrder>),
    /// The account.
    Account(AccountSnapshot),
    /// A page of the list of the account's trades.
    Trades {
        /// Oldest first.
        trades: Vec<AccountTrade>,
        /// Whether the page was full, so that more trades may follow its last id.
        more: bool,
    },
    /// The venue's latest own orders that closed positions.
    ForcedOrders(Vec<OpenOrder>),
    /// The rules of the listed instruments.
    Rules(Vec<ListedRules>),
    /// A page of the income history.
    Income {
        /// Oldest first.
        entries: Vec<Income>,
        /// Whether the page was full, so that more entries may follow its last one.
        more: bool,
    },
    /// The price of one unit of an asset.
    AssetPrice(Amount),
    /// One order.
    OutsideOrder(Box<OpenOrder>),
    /// The client order id of an order.
    TradedOrder(TradedOrder),
    /// The newest orders of an instrument.
    NewestOrders(Vec<TradedOrder>),
}

/// Kinds of changes of a futures balance, grouped by how the loss limits treat them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IncomeKind {
    /// A deposit, withdrawal or transfer: it is not profit or loss.
    Transfer,
    /// `FUNDING_FEE`.
    Funding,
    /// `REALIZED_PNL`, `COMMISSION`, `INSURANCE_CLEAR` or an unknown type. It counts as profit or
    /// loss.
    Other,
}

/// One entry of the income history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Income {
    /// `incomeType`.
    pub kind: IncomeKind,
    /// `symbol`; `None` if the entry has no symbol or a symbol that is not configured.
    pub instrument: Option<InstrumentId>,
    /// `asset`.
    pub asset: AssetId,
    /// `income`; negative if the balance decreased.
    pub amount: Amount,
    /// `time`.
    pub time: Time,
}

/// The current rules of an instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRules {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The rules at the scales of this run, or why they do not fit these scales.
    pub rules: Result<Instrument, String>,
}

/// An open order at the venue, own or outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// The state of the order.
    pub report: OrderReport,
    /// The parameters of the order.
    pub terms: OrderTerms,
}

/// A snapshot of the account on one surface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSnapshot {
    /// `canTrade`; `None` if the venue does not state it.
    pub can_trade: Option<bool>,
    /// `dualSidePosition`; `None` if the venue does not state it.
    pub hedge_mode: Option<bool>,
    /// `multiAssetsMargin`; `None` if the venue does not state it.
    pub multi_assets: Option<bool>,
    /// Balances. Their `change` is 0.
    pub balances: Vec<BalanceUpdate>,
    /// Positions.
    pub positions: Vec<PositionUpdate>,
    /// Whether its source may be older than the order book (the info endpoint). For a pending
    /// account event: whether a snapshot was taken since, which may be newer.
    pub lags: bool,
    /// The newest `updateTime` in it (docs/interface/account.md#futures-account). It does not
    /// contain any later change. `None` if the venue states no time.
    pub updated: Option<Time>,
}

impl AccountSnapshot {
    /// Adds the balances and positions that only an older snapshot has.
    pub fn complete(&mut self, older: Self) {
        for balance in older.balances {
            if self
                .balances
                .iter()
                .all(|reported| reported.asset != balance.asset)
            {
                self.balances.push(balance);
            }
        }
        for position in older.positions {
            let key = |reported: &PositionUpdate| (reported.instrument, reported.position_side);
            if (self.positions.iter()).all(|reported| key(reported) != key(&position)) {
                self.positions.push(position);
            }
        }
    }
}

/// A position of the account, with the unrealized profit that the venue states for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedPosition {
    /// `symbol`.
    pub symbol: String,
    /// The instrument; `None` if the symbol is not configured.
    pub instrument: Option<InstrumentId>,
    /// `positionSide`.
    pub position_side: PositionSide,
    /// `positionAmt`, signed: negative when short.
    pub qty: Amount,
    /// `entryPrice`.
    pub entry_price: Amount,
    /// `unrealizedProfit`.
    pub unrealized: Amount,
}

/// The identity of an order, from the list of the account's trades or from the list of all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TradedOrder {
    /// `clientOrderId`.
    pub client_order_id: ClientOrderId,
    /// `time`: when the order was placed; zero if the response lacks it.
    pub placed: Time,
}

/// A trade of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountTrade {
    /// `orderId`.
    pub order_id: VenueOrderId,
    /// `side`.
    pub side: Side,
    /// `positionSide`; `Both` on spot.
    pub position_side: PositionSide,
    /// Price, quantity, fee and id.
    pub fill: Fill,
    /// `time`.
    pub time: Time,
}
