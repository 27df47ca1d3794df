//! Erases secrets from the environment of a process. Other processes of the user can read the
//! environment with which a program was started (`/proc/PID/environ`), and each child process inherits
//! it.
//!
//! The only complete way is to start the same program again, in the same process: without the
//! variables, and with their values in a sealed file in memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{MemfdFlags, SealFlags};
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::secret_store::{self, Slot};
use super::{Config, Secret, descriptor, secrets_line, take_secrets};

/// The variable with the number of the descriptor that has the secrets. It has no secret itself.
pub const SECRETS_VARIABLE: &str = "WINDVANE_SECRETS_FD";

/// Takes the secrets that this program passed to itself with [`erase_secrets`]. The binary calls it
/// first. Without such secrets it does nothing.
pub fn adopt_secrets() {
    let number = std::env::var(SECRETS_VARIABLE).ok();
    let Some(number) = number.and_then(|number| number.parse().ok()) else {
        return;
    };
    // A child process inherits the variable, but not the descriptor.
    if let Ok(file) = descriptor::take(number)
        && rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS))
    {
        // A secret that is missing is reported where it is used.
        let _ = take_sealed(file);
    }
}

fn take_sealed(mut file: File) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    // Reserve enough space at once, and more than a reader asks for at a time: every other buffer would
    // leave an unwiped copy in memory.
    let mut text = Zeroizing::new(Vec::with_capacity(length + 64));
    file.read_to_end(&mut text)?;
    take_secrets(&mut text.as_slice())
}

/// Erases the variables with secrets of the configuration. If there are any, the program starts again in
/// this process without these variables, with the same arguments, and this function does not return.
/// Call it before other threads start.
///
/// # Errors
/// The program could not be started again: the variables are still in the environment.
pub fn erase_secrets(config: &Config) -> io::Result<()> {
    let mut variables = Vec::new();
    for secret in config.secrets() {
        let Secret::Env(name) = secret else { continue };
        let Some(value) = std::env::var_os(name) else {
            continue;
        };
        let value = value.into_string().ok().map(Zeroizing::new);
        // A blank variable has nothing to erase. The error about it says that it is empty.
        if value.as_ref().is_some_and(|text| text.trim().is_empty()) {
            continue;
        }
        variables.push(name.as_str());
        if let Some(text) = value {
            secret_store::put(Slot::Env(name.clone()), SecretString::from(text.trim()));
        }
    }
    if variables.is_empty() {
        return Ok(());
    }
    let line = secrets_line().unwrap_or_default();
    let memory = sealed(line.as_bytes())?;
    let mut again = Command::new(this_program());
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    again.args(arguments);
    for name in variables {
        again.env_remove(name);
    }
    again.env(SECRETS_VARIABLE, memory.as_raw_fd().to_string());
    Err(again.exec())
}

/// Whether this system can erase secrets from the environment.
///
/// # Errors
/// What the system refused.
pub fn can_erase_secrets() -> io::Result<()> {
    sealed(b"").map(drop)
}

/// Reads the secrets that descriptors have, so that no process which this one starts gets them. A command
/// that does not run for long reads a descriptor when it needs it: one that another program left open
/// by chance could make it wait.
pub fn take_descriptors(config: &Config) {
    for secret in config.secrets() {
        if let Secret::Descriptor(_) = secret {
            // An error is reported where the secret is used.
            drop(secret.read());
        }
    }
}

const SEALS: SealFlags = SealFlags::SEAL
    .union(SealFlags::SHRINK)
    .union(SealFlags::GROW)
    .union(SealFlags::WRITE);

/// A file in memory with these bytes, which nobody can change. It stays open in the program that this
/// process starts.
fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let memory = rustix::fs::memfd_create("windvane-secrets", MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(memory);
    file.write_all(bytes)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// The file of this program. If it was replaced since the start, the path in `/proc` still names it.
fn this_program() -> PathBuf {
    let named = std::env::current_exe().ok();
    named
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_file_is_read_from_its_begin_and_not_changed() {
        let memory = sealed(b"secret").unwrap();
        assert!(
            rustix::fs::fcntl_get_seals(&memory)
                .unwrap()
                .contains(SEALS)
        );
        let mut file = File::from(memory);
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "secret");
        assert!(file.write_all(b"x").is_err());
    }
}
