//! A small run of the simulator: fifty seeds of some simulated minutes with every kind of fault,
//! some of them twice. The full proof is a documented command (`tests/faults/README.md`).

use faults::fault_plan::Kind;
use faults::life::{Options, lead};
use faults::modules::Modules;
use faults::tally::{ROLLED_BACK, TORN, Tally};

/// In an unoptimized build a simulated minute takes some hundredths of a second; more minutes would
/// make the tests slow.
const MINUTES: i64 = 3;
/// Kinds that the tally does not count under their own name: a strategy of a life, and kills, which
/// it counts by their damage.
const NOT_COUNTED: [Kind; 2] = [Kind::Greedy, Kind::Tear];

#[test]
fn fifty_seeds_keep_every_rule_and_are_the_same_twice() {
    let modules = match Modules::build() {
        Ok(modules) => modules,
        Err(error) => panic!("{error}"),
    };
    let options = Options {
        faults_ms: MINUTES * 60_000,
        ..Options::default()
    };
    let live = |seed| match lead(seed, &modules, &options) {
        Ok(life) => life,
        Err(error) => panic!("{error}"),
    };
    let mut tally = Tally::default();
    let mut idle = 0;
    for seed in 1..=50 {
        let life = live(seed);
        assert_eq!(
            life.broken,
            None,
            "seed {seed}\n{}",
            life.context.join("\n")
        );
        if seed <= 5 {
            assert_eq!(life.fingerprint, live(seed).fingerprint, "seed {seed}");
        }
        idle += u32::from(life.tally.orders == 0);
        tally.add(&life.tally);
    }
    println!("{tally}");
    let kinds = Kind::ALL.iter();
    let counted = kinds.filter(|(kind, _)| !NOT_COUNTED.contains(kind));
    let wanted = counted.map(|(_, name)| *name).chain([TORN, ROLLED_BACK]);
    for kind in wanted {
        assert!(
            tally.faults.contains_key(kind),
            "no life had the fault {kind}: {tally}"
        );
    }
    assert!(idle <= 5, "{idle} of 50 lives sent no order");
    assert!(tally.orders > 500 && tally.fills > 300, "{tally}");
}
