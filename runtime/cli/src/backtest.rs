//! `windvane backtest`.

use std::path::{Path, PathBuf};

use clap::Args;
use windvane_model::record::Recorder;

use super::Failure;
use super::printing::{print_json, print_lines};
use super::progress::Terminal;
use windvane_backtest::{self as backtest, BacktestError, Options, Progress};
use windvane_config::Config;
use windvane_report::{Summary, summary_text};

#[derive(Debug, Args)]
pub(super) struct Backtest {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Recording to use instead of those in the configuration; can be repeated
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// Folder for summary.json, fills.csv, orders.csv, equity.csv and report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print only the summary, as JSON
    #[arg(long)]
    json: bool,
    /// Override a setting, such as strategy.0.params.qty=0.02; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder for decoded recordings
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Backtest {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut config = super::configuration(Some(&self.config), &self.set)?;
        if !self.data.is_empty() {
            config.backtest.data = self.data;
        }
        if self.cache.is_some() {
            config.backtest.cache = self.cache;
        }
        let summary = play(&config, self.out.as_deref())?;
        print_summary(&summary, self.out.as_deref(), self.json)?;
        check_quarantine(&summary)
    }
}

/// Runs the configuration and shows progress on the terminal.
pub(super) fn play(config: &Config, out: Option<&Path>) -> Result<Summary, Failure> {
    let mut terminal = Terminal::new();
    let mut options = Options {
        out: out.map(Path::to_owned),
        progress: &mut |progress| show(&mut terminal, progress),
        recorder: Recorder::new(false),
        block: &mut |_| {},
    };
    let result = backtest::run(config, &mut options);
    terminal.clear();
    result.map_err(|error: BacktestError| {
        if error.is_usage() {
            Failure::usage(error)
        } else {
            Failure::failed(error)
        }
    })
}

fn show(terminal: &mut Terminal, progress: Progress<'_>) {
    match progress {
        Progress::Decoding { file, done, of } => {
            terminal.show(&format!("decoding {}", file.display()), done, of);
        }
        Progress::Running { done, of } => terminal.show("playing", done, of),
        Progress::Building { step } => terminal.line(step),
        Progress::Notice(sentence) => terminal.line(&format!("note: {sentence}")),
    }
}

/// Fails if a strategy was put into quarantine, because the figures then do not show the strategy's
/// result.
pub(super) fn check_quarantine(summary: &Summary) -> Result<(), Failure> {
    let Some(first) = summary.quarantined.first() else {
        return Ok(());
    };
    let others = match summary.quarantined.len() {
        1 => String::new(),
        many => format!(", and {} more strategies were quarantined", many - 1),
    };
    Err(Failure::Failed(format!(
        "{first}{others}: the figures do not show the strategy's result; \
         correct the strategy and run again"
    )))
}

pub(super) fn print_summary(
    summary: &Summary,
    out: Option<&Path>,
    json: bool,
) -> Result<(), Failure> {
    if json {
        return print_json(&summary.to_json().map_err(Failure::failed)?);
    }
    let place = match out {
        Some(dir) => format!("report: {}", dir.join("report.html").display()),
        None => "pass --out DIR to write the report and the tables of fills, orders and equity"
            .to_owned(),
    };
    print_lines(&format!("{}\n{place}", summary_text(summary)))
}
