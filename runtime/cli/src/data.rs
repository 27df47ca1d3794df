//! `windvane data`: generate, list and verify recordings.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use windvane_model::ids::Time;
use windvane_model::order::Surface;
use windvane_model::outside_text;

use super::Failure;
use super::printing::{print_json, print_line, print_lines};
use super::progress::Terminal;
use windvane_config::InstrumentName;
use windvane_recording::{self as recording, Recording, SyntheticSession};
use windvane_report::format::{duration, grouped};
use windvane_report::utc::seconds_text;

#[derive(Debug, Subcommand)]
pub(super) enum Data {
    /// Generate a plausible session as a recording; the same arguments give the same file
    Generate(Generate),
    /// Describe the contents of recordings
    List(Recordings),
    /// Read whole recordings; fail if a line is damaged, a depth sequence has a gap or a file is
    /// cut off
    Verify(Recordings),
}

#[derive(Debug, Args)]
pub(super) struct Generate {
    /// File to write, compressed with gzip
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Surface of the instrument
    #[arg(long, value_enum, default_value_t = SurfaceWord::Futures)]
    surface: SurfaceWord,
    /// Symbol of the instrument
    #[arg(long, default_value = "BTCUSDT")]
    symbol: String,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of the session in minutes
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_080))]
    minutes: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SurfaceWord {
    Spot,
    Futures,
}

#[derive(Debug, Args)]
pub(super) struct Recordings {
    /// Recordings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Folder for decoded recordings
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Data {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Generate(arguments) => arguments.run(),
            Self::List(recordings) => recordings.list().map(|_| ()),
            Self::Verify(files) => {
                let recordings = files.list()?;
                let bad: Vec<String> = recordings
                    .iter()
                    .filter(|recording| !recording.notices().is_empty())
                    .map(|recording| recording.path().display().to_string())
                    .collect();
                if bad.is_empty() {
                    Ok(())
                } else {
                    Err(Failure::Failed(format!(
                        "damaged or incomplete: {}",
                        bad.join(", ")
                    )))
                }
            }
        }
    }
}

impl Generate {
    fn run(self) -> Result<(), Failure> {
        let surface = match self.surface {
            SurfaceWord::Spot => Surface::Spot,
            SurfaceWord::Futures => Surface::Futures,
        };
        let name = format!("{surface}:{}", self.symbol);
        let instrument = InstrumentName::parse(&name).ok_or_else(|| {
            Failure::Usage(format!(
                "--symbol {}: must be letters A-Z, digits or _",
                self.symbol
            ))
        })?;
        generate(&self.out, &instrument, self.seed, self.minutes)?;
        print_line(&self.out.display().to_string())
    }
}

/// Writes a session to a temporary file and renames it when it is complete.
pub(super) fn generate(
    file: &Path,
    instrument: &InstrumentName,
    seed: u64,
    minutes: u32,
) -> Result<(), Failure> {
    let session = SyntheticSession {
        minutes,
        ..SyntheticSession::new(instrument.surface, &instrument.symbol, seed)
    };
    let mut aside = file.as_os_str().to_owned();
    aside.push(".partial");
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| session.write(Path::new(&aside)))
        .and_then(|_| std::fs::rename(&aside, file))
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", file.display())))
}

impl Recordings {
    fn list(&self) -> Result<Vec<Recording>, Failure> {
        let recordings = self.open()?;
        if self.json {
            let surveys: Vec<_> = recordings.iter().map(survey_json).collect();
            print_json(&serde_json::Value::from(surveys).to_string())?;
        } else {
            for recording in &recordings {
                print_lines(survey_text(recording).trim_end())?;
            }
        }
        Ok(recordings)
    }

    fn open(&self) -> Result<Vec<Recording>, Failure> {
        let options = recording::Options {
            cache_dir: self.cache.clone(),
            ..Default::default()
        };
        let mut terminal = Terminal::new();
        let mut recordings = Vec::new();
        for file in &self.files {
            if !file.exists() {
                return Err(Failure::Usage(format!(
                    "recording {} does not exist",
                    file.display()
                )));
            }
            let opened = Recording::open(file, &options, &mut |done, of| {
                terminal.show(&format!("decoding {}", file.display()), done, of);
            });
            recordings.push(opened.map_err(Failure::failed)?);
        }
        terminal.clear();
        Ok(recordings)
    }
}

fn survey_json(recording: &Recording) -> serde_json::Value {
    serde_json::json!({
        "file": recording.path().display().to_string(),
        "survey": recording.survey(),
        "notices": recording.notices(),
    })
}

fn survey_text(recording: &Recording) -> String {
    let survey = recording.survey();
    let (first, last) = (Time(survey.first_recv_ns), Time(survey.last_recv_ns));
    let mut text = format!(
        "{}\n  {} to {} UTC, {} events in {}\n",
        outside_text::message(&recording.path().display().to_string()),
        seconds_text(first),
        seconds_text(last),
        grouped(survey.events),
        duration(last.0.saturating_sub(first.0)).replace('\u{202f}', " "),
    );
    for one in &survey.instruments {
        let _ = writeln!(
            text,
            "  {}: {} trades, {} tops of book, {} depth frames, {} mark prices",
            outside_text::name(&one.name()),
            grouped(one.trades),
            grouped(one.tops),
            grouped(one.depths),
            grouped(one.marks),
        );
    }
    for notice in recording.notices() {
        let _ = writeln!(text, "  note: {}", outside_text::message(&notice));
    }
    text
}
