//! seccomp: the system calls that stay usable.
//!
//! A process with a network or with other programs gets a list of refused calls: it runs code of many
//! libraries, and of a compiler. A process with neither gets a list of allowed calls as well.

use std::collections::BTreeMap;
use std::fmt;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::system_calls::{
    self, ALLOWED, CHANGE_OWNER, LEAVE_GROUP, LEAVE_SESSION, REFUSED, START_PROGRAM,
};
use crate::{Confinement, Network};

/// Rules by number of the call. A call without rules always matches.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The kernel's answer to a refused call.
const NOT_PERMITTED: SeccompAction = SeccompAction::Errno(libc::EPERM as u32);
/// The answer to a call that the C library can do without: it then takes an older one.
const NOT_IMPLEMENTED: SeccompAction = SeccompAction::Errno(libc::ENOSYS as u32);

/// The answer to a call that does nothing, although it reports success.
const WITHOUT_EFFECT: SeccompAction = SeccompAction::Errno(0);

/// Why seccomp is not in force.
pub(crate) struct NotApplied(String);

impl fmt::Display for NotApplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for NotApplied {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Applies the filters to all threads.
pub(crate) fn apply(confinement: &Confinement) -> Result<(), NotApplied> {
    apply_with(confinement, CHANGE_OWNER)
}

/// The same for a build, which must also stay in its process group, so that all its processes can be
/// ended together.
pub(crate) fn apply_to_build(confinement: &Confinement) -> Result<(), NotApplied> {
    apply_with(confinement, &[LEAVE_SESSION])?;
    // Tools such as ninja start each program in a group of its own, and fail if that is refused.
    let numbers = system_calls::numbers(LEAVE_GROUP).into_iter();
    let program: BpfProgram = SeccompFilter::new(
        numbers.map(|number| (number, Vec::new())).collect(),
        SeccompAction::Allow,
        WITHOUT_EFFECT,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()?;
    Ok(seccompiler::apply_filter_all_threads(&program)?)
}

fn apply_with(confinement: &Confinement, also_refused: &[libc::c_long]) -> Result<(), NotApplied> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    // If two filters refuse a call, the kernel gives the answer of the later one.
    let mut filters = Vec::new();
    if confinement.network == Network::None && !confinement.processes {
        filters.push(SeccompFilter::new(
            allowed()?,
            NOT_IMPLEMENTED,
            SeccompAction::Allow,
            architecture,
        )?);
    }
    // Their flags are in memory, where a filter cannot read them. They could ask for a new namespace, or
    // for a file that runs with the rights of its owner.
    let unreadable = [libc::SYS_clone3, libc::SYS_openat2];
    let unreadable: Rules = unreadable.map(|call| (call, Vec::new())).into();
    filters.push(SeccompFilter::new(
        unreadable,
        SeccompAction::Allow,
        NOT_IMPLEMENTED,
        architecture,
    )?);
    filters.push(SeccompFilter::new(
        refused(confinement, also_refused)?,
        SeccompAction::Allow,
        NOT_PERMITTED,
        architecture,
    )?);
    for filter in filters {
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter_all_threads(&program)?;
    }
    Ok(())
}

/// Whether the kernel offers seccomp.
pub(crate) fn available() -> Result<(), NotApplied> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    if status.lines().any(|line| line.starts_with("Seccomp:")) {
        Ok(())
    } else {
        Err(NotApplied("the kernel does not offer it".to_owned()))
    }
}

fn refused(confinement: &Confinement, also_refused: &[libc::c_long]) -> Result<Rules, NotApplied> {
    let calls = REFUSED.iter().chain(also_refused);
    let mut rules: Rules = calls.map(|call| (*call, Vec::new())).collect();
    if !confinement.processes {
        rules.extend(START_PROGRAM.iter().map(|call| (*call, Vec::new())));
    }
    let namespaces = u64::from(system_calls::NEW_NAMESPACES.unsigned_abs());
    let mut of_clone = Vec::new();
    for flag in (0..u64::BITS)
        .map(|bit| 1 << bit)
        .filter(|flag| namespaces & flag != 0)
    {
        of_clone.push(rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])?);
    }
    rules.insert(libc::SYS_clone, of_clone);
    for (call, process) in system_calls::OF_A_PROCESS {
        rules.insert(call, vec![rule(&[(process, SeccompCmpOp::Ne, 0)])?]);
    }
    rules.extend(of_modes(confinement)?);
    // Input typed into the terminal of the user who started this process.
    let mut of_ioctl = Vec::new();
    for request in system_calls::TERMINAL_INPUT {
        of_ioctl.push(rule(&[(1, SeccompCmpOp::Eq, request)])?);
    }
    rules.insert(libc::SYS_ioctl, of_ioctl);
    let of_socket = match confinement.network {
        Network::Any => vec![other_families(&system_calls::FAMILIES)?],
        Network::Internet => vec![other_families(&system_calls::INTERNET)?],
        Network::None => Vec::new(),
    };
    rules.insert(libc::SYS_socket, of_socket);
    if confinement.network != Network::Any {
        // Of a pair of datagram sockets, one could send to any other socket. Linux makes a datagram socket
        // of a raw one of this family.
        let (kinds, datagrams) = (0xf, [libc::SOCK_DGRAM, libc::SOCK_RAW]);
        let datagrams = datagrams.map(|kind| u64::from(kind.unsigned_abs()));
        let of_pair = datagrams.map(|kind| rule(&[(1, SeccompCmpOp::MaskedEq(kinds), kind)]));
        let of_pair: Result<Vec<_>, _> = of_pair.into_iter().collect();
        rules.insert(libc::SYS_socketpair, of_pair?);
    }
    let rules = rules.into_iter().flat_map(|(call, rules)| {
        let numbers = system_calls::numbers(call).into_iter();
        numbers.map(move |number| (number, rules.clone()))
    });
    Ok(rules.collect())
}

/// Rules about modes of files. Landlock does not limit changes of a mode, so a process could open the
/// files of its user to other users, and leave programs that run as its user.
fn of_modes(confinement: &Confinement) -> Result<Rules, NotApplied> {
    let of_change = if confinement.shares_files {
        system_calls::SET_USER_OR_GROUP
    } else {
        system_calls::SET_USER_OR_GROUP | system_calls::OF_OTHER_USERS
    };
    // A file without a name can get one later.
    let creating = [libc::O_CREAT, libc::O_TMPFILE].map(|flag| u64::from(flag.unsigned_abs()));
    let mut rules = Rules::new();
    for one in system_calls::SET_MODE {
        let bits = match one.creates {
            Some(_) => system_calls::SET_USER_OR_GROUP,
            None => of_change,
        };
        let each = (0..u64::BITS).map(|bit| 1 << bit);
        let mut of_call = Vec::new();
        for bit in each.filter(|bit| bits & bit != 0) {
            let of_mode = (one.mode, SeccompCmpOp::MaskedEq(bit), bit);
            let Some(flags) = one.creates else {
                of_call.push(rule(&[of_mode])?);
                continue;
            };
            for flag in creating {
                let of_flags = (flags, SeccompCmpOp::MaskedEq(flag), flag);
                of_call.push(rule(&[of_mode.clone(), of_flags])?);
            }
        }
        rules.insert(one.call, of_call);
    }
    Ok(rules)
}

fn allowed() -> Result<Rules, NotApplied> {
    let mut rules: Rules = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    rules.insert(
        libc::SYS_clone,
        vec![rule(&[(0, SeccompCmpOp::MaskedEq(thread), thread)])?],
    );
    // Of a pair of datagram sockets, one could send to any other socket.
    let (kinds, stream) = (0xf, u64::from(libc::SOCK_STREAM.unsigned_abs()));
    rules.insert(
        libc::SYS_socketpair,
        vec![rule(&[(1, SeccompCmpOp::MaskedEq(kinds), stream)])?],
    );
    Ok(rules)
}

/// Matches sockets of all families but these.
fn other_families(families: &[libc::c_int]) -> Result<SeccompRule, NotApplied> {
    let conditions = families.iter();
    let conditions: Vec<_> = conditions
        .map(|family| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect();
    rule(&conditions)
}

/// Matches a call if all these arguments do: the position of the argument, the comparison, the value.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, NotApplied> {
    let conditions = conditions.iter().map(|(position, compare, value)| {
        SeccompCondition::new(*position, SeccompCmpArgLen::Dword, compare.clone(), *value)
    });
    let conditions: Result<Vec<_>, _> = conditions.collect();
    Ok(SeccompRule::new(conditions?)?)
}
