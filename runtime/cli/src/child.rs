//! Hidden commands that other commands start as processes of their own: `build-step` starts itself
//! again to confine itself and become cargo, and ends what cargo leaves behind; `compile-module` compiles
//! one module. They are not for people.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};

use clap::Args;

use super::Failure;
use super::printing::{note, print_json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use windvane_build::modules::CompileTask;
use windvane_build::{NOT_STARTED, StepPlan, step};

#[derive(Debug, Args)]
pub(super) struct BuildStep {
    /// What the program may use, as JSON
    #[arg(long, value_name = "JSON")]
    plan: String,
    /// Confine this process and become the program
    #[arg(long)]
    confined: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl BuildStep {
    /// Returns only if the program cannot be started.
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.confined {
            return self.become_program();
        }
        let status = self.supervise().map_err(Failure::failed)?;
        let by_signal = status.signal().map(|signal| 128 + signal);
        std::process::exit(status.code().or(by_signal).unwrap_or(1));
    }

    /// Runs the program in a process of its own, until it ends or this process is to end. Afterwards no
    /// process of it is left.
    fn supervise(&self) -> io::Result<ExitStatus> {
        step::adopt_descendants()?;
        let mut program = Command::new("/proc/self/exe");
        program
            .args(["build-step", "--confined", "--plan", &self.plan, "--"])
            .args(&self.program)
            .process_group(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut interrupt = unless_ignored(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let mut hangup = unless_ignored(SignalKind::hangup())?;
            let mut program = program.spawn()?;
            let number = program.id();
            let (ended, end) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                step::wait_for_end(number);
                let _ = ended.send(());
            });
            tokio::select! {
                _ = end => {}
                () = received(&mut interrupt) => {}
                _ = terminate.recv() => {}
                () = received(&mut hangup) => {}
            }
            step::end_descendants(&mut program)
        })
    }

    fn become_program(self) -> Result<(), Failure> {
        step::end_with_parent().map_err(Failure::failed)?;
        let plan: StepPlan = serde_json::from_str(&self.plan)
            .map_err(|error| Failure::Usage(format!("--plan: {error}")))?;
        plan.confine()
            .map_err(|reason| Failure::Failed(format!("the build cannot be confined: {reason}")))?;
        let (program, arguments) = self
            .program
            .split_first()
            .ok_or_else(|| Failure::Usage("no program is named".to_owned()))?;
        let error = Command::new(program).args(arguments).exec();
        note(format_args!("{}: {error}", program.display()));
        std::process::exit(i32::from(NOT_STARTED));
    }
}

/// Listens to a signal, unless the caller lets this process ignore it, as `nohup` does.
fn unless_ignored(kind: SignalKind) -> io::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if is_ignored(&status, kind) {
        return Ok(None);
    }
    signal(kind).map(Some)
}

/// Whether a process with this status in `/proc` ignores the signal.
fn is_ignored(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is that of signal 1.
    let bit = u32::try_from(kind.as_raw_value() - 1).unwrap_or(u32::MAX);
    mask.and_then(|mask| mask.checked_shr(bit))
        .is_some_and(|rest| rest & 1 == 1)
}

/// Waits for a signal; for ever, if it is ignored.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

#[derive(Debug, Args)]
pub(super) struct CompileModule {
    /// The limits and the cache, as JSON; the module comes through stdin
    #[arg(long, value_name = "JSON")]
    task: String,
}

impl CompileModule {
    pub(super) fn run(self) -> Result<(), Failure> {
        let task: CompileTask = serde_json::from_str(&self.task)
            .map_err(|error| Failure::Usage(format!("--task: {error}")))?;
        print_json(&task.run().map_err(Failure::Failed)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_known_from_the_status() {
        let status = "Name:\twindvane\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(status, SignalKind::hangup()));
        assert!(!is_ignored(status, SignalKind::interrupt()));
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
