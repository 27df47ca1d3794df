//! Privileges of the superuser, which Linux splits into capabilities.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};

/// What a run of the superuser may keep: files of its own with odd modes, locked memory, priorities and
/// low ports. None of them reaches another process.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Drops what the process has beyond [`KEPT`].
pub(crate) fn drop_unneeded() -> io::Result<()> {
    let now = capabilities(None)?;
    let kept = CapabilitySets {
        effective: now.effective.intersection(KEPT),
        permitted: now.permitted.intersection(KEPT),
        inheritable: CapabilitySet::empty(),
    };
    // In a confined process, seccomp refuses the call.
    if now.effective == kept.effective
        && now.permitted == kept.permitted
        && now.inheritable.is_empty()
    {
        return Ok(());
    }
    Ok(set_capabilities(None, kept)?)
}

/// What a build of the superuser keeps: it changes files of any user.
const KEPT_BY_BUILDS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER);

/// Gives up privileges for the programs that this process starts. With them, a build could read the
/// environment of other processes in spite of Landlock.
pub(crate) fn drop_unneeded_by_builds() {
    for privilege in CapabilitySet::all().difference(KEPT_BY_BUILDS).iter() {
        // Without the privilege to do this, the process is not the superuser.
        let _ = remove_capability_from_bounding_set(privilege);
    }
}

/// Whether the limit of locked memory does not hold for this process.
pub(crate) fn may_lock_all() -> bool {
    capabilities(None).is_ok_and(|now| now.effective.contains(CapabilitySet::IPC_LOCK))
}
