//! Runs the README's commands as they are written, in their order, on a fresh clone.
//!
//! Commands in a block fenced `sh` run in one terminal; `sh terminal=NAME` names another one. A
//! command that runs until Ctrl-C gets Ctrl-C before the next command of its terminal, and at the
//! end. The commands use the ports of `windvane venue`, 18080 to 18084, which must be free.
//!
//! `cargo run --release` and `cargo build --release` use the binary under test. `cargo test
//! --workspace` is skipped, because it runs this test.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use windvane_tests::binary;

/// Longest time for a command; the first one builds two strategies.
const PATIENCE: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A script in place of cargo: it uses the binary under test, and calls the real cargo for the
/// rest.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
"test --workspace") exit 0 ;;
"build --release") mkdir -p target/release && exec ln -sf "$README_BINARY" target/release/windvane ;;
"run --release -- "*) shift 3; exec "$README_BINARY" "$@" ;;
esac
exec "$README_CARGO" "$@"
"#;

/// A command and the terminal in which it is typed.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    terminal: String,
    command: String,
}

/// The commands of all `sh` blocks, in order.
fn commands(readme: &str) -> Vec<Typed> {
    let mut all = Vec::new();
    let mut terminal = None;
    let mut command = String::new();
    for line in readme.lines() {
        if let Some(info) = line.strip_prefix("```") {
            let named = info.strip_prefix("sh terminal=");
            terminal = match (info, named, terminal) {
                ("sh", _, None) => Some("main"),
                (_, Some(name), None) => Some(name),
                _ => None,
            };
            continue;
        }
        let Some(terminal) = terminal else { continue };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(part) = line.strip_suffix('\\') {
            command.push_str(part);
            continue;
        }
        command.push_str(line);
        all.push(Typed {
            terminal: terminal.to_owned(),
            command: std::mem::take(&mut command),
        });
    }
    all
}

/// Whether a command ends only by Ctrl-C.
fn is_endless(command: &str) -> bool {
    let verb = command.strip_prefix("windvane ").unwrap_or_default();
    match verb.split(' ').next() {
        Some("venue" | "watch") => true,
        Some("run") => !verb.contains(" --data "),
        _ => false,
    }
}

/// A clone of the repository, and the commands that run in it.
struct Clone {
    folder: TempDir,
    running: BTreeMap<String, (Typed, Child)>,
    logs: u32,
}

impl Clone {
    /// Copies the files of the repository without build output.
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let listed = Command::new("git")
            .current_dir(binary::root())
            .args(["ls-files", "-z"])
            .output()
            .unwrap();
        assert!(listed.status.success(), "{listed:?}");
        let listed = String::from_utf8(listed.stdout).unwrap();
        for name in listed.split('\0').filter(|name| !name.is_empty()) {
            let to = folder.path().join("clone").join(name);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(binary::root().join(name), to).unwrap();
        }
        let clone = Self {
            folder,
            running: BTreeMap::new(),
            logs: 0,
        };
        let programs = clone.programs();
        fs::create_dir(&programs).unwrap();
        let cargo = programs.join("cargo");
        // A build sees no variable that it does not need, so the paths are in the script.
        let script = CARGO.replace("$README_BINARY", &binary::path().display().to_string());
        fs::write(&cargo, script.replace("$README_CARGO", env!("CARGO"))).unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        let built = clone.path().join("target/release/windvane");
        symlink(built, programs.join("windvane")).unwrap();
        clone
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    fn programs(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// A shell with the command, and the file for its output.
    fn shell(&mut self, command: &str) -> (Command, PathBuf) {
        self.logs += 1;
        let log = self.folder.path().join(format!("{}.log", self.logs));
        let file = File::create(&log).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        shell
            .args(["-c", command])
            .current_dir(self.path())
            .env("PATH", format!("{}:{path}", self.programs().display()))
            .stdin(Stdio::null())
            .stderr(file.try_clone().unwrap())
            .stdout(file);
        (shell, log)
    }

    /// Runs a command to its end, or until an endless command is ready.
    fn types(&mut self, typed: Typed) {
        self.interrupt(&typed.terminal);
        let command = &typed.command;
        if !is_endless(command) {
            let (mut shell, log) = self.shell(command);
            let status = ended(&mut shell.spawn().unwrap(), command);
            assert!(status.success(), "{command}: {status}\n{}", text(&log));
            return;
        }
        let (mut shell, log) = self.shell(&format!("exec {command}"));
        let mut child = shell.spawn().unwrap();
        let begin = Instant::now();
        while !self.is_up(command, &log) {
            let over = child.try_wait().unwrap();
            assert!(over.is_none(), "{command}: {over:?}\n{}", text(&log));
            assert!(begin.elapsed() < PATIENCE, "{command}\n{}", text(&log));
            std::thread::sleep(LOOK_EVERY);
        }
        self.running.insert(typed.terminal.clone(), (typed, child));
    }

    /// Whether an endless command is ready.
    fn is_up(&mut self, command: &str, log: &Path) -> bool {
        if let Some((_, file)) = command.split_once(" > ") {
            let line = fs::read_to_string(self.path().join(file));
            return line.is_ok_and(|line| line.ends_with('\n'));
        }
        let Some(config) = command.split_once("--config ") else {
            return !text(log).is_empty();
        };
        let config = config.1.split(' ').next().unwrap_or_default();
        let (mut status, log) = self.shell(&format!("windvane status --json --config {config}"));
        let outcome = status.status().unwrap();
        let printed: Value = serde_json::from_str(&text(&log)).unwrap_or_default();
        outcome.success() && printed["state"] == "ready"
    }

    /// Sends Ctrl-C to the command in a terminal, which must then end with success.
    fn interrupt(&mut self, terminal: &str) {
        let Some((typed, mut child)) = self.running.remove(terminal) else {
            return;
        };
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        assert!(sent.success(), "{}", typed.command);
        let status = ended(&mut child, &typed.command);
        assert!(status.success(), "{} after Ctrl-C: {status}", typed.command);
    }
}

impl Drop for Clone {
    fn drop(&mut self) {
        for (_, child) in self.running.values_mut() {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ended(child: &mut Child, command: &str) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("{command} does not end");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn text(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

#[test]
fn every_command_of_the_readme_works_in_order() {
    let readme = fs::read_to_string(binary::root().join("README.md")).unwrap();
    let all = commands(&readme);
    let verbs = |verb: &str| all.iter().filter(|one| one.command.contains(verb)).count();
    assert!(all.len() > 30 && verbs("windvane run") > 2, "{all:#?}");
    let mut clone = Clone::new();
    for typed in all {
        clone.types(typed);
    }
    for terminal in ["watch", "run", "venue"] {
        clone.interrupt(terminal);
    }
    assert!(clone.running.is_empty(), "{:?}", clone.running);
    let summary = fs::read_to_string(clone.path().join("var/out/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert!(summary["fills"].as_u64().unwrap() > 0, "{summary:#}");
    let fingerprint = summary["fingerprint"].as_str().unwrap();
    assert!(
        readme.contains(&format!("fingerprint {fingerprint}\n")),
        "the README does not show the fingerprint {fingerprint}; update it"
    );
}

#[test]
fn blocks_name_their_terminal_and_continued_lines_are_joined() {
    let readme = "text\n```sh\na \\\n    b   # c\n# only a comment\n\n```\nd\n```toml\ne\n```\n\
                  ```sh terminal=other\nf\n```\n";
    let typed = |terminal: &str, command: &str| Typed {
        terminal: terminal.to_owned(),
        command: command.to_owned(),
    };
    assert_eq!(
        commands(readme),
        [typed("main", "a b   # c"), typed("other", "f")]
    );
    assert!(is_endless("windvane venue > var/venue.json"));
    assert!(is_endless("windvane run --config a.toml"));
    assert!(!is_endless(
        "windvane run --config a.toml --data b.gz --pace max"
    ));
    assert!(!is_endless("cargo run --release -- demo"));
}
