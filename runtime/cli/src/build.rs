//! `windvane build`.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, print_line};
use windvane_build::{self as build, BuildError};

#[derive(Debug, Args)]
pub(super) struct Build {
    /// Folder of the strategy, which contains its Cargo.toml
    dir: PathBuf,
    /// Print path, size and SHA-256 as JSON
    #[arg(long)]
    json: bool,
}

impl Build {
    pub(super) fn run(self) -> Result<(), Failure> {
        let built = build::build(&self.dir, &mut |step| eprintln!("{step}"));
        let built = built.map_err(|error| match error {
            BuildError::NoManifest(_) | BuildError::NoPackage(_) | BuildError::NotAModule(_) => {
                Failure::usage(error)
            }
            _ => Failure::failed(error),
        })?;
        if self.json {
            let answer = serde_json::json!({
                "path": built.path.display().to_string(),
                "bytes": built.bytes_len,
                "sha256": built.sha256,
                "compiler": built.compiler,
            });
            return print_line(&answer.to_string());
        }
        print_line(&format!(
            "{}\n{} bytes, SHA-256 {}",
            built.path.display(),
            built.bytes_len,
            built.sha256
        ))
    }
}
