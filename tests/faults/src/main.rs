//! `faults`: runs lives of the runtime with faults, seed after seed.
//!
//! ```text
//! cargo run -p faults --release -- --seeds 2000 --hours 1
//! cargo run -p faults --release -- --seed 17 --hours 1 --log seed17.txt
//! ```

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use faults::fault_plan::{Choice, Kind};
use faults::life::{self, Options, Result as Life};
use faults::modules::Modules;
use faults::open_points::Points;
use faults::tally::Tally;

/// Runs lives of the runtime with faults, in virtual time.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of seeds, starting with --from.
    #[arg(long, default_value_t = 50)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Only this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Simulated hours with faults, per seed.
    #[arg(long, default_value = "1")]
    hours: f64,
    /// Number of lives that run at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only these kinds of faults.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Without these kinds of faults.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Without any faults.
    #[arg(long)]
    calm: bool,
    /// Values of open points (docs/open-points.md) for every seed, such as flat-position=listed;
    /// each seed draws the other points.
    #[arg(long, value_delimiter = ',')]
    choices: Vec<String>,
    /// Draws no open point: the venue follows the strict reading of the documents.
    #[arg(long)]
    strict: bool,
    /// Continues after a broken rule.
    #[arg(long)]
    keep_going: bool,
    /// Writes a line `SEED HASH` for each seed to this file.
    #[arg(long)]
    hashes: Option<PathBuf>,
    /// With --seed: writes everything that the witness saw to this file.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Uses modules that are already built: a folder with `market_maker.wasm`, `ema_cross.wasm`,
    /// `greedy.wasm` and `quoter.wasm`.
    #[arg(long)]
    modules: Option<PathBuf>,
    /// Plants this bug (needs the feature `planted`).
    #[arg(long)]
    bug: Option<String>,
    /// Searches for every planted bug (a mistake built in on purpose), or only for the one of
    /// --bug, in up to --seeds seeds each; fails if the rules do not find a bug.
    #[arg(long)]
    bugs: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs all seeds; returns whether no rule was broken.
fn run(arguments: &Arguments) -> Result<bool, String> {
    plant(arguments.bug.as_deref())?;
    let options = Options {
        choice: choice(arguments)?,
        faults_ms: (arguments.hours * 3_600_000.0) as i64,
        keep_all: arguments.log.is_some() && arguments.seed.is_some(),
        rules: &[],
    };
    let modules = match &arguments.modules {
        Some(dir) => Modules::read(dir),
        None => Modules::build(),
    };
    let modules = modules.map_err(|error| error.to_string())?;
    if arguments.bugs {
        return hunt(arguments, &modules, &options);
    }
    let (first, count) = match arguments.seed {
        Some(seed) => (seed, 1),
        None => (arguments.from, arguments.seeds),
    };
    let next = AtomicU64::new(first);
    let stop = AtomicBool::new(false);
    let lives: Mutex<Vec<Life>> = Mutex::default();
    let failure: Mutex<Option<String>> = Mutex::default();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    match life::lead(seed, &modules, &options) {
                        Ok(life) => {
                            let broken = life.broken.is_some();
                            let mut all = lives
                                .lock()
                                .unwrap_or_else(std::sync::PoisonError::into_inner);
                            if broken {
                                report(&life, arguments);
                                stop.fetch_or(!arguments.keep_going, Ordering::Relaxed);
                            }
                            all.push(life);
                            progress(all.len() as u64, count, began);
                        }
                        Err(error) => {
                            *failure
                                .lock()
                                .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
    {
        return Err(error);
    }
    let mut lives = lives
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    lives.sort_by_key(|life| life.seed);
    finish(&lives, arguments, began)
}

fn choice(arguments: &Arguments) -> Result<Choice, String> {
    let kinds = |names: &[String]| -> Result<Vec<Kind>, String> {
        let known = || Kind::ALL.map(|(_, name)| name).join(", ");
        let kind = |name: &String| {
            Kind::named(name)
                .ok_or_else(|| format!("unknown kind of fault {name}; use one of {}", known()))
        };
        names.iter().map(kind).collect()
    };
    Ok(Choice {
        only: kinds(&arguments.only)?,
        without: kinds(&arguments.without)?,
        none: arguments.calm,
        points: Points::new(&arguments.choices, arguments.strict)?,
    })
}

/// Hunts every planted bug; returns whether each was found.
#[cfg(feature = "planted")]
fn hunt(arguments: &Arguments, modules: &Modules, options: &Options) -> Result<bool, String> {
    use windvane_model::planted::Planted;
    let began = Instant::now();
    let mut missed = Vec::new();
    let named = arguments.bug.as_deref();
    let named = |bug: &&Planted| named.is_none_or(|name| bug.name() == name);
    let bugs: Vec<_> = Planted::ALL.iter().filter(named).collect();
    for bug in &bugs {
        let found = faults::hunt::hunt(**bug, arguments.seeds, arguments.jobs, modules, options)?;
        if let Some(found) = found {
            println!(
                "{:26} seed {:3}  {}: {}",
                bug.name(),
                found.seed,
                found.broken.rule,
                found.broken.how
            );
        } else {
            println!("{:26} NOT FOUND  ({})", bug.name(), bug.about());
            missed.push(bug.name());
        }
    }
    println!(
        "{} of {} planted bugs found within {} seeds, {:.0} s",
        bugs.len() - missed.len(),
        bugs.len(),
        arguments.seeds,
        began.elapsed().as_secs_f64()
    );
    Ok(missed.is_empty())
}

#[cfg(not(feature = "planted"))]
fn hunt(_: &Arguments, _: &Modules, _: &Options) -> Result<bool, String> {
    Err("--bugs needs the feature: cargo run -p faults --features planted".to_owned())
}

#[cfg(feature = "planted")]
fn plant(bug: Option<&str>) -> Result<(), String> {
    use windvane_model::planted::{Planted, plant};
    let bug = bug.map(str::parse::<Planted>).transpose();
    plant(bug.map_err(|error| error.to_string())?);
    Ok(())
}

#[cfg(not(feature = "planted"))]
fn plant(bug: Option<&str>) -> Result<(), String> {
    match bug {
        Some(_) => {
            Err("--bug needs the feature: cargo run -p faults --features planted".to_owned())
        }
        None => Ok(()),
    }
}

/// Prints the broken rule, the entries before it, and the command that repeats the life.
fn report(life: &Life, arguments: &Arguments) {
    let Some(broken) = &life.broken else { return };
    eprintln!(
        "\nseed {}: {} (at {} s): {}",
        life.seed, broken.rule, broken.at_s, broken.how
    );
    if arguments.log.is_none() {
        for line in &life.context {
            eprintln!("{}", line.chars().take(400).collect::<String>());
        }
    }
    let mut command = format!(
        "cargo run -p faults --release -- --seed {} --hours {}",
        life.seed, arguments.hours
    );
    for (flag, kinds) in [("only", &arguments.only), ("without", &arguments.without)] {
        if !kinds.is_empty() {
            command = format!("{command} --{flag} {}", kinds.join(","));
        }
    }
    if !arguments.choices.is_empty() {
        command = format!("{command} --choices {}", arguments.choices.join(","));
    }
    if arguments.strict {
        command.push_str(" --strict");
    }
    if let Some(bug) = &arguments.bug {
        command = format!(
            "{} --bug {bug}",
            command.replace("--release", "--release --features planted")
        );
    }
    eprintln!("seed {}: {}\nrepeat: {command}\n", life.seed, broken.rule);
}

fn progress(done: u64, count: u64, began: Instant) {
    if done.is_multiple_of(10) || done == count {
        eprint!(
            "\r{done} of {count} seeds, {:.0} s ",
            began.elapsed().as_secs_f64()
        );
        // A progress line that cannot be printed is not an error.
        let _ = std::io::stderr().flush();
    }
}

fn finish(lives: &[Life], arguments: &Arguments, began: Instant) -> Result<bool, String> {
    eprintln!();
    let written = |path: &PathBuf, text: String| {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    if let Some(path) = &arguments.hashes {
        let lines = lives
            .iter()
            .map(|life| format!("{} {}\n", life.seed, life.fingerprint));
        written(path, lines.collect())?;
    }
    if let (Some(path), [life]) = (&arguments.log, lives) {
        written(path, life.context.join("\n"))?;
    }
    let broken = lives.iter().filter(|life| life.broken.is_some()).count();
    let hours: i64 = lives.iter().map(|life| life.age_s).sum();
    let mut tally = Tally::default();
    for life in lives {
        tally.add(&life.tally);
    }
    let entries: u64 = lives.iter().map(|life| life.entries).sum();
    println!(
        "{} seeds, {:.1} simulated hours, {entries} entries seen, {broken} with a broken rule, {:.1} s\n{tally}",
        lives.len(),
        hours as f64 / 3_600.0,
        began.elapsed().as_secs_f64(),
    );
    Ok(broken == 0)
}
