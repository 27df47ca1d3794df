//! Times as text: RFC 3339 in UTC, computed with integers.

use windvane_model::ids::Time;

const SECONDS_PER_DAY: i64 = 86_400;

/// Formats a time as `2024-08-08T23:54:15.088176367Z`.
pub fn utc_text(time: Time) -> String {
    let nanos = time.0.rem_euclid(1_000_000_000);
    format!("{}.{nanos:09}Z", seconds_text(time).replace(' ', "T"))
}

/// Formats a time for people, as `2024-08-08 23:54:15`.
pub fn seconds_text(time: Time) -> String {
    let seconds = time.0.div_euclid(1_000_000_000);
    let (year, month, day) = civil(seconds.div_euclid(SECONDS_PER_DAY));
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Converts days since 1970-01-01 to year, month and day of the proleptic Gregorian calendar.
///
/// It counts years from 1 March of year 0, so that the leap day is the last day of its year. 400
/// years have 146,097 days.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Parses `2024-08-08`, `2024-08-08T23:54` or `2024-08-08T23:54:15`. The `T` may be a space, and a
/// `Z` may follow.
pub fn parse(text: &str) -> Option<Time> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, by: char| -> Option<Vec<i64>> {
        text.split(by)
            .map(|part| {
                part.bytes()
                    .all(|b| b.is_ascii_digit())
                    .then(|| part.parse().ok())?
            })
            .collect()
    };
    let (date, clock) = (numbers(date, '-')?, numbers(clock, ':')?);
    let [year, month, day] = date.as_slice() else {
        return None;
    };
    let (hour, minute, second) = match clock.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    if !(1970..=2261).contains(year) || !(1..=12).contains(month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Start with a day that is never after the first day of the year, then count up.
    let mut first = (year - 1970) * 365;
    while civil(first) < (*year, *month, 1) {
        first += 1;
    }
    let whole = first + day - 1;
    (civil(whole) == (*year, *month, *day)).then(|| {
        let seconds = whole * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        Time(seconds * 1_000_000_000)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_utc() {
        let cases = [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (1_723_161_255_088_176_367, "2024-08-08T23:54:15.088176367Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (4_107_542_399_000_000_000, "2100-02-28T23:59:59.000000000Z"),
            (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
        ];
        for (ns, expected) in cases {
            assert_eq!(utc_text(Time(ns)), expected);
        }
        assert_eq!(
            seconds_text(Time(1_723_161_255_088_176_367)),
            "2024-08-08 23:54:15"
        );
    }

    #[test]
    fn valid_times_are_parsed() {
        let day = Time(1_723_075_200_000_000_000);
        assert_eq!(parse("2024-08-08"), Some(day));
        assert_eq!(parse("2024-08-08T00:01"), Some(day.plus_ms(60_000)));
        assert_eq!(
            parse("2024-02-29 00:00:01Z").map(seconds_text).unwrap(),
            "2024-02-29 00:00:01"
        );
        for wrong in [
            "2023-02-29",
            "2024-13-01",
            "2024-08",
            "8",
            "2024-08-08T25:00",
            "-1-1-1",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
