//! Output of a strategy for people: log lines, and points of named series. It has no other effect.

use windvane_model::Time;

/// The log lines and plot points of a strategy since the output was last taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Log lines, in order.
    pub logs: Vec<LogLine>,
    /// Points, in order.
    pub plots: Vec<PlotPoint>,
}

impl Output {
    /// Whether it has no log lines and no points.
    pub const fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.plots.is_empty()
    }
}

/// Level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// Error.
    Error = 1,
    /// Warning.
    Warn = 2,
    /// Information.
    Info = 3,
    /// Debugging.
    Debug = 4,
}

impl LogLevel {
    pub(crate) const fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Error),
            2 => Some(Self::Warn),
            3 => Some(Self::Info),
            4 => Some(Self::Debug),
            _ => None,
        }
    }
}

/// A log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Time of the event.
    pub time: Time,
    /// Level.
    pub level: LogLevel,
    /// Text; invalid UTF-8 is replaced.
    pub message: String,
}

/// A point of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlotPoint {
    /// Time of the event.
    pub time: Time,
    /// Name of the series.
    pub series: String,
    /// The value is `value / 10^scale`.
    pub value: i64,
    /// Decimal places, at most 18.
    pub scale: u32,
}
