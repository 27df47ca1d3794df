//! The long proofs. The tests of the workspace run a short form of each.

use std::time::Instant;

use clap::{Args, ValueEnum};

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
}

impl Proof {
    fn command(self, prove: &Prove) -> Cargo {
        let release = |verb, package| Cargo::new(verb).package(package).arguments(["--release"]);
        let unattended = || {
            let cargo = release("run", "windvane-tests");
            cargo.arguments(["--example", "unattended", "--"])
        };
        let jobs = prove.jobs.to_string();
        match self {
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
        }
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
            let command = proof.command(self);
            if self.dry_run {
                println!("{}", command.typed());
                continue;
            }
            let begin = Instant::now();
            let result = command.run();
            let seconds = begin.elapsed().as_secs();
            let word = if result.is_ok() { "passed" } else { "FAILED" };
            eprintln!("{proof:?}: {word} after {seconds} s");
            failures.extend(result.err());
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
            dry_run: true,
        };
        let commands = Proof::value_variants().iter();
        let commands: Vec<_> = commands
            .map(|proof| proof.command(&prove).typed())
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
