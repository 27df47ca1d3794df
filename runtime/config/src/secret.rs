//! Where secrets come from. The configuration names the source; the text is read when it is used,
//! and nothing here prints it. Every copy that is made on the way is wiped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use zeroize::Zeroizing;

/// A secret file that is larger is no secret.
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
    /// The variable is missing or no text.
    #[error("environment variable {0} is not set; set it to the secret")]
    Env(String),
    /// The file cannot be read.
    #[error("cannot read secret file {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Others may read the file.
    #[error("secret file {} has mode {mode:04o}, which lets others read it; run chmod 600 on it",
        file.display())]
    Mode {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key file with a user's name above, or two keys: one of them would be signed with.
    #[error("secret file {} holds more than one line; leave the secret alone in it", .0.display())]
    Lines(PathBuf),
    /// There is nothing in the file.
    #[error("secret file {} is empty; put the secret in it", .0.display())]
    Empty(PathBuf),
    /// There is nothing in the variable.
    #[error("environment variable {0} is empty; set it to the secret")]
    EmptyEnv(String),
}

impl Secret {
    /// Reads the secret now, without the white space around it.
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
    // The mode of the open file, so that nobody can swap it between check and read.
    let metadata = file.metadata().map_err(fail)?;
    check_mode(path, &metadata)?;
    // Room for all of it and what shows its end: a text that grows leaves copies behind.
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
    expecting = "{ env = \"NAME\" } or { file = \"PATH\" }: \
                 secrets never stand in the configuration"
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
                 { keystore = \"FILE\", password = { ... } }: \
                 secrets never stand in the configuration"
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
    fn a_secret_file_is_read_only_if_nobody_else_can() {
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
    fn a_missing_source_says_what_to_do() {
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
