//! Identifies the owner of a data folder: a small file with the venue's hosts and the account of
//! its journal. If a folder is used with another account, its journal contains positions that this
//! account does not have. Only a person can say whether that is intended.
//!
//! The file contains no keys, only digests of them.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;

use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use windvane_client::Settings;
use windvane_model::Surface;
use windvane_protocol::sign::{Credentials, Wallet};

use windvane_session::venue_surface;

/// The file in the data folder.
const FILE: &str = "account";
/// The file has some hundred bytes.
const BYTES_MAX: u64 = 64 << 10;

/// The operator's choice if the folder belongs to another account.
pub const WHAT_TO_DO: &str = "`windvane resume` goes on with its positions and states; to begin \
                              without them, stop and name another run.data_dir";

/// The venue and the account of a live run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    /// The host of each traded surface. The port is left out, because it does not identify an
    /// account.
    hosts: BTreeMap<String, String>,
    /// A digest of the main wallet's address.
    user: Option<String>,
    /// A digest of the API key.
    api_key: Option<String>,
}

/// Digests that name an account. They contain no key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountDigests {
    user: Option<String>,
    api_key: Option<String>,
}

impl AccountDigests {
    /// The account of these keys.
    pub fn of(keys: &Credentials) -> Self {
        let wallet = keys.wallet.as_ref().map(Wallet::address);
        let user = keys.user.or(wallet).map(|user| user.to_string());
        let api_key = keys.api_key.as_ref().map(|key| key.key.expose_secret());
        Self {
            user: user.map(|user| digest("user", &user.to_lowercase())),
            api_key: api_key.map(|key| digest("api_key", key)),
        }
    }

    /// Whether both name the same account. With the same wallet, a new key is not a new account.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.user, &other.user) {
            (Some(one), Some(other)) => one == other,
            _ => self.api_key == other.api_key,
        }
    }
}

impl Identity {
    /// The identity of a client with these settings.
    pub fn of(settings: &Settings, surfaces: &[Surface]) -> Self {
        let host = |surface: &Surface| {
            let address = settings.addresses.rest_of(venue_surface(*surface))?;
            let host = address.host_str()?;
            Some((surface.as_str().to_owned(), host.to_owned()))
        };
        let hosts = surfaces.iter().filter_map(host).collect();
        let identity = Self {
            hosts,
            ..Self::default()
        };
        identity.with_account(&AccountDigests::of(&settings.credentials))
    }

    /// The identity with another account: that of the signer's keys.
    pub fn with_account(self, account: &AccountDigests) -> Self {
        let AccountDigests { user, api_key } = account.clone();
        Self {
            user,
            api_key,
            ..self
        }
    }

    /// A sentence that says how the data folder belongs to another account or venue; `None` if no
    /// difference is known.
    pub fn difference(&self, data_dir: &Path) -> Option<String> {
        match read(data_dir) {
            Ok(None) => None,
            Ok(Some(known)) => self.difference_to(&known),
            Err(error) => {
                let file = data_dir.join(FILE);
                let file = file.display();
                Some(format!(
                    "it is not known which account run.data_dir belongs to: {file} cannot be read: {error}"
                ))
            }
        }
    }

    fn difference_to(&self, known: &Self) -> Option<String> {
        let moved = self.hosts.iter().find_map(|(surface, host)| {
            let before = known.hosts.get(surface).filter(|before| *before != host)?;
            Some(format!(
                "run.data_dir belongs to another venue: its {surface} host was {before}, and is {host}"
            ))
        });
        moved.or_else(|| {
            let others = "run.data_dir belongs to another account";
            match (&self.user, &known.user, &self.api_key, &known.api_key) {
                // With the same wallet, a new key is not a new account.
                (Some(now), Some(before), ..) => {
                    (now != before).then(|| format!("{others}: account.user differs"))
                }
                (_, _, Some(now), Some(before)) => {
                    (now != before).then(|| format!("{others}: account.api_key differs"))
                }
                _ => None,
            }
        })
    }

    /// Saves this account as the owner of the folder, durably before it returns. Hosts of surfaces
    /// that are not traded now are kept.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let known = read(data_dir).ok().flatten();
        let mut next = self.clone();
        for (surface, host) in known.iter().flat_map(|known| &known.hosts) {
            let host = || host.clone();
            next.hosts.entry(surface.clone()).or_insert_with(host);
        }
        let file = data_dir.join(FILE);
        if known.as_ref() == Some(&next) {
            // A copied folder may have readable permissions, so restrict them again.
            return windvane_files::close(&file);
        }
        windvane_files::replace(&file, &serde_json::to_vec(&next)?)
    }
}

fn read(data_dir: &Path) -> io::Result<Option<Identity>> {
    match windvane_files::read_bounded(&data_dir.join(FILE), BYTES_MAX) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn digest(what: &str, text: &str) -> String {
    hex::encode(Sha256::digest(format!("windvane {what} {text}")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn identity(host: &str, user: Option<&str>, api_key: Option<&str>) -> Identity {
        Identity {
            hosts: BTreeMap::from([("futures".to_owned(), host.to_owned())]),
            user: user.map(|user| digest("user", user)),
            api_key: api_key.map(|key| digest("api_key", key)),
        }
    }

    #[test]
    fn a_pipe_as_the_file_of_the_account_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join(FILE))
            .status();
        assert!(made.unwrap().success());
        let own = identity("a.example", Some("0xuser"), None);
        let reason = own.difference(folder.path()).unwrap();
        assert!(reason.contains("cannot be read: is a pipe"), "{reason}");
    }

    #[test]
    fn the_file_identifies_the_account_and_contains_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let own = identity("a.example", Some("0xuser"), Some("secret-key"));
        assert_eq!(own.difference(folder.path()), None, "no owner yet");
        own.write(folder.path()).unwrap();
        let file = folder.path().join(FILE);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("secret-key") && !text.contains("0xuser"),
            "{text}"
        );

        let differs = |other: &Identity| other.difference(folder.path()).unwrap_or_default();
        assert_eq!(differs(&own), "");
        let moved = differs(&identity("b.example", Some("0xuser"), Some("secret-key")));
        assert!(moved.contains("futures host was a.example, and is b.example"));
        let renewed = identity("a.example", Some("0xuser"), Some("next-key"));
        assert_eq!(
            differs(&renewed),
            "",
            "a new key of the same wallet is no difference"
        );
        let other = differs(&identity("a.example", Some("0xother"), Some("secret-key")));
        assert!(other.contains("account.user differs"), "{other}");
        let other = differs(&identity("a.example", None, Some("next-key")));
        assert!(other.contains("account.api_key differs"), "{other}");

        let accepted = identity("b.example", None, Some("next-key"));
        accepted.write(folder.path()).unwrap();
        assert_eq!(differs(&accepted), "");
        fs::write(&file, "{").unwrap();
        assert!(differs(&accepted).contains("cannot be read"));
    }

    #[test]
    fn a_new_key_of_the_same_wallet_is_the_same_account_for_the_signer() {
        let digests = |user: Option<&str>, key: &str| AccountDigests {
            user: user.map(str::to_owned),
            api_key: Some(key.to_owned()),
        };
        let first = digests(Some("wallet"), "one");
        assert!(first.is_same(&digests(Some("wallet"), "two")));
        assert!(!first.is_same(&digests(Some("other"), "one")));
        // Without a wallet, the key names the account.
        let first = digests(None, "one");
        assert!(first.is_same(&digests(None, "one")));
        assert!(!first.is_same(&digests(None, "two")));
    }
}
