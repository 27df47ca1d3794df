//! How far the entry price of a position may be from the venue's, because the venue rounded it to the tick
//! when it stated it: by half of the coarsest tick since the position was opened. A run that took such a
//! price keeps it when the tick becomes finer, and own fills make the difference smaller only.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::Value;

use super::wire;
use crate::witness::Seen;

/// The ticks of a life's symbols.
#[derive(Debug, Default)]
pub struct Ticks {
    symbols: BTreeMap<String, Tick>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tick {
    present: Decimal,
    /// The coarsest since the account was flat.
    coarsest: Decimal,
}

impl Ticks {
    /// Learns what is seen of ticks and positions.
    pub fn learn(&mut self, seen: &Seen) {
        match seen {
            Seen::Act { act, done: true } => {
                if let (Some(symbol), Some(tick)) =
                    (wire::text(act, "symbol"), wire::number(act, "tick_size"))
                {
                    let known = self.symbols.entry(symbol).or_default();
                    known.present = tick;
                    known.coarsest = known.coarsest.max(tick);
                }
            }
            Seen::Truth(truth) => {
                for (symbol, tick) in &mut self.symbols {
                    if !holds(truth, symbol) {
                        tick.coarsest = tick.present;
                    }
                }
            }
            _ => {}
        }
    }

    /// Half of the coarsest tick since the account was flat in a symbol. The first tick of a symbol is the finest.
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
