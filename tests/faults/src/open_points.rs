//! The choices of a life's venue at the points that the documents leave open. Each seed draws them,
//! from a sequence of its own, so that the rest of a seed stays as it is.

use windvane_server::{Choices, OpenPoint};

use crate::random::Random;

/// Values that no seed draws, and why: point, value, reason.
pub const NOT_DRAWN: &[(&str, &str, &str)] = &[
    ("account-route", "404", NO_DOCUMENTED_MODE),
    ("account-route", "refused", NO_DOCUMENTED_MODE),
];

/// The documented mode reads the info endpoint instead, and is not simulated.
const NO_DOCUMENTED_MODE: &str = "the runtime trades nothing while it cannot read the account";

/// A point keeps its default in so many lives of a million, beside those in which it is drawn.
const STRICT_PPM: u32 = 400_000;

/// How the points of every life are chosen.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// Nothing is drawn.
    pub strict: bool,
    /// These have the same value in every life.
    pub pinned: Vec<(String, String)>,
}

impl Points {
    /// From `NAME=VALUE` of the command line.
    ///
    /// # Errors
    /// Names what is not a point or a value of one.
    pub fn new(pinned: &[String], strict: bool) -> Result<Self, String> {
        let pair = |text: &String| {
            let pair = text.split_once('=');
            let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
            pair.ok_or_else(|| format!("{text}: must be NAME=VALUE"))
        };
        let pinned = pinned.iter().map(pair).collect::<Result<Vec<_>, _>>()?;
        let chosen = pinned
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        Choices::new(chosen).map_err(|error| error.to_string())?;
        Ok(Self { strict, pinned })
    }
}

/// The choices of a seed.
pub fn draw(seed: u64, points: &Points) -> Choices {
    let mut random = Random::of(seed, "open points");
    let mut choices = Choices::default();
    for point in OpenPoint::ALL {
        // Drawn whether it counts or not, so that a pinned point leaves the others as they are.
        let strict = points.strict || random.chance(STRICT_PPM);
        let value = random.pick(point.values).copied();
        if let Some(value) = value.filter(|value| !strict && is_drawn(point.name, value)) {
            set(&mut choices, point.name, value);
        }
    }
    for (name, value) in &points.pinned {
        set(&mut choices, name, value);
    }
    choices
}

fn is_drawn(point: &str, value: &str) -> bool {
    let mut kept = NOT_DRAWN.iter();
    !kept.any(|(name, kept, _)| *name == point && *kept == value)
}

fn set(choices: &mut Choices, name: &str, value: &str) {
    let set = choices.set(name, value);
    debug_assert!(set.is_ok(), "{name} = {value} is not a choice");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_drawn_point_comes_up() {
        let drawn: Vec<_> = (1..=200)
            .map(|seed| draw(seed, &Points::default()))
            .collect();
        for point in OpenPoint::ALL {
            for value in point.values {
                let has = |choices: &Choices| choices.all().any(|c| c == (point, value));
                let wanted = is_drawn(point.name, value);
                assert_eq!(drawn.iter().any(has), wanted, "{} = {value}", point.name);
            }
        }
    }

    #[test]
    fn points_that_are_not_drawn_exist_and_pins_are_checked() {
        for (name, value, why) in NOT_DRAWN {
            let known = OpenPoint::ALL.iter().find(|point| point.name == *name);
            let values = known.map(|point| &point.values[1..]);
            assert!(
                values.is_some_and(|values| values.contains(value)),
                "{name} = {value}"
            );
            assert!(!why.is_empty());
        }
        let pins = |text: &str| Points::new(&[text.to_owned()], true);
        assert!(pins("flat-position").is_err());
        assert!(pins("flat-position=gone").is_err());
        let pinned = draw(1, &pins("flat-position=listed").unwrap());
        assert_eq!(
            pinned.changed().into_iter().collect::<Vec<_>>(),
            [("flat-position", "listed")]
        );
    }
}
