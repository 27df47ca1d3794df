//! What needs no venue: settings that contradict each other, the data directory, the journal, the
//! latch, the modules and what they say to their parameters and their saved states.

use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use windvane_engine::Engine;
use windvane_engine::engine::FolderIds;
use windvane_journal::{Directory, LockError, StoredSegment};
use windvane_model::latches::Latch;
use windvane_model::{Notice, Surface, Time};
use windvane_session::Driver;

use super::super::awake::{Awake, DEVICE};
use super::super::cores;
use super::super::desk::{self, TOKEN_FILE};
use super::super::guests::LiveGuests;
use super::super::identity::{self, Identity};
use super::super::start;
use super::super::{recover, remains};
use super::Report;
use super::venue::Market;
use windvane_build::modules::{self, Guest};
use windvane_config::assembly;
use windvane_config::{Config, Leave, Mode};
use windvane_report::hex;
use windvane_session::head::Head;
use windvane_session::recovery::{Remembered, left_of};

pub(super) fn configuration(config: &Config, report: &mut Report) {
    if config.strategies.is_empty() {
        report.wrong(
            "configuration",
            "no strategy is configured",
            "add a [[strategy]]",
        );
        return;
    }
    let names = assembly::instrument_names(config);
    let mode = match config.run.mode {
        Mode::Live => "live",
        Mode::Paper => "paper",
    };
    let strategies = config.strategies.len();
    let instruments = names.len();
    report.ok(
        "configuration",
        format!("mode {mode}, {strategies} strategies, {instruments} instruments"),
    );
    if config.run.mode == Mode::Paper {
        return;
    }
    let spot = names.iter().any(|name| name.surface == Surface::Spot);
    if spot {
        report.warn(
            "dead man",
            "spot has no countdown at the venue: a watchdog process of this host cancels spot \
             orders when the run dies, and dies with the host",
            "",
        );
    }
    if names.iter().any(|name| name.surface == Surface::Futures) {
        report.warn(
            "dead man",
            "the countdown of a futures symbol cancels every order of the account on it, those \
             of others included",
            "use an account of its own",
        );
    }
    if config.run.on_stop == Leave::Keep {
        let found = "on_stop = \"keep\" lets the dead man's switch go: orders rest unwatched";
        report.warn("dead man", found, "");
    }
}

pub(super) fn data_directory(config: &Config, report: &mut Report) {
    let path = &config.run.data_dir;
    if !path.exists() {
        let parent = path.ancestors().find(|parent| parent.exists());
        let parent = parent.filter(|path| !path.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        match room(parent) {
            Ok(()) => report.ok("data", format!("{} will be made", path.display())),
            Err(error) => report.no_go(
                "data",
                format!(
                    "{} cannot be made in {}: {error}",
                    path.display(),
                    parent.display()
                ),
                "let this user write there, make room, or name another run.data_dir",
            ),
        }
        return;
    }
    let directory = match Directory::lock(path) {
        Ok(directory) => directory,
        Err(error @ LockError::Held { .. }) => {
            report.no_go("data", error.to_string(), "");
            return;
        }
        Err(error) => {
            report.no_go("data", error.to_string(), "let this user write there");
            return;
        }
    };
    match room(path) {
        Ok(()) => report.ok(
            "data",
            format!("{} is free and can be written", path.display()),
        ),
        Err(error) => {
            let found = format!("{}: {error}", path.display());
            report.no_go("data", found, "let this user write there, or make room");
        }
    }
    let latches = directory.latches();
    drop(directory);
    for (name, latch) in &latches.strategies {
        let is = match (&latch.quarantine, &latch.latch) {
            (Some((fault, reason)), _) => format!("{name} is quarantined ({fault}): {reason}"),
            (None, Latch::Halted { reason }) => format!("{name} is halted: {reason}"),
            (None, Latch::Paused { reason }) => format!("{name} is paused: {reason}"),
            (None, Latch::Clear) => continue,
        };
        report.warn(
            "latch",
            is,
            "it begins so; `windvane resume --strategy ID` ends that",
        );
    }
    if latches.margin_call {
        report.warn(
            "latch",
            "the venue called for margin".to_owned(),
            "it begins degraded; mend that, then `windvane resume`",
        );
    }
    match latches.account {
        Latch::Clear if latches.margin_call => {}
        Latch::Clear => report.ok("latch", "nothing is latched"),
        Latch::Paused { reason } => report.warn(
            "latch",
            format!("paused: {reason}"),
            "it begins paused; `windvane resume` ends that",
        ),
        Latch::Halted { reason } => report.warn(
            "latch",
            format!("halted: {reason}"),
            "it begins halted; `windvane resume` ends that",
        ),
    }
    journal(path, report);
    what_is_left(config, report);
}

/// A file of so many bytes must be taken: a disk that is full still makes empty ones.
const ROOM: usize = 1 << 20;

/// Writes as much as the journal soon does, and takes it away again.
fn room(folder: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&vec![1; ROOM])?;
    file.sync_all()
}

/// Whether the data folder is about this account.
pub(super) fn owner(identity: &Identity, data_dir: &Path, report: &mut Report) {
    if last_head(data_dir).is_none() {
        return;
    }
    if let Some(words) = identity.difference(data_dir) {
        let mend = format!("a start begins paused; {}", identity::WHAT_TO_DO);
        report.warn("data", words, &mend);
    }
}

/// What `run.busy_poll` and `run.keep_awake` ask of the system.
pub(super) fn processors(config: &Config, report: &mut Report) {
    if let Some(found) = cores::too_few(config.run.busy_poll) {
        report.warn("processors", found, cores::ADVICE);
    }
    if !config.run.keep_awake {
        return;
    }
    match Awake::is_possible() {
        Ok(()) => report.ok("processors", "they stay awake"),
        Err(error) => report.warn(
            "processors",
            format!("run.keep_awake: {DEVICE}: {error}"),
            "let this user write there, or leave run.keep_awake out: orders take a little longer",
        ),
    }
}

/// The address and the token of the admin server; a token that is missing is made by the run.
pub(super) fn admin(config: &Config, report: &mut Report) {
    let file = config.run.data_dir.join(TOKEN_FILE);
    match desk::token(config.admin.token.as_ref(), &file) {
        Ok(_) => {}
        Err(error) if error.is_usage() => {
            let mend = "make it readable to this user alone, or leave admin.token out";
            report.wrong("admin", error.to_string(), mend);
            return;
        }
        Err(error) => {
            report.no_go("admin", error.to_string(), "");
            return;
        }
    }
    let Some(listen) = config.admin.listen else {
        report.ok("admin", "a free port of 127.0.0.1 will be taken");
        return;
    };
    match TcpListener::bind(listen) {
        Ok(_) => report.ok("admin", format!("{listen} is free")),
        Err(error) => report.no_go(
            "admin",
            format!("admin.listen {listen}: {error}"),
            "free the port or choose another, 0 for any",
        ),
    }
}

fn journal(data_dir: &Path, report: &mut Report) {
    let found = match windvane_journal::verify(data_dir) {
        Ok(found) => found,
        Err(error) => {
            report.no_go("journal", error.to_string(), "let this user read it");
            return;
        }
    };
    match found.first_problem() {
        Some(problem) => report.warn(
            "journal",
            format!("not whole: {}", problem.what),
            "what it does not hold is asked of the venue; `windvane journal verify` tells more",
        ),
        None => report.ok(
            "journal",
            format!("whole, {} segments", found.segments.len()),
        ),
    }
}

/// What the process before left: it must be of the same mode, and a start with this configuration
/// may leave positions to nobody.
fn what_is_left(config: &Config, report: &mut Report) {
    let Some(stored) = last_segment(&config.run.data_dir) else {
        return;
    };
    let left = left_of(Remembered {
        is_authority: true,
        base: stored.base(),
        next: stored.end(),
        head: stored.head,
        blocks: stored.blocks,
    });
    if let Err(error) = recover::must_be_of(&left, config.run.mode) {
        report.wrong("data", error.to_string(), "");
        return;
    }
    for one in left.remains(&remains::configured(config)) {
        let found = format!(
            "{one}: strategy or instrument is configured no more, and a start leaves the position \
             to nobody"
        );
        let mend = format!(
            "put it back in the configuration, and `windvane flatten --strategy {}` before it is \
             taken out; or close it by hand",
            one.strategy
        );
        report.warn("positions", found, &mend);
    }
}

/// Builds or reads every module.
pub(super) async fn modules(config: &Config, report: &mut Report) -> Option<Vec<Guest>> {
    let mut guests = Vec::new();
    for strategy in &config.strategies {
        let mut alone = config.clone();
        alone.strategies = vec![strategy.clone()];
        let loaded = tokio::task::spawn_blocking(move || modules::load(&alone, &mut |_| {})).await;
        let id = strategy.id.as_str();
        match loaded {
            Ok(Ok(loaded)) => {
                for guest in loaded {
                    let wants = &guest.strategy.describe().capabilities;
                    let (sha256, wants) = (hex(&guest.sha256), wants.join(", "));
                    let version = &guest.strategy.describe().version;
                    let found = format!("{id}: {version}, sha256 {sha256}, wants {wants}");
                    report.ok("module", found);
                    guests.push(guest);
                }
            }
            Ok(Err(error)) if error.is_usage() => report.wrong("module", error.to_string(), ""),
            Ok(Err(error)) => report.no_go("module", error.to_string(), ""),
            Err(error) => report.no_go("module", format!("{id}: {error}"), ""),
        }
    }
    (guests.len() == config.strategies.len() && !guests.is_empty()).then_some(guests)
}

/// Begins the strategies on an engine that nothing follows from: what they say to their
/// parameters, instruments and saved states.
pub(super) fn begin(config: &Config, mut guests: Vec<Guest>, market: &Market, report: &mut Report) {
    let names = assembly::instrument_names(config);
    for (guest, strategy) in guests.iter_mut().zip(&config.strategies) {
        let assets = market.assets.names();
        guest.instruments =
            assembly::instruments_json(strategy, &names, &market.instruments, assets);
    }
    let head = last_head(&config.run.data_dir);
    let state_of = |guest: &Guest| head.as_ref()?.state_of(&guest.name);
    let states: Vec<_> = guests.iter().map(state_of).collect();
    let instruments = market.instruments.clone();
    let made = start::engine_config(config, &names, instruments, &market.assets, 1);
    let engine = match Engine::new(made) {
        Ok(engine) => engine,
        Err(error) => {
            report.no_go("strategy", error.to_string(), "");
            return;
        }
    };
    let now = engine.now();
    let mut driver = Driver::new(engine, LiveGuests::new(guests, &states), false);
    if let Err((strategy, reason)) = driver.start(now, &states) {
        let id = config.strategies[usize::from(strategy.0)].id.as_str();
        let found = format!("{id} refuses: {reason}");
        report.wrong("strategy", found, "correct its params or instruments");
        return;
    }
    let mut failed = false;
    while let Some(action) = driver.poll() {
        if let windvane_session::Action::Notice(notice) = action
            && let Notice::Quarantined { strategy, kind, .. } = *notice
        {
            failed = true;
            let at = usize::from(strategy.0);
            let id = config.strategies[at].id.as_str();
            let from = if states.get(at).is_some_and(Option::is_some) {
                " with its saved state"
            } else {
                ""
            };
            report.warn(
                "strategy",
                format!(
                    "{id} cannot start{from} ({}): it would be quarantined",
                    kind.as_str()
                ),
                "mend the module, or begin with an empty data_dir; WINDVANE_LOG=info says why",
            );
        }
    }
    if !failed {
        report.ok(
            "strategy",
            "every strategy takes its parameters, instruments and state",
        );
    }
}

/// The newest head of the journal that can be read.
fn last_head(data_dir: &Path) -> Option<Head> {
    Head::from_bytes(&last_segment(data_dir)?.head)
}

/// The newest segment, as far as it verifies.
fn last_segment(data_dir: &Path) -> Option<StoredSegment> {
    let numbers = windvane_journal::segments(data_dir).ok()?;
    windvane_journal::segment(data_dir, *numbers.last()?).ok()
}

/// The order ids that this data folder gave out or adopted.
pub(super) fn folder_ids(data_dir: &Path) -> FolderIds {
    let head = last_head(data_dir);
    let engine = head.and_then(|head| Engine::restore(&head.engine).ok());
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    });
    let epoch = windvane_journal::last_epoch(data_dir);
    FolderIds::new(engine.as_ref(), epoch, Time::from_millis(ms))
}
