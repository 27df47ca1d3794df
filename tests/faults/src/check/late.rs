//! An order is sent soon after its release or never. The conditions of its release, a timer at the
//! venue and the knowledge of the account, may no longer hold.

use std::collections::BTreeMap;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, WitnessEvent};

/// The longest time from the release of an order to its bytes on the wire.
const WITHIN_NS: i64 = 1_050_000_000;

/// The rule.
#[derive(Debug, Default)]
pub struct Late(BTreeMap<String, i64>);

impl Check for Late {
    fn rule(&self) -> &'static str {
        "an order leaves soon or never"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Released {
                client_order_id,
                at_ns,
            } => {
                self.0.insert(client_order_id.clone(), *at_ns);
            }
            WitnessEvent::Sent(request) => {
                let RequestKind::Place(orders) = wire::request_kind(request) else {
                    return Ok(());
                };
                for placed in orders {
                    let Some(released_ns) = self.0.remove(&placed.id) else {
                        continue;
                    };
                    let waited_ns = entry.at_ns - released_ns;
                    if waited_ns > WITHIN_NS {
                        let waited_ms = waited_ns / 1_000_000;
                        return Err(format!(
                            "{} is sent {waited_ms} ms after its release",
                            placed.id
                        ));
                    }
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

    #[test]
    fn an_order_that_leaves_long_after_its_release_is_found() {
        let after = |ms| Log::new().release("mm.a.1").later_ms(ms).place("mm.a.1");
        assert_eq!(verdict(Late::default(), &after(900)), Ok(()));
        assert!(verdict(Late::default(), &after(1_200)).is_err());
    }
}
