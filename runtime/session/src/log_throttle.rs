//! Limits log lines of a problem that repeats: one line when it begins, at most one a minute with
//! the number of repetitions, and one when it ends.

use windvane_model::Time;

/// Minimum time between two lines. A problem that did not occur for this long is over.
const AGAIN_MS: i64 = 60_000;

/// A problem that may repeat.
#[derive(Debug, Default)]
pub struct LogThrottle(Option<Episode>);

#[derive(Debug)]
struct Episode {
    seen: Time,
    written: Time,
    count: u64,
    /// Occurrences since the last line.
    kept_back: u64,
}

impl LogThrottle {
    /// The problem occurred again. If a line is due, returns the number of occurrences since the
    /// last line.
    pub fn again(&mut self, now: Time) -> Option<u64> {
        let Some(episode) = self.0.as_mut().filter(|it| now < it.seen.plus_ms(AGAIN_MS)) else {
            self.0 = Some(Episode {
                seen: now,
                written: now,
                count: 1,
                kept_back: 0,
            });
            return Some(0);
        };
        episode.seen = now;
        episode.count += 1;
        episode.kept_back += 1;
        if now < episode.written.plus_ms(AGAIN_MS) {
            return None;
        }
        episode.written = now;
        Some(std::mem::take(&mut episode.kept_back))
    }

    /// The problem is over. Returns the number of occurrences if there was more than one.
    pub fn over(&mut self) -> Option<u64> {
        let episode = self.0.take()?;
        (episode.count > 1).then_some(episode.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_problem_is_logged_once_a_minute_and_at_its_end() {
        let mut quiet = LogThrottle::default();
        let mut again = |second: i64| quiet.again(Time::from_millis(second * 1_000));
        let written: Vec<_> = (0..130).step_by(2).filter_map(&mut again).collect();
        assert_eq!(written, [0, 30, 30]);
        assert_eq!(quiet.over(), Some(65));
        assert_eq!(quiet.over(), None);
    }

    #[test]
    fn a_single_problem_is_not_logged_at_its_end() {
        let began = Time::from_millis(1_000);
        let mut quiet = LogThrottle::default();
        assert_eq!(quiet.again(began), Some(0));
        assert_eq!(quiet.over(), None);
        assert_eq!(quiet.again(began), Some(0));
        let later = began.plus_ms(AGAIN_MS);
        assert_eq!(
            quiet.again(later),
            Some(0),
            "the first problem is over, so this is a new one"
        );
    }
}
