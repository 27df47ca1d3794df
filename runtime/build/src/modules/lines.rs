//! The log lines of a strategy. A line that repeats, such as the rejection of an order that is
//! tried every second, is written once a minute with the number of its repetitions. A strategy that
//! writes more than its share of the log loses lines; the number of lost lines is written.

use std::collections::VecDeque;

use windvane_host::{LogLevel, LogLine};
use windvane_model::Time;
use windvane_session::{Budget, Rate};

/// A line that repeats is written again after this time.
const QUIET_MS: i64 = 60_000;
/// How many different lines are remembered. A strategy may quote both sides of several instruments.
const REMEMBERED_MAX: usize = 16;

/// What the lines of one strategy may take of a live log.
const LIVE: Rate = Rate {
    per_second: 64 << 10,
    burst: 1 << 20,
};
/// What the lines of one strategy may take of the log of a backtest, in all. Its time says nothing
/// about the time in which the lines are written.
const BACKTEST: Rate = Rate {
    per_second: 0,
    burst: 64 << 20,
};
/// Size of a log line without its message: time, level and name.
const LINE_BYTES: usize = 80;
/// In a live run, lost lines are reported again after this time. In a backtest, they are reported
/// again at its end.
const LOST_AGAIN_MS: i64 = 10_000;

/// The last lines of a strategy in a live run, and its share of the log.
#[derive(Debug)]
pub struct RecentLines {
    recent: VecDeque<Recent>,
    share: LogShare,
}

impl Default for RecentLines {
    fn default() -> Self {
        Self {
            recent: VecDeque::new(),
            share: LogShare::new(LIVE, Some(LOST_AGAIN_MS)),
        }
    }
}

/// All lines of a strategy in a backtest, and its share of the log.
#[derive(Debug)]
pub struct AllLines(LogShare);

impl Default for AllLines {
    fn default() -> Self {
        Self(LogShare::new(BACKTEST, None))
    }
}

/// What is left of a strategy's share of the log, and the lines that did not fit.
#[derive(Debug)]
struct LogShare {
    budget: Budget,
    lost: Lost,
    /// The time between two reports of lost lines.
    again_ms: Option<i64>,
    /// When lost lines were reported last.
    reported: Option<Time>,
}

/// Lines that were not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lost {
    lines: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Recent {
    level: LogLevel,
    message: String,
    written: Time,
    /// How often the line was suppressed since it was written.
    kept_back: u64,
}

impl RecentLines {
    /// Writes the lines of a callback, except those that were written within the last minute.
    pub fn show(&mut self, name: &str, now: Time, lines: &[LogLine]) {
        for line in lines {
            match self.admit(now, line) {
                Some(0) => self.share.write(name, now, line.level, &line.message),
                Some(kept_back) => {
                    let message = format!(
                        "{} ({kept_back} more times since the last line)",
                        line.message
                    );
                    self.share.write(name, now, line.level, &message);
                }
                None => {}
            }
        }
    }

    /// `None` if the line is suppressed, else how often it was suppressed before.
    fn admit(&mut self, now: Time, line: &LogLine) -> Option<u64> {
        let same =
            |recent: &&mut Recent| recent.level == line.level && recent.message == line.message;
        if let Some(recent) = self.recent.iter_mut().find(same) {
            if now < recent.written.plus_ms(QUIET_MS) {
                recent.kept_back += 1;
                return None;
            }
            recent.written = now;
            return Some(std::mem::take(&mut recent.kept_back));
        }
        if self.recent.len() >= REMEMBERED_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            level: line.level,
            message: line.message.clone(),
            written: now,
            kept_back: 0,
        });
        Some(0)
    }
}

impl AllLines {
    /// Writes the lines of a callback.
    pub fn show(&mut self, name: &str, now: Time, lines: &[LogLine]) {
        for line in lines {
            self.0.write(name, now, line.level, &line.message);
        }
    }

    /// Reports the lines that were lost and not reported yet, at the end of a run.
    pub fn end(&mut self, name: &str, now: Time) {
        self.0.report(name, now);
    }
}

impl LogShare {
    const fn new(rate: Rate, again_ms: Option<i64>) -> Self {
        Self {
            budget: Budget::new(rate),
            again_ms,
            lost: Lost { lines: 0, bytes: 0 },
            reported: None,
        }
    }

    fn write(&mut self, name: &str, now: Time, level: LogLevel, message: &str) {
        let fits = self.take(now, message);
        if self.is_report_due(now) {
            self.report(name, now);
        }
        if fits {
            write(name, now, level, message);
        }
    }

    /// Whether a line fits. Otherwise it counts as lost.
    fn take(&mut self, now: Time, message: &str) -> bool {
        let bytes = message.len() + LINE_BYTES;
        let fits = self.budget.take(now, bytes);
        if !fits {
            self.lost.lines += 1;
            self.lost.bytes += bytes as u64;
        }
        fits
    }

    /// Whether lost lines must be reported now: the first one at once.
    fn is_report_due(&self, now: Time) -> bool {
        let again = |reported: Time| {
            let again_ms = self.again_ms;
            again_ms.is_some_and(|again_ms| now >= reported.plus_ms(again_ms))
        };
        self.lost.lines > 0 && self.reported.is_none_or(again)
    }

    fn report(&mut self, name: &str, now: Time) {
        let Lost { lines, bytes } = std::mem::take(&mut self.lost);
        if lines > 0 {
            self.reported = Some(now);
            tracing::warn!(
                strategy = %name,
                lines,
                bytes,
                "log lines of the strategy were lost, because it writes too many"
            );
        }
    }
}

fn write(name: &str, now: Time, level: LogLevel, message: &str) {
    let time_ns = now.0;
    match level {
        LogLevel::Error => tracing::error!(target: "strategy", %name, time_ns, "{message}"),
        LogLevel::Warn => tracing::warn!(target: "strategy", %name, time_ns, "{message}"),
        LogLevel::Info => tracing::info!(target: "strategy", %name, time_ns, "{message}"),
        LogLevel::Debug => tracing::debug!(target: "strategy", %name, time_ns, "{message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> LogLine {
        LogLine {
            time: Time::default(),
            level: LogLevel::Warn,
            message: message.to_owned(),
        }
    }

    #[test]
    fn a_repeated_line_is_written_once_a_minute_with_its_number() {
        let mut lines = RecentLines::default();
        let at = |second: i64| Time::default().plus_ms(second * 1_000);
        let written: Vec<_> = (0..130)
            .filter_map(|second| lines.admit(at(second), &line("Buy quote refused")))
            .collect();
        assert_eq!(written, [0, 59, 59]);
    }

    #[test]
    fn lines_that_alternate_are_each_kept_back() {
        let mut lines = RecentLines::default();
        let now = Time::default();
        let mut admit = |message: &str| lines.admit(now, &line(message));
        assert_eq!(admit("Buy quote refused"), Some(0));
        assert_eq!(admit("Sell quote refused"), Some(0));
        assert_eq!(admit("Buy quote refused"), None);
        assert_eq!(admit("Sell quote refused"), None);
    }

    #[test]
    fn a_strategy_that_writes_many_lines_uses_no_more_memory() {
        let mut lines = RecentLines::default();
        for number in 0..1_000 {
            let message = number.to_string();
            assert_eq!(lines.admit(Time::default(), &line(&message)), Some(0));
        }
        assert_eq!(lines.recent.len(), REMEMBERED_MAX);
    }

    #[test]
    fn a_flood_of_lines_is_cut_to_the_share_and_the_loss_is_counted() {
        let mut share = LogShare::new(LIVE, Some(LOST_AGAIN_MS));
        let message = "x".repeat(1_000);
        let start = Time::from_millis(1_700_000_000_000);
        let (mut written, mut reports, mut lost) = (0, 0, 0);
        // 166 MB in 8 s were seen.
        for line in 0..160_000 {
            let now = start.plus_ms(line / 20);
            written += u64::from(share.take(now, &message));
            if share.is_report_due(now) {
                lost += share.lost.lines;
                share.report("mm", now);
                reports += 1;
            }
        }
        lost += share.lost.lines;
        assert_eq!(written + lost, 160_000);
        let bytes = written * 1_080;
        assert!(bytes < (1 << 20) + 8 * (64 << 10) + 2_160, "{bytes}");
        assert_eq!(reports, 1, "one line for ten seconds");
    }

    #[test]
    fn a_quiet_strategy_loses_no_line() {
        let mut share = LogShare::new(LIVE, Some(LOST_AGAIN_MS));
        let start = Time::from_millis(1_700_000_000_000);
        for line in 0..10_000 {
            assert!(share.take(start.plus_ms(line * 10), &"x".repeat(500)));
        }
        assert_eq!(share.lost, Lost::default());
    }
}
