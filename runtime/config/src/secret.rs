//! Sources of secrets. The configuration names only the source. The text is read when it is used,
//! and nothing in this module prints it. Every temporary copy is wiped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use zeroize::Zeroizing;

/// Largest size of a secret file, bytes. A larger file cannot be a secret.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The source of a secret: `{ env = "NAME" }` or `{ file = "PATH" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// An environment variable.
    Env(String),
    /// A file that only its owner can read.
    File(PathBuf),
}

/// The source of a private key: a secret, or an encrypted keystore with its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The key itself.
    Plain(Secret),
    /// A wallet keystore file.
    Keystore {
        /// The file.
        file: PathBuf,
        /// Its password.
        password: Secret,
    },
}

/// A secret that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The variable is missing or is not valid text.
    #[error("environment variable {0} is not set; set it to the secret")]
    Env(String),
    /// The file cannot be read.
    #[error("cannot read secret file {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The operating system's error text.
        reason: String,
    },
    /// Other users may read the file.
    #[error("secret file {} has mode {mode:04o}, but only its owner may read it; run \
        chmod 600 on it",
        file.display())]
    Mode {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file has several lines, such as a user name above the key, or two keys. The program
    /// would sign with the wrong one.
    #[error("secret file {} contains more than one line; leave only the secret", .0.display())]
    Lines(PathBuf),
    /// The file is empty.
    #[error("secret file {} is empty; put the secret in it", .0.display())]
    Empty(PathBuf),
    /// The variable is empty.
    #[error("environment variable {0} is empty; set it to the secret")]
    EmptyEnv(String),
}

impl Secret {
    /// Reads the secret now, without surrounding white space.
    pub fn read(&self) -> Result<SecretString, SecretError> {
        match self {
            Self::Env(name) => {
                let text = std::env::var(name).map_err(|_| SecretError::Env(name.clone()))?;
                let text = Zeroizing::new(text);
                if text.trim().is_empty() {
                    return Err(SecretError::EmptyEnv(name.clone()));
                }
                Ok(SecretString::from(text.trim()))
            }
            Self::File(file) => read_file(file),
        }
    }
}

fn read_file(path: &Path) -> Result<SecretString, SecretError> {
    let fail = |error: std::io::Error| SecretError::File {
        file: path.to_owned(),
        reason: error.to_string(),
    };
    let file = File::open(path).map_err(fail)?;
    // Check the mode of the open file, so that nobody can replace the file between check and read.
    let metadata = file.metadata().map_err(fail)?;
    check_mode(path, &metadata)?;
    // Reserve enough space at once: a `String` that grows leaves unwiped copies in memory.
    let room = metadata.len().min(FILE_BYTES_MAX) + 64;
    let mut text = Zeroizing::new(String::with_capacity(usize::try_from(room).unwrap_or(0)));
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(fail)?;
    if text.trim().is_empty() {
        return Err(SecretError::Empty(path.to_owned()));
    }
    if text.trim().contains(['\n', '\r']) {
        return Err(SecretError::Lines(path.to_owned()));
    }
    Ok(SecretString::from(text.trim()))
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &std::fs::Metadata) -> Result<(), SecretError> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o177;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        Ok(())
    } else {
        Err(SecretError::Mode {
            file: path.to_owned(),
            mode,
        })
    }
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &std::fs::Metadata) -> Result<(), SecretError> {
    Ok(())
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "{ env = \"NAME\" } or { file = \"PATH\" } \
                 (the configuration never contains a secret)"
)]
struct SecretTable {
    env: Option<String>,
    file: Option<PathBuf>,
}

impl SecretTable {
    fn source<E: Error>(self) -> Result<Secret, E> {
        match (self.env, self.file) {
            (Some(name), None) => Ok(Secret::Env(name)),
            (None, Some(file)) => Ok(Secret::File(file)),
            _ => Err(E::custom("must have exactly one of env and file")),
        }
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SecretTable::deserialize(deserializer)?.source()
    }
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "{ env = \"NAME\" }, { file = \"PATH\" } or \
                 { keystore = \"FILE\", password = { ... } } \
                 (the configuration never contains a secret)"
)]
struct KeyTable {
    env: Option<String>,
    file: Option<PathBuf>,
    keystore: Option<PathBuf>,
    password: Option<Secret>,
}

impl<'de> Deserialize<'de> for KeySource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let KeyTable {
            env,
            file,
            keystore,
            password,
        } = KeyTable::deserialize(deserializer)?;
        match (keystore, password) {
            (Some(keystore), Some(password)) if env.is_none() && file.is_none() => {
                Ok(Self::Keystore {
                    file: keystore,
                    password,
                })
            }
            (None, None) => SecretTable { env, file }.source().map(Self::Plain),
            _ => Err(D::Error::custom(
                "must have either one of env and file, or keystore and password together",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    #[cfg(unix)]
    fn secret_files_readable_by_others_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "hunter2\n").unwrap();
        let secret = Secret::File(path.clone());
        let with_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            secret.read()
        };
        let refused = with_mode(0o640).unwrap_err();
        assert!(refused.to_string().contains("mode 0640"), "{refused}");
        assert!(!refused.to_string().contains("hunter2"));
        for mode in [0o400, 0o600] {
            let text = with_mode(mode).unwrap();
            assert_eq!(text.expose_secret(), "hunter2");
            assert!(!format!("{text:?}").contains("hunter2"));
        }
        std::fs::write(&path, "name\nhunter2\n").unwrap();
        let refused = with_mode(0o600).unwrap_err().to_string();
        assert!(refused.contains("more than one line"), "{refused}");
        assert!(!refused.contains("hunter2"));
    }

    #[test]
    fn a_missing_secret_source_error_gives_advice() {
        let missing = Secret::Env("WINDVANE_TEST_NO_SUCH_VARIABLE".to_owned()).read();
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .contains("set it to the secret")
        );
        let missing = Secret::File(PathBuf::from("no/such/file")).read();
        assert!(missing.unwrap_err().to_string().contains("no/such/file"));
    }
}
