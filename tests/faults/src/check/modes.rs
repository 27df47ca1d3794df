//! Nothing opens while the account is in another mode than configured, as far as the runtime was
//! notified by a user event or a response. The multi-assets mode is off in every configuration
//! here; the position mode is that of the life. Each futures order must name its position as the
//! configured mode requires, and `reduceOnly` is sent only in one-way mode.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Check;
use super::wire::{self, Placed, RequestKind};
use crate::witness::{Entry, ProcessEvent, RequestId, Terms, WitnessEvent};

/// A mode of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Hedge,
    MultiAssets,
}

/// The rule.
#[derive(Debug, Default)]
pub struct Modes {
    /// Hedge mode is configured.
    hedge: bool,
    /// Modes that differ from the configuration, as far as this process was notified.
    on: BTreeSet<Mode>,
    /// Events in flight: the venue's time of the event, and its modes.
    reported: BTreeMap<u64, (i64, Vec<(Mode, bool)>)>,
    /// The venue's time of the newest event that reached this process; older events do not count.
    newest: i64,
    /// The process is stopped: it may drop the connection before it reads its messages.
    is_paused: bool,
    queries: BTreeMap<RequestId, Mode>,
    /// Orders that were intended in another mode.
    doubtful: BTreeMap<String, Mode>,
}

impl Modes {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            hedge: terms.hedge,
            ..Self::default()
        }
    }

    fn take(&mut self, mode: Mode, is_on: bool) {
        let configured = mode == Mode::Hedge && self.hedge;
        if is_on == configured {
            self.on.remove(&mode);
        } else {
            self.on.insert(mode);
        }
    }

    /// Checks that an order fits the configured position mode.
    fn fits(&self, placed: &Placed) -> Result<(), String> {
        let is_sided = matches!(placed.position_side.as_str(), "LONG" | "SHORT");
        let is_futures = placed.instrument.starts_with("futures:");
        if is_sided != (self.hedge && is_futures) || (is_sided && placed.flagged) {
            let mode = if self.hedge { "hedge" } else { "one-way" };
            return Err(format!("{placed:?} is sent in {mode} mode"));
        }
        Ok(())
    }
}

fn event(text: &str) -> (i64, Vec<(Mode, bool)>) {
    let event: Value = serde_json::from_str(text).unwrap_or_default();
    let reported = &event["ai"];
    let modes = [("d", Mode::Hedge), ("j", Mode::MultiAssets)].into_iter();
    let modes = modes.filter_map(|(field, mode)| Some((mode, reported.get(field)?.as_bool()?)));
    (event["E"].as_i64().unwrap_or_default(), modes.collect())
}

impl Check for Modes {
    fn rule(&self) -> &'static str {
        "nothing opens in another mode of the account"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Paused { .. }) => self.is_paused = true,
            WitnessEvent::Process(ProcessEvent::Resumed { .. }) => self.is_paused = false,
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.is_paused = false;
                self.on.clear();
                self.newest = 0;
                self.queries.clear();
            }
            WitnessEvent::Emitted {
                event: number,
                text,
                ..
            } if text.contains("\"ACCOUNT_CONFIG_UPDATE\"") => {
                self.reported.insert(*number, event(text));
            }
            WitnessEvent::Delivered { event, .. } if !self.is_paused => {
                let (made, modes) = self.reported.get(event).cloned().unwrap_or_default();
                if made >= self.newest {
                    for (mode, is_on) in modes {
                        self.newest = made;
                        self.take(mode, is_on);
                    }
                }
            }
            WitnessEvent::Intended {
                client_order_id, ..
            } => {
                if let Some(mode) = self.on.first() {
                    self.doubtful.insert(client_order_id.clone(), *mode);
                }
            }
            WitnessEvent::Sent(request) => {
                let last = request.path.rsplit('/').next().unwrap_or_default();
                match last {
                    "dual" => drop(self.queries.insert(request.id, Mode::Hedge)),
                    "multiAssetsMargin" => drop(self.queries.insert(request.id, Mode::MultiAssets)),
                    _ => {}
                }
                let RequestKind::Place(orders) = wire::request_kind(request) else {
                    return Ok(());
                };
                orders.iter().try_for_each(|placed| self.fits(placed))?;
                for placed in orders.iter().filter(|placed| !placed.reduces) {
                    if let Some(mode) = self.doubtful.get(&placed.id) {
                        return Err(format!(
                            "{} was accepted while the mode {mode:?} differs from the configuration",
                            placed.id
                        ));
                    }
                }
            }
            WitnessEvent::AnswerReceived {
                request,
                answer: Some(answer),
            } if wire::is_done(answer) => {
                let mode = self.queries.remove(request);
                let body = answer.json().unwrap_or_default();
                let field = match mode {
                    Some(Mode::Hedge) => "dualSidePosition",
                    Some(Mode::MultiAssets) => "multiAssetsMargin",
                    None => return Ok(()),
                };
                if let (Some(mode), Some(is_on)) = (mode, body[field].as_bool()) {
                    self.take(mode, is_on);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, verdict};

    fn judged(log: Log) -> Result<(), String> {
        verdict(Modes::default(), &log.order("mm.a.1"))
    }

    fn event(is_multi: bool, is_hedge: bool) -> Log {
        let modes = json!({"j": is_multi, "f": false, "d": is_hedge});
        let event = json!({"e": "ACCOUNT_CONFIG_UPDATE", "ai": modes});
        Log::new().start().user_event(&event)
    }

    #[test]
    fn an_order_in_another_mode_is_found() {
        assert_eq!(judged(event(false, false)), Ok(()));
        assert!(judged(event(true, false)).is_err());
        assert!(judged(event(false, true)).is_err());
        let before = Log::new().start().intend("mm.a.1");
        let before = before.user_event(&json!({"e": "ACCOUNT_CONFIG_UPDATE", "ai": {"j": true}}));
        assert_eq!(verdict(Modes::default(), &before.place("mm.a.1")), Ok(()));
    }

    #[test]
    fn an_old_event_after_a_newer_one_is_ignored() {
        let reported = |log: Log, made: i64, is_hedge: bool| {
            let event = json!({"e": "ACCOUNT_CONFIG_UPDATE", "E": made, "ai": {"d": is_hedge}});
            log.user_event(&event)
        };
        let changed = || reported(Log::new().start(), 1, true);
        let back = || reported(changed(), 2, false);
        assert!(judged(changed()).is_err());
        assert_eq!(judged(reported(back(), 1, true)), Ok(()));
        assert!(judged(reported(back(), 3, true)).is_err());
    }

    #[test]
    fn an_event_to_a_stopped_process_may_be_lost() {
        let event = json!({"e": "ACCOUNT_CONFIG_UPDATE", "ai": {"d": true}});
        let stopped = Log::new().start().paused().user_event(&event);
        assert_eq!(judged(stopped.resumed()), Ok(()));
        let later = Log::new().start().paused().resumed().user_event(&event);
        assert!(judged(later).is_err());
    }

    #[test]
    fn a_response_reports_a_mode_too() {
        let answered = |body| {
            let log = Log::new()
                .start()
                .request_plain("GET", "/fapi/v1/multiAssetsMargin", &[]);
            log.with_answer(200, &[], body)
        };
        assert!(judged(answered(r#"{"multiAssetsMargin":true}"#)).is_err());
        assert_eq!(judged(answered(r#"{"multiAssetsMargin":false}"#)), Ok(()));
    }
}
