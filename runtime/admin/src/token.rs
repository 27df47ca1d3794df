//! The token of the admin server's TCP address. It is configured, or made at each start. It is kept
//! in a file that only its owner can read, compared in constant time, and never printed.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use windvane_files::{PrivateError, open_private};

/// The number of random bytes in a new token.
const RANDOM_BYTES: usize = 32;
/// A shorter token could be guessed.
const CHARS_MIN: usize = 32;
/// A larger file does not contain a token.
const FILE_BYTES_MAX: u64 = 4096;
/// Permission bits that must not be set: all for others, and execution for the owner.
const MODE_FORBIDDEN: u32 = 0o177;

/// A bearer token. `Debug` hides it and there is no `Display`.
#[derive(Clone)]
pub struct Token(String);

/// Why a token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or created.
    #[error("token file {path}: {error}; check that the folder exists and belongs to this user")]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Other users may read or change the file.
    #[error(
        "token file {path} has mode {mode:04o}, others could use it; \
         run: chmod 600 {path}"
    )]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file belongs to another user, or is not a regular file.
    #[error("token file {path}: {reason}")]
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The text is not a token.
    #[error(
        "{origin} must be {CHARS_MIN} or more visible ASCII characters without spaces; correct it, \
         or remove it from the configuration: then each start makes a new one"
    )]
    Text {
        /// The source of the text. The text itself is never in the message.
        origin: String,
    },
    /// The operating system gave no random bytes.
    #[error("no random bytes for a token: {0}; try again, or set admin.token")]
    Random(String),
}

impl Token {
    /// Makes a new token and writes it to the file, which is replaced.
    ///
    /// # Errors
    /// The system gave no random bytes, or the file cannot be written.
    pub fn create(path: &Path) -> Result<Self, TokenError> {
        let token = Self(hex::encode(random::<RANDOM_BYTES>()?));
        let written = windvane_files::replace(path, format!("{}\n", token.0).as_bytes());
        written.map_err(|error| TokenError::File {
            path: path.to_owned(),
            error,
        })?;
        Ok(token)
    }

    /// Reads the token from the file.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |error| TokenError::File {
            path: path.to_owned(),
            error,
        };
        let file = open_private(path, MODE_FORBIDDEN).map_err(|error| {
            let path = path.to_owned();
            match error {
                PrivateError::Io(error) => TokenError::File { path, error },
                PrivateError::Mode { mode } => TokenError::Mode { path, mode },
                other @ (PrivateError::Owner { .. } | PrivateError::Replaceable(_)) => {
                    TokenError::NotPrivate {
                        path,
                        reason: other.to_string(),
                    }
                }
            }
        })?;
        let mut text = String::new();
        let mut limited = file.take(FILE_BYTES_MAX + 1);
        limited.read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let reason = format!("it has more than {FILE_BYTES_MAX} bytes");
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        Self::from_text(text.trim(), &format!("token file {}", path.display()))
    }

    /// A token from elsewhere, for example an environment variable. Errors name it by `origin`.
    pub fn from_text(text: &str, origin: &str) -> Result<Self, TokenError> {
        let long = text.len() >= CHARS_MIN;
        if long && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        Err(TokenError::Text {
            origin: origin.to_owned(),
        })
    }

    /// Whether this is the token. The time of the comparison shows only whether the length is
    /// right.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// HMAC-SHA256 of these parts with the token as the key. Each part is preceded by its length, so
    /// that two lists of parts never give the same bytes.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        mac(self.0.as_bytes(), parts)
    }

    /// Whether `given`, in hex, is [`mac`](Self::mac) of the parts. The comparison takes constant
    /// time.
    pub(crate) fn verifies(&self, parts: &[&[u8]], given: &[u8]) -> bool {
        hex::decode(given).is_ok_and(|given| self.mac(parts).ct_eq(&given).into())
    }
}

/// HMAC-SHA256 of parts, each preceded by its length in eight bytes.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // The key of HMAC has any length, so this never fails.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Random bytes of the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], TokenError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
    Ok(bytes)
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_start_makes_a_new_token_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        let made = Token::create(&path).unwrap();
        assert_eq!(made.0.len(), 64);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert!(Token::read(&path).unwrap().is(made.0.as_bytes()));
        let next = Token::create(&path).unwrap();
        assert!(!next.is(made.0.as_bytes()));
        assert!(!format!("{made:?}").contains(&made.0));
    }

    #[test]
    fn a_token_beyond_the_limit_is_refused_and_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        fs::write(&path, vec![b'x'; 4097]).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let refused = Token::read(&path).unwrap_err().to_string();
        assert!(refused.contains("more than 4096 bytes"), "{refused}");
    }

    #[test]
    fn a_file_with_open_permissions_is_refused_with_a_fix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        Token::create(&path).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o644, 0o700, 0o610] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let refused = Token::read(&path).unwrap_err().to_string();
            assert!(refused.contains(&format!("{mode:04o}")), "{refused}");
            let mend = format!("chmod 600 {}", path.display());
            assert!(refused.contains(&mend), "{refused}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
        assert!(Token::read(&path).is_ok());
    }

    #[test]
    fn parts_of_a_mac_cannot_be_shifted() {
        let token = Token::from_text(&"t".repeat(32), "test").unwrap();
        let tag = hex::encode(token.mac(&[b"ab", b"c"]));
        assert!(token.verifies(&[b"ab", b"c"], tag.as_bytes()));
        for parts in [
            &[b"a".as_slice(), b"bc"][..],
            &[b"abc"],
            &[b"ab", b"c", b""],
        ] {
            assert!(!token.verifies(parts, tag.as_bytes()));
        }
        assert!(!token.verifies(&[b"ab", b"c"], b"no hex"));
        assert!(!token.verifies(&[b"ab", b"c"], &tag.as_bytes()[..62]));
    }

    #[test]
    fn an_invalid_token_is_refused_and_not_printed() {
        let long_with_space = format!("{} x", "a".repeat(40));
        for text in ["", "hunter2", long_with_space.as_str()] {
            let refused = Token::from_text(text, "variable X").unwrap_err();
            let message = refused.to_string();
            assert!(message.contains("variable X"));
            assert!(text.is_empty() || !message.contains(text));
        }
    }
}
