//! Typed events for strategies, converted from the integers of `on-event`.

use crate::instrument::InstrumentId;
use crate::number::{Amount, NONE, Price, Qty, Time};
use crate::order::{OrderId, PositionSide, Side, Surface};

/// A trade of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Price.
    pub price: Price,
    /// Quantity.
    pub qty: Qty,
    /// The venue's trade id.
    pub id: i64,
    /// Whether the buyer was the maker, so the seller was the aggressor.
    pub buyer_is_maker: bool,
}

/// The best bid and ask. A missing side has price and quantity 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookTop {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Best bid.
    pub bid: Price,
    /// Quantity of the best bid.
    pub bid_qty: Qty,
    /// Best ask.
    pub ask: Price,
    /// Quantity of the best ask.
    pub ask_qty: Qty,
}

impl BookTop {
    /// Whether both sides exist and do not cross.
    #[inline]
    pub const fn is_complete(&self) -> bool {
        self.bid.0 > 0 && self.bid.0 < self.ask.0
    }
}

/// A change of the order book. [`crate::Ctx::book`] returns its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookChange {
    /// The top after the change.
    pub top: BookTop,
    /// The venue's update id.
    pub update_id: i64,
    /// Whether a snapshot replaced the book.
    pub snapshot: bool,
    /// Whether updates were missed. The book is then incomplete until the next snapshot.
    pub gap: bool,
}

/// A bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Instrument.
    pub instrument: InstrumentId,
    /// First price.
    pub open: Price,
    /// Highest price.
    pub high: Price,
    /// Lowest price.
    pub low: Price,
    /// Last price.
    pub close: Price,
    /// Traded quantity.
    pub volume: Qty,
    /// Length in milliseconds.
    pub interval_ms: i64,
    /// Start of the bar.
    pub open_time: Time,
}

/// Mark price, index price and funding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPrice {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Mark price.
    pub mark: Amount,
    /// Index price.
    pub index: Amount,
    /// Funding rate.
    pub funding_rate: Amount,
    /// Time of the next funding.
    pub next_funding: Time,
}

/// A funding payment. A negative amount was paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funding {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Amount received.
    pub received: Amount,
    /// Rate.
    pub rate: Amount,
    /// Mark price.
    pub mark: Amount,
}

/// State of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderState {
    /// Submitted, not yet acknowledged by the venue.
    Submitted = 0,
    /// Resting in the book.
    New = 1,
    /// Partly filled, the rest is resting.
    PartiallyFilled = 2,
    /// A cancel is in flight.
    CancelRequested = 3,
    /// It is not known whether the venue has the order. The runtime finds out.
    Unknown = 4,
    /// Completely filled.
    Filled = 5,
    /// Cancelled.
    Canceled = 6,
    /// Refused by the venue.
    Rejected = 7,
    /// Ended by the venue: time in force, or a post-only order that would have crossed.
    Expired = 8,
}

impl OrderState {
    /// Converts a number of the contract. An unknown number becomes [`OrderState::Unknown`].
    #[inline]
    pub(crate) const fn from_code(code: i64) -> Self {
        match code {
            0 => Self::Submitted,
            1 => Self::New,
            2 => Self::PartiallyFilled,
            3 => Self::CancelRequested,
            5 => Self::Filled,
            6 => Self::Canceled,
            7 => Self::Rejected,
            8 => Self::Expired,
            _ => Self::Unknown,
        }
    }

    /// Whether the state is terminal.
    #[inline]
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Filled | Self::Canceled | Self::Rejected | Self::Expired
        )
    }
}

/// A new state of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderUpdate {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Number of the order.
    pub id: OrderId,
    /// State.
    pub state: OrderState,
    /// Executed quantity.
    pub executed: Qty,
    /// Remaining quantity.
    pub remaining: Qty,
    /// Average price of the executed quantity.
    pub average_price: Amount,
    /// The venue's error code, or 0.
    pub code: i64,
}

/// A complete or partial fill of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Number of the order.
    pub order: OrderId,
    /// Side of the order.
    pub side: Side,
    /// Price.
    pub price: Price,
    /// Quantity.
    pub qty: Qty,
    /// Fee paid.
    pub fee: Amount,
    /// Realized profit before fees.
    pub realized: Amount,
    /// The venue's trade id.
    pub trade_id: i64,
    /// Own position after the fill, signed.
    pub position: Qty,
    /// Whether the order was the maker.
    pub maker: bool,
}

/// A change of the own position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionUpdate {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Position side.
    pub side: PositionSide,
    /// Quantity, signed.
    pub qty: Qty,
    /// Cost, with the sign of the quantity.
    pub cost: Amount,
    /// Realized profit before fees.
    pub realized: Amount,
}

/// A change of the account's balance of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceUpdate {
    /// Surface.
    pub surface: Surface,
    /// Index of the asset in [`crate::Ctx::assets`].
    pub asset: u32,
    /// Total balance.
    pub total: Amount,
    /// Part of the balance that is locked in spot orders.
    pub locked: Amount,
}

/// The orders that the runtime currently permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeState {
    /// All orders.
    Ready,
    /// No new exposure: a stream is down or the state is being rebuilt.
    Degraded,
    /// None: own orders are cancelled, and new ones are refused until resume.
    Halted,
    /// No new exposure until resume.
    Paused,
}

/// The exchange changed the rules or the status of an instrument. [`crate::Ctx::instrument`]
/// returns the current rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulesUpdate {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Whether the instrument accepts orders.
    pub trading: bool,
    /// Whether the runtime can use the new rules. If not, only closing orders are sent until a
    /// restart.
    pub usable: bool,
}

/// Why the exchange closed a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForcedCloseKind {
    /// The margin was too small.
    Liquidation,
    /// Auto-deleveraging: the position was used as the other side of another account's liquidation.
    Adl,
    /// No known order explains the close. A person may have closed the position.
    Unreported,
}

/// The exchange closed a part of the strategy's own position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForcedClose {
    /// Instrument.
    pub instrument: InstrumentId,
    /// Position side.
    pub position_side: PositionSide,
    /// Reason of the close.
    pub kind: ForcedCloseKind,
    /// Side of the closing order: [`Side::Sell`] closes a long position.
    pub side: Side,
    /// Average price. `None` if only a balance shows the close.
    pub price: Option<Amount>,
    /// Closed quantity of this strategy.
    pub qty: Qty,
    /// This strategy's fee. `None` if the profit already includes it.
    pub fee: Option<Amount>,
    /// Realized profit before the fee.
    pub realized: Amount,
    /// Own position after the close, signed.
    pub position: Qty,
    /// The exchange's order id; 0 if it is not known.
    pub venue_order: i64,
}

const fn amount(value: i64) -> Option<Amount> {
    if value == NONE {
        None
    } else {
        Some(Amount(value))
    }
}

/// The event kind of changed rules.
pub(crate) const RULES: u32 = 13;

/// The raw arguments of `on-event` after time and sequence.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Raw {
    pub kind: u32,
    pub instrument: u32,
    pub flags: u32,
    pub a: i64,
    pub b: i64,
    pub c: i64,
    pub d: i64,
    pub e: i64,
    pub f: i64,
    pub id: i64,
}

impl Raw {
    #[inline]
    const fn instrument(&self) -> InstrumentId {
        InstrumentId(self.instrument)
    }

    #[inline]
    pub(crate) const fn trade(&self) -> Trade {
        Trade {
            instrument: self.instrument(),
            price: Price(self.a),
            qty: Qty(self.b),
            id: self.id,
            buyer_is_maker: self.flags & 1 != 0,
        }
    }

    #[inline]
    pub(crate) const fn book_top(&self) -> BookTop {
        BookTop {
            instrument: self.instrument(),
            bid: Price(self.a),
            bid_qty: Qty(self.b),
            ask: Price(self.c),
            ask_qty: Qty(self.d),
        }
    }

    #[inline]
    pub(crate) const fn book_change(&self) -> BookChange {
        BookChange {
            top: self.book_top(),
            update_id: self.id,
            snapshot: self.flags & 1 != 0,
            gap: self.flags & 2 != 0,
        }
    }

    #[inline]
    pub(crate) const fn bar(&self) -> Bar {
        Bar {
            instrument: self.instrument(),
            open: Price(self.a),
            high: Price(self.b),
            low: Price(self.c),
            close: Price(self.d),
            volume: Qty(self.e),
            interval_ms: self.f,
            open_time: Time::from_millis(self.id),
        }
    }

    #[inline]
    pub(crate) const fn mark_price(&self) -> MarkPrice {
        MarkPrice {
            instrument: self.instrument(),
            mark: Amount(self.a),
            index: Amount(self.b),
            funding_rate: Amount(self.c),
            next_funding: Time::from_millis(self.d),
        }
    }

    #[inline]
    pub(crate) const fn funding(&self) -> Funding {
        Funding {
            instrument: self.instrument(),
            received: Amount(self.a),
            rate: Amount(self.b),
            mark: Amount(self.c),
        }
    }

    #[inline]
    pub(crate) const fn order_update(&self) -> OrderUpdate {
        OrderUpdate {
            instrument: self.instrument(),
            id: OrderId(self.id),
            state: OrderState::from_code(self.a),
            executed: Qty(self.b),
            remaining: Qty(self.c),
            average_price: Amount(self.d),
            code: self.e,
        }
    }

    #[inline]
    pub(crate) const fn fill(&self) -> Fill {
        Fill {
            instrument: self.instrument(),
            order: OrderId(self.id),
            side: if self.flags & 2 == 0 {
                Side::Buy
            } else {
                Side::Sell
            },
            price: Price(self.a),
            qty: Qty(self.b),
            fee: Amount(self.c),
            realized: Amount(self.d),
            trade_id: self.e,
            position: Qty(self.f),
            maker: self.flags & 1 != 0,
        }
    }

    #[inline]
    pub(crate) const fn position(&self) -> PositionUpdate {
        PositionUpdate {
            instrument: self.instrument(),
            side: PositionSide::from_code(self.flags),
            qty: Qty(self.a),
            cost: Amount(self.b),
            realized: Amount(self.c),
        }
    }

    #[inline]
    pub(crate) const fn balance(&self) -> BalanceUpdate {
        BalanceUpdate {
            surface: if self.flags == 0 {
                Surface::Spot
            } else {
                Surface::Futures
            },
            asset: self.c as u32,
            total: Amount(self.a),
            locked: Amount(self.b),
        }
    }

    pub(crate) const fn rules(&self) -> RulesUpdate {
        RulesUpdate {
            instrument: self.instrument(),
            trading: self.flags & 1 != 0,
            usable: self.flags & 2 == 0,
        }
    }

    pub(crate) const fn forced_close(&self) -> ForcedClose {
        ForcedClose {
            instrument: self.instrument(),
            position_side: PositionSide::from_code(self.flags & 3),
            kind: match self.e {
                1 => ForcedCloseKind::Liquidation,
                2 => ForcedCloseKind::Adl,
                _ => ForcedCloseKind::Unreported,
            },
            side: if self.flags & 4 == 0 {
                Side::Buy
            } else {
                Side::Sell
            },
            price: amount(self.a),
            qty: Qty(self.b),
            fee: amount(self.c),
            realized: Amount(self.d),
            position: Qty(self.f),
            venue_order: self.id,
        }
    }

    #[inline]
    pub(crate) const fn runtime_state(&self) -> RuntimeState {
        match self.a {
            0 => RuntimeState::Ready,
            1 => RuntimeState::Degraded,
            2 => RuntimeState::Halted,
            _ => RuntimeState::Paused,
        }
    }
}
