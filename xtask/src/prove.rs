//! The long proofs. The tests of the workspace run a short form of each.

use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::fuzz;
use crate::run::Cargo;

#[derive(Debug, Args)]
pub(crate) struct Prove {
    /// The proofs to run; without one, all of them, one after the other
    #[arg(value_enum, value_name = "PROOF")]
    proofs: Vec<Proof>,
    /// Number of lives that the simulator runs at the same time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Simulated hours of each seed of `seeds`
    #[arg(long, default_value = "1")]
    hours: String,
    /// Seconds of each fuzz target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Print the commands only
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Proof {
    /// Seeds 1 to 2,000 of the simulator of faults; no rule may break
    Seeds,
    /// The hunt of the planted bugs; each must be found
    Bugs,
    /// 200 kills of a run at random moments
    Kills,
    /// 20 minutes of a run with faults of every kind
    Unattended,
    /// 30 minutes of a fast market
    Soak,
    /// Each fuzz target, for `--seconds`
    Fuzz,
}

impl Proof {
    /// The commands of the proof. All of them must succeed.
    fn commands(self, prove: &Prove) -> Result<Vec<Cargo>, String> {
        let release = |verb, package| Cargo::new(verb).package(package).arguments(["--release"]);
        let unattended = || {
            let cargo = release("run", "windvane-tests");
            cargo.arguments(["--example", "unattended", "--"])
        };
        let jobs = prove.jobs.to_string();
        Ok(vec![match self {
            Self::Fuzz => return fuzz::commands(prove.seconds),
            Self::Seeds => release("run", "faults")
                .arguments(["--", "--from", "1", "--seeds", "2000", "--hours"])
                .arguments([prove.hours.as_str(), "--jobs", &jobs]),
            Self::Bugs => release("run", "faults")
                .arguments(["--features", "planted", "--", "--bugs", "--seeds", "500"])
                .arguments(["--hours", "0.2", "--jobs", &jobs]),
            Self::Kills => release("test", "windvane-tests")
                .arguments(["--test", "process", "kills", "--", "--nocapture"])
                .variable("WINDVANE_KILLS", "200"),
            Self::Unattended => unattended().arguments(["--minutes", "20", "--seed", "1"]),
            Self::Soak => unattended().arguments(["--minutes", "30", "--calm", "--rate", "2800"]),
        }])
    }
}

impl Prove {
    /// Runs all chosen proofs, also after one that failed.
    pub(crate) fn run(&self) -> Result<(), String> {
        let chosen = match self.proofs.as_slice() {
            [] => Proof::value_variants(),
            chosen => chosen,
        };
        let mut failures = Vec::new();
        for proof in chosen {
            let commands = proof.commands(self)?;
            if self.dry_run {
                for command in &commands {
                    println!("{}", command.typed());
                }
                continue;
            }
            let begin = Instant::now();
            let results = commands.iter().map(Cargo::run);
            let failed: Vec<_> = results.filter_map(Result::err).collect();
            let seconds = begin.elapsed().as_secs();
            let word = if failed.is_empty() {
                "passed"
            } else {
                "FAILED"
            };
            eprintln!("{proof:?}: {word} after {seconds} s");
            failures.extend(failed);
        }
        if failures.is_empty() {
            Ok(())
        } else {
            Err(failures.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proof_is_a_command() {
        let prove = Prove {
            proofs: Vec::new(),
            jobs: 2,
            hours: "1".to_owned(),
            seconds: 60,
            dry_run: true,
        };
        let commands = Proof::value_variants().iter();
        let commands: Vec<_> = commands
            .flat_map(|proof| proof.commands(&prove).unwrap())
            .map(|command| command.typed())
            .collect();
        assert_eq!(
            commands[0],
            "cargo run --locked -p faults --release -- --from 1 --seeds 2000 --hours 1 --jobs 2"
        );
        assert!(
            commands[2].starts_with("WINDVANE_KILLS=200 cargo test --locked"),
            "{commands:?}"
        );
    }
}
