//! The log lines of a strategy. A line that repeats, such as the rejection of an order that is
//! tried every second, is written once a minute with the number of its repetitions.

use std::collections::VecDeque;

use windvane_host::{LogLevel, LogLine};
use windvane_model::Time;

/// A line that repeats is written again after this time.
const QUIET_MS: i64 = 60_000;
/// How many different lines are remembered. A strategy may quote both sides of several instruments.
const REMEMBERED_MAX: usize = 16;

/// The last lines of a strategy.
#[derive(Debug, Default)]
pub struct RecentLines(VecDeque<Recent>);

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
                Some(0) => write(name, now, line.level, &line.message),
                Some(kept_back) => {
                    let message = format!(
                        "{} ({kept_back} more times since the last line)",
                        line.message
                    );
                    write(name, now, line.level, &message);
                }
                None => {}
            }
        }
    }

    /// `None` if the line is suppressed, else how often it was suppressed before.
    fn admit(&mut self, now: Time, line: &LogLine) -> Option<u64> {
        let same =
            |recent: &&mut Recent| recent.level == line.level && recent.message == line.message;
        if let Some(recent) = self.0.iter_mut().find(same) {
            if now < recent.written.plus_ms(QUIET_MS) {
                recent.kept_back += 1;
                return None;
            }
            recent.written = now;
            return Some(std::mem::take(&mut recent.kept_back));
        }
        if self.0.len() >= REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Recent {
            level: line.level,
            message: line.message.clone(),
            written: now,
            kept_back: 0,
        });
        Some(0)
    }
}

/// Writes every log line of a strategy.
pub fn show_lines(name: &str, now: Time, lines: &[LogLine]) {
    for line in lines {
        write(name, now, line.level, &line.message);
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
        assert_eq!(lines.0.len(), REMEMBERED_MAX);
    }
}
