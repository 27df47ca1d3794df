//! Lives in hedge mode, and lives in which one strategy trades on both surfaces. Both use the
//! strategy `quoter`.

use std::fmt::Write as _;

use super::file::limits;
use super::{Choice, Kind, chosen, few};
use crate::open_points;
use crate::random::Random;
use crate::witness::{LimitTerms, StrategyTerms, Terms};

/// The name of the module.
pub const MODULE: &str = "quoter";

/// Hedge mode: the strategies quote both sides, because strategies for one-way mode could not send
/// an order.
pub fn hedge(seed: u64, choice: &Choice, terms: &mut Terms) {
    let mut random = Random::of(seed, "hedge");
    let is_drawn = random.chance(100_000);
    if !choice.takes(Kind::Hedge, is_drawn) {
        return;
    }
    terms.hedge = true;
    terms.strategies.clear();
    for (n, instrument) in terms.instruments.clone().into_iter().enumerate() {
        // With two strategies, both share each position of the account.
        let count = 1 + usize::from(random.chance(600_000));
        for m in 0..count {
            let strategy = strategy(&mut random, format!("q{n}{m}"), vec![instrument.clone()]);
            terms.strategies.push(strategy);
        }
    }
    if terms.instruments.len() > 1 && random.chance(300_000) {
        let all = terms.instruments.clone();
        terms
            .strategies
            .push(strategy(&mut random, "qa".to_owned(), all));
    }
}

/// Adds a strategy with instruments of both surfaces. Lives with a loss limit have none, because
/// spot holdings are not valued there.
pub fn surfaces(seed: u64, choice: &Choice, terms: &mut Terms) {
    let mut random = Random::of(seed, "surfaces");
    let is_drawn = random.chance(100_000);
    let is_taken = choice.takes(Kind::Surfaces, is_drawn);
    // The spot documents have the field `canTrade`.
    let choices = open_points::draw(seed, &choice.points);
    let has_right = chosen(&choices, "can-trade") == Some("present");
    if !is_taken || !has_right || terms.max_daily_loss.is_some() {
        return;
    }
    let spot = "spot:BTCUSDT".to_owned();
    let futures = terms.instruments.first().cloned();
    let instruments: Vec<_> = futures.into_iter().chain([spot.clone()]).collect();
    let strategy = strategy(&mut random, "sf0".to_owned(), instruments);
    terms.strategies.push(strategy);
    terms.instruments.push(spot);
}

fn strategy(random: &mut Random, id: String, instruments: Vec<String>) -> StrategyTerms {
    let most = random.pick(&["700", "1300", "6000"]).copied();
    StrategyTerms {
        id,
        module: MODULE.to_owned(),
        instruments,
        limits: LimitTerms {
            max_position_notional: most.filter(|_| random.chance(500_000)).map(str::to_owned),
            max_order_notional: random.chance(100_000).then(|| "1000".to_owned()),
            max_open_orders: few(random, &[1, 2, 3]),
            max_orders_per_minute: few(random, &[3, 8, 20]),
        },
        on_fault: if random.chance(500_000) {
            "flatten"
        } else {
            "cancel"
        }
        .to_owned(),
    }
}

/// Writes the part of these strategies in the configuration file.
pub fn write(text: &mut String, terms: &Terms) {
    let mut random = Random::of(terms.seed, "quoters");
    let quoters = terms.strategies.iter();
    for strategy in quoters.filter(|one| one.module == MODULE) {
        let of_eth = strategy.instruments.iter().all(|one| one.contains("ETH"));
        let (qty, most) = if of_eth {
            ("0.2", "1")
        } else {
            ("0.02", "0.1")
        };
        let names: Vec<_> = strategy
            .instruments
            .iter()
            .map(|name| format!("\"{name}\""))
            .collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[strategy]]\nid = \"{}\"\nmodule = \"strategies/{MODULE}\"\ninstruments = [{}]\n\
             streams = [\"book\"]\non_fault = \"{}\"\n\n[strategy.params]\nqty = \"{qty}\"\n\
             max_position = \"{most}\"\ndistance_ticks = {}\npace_ms = {}\nhedge = {}\n\n[strategy.limits]\n",
            strategy.id,
            names.join(", "),
            strategy.on_fault,
            random.between(1, 8),
            random.between(300, 3_000),
            terms.hedge,
        );
        limits(text, &strategy.limits);
    }
    if terms.hedge {
        let mode = "[account]\nposition_mode = \"hedge\"\n\n[heartbeat]\n";
        *text = text.replacen("[heartbeat]\n", mode, 1);
    }
}
