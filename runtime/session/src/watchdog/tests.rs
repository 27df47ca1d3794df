use windvane_client_core::Lost;
use windvane_client_core::gateway::Answer;

use super::*;
use crate::exchange::Signing;
use crate::testing;

const BEGIN: Time = Time(1_700_000_000_000_000_000);
const SECOND: i64 = 1_000;
const COUNTDOWN_MS: i64 = 30 * SECOND;
const ABSENCE_MS: i64 = 10 * SECOND;

/// A watchdog, the exchange that it calls, and the time.
struct Rig {
    watchdog: Watchdog,
    now: Time,
    /// Client order ids of resting orders. A cancelled one has the time until which the list still
    /// contains it.
    resting: Vec<(String, Option<Time>)>,
    list_lag_ms: i64,
    /// Number of responses to cancels that are lost.
    lost_cancels: usize,
    /// The response body of every list request, if lists are refused.
    refusal: Option<&'static str>,
    cancels: Vec<String>,
    sent_routes: Vec<&'static str>,
    messages: Vec<WatchdogMessage>,
    heeds: usize,
    /// The response to the next call with this name is held back until [`Rig::let_go`].
    holds: Option<&'static str>,
    held: Option<Call>,
    end: Option<WatchdogEnd>,
}

fn plan() -> WatchdogPlan {
    WatchdogPlan {
        strategies: vec!["mm".to_owned()],
        symbols: vec!["BTCUSDT".to_owned()],
        epoch: 40,
        countdown_ms: COUNTDOWN_MS as u64,
        absence_ms: ABSENCE_MS as u64,
        orders_may_rest: false,
    }
}

impl Rig {
    fn new(plan: WatchdogPlan) -> Self {
        let requests = testing::requests(testing::gateway(), Signing::Here, BEGIN, Surface::Spot);
        let mut rig = Self {
            watchdog: Watchdog::new(BEGIN, plan, requests),
            now: BEGIN,
            resting: Vec::new(),
            list_lag_ms: 0,
            lost_cancels: 0,
            refusal: None,
            cancels: Vec::new(),
            sent_routes: Vec::new(),
            messages: Vec::new(),
            heeds: 0,
            holds: None,
            held: None,
            end: None,
        };
        rig.perform();
        rig
    }

    fn rests(&mut self, id: &str) {
        self.resting.push((id.to_owned(), None));
    }

    fn give(&mut self, input: WatchdogInput<'_>) {
        self.watchdog.handle(self.now, input);
        self.perform();
    }

    fn heartbeat(&mut self, number: u64) {
        let stopped_ms = 0;
        self.give(WatchdogInput::Message(RunMessage::Heartbeat {
            number,
            stopped_ms,
        }));
    }

    /// Lets time pass for a process that is not suspended.
    fn pass(&mut self, ms: i64) {
        let until = self.now.plus_ms(ms);
        while let Some(due) = self.watchdog.poll_timeout().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.give(WatchdogInput::Timeout);
        }
        self.now = until;
    }

    fn perform(&mut self) {
        while let Some(output) = self.watchdog.poll_output() {
            match output {
                WatchdogOutput::Send(call) if self.holds == Some(call.route.name) => {
                    self.sent_routes.push(call.route.name);
                    self.holds = None;
                    self.held = Some(call);
                }
                WatchdogOutput::Send(call) => {
                    self.sent_routes.push(call.route.name);
                    self.answer(&call);
                }
                WatchdogOutput::SendMessage(text) => self.messages.push(text),
                WatchdogOutput::HeedBans => {
                    self.heeds += 1;
                    self.watchdog.handle(self.now, WatchdogInput::BansHeeded);
                }
                WatchdogOutput::Sign(..) => panic!("the exchange must sign by itself"),
                WatchdogOutput::Abandon(id) => {
                    let lost = CallAnswer::Lost(Lost::Timeout(Duration::from_secs(10)));
                    self.watchdog
                        .handle(self.now, WatchdogInput::Answer(id, lost));
                }
            }
        }
        self.end = self.end.take().or_else(|| self.watchdog.take_end());
    }

    fn answer(&mut self, call: &Call) {
        let name = call.route.name;
        let parameters = [&call.prepared.query, &call.prepared.body];
        let parameters = parameters
            .map(|text| text.clone().unwrap_or_default())
            .concat();
        let (status, text) = match name {
            "spot.exchange_info" => (200, r#"{"symbols":[],"rateLimits":[]}"#.to_owned()),
            "spot.time" => {
                let ms = self.now.0 / 1_000_000;
                (200, format!(r#"{{"serverTime":{ms}}}"#))
            }
            "spot.open_orders" => match self.refusal {
                Some(body) => (400, body.to_owned()),
                None => (200, self.list()),
            },
            "spot.cancel_order" => {
                let id = parameters
                    .split('&')
                    .find_map(|word| word.strip_prefix("origClientOrderId="));
                let id = id.unwrap().to_owned();
                self.cancels.push(id.clone());
                self.cancel(&id)
            }
            other => panic!("unexpected call {other}"),
        };
        let handle_answer = if name == "spot.cancel_order" && self.lost_cancels > 0 {
            self.lost_cancels -= 1;
            CallAnswer::Lost(Lost::Cut("the connection broke".to_owned()))
        } else {
            CallAnswer::Received(Answer {
                status,
                headers: &[],
                text: &text,
            })
        };
        self.watchdog
            .handle(self.now, WatchdogInput::Answer(call.id, handle_answer));
    }

    fn let_go(&mut self) {
        let call = self.held.take().unwrap();
        self.answer(&call);
        self.perform();
    }

    fn list(&mut self) -> String {
        let now = self.now;
        self.resting
            .retain(|(_, gone)| gone.is_none_or(|gone| now < gone));
        let orders = self.resting.iter();
        let orders = orders.map(|(id, _)| format!(r#"{{"clientOrderId":"{id}","status":"NEW"}}"#));
        format!("[{}]", orders.collect::<Vec<_>>().join(","))
    }

    fn cancel(&mut self, id: &str) -> (u16, String) {
        let gone = self.now.plus_ms(self.list_lag_ms);
        match self
            .resting
            .iter_mut()
            .find(|(rests, gone)| rests == id && gone.is_none())
        {
            Some(order) => {
                order.1 = Some(gone);
                (200, "{}".to_owned())
            }
            None => (
                400,
                r#"{"code":-2011,"msg":"Unknown order sent."}"#.to_owned(),
            ),
        }
    }
}

#[test]
fn it_is_armed_after_a_complete_proof() {
    let mut rig = Rig::new(plan());
    let clock = ["spot.time"; 3];
    let sent_routes = [&["spot.exchange_info"][..], &clock, &["spot.open_orders"]].concat();
    assert_eq!(rig.sent_routes, sent_routes);
    assert_eq!(rig.messages, [WatchdogMessage::Armed]);
    rig.pass(5 * 60 * SECOND - 1);
    assert_eq!(rig.messages.len(), 1);
    rig.pass(1);
    assert_eq!(
        rig.messages,
        [WatchdogMessage::Armed; 2],
        "the proof is repeated"
    );
    assert_eq!(rig.heeds, 0, "no order rests before the first heartbeat");
}

#[test]
fn a_refused_proof_ends_it_and_a_failed_one_is_repeated() {
    let mut rig = Rig::new(plan());
    rig.refusal = Some(r#"{"code":-2015,"msg":"Invalid API-key."}"#);
    rig.pass(5 * 60 * SECOND);
    assert!(
        matches!(rig.end, Some(WatchdogEnd::Failed(_))),
        "{:?}",
        rig.end
    );

    let mut rig = Rig::new(plan());
    rig.refusal = Some(r#"{"code":-1001,"msg":"Internal error."}"#);
    rig.pass(5 * 60 * SECOND);
    assert_eq!((rig.messages.len(), rig.end.is_none()), (1, true));
    rig.refusal = None;
    rig.pass(SECOND);
    assert_eq!(rig.messages, [WatchdogMessage::Armed; 2]);
}

#[test]
fn it_acts_only_when_heartbeats_stop() {
    let mut rig = Rig::new(plan());
    rig.rests("mm.14.1");
    for number in 1..=3 {
        rig.heartbeat(number);
        rig.pass(COUNTDOWN_MS - 1);
    }
    assert_eq!(
        rig.messages.last(),
        Some(&WatchdogMessage::Acknowledged { number: 3 })
    );
    // A heartbeat that was in flight is received in the grace time.
    rig.pass(1 + GRACE_MS - 1);
    rig.heartbeat(4);
    rig.pass(COUNTDOWN_MS + GRACE_MS - 1);
    assert!(rig.cancels.is_empty());
    rig.pass(1);
    assert_eq!(rig.cancels, ["mm.14.1"]);
    assert_eq!(rig.messages.last(), Some(&WatchdogMessage::Acting));
    assert_eq!(rig.heeds, 1);
}

#[test]
fn a_suspended_watchdog_reads_heartbeats_before_it_acts() {
    let mut rig = Rig::new(plan());
    rig.heartbeat(1);
    rig.now = rig.now.plus_ms(10 * COUNTDOWN_MS);
    rig.give(WatchdogInput::Timeout);
    rig.heartbeat(2);
    rig.pass(GRACE_MS);
    assert_eq!(rig.heeds, 0, "the run is alive");
}

#[test]
fn how_a_run_ends_decides_whether_orders_are_cancelled() {
    let mut rig = Rig::new(plan());
    rig.rests("mm.14.1");
    rig.give(WatchdogInput::RunIsDead);
    assert_eq!(rig.end, Some(WatchdogEnd::NothingTakenOver));

    let mut rig = Rig::new(plan());
    rig.rests("mm.14.1");
    rig.heartbeat(1);
    rig.give(WatchdogInput::Message(RunMessage::End));
    assert_eq!(rig.end, Some(WatchdogEnd::InOrder));
    assert!(rig.cancels.is_empty());

    let orders_may_rest = true;
    let mut rig = Rig::new(WatchdogPlan {
        orders_may_rest,
        ..plan()
    });
    rig.rests("mm.14.1");
    rig.give(WatchdogInput::RunIsDead);
    rig.pass(0);
    assert_eq!(rig.cancels, ["mm.14.1"]);
}

#[test]
fn it_cancels_own_orders_until_none_can_arrive_any_more() {
    let mut rig = Rig::new(plan());
    rig.heartbeat(1);
    // Orders of this run, an earlier run, a later run, another strategy and a person.
    for id in ["mm.14.1", "mm.1.zz", "mm.15.1", "x.14.1", "web_1"] {
        rig.rests(id);
    }
    rig.give(WatchdogInput::RunIsDead);
    rig.pass(ABSENCE_MS - SECOND);
    assert_eq!(rig.cancels, ["mm.14.1", "mm.1.zz"]);
    // A request of the run arrives as late as possible, and the list shows it ten seconds later.
    rig.pass(10 * SECOND);
    rig.rests("mm.14.2");
    assert_eq!(rig.end, None);
    rig.pass(10 * SECOND);
    assert_eq!(rig.cancels, ["mm.14.1", "mm.1.zz", "mm.14.2"]);
    assert_eq!(rig.end, Some(WatchdogEnd::Swept(3)));
}

#[test]
fn more_orders_than_fit_in_flight_are_all_cancelled() {
    let mut rig = Rig::new(plan());
    rig.heartbeat(1);
    let ids: Vec<_> = (0..30).map(|nth| format!("mm.14.{nth}")).collect();
    for id in &ids {
        rig.rests(id);
    }
    rig.give(WatchdogInput::RunIsDead);
    rig.pass(0);
    assert_eq!(rig.cancels, ids);
}

#[test]
fn an_order_in_a_late_list_is_not_cancelled_each_time() {
    let mut rig = Rig::new(plan());
    rig.heartbeat(1);
    rig.rests("mm.14.1");
    rig.list_lag_ms = 10 * SECOND;
    rig.give(WatchdogInput::RunIsDead);
    rig.pass(60 * SECOND);
    assert_eq!(rig.cancels.len(), 2);
    assert_eq!(rig.end, Some(WatchdogEnd::Swept(1)));
}

#[test]
fn a_cancel_without_a_response_is_sent_again() {
    let mut rig = Rig::new(plan());
    rig.heartbeat(1);
    rig.rests("mm.14.1");
    rig.list_lag_ms = SECOND;
    rig.lost_cancels = 1;
    rig.give(WatchdogInput::RunIsDead);
    rig.pass(30 * SECOND);
    assert_eq!(rig.cancels.len(), 2);
    assert_eq!(rig.end, Some(WatchdogEnd::Swept(1)));
}

#[test]
fn a_refusing_venue_is_retried_for_an_hour() {
    let mut rig = Rig::new(plan());
    rig.heartbeat(1);
    rig.refusal = Some(r#"{"code":-1021,"msg":"Timestamp is outside of the recvWindow."}"#);
    rig.sent_routes.clear();
    rig.give(WatchdogInput::RunIsDead);
    rig.pass(0);
    assert_eq!(
        rig.sent_routes,
        [&["spot.open_orders"][..], &["spot.time"; 3]].concat()
    );
    rig.pass(59 * 60 * SECOND);
    assert_eq!(rig.end, None);
    let text = rig
        .messages
        .iter()
        .filter(|messages| **messages == WatchdogMessage::Acting);
    assert!(text.count() > 100, "it must report regularly");
    rig.pass(2 * 60 * SECOND);
    assert!(
        matches!(rig.end, Some(WatchdogEnd::Failed(_))),
        "{:?}",
        rig.end
    );
}

#[test]
fn nothing_is_sent_during_a_ban() {
    let mut rig = Rig::new(plan());
    let stopped_ms = 20_000;
    rig.give(WatchdogInput::Message(RunMessage::Heartbeat {
        number: 1,
        stopped_ms,
    }));
    rig.rests("mm.14.1");
    rig.give(WatchdogInput::RunIsDead);
    rig.pass(20 * SECOND - 1);
    assert!(rig.cancels.is_empty());
    rig.pass(1);
    assert_eq!(rig.cancels, ["mm.14.1"]);
}

#[test]
fn a_proof_in_progress_waits_during_a_ban() {
    for answered in ["spot.exchange_info", "spot.time"] {
        let mut rig = Rig::new(plan());
        rig.holds = Some(answered);
        rig.pass(5 * 60 * SECOND);
        let sent_routes = rig.sent_routes.len();
        assert_eq!(rig.sent_routes.last(), Some(&answered));
        let stopped_ms = 20_000;
        rig.give(WatchdogInput::Message(RunMessage::Heartbeat {
            number: 1,
            stopped_ms,
        }));
        rig.let_go();
        rig.pass(20 * SECOND - 1);
        assert_eq!(rig.sent_routes.len(), sent_routes, "after {answered}");
        rig.heartbeat(2);
        rig.pass(2 * SECOND);
        assert!(rig.sent_routes.len() > sent_routes);
    }
}

#[test]
fn only_orders_of_this_and_earlier_runs_are_own() {
    let plan = plan();
    for own in ["mm.14.1", "mm.1.zz"] {
        assert!(plan.is_own(own), "{own}");
    }
    for other in [
        "mm.15.1",
        "mm2.14.1",
        "mm.14",
        "web_1",
        "",
        "mm.14.1.1",
        "x.14.1",
    ] {
        assert!(!plan.is_own(other), "{other}");
    }
}
