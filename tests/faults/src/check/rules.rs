//! The runtime uses a tick that the venue changed, at the latest some minutes after the venue
//! refused an order because of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, RequestId, Rest, WitnessEvent};

/// From the refusal of an order to the use of the new rules: the longest pause between two reads,
/// and the time of a read while the venue has trouble.
const WITHIN_NS: i64 = 420_000_000_000;
/// Error code: the price is not a multiple of the tick.
const OFF_TICK: i64 = -4014;

/// The rule.
#[derive(Debug, Default)]
pub struct Rules {
    /// Changed ticks, by instrument.
    ticks: BTreeMap<String, String>,
    placed: BTreeMap<RequestId, String>,
    /// When an order was first refused because of a changed tick.
    refused_ns: BTreeMap<String, i64>,
}

impl Check for Rules {
    fn rule(&self) -> &'static str {
        "the rules of an instrument are the venue's present ones"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Act { act, done: true } if act["act"] == "rules" => {
                let text = |field| act.get(field).and_then(Value::as_str);
                if let (Some(symbol), Some(tick)) = (text("symbol"), text("tick_size")) {
                    let instrument = format!("futures:{symbol}");
                    self.refused_ns.remove(&instrument);
                    self.ticks.insert(instrument, tick.to_owned());
                }
            }
            WitnessEvent::Sent(request) => {
                if let RequestKind::Place(orders) = wire::request_kind(request)
                    && let [order] = &orders[..]
                {
                    self.placed.insert(request.id, order.instrument.clone());
                }
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } => {
                if let Some(instrument) = self.placed.remove(request)
                    && wire::code(answer) == Some(OFF_TICK)
                    && self.ticks.contains_key(&instrument)
                {
                    self.refused_ns.entry(instrument).or_insert(entry.at_ns);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        for (instrument, refused_ns) in &self.refused_ns {
            let (tick, used) = (&self.ticks[instrument], rest.view.ticks.get(instrument));
            if rest.at_ns > refused_ns + WITHIN_NS && used.is_some_and(|used| used != tick) {
                return Err(format!(
                    "the tick of {instrument} is {tick} at the venue, which refused an order because of \
                     it {} s ago, but {} in the runtime",
                    (rest.at_ns - refused_ns) / 1_000_000_000,
                    used.map_or("unknown", String::as_str)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, at_rest};
    use crate::witness::View;

    fn judged(log: &Log, tick: &str) -> Result<(), String> {
        let ticks = [("futures:BTCUSDT".to_owned(), tick.to_owned())];
        let view = View {
            ticks: ticks.into(),
            ..View::default()
        };
        at_rest(Rules::default(), log, json!({}), view)
    }

    fn changed() -> Log {
        Log::new().act(json!({"act": "rules", "symbol": "BTCUSDT", "tick_size": "0.5"}))
    }

    #[test]
    fn an_old_tick_is_found_after_its_refusal() {
        let refused = || {
            changed()
                .place("mm.a.1")
                .with_answer(400, &[], r#"{"code":-4014,"msg":""}"#)
        };
        assert_eq!(judged(&refused().later_ms(500_000), "0.5"), Ok(()));
        assert!(judged(&refused().later_ms(500_000), "0.1").is_err());
        assert_eq!(
            judged(&refused(), "0.1"),
            Ok(()),
            "the runtime has some minutes"
        );
        let other = changed()
            .place("mm.a.1")
            .with_answer(400, &[], r#"{"code":-2010,"msg":""}"#);
        assert_eq!(judged(&other.later_ms(500_000), "0.1"), Ok(()));
    }
}
