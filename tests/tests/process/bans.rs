//! The venue bans the address; the run is killed and restarted. No request may leave before the ban
//! ends.

use std::time::Duration;

use serde_json::{Value, json};
use windvane_tests::binary;
use windvane_tests::venue::Venue;

use super::support::{self, PATIENCE};

/// Longer than `check` and a start need until their first request to the venue.
const BAN_MS: u64 = 20_000;

#[test]
fn a_ban_is_honoured_after_a_restart() {
    let venue = Venue::start(&["--seed", "72"]);
    let launch = support::launch(&venue);
    let mut instance = launch.start();
    support::ready(&mut instance);
    venue.control(
        "/faults",
        &json!({"fault": "ban", "status": 418, "for_ms": BAN_MS}),
    );
    let file = launch.data().join("bans");
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/status", PATIENCE, &|_| file.exists());
    instance.kill();
    let before = venue.hits();
    assert!(before.is_some_and(|hits| hits > 0), "{}", venue.faults());

    let data = format!("run.data_dir={}", launch.data().display());
    let venue_file = venue.file().display().to_string();
    let check = ["check", "--config", "configs/live-sim.toml", "--set", &data];
    let check = binary::run(check.into_iter().chain(["--venue", &venue_file]));
    let printed = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("accepts no requests from this address"),
        "{printed}"
    );

    let mut instance = launch.start();
    let admin = instance.admin();
    let waits = |status: &Value| {
        let reason = status["reason"].as_str().unwrap_or_default();
        status["state"] == "booting"
            && reason.contains("accepts no requests from this address until")
    };
    instance.until_shown(&admin, "/api/status", PATIENCE, &waits);
    let mut last = before;
    while let Some(now) = venue.hits() {
        last = Some(now);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(last, before, "a request was sent during the ban");
    support::ready(&mut instance);
    assert_eq!(instance.terminate().code(), Some(0));
}
