//! What a program of a build may use of this machine. `build-step`, a hidden command of the binary,
//! confines itself with Landlock and seccomp and then becomes cargo. Build scripts and macros of a strategy
//! run inside cargo, so they are confined too.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windvane_sandbox::{Confinement, Network};

/// The permissions of one program of a build. Everything else is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Folders above a denied one that may be listed.
    pub listed: Vec<PathBuf>,
    /// Files and folders that may be read.
    pub read: Vec<PathBuf>,
    /// Files and folders that may be read, and whose programs may be started.
    pub execute: Vec<PathBuf>,
    /// Files and folders that may be read and written.
    pub write: Vec<PathBuf>,
    /// Files and folders in those above that must not be read or written.
    pub denied: Vec<PathBuf>,
    /// Whether internet sockets are permitted. Without them, no socket is.
    pub network: bool,
}

impl StepPlan {
    /// Confines this thread and every program that it starts.
    ///
    /// # Errors
    /// The system does not have the feature, or refuses it.
    pub fn confine(&self) -> Result<(), String> {
        // A path of the system may be a link, and that of this process in /proc is one.
        let beside = |paths: &[PathBuf]| {
            let real = paths.iter().filter_map(|path| path.canonicalize().ok());
            windvane_sandbox::all_beside(&real.collect::<Vec<_>>(), &self.denied)
        };
        windvane_sandbox::confine_build(&Confinement {
            list: self.listed.clone(),
            read: beside(&self.read),
            write: beside(&self.write),
            execute: beside(&self.execute),
            network: if self.network {
                Network::Internet
            } else {
                Network::None
            },
            processes: true,
            shares_files: true,
        })
    }
}

/// Why builds cannot be confined on this system; `None` if they can.
pub(crate) fn missing() -> Option<String> {
    let offered = windvane_sandbox::probe();
    let reasons = offered.missing.iter().map(|missing| &*missing.reason);
    let reasons: Vec<_> = reasons.collect();
    (offered.landlock.is_none()).then(|| format!("Landlock is missing ({})", reasons.join("; ")))
}

/// Whether this system can refuse all sockets to a build.
pub(crate) fn has_seccomp() -> bool {
    windvane_sandbox::probe().seccomp
}

/// The path without links, also if its last parts do not exist yet.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in absolute.ancestors() {
        let Ok(real) = existing.canonicalize() else {
            continue;
        };
        return match absolute.strip_prefix(existing) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        };
    }
    absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_path_of_a_folder_to_be_created_has_no_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = real_path(dir.path());
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(real_path(&root.join("link/a/b")), root.join("real/a/b"));
        assert_eq!(real_path(&root.join("link")), root.join("real"));
    }
}
