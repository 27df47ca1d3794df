//! Runs the criterion benchmarks, and prints the ratio of each to an earlier run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;

use crate::manifest::Manifest;
use crate::run::Cargo;

/// Benchmarks that are programs of their own. They print their results themselves.
const NOT_CRITERION: &[&str] = &["latency"];

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Names of benchmark targets, such as `engine`; without one, all
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Save the results under this name, to compare later runs with them
    #[arg(long, value_name = "NAME", conflicts_with = "against")]
    save: Option<String>,
    /// Compare with the results saved under this name; without it, with the last run
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<(), String> {
        let begin = SystemTime::now();
        let mut count = 0;
        for (package, target) in self.chosen(targets()?)? {
            let cargo = Cargo::new("bench").package(&package);
            let mut cargo = cargo.arguments(["--bench", &target, "--", "--noplot"]);
            if let Some(name) = &self.save {
                cargo = cargo.arguments(["--save-baseline", name]);
            }
            if let Some(name) = &self.against {
                cargo = cargo.arguments(["--baseline", name]);
            }
            cargo.run()?;
            count += 1;
        }
        if count == 0 {
            return Err(format!(
                "no benchmark target is named {}",
                self.targets.join(" or ")
            ));
        }
        print(begin)
    }

    /// The chosen targets of criterion.
    fn chosen(&self, all: Vec<(String, String)>) -> Result<Vec<(String, String)>, String> {
        let (mut chosen, mut others) = (Vec::new(), Vec::new());
        for (package, target) in all {
            if NOT_CRITERION.contains(&target.as_str()) {
                others.push((package, target));
            } else if self.targets.is_empty() || self.targets.contains(&target) {
                chosen.push((package, target));
            }
        }
        let mut others = others.into_iter();
        match others.find(|(_, target)| self.targets.contains(target)) {
            Some((package, target)) => Err(format!(
                "the benchmark {target} is a program of its own: run it with `cargo bench -p \
                 {package} --bench {target}`"
            )),
            None => Ok(chosen),
        }
    }
}

/// Packages and their benchmark targets.
fn targets() -> Result<Vec<(String, String)>, String> {
    let mut targets = Vec::new();
    for manifest in Manifest::all(&crate::root())? {
        let benches = manifest.benches();
        targets.extend(benches.into_iter().map(|bench| (manifest.name(), bench)));
    }
    Ok(targets)
}

/// Prints the results that are newer than `begin`.
fn print(begin: SystemTime) -> Result<(), String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = target.unwrap_or_else(|| crate::root().join("target"));
    let folder = folder.join("criterion");
    let mut results = BTreeMap::new();
    collect(&folder, &folder, begin, &mut results);
    if results.is_empty() {
        return Err(format!("{} has no new result", folder.display()));
    }
    println!("| Benchmark | Mean | Before | Ratio |\n|---|---:|---:|---:|");
    for (name, (mean_ns, change)) in results {
        match change {
            Some(change) => {
                let ratio = 1.0 + change;
                let before = time(mean_ns / ratio);
                println!("| {name} | {} | {before} | {ratio:.2} |", time(mean_ns));
            }
            None => println!("| {name} | {} | - | - |", time(mean_ns)),
        }
    }
    Ok(())
}

fn collect(
    root: &Path,
    folder: &Path,
    begin: SystemTime,
    results: &mut BTreeMap<String, (f64, Option<f64>)>,
) {
    let is_new = |file: &Path| {
        let changed = std::fs::metadata(file).and_then(|meta| meta.modified());
        changed.is_ok_and(|changed| changed >= begin)
    };
    let estimates = folder.join("new/estimates.json");
    if is_new(&estimates) {
        if let Some(mean_ns) = mean(&estimates) {
            let change = folder.join("change/estimates.json");
            let change = is_new(&change).then(|| mean(&change)).flatten();
            let name = folder.strip_prefix(root).unwrap_or(folder);
            results.insert(name.display().to_string(), (mean_ns, change));
        }
        return;
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.path().is_dir()) {
        collect(root, &entry.path(), begin, results);
    }
}

/// The point estimate of the mean in criterion's file.
fn mean(file: &Path) -> Option<f64> {
    estimate(&std::fs::read_to_string(file).ok()?)
}

fn estimate(json: &str) -> Option<f64> {
    let (_, mean) = json.split_once("\"mean\":")?;
    let (_, value) = mean.split_once("\"point_estimate\":")?;
    let end = value.find([',', '}'])?;
    value[..end].trim().parse().ok()
}

fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.1} ns"),
        _ if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        _ if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_without_criterion_has_its_own_command() {
        let all = || {
            let of = |package: &str, target: &str| (package.to_owned(), target.to_owned());
            vec![of("engine", "engine"), of("windvane", "latency")]
        };
        let bench = |targets: &[&str]| Bench {
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
            save: None,
            against: None,
        };
        assert_eq!(bench(&[]).chosen(all()).unwrap().len(), 1);
        let error = bench(&["engine", "latency"]).chosen(all()).unwrap_err();
        assert!(error.ends_with("`cargo bench -p windvane --bench latency`"));
    }

    #[test]
    fn the_mean_is_read_from_estimates() {
        let json = r#"{"mean":{"confidence_interval":{"lower_bound":1.0,"upper_bound":2.0},
            "point_estimate":1.5,"standard_error":0.1},"median":{"point_estimate":9.0}}"#;
        assert_eq!(estimate(json), Some(1.5));
        assert_eq!(estimate("{}"), None);
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time(12.0), "12.0 ns");
        assert_eq!(time(1_250_000.0), "1.25 ms");
    }
}
