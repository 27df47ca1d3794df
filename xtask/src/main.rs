//! Developer's tasks of this repository. Each task starts other programs, mostly cargo, and prints
//! the commands that it starts.
//!
//! ```sh
//! cargo xtask docs            # writes the generated pages
//! cargo xtask docs --check    # fails if one is not up to date
//! cargo xtask seeds --count 50
//! cargo xtask prove           # hours; `cargo xtask prove kills soak` for two of the proofs
//! cargo xtask bench
//! cargo xtask figures
//! cargo xtask sbom --out windvane.cdx.json
//! ```

mod bench;
mod figures;
mod fuzz;
mod lines;
mod manifest;
mod prove;
mod run;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use run::Cargo;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Developer's tasks of this repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Write the five generated pages: commands, configuration, routes, metrics, rules of intents
    Docs {
        /// Write nothing; exit code 1 and the first difference if a page is not up to date
        #[arg(long)]
        check: bool,
    },
    /// Run seeds of the simulator of faults
    Seeds {
        /// The first seed
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// Number of seeds
        #[arg(long, default_value_t = 50)]
        count: u64,
        /// Number of lives that run at the same time
        #[arg(long, default_value_t = 2)]
        jobs: usize,
        /// Simulated hours with faults, per seed
        #[arg(long, default_value = "1")]
        hours: String,
        /// Further arguments of the simulator, after `--`
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Run the long proofs
    Prove(prove::Prove),
    /// Run the criterion benchmarks and print their ratios to an earlier run
    Bench(bench::Bench),
    /// Print figures of the repository as a Markdown table
    Figures,
    /// Write the bill of materials of the program (CycloneDX, JSON): every crate that it is built
    /// from, with version, licence and checksum
    Sbom {
        /// The file; without it, the document goes to stdout
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Docs { check } => {
            let mut cargo = Cargo::new("run").package("windvane").arguments(["-q"]);
            cargo = cargo.arguments(["--example", "reference", "--"]);
            if check {
                cargo = cargo.arguments(["--check"]);
            }
            cargo.run()
        }
        Task::Seeds {
            from,
            count,
            jobs,
            hours,
            rest,
        } => {
            // The program builds the modules that it needs.
            let cargo = Cargo::new("run").package("faults");
            let (from, count, jobs) = (from.to_string(), count.to_string(), jobs.to_string());
            cargo
                .arguments(["--release", "--", "--from", &from, "--seeds", &count])
                .arguments(["--jobs", &jobs, "--hours", &hours])
                .arguments(rest.iter().map(String::as_str))
                .run()
        }
        Task::Prove(prove) => prove.run(),
        Task::Bench(bench) => bench.run(),
        Task::Figures => figures::print(),
        Task::Sbom { out } => write_sbom(out.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_sbom(out: Option<&Path>) -> Result<(), String> {
    let document = sbom::document(&root())?;
    let text = format!("{document:#}");
    match out {
        None => println!("{text}"),
        Some(file) => {
            let written = std::fs::write(file, text + "\n");
            written.map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

/// The root of the repository.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
