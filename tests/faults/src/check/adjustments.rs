//! What the ledger cannot explain is taken from the venue; where the venue tells its account
//! trades, nothing is left unexplained: no position is adjusted but in the first look after a
//! journal was lost, which lasts until a process becomes ready, be it the next one. A position that the
//! venue refused to reduce (-2022) needs no trade to be known as closed: readings that agree suffice.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use super::wire::{self, Asked};
use crate::witness::{Answer, Entry, ProcessSeen, RequestId, Rest, Seen};

/// The rule.
#[derive(Debug, Default)]
pub struct Adjustments {
    /// Questions for account trades.
    asked: BTreeMap<RequestId, String>,
    /// The venue refused to tell them.
    untold: bool,
    /// Orders: the instrument of each.
    orders: BTreeMap<RequestId, String>,
    /// Instruments whose position the venue refused to reduce, since their last fill.
    refused: BTreeSet<String>,
    /// The account as it is found belongs to nobody, until the run is ready.
    finding: bool,
}

/// -2022 `REDUCE_ONLY_REJECT`.
const REDUCES_NOTHING: i64 = -2022;

/// Whether the venue took an order and ended it at once without a fill, as some do in place of -2022.
fn reduced_nothing(answer: &Answer) -> bool {
    let is_over = |report: &wire::Report| {
        report.executed.is_zero() && matches!(report.status.as_str(), "REJECTED" | "EXPIRED")
    };
    wire::reports(answer).iter().any(is_over)
}

impl Adjustments {
    /// Whether the venue said that there is nothing to reduce, and the position is taken for smaller.
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
            Seen::Process(ProcessSeen::Running {
                journal, process, ..
            }) => self.finding |= *process == 1 || !matches!(journal.as_str(), "clean" | "torn"),
            Seen::State { to, .. } if to == "ready" => self.finding = false,
            Seen::Sent(request) if request.path.ends_with("/userTrades") => {
                self.asked.insert(request.id, request.path.clone());
            }
            Seen::Sent(request) => {
                if let Asked::Place(orders) = wire::asked(request)
                    && let Some(order) = orders.first()
                    && order.reduces
                {
                    self.orders.insert(request.id, order.instrument.clone());
                }
            }
            Seen::Heard {
                request,
                answer: Some(answer),
            } => {
                let instrument = self.orders.remove(request);
                let is_refused =
                    wire::code(answer) == Some(REDUCES_NOTHING) || reduced_nothing(answer);
                self.refused.extend(instrument.filter(|_| is_refused));
            }
            Seen::Booked { instrument, .. } => {
                self.refused.remove(instrument);
            }
            Seen::Answered {
                request, answer, ..
            } if self.asked.contains_key(request) => {
                self.untold |= (400..500).contains(&answer.status)
                    && !matches!(answer.status, 403 | 418 | 429);
            }
            Seen::Adjusted {
                kind, of, from, to, ..
            } if kind == "position"
                && !self.finding
                && !self.untold
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

    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    #[test]
    fn the_account_is_taken_as_it_is_found() {
        let sound = Log::new()
            .start()
            .adjusted("position", "0", "5")
            .state("ready");
        assert_eq!(verdict(Adjustments::default(), &sound), Ok(()));
    }

    #[test]
    fn a_process_that_ended_before_it_was_ready_leaves_the_first_look_to_the_next() {
        let looks = |first: Log| first.start_after("clean").adjusted("position", "0", "5");
        let lost = || Log::new().start().state("ready").start_after("rolled back");
        assert_eq!(verdict(Adjustments::default(), &looks(lost())), Ok(()));
        let found = looks(lost().state("ready"));
        assert!(verdict(Adjustments::default(), &found).is_err());
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
        let refused = || {
            let asked = Log::new().start().state("ready");
            let asked = asked.intend_order("mm.a.1", "SELL", None, true);
            let asked = asked.place_reducing("mm.a.1");
            asked.heard(400, &[], r#"{"code":-2022,"msg":""}"#)
        };
        let judged = |log: Log| verdict(Adjustments::default(), &log);
        assert_eq!(judged(refused().adjusted("position", "1", "0")), Ok(()));
        assert!(judged(refused().adjusted("position", "1", "2")).is_err());
        assert!(judged(refused().adjusted("position", "1", "-1")).is_err());
    }

    #[test]
    fn without_account_trades_there_is_nothing_to_explain_it() {
        let untold = Log::new()
            .start()
            .state("ready")
            .ask("GET", "/fapi/v1/userTrades", &[]);
        let untold = untold.heard(404, &[], "").adjusted("position", "0", "5");
        assert_eq!(verdict(Adjustments::default(), &untold), Ok(()));
    }
}
