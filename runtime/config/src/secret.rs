//! Sources of secrets. The configuration names only the source. The text is read when it is used,
//! and nothing in this module prints it. Every temporary copy is wiped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use windvane_files::PrivateError;
use zeroize::Zeroizing;

use super::secret_store::{self, Slot};
use super::{Config, descriptor};

/// Largest size of a secret, bytes. A larger file cannot be a secret.
const BYTES_MAX: u64 = 64 * 1024;
/// Permission bits that a secret file must not have: all for others, and execution for the owner.
const FILE_MODE: u32 = 0o177;
/// The same for a credential. systemd gives the service's user access by an entry in the access list,
/// which Linux shows as a bit of the group.
const CREDENTIAL_MODE: u32 = 0o137;
/// The variable with which systemd names the folder of a service's credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// The source of a secret: `{ env = "NAME" }`, `{ file = "PATH" }`, `{ credential = "NAME" }` or
/// `{ fd = NUMBER }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// An environment variable.
    Env(String),
    /// A file that only its owner can read.
    File(PathBuf),
    /// A credential of systemd: a file of this name in the folder `$CREDENTIALS_DIRECTORY`.
    Credential(String),
    /// A descriptor that was open when the program started, such as 3. It is read once.
    Descriptor(u32),
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
        /// Why.
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
    #[error("{0} contains more than one line; leave only the secret")]
    Lines(String),
    /// The file is empty.
    #[error("{0} is empty; put the secret in it")]
    Empty(String),
    /// The variable is empty.
    #[error("environment variable {0} is empty; set it to the secret")]
    EmptyEnv(String),
    /// systemd passed no credentials.
    #[error(
        "credential {0}: the variable CREDENTIALS_DIRECTORY is not set; start the program with systemd, and \
         with LoadCredential={0}:FILE in the service"
    )]
    NoCredentials(String),
    /// The descriptor cannot be read.
    #[error(
        "descriptor {number}: {reason}; start the program with it, such as {number}< FILE in a shell"
    )]
    Descriptor {
        /// Its number.
        number: u32,
        /// Why.
        reason: String,
    },
}

impl Secret {
    /// The file that it names.
    pub(crate) fn file(&self) -> Option<&Path> {
        if let Self::File(file) = self {
            Some(file)
        } else {
            None
        }
    }

    /// Reads the secret now, without surrounding white space.
    ///
    /// # Errors
    /// The source has no secret, or others than its owner may use it.
    pub fn read(&self) -> Result<SecretString, SecretError> {
        match self {
            Self::Env(name) => {
                if let Some(kept) = secret_store::get(&Slot::Env(name.clone())) {
                    return Ok(kept);
                }
                let text = std::env::var(name).map_err(|_| SecretError::Env(name.clone()))?;
                let text = Zeroizing::new(text);
                if text.trim().is_empty() {
                    return Err(SecretError::EmptyEnv(name.clone()));
                }
                Ok(SecretString::from(text.trim()))
            }
            Self::File(file) => read_file(file, FILE_MODE),
            Self::Credential(name) => {
                let folder = credentials_folder();
                let folder = folder.ok_or_else(|| SecretError::NoCredentials(name.clone()))?;
                read_file(&folder.join(name), CREDENTIAL_MODE)
            }
            Self::Descriptor(number) => read_descriptor(*number),
        }
    }
}

/// The folder of the credentials that systemd passed to this process.
pub fn credentials_folder() -> Option<PathBuf> {
    std::env::var_os(CREDENTIALS).map(PathBuf::from)
}

fn read_file(path: &Path, forbidden: u32) -> Result<SecretString, SecretError> {
    let fail = |reason: String| SecretError::File {
        file: path.to_owned(),
        reason,
    };
    let file = windvane_files::open_private(path, forbidden).map_err(|error| match error {
        PrivateError::Mode { mode } => SecretError::Mode {
            file: path.to_owned(),
            mode,
        },
        other => fail(other.to_string()),
    })?;
    let length = file
        .metadata()
        .map_err(|error| fail(error.to_string()))?
        .len();
    let text = read_text(file, length).map_err(|error| fail(error.to_string()))?;
    one_line(&text, &format!("secret file {}", path.display()))
}

/// Reads a descriptor of this process once. Later reads give the same text.
fn read_descriptor(number: u32) -> Result<SecretString, SecretError> {
    let slot = Slot::Descriptor(number);
    if let Some(kept) = secret_store::get(&slot) {
        return Ok(kept);
    }
    let fail = |error: std::io::Error| SecretError::Descriptor {
        number,
        reason: error.to_string(),
    };
    let file = descriptor::take(number).map_err(fail)?;
    let text = read_text(file, BYTES_MAX).map_err(fail)?;
    let secret = one_line(&text, &format!("descriptor {number}"))?;
    secret_store::put(slot, secret.clone());
    Ok(secret)
}

fn read_text(file: File, length: u64) -> std::io::Result<Zeroizing<String>> {
    // Reserve enough space at once: a `String` that grows leaves unwiped copies in memory.
    let room = length.min(BYTES_MAX) + 64;
    let mut text = Zeroizing::new(String::with_capacity(usize::try_from(room).unwrap_or(0)));
    file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        // A part of a secret is not the secret.
        let reason = format!("it has more than {BYTES_MAX} bytes");
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            reason,
        ));
    }
    Ok(text)
}

fn one_line(text: &str, origin: &str) -> Result<SecretString, SecretError> {
    if text.trim().is_empty() {
        return Err(SecretError::Empty(origin.to_owned()));
    }
    if text.trim().contains(['\n', '\r']) {
        return Err(SecretError::Lines(origin.to_owned()));
    }
    Ok(SecretString::from(text.trim()))
}

impl Config {
    /// The sources of all secrets that the configuration names.
    pub fn secrets(&self) -> Vec<&Secret> {
        let mut secrets = self.account_secrets();
        secrets.extend(&self.admin.token);
        secrets
    }

    /// The sources of the account's keys and passwords.
    pub fn account_secrets(&self) -> Vec<&Secret> {
        let account = &self.account;
        let plain = [&account.api_key, &account.api_secret, &account.solana];
        let keys = [&account.signer, &account.wallet].into_iter().flatten();
        let of_keys = keys.map(|key| match key {
            KeySource::Plain(secret) => secret,
            KeySource::Keystore { password, .. } => password,
        });
        plain.into_iter().flatten().chain(of_keys).collect()
    }

    /// The keystore files that the configuration names.
    pub fn keystores(&self) -> Vec<&Path> {
        let keys = [&self.account.signer, &self.account.wallet];
        let files = keys.into_iter().flatten().filter_map(|key| match key {
            KeySource::Keystore { file, .. } => Some(file.as_path()),
            KeySource::Plain(_) => None,
        });
        files.collect()
    }
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "{ env = \"NAME\" }, { file = \"PATH\" }, { credential = \"NAME\" } or { fd = NUMBER } \
                 (the configuration never contains a secret)"
)]
struct SecretTable {
    env: Option<String>,
    file: Option<PathBuf>,
    credential: Option<String>,
    fd: Option<u32>,
}

impl SecretTable {
    fn source<E: Error>(self) -> Result<Secret, E> {
        match (self.env, self.file, self.credential, self.fd) {
            (Some(name), None, None, None) => Ok(Secret::Env(name)),
            (None, Some(file), None, None) => Ok(Secret::File(file)),
            (None, None, Some(name), None) => credential(name),
            (None, None, None, Some(number)) => number_of_descriptor(number),
            _ => Err(E::custom(
                "must have exactly one of env, file, credential and fd",
            )),
        }
    }
}

fn credential<E: Error>(name: String) -> Result<Secret, E> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(E::custom(
            "credential must be the name of a systemd credential, without a folder",
        ));
    }
    Ok(Secret::Credential(name))
}

fn number_of_descriptor<E: Error>(number: u32) -> Result<Secret, E> {
    if (3..=1_023).contains(&number) {
        Ok(Secret::Descriptor(number))
    } else {
        Err(E::custom(
            "fd must be the number of an open descriptor, from 3 to 1023",
        ))
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
    expecting = "{ env = \"NAME\" }, { file = \"PATH\" }, { credential = \"NAME\" }, { fd = NUMBER } or \
                 { keystore = \"FILE\", password = { ... } } \
                 (the configuration never contains a secret)"
)]
struct KeyTable {
    env: Option<String>,
    file: Option<PathBuf>,
    credential: Option<String>,
    fd: Option<u32>,
    keystore: Option<PathBuf>,
    password: Option<Secret>,
}

impl<'de> Deserialize<'de> for KeySource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let KeyTable {
            env,
            file,
            credential,
            fd,
            keystore,
            password,
        } = KeyTable::deserialize(deserializer)?;
        let plain = SecretTable {
            env,
            file,
            credential,
            fd,
        };
        let is_plain = plain.env.is_some()
            || plain.file.is_some()
            || plain.credential.is_some()
            || plain.fd.is_some();
        match (keystore, password) {
            (Some(keystore), Some(password)) if !is_plain => Ok(Self::Keystore {
                file: keystore,
                password,
            }),
            (None, None) => plain.source().map(Self::Plain),
            _ => Err(D::Error::custom(
                "must have either one of env, file, credential and fd, or keystore and password \
                 together",
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
    fn a_secret_beyond_the_limit_is_refused_and_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, vec![b'x'; 64 * 1024 + 1]).unwrap();
        let read = read_text(File::open(&path).unwrap(), BYTES_MAX);
        assert!(read.unwrap_err().to_string().contains("more than 65536"));
        std::fs::write(&path, vec![b'x'; 64 * 1024]).unwrap();
        let read = read_text(File::open(&path).unwrap(), BYTES_MAX);
        assert_eq!(read.unwrap().len(), 64 * 1024);
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
