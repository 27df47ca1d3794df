//! What a venue says when it is asked for the state of an account: open orders, balances and
//! positions, account trades. Reconciliation asks; nothing else does.
//!
//! What is not listed is not known: an empty list never wipes anything (spec 4, section 6,
//! point 14). Where a route lists everything, its reader states the zeros.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, ClientOrderId, InstrumentId, Time, TradeId, VenueOrderId};
use crate::instrument::Instrument;
use crate::order::{OrderTerms, PositionSide, Side, Surface};
use crate::protocol::{BalanceUpdate, Fill, OrderReport, PositionUpdate};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// Current open orders of every symbol (spec 1 and 2, Current open orders).
    OpenOrders {
        /// Surface.
        surface: Surface,
    },
    /// Balances, positions and modes: account information (spec 4, section 4), or the info
    /// endpoint by wallet address (spec 3).
    Account {
        /// Surface.
        surface: Surface,
    },
    /// Account trades (spec 4, section 4), oldest first.
    Trades {
        /// The instrument.
        instrument: InstrumentId,
        /// The first id of interest; `None` asks for the latest page.
        from: Option<TradeId>,
    },
    /// Orders by which the venue closed positions itself (spec 4, section 4, `forceOrders`).
    ForcedOrders {
        /// The instrument; futures only.
        instrument: InstrumentId,
    },
    /// Exchange information: the rules of every instrument (spec 1 and 2).
    Rules {
        /// Surface.
        surface: Surface,
    },
    /// Income history of the futures account (spec 4, section 4), oldest first.
    Income {
        /// The venue's time of the first entry of interest.
        from: Time,
    },
    /// Latest price on futures (spec 2, ticker price) of an asset that no configured instrument prices.
    AssetPrice {
        /// The base asset of the symbol.
        asset: AssetId,
        /// Its quote asset.
        quote: AssetId,
    },
    /// An order of others whose trades account trades list (spec 2, Query order).
    OutsideOrder {
        /// The instrument; futures only.
        instrument: InstrumentId,
        /// `orderId`.
        order_id: VenueOrderId,
    },
    /// The client order id of an order whose trades account trades list (spec 1 and 2, Query order).
    TradedOrder {
        /// The instrument.
        instrument: InstrumentId,
        /// `orderId`.
        order_id: VenueOrderId,
    },
    /// The newest orders of an instrument, whatever became of them (spec 1, Query all orders; spec 4,
    /// section 4, `allOrders`).
    NewestOrders {
        /// The instrument.
        instrument: InstrumentId,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truth {
    /// Every open order of the surface.
    OpenOrders(Vec<OpenOrder>),
    /// The account.
    Account(AccountTruth),
    /// A page of account trades.
    Trades {
        /// The oldest first.
        trades: Vec<AccountTrade>,
        /// The page was full: there may be more after its last id.
        more: bool,
    },
    /// The last orders by which the venue closed positions itself.
    ForcedOrders(Vec<OpenOrder>),
    /// The rules of the instruments that are listed.
    Rules(Vec<ListedRules>),
    /// A page of the income history.
    Income {
        /// The oldest first.
        entries: Vec<Income>,
        /// The page was full: there may be more after its last entry.
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

/// What moved a futures balance, as far as the loss limits treat it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IncomeKind {
    /// It came from elsewhere or went elsewhere: neither profit nor loss.
    Transfer,
    /// `FUNDING_FEE`.
    Funding,
    /// `REALIZED_PNL`, `COMMISSION`, `INSURANCE_CLEAR` and every word that is not known: profit or
    /// loss.
    Other,
}

/// One entry of the income history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Income {
    /// `incomeType`.
    pub kind: IncomeKind,
    /// `symbol`; `None` where it is of none, or of one that is not configured.
    pub instrument: Option<InstrumentId>,
    /// `asset`.
    pub asset: AssetId,
    /// `income`; negative where the balance fell.
    pub amount: Amount,
    /// `time`.
    pub time: Time,
}

/// An instrument's rules as they are now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRules {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The rules at the scales of this run, or why they do not fit these.
    pub rules: Result<Instrument, String>,
}

/// An order that rests at the venue, ours or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// Its state.
    pub report: OrderReport,
    /// Its terms.
    pub terms: OrderTerms,
}

/// An account of one surface at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountTruth {
    /// `canTrade`; `None` where it is not said.
    pub can_trade: Option<bool>,
    /// `dualSidePosition`; `None` where it is not said.
    pub hedge_mode: Option<bool>,
    /// `multiAssetsMargin`; `None` where it is not said.
    pub multi_assets: Option<bool>,
    /// Balances; `change` is 0.
    pub balances: Vec<BalanceUpdate>,
    /// Positions.
    pub positions: Vec<PositionUpdate>,
    /// Its source may be behind the order book (the info endpoint). Of a pending statement: a reading was taken
    /// since, and may be newer.
    pub lags: bool,
    /// The newest `updateTime` of what it lists (spec 4, section 4): whatever changed the account
    /// later is not in it. `None` where none is said.
    pub updated: Option<Time>,
}

impl AccountTruth {
    /// Adds what an older one says and this one does not.
    pub fn complete(&mut self, older: Self) {
        for balance in older.balances {
            if self.balances.iter().all(|told| told.asset != balance.asset) {
                self.balances.push(balance);
            }
        }
        for position in older.positions {
            let key = |told: &PositionUpdate| (told.instrument, told.position_side);
            if (self.positions.iter()).all(|told| key(told) != key(&position)) {
                self.positions.push(position);
            }
        }
    }
}

/// A position of the account with the unrealized profit that the venue states for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedPosition {
    /// `symbol`.
    pub symbol: String,
    /// The instrument; `None` where the symbol is not configured.
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

/// An order whose trades account trades list, or that is in the list of all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TradedOrder {
    /// `clientOrderId`.
    pub client_order_id: ClientOrderId,
    /// `time`: when the order was placed; zero if the answer lacks it.
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
