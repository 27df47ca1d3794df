//! The simulator in the small: fifty seeds of some simulated minutes with every kind of fault, and
//! the same seeds again. The full proof is a documented command (`tests/faults/README.md`).

use faults::life::{Options, lead};
use faults::modules::Modules;

/// Unoptimized, a simulated minute costs some hundredths of a second: more would make the tests slow.
const MINUTES: i64 = 3;

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
    }
}
