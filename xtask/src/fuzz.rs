//! Runs the fuzz targets of `runtime/protocol/fuzz` with the compiler of the repository. The
//! instrumentation is made of stable compiler flags, so neither a nightly compiler nor `cargo-fuzz`
//! is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::Cargo;

/// The workspace of the targets.
const FOLDER: &str = "runtime/protocol/fuzz";
/// Counters for each branch, comparisons of constants, and a table of the counters, for libFuzzer.
/// They are the flags of `cargo fuzz run -s none`.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
];

/// The commands that run each target for some seconds. Inputs that a run finds go to the target
/// folder and not into the repository.
pub(crate) fn commands(seconds: u64) -> Result<Vec<Cargo>, String> {
    let host = host()?;
    let manifest = format!("{FOLDER}/Cargo.toml");
    let mut commands = Vec::new();
    for target in targets()? {
        let found = format!("{FOLDER}/target/found/{target}");
        let artifacts = format!("{FOLDER}/artifacts/{target}/");
        for folder in [&found, &artifacts] {
            let made = std::fs::create_dir_all(crate::root().join(folder));
            made.map_err(|error| format!("{folder}: {error}"))?;
        }
        // With `--target`, the flags do not reach build scripts and macros.
        let cargo = Cargo::new("run").arguments(["--manifest-path", &manifest]);
        let cargo = cargo.arguments(["--release", "--target", &host, "--bin", &target, "--"]);
        let cargo = cargo
            .arguments([format!("-max_total_time={seconds}").as_str()])
            // Longer than any input needs; an endless loop is a failure.
            .arguments(["-timeout=20", "-max_len=65536"])
            .arguments([format!("-artifact_prefix={artifacts}").as_str()])
            .arguments([found.as_str(), &format!("{FOLDER}/corpus/{target}")]);
        commands.push(cargo.variable("RUSTFLAGS", &FLAGS.join(" ")));
    }
    Ok(commands)
}

/// The names of the targets: the files in `fuzz_targets`.
fn targets() -> Result<Vec<String>, String> {
    let folder = crate::root().join(FOLDER).join("fuzz_targets");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(&folder).map_err(failed)?;
    let files: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let files = files.map_err(failed)?;
    let names = files.iter().filter_map(|file| file.file_stem());
    let mut names: Vec<_> = names.map(|name| name.display().to_string()).collect();
    names.sort();
    Ok(names)
}

/// The name of this machine's target, as the compiler states it.
fn host() -> Result<String, String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&compiler)
        .current_dir(crate::root())
        .arg("-vV")
        .output();
    let name = Path::new(&compiler).display();
    let output = output.map_err(|error| format!("cannot run {name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| format!("{name} -vV states no host"))?;
    Ok(host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_a_corpus_and_is_in_the_manifest() {
        let folder = crate::root().join(FOLDER);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() >= 6, "{targets:?}");
        for target in targets {
            assert!(manifest.contains(&format!("name = \"{target}\"\n")));
            assert!(readme.contains(&format!("| `{target}` |")), "{target}");
            let seeds = std::fs::read_dir(folder.join("corpus").join(&target));
            assert!(seeds.unwrap().count() > 0, "{target} has no seeds");
        }
    }

    #[test]
    fn a_target_runs_with_the_lock_file_and_stable_flags() {
        let typed = commands(60).unwrap()[0].typed();
        assert!(typed.starts_with("RUSTFLAGS=--cfg=fuzzing -Cpasses"));
        assert!(typed.contains(" cargo run --locked --manifest-path "));
        assert!(!typed.contains(" -Z") && typed.contains(" -max_total_time=60 "));
    }
}
