//! Log lines of a trouble that goes on: one when it begins, then at most one a minute with the number of
//! its repetitions, and one when it ends.

use windvane_model::Time;

/// From one line to the next. A trouble that was not seen for so long is over.
const AGAIN_MS: i64 = 60_000;

/// A trouble that may go on.
#[derive(Debug, Default)]
pub struct Quiet(Option<Episode>);

#[derive(Debug)]
struct Episode {
    seen: Time,
    written: Time,
    count: u64,
    /// How often it came since the last line.
    kept_back: u64,
}

impl Quiet {
    /// It came once more. Answers how often it came since the last line, where a line is due.
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

    /// It is over. Answers how often it came, where lines were kept back.
    pub fn over(&mut self) -> Option<u64> {
        let episode = self.0.take()?;
        (episode.count > 1).then_some(episode.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_that_goes_on_is_one_line_a_minute_and_one_at_its_end() {
        let mut quiet = Quiet::default();
        let mut again = |second: i64| quiet.again(Time::from_millis(second * 1_000));
        let written: Vec<_> = (0..130).step_by(2).filter_map(&mut again).collect();
        assert_eq!(written, [0, 30, 30]);
        assert_eq!(quiet.over(), Some(65));
        assert_eq!(quiet.over(), None);
    }

    #[test]
    fn a_trouble_that_came_once_needs_no_line_at_its_end() {
        let began = Time::from_millis(1_000);
        let mut quiet = Quiet::default();
        assert_eq!(quiet.again(began), Some(0));
        assert_eq!(quiet.over(), None);
        assert_eq!(quiet.again(began), Some(0));
        let later = began.plus_ms(AGAIN_MS);
        assert_eq!(quiet.again(later), Some(0), "another one, an hour later");
    }
}
