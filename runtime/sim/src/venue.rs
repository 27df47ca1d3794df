//! The venue: market events and requests go in, replies and user events come out.
//!
//! # Contract
//! After every call of [`Venue::market`], [`Venue::request`] and [`Venue::timeout`], drain
//! [`Venue::poll`]. Times must not decrease. [`Venue::next_timeout`] is the time to call
//! [`Venue::timeout`]; a later call of any kind catches up first.
//!
//! # Order of messages
//! The reply to a request comes before the user events that it caused (real venues send either
//! first, docs/interface/README.md#2-user-events-twice-or-out-of-order). The events of one order
//! are: `NEW`, then each fill, then the end. Each fill is followed by its account event. A spot
//! order that locks or releases balance is followed by an account event too.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::protocol::{
    BalanceUpdate, OrderReport, Outcome, PositionUpdate, Reply, Request, UserEvent,
};
use windvane_model::{
    AssetId, ClientOrderId, Instrument, InstrumentId, MarketEvent, OrderTerms, PositionSide, Qty,
    Side, Surface, Time,
};

use crate::account::Account;
use crate::bracket::Brackets;
use crate::code::Code;
use crate::config::{QueueModel, Rate, Rates, VenueConfig, VenueConfigError};
use crate::margin_watch::Watch;
use crate::market::Market;
use crate::open_terms::OpenTerms;
use crate::order::Orders;
use crate::stream::StreamEvent;
use crate::trades::Trades;

/// A message of the venue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VenueMessage {
    /// The reply to a request.
    Reply(Reply),
    /// An event of a user data stream.
    User(UserEvent),
}

/// A simulated venue with one account.
#[derive(Debug, Serialize, Deserialize)]
pub struct Venue {
    pub(crate) now: Time,
    /// The time of the earliest timer.
    pub(crate) due: Time,
    pub(crate) markets: Vec<Market>,
    pub(crate) orders: Orders,
    pub(crate) account: Account,
    pub(crate) rates: Rates,
    /// The surcharge of the orders that are being placed.
    pub(crate) surcharge: Rate,
    pub(crate) queue: QueueModel,
    pub(crate) hedge: bool,
    pub(crate) multi_assets: bool,
    pub(crate) margin: Watch,
    /// An instrument whose position was closed or reversed.
    pub(crate) closed: Option<InstrumentId>,
    pub(crate) order_id: i64,
    pub(crate) trades: Trades,
    pub(crate) out: VecDeque<VenueMessage>,
    /// Choices for points that the documents leave open.
    #[serde(skip)]
    pub(crate) open_terms: OpenTerms,
    /// Complete user events, if they are enabled.
    #[serde(skip)]
    pub(crate) stream: Option<VecDeque<StreamEvent>>,
}

impl Venue {
    /// A venue with these instruments. An instrument's id is its index in the list.
    pub fn new(
        config: VenueConfig,
        instruments: Vec<Instrument>,
    ) -> Result<Self, VenueConfigError> {
        let rates = Rates::new(&config)?;
        let mut account = Account::default();
        let mut markets = Vec::with_capacity(instruments.len());
        for (n, instrument) in instruments.into_iter().enumerate() {
            account.admit(instrument.base);
            account.admit(instrument.quote);
            let id = InstrumentId(n as u16);
            let brackets = Brackets::single(rates.maintenance);
            markets.push(Market::new(id, instrument, config.leverage, brackets)?);
        }
        for (surface, asset, amount) in config.start_balance {
            if amount.0 < 0 {
                return Err(VenueConfigError::StartBalance {
                    surface,
                    asset: asset.0,
                    amount,
                });
            }
            account.admit(asset);
            match surface {
                Surface::Spot => account.spot_mut(asset).free += amount,
                Surface::Futures => *account.wallet_mut(asset) += amount,
            }
        }
        Ok(Self {
            now: Time(i64::MIN),
            due: Time::NEVER,
            trades: Trades::new(markets.len()),
            markets,
            orders: Orders::new(),
            account,
            rates,
            surcharge: Rate(0),
            queue: config.queue,
            hedge: config.hedge_mode,
            multi_assets: false,
            margin: Watch::default(),
            closed: None,
            order_id: 0,
            out: VecDeque::new(),
            open_terms: OpenTerms::default(),
            stream: None,
        })
    }

    /// Handles a public market event, at the venue's time.
    ///
    /// Events of unknown instruments are ignored.
    #[inline]
    pub fn market(&mut self, now: Time, instrument: InstrumentId, event: &MarketEvent<'_>) {
        self.advance(now);
        let Some(market) = self.markets.get_mut(usize::from(instrument.0)) else {
            return;
        };
        let alert = market.alert;
        match *event {
            MarketEvent::Trade {
                price,
                qty,
                buyer_is_maker,
                ..
            } => {
                market.last = price;
                let near_own = price <= alert.bid || price >= alert.ask;
                if near_own || price <= alert.last.0 || price >= alert.last.1 {
                    self.traded(instrument, price, qty, buyer_is_maker);
                }
            }
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => {
                let changed = market.book.top(update_id, bid, ask);
                let near_own = bid.price <= alert.bid || ask.price >= alert.ask;
                let twice = bid.price + ask.price;
                if near_own || twice <= alert.mid_twice.0 || twice >= alert.mid_twice.1 {
                    self.touched(instrument, changed);
                }
            }
            MarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => self.deepened(instrument, update_id, snapshot, [bids, asks]),
            MarketEvent::Gap => market.book.gap(),
            MarketEvent::Mark { .. } => self.marked(instrument, event),
        }
    }

    /// Handles a request that arrives at the venue.
    pub fn request(&mut self, now: Time, request: &Request) {
        self.advance(now);
        match request {
            Request::Place(order) => self.place_all(std::slice::from_ref(order), false),
            Request::PlaceBatch(orders) => self.place_all(orders, true),
            Request::Cancel {
                instrument,
                client_order_id,
            } => self.cancel_each(*instrument, std::slice::from_ref(client_order_id)),
            Request::CancelBatch {
                instrument,
                client_order_ids,
            } => self.cancel_each(*instrument, client_order_ids),
            Request::CancelAll { instrument } => self.cancel_all(*instrument),
            Request::Query {
                instrument,
                client_order_id,
            } => {
                let outcome = match self.find(*instrument, client_order_id) {
                    Some(key) => Outcome::Done(self.orders.at(key).report()),
                    None => refused(Code::NoSuchOrder),
                };
                self.reply(Reply::Queried {
                    client_order_id: *client_order_id,
                    outcome,
                });
            }
            Request::Countdown {
                instrument,
                countdown_ms,
            } => self.set_countdown(*instrument, *countdown_ms),
            Request::SetPositionMode { hedge } => self.set_position_mode(*hedge),
            Request::SetLeverage {
                instrument,
                leverage,
            } => self.set_leverage(*instrument, *leverage),
            Request::Read(subject) => self.read(*subject),
        }
        self.settle();
    }

    /// The next message of the venue. Call it until it returns `None`.
    #[inline]
    pub fn poll(&mut self) -> Option<VenueMessage> {
        self.out.pop_front()
    }

    /// Updates closing orders and margin after fills. Runs at the end of everything that can fill.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if let Some(instrument) = self.closed.take() {
            self.expire_closing(instrument);
        }
        if self.margin.dirty.is_some() {
            self.check_margin();
        }
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        self.out.push_back(VenueMessage::Reply(reply));
    }

    pub(crate) fn emit(&mut self, event: UserEvent) {
        self.out.push_back(VenueMessage::User(event));
    }

    pub(crate) fn at(&self, instrument: InstrumentId) -> &Market {
        &self.markets[usize::from(instrument.0)]
    }

    pub(crate) fn at_mut(&mut self, instrument: InstrumentId) -> &mut Market {
        &mut self.markets[usize::from(instrument.0)]
    }

    /// The market of an instrument id from outside.
    pub(crate) fn known(&self, instrument: InstrumentId) -> Option<&Market> {
        self.markets.get(usize::from(instrument.0))
    }
}

/// The venue's state, for reports and displays.
impl Venue {
    /// Balances of a surface that are not zero: on futures the wallet balance, on spot free plus
    /// locked.
    pub fn balances(&self, surface: Surface) -> impl Iterator<Item = BalanceUpdate> + '_ {
        let of = move |asset| self.balance(surface, asset);
        self.account.assets().map(of).filter(|b| b.total.0 != 0)
    }

    /// Positions that are not zero.
    pub fn positions(&self) -> impl Iterator<Item = PositionUpdate> + '_ {
        self.markets.iter().flat_map(|market| {
            let sides = PositionSide::ALL.iter();
            let all = sides.map(|side| self.position(market.id, *side));
            all.filter(|position| position.qty != Qty(0))
        })
    }

    /// Open orders of an instrument: those in the book by side, price and age, then the waiting
    /// ones.
    pub fn open_orders(&self, instrument: InstrumentId) -> impl Iterator<Item = OrderReport> + '_ {
        self.known(instrument).into_iter().flat_map(|market| {
            let resting = market.own.iter().flatten().map(|own| own.key);
            let keys = resting.chain(market.waiting.iter().copied());
            keys.map(|key| self.orders.at(key).report())
        })
    }

    /// The parameters of an order, as long as the venue keeps it.
    pub fn terms(&self, instrument: InstrumentId, id: &ClientOrderId) -> Option<&OrderTerms> {
        let key = self.find(instrument, id)?;
        Some(&self.orders.at(key).terms)
    }

    /// The best own bid or ask in the book, and the quantity of others ahead of it; `None` if that
    /// quantity is unknown.
    pub fn queue_ahead(&self, instrument: InstrumentId, side: Side) -> Option<(i64, Option<i64>)> {
        let own = self.known(instrument)?.own[side as usize].first()?;
        let ahead = (own.ahead < crate::queue::UNKNOWN / 2).then_some(own.ahead);
        Some((own.price, ahead))
    }

    /// Mark price of an instrument at scale 8: recorded, else mid, else last trade; `None` if
    /// unknown.
    pub fn mark_price(&self, instrument: InstrumentId) -> Option<i64> {
        let mark = self.known(instrument)?.mark_price();
        (mark != 0).then_some(mark)
    }

    pub(crate) fn balance(&self, surface: Surface, asset: AssetId) -> BalanceUpdate {
        let (total, locked) = match surface {
            Surface::Spot => {
                let balance = self.account.spot(asset);
                (balance.total(), balance.locked)
            }
            Surface::Futures => (self.account.wallet(asset), windvane_model::Amount::ZERO),
        };
        BalanceUpdate {
            asset,
            total,
            locked,
            change: windvane_model::Amount::ZERO,
        }
    }

    pub(crate) fn position(
        &self,
        instrument: InstrumentId,
        position_side: PositionSide,
    ) -> PositionUpdate {
        let position = self.at(instrument).position(position_side);
        PositionUpdate {
            instrument,
            position_side,
            qty: Qty(position.qty),
            cost: position.cost,
        }
    }
}

pub(crate) fn refused<T>(code: Code) -> Outcome<T> {
    Outcome::Refused(code.refusal())
}
