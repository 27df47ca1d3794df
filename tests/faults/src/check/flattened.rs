//! The operator flattens while faults go on. As long as the venue answers requests, no position of
//! a strategy may be left after a fixed time, even if the user stream is down. The runtime need not
//! close what others traded by hand.
//!
//! The time counts from the command, and starts anew after anything that keeps requests from being
//! answered. That is a lost, late, false or unreadable response, a rate limit refusal, a closed or
//! stopped symbol, a wrong clock, a journal that does not write, or a process that does not run.
//! After a start the time counts from the moment when account snapshots can no longer be older than
//! the start.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Check;
use super::wire;
use crate::witness::{Answer, Entry, ProcessEvent, RequestId, Terms, WitnessEvent};

/// Everything must be closed within this time.
const WITHIN_NS: i64 = 20_000_000_000;
/// The limit if requests carry nonces. It is longer, because an order without a response may arrive
/// later.
const WITHIN_NONCES_NS: i64 = 90_000_000_000;
/// For this time after a start, account snapshots may be older than the start.
const START_NS: i64 = 15_000_000_000;
/// A response that takes longer is late.
const LATE_NS: i64 = 1_000_000_000;
/// Refusal codes that say that the venue accepts no order, or no request, at this time: unknown
/// outcomes, the clock, the rights of the key, the wallet, the symbol.
const CLOSED: [i64; 12] = [
    -1000, -1001, -1003, -1006, -1007, -1021, -2015, -2016, -2019, -4087, -4088, -4140,
];

/// The rule.
#[derive(Debug)]
pub struct Flattened {
    within_ns: i64,
    strategies: BTreeSet<String>,
    instruments: BTreeSet<String>,
    /// When the flatten began.
    since_ns: Option<i64>,
    /// The last time at which something kept requests from being answered.
    trouble_ns: i64,
    /// Ongoing obstacles: the journal, the key's rights, symbols, a stopped process.
    standing: BTreeSet<String>,
    /// Requests without a response, and when they were sent.
    open_requests: BTreeMap<RequestId, i64>,
    answered: BTreeMap<RequestId, Answer>,
    /// A process was ready once; or this process, if another instance acts. A start watches such an
    /// instance before it changes anything.
    ready: bool,
    /// Another instance placed orders on the account.
    has_another: bool,
    lost: bool,
}

impl Flattened {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            within_ns: if terms.v3 {
                WITHIN_NONCES_NS
            } else {
                WITHIN_NS
            },
            strategies: terms.strategies.iter().map(|one| one.id.clone()).collect(),
            instruments: terms.instruments.iter().cloned().collect(),
            since_ns: None,
            trouble_ns: 0,
            standing: BTreeSet::new(),
            open_requests: BTreeMap::new(),
            answered: BTreeMap::new(),
            ready: false,
            has_another: false,
            lost: false,
        }
    }

    fn answer_received(&mut self, request: RequestId, answer: Option<&Answer>, now_ns: i64) {
        let own = self.answered.remove(&request);
        let Some(sent_ns) = self.open_requests.remove(&request) else {
            return;
        };
        let Some(answer) = answer else {
            self.trouble_ns = self.trouble_ns.max(now_ns);
            return;
        };
        let is_false = own.is_none_or(|own| own.body != answer.body);
        let code = wire::code(answer);
        let is_closed = answer.status >= 500 || code.is_some_and(|code| CLOSED.contains(&code));
        let is_unread = answer.json().is_none();
        let is_late = now_ns > sent_ns + LATE_NS;
        if is_false || is_closed || is_unread || is_late {
            self.trouble_ns = self.trouble_ns.max(now_ns);
        }
        if let Some(wait_ns) = wire::wait_ns(answer) {
            self.trouble_ns = self.trouble_ns.max(now_ns.saturating_add(wait_ns));
        }
    }

    fn act(&mut self, act: &Value) {
        let word = |field| act.get(field).and_then(Value::as_str).unwrap_or_default();
        self.has_another |= self
            .strategies
            .contains(wire::strategy(word("client_order_id")));
        let (key, stands) = match word("act") {
            "rights" => ("rights".to_owned(), act["perp_trade"] == false),
            "rules" if act.get("status").is_some() => {
                (word("symbol").to_owned(), word("status") != "TRADING")
            }
            _ => return,
        };
        if stands {
            self.standing.insert(key);
        } else {
            self.standing.remove(&key);
        }
    }

    /// The strategies' possible rest of each instrument: the account's position minus what others
    /// traded there.
    fn judge(&mut self, truth: &Value, now_ns: i64) -> Result<(), String> {
        let pending = self.open_requests.values().any(|sent| {
            // If no response comes at all, the runtime abandons the request after some time.
            (sent + LATE_NS..sent + self.within_ns).contains(&now_ns)
        });
        if pending || !self.standing.is_empty() {
            self.trouble_ns = self.trouble_ns.max(now_ns);
        }
        let Some(since_ns) = self.since_ns.filter(|_| !self.lost) else {
            return Ok(());
        };
        let from_ns = since_ns.max(self.trouble_ns);
        if now_ns <= from_ns + self.within_ns {
            return Ok(());
        }
        let account = &truth["accounts"][0];
        let flat = wire::is_flat(account, &self.strategies, &self.instruments);
        flat.map_err(|rest| {
            format!(
                "the flatten began {} s ago, and requests are answered for {} s; the account still \
                 holds {rest}",
                (now_ns - since_ns) / 1_000_000_000,
                (now_ns - from_ns) / 1_000_000_000,
            )
        })
    }
}

impl Check for Flattened {
    fn rule(&self) -> &'static str {
        "a flatten closes while requests are answered"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let now_ns = entry.at_ns;
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. } | ProcessEvent::Crashed { .. }) => {
                self.since_ns = None;
                if self.ready {
                    self.trouble_ns = self.trouble_ns.max(now_ns + START_NS);
                }
                self.ready &= !self.has_another;
                self.open_requests.clear();
                self.standing.remove("process");
                self.standing.remove("journal");
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            WitnessEvent::Process(ProcessEvent::Paused { .. }) => {
                self.standing.insert("process".to_owned());
            }
            WitnessEvent::Process(ProcessEvent::Resumed { .. }) => {
                self.standing.remove("process");
                self.trouble_ns = self.trouble_ns.max(now_ns);
            }
            WitnessEvent::Journal(word) => {
                if matches!(word.as_str(), "stalled" | "failed") {
                    self.standing.insert("journal".to_owned());
                } else {
                    self.standing.remove("journal");
                }
                self.trouble_ns = self.trouble_ns.max(now_ns);
            }
            WitnessEvent::State { to, .. } => self.ready |= to == "ready",
            WitnessEvent::Commanded {
                strategy: None,
                command,
            } if command == "flatten" && self.ready => {
                self.since_ns.get_or_insert(now_ns);
            }
            WitnessEvent::Commanded { command, .. } if command == "resume" => self.since_ns = None,
            WitnessEvent::Sent(request) if request.surface == "futures" => {
                self.open_requests.insert(request.id, now_ns);
            }
            WitnessEvent::Answered {
                request,
                copy: 0,
                answer,
            } if self.open_requests.contains_key(request) => {
                self.answered.insert(*request, answer.clone());
            }
            WitnessEvent::AnswerReceived { request, answer } => {
                self.answer_received(*request, answer.as_ref(), now_ns);
            }
            WitnessEvent::Act { act, done: true } => {
                self.act(act);
                if !self.standing.is_empty() {
                    self.trouble_ns = self.trouble_ns.max(now_ns);
                }
            }
            WitnessEvent::Closing(truth) => return self.judge(truth, now_ns),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, terms, verdict};

    fn truth(held: &str, by_hand: &str) -> Value {
        json!({"accounts": [{
            "orders": [{"order_id": 9, "client_order_id": "web_1"}],
            "trades": [{"order_id": 9, "symbol": "BTCUSDT", "qty": by_hand}],
            "positions": [{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": held}],
        }]})
    }

    fn reported() -> Log {
        Log::new().start().state("ready").command("flatten", None)
    }

    fn judged(log: Log, held: &str) -> Result<(), String> {
        let rule = Flattened::new(&terms());
        verdict(rule, &log.closing(truth(held, "0.5")))
    }

    #[test]
    fn a_position_that_is_left_is_found() {
        let late = || reported().stream(false).later_ms(21_000);
        assert!(judged(late(), "1").is_err());
        assert!(judged(late(), "-1").is_err());
        assert_eq!(judged(late(), "0"), Ok(()));
        assert_eq!(
            judged(late(), "0.5"),
            Ok(()),
            "the position belongs to a person"
        );
        assert_eq!(judged(reported().later_ms(19_000), "1"), Ok(()));
        let over = reported().command("resume", None).later_ms(30_000);
        assert_eq!(judged(over, "1"), Ok(()));
    }

    #[test]
    fn a_start_closes_after_its_snapshots_are_current() {
        let again = || reported().later_ms(1_000).start().command("flatten", None);
        assert_eq!(judged(again().later_ms(34_000), "1"), Ok(()));
        assert!(judged(again().later_ms(36_000), "1").is_err());
        let places = json!({"act": "place", "client_order_id": "mm.9.1"});
        let alongside = reported().act(places).start().command("flatten", None);
        assert_eq!(
            judged(alongside.later_ms(36_000), "1"),
            Ok(()),
            "the start watches the other instance"
        );
    }

    #[test]
    fn missing_or_late_responses_restart_the_time() {
        let requested = || {
            reported()
                .later_ms(5_000)
                .request("GET", "/fapi/v3/account", &[])
        };
        let lost = requested().without_answer().later_ms(19_000);
        assert_eq!(judged(lost, "1"), Ok(()));
        let late = requested().later_ms(5_000).with_answer(200, &[], "{}");
        assert_eq!(judged(late.later_ms(19_000), "1"), Ok(()));
        let limit = requested().with_answer(429, &[("retry-after", "30")], "{}");
        assert_eq!(judged(limit.later_ms(45_000), "1"), Ok(()));
        let prompt = requested().with_answer(200, &[], "{}").later_ms(19_000);
        assert!(judged(prompt, "1").is_err());
    }

    #[test]
    fn a_stopped_symbol_stops_the_time() {
        let stops = json!({"act": "rules", "symbol": "BTCUSDT", "status": "SETTLING"});
        let trades = json!({"act": "rules", "symbol": "BTCUSDT", "status": "TRADING"});
        let stopped = reported().act(stops).later_ms(30_000);
        assert_eq!(judged(stopped.clone(), "1"), Ok(()));
        assert!(judged(stopped.act(trades).later_ms(21_000), "1").is_err());
    }
}
