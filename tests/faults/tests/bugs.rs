//! Three planted bugs must be found, which proves that the checkers work. A documented command
//! hunts all of them (`tests/faults/README.md`).

use faults::hunt::hunt;
use faults::life::Options;
use faults::modules::Modules;
use windvane_model::planted::Planted;

#[test]
fn three_planted_bugs_are_found_each_by_its_rule() {
    let modules = match Modules::build() {
        Ok(modules) => modules,
        Err(error) => panic!("{error}"),
    };
    let options = Options {
        faults_ms: 6 * 60_000,
        ..Options::default()
    };
    for (bug, rule) in [
        (
            Planted::ResendOnTimeout,
            "at most one live order per intent",
        ),
        (Planted::FillsNotDeduplicated, "every fill is counted once"),
        (Planted::PlaceBeforeArmed, "no order without an armed timer"),
    ] {
        let found = match hunt(bug, 60, 2, &modules, &options) {
            Ok(found) => found,
            Err(error) => panic!("{error}"),
        };
        let broken = found.map(|found| found.broken.rule);
        assert_eq!(broken.as_deref(), Some(rule), "{}", bug.name());
    }
}
