//! The bearer token of the admin server: made once, kept in a file that only its owner reads,
//! compared in constant time, never printed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq;

/// Random bytes of a token that we make.
const RANDOM_BYTES: usize = 32;
/// A token shorter than this could be guessed.
const CHARS_MIN: usize = 32;
/// A file that is larger holds no token.
const FILE_BYTES_MAX: u64 = 4096;
/// Everybody but the owner, and running it.
const MODE_FORBIDDEN: u32 = 0o177;

/// A bearer token. `Debug` hides it and there is no `Display`.
#[derive(Clone)]
pub struct Token(String);

/// A token that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or made.
    #[error("token file {path}: {error}; see that the folder is there and ours")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others may read or change it.
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
    /// It holds no token.
    #[error(
        "{origin} must be {CHARS_MIN} or more visible ASCII characters without spaces; \
         remove it to have a new one made at the next start"
    )]
    Text {
        /// Where it came from, never what it is.
        origin: String,
    },
    /// The operating system gave no random bytes.
    #[error("no random bytes for a token: {0}; try again, or write a token file yourself")]
    Random(String),
}

impl Token {
    /// The token in the file, which is made when it is missing.
    pub fn read_or_create(path: &Path) -> Result<Self, TokenError> {
        match Self::read(path) {
            Err(TokenError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                Self::create(path)
            }
            read => read,
        }
    }

    /// The token in the file.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |error| TokenError::File {
            path: path.to_owned(),
            error,
        };
        let file = File::open(path).map_err(failed)?;
        // Of the open file, so that nothing can be swapped in between.
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

    /// A token from elsewhere, such as an environment variable; `origin` names it in the error.
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

    /// Whether this is the token; the time it takes tells only whether the length is right.
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
    fn a_token_is_made_once_and_is_the_owners_alone() {
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
    fn a_file_that_others_could_use_is_refused_with_the_command_that_mends_it() {
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
    fn what_is_no_token_is_refused_and_not_repeated() {
        let long_with_space = format!("{} x", "a".repeat(40));
        for text in ["", "hunter2", long_with_space.as_str()] {
            let refused = Token::from_text(text, "variable X").unwrap_err();
            let message = refused.to_string();
            assert!(message.contains("variable X"));
            assert!(text.is_empty() || !message.contains(text));
        }
    }
}
