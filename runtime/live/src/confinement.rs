//! The confinement of the processes of a run by `windvane_sandbox`, and the rule for modules of a reload.
//!
//! The rule is for people too (`docs/operating.md#confinement`): a run may read the folder of its
//! configuration and the folders of its modules, with all their content. So a reload finds new modules
//! there, and nowhere else.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use windvane_build::BuildFolders;
use windvane_config::{Config, Mode, Secret, Strategy};
use windvane_journal::LockError;
use windvane_sandbox::{Confinement, InForce, Network};

use crate::cpu_latency::DEVICE;

/// Advice for an operator whose module is unreachable.
const MOVE_MODULE: &str = "put the module into the folder of the configuration or of a running module, or \
                           stop the instance and start it again; nothing was changed";

/// Folders of shared libraries, and of the program that loads them.
const LIBRARIES: [&str; 8] = [
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/nix/store",
    "/gnu/store",
];
/// Facts about the machine: addresses of hosts, time zones, processors, memory.
const FACTS: [&str; 9] = [
    "/etc",
    "/proc",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/usr/share/zoneinfo",
    "/usr/share/ca-certificates",
];

/// The files that a run uses besides its configuration.
#[derive(Clone, Debug, Default)]
pub struct RunFiles {
    /// Files that it reads at its start and at each reload: the configuration, and the addresses of a
    /// simulated venue.
    pub files: Vec<PathBuf>,
    /// The folder of its result files.
    pub out: Option<PathBuf>,
    /// Whether recordings are the market.
    pub plays: bool,
}

/// Confines this process to what a run needs, and logs what is in force. Does nothing if the
/// configuration does not want it. Call it before threads start.
///
/// # Errors
/// The data folder has a link in place of its journal that this run must not follow.
pub fn confine_run(config: &Config, files: &RunFiles) -> Result<(), LockError> {
    if !config.run.confine {
        tracing::warn!(
            "run.confine is false: a fault in the trading process could reach every file of its user. \
             Trading is not affected. Set run.confine = true, or give the run a user of its own"
        );
        return Ok(());
    }
    for folder in created(config, files) {
        // The step that uses the folder reports a failure.
        if files.out.as_ref() == Some(&folder) {
            let _ = std::fs::create_dir_all(folder);
        } else {
            // Native code in a folder that others may enter is not used.
            let _ = windvane_files::parents(&folder);
            let _ = windvane_files::folder(&folder);
            let _ = windvane_files::own_folder(&folder);
        }
    }
    let data_dir = &config.run.data_dir;
    let _ = windvane_files::parents(data_dir);
    let _ = windvane_files::folder(data_dir);
    // Later, this process could not see why it must not follow the link.
    let journal = windvane_journal::linked_journal(data_dir)?;
    report(&windvane_sandbox::confine(&of_run(config, files, journal)));
    Ok(())
}

/// Hides the memory of this process from other programs of its user, before it reads a key. A
/// protection that the system lacks is reported when the process is confined.
pub fn hide_memory() {
    let _ = windvane_sandbox::hide_memory();
}

/// Confines this process to what the watchdog of spot orders needs.
pub fn confine_watchdog(config: &Config) {
    if config.run.confine {
        report(&windvane_sandbox::confine(&of_watchdog(config)));
    }
}

fn report(in_force: &InForce) {
    tracing::info!(%in_force, "confined this process to what it needs");
    for missing in &in_force.missing {
        tracing::warn!(
            %missing,
            "a protection is not in force: a fault in this process could do more harm. Trading is not \
             affected. `windvane check` names what to do"
        );
    }
}

/// Folders that a run creates. The confinement can name only what exists.
fn created(config: &Config, files: &RunFiles) -> Vec<PathBuf> {
    // Builds have their toolchain there. The native code of a run is in its data folder: what other commands
    // execute must not be writable.
    let builds = paths(config).any(|module| module.is_dir());
    let cache = windvane_build::cache_folder().ok().filter(|_| builds);
    let mut folders: Vec<PathBuf> = cache.into_iter().collect();
    folders.extend(files.out.clone());
    if files.plays {
        folders.extend(config.backtest.cache.clone());
    }
    folders
}

/// `journal` is where the journal is if the data folder has a link in its place.
fn of_run(config: &Config, files: &RunFiles, journal: Option<PathBuf>) -> Confinement {
    let mut read: Vec<PathBuf> = FACTS.map(PathBuf::from).to_vec();
    let mut write = created(config, files);
    let mut execute: Vec<PathBuf> = LIBRARIES.map(PathBuf::from).to_vec();
    // The watchdog process is this program.
    execute.push(PathBuf::from("/proc/self/exe"));
    write.push(config.run.data_dir.clone());
    // It may be on another disk.
    write.extend(journal);
    // Name servers may be configured elsewhere.
    read.extend(folders_of(Path::new("/etc/resolv.conf")));
    // Folders of systemd: sockets of the service, and its secrets.
    write.extend(std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from));
    if config.run.keep_awake {
        write.push(PathBuf::from(DEVICE));
    }
    read.extend(files.files.iter().flat_map(|file| folders_of(file)));
    // The watchdog process reads them again.
    read.extend(secret_files(config));
    read.extend(config.venue.tls_roots.clone());
    let (sources, modules): (Vec<_>, Vec<_>) = paths(config).partition(|module| module.is_dir());
    let builds = !sources.is_empty();
    read.extend(modules.iter().flat_map(|module| folders_of(module)));
    if builds {
        // A build confines itself further.
        let build = BuildFolders::of(&sources);
        read.extend(build.read);
        write.extend(build.write);
        execute.extend(build.execute);
    }
    if files.plays {
        for recording in &config.backtest.data {
            let folders = folders_of(recording);
            match config.backtest.cache {
                // The decoded recording is written beside it.
                None => write.extend(folders),
                Some(_) => read.extend(folders),
            }
        }
    }
    Confinement {
        list: Vec::new(),
        read,
        write,
        execute,
        network: Network::Any,
        processes: true,
        shares_files: builds,
    }
}

/// The watchdog has read its configuration and its keys before.
fn of_watchdog(config: &Config) -> Confinement {
    Confinement {
        list: Vec::new(),
        read: FACTS.map(PathBuf::from).to_vec(),
        write: vec![config.run.data_dir.clone()],
        execute: Vec::new(),
        network: Network::Any,
        processes: false,
        shares_files: false,
    }
}

fn paths(config: &Config) -> impl Iterator<Item = PathBuf> {
    config
        .strategies
        .iter()
        .map(|strategy| strategy.module.clone())
}

/// The folder of a file, and that of the file which a link names.
fn folders_of(file: &Path) -> Vec<PathBuf> {
    let folder = |file: &Path| match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut folders = vec![folder(file)];
    folders.extend(file.canonicalize().ok().map(|file| folder(&file)));
    folders
}

/// The files and folders with secrets that the configuration names and that this process may read.
/// The signer process reads the keys of the account; it starts before the run is confined.
fn secret_files(config: &Config) -> Vec<PathBuf> {
    let (mut files, secrets) = if has_signer(config) {
        (Vec::new(), config.admin.token.iter().collect())
    } else {
        let keystores = config.keystores().into_iter().map(Path::to_owned).collect();
        (keystores, config.secrets())
    };
    for secret in secrets {
        match secret {
            Secret::File(file) => files.push(file.clone()),
            Secret::Credential(name) => {
                let folder = windvane_config::credentials_folder();
                files.extend(folder.map(|folder| folder.join(name)));
            }
            Secret::Env(_) | Secret::Descriptor(_) => {}
        }
    }
    files
}

/// The files with keys of the account that a confined run may read although the signer alone needs them:
/// those in folders that it must read for something else.
pub(crate) fn readable_keys(config: &Config, files: &RunFiles) -> Vec<PathBuf> {
    if !config.run.confine || !has_signer(config) {
        return Vec::new();
    }
    secrets_in(config, &of_run(config, files, None))
}

/// Logs which keys the trading process may read.
pub fn warn_of_readable_keys(config: &Config, files: &RunFiles) {
    for file in readable_keys(config, files) {
        tracing::warn!(
            file = %file.display(),
            "the trading process may read this key, although only the signer needs it: a fault in that \
             process could reveal it. Trading is not affected. Move the key out of /etc and of the \
             folders of the configuration and of modules"
        );
    }
}

/// The secrets of the account in the files and folders that may be used.
fn secrets_in(config: &Config, confinement: &Confinement) -> Vec<PathBuf> {
    let Confinement {
        read,
        write,
        execute,
        ..
    } = confinement;
    let real = |path: &PathBuf| path.canonicalize().ok();
    let folders = [read, write, execute].into_iter().flatten();
    let folders: Vec<PathBuf> = folders.filter_map(real).collect();
    let mut keys = config.secret_files();
    // The run needs this one.
    keys.retain(|file| !matches!(&config.admin.token, Some(Secret::File(token)) if token == file));
    keys.retain(|file| {
        let file = real(file);
        file.is_some_and(|file| folders.iter().any(|folder| file.starts_with(folder)))
    });
    keys
}

/// Whether a process of its own holds the keys of the account.
fn has_signer(config: &Config) -> bool {
    config.run.mode == Mode::Live && !config.signer.in_process
}

/// Refuses a changed configuration whose modules a confined run cannot reach: the error, and what to do.
pub(crate) fn unreachable_module(old: &Config, new: &Config) -> Option<(String, &'static str)> {
    if !old.run.confine {
        return None;
    }
    let builds = paths(old).any(|module| module.is_dir());
    new.strategies.iter().find_map(|strategy| {
        let Strategy { id, module, .. } = strategy;
        let (id, shown) = (id.as_str(), module.display());
        if module.is_dir() && !builds {
            let error = format!(
                "strategy {id}: {shown} is a source folder, but this run started with built modules only \
                 and is confined, so it cannot start a compiler"
            );
            return Some((error, "run windvane build, and name the .wasm file as module; nothing was changed"));
        }
        let opened = if module.is_dir() {
            std::fs::read_dir(module).map(drop)
        } else if module.is_file() {
            File::open(module).map(drop)
        } else {
            Ok(())
        };
        let refused = opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
        let error = format!("strategy {id}: this user, or this confined run, may not read module {shown}");
        refused.then_some((error, MOVE_MODULE))
    })
}

#[cfg(test)]
mod tests {
    use windvane_config::Overrides;

    use super::*;

    fn live(folder: &Path, key: &Path) -> Config {
        let text = format!(
            "[run]\nmode = \"live\"\ndata_dir = \"{}\"\n[account]\napi_secret = {{ file = \"{}\" }}\n",
            folder.join("data").display(),
            key.display()
        );
        Config::parse(&text, "test", &Overrides::default()).unwrap()
    }

    #[test]
    fn a_link_of_the_data_folder_gives_no_right() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["data", "home"] {
            windvane_files::folder(&at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("home"), at("data/other")).unwrap();
        let config = live(folder.path(), &at("key"));
        let write = of_run(&config, &RunFiles::default(), None).write;
        assert!(write.contains(&at("data")));
        assert!(!write.contains(&at("home").canonicalize().unwrap()));
    }

    #[test]
    fn keys_in_the_folder_of_the_configuration_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["etc", "keys"] {
            windvane_files::folder(&at(name)).unwrap();
            std::fs::write(at(name).join("key"), "x").unwrap();
        }
        let confinement = Confinement {
            read: vec![at("etc")],
            write: vec![at("missing")],
            ..Confinement::default()
        };
        let found = |key: &str| secrets_in(&live(folder.path(), &at(key)), &confinement);
        assert_eq!(found("etc/key"), [at("etc/key")]);
        assert!(found("keys/key").is_empty());
    }
}
