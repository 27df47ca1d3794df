//! Series of refused orders, after which a strategy pauses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, StrategyId, Time};
use windvane_model::order::Side;
use windvane_model::orders::Order;
use windvane_model::protocol::Refusal;
use windvane_model::trading::Refusals;

/// After this many refusals in a row, the strategy must pause.
const FREE_REFUSALS: u32 = 2;

/// The pause after the next refusal, doubled with each one up to the second bound.
const PAUSE_MS: (i64, i64) = (500, 60_000);

/// The longest pause after refused exits: a position must not stay open for long once the venue
/// accepts exits again.
const PAUSE_EXIT_MS: i64 = 5_000;

/// The longest pause after orders that were not sent: the reasons are the engine's own and end by
/// themselves.
const PAUSE_NOT_SENT_MS: i64 = 5_000;
/// A refusal this long after the last one begins a new series.
pub const SERIES_MS: i64 = 120_000;

/// Orders of one strategy for one side of one instrument.
pub type Party = (StrategyId, InstrumentId, Side);

/// Series of refused exits: orders that close or only reduce. Their pauses are at most a few
/// seconds.
pub type ExitRefusals = BTreeMap<Party, Refusals>;

/// Counts one refusal, and sets a pause of at most `most_ms` after the free ones. Returns the
/// number of refusals.
fn count_one(refusals: &mut Refusals, now: Time, code: i32, most_ms: Option<i64>) -> u32 {
    let over = refusals.last.max(refusals.pause_until).plus_ms(SERIES_MS);
    if refusals.count == 0 || now > over {
        *refusals = Refusals {
            since: now,
            ..Refusals::default()
        };
    }
    refusals.count = refusals.count.saturating_add(1);
    refusals.last = now;
    refusals.code = code;
    if refusals.count > FREE_REFUSALS {
        let pause_ms = doubled(PAUSE_MS, refusals.count - FREE_REFUSALS - 1);
        let most_ms = most_ms.unwrap_or(PAUSE_MS.1);
        refusals.pause_until = now.plus_ms(pause_ms.min(most_ms));
    }
    refusals.count
}

/// A pause in milliseconds that doubles from the first bound to the second.
pub(crate) const fn doubled(bounds_ms: (i64, i64), times: u32) -> i64 {
    let shift = if times < 20 { times } else { 20 };
    let ms = bounds_ms.0 << shift;
    if ms < bounds_ms.1 { ms } else { bounds_ms.1 }
}

/// Counts a refused exit. Returns the number of refusals in its series.
pub fn count_exit(exits: &mut ExitRefusals, party: Party, code: i32, now: Time) -> u32 {
    let refusals = exits.entry(party).or_default();
    count_one(refusals, now, code, Some(PAUSE_EXIT_MS))
}

/// Counts a refused opening order. Returns the number of refusals in its series.
pub(crate) fn count_opening(
    openings: &mut BTreeMap<Party, Refusals>,
    party: Party,
    refusal: &Refusal,
    now: Time,
) -> u32 {
    let most_ms = refusal.is_not_sent().then_some(PAUSE_NOT_SENT_MS);
    let refusals = openings.entry(party).or_default();
    count_one(refusals, now, refusal.code, most_ms)
}

/// Whether a series demands a pause now.
pub fn pauses(series: Option<&Refusals>, now: Time) -> bool {
    series.is_some_and(|refusals| now < refusals.pause_until)
}

/// A post-only order that ends by itself and unfilled within this time never rested.
const AT_ONCE_MS: i64 = 2_000;

/// Series of such orders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Crossings(pub(crate) BTreeMap<Party, Refusals>);

impl Crossings {
    /// The running series.
    pub const fn series(&self) -> &BTreeMap<Party, Refusals> {
        &self.0
    }

    /// Notes the end of a post-only order. If it rested or filled, it ends the series. Returns
    /// whether people are notified that the strategy crosses the book.
    pub fn note_end(&mut self, order: &Order, now: Time) -> bool {
        let terms = &order.terms;
        let party = (order.strategy, terms.instrument, terms.side);
        let rested = order.executed_qty > 0
            || order.cancel_wanted
            || now > order.submitted.plus_ms(AT_ONCE_MS);
        if rested {
            self.0.remove(&party);
            return false;
        }
        let series = self.0.entry(party).or_default();
        count_one(series, now, 0, None) == FREE_REFUSALS + 1
    }
}
