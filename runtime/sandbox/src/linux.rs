//! The functions of this crate on Linux.

use std::io;

use rustix::mm::MlockAllFlags;
use rustix::process::{DumpableBehavior, Resource, Rlimit};

use crate::{Confinement, InForce, Missing, ResourceLimits, capabilities, landlock_rules, seccomp};

const NEWER_KERNEL: &str = "use a newer kernel, or one that allows it in a container";
const ENABLE_LANDLOCK: &str =
    "use Linux 5.13 or later with `landlock` among its security modules (boot option lsm=)";

const NO_NEW_PRIVILEGES: Feature = Feature {
    name: "no new privileges",
    means: "a taken-over run may become another user through programs such as sudo",
    what_to_do: NEWER_KERNEL,
};
const HIDDEN_MEMORY: Feature = Feature {
    name: "hidden memory",
    means: "other programs of this user may read keys in the memory of the signer",
    what_to_do: NEWER_KERNEL,
};
const NO_CORE: Feature = Feature {
    name: "no core dumps",
    means: "a crash may write keys to the disk",
    what_to_do: NEWER_KERNEL,
};
const PRIVILEGES: Feature = Feature {
    name: "dropped privileges",
    means: "a taken-over run has all privileges of the superuser",
    what_to_do: "run as a user without privileges",
};
const LANDLOCK: Feature = Feature {
    name: "Landlock",
    means: "a taken-over run may read and change every file of its user, key files among them, and \
            builds of strategies are not confined",
    what_to_do: ENABLE_LANDLOCK,
};
const SECCOMP: Feature = Feature {
    name: "seccomp",
    means: "a taken-over run may trace other processes of its user, a taken-over signer or a build of a \
            strategy may use the network, and a build may leave processes behind",
    what_to_do: NEWER_KERNEL,
};

/// A part of the confinement.
struct Feature {
    name: &'static str,
    means: &'static str,
    what_to_do: &'static str,
}

impl Feature {
    fn missing(&self, reason: impl std::fmt::Display) -> Missing {
        Missing {
            feature: self.name,
            reason: reason.to_string(),
            means: self.means,
            what_to_do: self.what_to_do,
        }
    }
}

/// Confines the process, for the rest of its life and for every program that it starts. It never fails:
/// what the kernel lacks is in [`InForce::missing`].
///
/// Call it before other threads start. Landlock and the dropped privileges restrict the calling thread
/// and those that it starts later. A second call can only restrict more.
pub fn confine(confinement: &Confinement) -> InForce {
    let mut in_force = InForce::default();
    let missing = &mut in_force.missing;
    let set = rustix::thread::set_no_new_privs(true);
    in_force.no_new_privileges = note(missing, &NO_NEW_PRIVILEGES, set);
    in_force.not_dumpable = note(missing, &HIDDEN_MEMORY, not_dumpable());
    in_force.no_core = note(missing, &NO_CORE, no_core());
    let set = capabilities::drop_unneeded();
    in_force.capabilities = note(missing, &PRIVILEGES, set);
    match landlock_rules::restrict(confinement) {
        Ok(version) => in_force.landlock = Some(version),
        Err(reason) => missing.push(LANDLOCK.missing(reason)),
    }
    // Last: from now on, some of the calls above are refused.
    in_force.seccomp = note(missing, &SECCOMP, seccomp::apply(confinement));
    in_force
}

/// Confines the system calls and the privileges of a process that starts others, which confine themselves
/// further. Files stay usable, because those processes need them. It never fails, see [`confine`].
pub fn confine_calls(confinement: &Confinement) -> InForce {
    let mut in_force = InForce::default();
    let missing = &mut in_force.missing;
    let set = rustix::thread::set_no_new_privs(true);
    in_force.no_new_privileges = note(missing, &NO_NEW_PRIVILEGES, set);
    in_force.not_dumpable = note(missing, &HIDDEN_MEMORY, not_dumpable());
    in_force.no_core = note(missing, &NO_CORE, no_core());
    let set = capabilities::drop_unneeded();
    in_force.capabilities = note(missing, &PRIVILEGES, set);
    in_force.seccomp = note(missing, &SECCOMP, seccomp::apply(confinement));
    in_force
}

/// Confines the process for the compiler and the build scripts that it becomes: they use privileges that a
/// run must not have, such as those to change files of any user. The process must stay in its process
/// group, so that the caller can end all its processes together. A kernel without seccomp restricts files,
/// but not that, and of sockets only what its version of Landlock can.
///
/// # Errors
/// The kernel has no Landlock, or refuses it or seccomp. The process must not go on then.
pub fn confine_build(confinement: &Confinement) -> Result<(), String> {
    let has_seccomp = seccomp::available().is_ok();
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    capabilities::drop_unneeded_by_builds();
    landlock_rules::restrict(confinement)?;
    match seccomp::apply_to_build(confinement) {
        Err(error) if has_seccomp => Err(error.to_string()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What this system offers, without a change. The fields that are true would be in force.
pub fn probe() -> InForce {
    let mut in_force = InForce {
        not_dumpable: true,
        no_core: true,
        capabilities: true,
        ..InForce::default()
    };
    let missing = &mut in_force.missing;
    let known = rustix::thread::no_new_privs();
    in_force.no_new_privileges = note(missing, &NO_NEW_PRIVILEGES, known);
    in_force.landlock = landlock_rules::version();
    if in_force.landlock.is_none() {
        missing.push(LANDLOCK.missing("the kernel does not offer it"));
    }
    in_force.seccomp = note(missing, &SECCOMP, seccomp::available());
    in_force
}

/// Notes a feature that failed. Returns whether it is in force.
fn note<T, E: std::fmt::Display>(
    missing: &mut Vec<Missing>,
    feature: &Feature,
    set: Result<T, E>,
) -> bool {
    let refused = set.err().map(|error| feature.missing(error));
    let is_in_force = refused.is_none();
    missing.extend(refused);
    is_in_force
}

/// Keeps the memory of this process from other processes of the user and from core dumps. A program that
/// this process starts does not inherit it and must call it itself.
///
/// # Errors
/// The kernel refused.
pub fn hide_memory() -> io::Result<()> {
    not_dumpable()?;
    no_core()
}

fn not_dumpable() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::NotDumpable,
    )?)
}

fn no_core() -> io::Result<()> {
    set_limit(Resource::Core, Some(0))
}

/// Keeps all memory of this process, also what it gets later, out of the swap space.
///
/// # Errors
/// The limit of locked memory (`ulimit -l`, `LimitMEMLOCK=`) is too small.
pub fn lock_memory() -> io::Result<()> {
    Ok(rustix::mm::mlockall(
        MlockAllFlags::CURRENT | MlockAllFlags::FUTURE,
    )?)
}

/// How much memory this process may lock, bytes (`ulimit -l`, `LimitMEMLOCK=`); `None` without a limit.
pub fn lockable_memory() -> Option<u64> {
    if capabilities::may_lock_all() {
        return None;
    }
    rustix::process::getrlimit(Resource::Memlock).current
}

/// Limits this process and those that it starts. A limit can only become smaller.
///
/// # Errors
/// The kernel refused.
pub fn limit_resources(limits: &ResourceLimits) -> io::Result<()> {
    set_limit(Resource::As, limits.memory_bytes)?;
    set_limit(Resource::Cpu, limits.cpu_seconds)?;
    set_limit(Resource::Nofile, limits.open_files)
}

fn set_limit(resource: Resource, value: Option<u64>) -> io::Result<()> {
    let Some(value) = value else { return Ok(()) };
    let now = rustix::process::getrlimit(resource);
    // Without privileges, the maximum cannot be raised.
    let value = now.maximum.map_or(value, |maximum| maximum.min(value));
    let limit = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    Ok(rustix::process::setrlimit(resource, limit)?)
}
