//! Nothing of others is touched. Cancels are only for ids that we intended, whether or not the
//! orders left before a crash, and never for all orders of a symbol. No setting and no money of the
//! account is changed. Orders of another instance may be adopted after it has cancelled them,
//! because then no order is touched.

use std::collections::BTreeSet;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, ProcessEvent, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Others {
    own: BTreeSet<String>,
    /// Epochs of our processes, in the spelling of ids.
    epochs: BTreeSet<String>,
}

impl Others {
    /// A probe of the trading right cancels an id that no order has, so it touches nothing. Closing
    /// orders that were recorded before a kill but not sent have one of our epochs.
    fn may_cancel(&self, id: &str) -> bool {
        let epoch = id.split('.').nth(1).unwrap_or_default();
        self.own.contains(id) || self.epochs.contains(epoch) || wire::is_probe(id)
    }
}

/// A number in the spelling of ids: base 36, lower case.
fn spelt(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % 36).unwrap_or_default();
        digits.extend(char::from_digit(digit, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

impl Check for Others {
    fn rule(&self) -> &'static str {
        "nothing of others is touched"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let request = match &entry.seen {
            WitnessEvent::Sent(request) => request,
            WitnessEvent::Intended {
                client_order_id, ..
            } => {
                self.own.insert(client_order_id.clone());
                return Ok(());
            }
            WitnessEvent::Process(ProcessEvent::Running { epoch, .. }) => {
                self.epochs.insert(spelt(*epoch));
                return Ok(());
            }
            WitnessEvent::Act { act, .. } if act["act"] == "cancel" => {
                let id = act["client_order_id"].as_str();
                self.own.extend(id.map(str::to_owned));
                return Ok(());
            }
            _ => return Ok(()),
        };
        match wire::request_kind(request) {
            RequestKind::Place(orders) => {
                if let Some(order) = orders.iter().find(|order| wire::is_probe(&order.id)) {
                    return Err(format!(
                        "{} is placed, but it is the id of a probe",
                        order.id
                    ));
                }
                self.own.extend(orders.into_iter().map(|order| order.id));
            }
            RequestKind::Cancel(ids) => {
                let by_number = ["orderId", "orderIdList"]
                    .into_iter()
                    .any(|name| request.param(name).is_some());
                if by_number || ids.is_empty() {
                    return Err(format!(
                        "{} is sent without a client order id",
                        request.route
                    ));
                }
                if let Some(id) = ids.iter().find(|id| !self.may_cancel(id)) {
                    return Err(format!("{id} is cancelled, but we never intended it"));
                }
            }
            RequestKind::Change => {
                return Err(format!(
                    "{} {} is sent, which changes the account",
                    request.method, request.path
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
    use crate::check::log::{Log, verdict};

    #[test]
    fn an_order_that_may_have_left_before_a_crash_may_be_cancelled() {
        let sound = Log::new().intend("mm.a.1").start().cancel("mm.a.1");
        assert_eq!(verdict(Others::default(), &sound), Ok(()));
    }

    #[test]
    fn a_later_process_may_cancel_own_orders() {
        let sound = Log::new().place("mm.a.1").start().cancel("mm.a.1");
        assert_eq!(verdict(Others::default(), &sound), Ok(()));
    }

    #[test]
    fn a_recorded_close_may_be_cancelled() {
        let sound = Log::new().start().start().cancel("mm.1.7");
        assert_eq!(verdict(Others::default(), &sound), Ok(()));
        let broken = Log::new().start().cancel("mm.9.7");
        assert!(
            verdict(Others::default(), &broken).is_err(),
            "the epoch belongs to another instance"
        );
        assert_eq!(spelt(1_723_161_253), "shxbqd");
    }

    #[test]
    fn cancelling_an_order_that_we_did_not_send_is_found() {
        let broken = Log::new().place("mm.a.1").cancel("autoclose-1");
        assert!(verdict(Others::default(), &broken).is_err());
    }

    #[test]
    fn cancelling_everything_and_changing_settings_is_found() {
        for (method, path) in [
            ("DELETE", "/fapi/v1/allOpenOrders"),
            ("POST", "/fapi/v1/leverage"),
            ("POST", "/fapi/v1/positionSide/dual"),
        ] {
            let broken = Log::new().request(method, path, &[]);
            assert!(verdict(Others::default(), &broken).is_err(), "{path}");
        }
    }
}
