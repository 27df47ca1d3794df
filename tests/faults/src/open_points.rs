//! The choices of a life's venue at the points that the documents leave open. Each seed draws them,
//! from a sequence of its own, so that the rest of a seed stays as it is.

use windvane_sim_server::{Choices, OpenPoint};

use crate::random::Random;

/// Without this route a run reads the info endpoint, which shows less than the route: so few lives of a
/// million may draw its absence.
const ACCOUNT_ROUTE: (&str, u32) = ("account-route", 250_000);

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
    let (rare, ppm) = ACCOUNT_ROUTE;
    let is_rare_left = !Random::of(seed, rare).chance(ppm);
    let mut choices = Choices::default();
    for point in OpenPoint::ALL {
        // Drawn whether it counts or not, so that a pinned point leaves the others as they are.
        let strict = points.strict || random.chance(STRICT_PPM);
        let value = random.pick(point.values).copied();
        let is_left = point.name == rare && is_rare_left;
        if let Some(value) = value.filter(|_| !strict && !is_left) {
            set(&mut choices, point.name, value);
        }
    }
    for (name, value) in &points.pinned {
        set(&mut choices, name, value);
    }
    choices
}

fn set(choices: &mut Choices, name: &str, value: &str) {
    let set = choices.set(name, value);
    debug_assert!(set.is_ok(), "{name} = {value} is not a choice");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_point_comes_up() {
        let drawn: Vec<_> = (1..=200)
            .map(|seed| draw(seed, &Points::default()))
            .collect();
        for point in OpenPoint::ALL {
            for value in point.values {
                let has = |choices: &Choices| choices.all().any(|c| c == (point, value));
                assert!(drawn.iter().any(has), "{} = {value}", point.name);
            }
        }
    }

    #[test]
    fn pins_are_checked() {
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
