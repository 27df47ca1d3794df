//! What the ledger cannot explain is taken from the venue; where the venue tells its account
//! trades, nothing is left unexplained: no position is adjusted but in the first look after a
//! journal was lost, which lasts until a process becomes ready, be it the next one.

use std::collections::BTreeMap;

use super::Check;
use crate::witness::{Entry, ProcessSeen, RequestId, Rest, Seen};

/// The rule.
#[derive(Debug, Default)]
pub struct Adjustments {
    /// Questions for account trades.
    asked: BTreeMap<RequestId, String>,
    /// The venue refused to tell them.
    untold: bool,
    /// The account as it is found belongs to nobody, until the run is ready.
    finding: bool,
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
            Seen::Answered {
                request, answer, ..
            } if self.asked.contains_key(request) => {
                self.untold |= (400..500).contains(&answer.status)
                    && !matches!(answer.status, 403 | 418 | 429);
            }
            Seen::Adjusted {
                kind, of, from, to, ..
            } if kind == "position" && !self.finding && !self.untold => {
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
    fn without_account_trades_there_is_nothing_to_explain_it() {
        let untold = Log::new()
            .start()
            .state("ready")
            .ask("GET", "/fapi/v1/userTrades", &[]);
        let untold = untold.heard(404, &[], "").adjusted("position", "0", "5");
        assert_eq!(verdict(Adjustments::default(), &untold), Ok(()));
    }
}
