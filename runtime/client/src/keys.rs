//! Reads keys from files: secrets as text, and encrypted wallet keystores (Web3 Secret Storage).
//!
//! Two rules: no secret appears in an error or in `Debug`, and a file that other users may read is
//! refused.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alloy_signer_local::PrivateKeySigner;
use secrecy::{ExposeSecret, SecretString};
use windvane_protocol::sign::{KeyError, Wallet};
use zeroize::Zeroizing;

/// A key cannot be loaded. No variant contains any part of a secret.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("{}: {error}; check the path and its permissions", .path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Other users than the owner may read the file.
    #[error(
        "{} has mode {mode:04o}: other users may read it; `chmod 600` it, or create a new key",
        .path.display()
    )]
    Open {
        /// File.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file contains no text.
    #[error("{} is empty: one line with the secret is expected", .path.display())]
    Empty {
        /// File.
        path: PathBuf,
    },
    /// The keystore cannot be decrypted.
    #[error(
        "{}: wrong password, or the file is not a keystore ({reason}); check both",
        .path.display()
    )]
    Keystore {
        /// File.
        path: PathBuf,
        /// The error of the keystore library.
        reason: String,
    },
    /// The text is not a key.
    #[error("{}: {error}", .path.display())]
    Key {
        /// File.
        path: PathBuf,
        /// The reason.
        error: KeyError,
    },
}

/// Reads the secret in a file, without surrounding white space. On Unix, the file is refused if any
/// user except the owner has access to it; its mode should be 0600.
pub fn secret_file(path: &Path) -> Result<SecretString, KeyFileError> {
    refuse_open(path)?;
    let text = fs::read_to_string(path).map_err(|error| KeyFileError::Read {
        path: path.to_owned(),
        error,
    })?;
    let text = Zeroizing::new(text);
    if text.trim().is_empty() {
        return Err(KeyFileError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(SecretString::from(text.trim()))
}

/// Reads a wallet whose key is in a file of mode 0600, as 64 hexadecimal digits.
pub fn wallet_file(path: &Path) -> Result<Wallet, KeyFileError> {
    let secret = secret_file(path)?;
    Wallet::from_hex(&secret).map_err(|error| KeyFileError::Key {
        path: path.to_owned(),
        error,
    })
}

/// Decrypts the wallet in an encrypted keystore. The format makes guessing a password expensive, so
/// decryption takes about a second of CPU time: do it once, and not inside an async task.
///
/// ```no_run
/// use std::path::Path;
///
/// use windvane_client::keys;
///
/// let password = keys::secret_file(Path::new("wallet.password"))?;
/// let wallet = keys::keystore(Path::new("main.json"), &password)?;
/// println!("{}", wallet.address());
/// # Ok::<(), keys::KeyFileError>(())
/// ```
pub fn keystore(path: &Path, password: &SecretString) -> Result<Wallet, KeyFileError> {
    // Distinguishes a file that cannot be read from a keystore that cannot be decrypted.
    fs::metadata(path).map_err(|error| KeyFileError::Read {
        path: path.to_owned(),
        error,
    })?;
    let opened = PrivateKeySigner::decrypt_keystore(path, password.expose_secret());
    opened
        .map(Wallet::from)
        .map_err(|error| KeyFileError::Keystore {
            path: path.to_owned(),
            reason: error.to_string(),
        })
}

#[cfg(unix)]
fn refuse_open(path: &Path) -> Result<(), KeyFileError> {
    use std::os::unix::fs::PermissionsExt;

    let metadata = fs::metadata(path).map_err(|error| KeyFileError::Read {
        path: path.to_owned(),
        error,
    })?;
    let mode = metadata.permissions().mode() & 0o777;
    let owners_rights = mode & 0o700;
    if mode == owners_rights {
        return Ok(());
    }
    Err(KeyFileError::Open {
        path: path.to_owned(),
        mode,
    })
}

#[cfg(not(unix))]
fn refuse_open(_path: &Path) -> Result<(), KeyFileError> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The published example of the keystore format; its password is `testpassword`.
    const KEYSTORE: &str = r#"{"crypto":{"cipher":"aes-128-ctr","cipherparams":
        {"iv":"6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext":"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf":"pbkdf2","kdfparams":{"c":262144,"dklen":32,"prf":"hmac-sha256",
        "salt":"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
        "mac":"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},
        "id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}"#;
    const KEY: &str = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";

    fn file(folder: &Path, text: &str, mode: u32) -> PathBuf {
        let path = folder.join("key");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_keystore_opens_with_its_password_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), KEYSTORE, 0o644);
        let wallet = keystore(&path, &SecretString::from("testpassword")).unwrap();
        let plain = Wallet::from_hex(&SecretString::from(KEY)).unwrap();
        assert_eq!(wallet.address(), plain.address());
        let refused = keystore(&path, &SecretString::from("hunter2")).unwrap_err();
        let text = format!("{refused} {refused:?}");
        assert!(!text.contains("hunter2") && !text.contains(KEY), "{text}");
    }

    #[test]
    fn a_file_that_other_users_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o644, 0o640, 0o604, 0o660] {
            let path = file(folder.path(), KEY, mode);
            assert!(matches!(secret_file(&path), Err(KeyFileError::Open { .. })));
        }
        let path = file(folder.path(), &format!("  {KEY}\n"), 0o600);
        assert_eq!(secret_file(&path).unwrap().expose_secret(), KEY);
        assert!(wallet_file(&path).is_ok());
    }

    #[test]
    fn errors_name_the_file_but_not_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "not-a-key-but-secret", 0o600);
        let refused = wallet_file(&path).unwrap_err();
        let text = format!("{refused} {refused:?}");
        assert!(
            text.contains("key") && !text.contains("but-secret"),
            "{text}"
        );
        let path = file(folder.path(), " \n", 0o600);
        assert!(matches!(
            secret_file(&path),
            Err(KeyFileError::Empty { .. })
        ));
        let absent = secret_file(&folder.path().join("absent")).unwrap_err();
        assert!(matches!(absent, KeyFileError::Read { .. }));
    }
}
