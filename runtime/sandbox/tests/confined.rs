//! What a confined process can and cannot do. Each test starts this program again, because a
//! confinement lasts as long as the process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use windvane_sandbox::{Confinement, InForce, Network, ResourceLimits, confine};

/// The folder of the test. It is set in the confined process only.
const FOLDER: &str = "WINDVANE_TEST_CONFINED";

/// Runs the test of this name again in a process of its own, with a folder that has three folders:
/// `read`, `write` and `outside`, each with a file `file`.
fn in_own_process(name: &str, confined: impl FnOnce(&Path)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        confined(Path::new(&folder));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for inner in ["read", "write", "outside"] {
        fs::create_dir(folder.path().join(inner)).unwrap();
        fs::write(folder.path().join(inner).join("file"), inner).unwrap();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {text} {errors}", output.status);
    assert!(text.contains("1 passed"), "{text} {errors}");
}

fn confinement(folder: &Path) -> Confinement {
    Confinement {
        list: Vec::new(),
        read: vec![
            folder.join("read"),
            PathBuf::from("/etc"),
            PathBuf::from("/proc/self"),
        ],
        write: vec![folder.join("write"), folder.join("missing")],
        execute: ["/usr", "/bin", "/lib", "/lib64"]
            .map(PathBuf::from)
            .to_vec(),
        network: Network::Any,
        processes: true,
        shares_files: false,
    }
}

/// The machine of a developer or of the tests may lack Landlock; everything else is required.
fn is_landlocked(in_force: &InForce) -> bool {
    assert!(
        in_force.no_new_privileges && in_force.not_dumpable && in_force.no_core,
        "{in_force}"
    );
    assert!(in_force.capabilities && in_force.seccomp, "{in_force}");
    assert_eq!(in_force.landlock, windvane_sandbox::probe().landlock);
    if in_force.landlock.is_none() {
        eprintln!("not tested: this kernel has no Landlock: {in_force}");
    }
    in_force.landlock.is_some()
}

fn is_refused<T>(result: std::io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

#[test]
fn a_confined_process_reaches_only_its_files() {
    in_own_process("a_confined_process_reaches_only_its_files", |folder| {
        if !is_landlocked(&confine(&confinement(folder))) {
            return;
        }
        assert_eq!(
            fs::read_to_string(folder.join("read/file")).unwrap(),
            "read"
        );
        fs::write(folder.join("write/new"), "new").unwrap();
        fs::rename(folder.join("write/new"), folder.join("write/file")).unwrap();
        assert!(is_refused(fs::read(folder.join("outside/file"))));
        assert!(is_refused(fs::write(folder.join("outside/file"), "x")));
        assert!(is_refused(fs::write(folder.join("read/file"), "x")));
        assert!(is_refused(fs::read_dir(folder)));
        assert!(is_refused(fs::create_dir(folder.join("missing"))));
        let link = folder.join("write/link");
        std::os::unix::fs::symlink(folder.join("outside/file"), &link).unwrap();
        assert!(is_refused(fs::read(&link)), "a link leads outside");
        assert!(is_refused(fs::read(format!(
            "/proc/{}/environ",
            std::os::unix::process::parent_id()
        ))));
        fs::write("/dev/null", "x").unwrap();
    });
}

#[test]
fn a_started_program_is_confined_too() {
    in_own_process("a_started_program_is_confined_too", |folder| {
        if !is_landlocked(&confine(&confinement(folder))) {
            return;
        }
        let cat = |name: &str| {
            let mut command = Command::new("/bin/cat");
            command.stdin(Stdio::null()).stderr(Stdio::null());
            command.arg(folder.join(name)).output().unwrap()
        };
        assert_eq!(cat("read/file").stdout, b"read");
        assert!(!cat("outside/file").status.success());
        let program = folder.join("write/program");
        fs::write(&program, fs::read("/bin/cat").unwrap()).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
        assert!(
            is_refused(Command::new(program).spawn()),
            "a written file is no program"
        );
    });
}

#[test]
fn a_confined_process_uses_the_network_and_threads() {
    in_own_process(
        "a_confined_process_uses_the_network_and_threads",
        |folder| {
            is_landlocked(&confine(&confinement(folder)));
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let client =
                std::thread::spawn(move || TcpStream::connect(address).unwrap().write_all(b"x"));
            let mut text = String::new();
            listener
                .accept()
                .unwrap()
                .0
                .read_to_string(&mut text)
                .unwrap();
            client.join().unwrap().unwrap();
            assert_eq!(text, "x");
        },
    );
}

#[test]
fn calls_into_other_processes_and_the_kernel_are_refused() {
    in_own_process(
        "calls_into_other_processes_and_the_kernel_are_refused",
        |folder| {
            is_landlocked(&confine(&confinement(folder)));
            let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
                .unwrap();
            let taken = rustix::process::pidfd_getfd(own.as_fd(), 0, PidfdGetfdFlags::empty());
            assert_eq!(taken.unwrap_err(), Errno::PERM);
            assert_eq!(rustix::process::chroot("/").unwrap_err(), Errno::PERM);
            assert_eq!(rustix::system::sethostname(b"x").unwrap_err(), Errno::PERM);
            let packets = rustix::net::socket(
                rustix::net::AddressFamily::PACKET,
                rustix::net::SocketType::RAW,
                None,
            );
            assert_eq!(packets.unwrap_err(), Errno::PERM);
            // A program that traces another one, if the machine has it.
            let traced = Command::new("strace")
                .args(["-o", "/dev/null", "true"])
                .output();
            assert!(traced.is_err() || !traced.unwrap().status.success());
            let parent = Pid::from_raw(std::os::unix::process::parent_id().cast_signed()).unwrap();
            if windvane_sandbox::probe()
                .landlock
                .is_some_and(|version| version >= 6)
            {
                let signal = rustix::process::kill_process(parent, rustix::process::Signal::CONT);
                assert_eq!(signal.unwrap_err(), Errno::PERM);
            }
        },
    );
}

#[test]
fn a_confined_process_opens_no_file_to_others_and_changes_no_other_process() {
    in_own_process(
        "a_confined_process_opens_no_file_to_others_and_changes_no_other_process",
        |folder| {
            let (outside, inside) = (folder.join("outside/file"), folder.join("write/file"));
            confine(&confinement(folder));
            for mode in [0o644, 0o620, 0o602, 0o4700, 0o2700, 0o1700] {
                let mode = Permissions::from_mode(mode);
                for path in [&outside, &inside] {
                    assert!(is_refused(fs::set_permissions(path, mode.clone())));
                }
                let opened = fs::File::open(&inside).unwrap();
                assert!(is_refused(opened.set_permissions(mode)));
            }
            fs::set_permissions(&inside, Permissions::from_mode(0o600)).unwrap();
            for mode in [0o4700, 0o2700] {
                let mut options = fs::File::options();
                options.write(true).create_new(true).mode(mode);
                assert!(is_refused(options.open(folder.join("write/program"))));
                let mut unnamed = fs::File::options();
                unnamed.write(true).mode(mode).custom_flags(libc::O_TMPFILE);
                assert!(is_refused(unnamed.open(folder.join("write"))));
            }
            assert!(is_refused(std::os::unix::fs::chown(&inside, None, Some(1))));
            let flags = rustix::fs::XattrFlags::empty();
            let set = rustix::fs::setxattr(&inside, "user.name", b"value", flags);
            assert_eq!(set.unwrap_err(), Errno::PERM);

            let parent = Pid::from_raw(std::os::unix::process::parent_id().cast_signed());
            let limit = rustix::process::getrlimit(rustix::process::Resource::Cpu);
            let changed = rustix::process::prlimit(parent, rustix::process::Resource::Cpu, limit);
            assert_eq!(changed.unwrap_err(), Errno::PERM);
            let priority = rustix::process::setpriority_process(parent, 19);
            assert_eq!(priority.unwrap_err(), Errno::PERM);
            rustix::process::setpriority_process(None, 19).unwrap();
        },
    );
}

#[test]
fn a_process_without_network_and_programs_can_only_compute() {
    in_own_process(
        "a_process_without_network_and_programs_can_only_compute",
        |folder| {
            let (mut one, mut other) = UnixStream::pair().unwrap();
            let address = TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap();
            let in_force = confine(&Confinement {
                network: Network::None,
                processes: false,
                ..confinement(folder)
            });
            let landlocked = is_landlocked(&in_force);
            let worker = std::thread::spawn(move || one.write_all(b"x"));
            let mut byte = [0];
            other.read_exact(&mut byte).unwrap();
            worker.join().unwrap().unwrap();
            assert!(is_refused(TcpStream::connect(address)));
            assert!(is_refused(UdpSocket::bind("127.0.0.1:0")));
            assert!(Command::new("/bin/true").spawn().is_err());
            assert_eq!(rustix::process::chroot("/").unwrap_err(), Errno::PERM);
            assert_eq!(
                landlocked,
                is_refused(fs::read(folder.join("outside/file")))
            );
            assert_eq!(
                fs::read_to_string(folder.join("read/file")).unwrap(),
                "read"
            );
            // Confining again is possible, and restricts more.
            let in_force = confine(&Confinement::default());
            assert!(is_landlocked(&in_force) == landlocked);
            assert_eq!(landlocked, is_refused(fs::read(folder.join("read/file"))));
        },
    );
}

/// Ninja starts each program in a group of its own, and fails if that is refused.
#[test]
fn a_program_of_a_build_stays_in_its_group_without_an_error() {
    let name = "a_program_of_a_build_stays_in_its_group_without_an_error";
    in_own_process(name, |folder| {
        if windvane_sandbox::probe().landlock.is_none() {
            eprintln!("not tested: this kernel has no Landlock");
            return;
        }
        windvane_sandbox::confine_build(&confinement(folder)).unwrap();
        let group = rustix::process::getpgrp();
        assert_ne!(group, rustix::process::getpid());
        rustix::process::setpgid(None, None).unwrap();
        assert_eq!(rustix::process::getpgrp(), group);
        assert_eq!(rustix::process::setsid(), Err(Errno::PERM));
    });
}

#[test]
fn limits_of_resources_hold() {
    in_own_process("limits_of_resources_hold", |folder| {
        windvane_sandbox::limit_resources(&ResourceLimits {
            open_files: Some(16),
            memory_bytes: Some(1 << 32),
            cpu_seconds: Some(600),
        })
        .unwrap();
        let open = (0..20).map(|_| fs::File::open(folder.join("read/file")));
        let open: std::io::Result<Vec<_>> = open.collect();
        assert!(open.is_err());
        let room = Vec::<u8>::new().try_reserve_exact(1 << 33);
        assert!(room.is_err());
        windvane_sandbox::hide_memory().unwrap();
        let limits = fs::read_to_string("/proc/self/limits").unwrap();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core"))
            .unwrap();
        let words: Vec<_> = core.split_whitespace().collect();
        assert_eq!(words[4..6], ["0", "0"], "{core}");
    });
}
