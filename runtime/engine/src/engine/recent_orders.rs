//! Orders of the newest account trades that this process does not know. An order that filled at
//! once never rests, so no list of open orders shows the instance that placed it. Its account trade
//! names the order, and the order has a client order id (spec 1 and 2, Query order).
//!
//! The account is read first, and the queries are sent after it. Startup waits for their responses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_evidence::line::OF_ANY_ROUTE;
use windvane_evidence::past::READ_LAG_MS;
use windvane_model::effect::Effect;
use windvane_model::ids::{InstrumentId, Time, VenueOrderId};
use windvane_model::names::Names;
use windvane_model::order::Surface;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::truth::{AccountTrade, Subject, Truth};

use super::Engine;

/// Number of orders that are queried per instrument and read. Each costs a weight of 1.
const ORDERS_MAX: usize = 3;
/// At most this many orders that events name are queried at a time.
const QUESTIONS_MAX: usize = 64;
/// Older trades are ignored.
pub(super) const RECENT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Time from a failed query to the next.
const ASK_AGAIN_MS: i64 = 4_000;
/// A query without a response for this long is sent again.
const LOST_MS: i64 = 15_000;
/// An order is queried for at most this long: startup must end even if the route fails.
const GIVE_UP_MS: i64 = 60_000;

type Key = (InstrumentId, VenueOrderId);

/// Orders of account trades whose client order ids are not known yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RecentOrders {
    questions: BTreeMap<Key, Question>,
    /// Surfaces that were read again after the end of the watch for another instance.
    pub(super) read_after_watch: BTreeSet<Surface>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// When the trade was listed here, or when the list became necessary.
    listed: Time,
    /// When the first and the last query were sent.
    sent: Option<(Time, Time)>,
    waits: bool,
}

impl Question {
    pub(super) const fn new(listed: Time) -> Self {
        Self {
            listed,
            sent: None,
            waits: false,
        }
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        self.sent
            .is_some_and(|(first, _)| now > first.plus_ms(GIVE_UP_MS))
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.sent.is_none_or(|(_, last)| {
            let wait_ms = if self.waits { LOST_MS } else { ASK_AGAIN_MS };
            now >= last.plus_ms(wait_ms)
        })
    }

    pub(super) fn note_sent(&mut self, now: Time) {
        let first = self.sent.map_or(now, |(first, _)| first);
        self.sent = Some((first, now));
        self.waits = true;
    }

    pub(super) const fn note_answer(&mut self) {
        self.waits = false;
    }
}

/// The orders of the newest of these trades, which are listed with the oldest first.
pub fn newest_orders<'a>(
    trades: impl DoubleEndedIterator<Item = &'a AccountTrade>,
) -> Vec<VenueOrderId> {
    let mut orders = Vec::new();
    for trade in trades.rev() {
        if orders.len() < ORDERS_MAX && !orders.contains(&trade.order_id) {
            orders.push(trade.order_id);
        }
    }
    orders
}

impl Engine {
    /// Notes the orders of listed trades that this process does not know and that no event of the
    /// user stream named. Called before the trades are taken.
    pub(super) fn note_recent_orders(&mut self, instrument: InstrumentId, trades: &[AccountTrade]) {
        let (now, index) = (self.now, usize::from(instrument.0));
        let offset_ns = self.clock_offset_ns(self.surface_of(instrument));
        let oldest = now
            .plus_ns(offset_ns.unwrap_or_default())
            .plus_ms(-RECENT_MS);
        let verified = self.verified_trades[index];
        let named = &self.external_trades[index];
        let is_unknown = |trade: &&AccountTrade| {
            let id = trade.fill.trade_id;
            trade.time >= oldest
                && verified.is_none_or(|known| id > known)
                && !named.contains(&id)
                && self.orders.of_venue(trade.order_id).is_none()
        };
        let orders = newest_orders(trades.iter().filter(is_unknown));
        let questions = &mut self.recent_orders.questions;
        for order_id in orders {
            let key = (instrument, order_id);
            questions.entry(key).or_insert_with(|| Question::new(now));
        }
        // An earlier page may have named more: the newest orders have the highest ids.
        let of_instrument = questions.range((instrument, VenueOrderId(i64::MIN))..);
        let unsent: Vec<Key> = of_instrument
            .take_while(|((of, _), _)| *of == instrument)
            .filter(|(_, question)| question.sent.is_none())
            .map(|(key, _)| *key)
            .collect();
        for key in unsent.iter().rev().skip(ORDERS_MAX) {
            questions.remove(key);
        }
    }

    /// Notes an order that an event names, to query when it was placed.
    pub(super) fn note_recent_order(&mut self, instrument: InstrumentId, order_id: VenueOrderId) {
        let question = Question::new(self.now);
        let questions = &mut self.recent_orders.questions;
        if questions.len() < QUESTIONS_MAX {
            questions.entry((instrument, order_id)).or_insert(question);
        }
    }

    /// Whether an order of another instance may be among the queried orders.
    pub(super) fn awaits_recent_orders(&self) -> bool {
        !self.recent_orders.questions.is_empty() || self.awaits_newest_orders()
    }

    /// Called after the account of a surface was read. `orders_asked` is when open orders were
    /// requested.
    pub(super) fn account_was_read(&mut self, surface: Surface, orders_asked: Option<Time>) {
        self.ask_for_recent_orders();
        self.ask_for_newest_orders();
        let watch = self.instance_watch();
        if watch.is_some_and(|watch| orders_asked >= Some(watch.until)) {
            self.recent_orders.read_after_watch.insert(surface);
        }
        self.finish_instance_watch();
    }

    fn ask_for_recent_orders(&mut self) {
        let now = self.now;
        let questions = self.recent_orders.questions.iter();
        let due: Vec<Key> = questions
            .filter(|((id, _), question)| question.is_due(now) && !self.is_held_back(*id))
            .map(|(key, _)| *key)
            .collect();
        for key @ (instrument, order_id) in due {
            if let Some(question) = self.recent_orders.questions.get_mut(&key) {
                question.note_sent(now);
            }
            let subject = Subject::TradedOrder {
                instrument,
                order_id,
            };
            self.emit(Effect::Send {
                record: 0,
                request: Box::new(Request::Read(subject)),
            });
        }
    }

    /// Whether the venue accepts no request about an instrument now.
    fn is_held_back(&self, id: InstrumentId) -> bool {
        self.venue_wait(self.surface_of(id)).is_some()
    }

    /// Repeats queries that were not answered, and gives up those that time out.
    pub(super) fn ask_again_for_recent_orders(&mut self) {
        let now = self.now;
        let mut questions = std::mem::take(&mut self.recent_orders.questions);
        questions.retain(|(id, _), question| !question.is_over(now) || self.is_held_back(*id));
        let was_asked = questions.values().any(|question| question.sent.is_some());
        self.recent_orders.questions = questions;
        self.give_up_newest_orders();
        let lines = self.live.iter().flat_map(|live| live.lines.values());
        let was_read = lines.map(|line| line.clean).any(|clean| clean.is_some());
        if was_asked || was_read {
            self.ask_for_recent_orders();
            self.ask_for_newest_orders();
        }
        self.finish_instance_watch();
    }

    /// Takes the response about an order of an account trade.
    pub(super) fn take_traded_order(
        &mut self,
        instrument: InstrumentId,
        order_id: VenueOrderId,
        outcome: &Outcome<Truth>,
    ) {
        let (now, key) = (self.now, (instrument, order_id));
        let Some(question) = self.recent_orders.questions.get_mut(&key) else {
            return;
        };
        question.note_answer();
        match outcome {
            Outcome::Done(Truth::TradedOrder(order)) => {
                self.recent_orders.questions.remove(&key);
                self.judge_traded_order(self.surface_of(instrument), order);
            }
            // The query may be behind the list of trades.
            Outcome::Refused(refusal)
                if !OF_ANY_ROUTE.contains(&refusal.code)
                    && now > question.listed.plus_ms(READ_LAG_MS) =>
            {
                self.recent_orders.questions.remove(&key);
            }
            _ => return,
        }
        self.finish_instance_watch();
        self.update_state();
    }

    /// Takes over the open queries of an earlier process.
    pub(super) fn inherit_recent_orders(&mut self, from: &Self, names: &Names) {
        for ((id, order_id), question) in &from.recent_orders.questions {
            if let Some(id) = names.instruments.get(id) {
                let question = Question::new(question.listed);
                let questions = &mut self.recent_orders.questions;
                questions.insert((*id, *order_id), question);
            }
        }
    }
}
