//! One position at average cost. Closing q of a position of Q releases cost * q / Q, rounded half
//! to even at 8 places. Closing all of it releases the whole cost.

use crate::fixed::half_even;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Signed, scale 12.
    pub(super) qty: i128,
    /// Signed as the quantity, scale 8.
    pub(super) cost: i128,
    /// Before fees, scale 8.
    pub(super) realized: i128,
}

impl Position {
    /// Applies a fill and returns the profit that it realized.
    pub(super) fn fill(&mut self, buy: bool, qty: i128, quote: i128) -> i128 {
        let sign = if buy { 1 } else { -1 };
        let held = self.qty.abs();
        let closes = if self.qty * sign < 0 {
            qty.min(held)
        } else {
            0
        };
        let mut realized = 0;
        let mut opening_quote = quote;
        if closes > 0 {
            let released = if closes == held {
                self.cost
            } else {
                half_even(self.cost * closes, held)
            };
            let closing_quote = if closes == qty {
                quote
            } else {
                half_even(quote * closes, qty)
            };
            opening_quote -= closing_quote;
            realized = -sign * closing_quote - released;
            self.cost -= released;
        }
        self.cost += sign * opening_quote;
        self.qty += sign * qty;
        self.realized += realized;
        realized
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_released_half_to_even_and_fully_at_the_end() {
        let mut position = Position::default();
        assert_eq!(position.fill(true, 2, 5), 0);
        assert_eq!(position.fill(false, 1, 4), 2, "2 of 5 released");
        assert_eq!(position.fill(false, 1, 4), 1, "the other 3");
        assert_eq!((position.qty, position.cost, position.realized), (0, 0, 3));
    }

    #[test]
    fn a_fill_through_zero_opens_the_other_side() {
        let mut position = Position::default();
        position.fill(false, 2, 200);
        assert_eq!(position.fill(true, 5, 550), -20);
        assert_eq!((position.qty, position.cost), (3, 330));
    }
}
