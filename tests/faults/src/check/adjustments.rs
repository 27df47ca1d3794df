//! The runtime takes the venue's value for what its ledger cannot explain. If the venue lists the
//! account's trades, nothing must stay unexplained: no position is adjusted. The only exception is
//! the first look at the account, at the first start and after a lost journal. It lasts until a
//! process is ready, which may be the next one. A position that the venue refused to reduce (-2022
//! or -2024, or three times by the status REJECTED) counts as closed without a trade: account
//! snapshots that agree suffice. A run that uses only the core interface does not read the list of
//! the futures account's trades, and is not judged.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, Terms, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Adjustments {
    /// Requests for lists of the account's trades.
    open_requests: BTreeMap<RequestId, String>,
    /// The venue refused to serve them, or the run does not request them.
    no_account_trades: bool,
    /// Requests for closes, and the position of each.
    requests: BTreeMap<RequestId, String>,
    /// Own orders by id: the position, and whether the order only reduces.
    placed: BTreeMap<String, (String, bool)>,
    /// Positions that the venue refused to reduce, if nothing was executed on them after the
    /// refusal.
    refused: BTreeSet<String>,
    /// Closes that got the status REJECTED, by position, since its last execution.
    rejected: BTreeMap<String, BTreeSet<String>>,
    /// The first look: until the run is ready, the account is taken as found.
    finding: bool,
}

/// `REDUCE_ONLY_REJECT`, and `POSITION_NOT_SUFFICIENT` in hedge mode, where no order has a flag.
const REDUCES_NOTHING: [i64; 2] = [-2022, -2024];
/// This many closes with the status REJECTED, which gives no reason, count like one -2022.
const REJECTED_CLOSES: usize = 3;

impl Adjustments {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            no_account_trades: terms.is_documented,
            ..Self::default()
        }
    }

    fn take_report(&mut self, report: wire::Report) {
        let is_rejected = report.status == "REJECTED" && report.executed.is_zero();
        let Some((instrument, true)) = self.placed.get(&report.id).filter(|_| is_rejected) else {
            return;
        };
        let rejected = self.rejected.entry(instrument.clone()).or_default();
        rejected.insert(report.id);
        if rejected.len() >= REJECTED_CLOSES {
            self.refused.insert(instrument.clone());
        }
    }

    /// After an execution the position may differ from what the refusals showed.
    fn forget_refusals(&mut self, instrument: &str) {
        self.refused.remove(instrument);
        self.rejected.remove(instrument);
    }

    /// Whether the venue refused to reduce this position, and the adjustment makes it smaller.
    fn is_refused_close(&self, of: &str, from: &str, to: &str) -> bool {
        let (from, to) = (wire::decimal(from), wire::decimal(to));
        let is_smaller = to.is_zero() || (to.abs() < from.abs() && (to * from).is_sign_positive());
        is_smaller && self.refused.contains(of)
    }
}

impl Check for Adjustments {
    fn rule(&self) -> &'static str {
        "nothing is adjusted that trades explain"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Running {
                journal, process, ..
            }) => self.finding |= *process == 1 || !matches!(journal.as_str(), "clean" | "torn"),
            WitnessEvent::State { to, .. } if to == "ready" => self.finding = false,
            WitnessEvent::Sent(request) if request.path.ends_with("/userTrades") => {
                self.open_requests.insert(request.id, request.path.clone());
            }
            WitnessEvent::Sent(request) => {
                let RequestKind::Place(orders) = wire::request_kind(request) else {
                    return Ok(());
                };
                if let Some(order) = orders.first().filter(|order| order.reduces) {
                    self.requests.insert(request.id, order.book());
                }
                let placed = orders.into_iter();
                self.placed
                    .extend(placed.map(|order| (order.id.clone(), (order.book(), order.reduces))));
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } => {
                let instrument = self.requests.remove(request);
                let code = wire::code(answer);
                let is_refused = code.is_some_and(|code| REDUCES_NOTHING.contains(&code));
                self.refused.extend(instrument.filter(|_| is_refused));
                for report in wire::reports(answer) {
                    self.take_report(report);
                }
            }
            WitnessEvent::Emitted { text, .. } => {
                if let Some(report) = wire::event_report(text) {
                    self.take_report(report);
                }
            }
            WitnessEvent::Executed {
                client_order_id, ..
            } => {
                if let Some((instrument, _)) = self.placed.get(client_order_id).cloned() {
                    self.forget_refusals(&instrument);
                }
            }
            // A fill of an own order that is booked late was executed before the refusal.
            WitnessEvent::Booked {
                instrument,
                client_order_id,
                ..
            } if !self.placed.contains_key(client_order_id) => self.forget_refusals(instrument),
            WitnessEvent::Answered {
                request, answer, ..
            } if self.open_requests.contains_key(request) => {
                self.no_account_trades |= (400..500).contains(&answer.status)
                    && !matches!(answer.status, 403 | 418 | 429);
            }
            WitnessEvent::Adjusted {
                kind, of, from, to, ..
            } if kind == "position"
                && !self.finding
                && !self.no_account_trades
                && !self.is_refused_close(of, from, to) =>
            {
                return Err(format!(
                    "the position of {of} is adjusted from {from} to {to}"
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, terms, verdict};

    #[test]
    fn the_first_look_may_adjust_positions() {
        let sound = Log::new()
            .start()
            .adjusted("position", "0", "5")
            .state("ready");
        assert_eq!(verdict(Adjustments::default(), &sound), Ok(()));
    }

    #[test]
    fn the_first_look_continues_in_the_next_process() {
        let looks = |first: Log| first.start_after("clean").adjusted("position", "0", "5");
        let lost = || Log::new().start().state("ready").start_after("rolled back");
        assert_eq!(verdict(Adjustments::default(), &looks(lost())), Ok(()));
        let found = looks(lost().state("ready"));
        assert!(verdict(Adjustments::default(), &found).is_err());
    }

    #[test]
    fn a_run_that_reads_no_account_trades_is_not_judged() {
        let terms = Terms {
            is_documented: true,
            ..terms()
        };
        let log = Log::new().start().state("ready");
        let log = log.adjusted("position", "0", "5");
        assert_eq!(verdict(Adjustments::new(&terms), &log), Ok(()));
    }

    #[test]
    fn a_position_that_is_adjusted_later_is_found() {
        let ready = || Log::new().start().state("ready");
        let broken = ready().adjusted("position", "0", "5");
        assert!(verdict(Adjustments::default(), &broken).is_err());
        let balance = ready().adjusted("balance", "0", "5");
        assert_eq!(verdict(Adjustments::default(), &balance), Ok(()));
    }

    #[test]
    fn a_position_that_the_venue_refused_to_reduce_needs_no_trade() {
        let refused = |code: i64| {
            let log = Log::new().start().state("ready");
            let log = log.intend_order("mm.a.1", "SELL", None, true);
            let log = log.place_reducing("mm.a.1");
            log.with_answer(400, &[], &format!(r#"{{"code":{code},"msg":""}}"#))
        };
        let judged = |log: Log| verdict(Adjustments::default(), &log);
        for code in REDUCES_NOTHING {
            let adjusted = |to| judged(refused(code).adjusted("position", "1", to));
            assert_eq!(adjusted("0"), Ok(()), "{code}");
            assert!(adjusted("2").is_err(), "{code}");
            assert!(adjusted("-1").is_err(), "{code}");
        }
        let other = refused(-2019).adjusted("position", "1", "0");
        assert!(judged(other).is_err());
    }

    #[test]
    fn only_a_new_execution_ends_a_refusal() {
        let refused = || {
            let log = Log::new().start().state("ready");
            let log = log.intend_order("mm.a.1", "BUY", None, false);
            let log = log.place("mm.a.1").with_answer(200, &[], "{}");
            let log = log.intend_order("mm.a.2", "SELL", None, true);
            let log = log.place_reducing("mm.a.2");
            log.with_answer(400, &[], r#"{"code":-2022,"msg":""}"#)
        };
        let judged = |log: Log| verdict(Adjustments::default(), &log);
        let late = refused().booked("mm.a.1", 1, "1");
        assert_eq!(judged(late.adjusted("position", "1", "0")), Ok(()));
        let executed = refused().executed("mm.a.1", "1");
        assert!(judged(executed.adjusted("position", "1", "0")).is_err());
    }

    #[test]
    fn three_rejected_closes_count_as_a_refusal() {
        let closes = |status: &str, times: u32| {
            let mut log = Log::new().start().state("ready");
            for nth in 1..=times {
                let id = format!("mm.a.{nth}");
                let order =
                    format!(r#"{{"clientOrderId":"{id}","status":"{status}","executedQty":"0"}}"#);
                log = log.intend_order(&id, "SELL", None, true);
                log = log.place_reducing(&id).with_answer(200, &[], &order);
            }
            verdict(Adjustments::default(), &log.adjusted("position", "1", "0"))
        };
        assert!(closes("REJECTED", 2).is_err());
        assert_eq!(closes("REJECTED", 3), Ok(()));
        assert!(closes("EXPIRED", 3).is_err());
    }

    #[test]
    fn without_account_trades_adjustments_are_allowed() {
        let no_account_trades =
            Log::new()
                .start()
                .state("ready")
                .request("GET", "/fapi/v1/userTrades", &[]);
        let no_account_trades = no_account_trades
            .with_answer(404, &[], "")
            .adjusted("position", "0", "5");
        assert_eq!(verdict(Adjustments::default(), &no_account_trades), Ok(()));
    }
}
