//! The allowed distance of a position's entry price from the venue's price. The venue may have
//! rounded the price to the tick when it reported it, so the distance is half of the coarsest tick
//! since the position was opened. A run that took such a price keeps it when the tick becomes
//! finer, and own fills only make the difference smaller.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::Value;

use super::wire;
use crate::witness::WitnessEvent;

/// The ticks of a life's symbols.
#[derive(Debug, Default)]
pub struct Ticks {
    symbols: BTreeMap<String, Tick>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tick {
    present: Decimal,
    /// The coarsest tick since the account was flat.
    coarsest: Decimal,
}

impl Ticks {
    /// Updates ticks and positions from an entry.
    pub fn learn(&mut self, seen: &WitnessEvent) {
        match seen {
            WitnessEvent::Act { act, done: true } => {
                if let (Some(symbol), Some(tick)) =
                    (wire::text(act, "symbol"), wire::number(act, "tick_size"))
                {
                    let known = self.symbols.entry(symbol).or_default();
                    known.present = tick;
                    known.coarsest = known.coarsest.max(tick);
                }
            }
            WitnessEvent::Truth(truth) => {
                for (symbol, tick) in &mut self.symbols {
                    if !holds(truth, symbol) {
                        tick.coarsest = tick.present;
                    }
                }
            }
            _ => {}
        }
    }

    /// Half of the coarsest tick since the account was flat in a symbol. Before the first change of
    /// a tick it is zero.
    pub fn rounding(&self, symbol: &str) -> Decimal {
        let tick = self.symbols.get(symbol).copied().unwrap_or_default();
        tick.coarsest / Decimal::TWO
    }
}

/// Whether the account holds a position in a symbol.
fn holds(truth: &Value, symbol: &str) -> bool {
    let positions = truth.pointer("/accounts/0/positions");
    let mut positions = positions.and_then(Value::as_array).into_iter().flatten();
    positions.any(|position| {
        let qty = wire::number(position, "qty").unwrap_or_default();
        wire::text(position, "symbol").as_deref() == Some(symbol) && !qty.is_zero()
    })
}
