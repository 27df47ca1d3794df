//! What every program of a build may use of the system, of the toolchain and of cargo's home.

use std::path::{Path, PathBuf};

use super::folders::{linked_toolchains, rustup_home};
use super::sources::{lists, values};
use super::{BuildError, cache};
use crate::confinement::real_path;

/// Programs and libraries of the system.
const SYSTEM: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];
/// Facts that a linker, a C library and a compiler read.
const FACTS: [&str; 20] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/debian_version",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/vm/overcommit_memory",
    // The process that becomes cargo. Processes that it starts are not among them.
    "/proc/self",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];
/// What a program with a network reads: names of hosts, and certificates.
const NETWORK: [&str; 15] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/gitconfig",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/var/lib/ca-certificates",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
];
/// Programs that make a folder of `PATH` one of a toolchain.
const TOOLS: [&str; 9] = [
    "cargo", "rustc", "rustup", "cc", "gcc", "clang", "rust-lld", "wasm-ld", "lld",
];

/// Longer settings of cargo are not searched for paths.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// Facts about the machine.
pub(super) fn facts() -> Vec<PathBuf> {
    let mut facts = FACTS.map(PathBuf::from).to_vec();
    // Libraries of a compiler that is installed elsewhere.
    facts.extend(folders_in("LD_LIBRARY_PATH").filter(|folder| !holds_home(folder)));
    facts
}

/// What a program with a network needs in addition.
pub(super) fn network() -> Vec<PathBuf> {
    let mut read = NETWORK.map(PathBuf::from).to_vec();
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR", "CARGO_HTTP_CAINFO"];
    read.extend(named.into_iter().filter_map(variable));
    if let Some(home) = variable("HOME") {
        // Single files: git may keep passwords beside them. Git does not see
        // the variable that moves this folder.
        let names = ["config", "ignore", "attributes"];
        let settings = names.map(|name| home.join(".config/git").join(name));
        read.push(home.join(".gitconfig"));
        read.extend(settings);
    }
    read
}

/// Programs and libraries of the system and of the compilers.
pub(super) fn programs() -> Vec<PathBuf> {
    let mut programs = SYSTEM.map(PathBuf::from).to_vec();
    programs.extend(rustup_home());
    programs.extend(linked_toolchains());
    programs.extend(cache::toolchains().ok().map(|folder| real_path(&folder)));
    for folder in folders_in("PATH") {
        for tool in TOOLS {
            // A link may lead to the folder of a compiler.
            if let Ok(real) = folder.join(tool).canonicalize() {
                programs.push(real.clone());
                programs.extend(installation(&real));
            }
        }
    }
    let named = ["CC", "CXX", "AR"].map(std::env::var_os);
    for named in named.into_iter().flatten().map(PathBuf::from) {
        // An absolute path stays as it is.
        let found = folders_in("PATH").map(|folder| folder.join(&named));
        let found = found.filter_map(|program| program.canonicalize().ok());
        if let Some(program) = found.into_iter().find(|program| program.is_file()) {
            programs.extend(installation(&program));
            programs.push(program);
        }
    }
    programs
}

/// The folders of an installed compiler, beside one of its programs in `bin`. The compiler starts the other
/// programs of its folder.
fn installation(program: &Path) -> Vec<PathBuf> {
    let Some(bin) = program.parent().filter(|folder| folder.ends_with("bin")) else {
        return Vec::new();
    };
    let Some(prefix) = bin.parent() else {
        return Vec::new();
    };
    let beside = ["lib", "lib64", "libexec"].map(|name| prefix.join(name));
    let mut folders = vec![bin.to_owned()];
    folders.extend(beside.into_iter().filter(|folder| folder.is_dir()));
    folders
}

fn folders_in(variable: &str) -> impl Iterator<Item = PathBuf> {
    let value = std::env::var_os(variable).unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&value).collect();
    folders.into_iter().filter(|folder| folder.is_absolute())
}

/// Whether the home folder of the user is in this folder.
pub(super) fn holds_home(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").map(|home| real_path(Path::new(&home)));
    home.is_some_and(|home| home.starts_with(real_path(folder)))
}

/// Cargo's home folder. A build may use some of its entries.
pub(super) struct CargoHome<'a>(pub(super) &'a Path);

impl CargoHome<'_> {
    /// Installed programs, those of rustup among them.
    pub(super) fn programs(&self) -> PathBuf {
        self.0.join("bin")
    }

    /// The user's settings of cargo, and the files that it locks.
    pub(super) fn settings(&self) -> Vec<PathBuf> {
        let names = [
            "config",
            "config.toml",
            "registry",
            "git",
            ".package-cache",
            ".package-cache-mutate",
            ".global-cache",
        ];
        names.map(|name| self.0.join(name)).to_vec()
    }

    /// The paths that the user's own settings of cargo name in addition: certificates, folders of packages in
    /// place of a registry, and packages in place of others. Settings in the sources cannot add paths.
    pub(super) fn named_in_settings(&self) -> Vec<PathBuf> {
        let files = ["config", "config.toml"].map(|name| self.0.join(name));
        let texts = files.map(|file| {
            windvane_files::read_text_bounded(&file, SETTINGS_BYTES_MAX).unwrap_or_default()
        });
        // A relative path begins at the folder of cargo's home.
        let above = self.0.parent().unwrap_or(self.0);
        let named = texts.iter().flat_map(|text| named_paths(text));
        let paths = named.map(|path| real_path(&above.join(path)));
        paths.filter(|path| !holds_home(path)).collect()
    }

    /// Access tokens of registries.
    pub(super) fn credentials(&self) -> Vec<PathBuf> {
        ["credentials", "credentials.toml"]
            .map(|name| self.0.join(name))
            .to_vec()
    }

    /// The folders of downloaded packages.
    pub(super) fn downloads(&self) -> Vec<PathBuf> {
        ["registry", "git"].map(|name| self.0.join(name)).to_vec()
    }

    /// What a download writes. What does not exist is created, because the download may not do that.
    pub(super) fn make_downloads(&self) -> Vec<PathBuf> {
        let mut paths = self.downloads();
        for folder in &paths {
            // Cargo reports what it cannot use.
            let _ = std::fs::create_dir_all(folder);
        }
        for name in [".package-cache", ".package-cache-mutate", ".global-cache"] {
            let path = self.0.join(name);
            let _ = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(&path);
            paths.push(path);
        }
        paths
    }
}

/// The paths in settings of cargo that a build reads.
fn named_paths(settings: &str) -> Vec<&str> {
    let single = ["directory", "local-registry", "cainfo"];
    let mut paths: Vec<_> = single
        .into_iter()
        .flat_map(|key| values(settings, key))
        .collect();
    paths.extend(lists(settings, "paths"));
    paths
}

/// Refuses settings of cargo with an access token: every program of a build must read these settings.
pub(super) fn check_settings(settings: &[PathBuf]) -> Result<(), BuildError> {
    for path in settings {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if has_token(&text) {
            return Err(BuildError::TokenInSettings(path.clone()));
        }
    }
    Ok(())
}

/// Whether a key of these settings is a token, also in an inline table.
fn has_token(settings: &str) -> bool {
    let parts = settings.split(['\n', '{', ',']);
    let keys = parts.filter_map(|part| part.split_once('=').map(|(key, _)| key.trim()));
    let mut names = keys.map(|key| {
        key.rsplit('.')
            .next()
            .unwrap_or(key)
            .trim_matches(['"', '\''])
    });
    names.any(|name| name == "token" || name == "secret-key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_in_settings_of_cargo_are_found() {
        for text in [
            "[registry]\ntoken = \"x\"",
            "[registries]\nmine = { index = \"a\", token = \"x\" }",
            "registries.mine.token=\"x\"",
            "[registry]\n secret-key = \"x\"",
        ] {
            assert!(has_token(text), "{text}");
        }
        assert!(!has_token("[http]\ncainfo = \"a\"\n# no token here"));
    }

    #[test]
    fn paths_in_settings_of_cargo_are_found() {
        let text = "paths = [\"/a\", '/b']\n[source.x]\ndirectory = \"/c\"\n\
                    local-registry = '/d'\n[http]\ncainfo = \"/e\"\n[build]\ntarget-dir = \"/f\"\n";
        assert_eq!(named_paths(text), ["/c", "/d", "/e", "/a", "/b"]);
    }

    #[test]
    fn a_build_may_not_read_the_credentials_of_cargo() {
        let home = CargoHome(Path::new("/home/me/.cargo"));
        let mut usable = home.settings();
        usable.extend(home.downloads());
        usable.push(home.programs());
        for file in home.credentials() {
            assert!(!usable.iter().any(|path| file.starts_with(path)));
        }
    }
}
