//! Recovery from order records only, when the market records before them are lost.
//!
//! Most of the state follows from inputs among the order records: intents with their checked terms,
//! replies, user events, saved states. Two things follow from market records: the numbers of
//! events, and orders that the engine places itself, such as a close after a loss limit. They are
//! taken from the recorded effects.

use windvane_model::codec::RecordedEffect;
use windvane_model::effect::Effect;
use windvane_model::ids::{OrderSeq, Time};
use windvane_model::input::Input;
use windvane_model::order::NewOrder;
use windvane_model::orders::Order;
use windvane_model::protocol::Request;

use super::Engine;

impl Engine {
    /// Handles an input of a journal whose market records are lost. Then applies the recorded
    /// effects that followed from it and from lost records after it. The caller drains the engine
    /// before the next input, and drops its effects and blocks, because they were carried out at
    /// the time.
    pub fn handle_without_market(
        &mut self,
        now: Time,
        input: Option<Input<'_>>,
        followed: &[(Time, RecordedEffect)],
    ) {
        let before = self.sequence;
        if let Some(input) = input {
            self.takes_sent = true;
            self.handle(now, input);
            self.takes_sent = false;
        }
        self.renumber_events(before, followed);
        for (time, effect) in followed {
            if let RecordedEffect::Send { request, .. } = effect {
                self.now = self.now.max(*time);
                match request {
                    Request::Place(order) => self.take_sent(order),
                    Request::PlaceBatch(orders) => {
                        for order in orders {
                            self.take_sent(order);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Gives the events since `before` their recorded numbers.
    fn renumber_events(&mut self, before: i64, followed: &[(Time, RecordedEffect)]) {
        let recorded = followed.iter().filter_map(|(_, effect)| match effect {
            RecordedEffect::Deliver { sequence, kind, .. } => {
                sequence.map(|number| (number, *kind))
            }
            _ => None,
        });
        let mut made = self.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver { event, .. } if event.sequence > before => {
                Some((event.sequence, event.kind))
            }
            _ => None,
        });
        let recorded: Vec<_> = recorded.collect();
        let Some(last) = recorded.last() else { return };
        let by = made
            .next()
            .filter(|(_, kind)| *kind == recorded[0].1)
            .map_or(0, |(sequence, _)| recorded[0].0 - sequence);
        self.sequence += by;
        for strategy in &mut self.strategies {
            for (_, reported) in &mut strategy.unsaved_order_ends {
                if *reported > before {
                    *reported += by;
                }
            }
        }
        self.sequence = self.sequence.max(last.0);
    }

    /// Takes an order that was sent. The engine knows it, unless the engine placed the order itself
    /// after a lost market record.
    fn take_sent(&mut self, sent: &NewOrder) {
        let Some((name, epoch, seq)) = sent.client_order_id.parse_own() else {
            return;
        };
        let mut strategies = self.strategies.iter();
        let place = strategies.position(|state| state.config.name.as_str() == name);
        let Some(place) = place.filter(|_| epoch == self.epoch) else {
            return;
        };
        let is_known = seq < self.next_order && self.orders.known(seq).is_some();
        if is_known {
            return;
        }
        self.next_order = OrderSeq(self.next_order.0.max(seq.0 + 1));
        let reserved = self.worst_qty(&sent.terms);
        let strategy = windvane_model::ids::StrategyId(place as u16);
        let (id, now) = (sent.client_order_id, self.now);
        let order = Order::new(seq, id, strategy, sent.terms, now, reserved);
        self.count_open(&order);
        self.orders.insert(order);
    }
}
