//! The points that the documents leave open, and the venue's choice for each.
//!
//! The table of all points is [`table`]; `docs/open-points.md` explains each of them. A choice is
//! made by the configuration, by `POST /choices` on the control port, or by the settings of the server.

mod table;

use std::collections::BTreeMap;

use windvane_model::Time;

pub use table::*;

/// A point that the documents leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPoint {
    /// Its name in configurations.
    pub name: &'static str,
    /// The anchors of the interface pages that it concerns.
    pub section: &'static str,
    /// The behaviour that it decides.
    pub about: &'static str,
    /// The permitted values; the first is the default.
    pub values: &'static [&'static str],
}

/// A point in code: its index in the table and its values.
pub trait Point: Copy + 'static {
    /// Its index in [`OpenPoint::ALL`].
    const PLACE: usize;
    /// Its values, in the order of the table.
    const VALUES: &'static [Self];
}

/// Declares the points: an enumeration for each, and the table of all.
macro_rules! open_points {
    ($($point:ident $name:literal, $section:literal, $about:literal {
        $($value:ident = $word:literal),+ $(,)?
    })*) => {
        /// The index of each point.
        #[derive(Clone, Copy)]
        enum Place { $($point),* }

        $(
            #[doc = $about]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $point { $(#[doc = concat!("`", $word, "`")] $value),+ }

            impl super::Point for $point {
                const PLACE: usize = Place::$point as usize;
                const VALUES: &'static [Self] = &[$(Self::$value),+];
            }
        )*

        impl super::OpenPoint {
            /// Every point, in the order of the page.
            pub const ALL: &'static [Self] = &[$(Self {
                name: $name,
                section: $section,
                about: $about,
                values: &[$($word),+],
            }),*];
        }
    };
}
use open_points;

/// An invalid choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The point does not exist.
    #[error("{0} is not an open point; docs/open-points.md lists the points and their values")]
    Name(String),
    /// The point does not have this value.
    #[error("{name} = {value}: must be {}", .values.join(" or "))]
    Value {
        /// The point.
        name: &'static str,
        /// The requested value.
        value: String,
        /// The permitted values.
        values: &'static [&'static str],
    },
}

/// One value for each point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices(Vec<u8>);

impl Default for Choices {
    /// The strict interpretation of the documents.
    fn default() -> Self {
        Self(vec![0; OpenPoint::ALL.len()])
    }
}

impl Choices {
    /// The defaults, with other values for these points.
    ///
    /// # Errors
    /// A point or a value does not exist.
    pub fn new<'a>(
        chosen: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ChoiceError> {
        let mut choices = Self::default();
        for (name, value) in chosen {
            choices.set(name, value)?;
        }
        Ok(choices)
    }

    /// Sets the value of a point.
    ///
    /// # Errors
    /// The point or the value does not exist.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ChoiceError> {
        let place = OpenPoint::ALL.iter().position(|point| point.name == name);
        let place = place.ok_or_else(|| ChoiceError::Name(name.to_owned()))?;
        let OpenPoint { name, values, .. } = OpenPoint::ALL[place];
        let chosen = values.iter().position(|known| *known == value);
        let chosen = chosen.ok_or_else(|| ChoiceError::Value {
            name,
            value: value.to_owned(),
            values,
        })?;
        self.0[place] = chosen as u8;
        Ok(())
    }

    /// Every point and its value.
    pub fn all(&self) -> impl Iterator<Item = (&'static OpenPoint, &'static str)> + '_ {
        let values = OpenPoint::ALL.iter().zip(&self.0);
        values.map(|(point, chosen)| (point, point.values[usize::from(*chosen)]))
    }

    /// The points that differ from the defaults, by name.
    pub fn changed(&self) -> BTreeMap<&'static str, &'static str> {
        let all = self
            .all()
            .filter(|(point, value)| point.values[0] != *value);
        all.map(|(point, value)| (point.name, value)).collect()
    }

    /// The venue's time when a client's clock shows `local`. The whole venue uses its own time.
    pub fn venue_time(&self, local: Time) -> Time {
        local.plus_ms(match self.of::<ClockOffset>() {
            ClockOffset::Exact => 0,
            ClockOffset::Ahead => 3_000,
            ClockOffset::Behind => -3_000,
        })
    }

    /// Whether the responses of any route lag behind the stream.
    pub fn any_lag(&self) -> bool {
        self.lag_ms::<AccountLag>() > 0
            || self.lag_ms::<PositionLag>() > 0
            || self.lag_ms::<OpenOrdersLag>() > 0
            || self.lag_ms::<QueryLag>() > 0
            || self.lag_ms::<InfoLag>() > 0
    }

    /// The lag of a point with the values 0s, 1s, 5s and 10s, in milliseconds.
    pub fn lag_ms<P: Point>(&self) -> i64 {
        let lags = [0, 1_000, 5_000, 10_000];
        let chosen = usize::from(self.0[P::PLACE]);
        lags.get(chosen).copied().unwrap_or_default()
    }

    /// The value of a point.
    #[inline]
    pub fn of<P: Point>(&self) -> P {
        P::VALUES[usize::from(self.0[P::PLACE])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of `docs/open-points.md` that have a switch: name, section and values.
    fn rows_of_the_page() -> Vec<(String, String, Vec<String>)> {
        let page = include_str!("../../../../docs/open-points.md");
        let mut rows = Vec::new();
        let (tables, _) = page.split_once("## Points that cannot").unwrap();
        for line in tables.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [name, section, values, _, _, switch] = cells[..] else {
                panic!("a row must have six cells: {line}");
            };
            let switch = switch.trim_end_matches('|').trim();
            assert!(["yes", "no"].contains(&switch), "{line}");
            if switch != "no" {
                // Every second part is the text between backticks.
                let values = values.split('`').skip(1).step_by(2).map(str::to_owned);
                let name = name.trim_matches('`').to_owned();
                rows.push((name, anchors(section), values.collect()));
            }
        }
        rows
    }

    /// The targets of the links in a cell, as paths from the root of the repository.
    fn anchors(cell: &str) -> String {
        let targets = cell.split("](").skip(1);
        let targets = targets.map(|link| link.split_once(')').unwrap().0);
        let targets: Vec<_> = targets.map(|target| format!("docs/{target}")).collect();
        targets.join("; ")
    }

    #[test]
    fn the_page_and_the_table_are_equal() {
        let rows = rows_of_the_page();
        assert_eq!(rows.len(), OpenPoint::ALL.len());
        for ((name, section, values), point) in rows.iter().zip(OpenPoint::ALL) {
            assert_eq!(
                (name.as_str(), section.as_str()),
                (point.name, point.section)
            );
            assert_eq!(values, point.values, "{name}");
        }
    }

    #[test]
    fn there_are_at_least_forty_points_with_two_values_each() {
        assert!(OpenPoint::ALL.len() >= 40);
        for point in OpenPoint::ALL {
            assert!(point.values.len() >= 2, "{}", point.name);
        }
    }

    #[test]
    fn unknown_names_and_values_are_refused() {
        let mut choices = Choices::default();
        choices.set("flat-position", "listed").unwrap();
        assert_eq!(choices.of::<FlatPosition>(), FlatPosition::Listed);
        assert_eq!(
            choices.changed().into_iter().collect::<Vec<_>>(),
            [("flat-position", "listed")]
        );
        let error = choices.set("flat", "listed").unwrap_err();
        assert!(
            error.to_string().contains("flat is not an open point"),
            "{error}"
        );
        let error = choices.set("flat-position", "gone").unwrap_err();
        assert_eq!(
            error.to_string(),
            "flat-position = gone: must be absent or listed"
        );
        assert_eq!(choices.of::<FlatPosition>(), FlatPosition::Listed);
    }
}
