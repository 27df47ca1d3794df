//! Checks that need no venue: contradictory settings, the data folder, the journal, the kill
//! switches and the modules. Also whether the strategies accept their parameters and saved states.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use windvane_engine::Engine;
use windvane_engine::engine::FolderIds;
use windvane_journal::{Directory, LockError, StoredSegment};
use windvane_model::kill_switch::StoredKillSwitch;
use windvane_model::{Notice, Surface, Time};
use windvane_session::Driver;

use super::super::admin_bridge;
use super::super::cores;
use super::super::cpu_latency::{CpuLatency, DEVICE};
use super::super::guests::LiveGuests;
use super::super::identity::{self, Identity};
use super::super::startup_steps;
use super::super::{recover, unowned_positions};
use super::protection;
use super::report::Report;
use super::venue::Market;
use windvane_build::modules::{self, Guest};
use windvane_config::assembly;
use windvane_config::{Config, Leave, Mode};
use windvane_session::checkpoint::Checkpoint;
use windvane_session::recovery::{JournalContent, recover_state};

pub(super) fn configuration(config: &Config, report: &mut Report) {
    if config.strategies.is_empty() {
        report.wrong(
            "configuration",
            "no strategy is configured",
            "add a [[strategy]] to the configuration",
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
            "spot has no countdown at the venue: a watchdog process on this machine cancels spot \
             orders when the run dies. If the machine dies, spot orders stay open",
            "",
        );
    }
    if names.iter().any(|name| name.surface == Surface::Futures) {
        report.warn(
            "dead man",
            "the countdown of a futures symbol cancels every order of the account on that symbol, \
             also orders from outside this run",
            "use a separate account for this run",
        );
    }
    if config.run.on_stop == Leave::Keep {
        let found = "on_stop = \"keep\" disarms the dead man's switch at the stop: orders stay \
                     open, and nothing protects them";
        report.warn("dead man", found, "");
    }
}

/// Reports the profile of the venue, and which of its values the configuration replaces.
pub(super) fn profile(config: &Config, report: &mut Report) {
    let profile = config.venue.profile;
    let mut found = format!("profile \"{profile}\"");
    match config.venue.overridden() {
        Ok(keys) if keys.is_empty() => {}
        Ok(keys) => {
            let keys: Vec<_> = keys.iter().map(|key| format!("venue.{key}")).collect();
            let _ = write!(found, "; the configuration replaces {}", keys.join(", "));
        }
        Err(error) => return report.wrong("venue", error.to_string(), ""),
    }
    if profile.is_public() {
        let found = format!(
            "{found}. Its values come from public documents; nothing was tried at this venue"
        );
        report.warn(
            "venue",
            found,
            "docs/venue-aster.md says what to verify on the test environment first",
        );
    } else {
        report.ok("venue", found);
    }
}

pub(super) fn data_directory(config: &Config, report: &mut Report) {
    let path = &config.run.data_dir;
    if !path.exists() {
        if let Err(error) = Directory::require_place(path) {
            return report.no_go("data", error.to_string(), "");
        }
        let parent = path.ancestors().find(|parent| parent.exists());
        let parent = parent.filter(|path| !path.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        match room(parent) {
            Ok(()) => report.ok("data", format!("{} will be created", path.display())),
            Err(error) => report.no_go(
                "data",
                format!(
                    "{} cannot be created in {}: {error}",
                    path.display(),
                    parent.display()
                ),
                "give this user write access, free disk space, or set another run.data_dir",
            ),
        }
        return;
    }
    let directory = match Directory::lock(path) {
        Ok(directory) => directory,
        Err(
            error @ (LockError::Held { .. }
            | LockError::NotPrivate { .. }
            | LockError::NotAJournal { .. }),
        ) => {
            report.no_go("data", error.to_string(), "");
            return;
        }
        Err(error) => {
            report.no_go("data", error.to_string(), "give this user write access");
            return;
        }
    };
    match room(path) {
        Ok(()) => report.ok(
            "data",
            format!("{} is not in use and is writable", path.display()),
        ),
        Err(error) => {
            let found = format!("{}: {error}", path.display());
            report.no_go(
                "data",
                found,
                "give this user write access, or free disk space",
            );
        }
    }
    let kill_switches = directory.kill_switch();
    drop(directory);
    for (name, kill_switch) in &kill_switches.strategies {
        let is = match (&kill_switch.quarantine, &kill_switch.switch) {
            (Some((fault, reason)), _) => format!("{name} is quarantined ({fault}): {reason}"),
            (None, StoredKillSwitch::Halted { reason }) => format!("{name} is halted: {reason}"),
            (None, StoredKillSwitch::Paused { reason }) => format!("{name} is paused: {reason}"),
            (None, StoredKillSwitch::Clear) => continue,
        };
        report.warn(
            "kill switch",
            is,
            "it starts in this state; `windvane resume --strategy ID` ends it",
        );
    }
    if kill_switches.margin_call {
        report.warn(
            "kill switch",
            "the venue sent a margin call".to_owned(),
            "a run starts degraded and opens nothing; add margin or reduce positions, then \
             `windvane resume`",
        );
    }
    match kill_switches.account {
        StoredKillSwitch::Clear if kill_switches.margin_call => {}
        StoredKillSwitch::Clear => report.ok("kill switch", "no halt or pause is in force"),
        StoredKillSwitch::Paused { reason } => report.warn(
            "kill switch",
            format!("paused: {reason}"),
            "a run starts paused; `windvane resume` ends the pause",
        ),
        StoredKillSwitch::Halted { reason } => report.warn(
            "kill switch",
            format!("halted: {reason}"),
            "a run starts halted; `windvane resume` ends the halt",
        ),
    }
    journal(path, report);
    what_is_left(config, report);
}

/// The size of the test file, in bytes. An empty file proves nothing: a full disk still accepts it.
const ROOM: usize = 1 << 20;

/// Writes a file of about the journal's first size and deletes it again.
fn room(folder: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&vec![1; ROOM])?;
    file.sync_all()
}

/// Checks whether the data folder belongs to this account.
pub(super) fn owner(identity: &Identity, data_dir: &Path, report: &mut Report) {
    if last_checkpoint(data_dir).is_none() {
        return;
    }
    if let Some(text) = identity.difference(data_dir) {
        let mend = format!("a run starts paused; {}", identity::WHAT_TO_DO);
        report.warn("data", text, &mend);
    }
}

/// Checks whether the system supports `run.busy_poll` and `run.keep_awake`.
pub(super) fn processors(config: &Config, report: &mut Report) {
    if let Some(found) = cores::too_few(config.run.busy_poll) {
        report.warn("processors", found, cores::ADVICE);
    }
    if !config.run.keep_awake {
        return;
    }
    match CpuLatency::is_possible() {
        Ok(()) => report.ok("processors", "processors can be kept awake"),
        Err(error) => report.warn(
            "processors",
            format!("run.keep_awake: {DEVICE}: {error}"),
            "give this user write access, or remove run.keep_awake: orders then leave a little \
             later",
        ),
    }
}

/// Reports what will confine the processes of a run.
pub(super) fn confinement(config: &Config, report: &mut Report) {
    if !config.run.confine {
        let found = "run.confine is false: a fault in the trading process could reach every file of \
                     its user";
        let mend = "set run.confine = true, or give the run a user of its own";
        return report.warn("confinement", found, mend);
    }
    protection::offered(&windvane_sandbox::probe(), report);
}

/// Checks the address and the token of the admin server.
pub(super) fn admin(config: &Config, report: &mut Report) {
    if let Some(secret) = &config.admin.token {
        match admin_bridge::configured_token(secret) {
            Ok(_) => {}
            Err(error) if error.is_usage() => {
                let mend = "make it readable for this user only, or remove admin.token";
                report.wrong("admin", error.to_string(), mend);
                return;
            }
            Err(error) => {
                report.no_go("admin", error.to_string(), "");
                return;
            }
        }
    }
    let Some(listen) = config.admin.listen else {
        report.ok(
            "admin",
            "only the socket admin.sock in data_dir will be used",
        );
        return;
    };
    match TcpListener::bind(listen) {
        Ok(_) => report.ok("admin", format!("{listen} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => report.warn(
            "admin",
            format!(
                "admin.listen {listen}: {error}. A run would start without its TCP address and try \
                 again; the socket admin.sock in data_dir works"
            ),
            "free the port or choose another; 0 takes any free port",
        ),
        Err(error) => report.no_go(
            "admin",
            format!("admin.listen {listen}: {error}"),
            "free the port or choose another; 0 takes any free port",
        ),
    }
}

fn journal(data_dir: &Path, report: &mut Report) {
    let found = match windvane_journal::verify(data_dir) {
        Ok(found) => found,
        Err(error) => {
            report.no_go("journal", error.to_string(), "give this user read access");
            return;
        }
    };
    match found.first_problem() {
        Some(problem) => report.warn(
            "journal",
            format!("not complete: {}", problem.what),
            "a run reads the missing part from the venue; `windvane journal verify` shows details",
        ),
        None => report.ok(
            "journal",
            format!("complete, {} segments", found.segments.len()),
        ),
    }
}

/// Checks the state of the earlier process. It must have the same mode. A start with this
/// configuration may leave positions without a strategy.
fn what_is_left(config: &Config, report: &mut Report) {
    let Some(stored) = last_segment(&config.run.data_dir) else {
        return;
    };
    let left = recover_state(JournalContent {
        is_authority: true,
        base: stored.base(),
        next: stored.end(),
        checkpoint: stored.checkpoint,
        blocks: stored.blocks,
    });
    if let Err(error) = recover::must_be_of(&left, config.run.mode) {
        report.wrong("data", error.to_string(), "");
        return;
    }
    for one in left.unowned_positions(&unowned_positions::configured(config)) {
        let found = format!(
            "{one}: its strategy or instrument is not configured any more, so after a start the \
             position belongs to no strategy"
        );
        let mend = format!(
            "put it back into the configuration, and run `windvane flatten --strategy {}` before \
             you remove it; or close the position by hand at the venue",
            one.strategy
        );
        report.warn("positions", found, &mend);
    }
}

/// Builds or reads every module and checks it.
pub(super) async fn modules(
    config: &Config,
    on_loopback: bool,
    report: &mut Report,
) -> Option<Vec<Guest>> {
    if let Err(error) = modules::refuse_sources(config, on_loopback) {
        report.wrong("module", error.to_string(), "");
        return None;
    }
    let mut guests = Vec::new();
    for strategy in &config.strategies {
        let mut alone = config.clone();
        alone.strategies = vec![strategy.clone()];
        let loaded = tokio::task::spawn_blocking(move || modules::load(&alone, &mut |_| {})).await;
        let id = strategy.id.as_str();
        match loaded {
            Ok(Ok(loaded)) => {
                for guest in loaded {
                    let strategy = &guest.strategy;
                    let (version, sha256) =
                        (&strategy.describe().version, hex::encode(guest.sha256));
                    let (uses, granted) = (strategy.capabilities(), strategy.granted());
                    let found =
                        format!("{id}: {version}, sha256 {sha256}, uses {uses}, granted {granted}");
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

/// Starts the strategies on an engine that sends nothing, to check whether they accept their
/// parameters, instruments and saved states.
pub(super) fn begin(config: &Config, mut guests: Vec<Guest>, market: &Market, report: &mut Report) {
    let names = assembly::instrument_names(config);
    for (guest, strategy) in guests.iter_mut().zip(&config.strategies) {
        let assets = market.assets.names();
        guest.instruments =
            assembly::instruments_json(strategy, &names, &market.instruments, assets);
    }
    let checkpoint = last_checkpoint(&config.run.data_dir);
    let state_of = |guest: &Guest| checkpoint.as_ref()?.state_of(&guest.name);
    let states: Vec<_> = guests.iter().map(state_of).collect();
    let instruments = market.instruments.clone();
    let made = startup_steps::engine_config(config, &names, instruments, &market.assets, 1);
    let engine = match Engine::new(made) {
        Ok(engine) => engine,
        Err(error) => {
            report.no_go("strategy", error.to_string(), "");
            return;
        }
    };
    let now = engine.now();
    let mut driver = Driver::new(engine, LiveGuests::new(guests, &states), false);
    if let Err((strategy, reason)) = driver.start(now, &states, &[]) {
        let id = config.strategies[usize::from(strategy.0)].id.as_str();
        let found = format!("{id} refuses: {reason}");
        report.wrong(
            "strategy",
            found,
            "correct its params or instruments in the configuration",
        );
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
                "fix the module, or start with an empty data_dir; WINDVANE_LOG=info shows the \
                 reason",
            );
        }
    }
    if !failed {
        report.ok(
            "strategy",
            "every strategy accepts its parameters, instruments and state",
        );
    }
}

/// The newest checkpoint of the journal that can be read.
fn last_checkpoint(data_dir: &Path) -> Option<Checkpoint> {
    Checkpoint::from_bytes(&last_segment(data_dir)?.checkpoint)
}

/// The newest segment, up to the first damage.
fn last_segment(data_dir: &Path) -> Option<StoredSegment> {
    let numbers = windvane_journal::segments(data_dir).ok()?;
    windvane_journal::segment(data_dir, *numbers.last()?).ok()
}

/// The order ids that this data folder created or adopted.
pub(super) fn folder_ids(data_dir: &Path) -> FolderIds {
    let checkpoint = last_checkpoint(data_dir);
    let engine = checkpoint.and_then(|checkpoint| Engine::restore(&checkpoint.engine).ok());
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    });
    let epoch = windvane_journal::last_epoch(data_dir);
    FolderIds::new(engine.as_ref(), epoch, Time::from_millis(ms))
}
