//! A process that is stopped, and a network that is cut. The dead man's switch cancels the orders,
//! and the run detects that when it continues. A lost heartbeat response has no bad effect.

use std::time::Duration;

use serde_json::{Value, json};
use windvane_tests::admin::{Admin, Sample};
use windvane_tests::instance::Instance;
use windvane_tests::venue::Venue;

use super::support::{self, state};

/// The shortest countdown that the configuration permits.
const COUNTDOWN: Duration = Duration::from_secs(5);
/// On a busy machine the venue's countdown may be this late.
const LATE: Duration = Duration::from_secs(10);

fn trading(venue: &Venue) -> Instance {
    let countdown = format!("heartbeat.countdown_ms={}", COUNTDOWN.as_millis());
    let launch = support::launch(venue)
        .set(&countdown)
        .set("heartbeat.interval_ms=1500")
        .set("reconcile.interval_ms=5000");
    let mut instance = launch.start();
    support::ready(&mut instance);
    support::trading(&mut instance, venue);
    instance
}

#[test]
fn a_stopped_process_loses_its_orders_and_notices_it() {
    let venue = Venue::start(&["--seed", "51"]);
    let mut instance = trading(&venue);
    instance.signal("STOP");
    support::dead_man(&venue, COUNTDOWN + LATE);
    let accepted = venue.account()["accepted"]["total"].clone();
    instance.signal("CONT");
    support::ready(&mut instance);
    let admin = instance.admin();
    // It trades again, and it knows its new orders.
    let newer = |_: &Value| venue.account()["accepted"]["total"].as_u64() > accepted.as_u64();
    instance.until_shown(&admin, "/api/status", support::REST, &newer);
    support::halt_and_agree(&mut instance, &venue);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_cut_network_triggers_the_dead_mans_switch_and_recovers() {
    let venue = Venue::start(&["--seed", "52"]);
    let mut instance = trading(&venue);
    let cut = json!({"fault": "unknown", "how": "cut", "accepted": false, "surface": "futures"});
    venue.control("/faults", &cut);
    let streams = json!({"fault": "unknown", "how": "cut", "accepted": false, "route": "stream"});
    venue.control("/faults", &streams);
    venue.control("/act", &json!({"act": "disconnect"}));
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/status", LATE, &state("degraded"));
    support::dead_man(&venue, COUNTDOWN + LATE);
    venue.control_delete("/faults");
    support::ready(&mut instance);
    support::trading(&mut instance, &venue);
    support::halt_and_agree(&mut instance, &venue);
    assert_eq!(instance.terminate().code(), Some(0));
}

/// Number of countdowns of all instruments with this outcome.
fn heartbeats(admin: &Admin, outcome: &str) -> f64 {
    let outcome = format!("outcome=\"{outcome}\"");
    let of_this = |sample: &Sample| {
        sample.name.starts_with("windvane_heartbeats_total") && sample.name.contains(&outcome)
    };
    let samples = admin.metrics().into_iter().filter(of_this);
    samples.map(|sample| sample.value).sum()
}

#[test]
fn a_lost_countdown_renewal_is_repeated_in_time() {
    let venue = Venue::start(&["--seed", "53"]);
    let mut instance = trading(&venue);
    let deaf = json!({"fault": "unknown", "how": "half_open", "accepted": false,
        "route": "futures.countdown*", "count": 1});
    venue.control("/faults", &deaf);
    let admin = instance.admin();
    let failed = |_: &Value| heartbeats(&admin, "failed") > 0.0;
    instance.until_shown(&admin, "/api/status", support::REST, &failed);
    let before = heartbeats(&admin, "renewed");
    let renewed = |_: &Value| heartbeats(&admin, "renewed") > before;
    instance.until_shown(&admin, "/api/status", support::REST, &renewed);
    assert!(heartbeats(&admin, "lapsed") < 1.0, "{}", instance.log());
    support::halt_and_agree(&mut instance, &venue);
    assert_eq!(instance.terminate().code(), Some(0));
}
