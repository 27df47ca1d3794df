//! Reads keys from files: secrets as text, and encrypted wallet keystores (Web3 Secret Storage).
//!
//! Two rules: no secret appears in an error or in `Debug`, and a file that other users may read or
//! that belongs to another user is refused.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use alloy_signer_local::PrivateKeySigner;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use windvane_files::PrivateError;
use windvane_protocol::sign::{KeyError, Wallet};
use zeroize::Zeroizing;

/// Longest file with a secret or a keystore, bytes. A keystore has about 500.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The largest parameters of a keystore's key derivation. Wallets use n = 262,144, r = 8, p = 1 and
/// c = 262,144.
const COST_MAX: &[(&str, u64)] = &[
    ("dklen", 64),
    ("n", 1 << 22),
    ("r", 64),
    ("p", 64),
    ("c", 10_000_000),
];
/// The most memory that a key derivation may use, bytes: four times that of the common wallets.
const MEMORY_MAX: u64 = 1 << 30;

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
    /// The file belongs to another user, or is not a regular file.
    #[error("{}: {reason}", .path.display())]
    NotPrivate {
        /// File.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
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
    let text = private_text(path)?;
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
    let text = private_text(path)?;
    check_cost(&text).map_err(|reason| KeyFileError::Keystore {
        path: path.to_owned(),
        reason,
    })?;
    let file = open_private(path)?;
    // The open file: another one may have its path meanwhile.
    let checked = format!("/proc/self/fd/{}", file.as_raw_fd());
    let checked = if cfg!(target_os = "linux") {
        Path::new(&checked)
    } else {
        path
    };
    let opened = PrivateKeySigner::decrypt_keystore(checked, password.expose_secret());
    opened
        .map(Wallet::from)
        .map_err(|error| KeyFileError::Keystore {
            path: path.to_owned(),
            reason: error.to_string(),
        })
}

/// Refuses a keystore whose decryption would need more memory or time than those of the common
/// wallets: the keystore itself states the cost.
fn check_cost(text: &str) -> Result<(), String> {
    let keystore: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    // The keystore library panics on a shorter key or a shorter initialization vector.
    let iv = keystore["crypto"]["cipherparams"]["iv"].as_str();
    if iv.is_none_or(|iv| iv.len() < 32) {
        return Err("crypto.cipherparams.iv must have 32 hexadecimal digits".to_owned());
    }
    let parameters = &keystore["crypto"]["kdfparams"];
    if parameters["dklen"].as_u64().is_none_or(|dklen| dklen < 32) {
        return Err("crypto.kdfparams.dklen must be at least 32".to_owned());
    }
    for (name, max) in COST_MAX {
        let value = &parameters[*name];
        let is_small = value.as_u64().is_some_and(|value| value <= *max);
        if !value.is_null() && !is_small {
            return Err(format!(
                "crypto.kdfparams.{name} = {value}: it must be at most {max}"
            ));
        }
    }
    let of = |name: &str| parameters[name].as_u64().unwrap_or(0);
    let memory = of("n") * of("r") * 128;
    if memory > MEMORY_MAX {
        return Err(format!(
            "crypto.kdfparams needs {memory} bytes of memory: at most {MEMORY_MAX} are used"
        ));
    }
    Ok(())
}

/// Reads a short file of text that only its owner may use.
fn private_text(path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
    let file = open_private(path)?;
    let text = windvane_files::read_open_text(file, FILE_BYTES_MAX);
    let text = text.map_err(|error| KeyFileError::Read {
        path: path.to_owned(),
        error,
    })?;
    Ok(Zeroizing::new(text))
}

/// Opens a file that only its owner may use.
fn open_private(path: &Path) -> Result<File, KeyFileError> {
    let path = path.to_owned();
    windvane_files::open_private(&path, windvane_files::OF_OTHERS).map_err(|error| match error {
        PrivateError::Io(error) => KeyFileError::Read { path, error },
        PrivateError::Mode { mode } => KeyFileError::Open { path, mode },
        other @ (PrivateError::Owner { .. } | PrivateError::Replaceable(_)) => {
            KeyFileError::NotPrivate {
                path,
                reason: other.to_string(),
            }
        }
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
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
        let path = file(folder.path(), KEYSTORE, 0o600);
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
            let refused = keystore(&path, &SecretString::from("testpassword"));
            assert!(matches!(refused, Err(KeyFileError::Open { .. })));
        }
        let path = file(folder.path(), &format!("  {KEY}\n"), 0o600);
        assert_eq!(secret_file(&path).unwrap().expose_secret(), KEY);
        assert!(wallet_file(&path).is_ok());
    }

    #[test]
    fn a_keystore_that_is_too_dear_to_open_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let scrypt =
            r#""kdf":"scrypt","kdfparams":{"n":4194304,"r":8,"p":1,"dklen":32,"salt":"00"}"#;
        for (from, to, says) in [
            (
                "\"dklen\":32",
                "\"dklen\":4294967295",
                "dklen = 4294967295: it must be at most 64",
            ),
            (
                "\"c\":262144",
                "\"c\":4294967295",
                "c = 4294967295: it must be at most 10000000",
            ),
        ] {
            let path = file(folder.path(), &KEYSTORE.replace(from, to), 0o600);
            let password = SecretString::from("testpassword");
            let refused = keystore(&path, &password).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        let iv = "0".repeat(32);
        let dear = format!(r#"{{"crypto":{{"cipherparams":{{"iv":"{iv}"}},{scrypt}}}}}"#);
        assert!(
            check_cost(&dear)
                .unwrap_err()
                .contains("4294967296 bytes of memory")
        );
        let common = dear.replace("4194304", "262144");
        assert_eq!(check_cost(&common), Ok(()));
        for (from, to) in [
            ("32,", "31,"),
            ("\"0000", "\"00"),
            (":{\"n\"", ":[],\"x\":{\"n\""),
        ] {
            assert!(common.contains(from), "{from}");
            check_cost(&common.replace(from, to)).unwrap_err();
        }
    }

    #[test]
    fn pipes_devices_and_long_files_are_no_keys() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo")
            .args(["-m", "600"])
            .arg(&pipe)
            .status();
        assert!(made.unwrap().success());
        let password = SecretString::from("testpassword");
        for path in [&pipe, Path::new("/dev/zero")] {
            assert!(matches!(
                keystore(path, &password),
                Err(KeyFileError::Read { .. })
            ));
            let roots = crate::tls::roots_file(path).unwrap_err().to_string();
            assert!(roots.contains("only a regular file"), "{roots}");
        }
        assert!(
            secret_file(&pipe)
                .unwrap_err()
                .to_string()
                .contains("a pipe")
        );
        let long = file(folder.path(), &"x".repeat((64 << 10) + 1), 0o600);
        let refused = secret_file(&long).unwrap_err().to_string();
        assert!(refused.contains("at most 65536 bytes"), "{refused}");
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
