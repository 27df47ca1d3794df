//! Describes why a run is not ready yet: orders of unknown outcome, and queries without a useful
//! response, with the last response. It makes no decisions.

use std::collections::BTreeMap;

use windvane_engine::Engine;
use windvane_model::order_state::OrderState;
use windvane_model::state_report::Subject;
use windvane_model::{ClientOrderId, Outcome, Reply, Surface};

/// At most this many orders are named.
const NAMED: usize = 3;
const NO_ANSWER: &str = "the request was not sent or got no response; the log says which, and why";

/// The last responses that did not help.
#[derive(Debug, Default)]
pub struct Unsettled {
    orders: BTreeMap<ClientOrderId, String>,
    rounds: BTreeMap<Surface, String>,
}

impl Unsettled {
    /// Remembers a reply.
    pub fn handle_reply(&mut self, engine: &Engine, reply: &Reply) {
        match reply {
            Reply::Queried {
                client_order_id,
                outcome,
            } => {
                match trouble(outcome) {
                    Some(text) => self.orders.insert(*client_order_id, text),
                    None => self.orders.remove(client_order_id),
                };
            }
            Reply::Read { subject, outcome } => {
                let (surface, what) = match subject {
                    Subject::OpenOrders { surface } => (*surface, "open orders"),
                    Subject::Account { surface } => (*surface, "the account"),
                    Subject::Trades { instrument, .. } => match engine.instrument(*instrument) {
                        Some(instrument) => (instrument.surface, "account trades"),
                        None => return,
                    },
                    Subject::TradedOrder { instrument, .. } => match engine.instrument(*instrument)
                    {
                        Some(instrument) => (instrument.surface, "an order of account trades"),
                        None => return,
                    },
                    Subject::NewestOrders { instrument } => match engine.instrument(*instrument) {
                        Some(instrument) => (instrument.surface, "the list of orders"),
                        None => return,
                    },
                    Subject::Income { .. } => (Surface::Futures, "the income history"),
                    // A run can become ready without these.
                    Subject::ForcedOrders { .. }
                    | Subject::OutsideOrder { .. }
                    | Subject::Rules { .. }
                    | Subject::AssetPrice { .. } => return,
                };
                match trouble(outcome) {
                    Some(text) => {
                        let text = format!("{surface}: {what} cannot be read: {text}");
                        self.rounds.insert(surface, text)
                    }
                    None => self.rounds.remove(&surface),
                };
            }
            _ => return,
        }
        let is_open = |id: &ClientOrderId| {
            let mut orders = engine.orders().iter();
            orders.any(|order| order.client_order_id == *id)
        };
        self.orders.retain(|id, _| is_open(id));
    }

    /// Why the run is not ready; `None` if no obstacle is known.
    pub fn reason(&self, engine: &Engine) -> Option<String> {
        let orders = engine.orders().iter();
        let unknown: Vec<_> = orders
            .filter(|order| order.state == OrderState::Unknown)
            .map(|order| order.client_order_id)
            .collect();
        let named = unknown.iter().take(NAMED).map(|id| {
            let answer = self.orders.get(id);
            let answer = answer.map_or("the engine is querying it", String::as_str);
            format!("the outcome of order {} is unknown: {answer}", id.as_str())
        });
        let mut text: Vec<String> = named.collect();
        if unknown.len() > NAMED {
            text.push(format!(
                "the outcome of {} more orders is unknown",
                unknown.len() - NAMED
            ));
        }
        text.extend(self.rounds.values().cloned());
        (!text.is_empty()).then(|| text.join("; "))
    }
}

/// Describes a reply that did not help.
fn trouble<T>(outcome: &Outcome<T>) -> Option<String> {
    match outcome {
        Outcome::Done(_) => None,
        Outcome::Unknown => Some(NO_ANSWER.to_owned()),
        Outcome::Refused(refusal) if refusal.msg.contains(&refusal.code.to_string()) => {
            Some(refusal.msg.clone())
        }
        Outcome::Refused(refusal) => Some(format!("{} {}", refusal.code, refusal.msg)),
    }
}

#[cfg(test)]
mod tests {
    use windvane_model::config::EngineConfig;
    use windvane_model::protocol::Refusal;
    use windvane_model::state_report::{AccountSnapshot, StateReport};

    use super::*;

    fn read(outcome: Outcome<StateReport>) -> Reply {
        let surface = Surface::Futures;
        let subject = Subject::Account { surface };
        Reply::Read { subject, outcome }
    }

    #[test]
    fn a_rejected_query_is_named_until_it_succeeds() {
        let engine = Engine::new(EngineConfig::default()).unwrap();
        let mut unsettled = Unsettled::default();
        assert_eq!(unsettled.reason(&engine), None);
        let refusal = Refusal {
            code: -1003,
            msg: "the weight of this interval is used up".to_owned(),
        };
        unsettled.handle_reply(&engine, &read(Outcome::Refused(refusal)));
        let reason = unsettled.reason(&engine).unwrap();
        assert!(reason.contains("the account cannot be read"), "{reason}");
        assert!(reason.contains("-1003 the weight"), "{reason}");
        let account = StateReport::Account(AccountSnapshot::default());
        unsettled.handle_reply(&engine, &read(Outcome::Done(account)));
        assert_eq!(unsettled.reason(&engine), None);
    }
}
