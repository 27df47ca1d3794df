//! The bearer token of the admin server. It is created once, kept in a file that only its owner can
//! read, compared in constant time, and never printed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq;

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
    /// The text is not a token.
    #[error(
        "{origin} must be {CHARS_MIN} or more visible ASCII characters without spaces; remove it, \
         and the next start creates a new one"
    )]
    Text {
        /// The source of the text. The text itself is never in the message.
        origin: String,
    },
    /// The operating system gave no random bytes.
    #[error("no random bytes for a token: {0}; try again, or write a token file yourself")]
    Random(String),
}

impl Token {
    /// Reads the token from the file, and creates the file if it is missing.
    pub fn read_or_create(path: &Path) -> Result<Self, TokenError> {
        match Self::read(path) {
            Err(TokenError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                Self::create(path)
            }
            read => read,
        }
    }

    /// Reads the token from the file.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |error| TokenError::File {
            path: path.to_owned(),
            error,
        };
        let file = File::open(path).map_err(failed)?;
        // The metadata of the open file, so that the file cannot be replaced in between.
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
        if mode & MODE_FORBIDDEN != 0 {
            let path = path.to_owned();
            return Err(TokenError::Mode { path, mode });
        }
        let mut text = String::new();
        let mut limited = file.take(FILE_BYTES_MAX);
        limited.read_to_string(&mut text).map_err(failed)?;
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

    fn create(path: &Path) -> Result<Self, TokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
        let token = Self(hex::encode(bytes));
        let written = windvane_files::replace(path, format!("{}\n", token.0).as_bytes());
        written.map_err(|error| TokenError::File {
            path: path.to_owned(),
            error,
        })?;
        Ok(token)
    }

    /// Whether this is the token. The time of the comparison shows only whether the length is
    /// right.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// The value of the `Authorization` header.
    pub(crate) fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn a_token_is_created_once_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        let made = Token::read_or_create(&path).unwrap();
        assert_eq!(made.0.len(), 64);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let again = Token::read_or_create(&path).unwrap();
        assert!(again.is(made.0.as_bytes()));
        let other = Token::read_or_create(&folder.path().join("other")).unwrap();
        assert!(!other.is(made.0.as_bytes()));
        assert!(!format!("{made:?}").contains(&made.0));
    }

    #[test]
    fn a_file_with_open_permissions_is_refused_with_a_fix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        Token::read_or_create(&path).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o644, 0o700, 0o610] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let refused = Token::read_or_create(&path).unwrap_err().to_string();
            assert!(refused.contains(&format!("{mode:04o}")), "{refused}");
            let mend = format!("chmod 600 {}", path.display());
            assert!(refused.contains(&mend), "{refused}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
        assert!(Token::read(&path).is_ok());
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
