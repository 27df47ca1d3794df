//! The policy file: TOML, written by the operator, and readable but not writable by others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::Deserialize;
use windvane_protocol::route::{self, Surface};

use crate::policy::{Limits, Policy, Refused};

/// The largest policy file, bytes.
const BYTES_MAX: u64 = 1024 * 1024;
/// The permission to write for the group and for others.
const OTHERS_WRITE: u32 = 0o022;

/// A policy file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// The file cannot be read.
    #[error("cannot read the signer's policy {}: {error}; check the path", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// Not a regular file.
    #[error("the signer's policy {} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Others may write the file, so they could allow what the operator forbids.
    #[error(
        "the signer's policy {} has mode {mode:04o} and owner {owner}: only root or the user of the \
         run may own and write it; run chmod go-w on it",
        .file.display()
    )]
    Open {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The user id of its owner.
        owner: u32,
    },
    /// Others can put another file in its place.
    #[error("the signer's policy {}: {reason}", .file.display())]
    Replaceable {
        /// The file.
        file: PathBuf,
        /// The folder, its owner and its mode.
        reason: String,
    },
    /// The text is not a policy.
    #[error("the signer's policy {}: {reason}", .file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    /// Missing: the routes that a run needs.
    routes: Option<Vec<String>>,
    opening_orders_per_minute: u32,
    symbol: Vec<SymbolTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SymbolTable {
    name: String,
    max_quantity: Option<String>,
    max_notional: Option<String>,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// The file cannot be read, others may write it, or its content is wrong.
    pub fn load(path: &Path) -> Result<Self, PolicyFileError> {
        let text = read(path)?;
        Self::parse(&text).map_err(|reason| PolicyFileError::Content {
            file: path.to_owned(),
            reason,
        })
    }

    /// Reads the text of a policy file.
    ///
    /// # Errors
    /// What is wrong, with the key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: PolicyFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let symbols: Result<Vec<_>, String> = file.symbol.iter().map(symbol).collect();
        let policy = Self::new(symbols?, Some(file.opening_orders_per_minute));
        let Some(names) = file.routes else {
            return Ok(policy);
        };
        let routes = names.iter().map(|name| {
            let unknown =
                || format!("routes: {name:?} is not a route; `windvane routes` lists all");
            route::named(name).ok_or_else(unknown)
        });
        let routes: Vec<_> = routes.collect::<Result<_, _>>()?;
        let checked = policy.with_routes(routes);
        checked.map_err(|error: Refused| error.to_string())
    }
}

fn symbol(table: &SymbolTable) -> Result<((Surface, String), Limits), String> {
    let name = &table.name;
    let wrong = || format!("symbol.name = {name:?}: must be such as \"futures:BTCUSDT\"");
    let (surface, symbol) = name.split_once(':').ok_or_else(wrong)?;
    let surface = match surface {
        "spot" => Surface::Spot,
        "futures" => Surface::Futures,
        _ => return Err(wrong()),
    };
    if symbol.is_empty() {
        return Err(wrong());
    }
    let limit = |key: &str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let limit = Decimal::from_str(text)
            .ok()
            .filter(|limit| *limit > Decimal::ZERO);
        let wrong = || format!("{name}: {key} = {text:?}: must be a decimal over 0, as text");
        limit.ok_or_else(wrong).map(Some)
    };
    let limits = Limits {
        max_quantity: limit("max_quantity", &table.max_quantity)?,
        max_notional: limit("max_notional", &table.max_notional)?,
        allow_unpriced: false,
    };
    if limits.max_quantity.is_none() && limits.max_notional.is_none() {
        return Err(format!("{name}: set max_quantity, max_notional or both"));
    }
    Ok(((surface, symbol.to_owned()), limits))
}

/// Reads the file. The checks use the open file, so that it cannot be replaced meanwhile.
fn read(path: &Path) -> Result<String, PolicyFileError> {
    let fail = |error: std::io::Error| PolicyFileError::Read {
        file: path.to_owned(),
        error,
    };
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(fail)?.is_file() {
        return Err(PolicyFileError::NotAFile(path.to_owned()));
    }
    let file = windvane_files::open_regular(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if !metadata.is_file() {
        return Err(PolicyFileError::NotAFile(path.to_owned()));
    }
    let own = fs::metadata("/proc/self").map(|own| own.uid()).ok();
    let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
    let is_trusted = owner == 0 || own.is_none_or(|own| own == owner);
    if mode & OTHERS_WRITE != 0 || !is_trusted {
        return Err(PolicyFileError::Open {
            file: path.to_owned(),
            mode,
            owner,
        });
    }
    windvane_files::require_place(path).map_err(|error| PolicyFileError::Replaceable {
        file: path.to_owned(),
        reason: error.to_string(),
    })?;
    // A policy that is cut could allow more than the whole one.
    windvane_files::read_open_text(file, BYTES_MAX).map_err(fail)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const FILE: &str = "opening_orders_per_minute = 2\n[[symbol]]\nname = \"futures:BTCUSDT\"\n\
                        max_quantity = \"0.5\"\n";

    #[test]
    fn a_policy_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        fs::write(&path, FILE).unwrap();
        let with = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Policy::load(&path).map(|_| ())
        };
        for mode in [0o600, 0o644, 0o400] {
            with(mode).unwrap();
        }
        for mode in [0o666, 0o620, 0o602] {
            assert!(matches!(with(mode), Err(PolicyFileError::Open { .. })));
        }
        let refused = Policy::load(folder.path()).unwrap_err();
        assert!(matches!(refused, PolicyFileError::NotAFile(_)));
    }

    #[test]
    fn a_policy_beyond_the_limit_is_refused_and_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        fs::write(&path, format!("{FILE}{}", "\n".repeat(1 << 20))).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let refused = Policy::load(&path).unwrap_err().to_string();
        assert!(refused.contains("at most 1048576 bytes"), "{refused}");
    }

    #[test]
    fn a_policy_that_others_can_replace_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        fs::write(&path, FILE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for (mode, is_accepted) in [
            (0o755, true),
            (0o777, false),
            (0o707, false),
            (0o1777, true),
        ] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let loaded = Policy::load(&path);
            assert_eq!(loaded.is_ok(), is_accepted, "{mode:o}: {loaded:?}");
        }
    }

    #[test]
    fn a_wrong_policy_names_its_key() {
        let refused = |from: &str, to: &str| Policy::parse(&FILE.replace(from, to)).unwrap_err();
        for (from, to, word) in [
            ("futures:", "future:", "symbol.name"),
            ("0.5", "-1", "max_quantity"),
            ("max_quantity = \"0.5\"", "", "max_notional or both"),
            (
                "opening_orders_per_minute = 2",
                "",
                "opening_orders_per_minute",
            ),
            ("max_quantity", "quantity", "quantity"),
        ] {
            let text = refused(from, to);
            assert!(text.contains(word), "{text}");
        }
        for route in [
            "spot.withdraw",
            "futures.wallet_transfer",
            "futures.approve_agent",
        ] {
            let text = format!("routes = [{route:?}]\n{FILE}");
            let text = Policy::parse(&text).unwrap_err();
            assert!(text.contains(route) && text.contains("never"), "{text}");
        }
        assert!(Policy::parse(FILE).is_ok());
    }
}
