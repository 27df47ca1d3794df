//! The trading status agrees with the evidence that was delivered. A run must not stay ready after
//! it was notified that its key, its account or its address may not trade. Its strategies open
//! nothing on an instrument right after the venue reported that the instrument accepts no orders.
//!
//! The rule is written from the codes of docs/interface/errors.md#blame. One response about the key
//! proves nothing. Three in a row on routes that need the trading right are proof, if no such
//! request is accepted in between.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::Check;
use super::orders::Orders;
use super::wire::{self, RequestKind};
use crate::witness::{Answer, Entry, IntentTerms, ProcessEvent, RequestId, Terms, WitnessEvent};

/// A run must leave the state ready within this time.
const NOTICED_NS: i64 = 2_000_000_000;
/// For this time no strategy may open anything on a blocked instrument; the first retry comes
/// later.
const BLOCKED_NS: i64 = 9_000_000_000;
/// Number of consecutive responses about the key that count as proof.
const AGREE: u32 = 3;
/// A shorter ban may be over before it is noticed.
const BAN_S: i64 = 4;

/// The purpose for which a request needs the trading right.
#[derive(Clone, Debug)]
enum Needs {
    /// An order: its instrument, and whether it may open something.
    Order(String, bool),
    /// A cancel or a countdown.
    Other,
    /// It does not need the right: a query.
    Nothing,
}

/// The rule.
#[derive(Debug)]
pub struct Trading {
    orders: Orders,
    open_requests: BTreeMap<RequestId, Needs>,
    ready: bool,
    denied: u32,
    /// Since when the run is ready despite evidence that it cannot trade, and the evidence.
    pending: Option<(i64, String)>,
    /// When the venue last reported that an instrument accepts no orders.
    blocked: BTreeMap<String, i64>,
    /// Opening orders that were intended for a blocked instrument.
    forbidden: BTreeSet<String>,
    /// A journal lost records, so the positions of strategies are unknown.
    lost: bool,
}

impl Trading {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            orders: Orders::new(terms),
            open_requests: BTreeMap::new(),
            ready: false,
            denied: 0,
            pending: None,
            blocked: BTreeMap::new(),
            forbidden: BTreeSet::new(),
            lost: false,
        }
    }

    fn prove(&mut self, now_ns: i64, what: &str) {
        if self.ready && self.pending.is_none() {
            self.pending = Some((now_ns, what.to_owned()));
        }
    }

    fn answer_received(&mut self, now_ns: i64, needs: &Needs, answer: &Answer) {
        if answer.status == 418 {
            let wait = answer.header("retry-after");
            let wait_s = wait.and_then(|text| text.parse::<i64>().ok());
            if wait_s.is_some_and(|wait_s| wait_s >= BAN_S) {
                self.prove(now_ns, "a ban (418)");
            }
            return;
        }
        let code = wire::code(answer);
        let of_key = matches!(code, Some(-1002 | -1005 | -2014 | -2015));
        match needs {
            Needs::Nothing => return,
            _ if of_key && wire::is_refusal(answer) => {
                self.denied += 1;
                if self.denied >= AGREE {
                    self.prove(now_ns, "three refusals of the key in a row");
                }
                return;
            }
            _ if wire::is_done(answer) || matches!(code, Some(-2011 | -2013)) => {
                self.denied = 0;
                self.pending = None;
            }
            _ => {}
        }
        let Needs::Order(instrument, opens) = needs else {
            return;
        };
        if wire::is_done(answer) {
            self.blocked.remove(instrument);
            return;
        }
        match code.filter(|_| wire::is_refusal(answer)) {
            Some(-4088) => self.prove(now_ns, "-4088: no order of the account is accepted"),
            Some(-4087) if *opens => self.prove(now_ns, "-4087: only orders that reduce"),
            Some(-1121 | -2016 | -4022 | -4140 | -4141) => {
                self.blocked.insert(instrument.clone(), now_ns);
            }
            _ => {}
        }
    }

    fn intended(&mut self, now_ns: i64, id: &str, terms: &IntentTerms) {
        let since = self.blocked.get(&terms.instrument);
        let blocked = since.is_some_and(|since| now_ns > *since && now_ns < since + BLOCKED_NS);
        let opens = !terms.reduce_only && !self.lost && !self.reduces(id, terms);
        if blocked && opens {
            self.forbidden.insert(id.to_owned());
        }
    }

    /// Whether an order reduces its strategy's position without closing more than that.
    fn reduces(&self, id: &str, terms: &IntentTerms) -> bool {
        let held = self.orders.position(
            wire::strategy(id),
            &wire::book(&terms.instrument, &terms.position_side),
        );
        let qty = terms.qty.as_deref().map(wire::decimal).unwrap_or_default();
        let buys = terms.side == "BUY";
        held != Decimal::ZERO && buys == held.is_sign_negative() && qty <= held.abs()
    }

    fn sent(&mut self, request: &crate::witness::Request) -> Result<(), String> {
        let needs = match wire::request_kind(request) {
            RequestKind::Place(orders) => {
                for placed in &orders {
                    if self.forbidden.remove(&placed.id) {
                        return Err(format!(
                            "{} opens on {}, although the venue reported that it accepts no orders",
                            placed.id, placed.instrument
                        ));
                    }
                }
                orders.first().map_or(Needs::Nothing, |placed| {
                    Needs::Order(placed.instrument.clone(), !placed.reduces)
                })
            }
            RequestKind::Cancel(_) | RequestKind::Countdown(..) => Needs::Other,
            _ => Needs::Nothing,
        };
        self.open_requests.insert(request.id, needs);
        Ok(())
    }
}

impl Check for Trading {
    fn rule(&self) -> &'static str {
        "the trading status agrees with the evidence"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let Some((since, what)) = &self.pending
            && entry.at_ns > since + NOTICED_NS
            && !matches!(entry.seen, WitnessEvent::Process(_))
        {
            let late_ms = (entry.at_ns - since) / 1_000_000;
            return Err(format!("the run is ready {late_ms} ms after {what}"));
        }
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.ready = false;
                self.denied = 0;
                self.pending = None;
                self.blocked.clear();
                self.forbidden.clear();
                self.open_requests.clear();
            }
            // A stopped process notices nothing.
            WitnessEvent::Process(seen) => {
                self.pending = None;
                if let ProcessEvent::Running {
                    process, journal, ..
                } = seen
                {
                    self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn");
                }
            }
            WitnessEvent::State { to, .. } => {
                self.ready = to == "ready";
                if !self.ready {
                    self.pending = None;
                }
            }
            // A command of the operator makes the run try at once.
            WitnessEvent::Commanded { .. } => {
                self.pending = None;
                self.denied = 0;
                self.blocked.clear();
            }
            WitnessEvent::Intended {
                client_order_id,
                terms,
                ..
            } => self.intended(entry.at_ns, client_order_id, terms),
            WitnessEvent::Sent(request) => self.sent(request)?,
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } => {
                if let Some(needs) = self.open_requests.remove(request) {
                    self.answer_received(entry.at_ns, &needs, answer);
                }
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: None,
            } => {
                self.open_requests.remove(request);
            }
            // The symbol may trade again, and a snapshot may have reported that.
            WitnessEvent::Act { .. } => self.blocked.clear(),
            _ => {}
        }
        self.orders.see(entry);
        Ok(())
    }
}
