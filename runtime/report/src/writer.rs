//! Writes the files of a run: buffered, in constant memory, under temporary names until they are
//! complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use windvane_model::decimal::Amount;
use windvane_model::ids::Time;

use super::curve::EquityCurve;
use super::rows::{EQUITY_HEADER, EquityRow, FILLS_HEADER, FillRow, ORDERS_HEADER, OrderRow};
use super::summary::Summary;
use crate::html::{self, Charts};

/// A buffer longer than this is written to its file.
const BUFFER_BYTES: usize = 64 * 1024;
/// This file is written last, so a folder that contains it is complete.
const SUMMARY_FILE: &str = "summary.json";
const REPORT_FILE: &str = "report.html";
/// Extension of a file that is not complete yet.
const PARTIAL: &str = "partial";

/// A result file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}; check that the folder is writable and the disk is not full",
    path = .path.display())]
pub struct ResultError {
    /// The file.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: io::Error,
}

impl ResultError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}

/// Receives the rows of a run and writes `fills.csv`, `orders.csv`, `equity.csv`, `report.html` and
/// `summary.json` into one folder.
///
/// The files get their names when the run is finished, `summary.json` last. So a folder with a
/// summary is complete. A run that is killed leaves only files that end in `.partial`, and dropping
/// the writer removes them. [`ResultWriter::finish`] returns the first error of any row.
#[derive(Debug)]
pub struct ResultWriter {
    files: Option<Files>,
    curve: EquityCurve,
}

#[derive(Debug)]
struct Files {
    dir: PathBuf,
    fills: Table,
    orders: Table,
    equity: Table,
    charts: Charts,
}

impl ResultWriter {
    /// Creates the folder and opens the files. `instruments` are the instrument names in the order
    /// of the configuration.
    pub fn create(dir: &Path, instruments: &[String]) -> Result<Self, ResultError> {
        fs::create_dir_all(dir).map_err(ResultError::at(dir))?;
        Ok(Self {
            files: Some(Files {
                dir: dir.to_owned(),
                fills: Table::create(dir, "fills.csv", FILLS_HEADER)?,
                orders: Table::create(dir, "orders.csv", ORDERS_HEADER)?,
                equity: Table::create(dir, "equity.csv", EQUITY_HEADER)?,
                charts: Charts::new(instruments),
            }),
            curve: EquityCurve::default(),
        })
    }

    /// A writer that writes no files, for a run that needs only its summary.
    pub fn discard() -> Self {
        Self {
            files: None,
            curve: EquityCurve::default(),
        }
    }

    /// Writes a fill.
    pub fn fill(&mut self, row: &FillRow<'_>) {
        if let Some(files) = &mut self.files {
            files.fills.row(|out| row.write(out));
            files.charts.fill(row);
        }
    }

    /// Writes an order in its final state.
    pub fn order(&mut self, row: &OrderRow<'_>) {
        if let Some(files) = &mut self.files {
            files.orders.row(|out| row.write(out));
        }
    }

    /// Adds the account at the end of a virtual second. Call it once per second.
    pub fn equity(&mut self, row: &EquityRow) {
        self.curve.push(row.equity);
        if let Some(files) = &mut self.files {
            let drawdown = self.curve.drawdown();
            files.equity.row(|out| row.write(drawdown, out));
            files.charts.equity(row, drawdown);
        }
    }

    /// Adds the mid price of an instrument to the report. Call it once per virtual second.
    /// `instrument` is its index in the list of [`ResultWriter::create`].
    pub fn price(&mut self, time: Time, instrument: usize, mid: Amount) {
        if let Some(files) = &mut self.files {
            files.charts.price(time, instrument, mid);
        }
    }

    /// Adds a point `value / 10^scale` of a strategy's own series to the report.
    pub fn plot(&mut self, time: Time, strategy: &str, series: &str, value: i64, scale: u32) {
        if let Some(files) = &mut self.files {
            files.charts.plot(time, strategy, series, value, scale);
        }
    }

    /// The equity curve so far, for the summary's drawdown and Sharpe ratio.
    pub fn curve(&self) -> &EquityCurve {
        &self.curve
    }

    /// Writes the report and the summary, and gives all files their final names.
    pub fn finish(self, summary: &Summary) -> Result<(), ResultError> {
        let Some(files) = self.files else {
            return Ok(());
        };
        let Files {
            dir,
            fills,
            orders,
            equity,
            charts,
        } = files;
        let summary_path = dir.join(SUMMARY_FILE);
        let json = summary
            .to_json()
            .map_err(io::Error::other)
            .map_err(ResultError::at(&summary_path))?;
        let report = html::render(summary, &charts);
        let report = Table::create(&dir, REPORT_FILE, &report)?;
        let json = Table::create(&dir, SUMMARY_FILE, &(json + "\n"))?;
        // A summary of an earlier run must not make this run's files look complete.
        match fs::remove_file(&summary_path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ResultError::at(&summary_path)(error));
            }
            _ => {}
        }
        for table in [fills, orders, equity, report, json] {
            table.finish()?;
        }
        Ok(())
    }
}

/// One file under its temporary name.
#[derive(Debug)]
struct Table {
    path: PathBuf,
    aside: PathBuf,
    file: File,
    buffer: Vec<u8>,
    error: Option<io::Error>,
}

impl Table {
    fn create(dir: &Path, name: &str, head: &str) -> Result<Self, ResultError> {
        let aside = dir.join(format!("{name}.{PARTIAL}"));
        let file = File::create(&aside).map_err(ResultError::at(&aside))?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + 4096);
        buffer.extend_from_slice(head.as_bytes());
        Ok(Self {
            path: dir.join(name),
            aside,
            file,
            buffer,
            error: None,
        })
    }

    fn row(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.buffer);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.file.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    fn finish(mut self) -> Result<(), ResultError> {
        self.flush();
        if let Some(error) = self.error.take() {
            return Err(ResultError::at(&self.aside)(error));
        }
        fs::rename(&self.aside, &self.path).map_err(ResultError::at(&self.path))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // After `finish` the temporary file is already renamed. Otherwise an error could not be
        // reported.
        let _ = fs::remove_file(&self.aside);
    }
}
