//! What a seed draws from sequences of its own: the rest of the seed stays as it is.

use super::{Choice, Faults, Kind};
use crate::random::Random;
use crate::witness::Terms;

/// What happens to orders and positions at an orderly stop. Lives without one have the default.
pub fn on_stop(seed: u64, choice: &Choice, terms: &mut Terms) {
    let mut random = Random::of(seed, "on_stop");
    let drawn = random.pick(&["cancel", "keep", "flatten"]).copied();
    if choice.takes(Kind::Stop, Random::of(seed, "stop").chance(300_000)) {
        drawn.unwrap_or("cancel").clone_into(&mut terms.on_stop);
    }
}

/// How often what happens.
pub fn periods(seed: u64, choice: &Choice, faults: &mut Faults) {
    let mut stop = Random::of(seed, "stop");
    if choice.takes(Kind::Stop, stop.chance(300_000)) {
        faults.stop_s = 60 + stop.below(900) as u32;
    }
    let mut full = Random::of(seed, "full");
    if choice.takes(Kind::Full, full.chance(150_000)) {
        faults.full_s = 120 + full.below(900) as u32;
        faults.disk_room = 32 + full.below(200) as usize;
    }
}
