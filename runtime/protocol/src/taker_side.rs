//! Estimates the taker's side of a trade where the venue does not report it: `tradepro` names taker
//! and maker by address only. This is the only module that estimates the side. Trades with the
//! field `m` do not need it.

use crate::number::Number;

/// Estimates the taker's side of one symbol's trades. It uses the last quotes before a trade, and
/// between the quotes the direction of the last price change.
///
/// - At or above the best ask, the buyer was the taker; at or below the best bid, the seller was.
/// - Between them, or without quotes: if the price rose from the last different price, the buyer
///   was the taker; if it fell, the seller was.
/// - For the first trade without quotes: the buyer.
///
/// Quotes from polling are older than the trades. The estimate is then worse, but it is never an
/// error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakerSide {
    quotes: Option<(Number, Number)>,
    last_price: Option<Number>,
    buyer_is_maker: bool,
}

impl TakerSide {
    /// Stores the best bid and ask.
    pub fn on_quotes(&mut self, bid: Number, ask: Number) {
        self.quotes = (bid.key() < ask.key()).then_some((bid, ask));
    }

    /// Takes the price of the next trade. Returns whether the buyer was the maker.
    pub fn on_trade(&mut self, price: Number) -> bool {
        let at = price.key();
        let by_quotes = self.quotes.and_then(|(bid, ask)| {
            if at >= ask.key() {
                Some(false)
            } else if at <= bid.key() {
                Some(true)
            } else {
                None
            }
        });
        let by_move = self.last_price.and_then(|last| match at.cmp(&last.key()) {
            std::cmp::Ordering::Greater => Some(false),
            std::cmp::Ordering::Less => Some(true),
            std::cmp::Ordering::Equal => None,
        });
        self.last_price = Some(price);
        if let Some(buyer_is_maker) = by_quotes.or(by_move) {
            self.buyer_is_maker = buyer_is_maker;
        }
        self.buyer_is_maker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(text: &str) -> Number {
        Number::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn quotes_decide_and_between_them_the_last_move() {
        let mut side = TakerSide::default();
        assert!(!side.on_trade(price("100")));
        assert!(side.on_trade(price("99.5")), "down: the seller took");
        assert!(side.on_trade(price("99.50")), "same price: no change");
        side.on_quotes(price("99.4"), price("99.60"));
        assert!(
            !side.on_trade(price("99.6")),
            "at the ask: the buyer was the taker"
        );
        assert!(
            side.on_trade(price("99.4")),
            "at the bid: the seller was the taker"
        );
        assert!(
            !side.on_trade(price("99.5")),
            "between the quotes, up from the last price"
        );
        // Crossed quotes (bid above ask) are ignored.
        side.on_quotes(price("100"), price("99"));
        assert!(side.on_trade(price("99.45")));
    }
}
