//! Finds out where the futures account is read if the start could not. The start's request was
//! refused for another reason than a missing route, such as a key without permissions, or its
//! response was incomplete.

use windvane_client_core::outcome::NotDone;
use windvane_protocol::adapter::FuturesAccount;
use windvane_protocol::route::Route;

use crate::exchange::{Exchange, Query};

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The alternative place; `None` once the right place is known.
    other: Option<FuturesAccount>,
}

impl Account {
    /// The start ended without knowing whether the venue serves the account route.
    pub(super) fn may_be_at(&mut self, other: Option<FuturesAccount>) {
        self.other = other;
    }

    /// The result of an account request. The first response that shows whether the route is served
    /// decides.
    pub(super) fn note_result(
        &mut self,
        route: &'static Route,
        result: &Result<String, NotDone>,
        exchange: &mut dyn Exchange,
    ) {
        let is_asked_for = self.other.is_some()
            && exchange
                .encode_query(Query::FuturesAccount)
                .is_some_and(|call| call.route.name == route.name);
        if !is_asked_for {
            return;
        }
        match result {
            Ok(text) if exchange.is_account(text) => self.other = None,
            Err(NotDone::Refused(refusal)) if refusal.is_of_unserved_read() => {
                if let Some(other) = self.other.take() {
                    tracing::warn!("the venue has no account route; the info endpoint is used");
                    let names = exchange.names().clone();
                    exchange.configure(names, other);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
}
