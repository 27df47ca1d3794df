//! Draws from separate random sequences, so that the other draws of a seed do not change.

use std::fmt::Write as _;

use super::{Choice, Faults, Kind};
use crate::random::Random;
use crate::witness::{LimitTerms, StrategyTerms, Terms};

/// Draws `on_stop`: the treatment of orders and positions at an orderly stop. Lives without a stop
/// have the default.
pub fn on_stop(seed: u64, choice: &Choice, terms: &mut Terms) {
    let mut random = Random::of(seed, "on_stop");
    let drawn = random.pick(&["cancel", "keep", "flatten"]).copied();
    if choice.takes(Kind::Stop, Random::of(seed, "stop").chance(300_000)) {
        drawn.unwrap_or("cancel").clone_into(&mut terms.on_stop);
    }
}

/// Draws whether these faults happen, and the mean time in seconds between two of them.
pub fn periods(seed: u64, choice: &Choice, faults: &mut Faults) {
    let mut stop = Random::of(seed, "stop");
    if choice.takes(Kind::Stop, stop.chance(300_000)) {
        faults.stop_s = 60 + stop.below(900) as u32;
    }
    let mut modes = Random::of(seed, "modes");
    if choice.takes(Kind::Modes, modes.chance(200_000)) {
        faults.modes_s = 60 + modes.below(900) as u32;
    }
    let mut full = Random::of(seed, "disk without room");
    if choice.takes(Kind::Full, full.chance(250_000)) {
        faults.full_s = 60 + full.below(600) as u32;
        faults.disk_room = 32 + full.below(200) as usize;
    }
}

/// Draws whether the runtime uses only the core interface for public data (`market_data =
/// "documented"`).
pub fn is_documented(seed: u64, choice: &Choice) -> bool {
    let drawn = Random::of(seed, "documented").chance(100_000);
    choice.takes(Kind::Documented, drawn)
}

/// Adds a strategy on spot. Lives with a loss limit have none, because spot holdings are not valued
/// there.
pub fn spot(seed: u64, choice: &Choice, terms: &mut Terms, config: &mut String) {
    let mut random = Random::of(seed, "spot");
    let is_taken = choice.takes(Kind::Spot, random.chance(150_000));
    if !is_taken || terms.max_daily_loss.is_some() {
        return;
    }
    let distance = random.between(1, 8);
    let threshold = random.between(2, 20);
    let strategy = StrategyTerms {
        id: "sp0".to_owned(),
        module: "market_maker".to_owned(),
        instruments: vec!["spot:BTCUSDT".to_owned()],
        limits: LimitTerms::default(),
        on_fault: "cancel".to_owned(),
    };
    terms.instruments.extend(strategy.instruments.clone());
    // Writing to a string cannot fail.
    let _ = write!(
        config,
        "\n[[strategy]]\nid = \"{}\"\nmodule = \"strategies/market_maker\"\ninstruments = [\"{}\"]\n\
         streams = [\"book\"]\non_fault = \"cancel\"\n\n[strategy.params]\nqty = \"0.01\"\nreference = \"touch\"\n\
         half_spread_ticks = {distance}\nreplace_threshold_ticks = {threshold}\nmax_position = \"0.05\"\n",
        strategy.id, strategy.instruments[0],
    );
    terms.strategies.push(strategy);
}
