//! The venue's reports so far about own orders, to any receiver. No runtime can know more. An order
//! that is open here may be open, and a runtime that counts it as ended only guesses.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::wire::{self, Placed, Report, RequestKind};
use crate::witness::{Answer, Entry, ProcessEvent, RequestId, Terms, WitnessEvent};

/// Error codes of a query that does not find an order; the documents name none.
const NOT_FOUND: [i64; 2] = [-2013, -2011];

/// An own order.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// The order as it was sent.
    pub placed: Placed,
    /// When it was sent, true time in nanoseconds.
    pub sent_ns: i64,
    /// The venue reported that it has the order.
    pub accepted: bool,
    /// The highest executed quantity that the venue reported.
    pub executed: Decimal,
    /// The venue reported that it ended, or refused it.
    pub ended: bool,
}

impl Own {
    /// The quantity that may still be executed.
    pub fn left(&self) -> Decimal {
        if self.ended {
            Decimal::ZERO
        } else {
            (self.placed.qty - self.executed).max(Decimal::ZERO)
        }
    }
}

/// Every own order of a life.
#[derive(Debug, Default)]
pub struct Orders {
    window_ns: i64,
    /// When this process started.
    started_ns: i64,
    requests: BTreeMap<RequestId, RequestKind>,
    /// Requests for all open orders of a surface.
    lists: BTreeMap<RequestId, String>,
    live: BTreeMap<String, Own>,
    ended: BTreeMap<String, Own>,
    /// Own orders by the venue's order ids.
    numbers: BTreeMap<(String, i64), String>,
    /// Listed trades of own orders, by order and trade.
    trades: BTreeMap<String, BTreeMap<i64, Decimal>>,
    /// Executed quantities by strategy and position, signed, minus what outside orders closed.
    positions: BTreeMap<(String, String), Decimal>,
}

impl Orders {
    /// No orders yet.
    pub fn new(terms: &Terms) -> Self {
        let window_ms = i64::try_from(terms.recv_window_ms).unwrap_or(i64::MAX / 1_000_000);
        Self {
            window_ns: window_ms * 1_000_000,
            ..Self::default()
        }
    }

    /// Handles an entry.
    pub fn see(&mut self, entry: &Entry) {
        match &entry.seen {
            WitnessEvent::Sent(request) => {
                let kind = wire::request_kind(request);
                if let RequestKind::Place(orders) = &kind {
                    for placed in orders {
                        self.insert(placed.clone(), entry.at_ns);
                    }
                }
                let of_all = request.params.iter().all(|(name, _)| name != "symbol");
                if matches!(kind, RequestKind::OpenOrders) && of_all {
                    self.lists.insert(request.id, request.surface.clone());
                }
                if !matches!(kind, RequestKind::Read) {
                    self.requests.insert(request.id, kind);
                }
            }
            WitnessEvent::Process(ProcessEvent::Started { .. }) => self.started_ns = entry.at_ns,
            WitnessEvent::Answered {
                request, answer, ..
            } => self.answered(*request, answer, entry.at_ns),
            WitnessEvent::Emitted { text, .. } => {
                if let Some(report) = wire::event_report(text) {
                    self.report(&report);
                }
            }
            WitnessEvent::Executed {
                client_order_id,
                executed_qty,
            } => self.report(&Report {
                id: client_order_id.clone(),
                number: None,
                status: "PARTIALLY_FILLED".to_owned(),
                executed: wire::decimal(executed_qty),
            }),
            WitnessEvent::ClosedOutside {
                strategy,
                instrument,
                qty,
                ..
            } => {
                let key = (strategy.clone(), instrument.clone());
                *self.positions.entry(key).or_default() -= wire::decimal(qty);
            }
            _ => {}
        }
    }

    fn answered(&mut self, request: RequestId, answer: &Answer, now_ns: i64) {
        let Some(kind) = self.requests.get(&request).cloned() else {
            return;
        };
        if let RequestKind::Trades(instrument) = &kind {
            for (number, trade, qty) in wire::trades(answer) {
                self.traded(&(instrument.clone(), number), trade, qty);
            }
            return;
        }
        for report in wire::reports(answer) {
            self.report(&report);
        }
        if wire::is_done(answer) {
            self.listed(request, answer, now_ns);
        }
        match kind {
            RequestKind::Place(orders) if wire::is_refusal(answer) => {
                for placed in orders {
                    self.refuse(&placed.id);
                }
            }
            RequestKind::Query(id)
                if wire::code(answer).is_some_and(|code| NOT_FOUND.contains(&code)) =>
            {
                self.absent(&id, now_ns);
            }
            _ => {}
        }
    }

    /// An own order, open or not.
    pub fn get(&self, id: &str) -> Option<&Own> {
        self.live.get(id).or_else(|| self.ended.get(id))
    }

    /// Orders that may be open.
    pub fn live(&self) -> impl Iterator<Item = &Own> + Clone {
        self.live.values()
    }

    /// The executed quantity for a strategy, signed, minus what outside orders closed of it.
    pub fn position(&self, strategy: &str, book: &str) -> Decimal {
        let key = (strategy.to_owned(), book.to_owned());
        self.positions.get(&key).copied().unwrap_or_default()
    }

    /// Every position of every strategy: the strategy, the position's book and the quantity.
    pub fn positions(&self) -> impl Iterator<Item = (&str, &str, Decimal)> {
        let all = self.positions.iter();
        all.map(|((strategy, book), qty)| (strategy.as_str(), book.as_str(), *qty))
    }

    fn insert(&mut self, placed: Placed, sent_ns: i64) {
        if self.get(&placed.id).is_some() {
            return;
        }
        let own = Own {
            placed,
            sent_ns,
            accepted: false,
            executed: Decimal::ZERO,
            ended: false,
        };
        self.live.insert(own.placed.id.clone(), own);
    }

    fn report(&mut self, report: &Report) {
        let own = match self.live.get_mut(&report.id) {
            Some(own) => own,
            None => match self.ended.get_mut(&report.id) {
                Some(own) => own,
                None => return,
            },
        };
        let more = (report.executed - own.executed).max(Decimal::ZERO);
        own.executed += more;
        if let Some(number) = report.number {
            let place = (own.placed.instrument.clone(), number);
            self.numbers.insert(place, report.id.clone());
        }
        let was_refused = own.ended && !own.accepted;
        own.accepted = true;
        let strategy = wire::strategy(&report.id);
        let key = (strategy.to_owned(), own.placed.book());
        let signed = if own.placed.buys { more } else { -more };
        *self.positions.entry(key).or_default() += signed;
        let complete = own.executed >= own.placed.qty && !own.placed.qty.is_zero();
        if report.is_final() || complete {
            self.end(&report.id);
        } else if was_refused {
            // It arrived after all: a request that a link doubled, or a late one.
            self.revive(&report.id);
        }
    }

    /// The list of the account's trades may report a fill that nothing else reported.
    fn traded(&mut self, place: &(String, i64), trade: i64, qty: Decimal) {
        let Some(id) = self.numbers.get(place).cloned() else {
            return;
        };
        let trades = self.trades.entry(id.clone()).or_default();
        trades.insert(trade, qty);
        let report = Report {
            number: Some(place.1),
            status: String::new(),
            executed: trades.values().sum(),
            id,
        };
        self.report(&report);
    }

    /// The refusal of one copy says nothing about another copy that was accepted.
    fn refuse(&mut self, id: &str) {
        if self.live.get(id).is_some_and(|own| !own.accepted) {
            self.end(id);
        }
    }

    /// Absence counts once the order can no longer arrive in time
    /// (`docs/promises.md#2-unknown-is-a-state`).
    fn absent(&mut self, id: &str, now_ns: i64) {
        let window_ns = self.window_ns;
        let over = |own: &Own| now_ns >= own.sent_ns.saturating_add(window_ns);
        if self.live.get(id).is_some_and(over) {
            self.end(id);
        }
    }

    /// Orders of an earlier process may be unknown to the current one, because the journal may be
    /// lost, so nobody can query them. A list of all resting orders without them proves that they
    /// ended, once they can no longer arrive in time.
    fn listed(&mut self, request: RequestId, answer: &Answer, now_ns: i64) {
        let Some(surface) = self.lists.remove(&request) else {
            return;
        };
        let listed = wire::reports(answer);
        let ended = self.live.values().filter(|own| {
            own.sent_ns < self.started_ns
                && now_ns >= own.sent_ns.saturating_add(self.window_ns)
                && own.placed.instrument.starts_with(&surface)
                && !listed.iter().any(|report| report.id == own.placed.id)
        });
        for id in ended.map(|own| own.placed.id.clone()).collect::<Vec<_>>() {
            self.end(&id);
        }
    }

    fn end(&mut self, id: &str) {
        if let Some(mut own) = self.live.remove(id) {
            own.ended = true;
            self.ended.insert(id.to_owned(), own);
        }
    }

    fn revive(&mut self, id: &str) {
        if let Some(mut own) = self.ended.remove(id) {
            own.ended = false;
            self.live.insert(id.to_owned(), own);
        }
    }
}
