//! Snapshot files that earlier versions wrote. Each must be readable and must be a prefix of the
//! current format. So this test finds a change of the format without a new version.

use std::path::{Path, PathBuf};

use windvane_engine::Engine;
use windvane_model::input::{Command, FaultKind};
use windvane_model::live::LiveInput;
use windvane_model::run_state::RunState;
use windvane_model::state_report::OpenOrder;
use windvane_model::{
    ClientOrderId, Input, OrderStatus, Outcome, PositionSide, Side, VenueOrderId,
};

use super::succession::next_config;
use super::support::{Account, BTC, MM, OTHER, fill, limit, report};
use super::world::ready;

/// The length of the magic and the version, which precede the content.
const HEADER: usize = 12;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

fn version(snapshot: &[u8]) -> u32 {
    u32::from_le_bytes(snapshot[8..HEADER].try_into().unwrap())
}

/// An account with positions, orders in several states, a quarantine, a kill switch and a degraded
/// reason.
fn lived() -> Account {
    let mut account = ready();
    let first = account.rest();
    let id = account.id(MM, first);
    account.update(fill(id, Side::Buy, 1, 4, 4, OrderStatus::PartiallyFilled));
    let second = account.submit(OTHER, limit(Side::Sell, 1_010, 20));
    account.confirm_countdowns();
    let unknown = account.id(OTHER, second);
    account.placed(unknown, Outcome::Unknown);
    let third = account.submit(MM, limit(Side::Buy, 980, 5));
    let gone = account.id(MM, third);
    account.placed(gone, Outcome::Done(report(gone, OrderStatus::New, 0)));
    account.update(fill(gone, Side::Buy, 2, 5, 5, OrderStatus::Filled));
    account.pass(30_000);
    account.alive();
    account.clock();
    let others = ["web-1", "mm.5.1"].map(|text| ClientOrderId::new(text).unwrap());
    let mut open = vec![account.open_order(first)];
    for (place, id) in others.into_iter().enumerate() {
        let mut report = report(id, OrderStatus::New, 0);
        report.order_id = VenueOrderId(900 + place as i64);
        let terms = limit(Side::Buy, 900, 7);
        open.push(OpenOrder { report, terms });
    }
    account.sync_with(&open);
    account.update(fill(others[0], Side::Sell, 3, 2, 2, OrderStatus::Filled));
    account.handle(Input::Fault {
        strategy: OTHER,
        kind: FaultKind::Trap,
    });
    account.handle(Input::Steer {
        strategy: MM,
        command: Command::Pause,
    });
    account.handle(Input::Live(&LiveInput::Journal { healthy: false }));
    account.top(990, 1_000);
    account
}

/// Writes the snapshot file of the current version, once its format is final:
/// `cargo test -p windvane-engine --test live record_the_present_snapshot -- --ignored`.
#[test]
#[ignore = "writes a file of the repository"]
fn record_the_present_snapshot() {
    let snapshot = lived().engine.snapshot();
    let name = format!("version-{}.bin", version(&snapshot));
    std::fs::write(folder().join(name), snapshot).unwrap();
}

#[test]
fn snapshots_of_every_version_are_readable() {
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().collect();
    files.sort_by_key(|file| file.as_ref().unwrap().file_name());
    assert!(!files.is_empty());
    for file in files {
        let path = file.unwrap().path();
        let written = std::fs::read(&path).unwrap();
        let name = path.display();
        let mut engine = Engine::restore(&written).unwrap_or_else(|error| {
            panic!(
                "{name}: {error}. Add new fields at the end of the engine, with their defaults in \
                 migrate.rs; do not change the fields of other types"
            )
        });
        assert_eq!(engine.run_state(), RunState::Degraded, "{name}");
        let own = engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
        assert_eq!(own.position.qty, 9, "{name}");
        let live = engine.orders().iter().count();
        let present = engine.snapshot();
        let content = &written[HEADER..];
        let begins = present[HEADER..].starts_with(content);
        assert!(begins, "{name} is not a prefix of the current format");
        let same = version(&written) == version(&present);
        assert!(
            !same || present == written,
            "{name}: the format needs a new version"
        );

        let chain = engine.chain();
        let heir = engine.succeed(next_config(), chain).unwrap();
        let own = heir.ledgers().strategies[0].at(BTC, PositionSide::Both);
        assert_eq!(own.position.qty, 9, "{name}");
        assert_eq!(heir.orders().iter().count(), live, "{name}");
        assert_eq!(heir.fault(OTHER), Some(FaultKind::Trap), "{name}");
    }
}
