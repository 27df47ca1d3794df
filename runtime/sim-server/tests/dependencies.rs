//! Nothing of the simulated exchange is built with the engine, the session or the client: that both
//! sides of a test agree would prove nothing.

use std::process::Command;

const ABSENT: [&str; 5] = [
    "windvane-engine",
    "windvane-session",
    "windvane-client",
    "windvane-client-core",
    "windvane-host",
];

#[test]
fn the_exchange_is_built_without_the_engine() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal"])
        .args(["--prefix", "none", "--package", env!("CARGO_PKG_NAME")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{tree:?}");
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("windvane-sim v"), "{tree}");
    for line in tree.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        assert!(!ABSENT.contains(&name), "the exchange is built of {name}");
    }
}
