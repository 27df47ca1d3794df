//! Own orders: the live ones, and the most recently ended ones for late and duplicate updates.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::decimal::{AMOUNT_ONE, Amount, div_half_even, pow10};
use crate::ids::{ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time, TradeId, VenueOrderId};
use crate::instrument::Instrument;
use crate::order::{ExecutionType, NewOrder, OrderStatus, OrderTerms, Price, Qty, TimeInForce};
use crate::order_state::{OrderMove, OrderState};
use crate::planted;
use crate::protocol::OrderUpdate;

/// How many ended orders are kept, so that a late fill still finds its order.
const ENDED_MAX: usize = 4096;

/// How long the venue has been denying an order: it had confirmed the order, and now reports that
/// it does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// The number of consecutive replies that denied the order.
    pub times: u32,
    /// Time of the last of these replies.
    last: Time,
    /// Total time between these replies, milliseconds. A gap counts as at most one minute.
    contact_ms: i64,
    /// The number of lists of open orders that lacked the order since the first reply that denied
    /// it.
    pub unlisted: u32,
}

impl Denied {
    /// The state after the first reply that denies the order.
    pub const fn first(now: Time) -> Self {
        Self {
            times: 1,
            last: now,
            contact_ms: 0,
            unlisted: 0,
        }
    }

    /// Counts another reply that denies the order.
    pub fn again(&mut self, now: Time) {
        const SILENCE_MS: i64 = 60_000;
        let ms = (now.0 - self.last.0) / 1_000_000;
        self.contact_ms += ms.clamp(0, SILENCE_MS);
        self.times = self.times.saturating_add(1);
        self.last = now;
    }

    /// Delay until the next query, milliseconds. It grows with each reply.
    pub fn pause_ms(&self) -> i64 {
        const PAUSE_MS: (i64, i64) = (1_000, 30_000);
        (PAUSE_MS.0 << (self.times - 1).min(5)).min(PAUSE_MS.1)
    }

    /// Whether queries and lists of open orders denied the order long enough to treat it as ended.
    pub const fn is_conclusive_after(&self, contact_ms: i64) -> bool {
        self.contact_ms >= contact_ms && self.unlisted > 1
    }
}

/// Queries about an order. A response does not show which of several equal queries it belongs to.
/// So only a query that was the only one in flight shows the state of the order at a known time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderQueries {
    /// The number of queries in flight.
    open: u32,
    /// Send time of the query in flight, if it is the only one.
    alone: Option<Time>,
    /// Send time of the last query to which the venue replied that it does not know the order.
    absent: Option<Time>,
}

impl OrderQueries {
    /// Counts a query that is sent.
    pub fn ask(&mut self, now: Time) {
        self.alone = (self.open == 0).then_some(now);
        self.open = self.open.saturating_add(1);
    }

    /// Counts a response. `denied` means that the venue does not know the order.
    pub fn answered(&mut self, denied: bool) {
        self.open = self.open.saturating_sub(1);
        if let Some(at) = self.alone.take()
            && denied
        {
            self.absent = Some(at);
        }
    }

    /// Whether a single query is in flight and its response is due soon. A second query would make
    /// both responses ambiguous.
    pub fn is_awaited(&self, now: Time) -> bool {
        const AWAITED_MS: i64 = 3_000;
        self.alone.is_some_and(|at| now < at.plus_ms(AWAITED_MS))
    }

    /// Whether the venue did not know the order at that time.
    pub fn was_absent_at(&self, time: Time) -> bool {
        self.absent.is_some_and(|asked| asked >= time)
    }
}

/// One own order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number.
    pub seq: OrderSeq,
    /// Its client order id, chosen before it is sent.
    pub client_order_id: ClientOrderId,
    /// The strategy that owns it.
    pub strategy: StrategyId,
    /// The order's parameters as sent.
    pub terms: OrderTerms,
    /// State.
    pub state: OrderState,
    /// Time when its intent entered the engine.
    pub submitted: Time,
    /// `orderId`, once known.
    pub venue_order_id: Option<VenueOrderId>,
    /// Quantity of the booked fills, mantissa.
    pub executed_qty: i64,
    /// Quote amount of the booked fills.
    pub cum_quote: Amount,
    /// The largest executed quantity that the venue reported. It exceeds `executed_qty` while a
    /// fill is missing.
    pub reported_qty: i64,
    /// Quantity that still counts as open exposure, mantissa.
    pub reserved_qty: i64,
    /// The venue's error code if it rejected the order; 0 otherwise.
    pub refusal_code: i32,
    /// Whether it is held back because its symbol's dead man's switch is not armed. Only in a live
    /// run.
    pub held: bool,
    /// Whether a cancel was requested. A lost cancel is sent again while the order is open.
    pub cancel_wanted: bool,
    /// Time when the venue rejected its cancel. Only in a live run.
    pub cancel_refused: Option<Time>,
    /// Time when REST first confirmed it.
    pub confirmed: Option<Time>,
    /// Whether the user stream reported it.
    pub on_stream: bool,
    /// Time when the outcome of its request was lost.
    pub lost: Option<Time>,
    /// Set while the venue reports that it does not know the order, although it had confirmed it.
    /// Only in a live run.
    pub denied: Option<Denied>,
    /// Queries about it. Only in a live run.
    pub queries: OrderQueries,
    /// Time when it reached a terminal state in the engine.
    pub ended: Option<Time>,
    /// The venue's time of the message that reported a terminal state; `None` if the engine
    /// concluded it.
    pub reported_final: Option<Time>,
    /// Time since which a fill that the venue reported is missing.
    pub missing_since: Option<Time>,
    /// Executed quantity up to which fills were derived from order totals. A fill event within this
    /// quantity arrives too late and is a duplicate.
    pub recovered_qty: i64,
    /// Quantity of fills that were derived from order totals and whose trades have not been
    /// reported since.
    pub derived_qty: i64,
    /// How often the engine read the list of the account's trades without finding the missing fill.
    pub trade_reads: u32,
    /// The trade ids of booked fills. Most orders have only one, so the first is stored inline.
    first_trade: Option<TradeId>,
    more_trades: Vec<TradeId>,
}

impl Order {
    /// A new order in state `Submitted`.
    pub fn new(
        seq: OrderSeq,
        client_order_id: ClientOrderId,
        strategy: StrategyId,
        terms: OrderTerms,
        submitted: Time,
        reserved_qty: i64,
    ) -> Self {
        Self {
            seq,
            client_order_id,
            strategy,
            terms,
            state: OrderState::Submitted,
            submitted,
            venue_order_id: None,
            executed_qty: 0,
            cum_quote: Amount::ZERO,
            reported_qty: 0,
            reserved_qty,
            refusal_code: 0,
            held: false,
            cancel_wanted: false,
            cancel_refused: None,
            confirmed: None,
            on_stream: false,
            lost: None,
            denied: None,
            queries: OrderQueries::default(),
            ended: None,
            reported_final: None,
            missing_since: None,
            recovered_qty: 0,
            derived_qty: 0,
            trade_reads: 0,
            first_trade: None,
            more_trades: Vec::new(),
        }
    }

    /// The instrument.
    pub const fn instrument(&self) -> InstrumentId {
        self.terms.instrument
    }

    /// Applies a move of the table. Returns false if the table does not allow it.
    pub fn apply(&mut self, mv: OrderMove) -> bool {
        let Some(mut state) = self.state.after(mv) else {
            return false;
        };
        if mv == OrderMove::CancelRefused && self.executed_qty > 0 {
            state = OrderState::PartiallyFilled;
        }
        self.state = state;
        true
    }

    /// Adds a fill to the totals. Returns `false` if its trade id was already counted.
    pub fn count_fill(&mut self, trade_id: TradeId, qty: i64, quote: Amount) -> bool {
        let known = self.first_trade == Some(trade_id) || self.more_trades.contains(&trade_id);
        if known && !planted!(FillsNotDeduplicated) {
            return false;
        }
        if self.state.is_final() && planted!(LateFillDropped) {
            return false;
        }
        match self.first_trade {
            None => self.first_trade = Some(trade_id),
            Some(_) => self.more_trades.push(trade_id),
        }
        self.executed_qty += qty;
        self.cum_quote += quote;
        true
    }

    /// Handles a trade that is reported after fills were derived from order totals, and that may be
    /// one of these fills. Returns the part of its quantity that is not booked yet.
    pub fn absorb_trade(&mut self, trade_id: TradeId, qty: i64) -> i64 {
        let known = self.first_trade == Some(trade_id) || self.more_trades.contains(&trade_id);
        if known || self.derived_qty == 0 {
            return qty;
        }
        let late = qty.min(self.derived_qty);
        self.derived_qty -= late;
        if late == qty {
            self.more_trades.push(trade_id);
        }
        qty - late
    }

    /// Whether the venue has had the order. If so, a reply that the venue does not know it does not
    /// mean that it never arrived.
    pub const fn is_confirmed(&self) -> bool {
        self.venue_order_id.is_some() || self.executed_qty > 0
    }

    /// Reopens an order that turns out to be open. Every conclusion from its supposed end is
    /// discarded.
    fn revive(&mut self, reserved_qty: i64) {
        self.state = OrderState::Unknown;
        self.reserved_qty = reserved_qty;
        self.refusal_code = 0;
        self.ended = None;
        self.reported_final = None;
        self.denied = None;
        self.lost = None;
        self.confirmed = None;
        self.cancel_refused = None;
    }

    /// Whether it is in a terminal state and all fills that the venue reported are booked.
    pub const fn is_settled(&self) -> bool {
        self.state.is_final() && self.executed_qty >= self.reported_qty
    }

    /// The request that places it.
    pub const fn request(&self) -> NewOrder {
        NewOrder {
            client_order_id: self.client_order_id,
            terms: self.terms,
        }
    }

    /// An order event with its terms and without a fill.
    pub fn as_update(&self) -> OrderUpdate {
        let zero = Price(0);
        OrderUpdate {
            client_order_id: self.client_order_id,
            order_id: self.venue_order_id.unwrap_or_default(),
            instrument: self.instrument(),
            side: self.terms.side,
            position_side: self.terms.position_side,
            order_type: self.terms.order_type,
            time_in_force: self.terms.time_in_force.unwrap_or(TimeInForce::Gtc),
            orig_qty: self.terms.qty.unwrap_or_default(),
            price: self.terms.price.unwrap_or(zero),
            stop_price: self.terms.stop_price.unwrap_or(zero),
            reduce_only: self.terms.reduce_only,
            execution: ExecutionType::Trade,
            status: OrderStatus::PartiallyFilled,
            executed_qty: Qty(self.executed_qty),
            transaction_time: Time::default(),
            event_time: Time::default(),
            fill: None,
        }
    }

    /// Quantity mantissa that is not filled yet; 0 for an order without a quantity.
    pub fn remaining_qty(&self) -> i64 {
        let qty = self.terms.qty.map_or(0, |qty| qty.0);
        (qty - self.executed_qty).max(0)
    }

    /// Average fill price at scale 8; `None` without a fill.
    pub fn average_price(&self, instrument: &Instrument) -> Option<Amount> {
        if self.executed_qty == 0 {
            return None;
        }
        let raw = self.cum_quote.0 * i128::from(pow10(instrument.qty_scale));
        debug_assert_eq!(
            AMOUNT_ONE, 100_000_000,
            "amounts and average prices share a scale"
        );
        Some(Amount(div_half_even(raw, i128::from(self.executed_qty))))
    }
}

/// All own orders that a message may still refer to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Orders {
    live: BTreeMap<OrderSeq, Order>,
    ended: VecDeque<Order>,
    /// Orders of earlier epochs. Their client order ids have other sequence numbers than the
    /// engine's.
    foreign: BTreeMap<ClientOrderId, OrderSeq>,
}

impl Orders {
    /// Adds a live order.
    pub fn insert(&mut self, order: Order) {
        self.live.insert(order.seq, order);
    }

    /// Adds a live order whose client order id comes from an earlier process.
    pub fn insert_foreign(&mut self, order: Order) {
        self.foreign.insert(order.client_order_id, order.seq);
        self.insert(order);
    }

    /// Adds an ended order of an earlier process.
    pub fn insert_ended(&mut self, order: Order) {
        self.foreign.insert(order.client_order_id, order.seq);
        self.ended.push_back(order);
    }

    /// All orders: the live ones, and the ended ones in the order in which they ended.
    pub fn all(
        &self,
    ) -> (
        impl Iterator<Item = &Order>,
        impl DoubleEndedIterator<Item = &Order>,
    ) {
        (self.live.values(), self.ended.iter())
    }

    /// The sequence number that the engine gave to an order of an earlier process.
    pub fn foreign(&self, id: &ClientOrderId) -> Option<OrderSeq> {
        self.foreign.get(id).copied()
    }

    /// The live or recently ended order with this venue order id.
    pub fn of_venue(&self, id: VenueOrderId) -> Option<&Order> {
        let mut known = self.live.values().chain(self.ended.iter().rev());
        known.find(|order| order.venue_order_id == Some(id))
    }

    /// A live order.
    #[inline]
    pub fn live(&self, seq: OrderSeq) -> Option<&Order> {
        self.live.get(&seq)
    }

    /// Every live order, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Order> {
        self.live.values()
    }

    /// Every live order, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Order> {
        self.live.values_mut()
    }

    /// Live orders of one strategy, oldest first, in one instrument or in all.
    pub fn of(
        &self,
        strategy: StrategyId,
        instrument: Option<InstrumentId>,
    ) -> impl Iterator<Item = &Order> {
        self.live.values().filter(move |order| {
            order.strategy == strategy
                && instrument.is_none_or(|instrument| order.instrument() == instrument)
        })
    }

    /// The live or recently ended own order with exactly this id; `epoch` is that of this process.
    pub fn own(&self, id: &ClientOrderId, epoch: u64) -> Option<&Order> {
        let (_, of, own) = id.parse_own()?;
        let seq = match self.foreign(id) {
            Some(seq) => seq,
            None if of == epoch => own,
            None => return None,
        };
        let order = self.known(seq)?;
        (order.client_order_id == *id).then_some(order)
    }

    /// A live or recently ended order.
    pub fn known(&self, seq: OrderSeq) -> Option<&Order> {
        let ended = || self.ended.iter().rev().find(|order| order.seq == seq);
        self.live.get(&seq).or_else(ended)
    }

    /// Every live order and the recently ended ones, mutable.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Order> {
        self.live.values_mut().chain(self.ended.iter_mut())
    }

    /// A live or recently ended order, mutable.
    pub fn known_mut(&mut self, seq: OrderSeq) -> Option<&mut Order> {
        if let Some(order) = self.live.get_mut(&seq) {
            return Some(order);
        }
        // There are few ended orders, mostly sorted by number, and late messages mostly concern the
        // newest.
        self.ended.iter_mut().rev().find(|order| order.seq == seq)
    }

    /// Moves an order from the live to the ended ones.
    pub fn end(&mut self, seq: OrderSeq, now: Time) {
        if let Some(mut order) = self.live.remove(&seq) {
            order.ended = Some(now);
            order.denied = None;
            if self.ended.len() == ENDED_MAX
                && let Some(oldest) = self.ended.pop_front()
            {
                self.foreign.remove(&oldest.client_order_id);
            }
            self.ended.push_back(order);
        }
    }

    /// Moves an ended order back to the live ones, with this open quantity.
    pub fn revive(&mut self, seq: OrderSeq, reserved_qty: i64) -> Option<&Order> {
        let place = self.ended.iter().rposition(|order| order.seq == seq)?;
        let mut order = self.ended.remove(place)?;
        order.revive(reserved_qty);
        self.live.insert(seq, order);
        self.live.get(&seq)
    }

    /// The number of live orders.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no order is live.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}
