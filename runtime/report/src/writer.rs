//! Writes the files of a run as it goes: buffered, in constant memory, aside until they are whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use windvane_model::decimal::Amount;
use windvane_model::ids::Time;

use super::curve::EquityCurve;
use super::rows::{EQUITY_HEADER, EquityRow, FILLS_HEADER, FillRow, ORDERS_HEADER, OrderRow};
use super::summary::Summary;
use crate::html::{self, Charts};

/// A buffer is written out when it is longer than this.
const BUFFER_BYTES: usize = 64 * 1024;
/// The file that is written last: a folder that has it is whole.
const SUMMARY_FILE: &str = "summary.json";
const REPORT_FILE: &str = "report.html";
/// Ending of a file that is not whole yet.
const PARTIAL: &str = "partial";

/// The result files could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}; check that the folder is writable and the disk not full",
    path = .path.display())]
pub struct ResultError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl ResultError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}

/// Takes the rows of a run and writes `fills.csv`, `orders.csv`, `equity.csv`, `report.html` and
/// `summary.json` into one folder.
///
/// Files get their names when the run is finished, `summary.json` last, so that a folder with a
/// summary is whole; a run that is cut leaves only files that end in `.partial`, and a writer
/// that is dropped removes them. The first error of a row is kept and answered by
/// [`ResultWriter::finish`].
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
    /// Makes the folder and opens the files. `instruments` are the names of the configuration, in
    /// its order.
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

    /// Writes nothing: for a run that only wants its summary.
    pub fn discard() -> Self {
        Self {
            files: None,
            curve: EquityCurve::default(),
        }
    }

    /// A fill.
    pub fn fill(&mut self, row: &FillRow<'_>) {
        if let Some(files) = &mut self.files {
            files.fills.row(|out| row.write(out));
            files.charts.fill(row);
        }
    }

    /// An order in its last state.
    pub fn order(&mut self, row: &OrderRow<'_>) {
        if let Some(files) = &mut self.files {
            files.orders.row(|out| row.write(out));
        }
    }

    /// The account at the end of a virtual second; called once for each.
    pub fn equity(&mut self, row: &EquityRow) {
        self.curve.push(row.equity);
        if let Some(files) = &mut self.files {
            let drawdown = self.curve.drawdown();
            files.equity.row(|out| row.write(drawdown, out));
            files.charts.equity(row, drawdown);
        }
    }

    /// The mid price of an instrument for the report, once a virtual second. `instrument` is its
    /// index in the list of [`ResultWriter::create`].
    pub fn price(&mut self, time: Time, instrument: usize, mid: Amount) {
        if let Some(files) = &mut self.files {
            files.charts.price(time, instrument, mid);
        }
    }

    /// A point `value / 10^scale` of a strategy's own series.
    pub fn plot(&mut self, time: Time, strategy: &str, series: &str, value: i64, scale: u32) {
        if let Some(files) = &mut self.files {
            files.charts.plot(time, strategy, series, value, scale);
        }
    }

    /// The equity curve so far: the summary's drawdown and Sharpe ratio.
    pub fn curve(&self) -> &EquityCurve {
        &self.curve
    }

    /// Writes report and summary, and gives all files their names.
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
        // An earlier run's summary must not vouch for this run's files.
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

/// One file, written aside.
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
        // After `finish` the name is gone already, and otherwise nobody could be told.
        let _ = fs::remove_file(&self.aside);
    }
}
