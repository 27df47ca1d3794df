//! A reload starts each strategy that it changes exactly once, and no other strategy.

use std::collections::BTreeMap;

use super::Check;
use crate::witness::{Entry, ProcessEvent, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Reloads {
    /// How often the current reload started each strategy.
    started: Option<BTreeMap<String, u32>>,
}

impl Check for Reloads {
    fn rule(&self) -> &'static str {
        "a reload begins each changed strategy once"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Process(ProcessEvent::Started { .. }) => self.started = None,
            WitnessEvent::Reloading { strategies } => {
                let started = strategies.iter().map(|one| (one.clone(), 0));
                self.started = Some(started.collect());
            }
            WitnessEvent::Renewed { strategy } => {
                let Some(started) = &mut self.started else {
                    return Err(format!("{strategy} starts again without a reload"));
                };
                let Some(times) = started.get_mut(strategy) else {
                    return Err(format!(
                        "{strategy} starts again, although the reload does not change it"
                    ));
                };
                *times += 1;
                if *times > 1 {
                    return Err(format!("one reload starts {strategy} {times} times"));
                }
            }
            WitnessEvent::Reloaded { refused } => {
                let started = self.started.take().unwrap_or_default();
                let left = started.iter().find(|(_, times)| **times == 0);
                if let (Some((strategy, _)), false) = (left, refused) {
                    return Err(format!("a reload changes {strategy} but does not start it"));
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

    #[allow(clippy::needless_pass_by_value, reason = "a log is made for each call")]
    fn judged(log: Log) -> Result<(), String> {
        verdict(Reloads::default(), &log)
    }

    #[test]
    fn a_strategy_that_starts_twice_or_never_is_found() {
        let reloading = || Log::new().start().reloading(&["mm"]);
        assert_eq!(judged(reloading().renewed("mm").reloaded()), Ok(()));
        assert!(judged(reloading().renewed("mm").renewed("mm")).is_err());
        assert!(judged(reloading().renewed("other")).is_err());
        assert!(judged(reloading().reloaded()).is_err());
    }

    #[test]
    fn a_strategy_that_starts_without_a_reload_is_found() {
        let reloaded = Log::new()
            .start()
            .reloading(&["mm"])
            .renewed("mm")
            .reloaded();
        assert!(judged(reloaded.renewed("mm")).is_err());
    }
}
