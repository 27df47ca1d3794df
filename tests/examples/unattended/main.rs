//! The acceptance run: `windvane venue` and `windvane run --config configs/live-sim.toml` with both
//! strategies for some minutes of real time. The control port switches faults of every kind on at
//! random. Then the faults end, the run settles, and its state is compared with the venue's.
//!
//! ```sh
//! cargo run --release -p windvane-tests --example unattended -- --minutes 20 --seed 1
//! cargo run --release -p windvane-tests --example unattended -- --minutes 20 --kills
//! # The soak: nothing but a fast market, of some 2,150 events a second.
//! cargo run --release -p windvane-tests --example unattended -- --minutes 30 --calm --rate 2800
//! ```
//!
//! The program panics if a check fails. The data folder remains where `--data` names it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the program panics if a check fails"
)]

mod faults;
mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watch::Watch;
use windvane_tests::admin::Admin;
use windvane_tests::agreement;
use windvane_tests::binary;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::random::Random;
use windvane_tests::venue::Venue;

/// Time between two looks at state, metrics and memory.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Everything must have converged this long after the last fault.
const REST: Duration = Duration::from_mins(1);
/// Codes with which the venue may refuse requests: a query or cancel of an order that does not
/// exist, an order that would have taken liquidity, or a time or weight that a fault made wrong.
const EXPECTED: &[&str] = &[
    "-2011", "-2013", "-5022", "-1021", "-1003", "-1125", "-2021",
];

/// The options of the command line.
struct Plan {
    minutes: f64,
    seed: u64,
    rate: u64,
    calm: bool,
    kills: bool,
    data: Option<PathBuf>,
}

impl Plan {
    fn read() -> Self {
        let mut plan = Self {
            minutes: 20.0,
            seed: 1,
            rate: 20,
            calm: false,
            kills: false,
            data: None,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(word) = arguments.next() {
            let mut value = || arguments.next().expect("the option needs a value");
            match word.as_str() {
                "--minutes" => plan.minutes = value().parse().expect("minutes"),
                "--seed" => plan.seed = value().parse().expect("a seed"),
                "--rate" => plan.rate = value().parse().expect("actions per second and symbol"),
                "--data" => plan.data = Some(PathBuf::from(value())),
                "--calm" => plan.calm = true,
                "--kills" => plan.kills = true,
                _ => panic!(
                    "unknown option {word}; use --minutes --seed --rate --data --calm --kills"
                ),
            }
        }
        plan
    }
}

fn main() {
    let plan = Plan::read();
    let (seed, rate) = (plan.seed.to_string(), plan.rate.to_string());
    let venue = Venue::start(&["--seed", &seed, "--rate", &rate]);
    let data = plan.data.clone();
    let data = data.unwrap_or_else(|| venue.folder().join("data"));
    let launch = Launch::new(&venue, &data).modules(&["market_maker", "ema_cross"]);
    let mut run = Run {
        instance: Some(launch.start()),
        admin: Admin::of(&data),
        launch,
        random: Random::new(plan.seed),
        watch: Watch::default(),
        venue,
    };
    run.until("ready", Duration::from_mins(2));
    run.go_on(&plan);
    run.rest();
    run.compare();
    run.end();
    run.judge(&plan);
}

/// The run and its environment.
struct Run {
    venue: Venue,
    launch: Launch,
    instance: Option<Instance>,
    admin: Admin,
    random: Random,
    watch: Watch,
}

impl Run {
    fn instance(&mut self) -> &mut Instance {
        self.instance.as_mut().expect("the instance runs")
    }

    fn until(&mut self, state: &str, within: Duration) {
        let admin = self.admin.clone();
        let is_it = |status: &Value| status["state"] == state;
        self.instance()
            .until_shown(&admin, "/api/status", within, &is_it);
    }

    /// Runs for the planned time, with faults.
    fn go_on(&mut self, plan: &Plan) {
        let begin = Instant::now();
        let length = Duration::from_secs_f64(plan.minutes * 60.0);
        let mut next_fault = begin + Duration::from_secs(5);
        while begin.elapsed() < length {
            if !plan.calm && Instant::now() >= next_fault {
                self.fault();
                next_fault =
                    Instant::now() + Duration::from_millis(self.random.between(500, 6_000));
            }
            if plan.kills && self.random.between(0, 120) == 0 {
                self.kill();
            }
            self.look();
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn look(&mut self) {
        let ended = self.instance().ended();
        assert!(ended.is_none(), "the instance ended: {ended:?}");
        let pid = self.instance().pid();
        self.watch.look(&self.admin, pid);
        self.watch.look_at_bans(&self.venue.faults());
    }

    fn kill(&mut self) {
        self.watch.process_ends();
        self.instance.take().expect("the instance runs").kill();
        self.watch.kills += 1;
        std::thread::sleep(Duration::from_millis(self.random.between(0, 3_000)));
        self.instance = Some(self.launch.start());
    }

    /// Switches one fault on for a while, or triggers one act.
    fn fault(&mut self) {
        let (for_ms, share) = (self.random.between(200, 8_000), self.random.between(1, 60));
        let all = faults::all();
        let mut fault = self
            .random
            .one_of(&all)
            .expect("the list of faults is not empty")
            .clone();
        self.watch.faults += 1;
        if fault.get("act").is_some() {
            self.venue.control("/act", &fault);
            return;
        }
        if fault.get("for_ms").is_none() {
            fault["for_ms"] = json!(for_ms);
        }
        if fault.get("probability").is_some() {
            fault["probability"] = json!(format!("0.{share:02}"));
        }
        self.venue.control("/faults", &fault);
    }

    /// Ends all faults, waits until everything has converged, then pauses so that no new order is
    /// sent.
    fn rest(&mut self) {
        self.venue.control_delete("/faults");
        let begin = Instant::now();
        self.until("ready", REST);
        println!("ready {:?} after the last fault", begin.elapsed());
        self.admin.command("/api/pause");
    }

    fn compare(&mut self) {
        let begin = Instant::now();
        let agreed = agreement::wait(&self.admin, &self.venue, REST);
        let (own, account) = agreed.unwrap_or_else(|differing| panic!("{differing:#?}"));
        println!(
            "own state equals /state after {:?}: {} orders rest, {} orders were accepted",
            begin.elapsed(),
            own["orders"].as_array().map_or(0, Vec::len),
            account["accepted"]["total"],
        );
        println!(
            "  positions {}\n  balances {}",
            own["positions"], own["balances"]
        );
        let wrongs = agreement::wrongs(&own, &account);
        assert!(wrongs.is_empty(), "{wrongs:#?}");
    }

    /// Ends the run in order, and verifies its journal by a replay.
    fn end(&mut self) {
        self.look();
        self.watch.process_ends();
        let status = self.instance.take().expect("the instance runs").terminate();
        assert_eq!(
            status.code(),
            Some(0),
            "the instance did not end with code 0"
        );
        let data = self.launch.data().as_os_str();
        let replay = binary::run(["replay".as_ref(), data, "--verify".as_ref()]);
        println!(
            "replay --verify: {}",
            String::from_utf8_lossy(&replay.stdout).trim()
        );
        assert_eq!(replay.status.code(), Some(0), "{replay:?}");
    }

    /// Checks whether a rule was broken.
    fn judge(&self, plan: &Plan) {
        self.watch.report();
        let counters = self.venue.whole_state()["counters"].clone();
        println!("  the venue's answers {}", counters["answers"]);
        println!("  the venue's refusals {}", counters["refusals"]);
        let refusals = counters["refusals"]
            .as_object()
            .expect("the counters have refusals by code");
        let unexpected: Vec<_> = refusals
            .keys()
            .filter(|code| !EXPECTED.contains(&code.as_str()))
            .collect();
        assert!(
            unexpected.is_empty(),
            "the venue refused requests with unexpected codes: {unexpected:?}"
        );
        assert_eq!(
            counters["answers"].get("418"),
            None,
            "the venue banned this address because of its limits"
        );
        let quarantines = self.watch.count("windvane_quarantines_total", "");
        assert!(quarantines < 0.5, "a strategy was quarantined");
        if plan.calm {
            for outcome in ["failed", "withheld", "lapsed"] {
                let missed = self.watch.count("windvane_heartbeats_total", outcome);
                assert!(missed < 0.5, "{missed} heartbeats {outcome}");
            }
            let (early, late) = self.watch.memory().expect("the memory was measured");
            assert!(
                late < early + early / 10,
                "memory grew from {early} to {late} KB"
            );
        }
        println!("everything holds");
    }
}
