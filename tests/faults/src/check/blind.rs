//! Blind means careful: no strategy's order that could add exposure is taken while the user stream
//! of its surface is down, or before open orders were read after it came up (promise 5).

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, Asked};
use crate::witness::{Entry, ProcessSeen, RequestId, Rest, Seen};

/// What is known of a surface.
#[derive(Debug, Default)]
struct Sight {
    up: bool,
    read: bool,
}

impl Sight {
    fn doubt(&self) -> Option<&'static str> {
        match (self.up, self.read) {
            (true, true) => None,
            (true, false) => Some("open orders were not read since the user stream came up"),
            (false, _) => Some("the user stream is down"),
        }
    }
}

/// The rule.
#[derive(Debug, Default)]
pub struct Blind {
    surfaces: BTreeMap<String, Sight>,
    questions: BTreeMap<RequestId, String>,
    /// Orders that were intended while a surface could not be seen: which, and why not.
    doubtful: BTreeMap<String, BTreeSet<(String, &'static str)>>,
}

impl Blind {
    fn intended(&mut self, id: &str) {
        for surface in ["spot", "futures"] {
            let sight = self.surfaces.entry(surface.to_owned()).or_default();
            if let Some(doubt) = sight.doubt() {
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
            Seen::Process(ProcessSeen::Started { .. }) => {
                self.surfaces.clear();
                self.questions.clear();
            }
            Seen::Stream {
                surface,
                user: true,
                up,
                ..
            } => {
                let sight = Sight {
                    up: *up,
                    read: false,
                };
                self.surfaces.insert(surface.clone(), sight);
                self.questions.retain(|_, asked| asked != surface);
            }
            Seen::Intended {
                client_order_id, ..
            } => self.intended(client_order_id),
            Seen::Sent(request) => match wire::asked(request) {
                Asked::OpenOrders => {
                    self.questions.insert(request.id, request.surface.clone());
                }
                Asked::Place(orders) => {
                    for placed in orders {
                        let doubts = self.doubtful.remove(&placed.id).unwrap_or_default();
                        let of_it = |(surface, _): &&(String, _)| *surface == request.surface;
                        if let Some((surface, doubt)) = doubts.iter().find(of_it)
                            && !placed.reduces
                        {
                            let id = placed.id;
                            return Err(format!("{id} was taken while on {surface} {doubt}"));
                        }
                    }
                }
                _ => {}
            },
            Seen::Heard {
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

    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
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
    fn whoever_sees_may_trade() {
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
    fn an_order_that_was_taken_before_may_leave() {
        let sound = seeing().intend("mm.a.1").stream(false).place("mm.a.1");
        assert_eq!(verdict(Blind::default(), &sound), Ok(()));
    }

    #[test]
    fn an_order_that_only_reduces_may_pass() {
        let down = seeing().stream(false).intend("mm.a.1");
        assert_eq!(
            verdict(Blind::default(), &down.place_reducing("mm.a.1")),
            Ok(())
        );
    }
}
