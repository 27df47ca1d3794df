//! Who crossed, where the venue does not say: `tradepro` names taker and maker by address only.
//! An estimate, and the only place that makes one; where `m` is told, nobody asks here.

use crate::number::Number;

/// Estimates the taker's side of the trades of one symbol from the quotes before it, and between
/// the quotes from the direction of the last change of price.
///
/// - At or above the best ask the buyer crossed, at or below the best bid the seller did.
/// - Strictly between them, or without quotes: up from the last different price, the buyer did;
///   down, the seller did.
/// - The first trade of all, without quotes: the buyer.
///
/// Quotes that are polled are older than the trades: then the estimate is worse, never an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakerSide {
    quotes: Option<(Number, Number)>,
    last_price: Option<Number>,
    buyer_is_maker: bool,
}

impl TakerSide {
    /// Takes the best bid and ask.
    pub fn on_quotes(&mut self, bid: Number, ask: Number) {
        self.quotes = (bid.key() < ask.key()).then_some((bid, ask));
    }

    /// Takes the price of the next trade: was the buyer the maker?
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
        assert!(side.on_trade(price("99.5")), "down: the seller crossed");
        assert!(side.on_trade(price("99.50")), "unmoved: as before");
        side.on_quotes(price("99.4"), price("99.60"));
        assert!(
            !side.on_trade(price("99.6")),
            "at the ask: the buyer crossed"
        );
        assert!(
            side.on_trade(price("99.4")),
            "at the bid: the seller crossed"
        );
        assert!(
            !side.on_trade(price("99.5")),
            "between, up from the last price"
        );
        // Crossed quotes say nothing.
        side.on_quotes(price("100"), price("99"));
        assert!(side.on_trade(price("99.45")));
    }
}
