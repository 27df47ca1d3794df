//! Kline intervals and their calendar (docs/interface/market-data.md#klines): when a bar opens and
//! closes, in UTC.

/// A kline interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interval {
    /// `1m`
    M1,
    /// `3m`
    M3,
    /// `5m`
    M5,
    /// `15m`
    M15,
    /// `30m`
    M30,
    /// `1h`
    H1,
    /// `2h`
    H2,
    /// `4h`
    H4,
    /// `6h`
    H6,
    /// `8h`
    H8,
    /// `12h`
    H12,
    /// `1d`
    D1,
    /// `3d`: counted from the epoch.
    D3,
    /// `1w`: from Monday.
    W1,
    /// `1M`: from the first of the month.
    Month,
}

/// Milliseconds of a minute.
pub const MINUTE_MS: i64 = 60_000;
/// Milliseconds of an hour.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// Milliseconds of a day.
pub const DAY_MS: i64 = 24 * HOUR_MS;

impl Interval {
    /// All intervals, shortest first.
    pub const ALL: [Self; 15] = [
        Self::M1,
        Self::M3,
        Self::M5,
        Self::M15,
        Self::M30,
        Self::H1,
        Self::H2,
        Self::H4,
        Self::H6,
        Self::H8,
        Self::H12,
        Self::D1,
        Self::D3,
        Self::W1,
        Self::Month,
    ];

    /// The venue's name of the interval.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::M1 => "1m",
            Self::M3 => "3m",
            Self::M5 => "5m",
            Self::M15 => "15m",
            Self::M30 => "30m",
            Self::H1 => "1h",
            Self::H2 => "2h",
            Self::H4 => "4h",
            Self::H6 => "6h",
            Self::H8 => "8h",
            Self::H12 => "12h",
            Self::D1 => "1d",
            Self::D3 => "3d",
            Self::W1 => "1w",
            Self::Month => "1M",
        }
    }

    /// The interval with this name. Case matters: `1m` is a minute, `1M` a month.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|i| i.as_str() == text)
    }

    const fn fixed_ms(self) -> Option<i64> {
        Some(match self {
            Self::M1 => MINUTE_MS,
            Self::M3 => 3 * MINUTE_MS,
            Self::M5 => 5 * MINUTE_MS,
            Self::M15 => 15 * MINUTE_MS,
            Self::M30 => 30 * MINUTE_MS,
            Self::H1 => HOUR_MS,
            Self::H2 => 2 * HOUR_MS,
            Self::H4 => 4 * HOUR_MS,
            Self::H6 => 6 * HOUR_MS,
            Self::H8 => 8 * HOUR_MS,
            Self::H12 => 12 * HOUR_MS,
            Self::D1 => DAY_MS,
            Self::D3 => 3 * DAY_MS,
            Self::W1 => 7 * DAY_MS,
            Self::Month => return None,
        })
    }

    /// Open time of the bar that contains this time, ms.
    pub const fn open_ms(self, time_ms: i64) -> i64 {
        let Some(length) = self.fixed_ms() else {
            let (year, month) = year_and_month(time_ms.div_euclid(DAY_MS));
            return first_day(year, month) * DAY_MS;
        };
        // 1970-01-01 was a Thursday, so the first Monday is day 4.
        let shift = if matches!(self, Self::W1) {
            4 * DAY_MS
        } else {
            0
        };
        (time_ms - shift).div_euclid(length) * length + shift
    }

    /// Open time of the bar after the one that opens at `open_ms`, in ms.
    pub const fn next_ms(self, open_ms: i64) -> i64 {
        if let Some(length) = self.fixed_ms() {
            return open_ms + length;
        }
        let (year, month) = year_and_month(open_ms.div_euclid(DAY_MS));
        if month == 12 {
            first_day(year + 1, 1) * DAY_MS
        } else {
            first_day(year, month + 1) * DAY_MS
        }
    }
}

/// Days from the epoch to the first day of a month (proleptic Gregorian calendar).
///
/// The year starts in March here, so that the leap day is the last day of a year.
const fn first_day(year: i64, month: i64) -> i64 {
    let (y, m) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 - 719_468
}

/// Year and month of a day counted from the epoch.
const fn year_and_month(day: i64) -> (i64, i64) {
    // Estimate with the mean length of a month, then correct by at most a step or two.
    let months = day * 4800 / 146_097;
    let mut year = 1970 + months.div_euclid(12);
    let mut month = months.rem_euclid(12) + 1;
    while first_day(year, month) > day {
        (year, month) = if month == 1 {
            (year - 1, 12)
        } else {
            (year, month - 1)
        };
    }
    loop {
        let (next_year, next_month) = if month == 12 {
            (year + 1, 1)
        } else {
            (year, month + 1)
        };
        if first_day(next_year, next_month) > day {
            return (year, month);
        }
        (year, month) = (next_year, next_month);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weeks_open_on_monday_and_months_on_the_first() {
        // 2024-08-08 23:54:13 UTC, a Thursday.
        let time = 1_723_161_253_000;
        let opens = |interval: Interval| interval.open_ms(time);
        assert_eq!(opens(Interval::M1), 1_723_161_240_000);
        assert_eq!(opens(Interval::H4), 1_723_147_200_000);
        assert_eq!(opens(Interval::D1), 1_723_075_200_000);
        assert_eq!(opens(Interval::W1), 1_722_816_000_000);
        assert_eq!(opens(Interval::Month), 1_722_470_400_000);
        assert_eq!(
            Interval::Month.next_ms(1_722_470_400_000),
            1_725_148_800_000
        );
        // February of a leap year has 29 days, and December is followed by January of the next
        // year.
        assert_eq!(
            Interval::Month.next_ms(1_706_745_600_000),
            1_709_251_200_000
        );
        assert_eq!(
            Interval::Month.next_ms(1_733_011_200_000),
            1_735_689_600_000
        );
    }

    #[test]
    fn words_are_case_sensitive() {
        assert_eq!(Interval::from_text("1m"), Some(Interval::M1));
        assert_eq!(Interval::from_text("1M"), Some(Interval::Month));
        assert_eq!(Interval::from_text("1H"), None);
        assert_eq!(Interval::from_text("1s"), None);
    }

    proptest! {
        #[test]
        fn every_time_lies_in_exactly_one_bar(time in 0_i64..4_102_444_800_000) {
            for interval in Interval::ALL {
                let open = interval.open_ms(time);
                let next = interval.next_ms(open);
                prop_assert!(open <= time && time < next, "{interval:?} {open} {time} {next}");
                prop_assert_eq!(interval.open_ms(next), next);
                prop_assert_eq!(interval.open_ms(next - 1), open);
            }
        }
    }
}
