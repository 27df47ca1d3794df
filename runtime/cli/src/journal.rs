//! `windvane journal`: verifies, exports and prunes the journal, and prints the ledger.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use serde_json::json;
use windvane_journal::{Directory, LockError, Report, SegmentState};
use windvane_model::Time;

use super::Failure;
use super::printing::{note, print_json, print_line};
use windvane_live::retention;
use windvane_replay::export::RecordFormatter;
use windvane_replay::ledger;
use windvane_report::utc;

#[derive(Debug, Subcommand)]
pub(super) enum Journal {
    /// Verify every segment and the hash chain across them; exit code 4 if one is damaged
    Verify(Verify),
    /// Write the records as JSON lines
    Export(Export),
    /// Delete old market data and old segments, as [journal] of the configuration states; the last
    /// two segments are always kept
    Prune(Prune),
    /// Print the ledger as JSON lines: all orders, fills, fees and funding, also of deleted
    /// segments
    Ledger(Ledger),
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Data folder of an instance
    #[arg(value_name = "DIR")]
    data_dir: PathBuf,
    /// Print only JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Data folder of an instance
    #[arg(value_name = "DIR")]
    data_dir: PathBuf,
    /// First record to write: its sequence number, or a UTC time such as 2026-11-21T21:00:00
    #[arg(long, value_name = "PLACE")]
    from: Option<Bound>,
    /// First record to leave out: its sequence number, or a UTC time
    #[arg(long, value_name = "PLACE")]
    to: Option<Bound>,
    /// File to write; without it, stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Prune {
    /// Data folder of an instance that is not running
    #[arg(value_name = "DIR")]
    data_dir: PathBuf,
    /// Configuration file; its [journal] is used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a setting, such as `journal.retain_days=7`; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Print only JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Ledger {
    /// Data folder of an instance
    #[arg(value_name = "DIR")]
    data_dir: PathBuf,
    /// Print only segments that are already entered in the ledger; without it, newer segments are
    /// read from the journal too
    #[arg(long)]
    entered: bool,
}

/// A position in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Sequence(u64),
    Time(Time),
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(sequence) = text.parse() {
            return Ok(Self::Sequence(sequence));
        }
        utc::parse(text).map(Self::Time).ok_or_else(|| {
            "must be the sequence number of a record, or a UTC time such as 2026-11-21T21:00:00"
                .to_owned()
        })
    }
}

impl Bound {
    /// Whether a record comes before this position.
    const fn is_after(self, sequence: u64, time: Time) -> bool {
        match self {
            Self::Sequence(bound) => sequence < bound,
            Self::Time(bound) => time.0 < bound.0,
        }
    }
}

impl Journal {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Verify(verify) => verify.run(),
            Self::Export(export) => export.run(),
            Self::Prune(prune) => prune.run(),
            Self::Ledger(ledger) => ledger.run(),
        }
    }
}

/// Refuses a folder that contains no journal.
pub(super) fn has_journal(data_dir: &Path) -> Result<(), Failure> {
    if data_dir.join("journal").is_dir() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} contains no journal: name the run.data_dir of an instance",
        data_dir.display()
    )))
}

impl Verify {
    fn run(self) -> Result<(), Failure> {
        has_journal(&self.data_dir)?;
        let report = windvane_journal::verify(&self.data_dir).map_err(Failure::failed)?;
        if self.json {
            print_json(&report_json(&report).to_string())?;
        } else {
            for line in report_lines(&report) {
                print_line(&line)?;
            }
        }
        match report.first_problem() {
            None => Ok(()),
            Some(problem) => Err(Failure::Differs(problem.to_string())),
        }
    }
}

const fn state_word(state: SegmentState) -> &'static str {
    match state {
        SegmentState::Sealed => "sealed",
        SegmentState::Unsealed => "whole, not sealed",
        SegmentState::InUse => "in use, left out",
        SegmentState::Damaged => "damaged",
    }
}

fn report_json(report: &Report) -> serde_json::Value {
    let segments = report.segments.iter().map(|segment| {
        json!({
            "segment": segment.number,
            "state": state_word(segment.state),
            "first_record": segment.base.last_record + 1,
            "last_record": segment.end.last_record,
            "bytes": segment.bytes,
        })
    });
    let problems = report
        .problems
        .iter()
        .map(|problem| json!({"segment": problem.segment, "what": problem.what}));
    json!({
        "whole": report.problems.is_empty(),
        "segments": segments.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
        "durable_record": report.mark.map(|mark| mark.chain.last_record),
    })
}

fn report_lines(report: &Report) -> Vec<String> {
    let segments = report.segments.iter().map(|segment| {
        let records = match segment.state {
            SegmentState::InUse => String::new(),
            _ => format!(
                ", records {} to {}",
                segment.base.last_record + 1,
                segment.end.last_record
            ),
        };
        let (state, bytes) = (state_word(segment.state), segment.bytes);
        let market = if segment.market_dropped {
            ", market data dropped".to_owned()
        } else {
            let lost = segment.lost.iter();
            let lost = lost
                .map(|(first, last)| format!(", market records of blocks {first} to {last} lost"));
            lost.collect::<Vec<_>>().concat()
        };
        format!(
            "{:08x}  {state}{records}, {bytes} bytes{market}",
            segment.number
        )
    });
    let mut lines: Vec<_> = segments.collect();
    if report.problems.is_empty() {
        lines.push("whole".to_owned());
    }
    lines
}

impl Export {
    fn run(self) -> Result<(), Failure> {
        has_journal(&self.data_dir)?;
        let to_file = |path: &PathBuf| -> Result<Box<dyn Write>, Failure> {
            let file = File::create(path).map_err(|error| {
                Failure::Failed(format!("cannot write {}: {error}", path.display()))
            })?;
            Ok(Box::new(BufWriter::new(file)))
        };
        let mut out: Box<dyn Write> = match &self.out {
            Some(path) => to_file(path)?,
            None => Box::new(BufWriter::new(std::io::stdout())),
        };
        match self.write(&mut out) {
            Ok(None) | Err(Ended::NobodyReads) => Ok(()),
            Err(Ended::Failure(failure)) => Err(failure),
            Ok(Some(problem)) => Err(Failure::Failed(problem)),
        }
    }

    /// Writes segment by segment. Returns the first problem; the export continues after it.
    fn write(&self, out: &mut dyn Write) -> Result<Option<String>, Ended> {
        let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
        let locked = Directory::lock(&self.data_dir);
        let mut numbers =
            windvane_journal::segments(&self.data_dir).map_err(|error| failed(&error))?;
        if let Err(error @ LockError::Held { .. }) = &locked {
            note(format!(
                "{error}; the segment that it is writing is left out"
            ));
            numbers.pop();
        }
        let mut problem = None;
        for number in numbers {
            let stored = match windvane_journal::segment(&self.data_dir, number) {
                Ok(stored) => stored,
                Err(error) => {
                    problem.get_or_insert(error.to_string());
                    continue;
                }
            };
            let Some(formatter) = RecordFormatter::new(number, &stored.checkpoint) else {
                let what =
                    "its checkpoint cannot be read; it may be damaged or from another version";
                problem.get_or_insert(format!("segment {number:08x}: {what}"));
                continue;
            };
            writeln!(out, "{}", formatter.checkpoint())?;
            for block in stored.blocks {
                if block.lacks_market() {
                    let lost = json!({
                        "segment": number,
                        "block": block.number,
                        "market_records": if stored.market_dropped { "dropped" } else { "lost" },
                    });
                    writeln!(out, "{lost}")?;
                }
                for (sequence, record) in block.records() {
                    let record = record.map_err(|error| failed(&error))?;
                    let place = |bound: Bound| bound.is_after(sequence, record.time);
                    if self.from.is_some_and(place) || self.to.is_some_and(|to| !place(to)) {
                        continue;
                    }
                    writeln!(out, "{}", formatter.record(sequence, &record))?;
                }
            }
            if let Some(tear) = stored.tear {
                problem.get_or_insert(format!("segment {number:08x}: {tear}"));
            }
        }
        out.flush()?;
        Ok(problem)
    }
}

/// Why an export stopped early.
enum Ended {
    NobodyReads,
    Failure(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Failure(Failure::Failed(format!("cannot write: {error}"))),
        }
    }
}

impl Prune {
    fn run(self) -> Result<(), Failure> {
        has_journal(&self.data_dir)?;
        let config = super::configuration(self.config.as_deref(), &self.set)?;
        let directory = Directory::lock(&self.data_dir).map_err(Failure::failed)?;
        let (keep, now) = (retention::keep(&config.journal), SystemTime::now());
        let pruned = if self.dry_run {
            directory.prunable(keep, now)
        } else {
            ledger::update(&directory).map_err(Failure::failed)?;
            directory.prune(keep, now)
        };
        let pruned = pruned.map_err(Failure::failed)?;
        let segments: Vec<String> = pruned
            .segments
            .iter()
            .map(|one| format!("{one:08x}"))
            .collect();
        let markets = pruned.markets.iter().map(|one| format!("{one:08x}"));
        let markets: Vec<String> = markets.collect();
        if self.json {
            let shown = json!({
                "segments": segments,
                "bytes": pruned.bytes,
                "market_data": markets,
                "market_bytes": pruned.market_bytes,
                "dry_run": self.dry_run,
            });
            return print_json(&shown.to_string());
        }
        let did = if self.dry_run {
            "would drop"
        } else {
            "dropped"
        };
        if !markets.is_empty() {
            let bytes = pruned.market_bytes;
            print_line(&format!(
                "{did} the market data of {} ({bytes} bytes)",
                markets.join(", ")
            ))?;
        }
        print_line(&match segments.as_slice() {
            [] if markets.is_empty() => {
                "nothing to delete: all data is within the limits of [journal]".to_owned()
            }
            [] => return Ok(()),
            _ => format!("{did} {} ({} bytes)", segments.join(", "), pruned.bytes),
        })
    }
}

impl Ledger {
    fn run(self) -> Result<(), Failure> {
        has_journal(&self.data_dir)?;
        let entries = windvane_journal::ledger(&self.data_dir).map_err(Failure::failed)?;
        let last = entries.last().map(|entry| entry.segment);
        let mut out = std::io::stdout().lock();
        let written = entries
            .iter()
            .try_for_each(|entry| out.write_all(&entry.lines));
        let written = written.and_then(|()| {
            if self.entered {
                return Ok(());
            }
            let mut numbers = windvane_journal::segments(&self.data_dir).unwrap_or_default();
            let locked = Directory::lock(&self.data_dir);
            if let Err(error @ LockError::Held { .. }) = &locked {
                note(format!(
                    "{error}; the segment that it is writing is left out"
                ));
                numbers.pop();
            }
            for number in numbers
                .into_iter()
                .filter(|number| last.is_none_or(|last| *number > last))
            {
                if let Ok(stored) = windvane_journal::segment(&self.data_dir, number) {
                    for row in ledger::rows(number, stored) {
                        writeln!(out, "{row}")?;
                    }
                }
            }
            Ok(())
        });
        match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::Failed(format!("cannot write: {error}")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_sequence_or_a_time() {
        assert_eq!("17".parse(), Ok(Bound::Sequence(17)));
        let time = Time(1_723_161_255_000_000_000);
        assert_eq!("2024-08-08T23:54:15Z".parse(), Ok(Bound::Time(time)));
        assert!("yesterday".parse::<Bound>().is_err());
        assert!(Bound::Sequence(5).is_after(4, time) && !Bound::Sequence(5).is_after(5, time));
    }
}
