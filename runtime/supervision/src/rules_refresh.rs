//! The venue's rules of instruments, read again during the run: every hour, after the venue or the
//! engine refused an order for a filter, when the market data of a symbol stops, and often while a
//! symbol does not trade.
//!
//! Price and quantity scales stay fixed for the whole run, because positions and orders are counted
//! in them. New rules that need more decimals are not used: no position opens on that instrument
//! until a restart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::instrument::Instrument;
use windvane_model::names::Names;
use windvane_model::order::Surface;
use windvane_model::rules::CompiledRules;

/// A request without a response for this long may be sent again.
const ANSWER_MS: i64 = 30_000;

/// Shortest pause between two reads after refusals for a filter, per instrument. It grows fourfold
/// each time that nothing had changed, up to the second bound.
const REFUSED_MS: (i64, i64) = (10_000, 300_000);

/// Refusal codes of an order that breaks a rule of its symbol (docs/interface/errors.md#40xx):
/// precision, filters, the symbol and its status.
const OF_RULES: [i32; 26] = [
    -1013, -1111, -1121, -4001, -4002, -4003, -4004, -4005, -4006, -4007, -4008, -4009, -4010,
    -4011, -4013, -4014, -4016, -4022, -4023, -4024, -4029, -4030, -4140, -4141, -4164, -4131,
];

/// When and why rules were read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RulesRefresh {
    /// Requests in flight, and when they were sent.
    asked: BTreeMap<Surface, Time>,
    /// Instruments with refusals for a filter: when rules were read for them, and the pause after
    /// that.
    refused: BTreeMap<InstrumentId, (Time, i64)>,
    /// Instruments whose new rules this run cannot use, and why.
    unusable: BTreeMap<InstrumentId, String>,
}

impl RulesRefresh {
    /// Why the rules that the venue now reports for an instrument cannot be used; `None` if they
    /// can. While they cannot, no order may open a position there.
    pub fn unusable(&self, instrument: InstrumentId) -> Option<&str> {
        self.unusable.get(&instrument).map(String::as_str)
    }

    /// Notes that the rules of a surface are requested, unless a request is in flight. Returns
    /// whether they are.
    pub fn ask(&mut self, surface: Surface, now: Time) -> bool {
        let asked = self.asked.get(&surface);
        if asked.is_some_and(|at| now <= at.plus_ms(ANSWER_MS)) {
            return false;
        }
        self.asked.insert(surface, now);
        true
    }

    /// Handles an order that was refused with this code. Returns whether the rules are read: the
    /// code is about a rule, and they were not read for that a moment ago.
    pub fn note_refusal(&mut self, instrument: InstrumentId, code: i32, now: Time) -> bool {
        if !OF_RULES.contains(&code) {
            return false;
        }
        let (at, pause_ms) = match self.refused.get(&instrument) {
            None => (now, REFUSED_MS.0),
            Some((at, pause_ms)) => (at.plus_ms(*pause_ms), (pause_ms * 4).min(REFUSED_MS.1)),
        };
        if now < at {
            return false;
        }
        self.refused.insert(instrument, (now, pause_ms));
        true
    }

    /// A request was answered. Returns whether there was one.
    pub fn take_answer(&mut self, surface: Surface) -> bool {
        self.asked.remove(&surface).is_some()
    }

    /// Forgets that the rules of an instrument could not be used, and returns why.
    pub fn take_unusable(&mut self, instrument: InstrumentId) -> Option<String> {
        self.unusable.remove(&instrument)
    }

    /// The rules of an instrument cannot be used.
    pub fn set_unusable(&mut self, instrument: InstrumentId, why: String) {
        self.unusable.insert(instrument, why);
    }

    /// The rules of an instrument changed: refusals before that count no more.
    pub fn forget_refusals(&mut self, instrument: InstrumentId) {
        self.refused.remove(&instrument);
    }

    /// Takes over the pauses of an earlier process. This process has read the rules at startup, so
    /// that all of them can be used.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for (id, refused) in &old.refused {
            if let Some(id) = names.instruments.get(id) {
                self.refused.insert(*id, *refused);
            }
        }
    }
}

/// Compiles the rules, if they belong to this instrument and have its scales.
pub fn compile(
    known: &Instrument,
    rules: &Instrument,
) -> Result<(Instrument, CompiledRules), String> {
    let same = known.name() == rules.name()
        && (known.base, known.quote) == (rules.base, rules.quote)
        && (known.price_scale, known.qty_scale) == (rules.price_scale, rules.qty_scale);
    if !same {
        return Err("they belong to another instrument".to_owned());
    }
    let compiled = CompiledRules::new(rules).map_err(|error| error.to_string())?;
    Ok((rules.clone(), compiled))
}
