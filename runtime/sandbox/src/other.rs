//! Systems without a confinement: every feature is missing.

use std::io;

use crate::{Confinement, InForce, Missing, ResourceLimits};

fn nothing() -> InForce {
    InForce {
        missing: vec![Missing {
            feature: "confinement",
            reason: "this system is not Linux".to_owned(),
            means: "a fault in a process of a run reaches every file of its user",
            what_to_do: "trade on Linux",
        }],
        ..InForce::default()
    }
}

/// Changes nothing and says so.
pub fn confine(_: &Confinement) -> InForce {
    nothing()
}

/// Not available.
///
/// # Errors
/// Always.
pub fn confine_build(_: &Confinement) -> Result<(), String> {
    Err("only Linux has Landlock".to_owned())
}

/// Confines nothing, and says so.
pub fn confine_calls(_: &Confinement) -> InForce {
    nothing()
}

/// Says that nothing is available.
pub fn probe() -> InForce {
    nothing()
}

/// Not available.
///
/// # Errors
/// Always.
pub fn hide_memory() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Not available.
///
/// # Errors
/// Always.
pub fn lock_memory() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// No memory can be locked.
pub const fn lockable_memory() -> Option<u64> {
    Some(0)
}

/// Not available.
///
/// # Errors
/// Always.
pub fn limit_resources(_: &ResourceLimits) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
