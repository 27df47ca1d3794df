//! The sample strategies as files, built once: a start from their folders asks the compiler each
//! time whether something changed.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::binary;

static BUILT: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// The module of a folder of `strategies/`.
///
/// # Panics
/// It does not build.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn built(strategy: &str) -> PathBuf {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, file)) = built.iter().find(|(name, _)| name == strategy) {
        return file.clone();
    }
    let folder = format!("strategies/{strategy}");
    let said = binary::succeed(["build", "--json", folder.as_str()]);
    let said: Value = serde_json::from_str(&said).expect("it prints JSON");
    let file = PathBuf::from(said["path"].as_str().expect("it names the file"));
    let file = binary::root().join(file);
    built.push((strategy.to_owned(), file.clone()));
    file
}
