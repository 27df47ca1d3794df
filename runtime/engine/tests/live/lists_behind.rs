//! Lists of open orders, and queries, are ten seconds older than the stream.

use windvane_model::effect::Adjustment;
use windvane_model::live::{LiveConfig, LiveInput};
use windvane_model::protocol::OrderReport;
use windvane_model::state_report::{OpenOrder, StateReport, Subject};
use windvane_model::{
    ClientOrderId, Input, Notice, OrderSeq, OrderStatus, Outcome, Reply, Request, Side, Surface,
    Time, VenueOrderId,
};

use super::support::{Account, MM, limit, update};
use super::world::{live_config, nothing, ready_with};

const FUTURES: Surface = Surface::Futures;

/// An order at the venue.
#[derive(Clone, Copy)]
struct Kept {
    id: ClientOrderId,
    number: i64,
    placed: Time,
    over: Option<Time>,
}

impl Kept {
    fn report(&self, at: Time) -> OrderReport {
        let over = self.over.filter(|over| *over <= at);
        OrderReport {
            order_id: VenueOrderId(self.number),
            update_time: over.unwrap_or(self.placed),
            ..super::support::report(
                self.id,
                match over {
                    Some(_) => OrderStatus::Canceled,
                    None => OrderStatus::New,
                },
                0,
            )
        }
    }
}

/// How the venue reports orders.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Age of lists and queries, milliseconds.
    behind_ms: i64,
    /// Delay of events, milliseconds.
    events_ms: i64,
    /// Whether order and cancel requests get responses.
    answers: bool,
}

struct World {
    account: Account,
    manner: Manner,
    orders: Vec<Kept>,
    events: Vec<(Time, Kept, bool)>,
}

impl World {
    fn new(manner: Manner) -> Self {
        Self {
            account: ready_with(LiveConfig {
                reconcile_ms: 5_000,
                ..live_config()
            }),
            manner,
            orders: Vec::new(),
            events: Vec::new(),
        }
    }

    fn find(&self, id: &ClientOrderId, at: Time) -> Option<Kept> {
        let mut orders = self.orders.iter();
        orders
            .find(|order| order.id == *id && order.placed <= at)
            .copied()
    }

    /// Executes the requests of the engine.
    fn answer(&mut self) {
        while !self.account.sent.is_empty() {
            let request = self.account.sent.remove(0);
            let now = self.account.now;
            let then = now.plus_ms(-self.manner.behind_ms);
            match request {
                Request::Place(order) => {
                    let kept = Kept {
                        id: order.client_order_id,
                        number: self.orders.len() as i64 + 1,
                        placed: now,
                        over: None,
                    };
                    self.orders.push(kept);
                    self.events
                        .push((now.plus_ms(self.manner.events_ms), kept, false));
                    let answer = self.manner.answers.then(|| kept.report(now));
                    let outcome = answer.map_or(Outcome::Unknown, Outcome::Done);
                    self.account.placed(kept.id, outcome);
                }
                Request::Cancel {
                    client_order_id, ..
                } => {
                    let mut orders = self.orders.iter_mut();
                    let rests =
                        |order: &&mut Kept| order.id == client_order_id && order.over.is_none();
                    let outcome = match orders.find(rests) {
                        Some(order) => {
                            order.over = Some(now);
                            let kept = *order;
                            self.events
                                .push((now.plus_ms(self.manner.events_ms), kept, true));
                            if self.manner.answers {
                                Outcome::Done(kept.report(now))
                            } else {
                                Outcome::Unknown
                            }
                        }
                        None => super::support::refused(-2011),
                    };
                    self.account.canceled(client_order_id, outcome);
                }
                Request::Query {
                    client_order_id, ..
                } => {
                    let found = self.find(&client_order_id, then);
                    let outcome = match found {
                        Some(order) => Outcome::Done(order.report(then)),
                        None => super::support::refused(-2013),
                    };
                    self.account.handle(Input::Reply(&Reply::Queried {
                        client_order_id,
                        outcome,
                    }));
                }
                Request::Countdown { countdown_ms, .. } => {
                    self.account.countdown_reply(Outcome::Done(countdown_ms));
                }
                Request::Read(subject) => self.read(subject, then),
                _ => {}
            }
        }
    }

    fn read(&mut self, subject: Subject, then: Time) {
        let state_report = match subject {
            Subject::OpenOrders { .. } => {
                let rests = |order: &&Kept| {
                    order.placed <= then && order.over.is_none_or(|over| over > then)
                };
                let rows = self.orders.iter().filter(rests).map(|order| OpenOrder {
                    report: order.report(then),
                    terms: limit(Side::Buy, 990, 10),
                });
                StateReport::OpenOrders(rows.collect())
            }
            Subject::Account { .. } => StateReport::Account(self.account.own_account()),
            _ => nothing(subject),
        };
        self.account.tell(subject, state_report);
    }

    fn hear(&mut self) {
        let now = self.account.now;
        let (due, later): (Vec<_>, Vec<_>) =
            (self.events.drain(..)).partition(|(at, ..)| *at <= now);
        self.events = later;
        for (_, kept, is_end) in due {
            let status = if is_end {
                OrderStatus::Canceled
            } else {
                OrderStatus::New
            };
            let mut event = update(kept.id, Side::Buy, status, 0);
            event.order_id = VenueOrderId(kept.number);
            event.transaction_time = if is_end {
                kept.over.unwrap_or(kept.placed)
            } else {
                kept.placed
            };
            event.event_time = event.transaction_time;
            self.account.update(event);
        }
    }

    fn pass(&mut self, ms: i64) {
        for _ in 0..ms / 100 {
            self.account.pass(97);
            self.account.alive();
            self.account.clock();
            self.hear();
            self.answer();
            if !std::mem::take(&mut self.account.reconnected).is_empty() {
                // Events from before the new connection are lost.
                self.events.clear();
                self.account.live(LiveInput::StreamUp { surface: FUTURES });
                self.answer();
            }
        }
    }

    /// Places 99 orders one after the other and cancels each one after a while.
    fn run(&mut self) {
        for place in 0..99 {
            let terms = limit(Side::Buy, 990, 10);
            let order = self
                .account
                .call(MM, |callback, engine| callback.submit(engine, terms).ok());
            self.answer();
            self.pass(700 + 100 * (place % 7));
            if let Some(order) = order.filter(|order| self.rests(*order)) {
                self.account.cancel(MM, order);
            }
            self.answer();
            self.pass(400);
        }
    }

    fn rests(&self, order: OrderSeq) -> bool {
        self.account.engine.order(order).is_some()
    }

    fn revived(&self) -> usize {
        let is_alive = |notice: &&Notice| {
            matches!(
                notice,
                Notice::Adjusted {
                    adjustment: Adjustment::Alive { .. },
                    ..
                }
            )
        };
        self.account.notices.iter().filter(is_alive).count()
    }
}

#[test]
fn a_stale_list_does_not_reopen_an_ended_order() {
    for events_ms in [0, 400, 2_000, 6_000] {
        for answers in [true, false] {
            let manner = Manner {
                behind_ms: 10_000,
                events_ms,
                answers,
            };
            let mut world = World::new(manner);
            world.run();
            world.pass(30_000);
            let placed = world.orders.len();
            assert!(placed >= 5, "{placed} {manner:?}");
            assert_eq!(world.revived(), 0, "of {placed}: {manner:?}");
            assert!(world.account.engine.orders().is_empty(), "{manner:?}");
        }
    }
}
