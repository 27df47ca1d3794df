//! The command line: commands, their arguments, output and exit codes.
//!
//! The binary `windvane` uses this crate. The fault simulator builds a changed binary from it. It
//! must not contain trading decisions: each command calls the crate that does the work.
//!
//! Results go to stdout. Logs, progress and errors go to stderr. Exit codes: 0 success, 1 failure,
//! 2 wrong usage or configuration, 3 not running, 4 verification failed.

mod backtest;
mod build;
mod call;
mod check;
mod child;
mod data;
mod demo;
mod deposit;
mod journal;
mod place;
mod playback;
mod printing;
mod progress;
pub mod reference;
mod replay;
mod routes;
mod run;
mod signer;
mod steer;
mod venue;
mod watch;
mod watchdog;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use windvane_protocol::Brand;
use windvane_protocol::route::{self, Route};

use windvane_config::{Config, ConfigError, Overrides};

/// Environment variable that sets the log filter, such as `debug` or `windvane=debug`.
const LOG_VARIABLE: &str = "WINDVANE_LOG";

#[derive(Debug, Parser)]
#[command(
    name = "windvane",
    version,
    about = "Runs automated trading strategies, unattended",
    after_help = "Exit codes: 0 success, 1 failure, 2 wrong usage or configuration, \
                  3 not running, 4 verification failed. WINDVANE_LOG=debug logs more."
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Generate a market session, run two sample strategies on it, and print the path of the report
    Demo(demo::Demo),
    /// Run strategies on recorded data, as fast as possible
    Backtest(backtest::Backtest),
    /// Build the folder of a strategy into a WebAssembly component
    Build(build::Build),
    /// Generate, list and verify recordings
    #[command(subcommand)]
    Data(data::Data),
    /// Print the venue's route table
    Routes(routes::Routes),
    /// Send a typed and signed request to any route of the venue
    Call(call::CallVerb),
    /// Print events of user streams and public streams as they arrive
    Watch(watch::Watch),
    /// Print the source-chain call that makes a deposit; it is not sent
    #[command(subcommand)]
    Deposit(deposit::Deposit),
    /// Run the simulated venue as a server on loopback
    Venue(venue::Venue),
    /// Run strategies on an account, unattended, until a signal stops it
    Run(run::Run),
    /// Run the preflight checks and suggest fixes
    Check(check::Check),
    /// Replay the journal of an instance, and compare the results with the records
    Replay(replay::Replay),
    /// Verify, export and prune the journal of an instance, or print its ledger
    #[command(subcommand)]
    Journal(journal::Journal),
    /// Show the state of a running instance
    Status(steer::Instance),
    /// Show orders that may be open in the account of a running instance, including orders of
    /// others
    Orders(steer::Instance),
    /// Show the positions of a running instance
    Positions(steer::Instance),
    /// Show the balances of a running instance
    Balances(steer::Instance),
    /// Show the strategies of a running instance
    Strategies(steer::Instance),
    /// Add no exposure until resume; cancels and reducing orders are still sent
    Pause(steer::Order),
    /// Clear a pause, a halt or a margin-call state; with --strategy, also the strategy's
    /// quarantine
    Resume(steer::Order),
    /// Cancel own orders and send none until resume, even after a restart
    Halt(steer::Stop),
    /// Halt, then close own positions
    Flatten(steer::Stop),
    /// Apply changed modules, parameters and limits, without a stop
    Reload(steer::Instance),
    /// The watchdog process for spot orders; `run` starts it
    #[command(hide = true)]
    Watchdog(watchdog::Watchdog),
    /// The process that holds the keys; `run` starts it
    #[command(hide = true)]
    Signer(signer::SignerVerb),
    /// Confines itself and becomes a program of a build; builds start it
    #[command(hide = true)]
    BuildStep(child::BuildStep),
    /// Compiles one module under limits; commands that load modules start it
    #[command(hide = true)]
    CompileModule(child::CompileModule),
}

/// Why a command failed, in one sentence.
#[derive(Debug)]
enum Failure {
    /// The arguments or the configuration are wrong: exit code 2.
    Usage(String),
    /// Anything else: exit code 1.
    Failed(String),
    /// No instance is running: exit code 3.
    NotRunning(String),
    /// A verification found a difference: exit code 4.
    Differs(String),
    /// A verification found no difference but is not conclusive: exit code 4.
    Unverified(String),
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
    printing::escape_panics();
    windvane_config::adopt_secrets();
    windvane_build::use_this_program();
    let arguments = Arguments::parse();
    let result = match arguments.verb {
        // The processes beside a run set up their own logs.
        Verb::Watchdog(watchdog) => watchdog.run(),
        Verb::Signer(signer) => signer.run(),
        verb => {
            log_to_stderr(&verb);
            verb.run()
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(sentence)) => {
            printing::ending("error", &sentence);
            ExitCode::from(2)
        }
        Err(Failure::Failed(sentence)) => {
            printing::ending("error", &sentence);
            ExitCode::FAILURE
        }
        Err(Failure::NotRunning(sentence)) => {
            printing::ending("error", &sentence);
            ExitCode::from(3)
        }
        Err(Failure::Differs(sentence)) => {
            printing::ending("differs", &sentence);
            ExitCode::from(4)
        }
        Err(Failure::Unverified(sentence)) => {
            printing::ending("not verified", &sentence);
            ExitCode::from(4)
        }
    }
}

impl Verb {
    fn run(self) -> Result<(), Failure> {
        use windvane_admin::{Command, Query};
        match self {
            Self::Demo(demo) => demo.run(),
            Self::Backtest(backtest) => backtest.run(),
            Self::Build(build) => build.run(),
            Self::Data(data) => data.run(),
            Self::Routes(routes) => routes.run(),
            Self::Call(call) => call.run(),
            Self::Watch(watch) => watch.run(),
            Self::Deposit(deposit) => deposit.run(),
            Self::Venue(venue) => venue.run(),
            Self::Run(run) => run.run(),
            Self::Check(check) => check.run(),
            Self::Replay(replay) => replay.run(),
            Self::Journal(journal) => journal.run(),
            Self::Status(instance) => instance.query(Query::Status),
            Self::Orders(instance) => instance.query(Query::Orders),
            Self::Positions(instance) => instance.query(Query::Positions),
            Self::Balances(instance) => instance.query(Query::Balances),
            Self::Strategies(instance) => instance.query(Query::Strategies),
            Self::Pause(order) => order.give(Command::Pause),
            Self::Resume(order) => order.give(Command::Resume),
            Self::Halt(order) => order.give(Command::Halt),
            Self::Flatten(order) => order.give(Command::Flatten),
            Self::Reload(instance) => instance.reload(),
            // `main` runs these two before this point.
            Self::Watchdog(watchdog) => watchdog.run(),
            Self::Signer(signer) => signer.run(),
            Self::BuildStep(step) => step.run(),
            Self::CompileModule(module) => module.run(),
        }
    }
}

/// `run` has no user who watches it, so it logs more than other commands.
fn log_to_stderr(verb: &Verb) {
    let usual = match verb {
        Verb::Run(_) => "info",
        _ => "warn",
    };
    log_to(usual, std::io::stderr);
}

fn log_to<W>(usual: &str, writer: W)
where
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let named = std::env::var(LOG_VARIABLE).ok();
    let named = named.filter(|directives| !directives.is_empty());
    let usual = || usual.parse::<Targets>().unwrap_or_default();
    let filter = named.and_then(|directives| directives.parse().ok());
    let registry = tracing_subscriber::registry();
    registry
        .with(filter.unwrap_or_else(usual))
        .with(log_layer(writer))
        .init();
}

/// Writes each event as one line. Text of strategies and of the venue is escaped and cut.
fn log_layer<S, W>(writer: W) -> impl tracing_subscriber::Layer<S>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + 'static,
{
    tracing_subscriber::fmt::layer()
        .fmt_fields(printing::EscapedFields)
        .with_writer(writer)
        .with_target(false)
        // A closed terminal must not end the program.
        .log_internal_errors(false)
}

/// Reads the configuration of a command, and erases its secrets from the environment of this process:
/// if there are any, the program starts again and this function does not return. Each command calls it
/// before it starts threads and before it reads stdin.
fn configuration(file: Option<&Path>, set: &[String]) -> Result<Config, Failure> {
    let config = read_configuration(file, set)?;
    erase_secrets(&config);
    Ok(config)
}

/// Reads a configuration file, or the defaults, and applies the environment and `--set`. It changes
/// nothing in this process.
fn read_configuration(file: Option<&Path>, set: &[String]) -> Result<Config, Failure> {
    let overrides = Overrides::from_process(set.to_vec());
    Ok(match file {
        Some(file) => Config::load(file, &overrides)?,
        None => Config::parse("", "no configuration", &overrides)?,
    })
}

/// Erases the configuration's secrets from the environment. The program starts again for it.
fn erase_secrets(config: &Config) {
    if let Err(error) = windvane_config::erase_secrets(config) {
        tracing::warn!(
            %error,
            "could not erase the secrets from the environment: other processes of this user can read them \
             there. Trading is not affected. Name a file or a credential as the source of each secret"
        );
    }
}

/// The route with this name. Names contain the brand.
fn route_named(name: &str, brand: &Brand) -> Result<&'static Route, Failure> {
    let spelled = |route: &&Route| brand.fill(route.name) == name;
    route::all().find(spelled).ok_or_else(|| {
        let names = route::all().map(|route| brand.fill(route.name));
        let near = names.max_by(|a, b| {
            let likeness = |other: &str| strsim::jaro_winkler(name, other);
            likeness(a).total_cmp(&likeness(b))
        });
        Failure::Usage(format!(
            "{name} is not a route; the most similar is {}; `windvane routes` lists all",
            near.unwrap_or_default()
        ))
    })
}

/// How long background threads may still run at the end of a command.
const LEFT_WITHIN: Duration = Duration::from_millis(500);

/// Runs a command's future to its end.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot start the async runtime: {error}")))?;
    let done = runtime.block_on(work);
    // An abandoned build or journal read must not delay the end of the program.
    runtime.shutdown_timeout(LEFT_WITHIN);
    Ok(done)
}

/// Completes when the process receives a signal to stop.
#[cfg(unix)]
async fn stop_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn stop_signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

#[cfg(test)]
mod tests;
