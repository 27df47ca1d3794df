//! The command line: verbs, their arguments, what they print and how they end. Decides nothing
//! about trading; every verb is a call into the room that does the work.
//!
//! Results go to stdout; logs, progress and errors to stderr. Exit codes: 0 done, 1 failed,
//! 2 usage or configuration.

mod backtest;
mod build;
mod data;
mod demo;
mod progress;
mod show;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::ConfigError;

/// Environment variable that chooses what is logged, such as `debug` or `windvane=debug`.
const LOG_VARIABLE: &str = "WINDVANE_LOG";

#[derive(Debug, Parser)]
#[command(
    name = "windvane",
    version,
    about = "Runs automated trading strategies, unattended",
    after_help = "Exit codes: 0 done, 1 failed, 2 usage or configuration. \
                  WINDVANE_LOG=debug logs more."
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Generate a session, run two sample strategies on it, and say where the report lies
    Demo(demo::Demo),
    /// Play recorded data through strategies, as fast as it goes
    Backtest(backtest::Backtest),
    /// Build a strategy's folder into a WebAssembly component
    Build(build::Build),
    /// Generate, list and verify recordings
    #[command(subcommand)]
    Data(data::Data),
}

/// Why a verb did not do its work: one sentence.
#[derive(Debug)]
enum Failure {
    /// The arguments or the configuration are at fault: exit code 2.
    Usage(String),
    /// Anything else: exit code 1.
    Failed(String),
}

impl Failure {
    fn usage(error: impl std::fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr();
    let result = match arguments.verb {
        Verb::Demo(demo) => demo.run(),
        Verb::Backtest(backtest) => backtest.run(),
        Verb::Build(build) => build.run(),
        Verb::Data(data) => data.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(sentence)) => {
            eprintln!("error: {sentence}");
            ExitCode::from(2)
        }
        Err(Failure::Failed(sentence)) => {
            eprintln!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .init();
}

/// Writes a line to stdout; a reader that went away ends the program quietly.
fn print_line(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write};
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
