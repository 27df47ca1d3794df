//! `kill -9` at random moments, also during recovery, with 200 own orders in the book.

use std::time::{Duration, Instant};

use windvane_tests::launch::Launch;
use windvane_tests::random::Random;
use windvane_tests::venue::Venue;

use super::support::{self, PATIENCE};

/// Environment variable with the number of kills; the default is 10.
const KILLS: &str = "WINDVANE_KILLS";
/// Environment variable with the seed; another seed draws other moments.
const SEED: &str = "WINDVANE_SEED";
/// Own orders that rest during the kills.
const RESTING: usize = 200;
/// Longest allowed recovery, with unoptimized builds on a busy machine included.
const RECOVERY: Duration = Duration::from_secs(5);
/// With open orders, a start waits up to this long for an account snapshot newer than the start.
const NEWER_READING: Duration = Duration::from_secs(12);

fn number(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(otherwise, |text| text.parse().unwrap())
}

/// The full test has 200 kills:
/// `WINDVANE_KILLS=200 cargo test --release -p windvane-tests --test process kills -- --nocapture`.
#[test]
fn kills_lose_and_duplicate_nothing_and_reuse_no_id() {
    let (kills, seed) = (number(KILLS, 10), number(SEED, 1));
    let venue = Venue::start(&["--seed", "21", "--weight", "24000"]);
    let config = support::crowded(venue.folder());
    let modules = ["market_maker", "ema_cross", "grid"];
    let launch = Launch::new(&venue, &venue.folder().join("data"))
        .config(&config)
        .modules(&modules);
    let mut random = Random::new(seed);
    let mut instance = launch.start();
    support::ready(&mut instance);
    let admin = instance.admin();
    let many = |orders: &serde_json::Value| orders.as_array().is_some_and(|o| o.len() >= RESTING);
    instance.until_shown(&admin, "/api/orders", PATIENCE, &many);

    let mut recoveries = Vec::new();
    let mut in_recovery = 0;
    for kill in 0..kills {
        // One kill in three does not wait until the previous start is complete.
        if kill % 3 == 2 {
            std::thread::sleep(Duration::from_millis(random.between(0, 600)));
            in_recovery += u32::from(
                admin
                    .show("/api/status")
                    .is_none_or(|status| status["state"] != "ready"),
            );
        } else {
            std::thread::sleep(Duration::from_millis(random.between(0, 1_500)));
        }
        instance.kill();
        let begin = Instant::now();
        instance = launch.start();
        if (kill + 1) % 3 != 2 {
            support::ready(&mut instance);
            // A start queries an order whose request the kill prevented until the order's window
            // has passed. That time does not count as recovery.
            if !instance.log().contains("the request never arrived") {
                recoveries.push(begin.elapsed());
            }
        }
    }
    support::ready(&mut instance);
    // The restarts adopted the grid's orders: none was cancelled and placed again.
    let canceled = support::of_grid(&venue, "CANCELED");
    assert_eq!(canceled, Vec::<String>::new());
    let resting = support::of_grid(&venue, "NEW").len();
    let (_, account) = support::halt_and_agree(&mut instance, &venue);
    let longest = recoveries.iter().max().copied().unwrap_or_default();
    let mean = recoveries.iter().sum::<Duration>() / recoveries.len().max(1) as u32;
    println!(
        "{kills} kills, {in_recovery} of them in recovery, {resting} of the grid at rest: recovery \
         {mean:?} in the mean, {longest:?} at the most; {} orders accepted",
        account["accepted"]["total"]
    );
    assert!(
        longest < NEWER_READING + RECOVERY,
        "{recoveries:?}\n{}",
        instance.log()
    );
    assert_eq!(instance.terminate().code(), Some(0));
}
