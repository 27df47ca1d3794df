//! Descriptors that another program opened and passed to this one.

use std::fs::File;
use std::io;

/// The flag of a descriptor that is closed when a program starts (`O_CLOEXEC`), octal, in `/proc`.
const CLOSED_AT_START: u32 = 0o2_000_000;

/// Takes over a descriptor that was open when this program started. It is closed when the file is
/// dropped, so that no child process gets it.
///
/// # Errors
/// The descriptor is not open, or this program opened it itself.
pub(crate) fn take(number: u32) -> io::Result<File> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
    let info = info.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "it is not open"),
        _ => error,
    })?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    // Rust opens everything with this flag, and the start of a program closes what has it. So a
    // descriptor without the flag was passed, and no value of this program owns it.
    if flags.is_none_or(|flags| flags & CLOSED_AT_START != 0) {
        return Err(io::Error::other("it was not passed to this program"));
    }
    Ok(File::from(owned(number)))
}

#[expect(unsafe_code, reason = "a descriptor that was passed has only a number")]
fn owned(number: u32) -> std::os::fd::OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: the descriptor is open and, as `take` has just seen, no value of this program owns it.
    // A second call for the same number fails: this value closes the descriptor when it is dropped,
    // and is only handed to callers that read it to its end and drop it.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(number.cast_signed()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_descriptor_of_this_program_is_refused() {
        let own = File::open("/dev/null").unwrap();
        let refused = take(own.as_raw_fd().unsigned_abs()).unwrap_err();
        assert!(refused.to_string().contains("not passed"), "{refused}");
        let absent = take(999_999).unwrap_err();
        assert!(absent.to_string().contains("not open"), "{absent}");
    }
}
