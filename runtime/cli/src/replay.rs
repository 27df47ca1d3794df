//! `windvane replay`: replays a journal.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use serde_json::{Value, json};
use windvane_engine::ENGINE_RULES;
use windvane_session::recovery::Difference;

use super::Failure;
use super::journal::has_journal;
use super::printing::{note, print_json, print_line};
use windvane_build::modules::MODULE_BYTES_MAX;
use windvane_build::{self as build, BuildRules};
use windvane_replay::diff::{By, Change};
use windvane_replay::runner::{self, NewModule, OtherRules, ReplayReport, Role};
use windvane_replay::simulate::SimulationResult;
use windvane_report::utc::utc_text;

#[derive(Debug, Args)]
pub(super) struct Replay {
    /// Data folder of an instance that is not running
    #[arg(value_name = "DIR")]
    data_dir: PathBuf,
    /// Compare the replayed records with the journal, byte for byte; the default without --module
    #[arg(long)]
    verify: bool,
    /// Replay another module next to the recorded one of a strategy, and print how its orders
    /// differ; FILE is a .wasm file, or a strategy's folder, which is built first
    #[arg(long, value_name = "ID=FILE")]
    module: Option<Other>,
    /// Configuration file; its [compile] limits the compiler, and with --module the simulation of
    /// both modules uses its [sim]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a setting, such as `sim.fees.taker=0.0005`; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print only JSON
    #[arg(long)]
    json: bool,
}

/// The value of `--module`: a strategy and a module.
#[derive(Clone, Debug)]
struct Other {
    id: String,
    file: PathBuf,
}

impl FromStr for Other {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, file) = text.split_once('=').ok_or(
            "must be ID=FILE: the id of a strategy, and a .wasm file or a strategy's folder",
        )?;
        Ok(Self {
            id: id.to_owned(),
            file: PathBuf::from(file),
        })
    }
}

impl Replay {
    pub(super) fn run(self) -> Result<(), Failure> {
        has_journal(&self.data_dir)?;
        match &self.module {
            None => self.verify(),
            Some(other) => self.what_if(other),
        }
    }

    fn verify(&self) -> Result<(), Failure> {
        let config = super::configuration(self.config.as_deref(), &self.set)?;
        let played = runner::run(&self.data_dir, None, config.compile);
        let played = played.map_err(Failure::failed)?;
        if self.json {
            print_json(&played_json(&played).to_string())?;
        } else {
            print_equal(&played)?;
            print_roles(&played)?;
            print_other_rules(&played)?;
        }
        judge(&played)
    }

    fn what_if(&self, other: &Other) -> Result<(), Failure> {
        self.has_strategy(&other.id)?;
        let config = super::configuration(self.config.as_deref(), &self.set)?;
        let file = &other.file;
        let module = if file.is_dir() {
            let rules = BuildRules::of(&config).with_denied(self.data_dir.clone());
            let built = build::build(file, &rules, &mut |step| note(step));
            built.map_err(Failure::usage)?.component
        } else {
            windvane_files::read_bounded(file, MODULE_BYTES_MAX).map_err(|error| {
                Failure::Usage(format!("cannot read {}: {error}", file.display()))
            })?
        };
        let new_module = NewModule {
            id: other.id.clone(),
            module: module.into(),
        };
        let played = runner::run(&self.data_dir, Some(&new_module), config.compile);
        let played = played.map_err(Failure::failed)?;
        let changes = &played.changes;
        let tried = match &played.simulation {
            Some(simulation) => Some(
                simulation
                    .run(&config, &self.data_dir, &new_module)
                    .map_err(|error| {
                        let what = "the simulation of both modules failed";
                        Failure::Failed(format!("{what}: {error}"))
                    })?,
            ),
            None => None,
        };
        if self.json {
            let mut shown = played_json(&played);
            shown["changes"] = changes.listed.iter().map(change_json).collect();
            shown["new"] = json!({"submits": changes.new[0], "cancels": changes.new[1]});
            shown["old"] = json!({"submits": changes.old[0], "cancels": changes.old[1]});
            shown["simulated"] = json!({
                "old": tried.as_ref().and_then(|tried| tried.old.as_ref()),
                "new": tried.as_ref().and_then(|tried| tried.new.as_ref()),
            });
            print_json(&shown.to_string())?;
            return if self.verify { judge(&played) } else { Ok(()) };
        }
        for change in &changes.listed {
            print_line(&change_line(change))?;
        }
        print_line(&format!(
            "only the new module: {} orders, {} cancels; only the old module: {} orders, \
             {} cancels",
            changes.new[0], changes.new[1], changes.old[0], changes.old[1]
        ))?;
        for line in tried.iter().flat_map(tried_lines) {
            print_line(&line)?;
        }
        if self.verify {
            print_equal(&played)?;
        }
        print_roles(&played)?;
        if self.verify { judge(&played) } else { Ok(()) }
    }

    /// Refuses a strategy that is not in the journal.
    fn has_strategy(&self, id: &str) -> Result<(), Failure> {
        let ids = runner::strategies_until(&self.data_dir, id).map_err(Failure::failed)?;
        if ids.contains(id) {
            return Ok(());
        }
        let ids: Vec<_> = ids.into_iter().collect();
        Err(Failure::Usage(format!(
            "the journal contains no strategy {id}; it has {}",
            ids.join(", ")
        )))
    }
}

fn print_equal(played: &ReplayReport) -> Result<(), Failure> {
    if !played.is_equal() {
        return Ok(());
    }
    print_line(&format!(
        "equal: {} records in {} blocks of {} segments",
        played.records, played.blocks, played.segments
    ))
}

/// Prints the differences in segments that were written under other engine rules.
fn print_other_rules(played: &ReplayReport) -> Result<(), Failure> {
    let Some(other) = &played.other_rules else {
        return Ok(());
    };
    for (segment, difference) in &other.differences {
        print_line(&format!("segment {segment:08x}, {difference}"))?;
    }
    let more = other.count - other.differences.len() as u64;
    if more > 0 {
        print_line(&format!("and {more} more differences"))?;
    }
    Ok(())
}

/// The failure for a journal with other engine rules. If no block differs, the message must not
/// claim a difference.
fn judge_other_rules(other: &OtherRules) -> Failure {
    let rules: Vec<_> = other.rules.iter().map(u32::to_string).collect();
    let programs: Vec<_> = other.programs.iter().map(String::as_str).collect();
    let written = format!(
        "the journal was written under engine rules {}, and this program has engine rules {ENGINE_RULES}",
        rules.join(", ")
    );
    let what_to_do = format!(
        "This program can still start from the journal. To verify it, use a program with \
         engine rules {} (the journal names version {})",
        rules.join(", "),
        programs.join(", ")
    );
    let blocks = match other.count {
        0 => {
            return Failure::Unverified(format!(
                "{written}. All blocks are equal, but a program with other engine rules cannot \
                 verify a journal. {what_to_do}"
            ));
        }
        1 => "1 block differs".to_owned(),
        many => format!("{many} blocks differ"),
    };
    Failure::Differs(format!(
        "{written}: its decisions may differ, so it cannot verify the journal. {blocks}. \
         {what_to_do}"
    ))
}

/// The result of a verification: the first difference, or the first part that could not be
/// compared.
fn judge(played: &ReplayReport) -> Result<(), Failure> {
    if let Some(other) = &played.other_rules {
        return Err(judge_other_rules(other));
    }
    if let Some((segment, difference)) = &played.difference {
        return Err(Failure::Differs(format!(
            "segment {segment:08x}, {difference}"
        )));
    }
    if let Some(problem) = played.problems.first() {
        let (records, more) = (played.records, played.problems.len() - 1);
        let more = match more {
            0 => String::new(),
            more => format!("; {more} more problems are listed above"),
        };
        return Err(Failure::Differs(format!(
            "the journal is incomplete: {problem}{more}; the {records} existing records are \
             equal"
        )));
    }
    match played.roles.iter().find(|role| role.altered) {
        None => Ok(()),
        Some(role) => Err(Failure::Differs(format!(
            "modules/{}.wasm of strategy {} is missing or was changed, so it was not run: put the \
             original module back",
            role.sha256, role.id
        ))),
    }
}

/// The simulated results of both modules, next to each other.
fn tried_lines(tried: &SimulationResult) -> Vec<String> {
    let old = json!(tried.old);
    let new = json!(tried.new);
    let word = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut lines = vec![
        String::new(),
        "each module alone on the recorded market, with simulated fills:".to_owned(),
        format!("  {:<18} {:>18} {:>18}", "", "old", "new"),
    ];
    for name in [
        "orders_submitted",
        "orders_rejected",
        "orders_canceled",
        "fills",
        "volume_quote",
        "fees",
        "realized_pnl",
        "unrealized_pnl",
        "funding",
        "net_pnl",
    ] {
        let (old, new) = (word(&old[name]), word(&new[name]));
        lines.push(format!("  {name:<18} {old:>18} {new:>18}"));
    }
    lines
}

fn difference_json((segment, difference): &(u32, Difference)) -> Value {
    json!({
        "segment": segment,
        "block": difference.block,
        "record": difference.record,
        "recorded": difference.recorded,
        "made": difference.made,
    })
}

fn played_json(played: &ReplayReport) -> Value {
    let role = |role: &Role| {
        json!({
            "strategy": role.id,
            "module_sha256": role.sha256,
            "answers": if role.from_journal.is_none() { "module" } else { "journal" },
            "why": role.from_journal,
            "altered": role.altered,
        })
    };
    json!({
        "equal": played.is_equal(),
        "problems": played.problems.iter().map(|problem| json!({
            "segment": problem.segment,
            "what": problem.what,
        })).collect::<Vec<_>>(),
        "segments": played.segments,
        "blocks": played.blocks,
        "records": played.records,
        "module_answers": played.answers,
        "modules": played.roles.iter().map(role).collect::<Vec<_>>(),
        "notes": played.notes,
        "difference": played.difference.as_ref().map(difference_json),
        "engine_rules": json!({
            "program": ENGINE_RULES,
            "other": played.other_rules.as_ref().map(|other| json!({
                "rules": other.rules,
                "programs": other.programs,
                "count": other.count,
                "differences": other.differences.iter().map(difference_json).collect::<Vec<_>>(),
            })),
        }),
    })
}

fn print_roles(played: &ReplayReport) -> Result<(), Failure> {
    for role in &played.roles {
        let (id, hash) = (&role.id, &role.sha256[..12]);
        print_line(&match &role.from_journal {
            None => format!("{id}: replayed with its module {hash}"),
            Some(why) => {
                format!(
                    "{id}: outputs of module {hash} taken from the journal; it was not run: {why}"
                )
            }
        })?;
    }
    for problem in &played.problems {
        print_line(&format!("incomplete: {problem}"))?;
    }
    for note in &played.notes {
        print_line(note)?;
    }
    Ok(())
}

const fn by_word(by: By) -> &'static str {
    match by {
        By::New => "new",
        By::Old => "old",
    }
}

fn change_json(change: &Change) -> Value {
    json!({
        "time_ns": change.time.0,
        "only": by_word(change.by),
        "intent": change.kind,
        "order": change.order,
    })
}

fn change_line(change: &Change) -> String {
    let word = |field: &str| match &change.order[field] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let sign = match change.by {
        By::New => '+',
        By::Old => '-',
    };
    format!(
        "{sign} {} {:<10} {} {} {} @ {}",
        utc_text(change.time),
        change.kind,
        word("instrument"),
        word("side"),
        word("qty"),
        word("price"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other_rules(count: u64) -> OtherRules {
        OtherRules {
            rules: [8].into(),
            programs: ["0.9.0".to_owned()].into(),
            count,
            ..OtherRules::default()
        }
    }

    #[test]
    fn equal_blocks_under_other_rules_are_unverified() {
        let Failure::Unverified(text) = judge_other_rules(&other_rules(0)) else {
            panic!("nothing differs")
        };
        assert!(text.contains("All blocks are equal"), "{text}");
        assert!(!text.contains("differ"), "{text}");
        assert!(text.contains("engine rules 8"), "{text}");
        for (count, expected) in [(1, "1 block differs."), (7, "7 blocks differ.")] {
            let Failure::Differs(text) = judge_other_rules(&other_rules(count)) else {
                panic!("some differ")
            };
            assert!(text.contains(expected), "{text}");
        }
    }
}
