//! Landlock: the files and sockets that stay usable.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::{Confinement, Network};

/// The versions of the interface that restrict something that we use, in order. A later one would
/// restrict what we have not tried.
const VERSIONS: [(ABI, u32); 6] = [
    (ABI::V1, 1),
    (ABI::V2, 2),
    (ABI::V3, 3),
    (ABI::V4, 4),
    (ABI::V5, 5),
    (ABI::V6, 6),
];
/// The newest of them.
const NEWEST: ABI = ABI::V6;

/// Devices that every process may use.
const DEVICES_READ: [&str; 3] = ["/dev/zero", "/dev/random", "/dev/urandom"];
const DEVICE_WRITE: &str = "/dev/null";

/// Restricts the calling thread and those that it starts later. Returns the version of Landlock's
/// interface.
pub(crate) fn restrict(confinement: &Confinement) -> Result<u32, String> {
    let version = version().ok_or("the kernel does not offer it")?;
    match try_restrict(confinement).map_err(|error| error.to_string())? {
        RulesetStatus::NotEnforced => Err("the kernel did not enforce it".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(version),
    }
}

fn try_restrict(confinement: &Confinement) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
    ruleset = match confinement.network {
        Network::None => ruleset
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?,
        Network::Internet => ruleset.scope(Scope::from_all(NEWEST))?,
        // The service manager may listen on an abstract socket.
        Network::Any => ruleset.scope(Scope::Signal)?,
    };
    let mut rules = ruleset.create()?;
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    let write = read | (AccessFs::from_write(NEWEST) & !devices);
    for path in &confinement.list {
        rules = add(rules, path, AccessFs::ReadDir.into())?;
    }
    for path in &confinement.read {
        rules = add(rules, path, read)?;
    }
    for path in &confinement.write {
        rules = add(rules, path, write)?;
    }
    for path in &confinement.execute {
        rules = add(rules, path, read | AccessFs::Execute)?;
    }
    for path in DEVICES_READ {
        rules = add(rules, Path::new(path), read)?;
    }
    rules = add(rules, Path::new(DEVICE_WRITE), write)?;
    Ok(rules.restrict_self()?.ruleset)
}

/// A path that does not exist is ignored.
fn add(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(descriptor) = PathFd::new(path) else {
        return Ok(rules);
    };
    let access = if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(NEWEST)
    };
    rules.add_rule(PathBeneath::new(descriptor, access))
}

/// The newest version of the interface that this kernel offers, of those that we use.
pub(crate) fn version() -> Option<u32> {
    let offered = VERSIONS.iter().rev().find(|(abi, _)| is_offered(*abi));
    offered.map(|(_, number)| *number)
}

fn is_offered(abi: ABI) -> bool {
    let try_it = || -> Result<(), RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))?;
        if abi >= ABI::V4 {
            ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
        }
        if abi >= ABI::V6 {
            ruleset = ruleset.scope(Scope::from_all(abi))?;
        }
        ruleset.create().map(drop)
    };
    try_it().is_ok()
}
