//! No new exposure while blind (`docs/promises.md#5-blind-means-careful`). While the user stream of
//! a surface is down or silent, no strategy's order that could add exposure is accepted. The same
//! holds after its listen key expired, and until open orders were read after it connected.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, WitnessEvent};

/// A PING leaves every 10 s and must be answered within 10 s (`docs/promises.md#4-dead-mans-switch`).
/// So a stream that is alive shows something within this time. The runtime stops relying on it after 15 s.
const SILENCE_NS: i64 = 20_000_000_000;

/// The known state of a surface.
#[derive(Debug, Default)]
struct Sight {
    stream: u64,
    up: bool,
    expired: bool,
    read: bool,
    alive_ns: i64,
}

impl Sight {
    fn doubt(&self, now_ns: i64) -> Option<&'static str> {
        if !self.up {
            Some("the user stream is down")
        } else if self.expired {
            Some("the listen key expired")
        } else if now_ns - self.alive_ns > SILENCE_NS {
            Some("the user stream is silent")
        } else if !self.read {
            Some("open orders were not read since the user stream came up")
        } else {
            None
        }
    }
}

/// The rule.
#[derive(Debug, Default)]
pub struct Blind {
    surfaces: BTreeMap<String, Sight>,
    questions: BTreeMap<RequestId, String>,
    /// Events that report that their listen key expired.
    expiries: BTreeSet<u64>,
    /// Orders that were intended while a surface was blind: the surfaces and the reasons.
    doubtful: BTreeMap<String, BTreeSet<(String, &'static str)>>,
}

impl Blind {
    /// The connection delivered a message.
    fn alive(&mut self, stream: u64, now_ns: i64, expired: bool) {
        let sight = self
            .surfaces
            .values_mut()
            .find(|sight| sight.stream == stream);
        if let Some(sight) = sight {
            sight.alive_ns = now_ns;
            sight.expired |= expired;
        }
    }

    fn intended(&mut self, id: &str, now_ns: i64) {
        for surface in ["spot", "futures"] {
            let sight = self.surfaces.entry(surface.to_owned()).or_default();
            if let Some(doubt) = sight.doubt(now_ns) {
                let doubts = self.doubtful.entry(id.to_owned()).or_default();
                doubts.insert((surface.to_owned(), doubt));
            }
        }
    }
}

impl Check for Blind {
    fn rule(&self) -> &'static str {
        "no new exposure while blind"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.surfaces.clear();
                self.questions.clear();
            }
            // While the process is stopped, it causes the silence itself.
            WitnessEvent::Process(ProcessEvent::Resumed { .. }) => {
                for sight in self.surfaces.values_mut() {
                    sight.alive_ns = entry.at_ns;
                }
            }
            WitnessEvent::Emitted { event, text, .. } if text.contains("\"listenKeyExpired\"") => {
                self.expiries.insert(*event);
            }
            WitnessEvent::Delivered { event, stream } => {
                let expired = self.expiries.contains(event);
                self.alive(*stream, entry.at_ns, expired);
            }
            WitnessEvent::Pong { stream } => self.alive(*stream, entry.at_ns, false),
            WitnessEvent::Stream {
                stream,
                surface,
                user: true,
                up,
            } => {
                let sees = self.surfaces.get(surface).filter(|sight| sight.up);
                let other = |present: u64| *stream < present || !up && *stream != present;
                if sees.is_some_and(|sight| other(sight.stream)) {
                    // A connection that was abandoned before the current one opens or ends late.
                    return Ok(());
                }
                let sight = Sight {
                    stream: *stream,
                    up: *up,
                    alive_ns: entry.at_ns,
                    ..Sight::default()
                };
                self.surfaces.insert(surface.clone(), sight);
                self.questions.retain(|_, of| of != surface);
            }
            WitnessEvent::Intended {
                client_order_id, ..
            } => self.intended(client_order_id, entry.at_ns),
            WitnessEvent::Sent(request) => match wire::request_kind(request) {
                RequestKind::OpenOrders => {
                    self.questions.insert(request.id, request.surface.clone());
                }
                RequestKind::Place(orders) => {
                    for placed in orders {
                        let doubts = self.doubtful.remove(&placed.id).unwrap_or_default();
                        let of_it = |(surface, _): &&(String, _)| *surface == request.surface;
                        if let Some((surface, doubt)) = doubts.iter().find(of_it)
                            && !placed.reduces
                        {
                            let id = placed.id;
                            return Err(format!("{id} was accepted while on {surface} {doubt}"));
                        }
                    }
                }
                _ => {}
            },
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } if wire::is_done(answer) => {
                if let Some(surface) = self.questions.remove(request)
                    && let Some(sight) = self.surfaces.get_mut(&surface)
                {
                    sight.read = sight.up;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    fn seeing() -> Log {
        Log::new().start().stream(true).read_open_orders()
    }

    #[test]
    fn orders_with_a_current_view_are_accepted() {
        let sound = seeing().intend("mm.a.1").place("mm.a.1");
        assert_eq!(verdict(Blind::default(), &sound), Ok(()));
    }

    #[test]
    fn an_order_while_the_stream_is_down_is_found() {
        let broken = seeing().stream(false).intend("mm.a.1").place("mm.a.1");
        assert!(verdict(Blind::default(), &broken).is_err());
    }

    #[test]
    fn an_order_before_the_state_was_read_is_found() {
        let up = seeing().stream(false).stream(true);
        let broken = up.intend("mm.a.1").place("mm.a.1");
        assert!(verdict(Blind::default(), &broken).is_err());
    }

    #[test]
    fn an_order_on_a_silent_stream_is_found() {
        let later = |ms| seeing().later_ms(ms).intend("mm.a.1").place("mm.a.1");
        assert_eq!(verdict(Blind::default(), &later(19_000)), Ok(()));
        assert!(verdict(Blind::default(), &later(21_000)).is_err());
        let pong = seeing().later_ms(19_000).pong().later_ms(19_000);
        let sound = pong.intend("mm.a.1").place("mm.a.1");
        assert_eq!(verdict(Blind::default(), &sound), Ok(()));
    }

    #[test]
    fn an_order_after_the_listen_key_expired_is_found() {
        let expired = seeing().user_event(&serde_json::json!({"e": "listenKeyExpired"}));
        let broken = expired.intend("mm.a.1").place("mm.a.1");
        assert!(verdict(Blind::default(), &broken).is_err());
    }

    #[test]
    fn an_order_intended_before_may_be_sent() {
        let sound = seeing().intend("mm.a.1").stream(false).place("mm.a.1");
        assert_eq!(verdict(Blind::default(), &sound), Ok(()));
    }

    #[test]
    fn a_reducing_order_is_accepted() {
        let down = seeing().stream(false).intend("mm.a.1");
        assert_eq!(
            verdict(Blind::default(), &down.place_reducing("mm.a.1")),
            Ok(())
        );
    }
}
