//! Queries of a start, before there is an engine.

use windvane_client_core::budget::Lane;
use windvane_model::Time;
use windvane_protocol::adapter::FuturesAccount;

use crate::exchange::Query;

use super::state::Requests;
use super::stops::Stops;

impl Requests {
    /// Sends a query of a start. The process before may have used most of the weight of this
    /// minute, so a start may use all that is left. Returns whether the exchange has a call for the
    /// query.
    pub(crate) fn query_for_start(&mut self, now: Time, query: Query<'_>) -> bool {
        self.send_numbered_query(now, query, (Lane::Start, 0), 0)
    }

    /// Ends the start. The engine has not received any stops of the venue yet, so the session
    /// reports them again. `other_account` is the alternative place of the futures account, if it
    /// is not known yet whether its route is served.
    pub(crate) fn end_start(&mut self, other_account: Option<FuturesAccount>) {
        self.account.may_be_at(other_account);
        self.stops = Stops::default();
        self.done.clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use windvane_client_core::Gateway;
    use windvane_client_core::budget::{Cost, Shares};
    use windvane_client_core::gateway::Identity;
    use windvane_client_core::nonce::Nonces;
    use windvane_client_core::settings::Api;
    use windvane_model::Surface;
    use windvane_model::live::LiveInput;
    use windvane_protocol::error::Limit;
    use windvane_protocol::sign::{Credentials, Dialect, Network};
    use windvane_protocol::{Brand, route};

    use super::*;
    use crate::exchange::{Documented, Signing};
    use crate::requests::{Done, RequestTerms};

    #[test]
    fn the_engine_receives_a_stop_that_began_during_the_start() {
        let identity = Identity {
            dialect: Dialect {
                brand: Brand::new("svc").unwrap(),
                network: Network::Mainnet,
                recv_window_ms: None,
            },
            credentials: Credentials::default(),
            spot_api: Api::V1,
            futures_api: Api::V1,
            hosts: [const { None }; 4],
        };
        let gateway = Gateway::new(identity, Shares::default(), Arc::new(Nonces::new()));
        let terms = RequestTerms {
            request: Duration::from_secs(10),
            countdown: Duration::from_secs(1),
        };
        let (now, surfaces) = (Time(0), vec![Surface::Futures]);
        let ban = (Limit::Ban, Some(60_000));
        gateway.heed_refusal(0, route::Surface::Futures, ban, &Cost::default());
        let exchange = Box::new(Documented::new(gateway, false, Signing::Here));
        let mut requests = Requests::new(exchange, terms, now, surfaces, 0);
        let reported_end = |requests: &mut Requests| {
            requests.report_stops(now);
            let done = requests.poll();
            matches!(done, Some(Done::Live(LiveInput::Stopped { .. })))
        };
        assert!(reported_end(&mut requests));
        assert!(!reported_end(&mut requests));
        requests.end_start(None);
        assert!(reported_end(&mut requests));
    }
}
