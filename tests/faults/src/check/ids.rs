//! Ids are never used twice: client order ids over all lives of the process, and nonces of v3.

use std::collections::BTreeSet;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, WitnessEvent};

/// The rule.
#[derive(Debug, Default)]
pub struct Ids {
    orders: BTreeSet<String>,
    nonces: BTreeSet<String>,
}

impl Check for Ids {
    fn rule(&self) -> &'static str {
        "ids are never reused"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let WitnessEvent::Sent(request) = &entry.seen else {
            return Ok(());
        };
        if let RequestKind::Place(orders) = wire::request_kind(request) {
            for placed in orders {
                if !self.orders.insert(placed.id.clone()) {
                    return Err(format!("client order id {} was sent before", placed.id));
                }
            }
        }
        let nonce = request.param("nonce").unwrap_or_default();
        if !nonce.is_empty() && !self.nonces.insert(nonce.to_owned()) {
            return Err(format!("nonce {nonce} was sent before"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::log::{Log, verdict};

    #[test]
    fn each_order_has_its_own_id() {
        let sound = Log::new().place("mm.a.1").start().place("mm.b.1");
        assert_eq!(verdict(Ids::default(), &sound), Ok(()));
    }

    #[test]
    fn an_id_of_the_previous_life_is_found() {
        let broken = Log::new().place("mm.a.1").start().place("mm.a.1");
        assert!(verdict(Ids::default(), &broken).is_err());
    }

    #[test]
    fn a_nonce_that_was_used_is_found() {
        let nonce = |n: &str| [("nonce", n.to_owned())];
        let sound = Log::new()
            .request("GET", "/fapi/v3/order", &nonce("1"))
            .request("GET", "/fapi/v3/order", &nonce("2"));
        assert_eq!(verdict(Ids::default(), &sound), Ok(()));
        let broken = sound.request("GET", "/fapi/v3/account", &nonce("1"));
        assert!(verdict(Ids::default(), &broken).is_err());
    }
}
