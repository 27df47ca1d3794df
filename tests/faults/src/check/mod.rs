//! The rules that must hold in every life. Each checker reads the witness, entry by entry, and the
//! state at rest. No checker sees the engine.
//!
//! No crate of this repository may be used here. A rule is written from the promises and the
//! documents, not from the code that implements them.

mod adjustments;
mod armed;
mod bans;
mod blind;
mod closings;
mod durable;
mod exits;
mod exposure;
mod fees;
mod fills;
mod flattened;
mod forced;
mod halted;
mod headers;
mod ids;
mod intents;
mod invariants;
mod kill_switches;
mod lagging;
mod late;
mod ledgers;
mod losses;
mod margin;
mod memory;
mod modes;
mod orders;
mod others;
mod overdue;
mod rates;
mod reloads;
mod renewals;
mod rules;
mod sides;
mod signs;
mod starts;
mod state;
mod stated;
mod steps;
mod stops;
pub mod ticks;
mod trading;
mod wire;

#[cfg(test)]
mod log;

use crate::witness::{Entry, Rest, Terms};

/// A rule with its state.
pub trait Check {
    /// The short name of the rule, as in reports and on the command line.
    fn rule(&self) -> &'static str;

    /// Handles the next entry.
    ///
    /// # Errors
    /// How the rule was broken, with the ids and numbers that show it.
    fn see(&mut self, entry: &Entry) -> Result<(), String>;

    /// Compares the state at rest: faults have ended, and the runtime had time to converge. Most
    /// rules need no comparison.
    ///
    /// # Errors
    /// How the rule was broken.
    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
        Ok(())
    }
}

/// All rules for a life with these drawn settings.
pub fn all(terms: &Terms) -> Vec<Box<dyn Check>> {
    vec![
        Box::new(intents::Intents::new(terms)),
        Box::new(fills::Fills::new(terms)),
        Box::new(fees::Fees::default()),
        Box::new(stated::Stated::default()),
        Box::new(state::State::new(terms)),
        Box::new(ledgers::Ledgers::new(terms)),
        Box::new(invariants::Invariants),
        Box::new(losses::Losses::new(terms)),
        Box::new(forced::Forced::new(terms)),
        Box::new(exposure::Exposure::new(terms)),
        Box::new(rates::Rates::new(terms)),
        Box::new(rules::Rules::default()),
        Box::new(kill_switches::KillSwitches::new(terms)),
        Box::new(armed::Armed::new(terms)),
        Box::new(renewals::Renewals::new(terms)),
        Box::new(overdue::Overdue::new(terms)),
        Box::new(blind::Blind::default()),
        Box::new(modes::Modes::new(terms)),
        Box::new(margin::Margin::default()),
        Box::new(others::Others::default()),
        Box::new(bans::Bans::default()),
        Box::new(trading::Trading::new(terms)),
        Box::new(halted::Halted::default()),
        Box::new(flattened::Flattened::new(terms)),
        Box::new(exits::Exits),
        Box::new(sides::Sides::default()),
        Box::new(lagging::Lagging::new(terms)),
        Box::new(headers::Headers::default()),
        Box::new(starts::Starts::default()),
        Box::new(steps::Steps::default()),
        Box::new(signs::Signs::default()),
        Box::new(stops::Stops::new(terms)),
        Box::new(reloads::Reloads::default()),
        Box::new(ids::Ids::default()),
        Box::new(durable::Durable::default()),
        Box::new(late::Late::default()),
        Box::new(memory::Memory::default()),
        Box::new(adjustments::Adjustments::new(terms)),
    ]
}
