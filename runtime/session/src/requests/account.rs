//! Where the futures account is read, if a start could not find it out: its question was refused for
//! another reason than a missing route, such as a key without rights, or its answer was cut.

use windvane_client_core::outcome::NotDone;
use windvane_protocol::route::Route;
use windvane_protocol::speak::FuturesAccount;

use crate::exchange::{Exchange, Question};

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The other place; `None` once it is known where the account is.
    other: Option<FuturesAccount>,
}

impl Account {
    /// The start ended without an answer that says whether the account's route is served.
    pub(super) fn may_be_at(&mut self, other: Option<FuturesAccount>) {
        self.other = other;
    }

    /// What became of a reading: the first that was served, or that was refused because it is not,
    /// decides.
    pub(super) fn hear(
        &mut self,
        route: &'static Route,
        became: &Result<String, NotDone>,
        exchange: &mut dyn Exchange,
    ) {
        let is_asked_for = self.other.is_some()
            && exchange
                .ask(Question::FuturesAccount)
                .is_some_and(|call| call.route.name == route.name);
        if !is_asked_for {
            return;
        }
        match became {
            Ok(text) if exchange.is_account(text) => self.other = None,
            Err(NotDone::Refused(refusal)) if refusal.is_of_unserved_read() => {
                if let Some(other) = self.other.take() {
                    tracing::warn!("the venue has no account route: the info endpoint is asked");
                    let names = exchange.names().clone();
                    exchange.know(names, other);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
}
