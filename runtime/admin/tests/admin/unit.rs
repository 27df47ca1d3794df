//! Tests that the systemd unit in `configs/` has the settings that the runtime needs.

use std::process::Command;

const UNIT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../configs/windvane.service"
);

fn settings() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(UNIT).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn the_systemd_unit_has_the_required_settings() {
    let settings = settings();
    let value = |name: &str| {
        let mut values = settings.iter().filter(|(n, _)| n == name);
        let found = values.next().unwrap_or_else(|| panic!("{name} is missing"));
        found.1.as_str()
    };
    for (name, expected) in [
        ("Type", "notify"),
        ("NotifyAccess", "main"),
        ("Restart", "on-failure"),
        ("KillSignal", "SIGTERM"),
        // The watchdog process of spot orders must outlive the main process.
        ("KillMode", "process"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        // Compiled strategies are machine code made at run time.
        ("MemoryDenyWriteExecute", "no"),
        ("StateDirectory", "windvane"),
        ("UMask", "0077"),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    let stop: u32 = value("TimeoutStopSec").parse().unwrap();
    assert!(stop > 10, "on_stop has ten seconds");
    assert!(value("WatchdogSec").parse::<u32>().unwrap() > 0);
    assert!(value("RestartPreventExitStatus").contains('2'));
}

/// Verifies the unit with systemd itself, if it is installed.
#[test]
fn systemd_knows_every_setting_of_the_unit() {
    let Ok(out) = Command::new("systemd-analyze")
        .args(["verify", UNIT])
        .output()
    else {
        println!("skipped: systemd-analyze is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&out.stderr);
    for line in text
        .lines()
        .filter(|line| line.contains("windvane.service"))
    {
        // The program is not installed where tests run.
        assert!(line.contains("is not executable"), "{line}");
    }
}
