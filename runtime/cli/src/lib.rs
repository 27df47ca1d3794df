//! The command line: verbs, their arguments, what they print and how they end. Decides nothing
//! about trading; every verb is a call into the room that does the work.
//!
//! Results go to stdout; logs, progress and errors to stderr. Exit codes: 0 done, 1 failed,
//! 2 usage or configuration, 3 not running, 4 verification differs.

mod backtest;
mod build;
mod call;
mod check;
mod data;
mod demo;
mod deposit;
mod journal;
mod place;
mod playback;
mod progress;
mod replay;
mod routes;
mod run;
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

/// Environment variable that chooses what is logged, such as `debug` or `windvane=debug`.
const LOG_VARIABLE: &str = "WINDVANE_LOG";

#[derive(Debug, Parser)]
#[command(
    name = "windvane",
    version,
    about = "Runs automated trading strategies, unattended",
    after_help = "Exit codes: 0 done, 1 failed, 2 usage or configuration, \
                  3 not running, 4 verification differs. WINDVANE_LOG=debug logs more."
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
    /// Print the route table of the venue
    Routes(routes::Routes),
    /// Send any route of the venue, typed and signed
    Call(call::CallVerb),
    /// Print the events of the user streams and of public streams as they come
    Watch(watch::Watch),
    /// Print the call on the source chain that makes a deposit; nothing is sent
    #[command(subcommand)]
    Deposit(deposit::Deposit),
    /// Run the simulated venue as a server on loopback
    Venue(venue::Venue),
    /// Run strategies on an account, unattended, until a signal ends it
    Run(run::Run),
    /// Look at everything that a run needs, and say go or what to mend
    Check(check::Check),
    /// Play the journal of an instance again, and compare
    Replay(replay::Replay),
    /// Verify, export and prune the journal of an instance
    #[command(subcommand)]
    Journal(journal::Journal),
    /// Ask a running instance how it is
    Status(steer::Instance),
    /// Ask a running instance for orders that may be live, its own and those of others
    Orders(steer::Instance),
    /// Ask a running instance for positions
    Positions(steer::Instance),
    /// Ask a running instance for balances
    Balances(steer::Instance),
    /// Ask a running instance for its strategies
    Strategies(steer::Instance),
    /// No new exposure; cancels and reducing orders pass
    Pause(steer::Order),
    /// End a pause, a halt or the doubt after a margin call; of a strategy, its quarantine too
    Resume(steer::Order),
    /// Cancel own orders and send none, across restarts, until resumed
    Halt(steer::Order),
    /// Halt, then close own positions
    Flatten(steer::Order),
    /// Load changed modules, parameters and limits, without a stop
    Reload(steer::Instance),
    /// The watchdog process of spot orders, which `run` starts
    #[command(hide = true)]
    Watchdog(watchdog::Watchdog),
}

/// Why a verb did not do its work: one sentence.
#[derive(Debug)]
enum Failure {
    /// The arguments or the configuration are at fault: exit code 2.
    Usage(String),
    /// Anything else: exit code 1.
    Failed(String),
    /// Nobody is there to be asked: exit code 3.
    NotRunning(String),
    /// A verification found a difference: exit code 4.
    Differs(String),
    /// A verification found no difference, and yet proves nothing: exit code 4.
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
    let arguments = Arguments::parse();
    let result = if let Verb::Watchdog(watchdog) = arguments.verb {
        watchdog.run()
    } else {
        log_to_stderr(&arguments.verb);
        arguments.verb.run()
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
        Err(Failure::NotRunning(sentence)) => {
            eprintln!("error: {sentence}");
            ExitCode::from(3)
        }
        Err(Failure::Differs(sentence)) => {
            eprintln!("differs: {sentence}");
            ExitCode::from(4)
        }
        Err(Failure::Unverified(sentence)) => {
            eprintln!("not verified: {sentence}");
            ExitCode::from(4)
        }
    }
}

impl Verb {
    fn run(self) -> Result<(), Failure> {
        use windvane_admin::{Command, Question};
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
            Self::Status(instance) => instance.ask(Question::Status),
            Self::Orders(instance) => instance.ask(Question::Orders),
            Self::Positions(instance) => instance.ask(Question::Positions),
            Self::Balances(instance) => instance.ask(Question::Balances),
            Self::Strategies(instance) => instance.ask(Question::Strategies),
            Self::Pause(order) => order.give(Command::Pause),
            Self::Resume(order) => order.give(Command::Resume),
            Self::Halt(order) => order.give(Command::Halt),
            Self::Flatten(order) => order.give(Command::Flatten),
            Self::Reload(instance) => instance.reload(),
            // It logs in a way of its own, and was run already.
            Self::Watchdog(watchdog) => watchdog.run(),
        }
    }
}

/// What runs unattended says more of itself than what somebody waits for.
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
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(usual));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_target(false)
        // A terminal that is gone is no reason to end.
        .log_internal_errors(false)
        .init();
}

/// A configuration file, or the defaults, under the environment and `--set`.
fn configuration(file: Option<&Path>, set: &[String]) -> Result<Config, Failure> {
    let overrides = Overrides::from_process(set.to_vec());
    Ok(match file {
        Some(file) => Config::load(file, &overrides)?,
        None => Config::parse("", "no configuration", &overrides)?,
    })
}

/// The route of this name, spelled with the brand.
fn route_named(name: &str, brand: &Brand) -> Result<&'static Route, Failure> {
    let spelled = |route: &&Route| brand.fill(route.name) == name;
    route::all().find(spelled).ok_or_else(|| {
        let names = route::all().map(|route| brand.fill(route.name));
        let near = names.max_by(|a, b| {
            let likeness = |other: &str| strsim::jaro_winkler(name, other);
            likeness(a).total_cmp(&likeness(b))
        });
        Failure::Usage(format!(
            "no route has the name {name}; the nearest is {}; `windvane routes` lists all",
            near.unwrap_or_default()
        ))
    })
}

/// What still runs on other threads when all is done may end within this.
const LEFT_WITHIN: Duration = Duration::from_millis(500);

/// Runs a future of a verb to its end.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("no runtime: {error}")))?;
    let done = runtime.block_on(work);
    // A build or a read of the journal that was given up must not hold the end up.
    runtime.shutdown_timeout(LEFT_WITHIN);
    Ok(done)
}

/// Comes when the process is asked to end.
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

/// Writes a line to stdout; a reader that went away ends the program quietly.
fn print_line(text: &str) -> Result<(), Failure> {
    has_reader_for(text).map(|_| ())
}

/// [`print_line`] for verbs that go on until they are stopped: `false` once nobody reads any more.
fn has_reader_for(text: &str) -> Result<bool, Failure> {
    use std::io::{ErrorKind, Write};
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Failed(format!("cannot write to stdout: {error}"))),
    }
}

#[cfg(test)]
mod tests;
