//! Others trade on a symbol that no life has configured: the profit and the loss of their positions are
//! the account's.

use serde_json::json;

use super::World;
use crate::mix::Kind;

/// A futures symbol of the venue that no life has configured.
pub(super) const SYMBOL: &str = "DOGEUSDT";

impl World {
    /// Somebody trades there, closes the position, or funding is paid on it.
    pub(super) fn trade_elsewhere(&mut self) {
        let qty = self.elsewhere.between(4, 20) * 1_000;
        let act = match self.elsewhere.below(8) {
            0 => json!({"act": "close", "symbol": SYMBOL}),
            1 => json!({"act": "funding", "symbol": SYMBOL, "rate": "0.0004"}),
            place => {
                let side = if place % 2 == 0 { "BUY" } else { "SELL" };
                json!({"act": "place", "symbol": SYMBOL, "side": side, "type": "MARKET",
                    "quantity": qty.to_string()})
            }
        };
        self.count(Kind::Elsewhere);
        self.act(&act);
    }
}
