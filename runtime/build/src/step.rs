//! The process above one program of a build. It gets every process that the program leaves behind, and
//! ends all of them when the program has ended.
//!
//! The program begins a process group, which seccomp lets none of its processes leave. So one signal ends
//! all of them, however fast they start others. On a kernel without seccomp, those that left the group
//! are found as children of this process.

use std::io;
use std::process::{Child, ExitStatus};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, wait, waitid,
};

/// Prepares this process for the program: it gets the orphans among the processes of the program, and
/// the signal TERM when its caller ends.
///
/// # Errors
/// The system refuses it.
pub fn adopt_descendants() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    }
    Ok(())
}

/// Lets this process be killed when the process above it ends.
///
/// # Errors
/// The system refuses it.
pub fn end_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Waits until the program with this process number has ended. Its number stays in use until
/// [`end_descendants`].
pub fn wait_for_end(program: u32) {
    let Some(program) = pid(program) else { return };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(program), options).is_err_and(|error| error == rustix::io::Errno::INTR)
    {
    }
}

/// Kills the program, its process group and all other descendants of this process. Returns when none is
/// left.
///
/// # Errors
/// The program was waited for before.
pub fn end_descendants(program: &mut Child) -> io::Result<ExitStatus> {
    if let Some(group) = pid(program.id()) {
        // The group is empty if the program has ended and left nothing behind.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = program.kill();
    let status = program.wait()?;
    loop {
        let children = children();
        if children.is_empty() {
            return Ok(status);
        }
        for child in children {
            let _ = kill_process(child, Signal::KILL);
        }
        // The children of a process that ends become those of this process.
        let _ = wait(WaitOptions::empty());
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// The children of this process, also those that have ended and were not waited for.
fn children() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            // The name in parentheses may contain anything. The state and the parent follow it.
            let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
            fields.and_then(|fields| fields.split_whitespace().nth(1)) == Some(&own)
        })
        .filter_map(pid)
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// Set in the process that plays the one above a program.
    const ABOVE: &str = "WINDVANE_TEST_ABOVE";

    #[test]
    fn processes_that_a_program_leaves_behind_are_ended() {
        if std::env::var_os(ABOVE).is_some() {
            adopt_descendants().unwrap();
            // One stays in the group, the other begins a session of its own.
            let mut shell = Command::new("sh");
            let mut program = shell
                .args(["-c", "sleep 600 & setsid sleep 600 & exit 7"])
                .process_group(0)
                .spawn()
                .unwrap();
            wait_for_end(program.id());
            let status = end_descendants(&mut program).unwrap();
            assert_eq!(status.code(), Some(7));
            assert!(children().is_empty());
            return;
        }
        // The two processes hold the pipe, so its end shows that both have ended.
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "processes_that_a_program_leaves_behind_are_ended",
                "--nocapture",
            ])
            .env(ABOVE, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
    }
}
