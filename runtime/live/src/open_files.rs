//! Configuration and module files that other users may change. Their content decides what a run
//! trades. `check` and a start warn of them and go on.

use std::fmt;
use std::path::PathBuf;

use windvane_config::Config;
use windvane_files::PrivateError;

/// A file that other users may change or replace.
#[derive(Debug)]
pub(crate) struct OpenFile {
    path: PathBuf,
    reason: PrivateError,
}

impl fmt::Display for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// These files, and the modules of a configuration, that other users may change or replace. A file
/// that cannot be found is reported where it is read.
pub(crate) fn open_files(config: &Config, files: &[PathBuf]) -> Vec<OpenFile> {
    let modules = config.strategies.iter().map(|strategy| &strategy.module);
    let mut paths: Vec<_> = files.iter().chain(modules).cloned().collect();
    paths.sort_unstable();
    paths.dedup();
    let open = paths.into_iter().filter_map(|path| {
        let reason = windvane_files::require_unchangeable(&path).err()?;
        let is_known = !matches!(reason, PrivateError::Io(_));
        is_known.then_some(OpenFile { path, reason })
    });
    open.collect()
}

/// Logs which of these files, and of the modules, other users may change or replace.
pub fn warn_of_open_files(config: &Config, files: &[PathBuf]) {
    let open = open_files(config, files);
    if open.is_empty() {
        return;
    }
    let open: Vec<_> = open.iter().map(ToString::to_string).collect();
    tracing::warn!(
        files = %open.join("; "),
        "other users may change the configuration or a module: they could decide what the next start or \
         reload trades. This start goes on. Run `chmod go-w` on these files, and keep them in \
         folders that only root and this user may change"
    );
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use windvane_config::Overrides;

    use super::*;

    #[test]
    fn files_that_others_may_change_are_named_with_their_mode() {
        let folder = tempfile::tempdir().unwrap();
        let [file, module] = ["live.toml", "a.wasm"].map(|name| folder.path().join(name));
        let text = format!(
            "[[strategy]]\nid = \"a\"\nmodule = \"{}\"\ninstruments = [\"futures:BTCUSDT\"]\n",
            module.display()
        );
        let config = Config::parse(&text, "test", &Overrides::default()).unwrap();
        let named = || {
            let open = open_files(&config, std::slice::from_ref(&file));
            open.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(named().is_empty(), "no file exists yet");
        for path in [&file, &module] {
            fs::write(path, "x").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        assert!(named().is_empty());
        for path in [&file, &module] {
            fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
            let [line] = named().try_into().unwrap();
            let begin = format!("{}: it has mode 0666", path.display());
            assert!(line.starts_with(&begin), "{line}");
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
    }
}
