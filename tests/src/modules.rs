//! The sample strategies as module files, built once. A start from the source folder would call the
//! compiler each time to check for changes.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::binary;

static BUILT: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// The built module of a folder in `strategies/`.
///
/// # Panics
/// If the strategy does not build.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn built(strategy: &str) -> PathBuf {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, file)) = built.iter().find(|(name, _)| name == strategy) {
        return file.clone();
    }
    let folder = format!("strategies/{strategy}");
    let printed = binary::succeed(["build", "--json", folder.as_str()]);
    let printed: Value = serde_json::from_str(&printed).expect("the build prints JSON");
    let file = PathBuf::from(printed["path"].as_str().expect("the output names the file"));
    let file = binary::root().join(file);
    built.push((strategy.to_owned(), file.clone()));
    file
}
