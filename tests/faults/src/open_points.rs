//! The behaviour of a life's venue at the points that the documents leave open. Each seed draws it
//! from a separate random sequence, so that the other draws of the seed do not change.

use windvane_sim_server::{Choices, OpenPoint};

use crate::random::Random;

/// Without this route a run reads the info endpoint, which shows less. So only this many lives of a
/// million may draw its absence.
const ACCOUNT_ROUTE: (&str, u32) = ("account-route", 250_000);

/// Share of lives, in a million, in which a point keeps its default without a draw.
const STRICT_PPM: u32 = 400_000;

/// How the points of every life are chosen.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// No point is drawn.
    pub strict: bool,
    /// Open points that have the same value in every simulated life.
    pub pinned: Vec<(String, String)>,
}

impl Points {
    /// Parses `NAME=VALUE` pairs of the command line.
    ///
    /// # Errors
    /// If a name is not a point, or a value is not a value of its point.
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
        // Drawn even if unused, so that a pinned point does not change the others.
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
    debug_assert!(set.is_ok(), "{name} = {value} is not a valid choice");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_point_is_drawn() {
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
    fn pinned_points_are_validated() {
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
