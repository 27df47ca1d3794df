//! `windvane build`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use super::printing::{note, print_json, print_line};
use windvane_build::{self as build, BuildError, BuildRules};

#[derive(Debug, Args)]
pub(super) struct Build {
    /// Folder of the strategy, which contains its Cargo.toml
    dir: PathBuf,
    /// Also write the component to this file, for `module` in a configuration
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print path, size and SHA-256 as JSON
    #[arg(long)]
    json: bool,
}

impl Build {
    pub(super) fn run(self) -> Result<(), Failure> {
        let built = build::build(&self.dir, &BuildRules::default(), &mut |step| note(step));
        let built = built.map_err(|error| match error {
            BuildError::NoManifest(_) | BuildError::NoPackage(_) | BuildError::NotAModule(_) => {
                Failure::usage(error)
            }
            _ => Failure::failed(error),
        })?;
        if let Some(out) = &self.out {
            write(out, &built.component)?;
        }
        let path = self.out.as_deref().unwrap_or(&built.path).display();
        if self.json {
            let answer = serde_json::json!({
                "path": path.to_string(),
                "bytes": built.bytes_len,
                "sha256": built.sha256,
                "compiler": built.compiler,
            });
            return print_json(&answer.to_string());
        }
        print_line(&path.to_string())?;
        print_line(&format!(
            "{} bytes, SHA-256 {}",
            built.bytes_len, built.sha256
        ))
    }
}

/// Writes the file whole: a run that reads it meanwhile sees the old one or the new one.
fn write(out: &Path, component: &[u8]) -> Result<(), Failure> {
    let failed = |error: BuildError| Failure::failed(error);
    build::write_whole(out, component).map_err(failed)
}
