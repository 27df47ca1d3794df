//! Confines a process of this program to what it needs, so that a fault in it does little harm.
//!
//! `live` and `cli` use this crate for the trading process, the watchdog and the signer; `build` uses it
//! for the process that compiles modules, and for the builds of strategies. It must not contain what a
//! process needs: the caller says it in a [`Confinement`].
//!
//! Linux only. On other systems every function says what is missing and changes nothing.
//!
//! ```no_run
//! use windvane_sandbox::{Confinement, Network, confine};
//!
//! let in_force = confine(&Confinement {
//!     list: Vec::new(),
//!     read: vec!["/etc".into()],
//!     write: vec!["data".into()],
//!     execute: vec!["/usr".into()],
//!     network: Network::Any,
//!     processes: true,
//!     shares_files: false,
//! });
//! println!("{in_force}");
//! ```
#![forbid(unsafe_code)]

use std::fmt;
use std::path::PathBuf;

mod beside;
#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod system_calls;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

pub use beside::all_beside;
pub use system::{
    confine, confine_build, confine_calls, hide_memory, limit_resources, lock_memory,
    lockable_memory, probe,
};

/// What stays usable for a process. Everything else is refused.
///
/// A path stands for the file, or for the folder with all its content. A path that does not exist when
/// [`confine`] is called is ignored, and stays unusable if it is created later. `/dev/null`, `/dev/zero`,
/// `/dev/random` and `/dev/urandom` are always usable. Descriptors that are open already stay usable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Folders whose names may be listed, with the folders in them. Their files are not readable by that.
    pub list: Vec<PathBuf>,
    /// Paths that may be read.
    pub read: Vec<PathBuf>,
    /// Paths that may be read and changed: files are created, written, renamed and removed.
    pub write: Vec<PathBuf>,
    /// Paths that may be read, and whose programs may be started.
    pub execute: Vec<PathBuf>,
    /// The network.
    pub network: Network,
    /// Whether the process may start other programs. They inherit the confinement.
    pub processes: bool,
    /// Whether the process may let other users read and start its files. Compilers do that.
    pub shares_files: bool,
}

/// The network of a confined process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// No new sockets, except pairs of connected ones. Open sockets stay usable.
    #[default]
    None,
    /// Internet sockets. Of Unix sockets only pairs, and those that are open already.
    Internet,
    /// Internet and Unix sockets. Raw packets and rare families are refused.
    Any,
}

/// Limits of a process and of those that it starts. `None` leaves a limit as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Address space, bytes. Reserved memory counts too.
    pub memory_bytes: Option<u64>,
    /// Processor time, seconds. The process is killed at the limit.
    pub cpu_seconds: Option<u64>,
    /// Open descriptors.
    pub open_files: Option<u64>,
}

/// What confines a process, or, from [`probe`], what could.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// A program that the process starts gets no more privileges than the process has.
    pub no_new_privileges: bool,
    /// Other processes of the user cannot read the memory, and the kernel writes no core dump.
    pub not_dumpable: bool,
    /// The limit for core dumps is zero.
    pub no_core: bool,
    /// Privileges of the superuser that the process does not need are dropped. Also true if it had none.
    pub capabilities: bool,
    /// Landlock limits files, and without a network also sockets. The number is the version of its
    /// interface; later versions restrict more.
    pub landlock: Option<u32>,
    /// seccomp refuses system calls.
    pub seccomp: bool,
    /// What this system does not offer.
    pub missing: Vec<Missing>,
}

/// A feature that is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The feature.
    pub feature: &'static str,
    /// Why it is missing.
    pub reason: String,
    /// What it means for a run.
    pub means: &'static str,
    /// What an operator can do about it.
    pub what_to_do: &'static str,
}

/// What Landlock does not restrict before a version of its interface, for people.
const ADDED: [(u32, &str); 3] = [
    (
        3,
        "a taken-over run may empty files of its user that it may not write",
    ),
    (
        5,
        "a taken-over run may control devices that its user may open",
    ),
    (
        6,
        "a taken-over run, or a build of a strategy, may stop other processes of its user",
    ),
];

impl InForce {
    /// What this version of Landlock does not restrict and a later one would.
    pub fn not_restricted(&self) -> Vec<&'static str> {
        let version = self.landlock.unwrap_or(u32::MAX);
        let later = ADDED.iter().filter(|(since, _)| version < *since);
        later.map(|(_, words)| *words).collect()
    }

    /// Whether everything is in force.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.feature, self.reason, self.what_to_do)
    }
}

impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = Vec::new();
        let flags = [
            (self.no_new_privileges, "no new privileges"),
            (self.not_dumpable, "memory hidden"),
            (self.no_core, "no core dumps"),
            (self.capabilities, "privileges dropped"),
        ];
        named.extend(
            flags
                .iter()
                .filter(|(on, _)| *on)
                .map(|(_, name)| (*name).to_owned()),
        );
        named.extend(self.landlock.map(|version| format!("Landlock {version}")));
        named.extend(self.seccomp.then(|| "seccomp".to_owned()));
        if named.is_empty() {
            f.write_str("nothing")?;
        } else {
            f.write_str(&named.join(", "))?;
        }
        for missing in &self.missing {
            write!(f, "; missing: {missing}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_is_in_force_and_what_is_missing() {
        let mut in_force = InForce {
            no_core: true,
            landlock: Some(6),
            ..InForce::default()
        };
        assert_eq!(in_force.to_string(), "no core dumps, Landlock 6");
        in_force.missing.push(Missing {
            feature: "seccomp",
            reason: "the kernel has none".to_owned(),
            means: "nothing",
            what_to_do: "use a newer kernel",
        });
        let text = in_force.to_string();
        assert!(
            text.ends_with("missing: seccomp: the kernel has none; use a newer kernel"),
            "{text}"
        );
        assert_eq!(InForce::default().to_string(), "nothing");
    }

    #[test]
    fn an_old_landlock_names_what_it_does_not_restrict() {
        let with = |landlock| InForce {
            landlock,
            ..InForce::default()
        };
        assert_eq!(with(Some(1)).not_restricted().len(), 3);
        let [devices, processes] = with(Some(4)).not_restricted().try_into().unwrap();
        assert!(devices.contains("devices") && processes.contains("processes"));
        assert!(with(Some(6)).not_restricted().is_empty());
        assert!(with(None).not_restricted().is_empty());
    }
}
