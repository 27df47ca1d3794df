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
    use windvane_client_core::budget::Cost;
    use windvane_model::Surface;
    use windvane_model::live::LiveInput;
    use windvane_protocol::error::Limit;
    use windvane_protocol::route;

    use super::*;
    use crate::exchange::Signing;
    use crate::requests::Done;
    use crate::testing;

    #[test]
    fn the_engine_receives_a_stop_that_began_during_the_start() {
        let (now, gateway) = (Time(0), testing::gateway());
        let ban = (Limit::Ban, Some(60_000));
        gateway.heed_refusal(0, route::Surface::Futures, ban, &Cost::default());
        let mut requests = testing::requests(gateway, Signing::Here, now, Surface::Futures);
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
