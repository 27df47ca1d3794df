//! Fills that the venue stated and that are not booked yet: their effect on equity, and parts of a
//! fill whose events are missing (`fills_from_totals`).

use windvane_model::decimal::Amount;
use windvane_model::ids::OrderSeq;
use windvane_model::ledger::value;
use windvane_model::order::{Side, Surface};
use windvane_model::planted;
use windvane_model::protocol::OrderUpdate;

use crate::Evidence;
use crate::fills_from_totals::OrderTotals;

impl Evidence<'_> {
    /// The change of the account's equity by fills that are stated and not booked yet.
    pub fn gain_of_fills_from_totals(&self) -> Amount {
        let gain = |(seq, stated): (OrderSeq, &OrderTotals)| {
            let order = self.orders.known(seq)?;
            let rules = &self.instruments[usize::from(order.instrument().0)];
            if Some(rules.quote) != self.equity_asset() {
                return None;
            }
            let mark = self.markets[usize::from(order.instrument().0)].mark(rules.price_scale)?;
            let qty = (stated.executed_qty - order.executed_qty).max(0);
            let paid = stated.cum_quote - order.cum_quote;
            let gain = value(rules, qty, mark) - paid;
            let gain = if order.terms.side == Side::Buy {
                gain
            } else {
                -gain
            };
            (qty > 0).then(|| gain - self.estimated_fee(paid))
        };
        self.fills_from_totals.all_waiting().filter_map(gain).sum()
    }

    /// The totals of an order whose event exceeds the booked fills. All parts of a resting order
    /// have the price of the last one, so that the missing part can be booked like the totals in a
    /// response. `None` if they state nothing new.
    pub fn skipped_fill(&self, seq: OrderSeq, update: &OrderUpdate) -> Option<OrderTotals> {
        let fill = update.fill.filter(|fill| fill.maker)?;
        let order = self.orders.known(seq)?;
        let rules = &self.instruments[usize::from(order.instrument().0)];
        let skipped = update.executed_qty.0 - order.executed_qty;
        let is_futures = self.surface_of(order.instrument()) == Surface::Futures;
        let is_whole = (order.terms.qty).is_none_or(|qty| update.executed_qty <= qty);
        // Events arrive out of order: a newer event may have reported a larger total.
        let waiting = self.fills_from_totals.waiting(seq);
        let is_newest = waiting.is_none_or(|known| update.executed_qty.0 > known.executed_qty);
        let is_new = skipped > 0 && is_newest;
        if !is_new || !is_whole || !is_futures || planted!(StatedFillWaits) {
            return None;
        }
        Some(OrderTotals {
            executed_qty: update.executed_qty.0,
            cum_quote: order.cum_quote + rules.notional(fill.price.0, skipped),
            updated: update.transaction_time,
        })
    }
}
