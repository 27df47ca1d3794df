//! Deletes old data: journal segments by size and age. It keeps the modules that a kept
//! segment needs for its replay.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use windvane_journal::{Directory, ExportError, Keep, Pruned};

use crate::memory;
use windvane_build::modules;
use windvane_config::Journal;
use windvane_replay::ledger;
use windvane_session::Checkpoint;

/// The data that the journal keeps, by the configuration.
pub fn keep(of: &Journal) -> Keep {
    Keep {
        bytes: of.retain_bytes,
        age: Duration::from_secs(of.retain_days.saturating_mul(24 * 3_600)),
        market_age: Duration::from_secs(of.retain_market_days.saturating_mul(24 * 3_600)),
    }
}

static PRUNING: Mutex<()> = Mutex::new(());

/// Why modules are not deleted.
#[derive(Debug, thiserror::Error)]
enum Undropped {
    #[error(transparent)]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Segment(#[from] ExportError),
    #[error("the checkpoint of segment {0:08x} cannot be read")]
    Checkpoint(u32),
}

/// Brings the ledger up to date, then deletes old market data, old segments, and the modules that
/// only those segments needed. Modules in `running` stay.
pub fn prune(directory: &Directory, keep: Keep, running: &[[u8; 32]]) {
    // Two calls at once would enter a segment into the ledger twice.
    let _one = PRUNING.lock().unwrap_or_else(PoisonError::into_inner);
    drop_old(directory, keep, running);
    // Reading a whole segment leaves much unused memory.
    memory::give_back();
}

fn drop_old(directory: &Directory, keep: Keep, running: &[[u8; 32]]) {
    if let Err(error) = ledger::update(directory) {
        tracing::warn!(%error, "could not bring the ledger up to date: no old segment is deleted \
                                and the journal keeps growing; check the data folder's disk");
        return;
    }
    match directory.prune(keep, SystemTime::now()) {
        Ok(pruned) if pruned.segments.is_empty() => {
            log_market_pruned(&pruned);
            return;
        }
        Ok(pruned) => {
            log_market_pruned(&pruned);
            let segments = pruned.segments.len();
            tracing::info!(
                segments,
                bytes = pruned.bytes,
                "deleted old segments of the journal"
            );
        }
        Err(error) => {
            tracing::warn!(%error, "could not delete old segments of the journal: it keeps \
                                    growing; check the data folder's disk");
            return;
        }
    }
    match prune_modules(directory, running) {
        Ok(0) => {}
        Ok(modules) => tracing::info!(modules, "deleted modules that no segment names"),
        Err(error) => {
            tracing::warn!(%error, "could not delete old modules; they stay in the data folder");
        }
    }
}

fn log_market_pruned(pruned: &Pruned) {
    if !pruned.markets.is_empty() {
        let (segments, bytes) = (pruned.markets.len(), pruned.market_bytes);
        tracing::info!(segments, bytes, "deleted market data of old segments");
    }
}

/// Deletes each kept module that no checkpoint names. A module that was saved after the start of
/// the oldest segment stays, because a reload may have used it between two checkpoints.
fn prune_modules(directory: &Directory, running: &[[u8; 32]]) -> Result<usize, Undropped> {
    let data_dir = directory.path();
    let Some(oldest) = directory.oldest_started()? else {
        return Ok(0);
    };
    let mut unneeded: BTreeSet<[u8; 32]> = modules::all_kept(data_dir)?
        .into_iter()
        .filter(|(sha256, kept)| *kept < oldest && !running.contains(sha256))
        .map(|(sha256, _)| sha256)
        .collect();
    let segments = windvane_journal::segments(data_dir)?;
    // The last segment is still being written. Its modules are running, or earlier segments name
    // them.
    let (_, written) = segments.split_last().unwrap_or((&0, &[]));
    for number in written {
        if unneeded.is_empty() {
            return Ok(0);
        }
        for sha256 in named(data_dir, *number)? {
            unneeded.remove(&sha256);
        }
    }
    let mut deleted = 0;
    for sha256 in &unneeded {
        deleted += usize::from(modules::drop_kept(data_dir, sha256, oldest)?);
    }
    Ok(deleted)
}

/// The modules in the checkpoint of a segment.
fn named(data_dir: &Path, number: u32) -> Result<Vec<[u8; 32]>, Undropped> {
    let segment = windvane_journal::segment(data_dir, number)?;
    let checkpoint =
        Checkpoint::from_bytes(&segment.checkpoint).ok_or(Undropped::Checkpoint(number))?;
    let strategies = checkpoint.strategies.iter();
    Ok(strategies.map(|strategy| strategy.sha256).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::time::Duration;

    use sha2::{Digest, Sha256};
    use windvane_engine::ENGINE_RULES;
    use windvane_journal::{Options, open};

    use super::*;
    use windvane_session::Made;

    use windvane_build::modules::{keep_module, kept};
    use windvane_session::checkpoint::SavedStrategy;

    /// Starts a segment whose checkpoint names a module that was saved an hour before.
    fn segment(directory: &Arc<Directory>, module: &[u8]) -> [u8; 32] {
        let sha256: [u8; 32] = Sha256::digest(module).into();
        kept_before(directory, module);
        let checkpoint = Checkpoint {
            version: String::new(),
            engine: Vec::new(),
            strategies: vec![SavedStrategy {
                name: "x".to_owned(),
                sha256,
                state: None,
                made: Made::default(),
            }],
            paper: None,
            engine_rules: ENGINE_RULES,
        };
        let (ready, recovered) = open(Arc::clone(directory)).unwrap();
        let listener = Arc::new(|_| {});
        let options = Options::default();
        let journal = ready.begin(&checkpoint.to_bytes(), recovered.next, &options, listener);
        journal.unwrap().close().unwrap();
        sha256
    }

    fn kept_before(directory: &Directory, module: &[u8]) -> [u8; 32] {
        let sha256: [u8; 32] = Sha256::digest(module).into();
        let file = keep_module(directory.path(), &sha256, module).unwrap();
        let before = SystemTime::now() - Duration::from_hours(1);
        let file = File::options().write(true).open(file).unwrap();
        file.set_modified(before).unwrap();
        sha256
    }

    #[test]
    fn a_module_is_deleted_with_the_last_segment_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::lock(folder.path()).unwrap());
        let [a, b, c, d] = [b"a", b"b", b"c", b"d"].map(|module| segment(&directory, module));
        let young: [u8; 32] = Sha256::digest(b"young").into();
        keep_module(directory.path(), &young, b"young").unwrap();
        let running = kept_before(&directory, b"running");
        let all = [a, b, c, d, young, running];
        let left = || all.map(|sha256| kept(folder.path(), &sha256).is_ok());

        let keep_all = Keep {
            bytes: u64::MAX,
            age: Duration::MAX,
            market_age: Duration::MAX,
        };
        prune(&directory, keep_all, &[running, d]);
        assert_eq!(left(), [true; 6], "nothing was deleted");
        let keep_little = Keep {
            bytes: 0,
            ..keep_all
        };
        prune(&directory, keep_little, &[running, d]);
        assert_eq!(left(), [false, false, true, true, true, true]);
    }
}
