//! How much of the journal the answers of one strategy may take. Accepted orders are bounded by other
//! limits; refused orders and timers are not, and each is a record.

use windvane_model::{Intent, StrategyId, Time};

use crate::byte_rate::{ByteBudget, ByteRate};

/// What the answers of one strategy may take.
const ANSWERS: ByteRate = ByteRate {
    per_second: 256 << 10,
    burst: 16 << 20,
};
/// Estimated size of a record with an order, accepted or refused, in bytes.
const ORDER_BYTES: usize = 64;
/// Estimated size of every other intent, and of a record without its intents.
const OTHER_BYTES: usize = 16;

/// Why a strategy is quarantined, for people.
pub(crate) const REASON: &str = "its orders, refused orders and timers filled the journal: more than 256 KiB a second, after \
     16 MiB at once; let it wait after a refused order";

/// What is left for each strategy.
#[derive(Debug, Default)]
pub(crate) struct JournalShares(Vec<ByteBudget>);

impl JournalShares {
    /// Takes the size of an answer. Returns false if the strategy has used up its share.
    pub(crate) fn take(&mut self, now: Time, strategy: StrategyId, intents: &[Intent]) -> bool {
        if intents.is_empty() {
            return true;
        }
        let place = usize::from(strategy.0);
        if self.0.len() <= place {
            self.0.resize(place + 1, ByteBudget::new(ANSWERS));
        }
        let orders = intents.iter().filter(|intent| is_order(intent)).count();
        let bytes = orders * ORDER_BYTES + (intents.len() - orders + 1) * OTHER_BYTES;
        self.0[place].take(now, bytes)
    }
}

const fn is_order(intent: &Intent) -> bool {
    matches!(intent, Intent::Submit { .. } | Intent::Rejected { .. })
}
