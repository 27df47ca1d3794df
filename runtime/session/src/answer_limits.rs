//! How much the answers of one strategy may cause over time. Refused orders and timers fill the journal.
//! Accepted orders also cause events: a strategy that cancels its orders before they leave, and places
//! more at each event about them, has no other limit.

use windvane_model::{Intent, StrategyId, Time};

use crate::rate::{Budget, Rate};

/// Bytes of the journal that the answers of one strategy may take.
const BYTES: Rate = Rate {
    per_second: 256 << 10,
    burst: 16 << 20,
};
/// Orders of one strategy that the engine accepts, whether they leave or not. The venue allows far fewer.
const ORDERS: Rate = Rate {
    per_second: 200,
    burst: 4_000,
};
/// Estimated size of a record with an order, accepted or refused, in bytes.
const ORDER_BYTES: usize = 64;
/// Estimated size of every other intent, and of a record without its intents.
const OTHER_BYTES: usize = 16;

/// A limit that a strategy passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerLimit {
    /// [`BYTES`].
    Bytes,
    /// [`ORDERS`].
    Orders,
}

impl AnswerLimit {
    /// Why the strategy is quarantined, for people.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Bytes => {
                "its orders, refused orders and timers filled the journal: more than 256 KiB a second, after \
                 16 MiB at once; let it wait after a refused order"
            }
            Self::Orders => {
                "it placed too many orders: more than 200 a second, after 4,000 at once; let it wait after \
                 an order that ended"
            }
        }
    }
}

/// The rest of the limits of each strategy.
#[derive(Debug, Default)]
pub(crate) struct AnswerLimits(Vec<Left>);

#[derive(Clone, Copy, Debug)]
struct Left {
    bytes: Budget,
    orders: Budget,
}

impl Left {
    const ALL: Self = Self {
        bytes: Budget::new(BYTES),
        orders: Budget::new(ORDERS),
    };
}

impl AnswerLimits {
    /// Counts an answer.
    ///
    /// # Errors
    /// The strategy has used up what a limit allows.
    pub(crate) fn take(
        &mut self,
        now: Time,
        strategy: StrategyId,
        intents: &[Intent],
    ) -> Result<(), AnswerLimit> {
        if intents.is_empty() {
            return Ok(());
        }
        let place = usize::from(strategy.0);
        if self.0.len() <= place {
            self.0.resize(place + 1, Left::ALL);
        }
        let count = |is: fn(&&Intent) -> bool| intents.iter().filter(is).count();
        let accepted = count(|intent| matches!(intent, Intent::Submit { .. }));
        let refused = count(|intent| matches!(intent, Intent::Rejected { .. }));
        let orders = accepted + refused;
        let bytes = orders * ORDER_BYTES + (intents.len() - orders + 1) * OTHER_BYTES;
        let left = &mut self.0[place];
        if !left.bytes.take(now, bytes) {
            return Err(AnswerLimit::Bytes);
        }
        if accepted > 0 && !left.orders.take(now, accepted) {
            return Err(AnswerLimit::Orders);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windvane_model::rules::Rule;
    use windvane_model::{InstrumentId, OrderSeq, OrderTerms, OrderType, Side};

    use super::*;

    const FIRST: StrategyId = StrategyId(0);
    const SECOND: StrategyId = StrategyId(1);
    const TERMS: OrderTerms = OrderTerms::new(InstrumentId(0), Side::Buy, OrderType::Market);
    const ACCEPTED: Intent = Intent::Submit {
        order: OrderSeq(0),
        terms: TERMS,
    };

    #[test]
    fn accepted_orders_end_at_their_own_limit() {
        let mut limits = AnswerLimits::default();
        let start = Time::from_millis(1_700_000_000_000);
        for _ in 0..40 {
            assert_eq!(limits.take(start, FIRST, &vec![ACCEPTED; 100]), Ok(()));
        }
        let more = limits.take(start, FIRST, &[ACCEPTED]);
        assert_eq!(more, Err(AnswerLimit::Orders));
        assert_eq!(limits.take(start, SECOND, &[ACCEPTED]), Ok(()));
        let timer = Intent::CancelTimer { token: 0 };
        assert_eq!(limits.take(start, FIRST, &[timer]), Ok(()));
        let later = limits.take(start.plus_ms(5_000), FIRST, &vec![ACCEPTED; 1_000]);
        assert_eq!(later, Ok(()));
    }

    #[test]
    fn refused_orders_count_by_their_bytes() {
        let mut limits = AnswerLimits::default();
        let refused = Intent::Rejected {
            terms: TERMS,
            rejection: Rule::Degraded.plain(),
        };
        let start = Time::from_millis(1_700_000_000_000);
        let answers =
            (0..400).take_while(|_| limits.take(start, FIRST, &vec![refused; 1_000]).is_ok());
        assert_eq!(
            answers.count(),
            263,
            "of 64,016 bytes each, until 16 MiB are passed"
        );
    }
}
