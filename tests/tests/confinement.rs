//! A run confines itself, and no environment of its processes has a secret.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use windvane_tests::binary;
use windvane_tests::guest::Guest;
use windvane_tests::instance::Instance;
use windvane_tests::launch::Launch;
use windvane_tests::processes::{self, Which};
use windvane_tests::venue::Venue;

const CONFIG: &str = r#"
[run]
mode = "live"

[account]
api_key = { env = "WINDVANE_API_KEY" }
api_secret = { env = "WINDVANE_API_SECRET" }

[[strategy]]
id = "calm"
module = "MODULE"
instruments = ["spot:BTCUSDT"]
"#;

/// A venue, and a configuration in a folder of its own beside the data folder.
struct Setup {
    venue: Venue,
    file: PathBuf,
    launch: Launch,
}

impl Setup {
    fn new(seed: &str) -> Self {
        let venue = Venue::start(&["--seed", seed]);
        for name in ["etc", "outside"] {
            let folder = venue.folder().join(name);
            fs::create_dir(&folder).unwrap();
            Guest::default().write(&folder.join("calm.wasm"));
        }
        let file = venue.folder().join("etc/live.toml");
        // Without the file of the venue's line: its folder would be readable.
        let launch = Launch::new(&venue, &venue.folder().join("data"))
            .config(&file)
            .apart(&venue);
        let setup = Self {
            venue,
            file,
            launch,
        };
        setup.write(&setup.venue.folder().join("etc/calm.wasm"));
        setup
    }

    /// Writes the configuration with this module.
    fn write(&self, module: &Path) {
        let text = CONFIG.replace("MODULE", &module.display().to_string());
        fs::write(&self.file, text).unwrap();
    }
}

/// The value of a field of `/proc/PID/status`.
fn status(pid: &str, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

#[test]
fn every_process_of_a_run_is_confined() {
    let setup = Setup::new("70");
    let mut instance = setup.launch.start();
    instance.ready();
    let data = setup.launch.data();
    for pid in [
        instance.pid().to_string(),
        processes::one(data, Which::Watchdog),
        processes::one(data, Which::Keeper),
        processes::one(data, Which::Signer),
    ] {
        assert_eq!(status(&pid, "NoNewPrivs"), "1", "process {pid}");
        assert_eq!(status(&pid, "Seccomp"), "2");
        let privileges = u64::from_str_radix(&status(&pid, "CapEff"), 16).unwrap();
        let (trace, administer) = (1 << 19, 1 << 21);
        assert_eq!(privileges & (trace | administer), 0);
    }
    assert!(instance.log().contains("confined this process"));
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_confined_run_reloads_modules_of_its_folders_only() {
    let setup = Setup::new("71");
    let mut instance = setup.launch.start();
    instance.ready();
    let next = setup.venue.folder().join("etc/next.wasm");
    let changed = Guest {
        more: "(global $next i32 (i32.const 1))",
        ..Guest::EMPTY
    };
    changed.write(&next);
    setup.write(&next);
    instance.done(&["reload"]);

    setup.write(&setup.venue.folder().join("outside/calm.wasm"));
    let refused = instance.run_verb(&["reload"]);
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    let has_landlock = !instance.log().contains("Landlock: ");
    assert_eq!(refused.status.success(), !has_landlock, "{printed}");
    assert!(
        !has_landlock || printed.contains("may not read module"),
        "{printed}"
    );
    assert_eq!(instance.done(&["halt"])["state"], "halted");
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_run_is_not_confined_if_the_configuration_says_so() {
    let setup = Setup::new("72");
    let mut instance = setup.launch.clone().set("run.confine=false").start();
    instance.ready();
    let log = instance.log();
    assert!(log.contains("run.confine is false") && !log.contains("confined this process"));
    assert_eq!(instance.terminate().code(), Some(0));
}

/// The environment of a process, or nothing if the system hides it.
fn environment(pid: &str) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// The API key and the secret of the venue's first account.
fn keys(venue: &Venue) -> [String; 2] {
    let account = &venue.line()["accounts"][0];
    ["apiKey", "apiSecret"].map(|name| account[name].as_str().unwrap().to_owned())
}

fn ready_without_secrets(instance: &mut Instance, setup: &Setup) {
    instance.ready();
    let watchdog = processes::one(setup.launch.data(), Which::Watchdog);
    for pid in [instance.pid().to_string(), watchdog] {
        for key in keys(&setup.venue) {
            assert!(!contains(&environment(&pid), &key), "process {pid}");
        }
    }
}

#[test]
fn no_process_of_a_run_has_a_secret_in_its_environment() {
    let setup = Setup::new("73");
    let mut instance = setup.launch.start();
    ready_without_secrets(&mut instance, &setup);
    // A watchdog process that is started later gets the keys too.
    let first = processes::one(setup.launch.data(), Which::Watchdog);
    processes::kill(&first);
    instance.until("status", &|status| {
        let now = processes::of(setup.launch.data(), Which::Watchdog);
        status["state"] == "ready" && now.len() == 1 && now[0] != first
    });
    ready_without_secrets(&mut instance, &setup);
    assert_eq!(instance.terminate().code(), Some(0));
}

/// Waits until a command connects to a server that never answers.
fn until_connected<T>(command: &mut Child, accept: impl Fn() -> io::Result<T>) -> T {
    loop {
        match accept() {
            Ok(connection) => return connection,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        let ended = command.try_wait().unwrap();
        assert!(ended.is_none(), "the command ended before it connected");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn no_command_has_a_secret_in_its_environment() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("live.toml"), folder.path().join("data"));
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    let module = folder.path().join("calm.wasm");
    Guest::default().write(&module);
    let text = CONFIG.replace("MODULE", &module.display().to_string());
    let token = "[admin]\ntoken = { env = \"WINDVANE_TEST_TOKEN\" }\n";
    fs::write(&file, text + token).unwrap();
    let start = |arguments: &[&str], address: SocketAddr| {
        Command::new(binary::path())
            .args(arguments)
            .args(["--config", file.to_str().unwrap()])
            .args(["--set", &format!("run.data_dir={}", data.display())])
            .args(["--set", &format!("venue.spot.rest=http://{address}")])
            .args(["--set", &format!("venue.spot.ws=ws://{address}")])
            .env("WINDVANE_API_KEY", "key-in-the-environment")
            .env("WINDVANE_API_SECRET", "secret-in-the-environment")
            .env("WINDVANE_TEST_TOKEN", "token-in-the-environment")
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let ended = |mut command: Child, arguments: &[&str]| {
        let own = environment(&command.id().to_string());
        command.kill().unwrap();
        command.wait().unwrap();
        assert!(contains(&own, "PATH="), "{arguments:?}");
        assert!(!contains(&own, "in-the-environment"), "{arguments:?}");
    };
    for arguments in [
        &["check"][..],
        &["call", "spot.historical_trades", "symbol=BTCUSDT"],
        &["watch", "user", "--surface", "spot"],
    ] {
        let exchange = TcpListener::bind("127.0.0.1:0").unwrap();
        exchange.set_nonblocking(true).unwrap();
        let mut command = start(arguments, exchange.local_addr().unwrap());
        let connection = until_connected(&mut command, || exchange.accept());
        ended(command, arguments);
        drop(connection);
    }
    for verb in ["reload", "status", "halt"] {
        // A socket for each one: a command may connect several times.
        let _ = fs::remove_file(data.join("admin.sock"));
        let admin = UnixListener::bind(data.join("admin.sock")).unwrap();
        admin.set_nonblocking(true).unwrap();
        let mut command = start(&[verb], ([127, 0, 0, 1], 1).into());
        let connection = until_connected(&mut command, || admin.accept());
        ended(command, &[verb]);
        drop(connection);
    }
}

#[test]
fn an_erased_key_still_signs() {
    let setup = Setup::new("76");
    let [key, secret] = keys(&setup.venue);
    let called = Command::new(binary::path())
        .args(["call", "spot.account", "--config"])
        .arg(&setup.file)
        .args([
            "--set",
            &format!(
                "venue.spot.rest={}",
                setup.venue.line()["spot"]["rest"].as_str().unwrap()
            ),
        ])
        .env("WINDVANE_API_KEY", key)
        .env("WINDVANE_API_SECRET", secret)
        .output()
        .unwrap();
    assert!(called.status.success(), "{called:?}");
}

#[test]
fn keys_come_from_a_descriptor_and_a_credential() {
    let setup = Setup::new("74");
    let folder = setup.venue.folder().join("credentials");
    fs::create_dir(&folder).unwrap();
    let [key, secret] = keys(&setup.venue);
    for (name, text) in [("key", &key), ("secret", &secret)] {
        fs::write(folder.join(name), text).unwrap();
        fs::set_permissions(folder.join(name), Permissions::from_mode(0o400)).unwrap();
    }
    let mut launch = setup.launch.clone();
    for name in ["WINDVANE_API_KEY", "WINDVANE_API_SECRET"] {
        launch = launch.env(name, "");
    }
    let mut instance = launch
        .after(&format!("exec 7<{}/key", folder.display()))
        .env("CREDENTIALS_DIRECTORY", folder.to_str().unwrap())
        .set("account.api_key={ fd = 7 }")
        .set("account.api_secret={ credential = \"secret\" }")
        .start();
    ready_without_secrets(&mut instance, &setup);
    for pid in [
        instance.pid().to_string(),
        processes::one(setup.launch.data(), Which::Watchdog),
    ] {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let mut files = open.map(|entry| fs::read_link(entry.unwrap().path()).unwrap_or_default());
        assert!(
            files.all(|file| file != folder.join("key")),
            "the descriptor is closed"
        );
    }
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_run_keeps_its_native_code_in_its_data_folder() {
    let setup = Setup::new("68");
    let cache = setup.venue.folder().join("cache");
    let launch = setup.launch.clone();
    let mut instance = launch
        .env("XDG_CACHE_HOME", cache.to_str().unwrap())
        .start();
    instance.ready();
    let native = fs::read_dir(setup.launch.data().join("compiled")).unwrap();
    assert_eq!(native.count(), 1);
    assert!(!cache.exists(), "a run has no right to write there");
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_confined_run_works_without_a_cache_folder() {
    let setup = Setup::new("77");
    let launch = setup.launch.clone();
    let mut instance = launch.env("HOME", "").env("XDG_CACHE_HOME", "").start();
    instance.ready();
    assert!(instance.log().contains("confined this process"));
    instance.done(&["reload"]);
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn the_first_command_of_a_new_user_may_be_a_run() {
    let setup = Setup::new("82");
    let home = setup.venue.folder().join("home");
    let home = home.to_str().unwrap();
    let launch = setup.launch.clone().env("HOME", home);
    let launch = launch.env("XDG_CACHE_HOME", "").after("umask 022");
    let mut instance = launch.start();
    instance.ready();
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn the_journal_of_a_confined_run_may_be_on_another_disk() {
    let setup = Setup::new("78");
    let (data, disk) = (setup.launch.data(), setup.venue.folder().join("disk"));
    for folder in [data, &disk] {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
    }
    std::os::unix::fs::symlink(&disk, data.join("journal")).unwrap();
    let mut instance = setup.launch.start();
    instance.ready();
    assert_eq!(instance.terminate().code(), Some(0));
    assert!(fs::read_dir(&disk).unwrap().count() > 0);

    fs::write(disk.join("authorized_keys"), "").unwrap();
    let refused = setup.launch.output();
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("authorized_keys, which is no segment"),
        "{printed}"
    );
}

#[test]
fn a_data_folder_that_others_may_change_is_refused() {
    let setup = Setup::new("75");
    let data = setup.launch.data();
    fs::create_dir(data).unwrap();
    fs::set_permissions(data, Permissions::from_mode(0o777)).unwrap();
    let refused = setup.launch.output();
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("mode 0777") && printed.contains("chmod 700"),
        "{printed}"
    );
}

#[test]
fn check_and_a_start_warn_of_a_module_that_others_may_change() {
    let setup = Setup::new("83");
    let module = setup.venue.folder().join("etc/calm.wasm");
    fs::set_permissions(&module, Permissions::from_mode(0o666)).unwrap();
    let warning = "calm.wasm: it has mode 0666";

    let [key, secret] = keys(&setup.venue);
    let mut check = Command::new(binary::path());
    check.args(["check", "--config"]).arg(&setup.file);
    check.arg("--venue").arg(setup.venue.file()).arg("--set");
    check.arg(format!("run.data_dir={}", setup.launch.data().display()));
    check.env("WINDVANE_API_KEY", key);
    let checked = check.env("WINDVANE_API_SECRET", secret).output().unwrap();
    let printed = String::from_utf8_lossy(&checked.stdout).into_owned();
    let mut lines = printed.lines();
    let line = lines.find(|line| line.contains(warning)).unwrap();
    assert!(line.starts_with("warn") && line.contains("files"), "{line}");

    let mut instance = setup.launch.start();
    instance.ready();
    let log = instance.log();
    let warnings = log.lines().filter(|line| line.contains(warning));
    assert_eq!(warnings.count(), 1, "{log}");
    assert_eq!(instance.terminate().code(), Some(0));
}

#[test]
fn a_data_folder_that_others_can_replace_is_refused() {
    let setup = Setup::new("76");
    let outer = setup.venue.folder().join("open");
    fs::create_dir(&outer).unwrap();
    fs::set_permissions(&outer, Permissions::from_mode(0o777)).unwrap();
    let data = outer.join("new/data");
    let launch = Launch::new(&setup.venue, &data).config(&setup.file);
    for launch in [
        launch.clone(),
        launch.clone().set("signer.in_process=true"),
        launch.set("run.mode=paper"),
    ] {
        let refused = launch.output();
        let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{printed}");
        for part in ["data_dir", "mode 0777", "owner", "chmod go-w"] {
            assert!(printed.contains(part), "{part}: {printed}");
        }
        assert!(printed.contains(&outer.display().to_string()), "{printed}");
        assert!(!outer.join("new").exists(), "nothing is created there");
    }
}

#[test]
fn a_secret_file_that_others_can_replace_is_refused() {
    let setup = Setup::new("77");
    let outer = setup.venue.folder().join("open");
    fs::create_dir(&outer).unwrap();
    let file = outer.join("secret");
    fs::write(&file, &keys(&setup.venue)[1]).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&outer, Permissions::from_mode(0o777)).unwrap();
    let secret = format!("account.api_secret={{ file = \"{}\" }}", file.display());
    let refused = setup.launch.clone().set(&secret).output();
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("mode 0777") && printed.contains("chmod go-w"),
        "{printed}"
    );
}
