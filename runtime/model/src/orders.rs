//! Own orders: the live ones, and the last ended ones for late and doubled updates.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::decimal::{AMOUNT_ONE, Amount, div_half_even, pow10};
use crate::ids::{ClientOrderId, InstrumentId, OrderSeq, StrategyId, Time, TradeId, VenueOrderId};
use crate::instrument::Instrument;
use crate::order::{ExecutionType, NewOrder, OrderStatus, OrderTerms, Price, Qty, TimeInForce};
use crate::order_state::{OrderMove, OrderState};
use crate::planted;
use crate::protocol::OrderUpdate;

/// How many ended orders are remembered, so that a late fill still finds its order.
const ENDED_MAX: usize = 4096;

/// How long the venue has been denying an order that it had confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Answers in a row that said so.
    pub times: u32,
    /// When the last of them came.
    last: Time,
    /// Time that lies between them; of a longer silence a minute counts.
    contact_ms: i64,
    /// Lists of open orders meanwhile that lacked it.
    pub unlisted: u32,
}

impl Denied {
    /// The first answer that says so.
    pub const fn first(now: Time) -> Self {
        Self {
            times: 1,
            last: now,
            contact_ms: 0,
            unlisted: 0,
        }
    }

    /// One more.
    pub fn again(&mut self, now: Time) {
        const SILENCE_MS: i64 = 60_000;
        let ms = (now.0 - self.last.0) / 1_000_000;
        self.contact_ms += ms.clamp(0, SILENCE_MS);
        self.times = self.times.saturating_add(1);
        self.last = now;
    }

    /// Until the next question: longer each time.
    pub fn pause_ms(&self) -> i64 {
        const PAUSE_MS: (i64, i64) = (1_000, 30_000);
        (PAUSE_MS.0 << (self.times - 1).min(5)).min(PAUSE_MS.1)
    }

    /// Whether it was denied for so long, by the list and by the query, that it counts as over.
    pub const fn is_conclusive_after(&self, contact_ms: i64) -> bool {
        self.contact_ms >= contact_ms && self.unlisted > 1
    }
}

/// What the venue was asked about an order. An answer does not say which of several equal questions
/// it is for, so that only one that was alone under way says what was when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// Those that wait for their answer.
    open: u32,
    /// When the only one that waits left.
    alone: Option<Time>,
    /// When the last one left that the venue denied.
    absent: Option<Time>,
}

impl Questions {
    /// One leaves.
    pub fn ask(&mut self, now: Time) {
        self.alone = (self.open == 0).then_some(now);
        self.open = self.open.saturating_add(1);
    }

    /// One was answered: whether by the word that there is no such order.
    pub fn answered(&mut self, denied: bool) {
        self.open = self.open.saturating_sub(1);
        if let Some(at) = self.alone.take()
            && denied
        {
            self.absent = Some(at);
        }
    }

    /// Whether a question that is alone under way is soon to be answered: another would take its
    /// meaning from both.
    pub fn is_awaited(&self, now: Time) -> bool {
        const AWAITED_MS: i64 = 3_000;
        self.alone.is_some_and(|at| now < at.plus_ms(AWAITED_MS))
    }

    /// Whether the venue had no such order at that time.
    pub fn was_absent_at(&self, time: Time) -> bool {
        self.absent.is_some_and(|asked| asked >= time)
    }
}

/// An own order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number.
    pub seq: OrderSeq,
    /// Its id at the venue, chosen before sending.
    pub client_order_id: ClientOrderId,
    /// Whose it is.
    pub strategy: StrategyId,
    /// Terms as sent.
    pub terms: OrderTerms,
    /// State.
    pub state: OrderState,
    /// When its intent entered the engine.
    pub submitted: Time,
    /// `orderId`, once known.
    pub venue_order_id: Option<VenueOrderId>,
    /// Quantity of the fills that were applied, mantissa.
    pub executed_qty: i64,
    /// Quote amount of the fills that were applied.
    pub cum_quote: Amount,
    /// The largest executed quantity that the venue reported; over `executed_qty` while a fill
    /// is missing.
    pub reported_qty: i64,
    /// Quantity that still counts as open exposure, mantissa.
    pub reserved_qty: i64,
    /// The venue's code of a refusal; 0 otherwise.
    pub refusal_code: i32,
    /// It was not sent yet: its symbol's dead man's switch is not armed. Live only.
    pub held: bool,
    /// A cancel was asked for; one that is lost is sent again as long as the order rests.
    pub cancel_wanted: bool,
    /// When the venue refused to cancel it. Live only.
    pub cancel_refused: Option<Time>,
    /// When REST confirmed it first.
    pub confirmed: Option<Time>,
    /// The user stream told of it.
    pub on_stream: bool,
    /// When its outcome was lost.
    pub lost: Option<Time>,
    /// The venue confirmed it, and now says that it knows no such order. Live only.
    pub denied: Option<Denied>,
    /// What the venue was asked about it. Live only.
    pub questions: Questions,
    /// When it ended here.
    pub ended: Option<Time>,
    /// The venue's time of its word that it is over; `None` where that was concluded here.
    pub told_over: Option<Time>,
    /// Since when a fill that the venue reported is missing.
    pub missing_since: Option<Time>,
    /// Executed quantity up to which fills were made up from totals: an event of a fill within it
    /// comes too late.
    pub recovered_qty: i64,
    /// Quantity of fills that were made up from totals and whose trades were not seen since.
    pub made_up_qty: i64,
    /// How often account trades were read for a missing fill and did not tell it.
    pub trade_reads: u32,
    /// Trade ids that were counted: nearly always one, so the first lies inline.
    first_trade: Option<TradeId>,
    more_trades: Vec<TradeId>,
}

impl Order {
    /// A new order in state submitted.
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
            questions: Questions::default(),
            ended: None,
            told_over: None,
            missing_since: None,
            recovered_qty: 0,
            made_up_qty: 0,
            trade_reads: 0,
            first_trade: None,
            more_trades: Vec::new(),
        }
    }

    /// The instrument.
    pub const fn instrument(&self) -> InstrumentId {
        self.terms.instrument
    }

    /// Moves along the table. Answers whether the state changed or the move was allowed.
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

    /// Counts a fill; `false` if its trade id was counted before.
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

    /// Takes a trade that is told after fills were made up from totals, one of which may have been
    /// for it. Answers what of its quantity is not booked yet.
    pub fn absorb_trade(&mut self, trade_id: TradeId, qty: i64) -> i64 {
        let known = self.first_trade == Some(trade_id) || self.more_trades.contains(&trade_id);
        if known || self.made_up_qty == 0 {
            return qty;
        }
        let late = qty.min(self.made_up_qty);
        self.made_up_qty -= late;
        if late == qty {
            self.more_trades.push(trade_id);
        }
        qty - late
    }

    /// The venue has it or had it: that it does not know it says nothing of its arrival.
    pub const fn is_confirmed(&self) -> bool {
        self.venue_order_id.is_some() || self.executed_qty > 0
    }

    /// It is open after all: of what was concluded nothing counts any more.
    fn revive(&mut self, reserved_qty: i64) {
        self.state = OrderState::Unknown;
        self.reserved_qty = reserved_qty;
        self.refusal_code = 0;
        self.ended = None;
        self.told_over = None;
        self.denied = None;
        self.lost = None;
        self.confirmed = None;
        self.cancel_refused = None;
    }

    /// It is over, and every quantity that the venue reported has its fill.
    pub const fn is_settled(&self) -> bool {
        self.state.is_final() && self.executed_qty >= self.reported_qty
    }

    /// The request that sends it.
    pub const fn request(&self) -> NewOrder {
        NewOrder {
            client_order_id: self.client_order_id,
            terms: self.terms,
        }
    }

    /// An event that tells of nothing but its terms.
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

    /// Quantity mantissa that is not filled yet; 0 for orders without a quantity.
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

/// All own orders that can still be spoken of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Orders {
    live: BTreeMap<OrderSeq, Order>,
    ended: VecDeque<Order>,
    /// Orders whose id carries another number than ours: of earlier epochs.
    foreign: BTreeMap<ClientOrderId, OrderSeq>,
}

impl Orders {
    /// Adds a live order.
    pub fn insert(&mut self, order: Order) {
        self.live.insert(order.seq, order);
    }

    /// Adds a live order whose id was given out by an earlier process.
    pub fn insert_foreign(&mut self, order: Order) {
        self.foreign.insert(order.client_order_id, order.seq);
        self.insert(order);
    }

    /// Adds an order of an earlier process that has ended.
    pub fn insert_ended(&mut self, order: Order) {
        self.foreign.insert(order.client_order_id, order.seq);
        self.ended.push_back(order);
    }

    /// Every order that can still be spoken of: the live ones, and the ended ones in the order in
    /// which they ended.
    pub fn all(
        &self,
    ) -> (
        impl Iterator<Item = &Order>,
        impl DoubleEndedIterator<Item = &Order>,
    ) {
        (self.live.values(), self.ended.iter())
    }

    /// The number of an order of an earlier process.
    pub fn foreign(&self, id: &ClientOrderId) -> Option<OrderSeq> {
        self.foreign.get(id).copied()
    }

    /// The live or recently ended order with this id at the venue.
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

    /// Every live order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Order> {
        self.live.values_mut()
    }

    /// Live orders of one strategy, oldest first, of one instrument or of all.
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

    /// Every live order and the last ended ones, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Order> {
        self.live.values_mut().chain(self.ended.iter_mut())
    }

    /// A live or recently ended order, to be changed.
    pub fn known_mut(&mut self, seq: OrderSeq) -> Option<&mut Order> {
        if let Some(order) = self.live.get_mut(&seq) {
            return Some(order);
        }
        // The ended ones are few and mostly in the order of their numbers; late words concern
        // the newest.
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

    /// Takes an ended order up again, which counts with this much from now on.
    pub fn revive(&mut self, seq: OrderSeq, reserved_qty: i64) -> Option<&Order> {
        let place = self.ended.iter().rposition(|order| order.seq == seq)?;
        let mut order = self.ended.remove(place)?;
        order.revive(reserved_qty);
        self.live.insert(seq, order);
        self.live.get(&seq)
    }

    /// How many orders are live.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether no order is live.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}
