//! Disks that are full, hang, are read-only, or belong to another instance.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use windvane_tests::admin::Admin;
use windvane_tests::binary;
use windvane_tests::instance::{Instance, verb_in};
use windvane_tests::venue::Venue;

use super::support::{self, PATIENCE, state};

/// A full or hanging disk must be noticed within this time.
const NOTICED: Duration = Duration::from_secs(20);
const DEGRADED_REASON: &str = "the journal does not write in time";

/// Whether this machine allows a process to have its own mounts.
fn may_mount() -> bool {
    let tried = Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .status();
    tried.is_ok_and(|status| status.success())
}

/// Without a durable journal no new order may reach the venue, but cancels must. When the disk
/// writes again, trading continues.
fn no_exposure_until_it_writes_again(
    instance: &mut Instance,
    admin: &Admin,
    venue: &Venue,
    heal: impl FnOnce(),
) {
    let degraded = |status: &Value| {
        let reasons = status["degraded_reasons"].as_array();
        status["state"] == "degraded"
            && reasons.is_some_and(|all| all.contains(&json!(DEGRADED_REASON)))
    };
    instance.until_shown(admin, "/api/status", NOTICED, &degraded);
    let accepted = |account: &Value| account["accepted"]["total"].as_u64().unwrap();
    let before = accepted(&venue.account());
    // Cancels must pass in any state of the disk.
    admin.command("/api/halt");
    instance.until_shown(admin, "/api/orders", NOTICED, &|orders| {
        *orders == json!([])
    });
    let account = venue.account();
    assert_eq!(support::open_orders(&account), Vec::<&Value>::new());
    // Orders in flight when the disk failed may have arrived after the first look.
    assert!(
        accepted(&account) <= before + 2,
        "orders were sent without a journal"
    );

    heal();
    instance.until_shown(admin, "/api/status", NOTICED, &|status| {
        status["degraded_reasons"] == json!([])
    });
    admin.command("/api/resume");
    instance.until_shown(admin, "/api/status", NOTICED, &state("ready"));
    let newer = |_: &Value| accepted(&venue.account()) > accepted(&account);
    instance.until_shown(admin, "/api/status", NOTICED, &newer);
}

/// The journal must replay after these faults. A failed disk may lose records, which the replay
/// reports; nothing else may be missing.
fn verifies(data: &Path) {
    let replay = binary::run(["replay".as_ref(), data.as_os_str(), "--verify".as_ref()]);
    let printed = String::from_utf8_lossy(&replay.stderr);
    let lost =
        printed.contains("are missing before it") && printed.contains("existing records are equal");
    assert!(replay.status.success() || lost, "{replay:?}");
}

#[test]
fn a_full_disk_blocks_new_orders_but_not_cancels() {
    if !may_mount() {
        println!(
            "SKIPPED: this machine does not allow mounts; only the test with a file size limit runs"
        );
        return;
    }
    let venue = Venue::start(&["--seed", "31"]);
    let data = venue.folder().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=24m,mode=0700 tmpfs '{}'",
        data.display()
    );
    // Only this process sees the mounts. Because of `exec` it is still the process that was
    // started.
    let script = format!("exec unshare -rm sh -c \"{mount} && exec \\\"\\$@\\\"\" sh \"$@\"");
    let mut instance = support::launch(&venue).after(&script).start();
    // When the admin server answers in the mounted folder, the mount is complete.
    std::thread::sleep(Duration::from_millis(200));
    let admin = instance.admin_inside();
    instance.until_shown(&admin, "/api/orders", PATIENCE, &|orders| {
        *orders != json!([])
    });
    let ballast = instance.inside().join("ballast");
    let full = std::fs::write(&ballast, vec![1; 25 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    no_exposure_until_it_writes_again(&mut instance, &admin, &venue, || {
        std::fs::remove_file(&ballast).unwrap();
    });
    assert!(instance.log().contains("the disk of the journal is full"));
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_file_size_limit_blocks_new_orders_but_not_cancels() {
    let venue = Venue::start(&["--seed", "32"]);
    let data = venue.folder().join("data");
    let mut instance = support::launch(&venue).after("trap '' XFSZ").start();
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/orders", PATIENCE, &|orders| {
        *orders != json!([])
    });
    let pid = instance.pid();
    let limit = |bytes: &str| {
        let limit = Command::new("prlimit")
            .args(["--pid", &pid.to_string(), &format!("--fsize={bytes}:")])
            .status();
        assert!(limit.unwrap().success());
    };
    limit("65536");
    no_exposure_until_it_writes_again(&mut instance, &admin, &venue, || {
        limit("unlimited");
    });
    support::halt_and_agree(&mut instance, &venue);
    assert_eq!(instance.terminate().code(), Some(0));
    verifies(&data);
}

/// Makes the syncs of a process hang while a file exists. No system feature makes a disk hang
/// without special rights, but the two sync calls can be replaced.
const HANGING_SYNC: &str = r#"
    unsafe extern "C" { fn sync_file_range(file: i32, at: i64, bytes: i64, flags: u32) -> i32; }
    fn sync(file: i32) -> i32 {
        let gate = std::env::var_os("HANGING");
        while gate.as_ref().is_some_and(|gate| std::path::Path::new(gate).exists()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        unsafe { sync_file_range(file, 0, 0, 7) }
    }
    #[unsafe(no_mangle)]
    pub extern "C" fn fsync(file: i32) -> i32 { sync(file) }
    #[unsafe(no_mangle)]
    pub extern "C" fn fdatasync(file: i32) -> i32 { sync(file) }
"#;

#[test]
fn a_hanging_disk_blocks_new_orders_but_not_cancels() {
    let venue = Venue::start(&["--seed", "33"]);
    let data = venue.folder().join("data");
    let gate = venue.folder().join("hanging");
    let library = support::library(venue.folder(), "hanging", HANGING_SYNC);
    let mut instance = support::launch(&venue)
        .env("LD_PRELOAD", library.to_str().unwrap())
        .env("HANGING", gate.to_str().unwrap())
        .start();
    let admin = instance.admin();
    instance.until_shown(&admin, "/api/orders", PATIENCE, &|orders| {
        *orders != json!([])
    });
    std::fs::write(&gate, "").unwrap();
    no_exposure_until_it_writes_again(&mut instance, &admin, &venue, || {
        let halted = verb_in(&data, "halt");
        let printed = String::from_utf8_lossy(&halted.stderr).into_owned();
        assert_eq!(halted.status.code(), Some(1), "{printed}");
        assert!(printed.contains("may be lost at a restart"), "{printed}");
        let answer: Value = serde_json::from_slice(&halted.stdout).unwrap();
        assert_eq!(answer["state"], "halted");
        std::fs::remove_file(&gate).unwrap();
    });
    assert!(instance.log().contains("the journal stalls"));
    support::halt_and_agree(&mut instance, &venue);
    assert_eq!(instance.terminate().code(), Some(0));
    verifies(&data);
}

#[test]
fn a_read_only_folder_is_refused_with_the_reason() {
    let venue = Venue::start(&["--seed", "34"]);
    let data = venue.folder().join("data");
    std::fs::create_dir_all(&data).unwrap();
    if !may_mount() {
        println!("SKIPPED: this machine does not allow a read-only mount");
        return;
    }
    let place = data.display();
    let mount = format!("mount --bind '{place}' '{place}' && mount -o remount,bind,ro '{place}'");
    let script = format!("exec unshare -rm sh -c \"{mount} && exec \\\"\\$@\\\"\" sh \"$@\"");
    let refused = support::launch(&venue).after(&script).output();
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(printed.contains("cannot be used as data_dir"), "{printed}");
    assert_eq!(venue.account()["accepted"]["total"], 0);
}

#[test]
fn a_second_instance_is_refused_and_the_first_goes_on() {
    let venue = Venue::start(&["--seed", "35"]);
    let launch = support::launch(&venue);
    let mut instance = launch.start();
    support::ready(&mut instance);
    support::trading(&mut instance, &venue);
    let admin = instance.admin();
    let epoch = admin.must_show("/api/status")["epoch"].clone();

    let second = launch.output();
    let printed = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{printed}");
    let first = format!("another instance, pid {}", instance.pid());
    assert!(printed.contains(&first), "{printed}");

    let status = admin.must_show("/api/status");
    assert_eq!(
        (&status["state"], &status["epoch"]),
        (&json!("ready"), &epoch)
    );
    support::halt_and_agree(&mut instance, &venue);
    assert_eq!(instance.terminate().code(), Some(0));
    verifies(launch.data());
}
