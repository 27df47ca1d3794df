//! Fills that an order's totals contain before any event reports them: the engine waits for the event,
//! and then books the fill from the totals (`windvane_evidence::fills_from_totals`).

use windvane_evidence::fills_from_totals::{OrderTotals, average_price};
use windvane_model::ids::{OrderSeq, TradeId};
use windvane_model::order::{Qty, Surface};
use windvane_model::planted;
use windvane_model::protocol::{Fill, OrderReport, OrderUpdate};
use windvane_model::timer::Timer;

use super::Engine;

/// The event of a fill in a response arrives within this time, or the fill is booked without it.
/// Events of one moment may overtake each other by nearly as much.
const EVENT_MS: i64 = 250;

impl Engine {
    /// Takes order totals that are ahead of the booked fills. Returns whether they suffice to book
    /// the fill; the engine books it if its event is late.
    pub(super) fn wait_for_event(&mut self, seq: OrderSeq, report: &OrderReport) -> bool {
        let Some(order) = self.orders.known(seq) else {
            return false;
        };
        let surface = self.surface_of(order.instrument());
        let states_price = report.cum_quote > order.cum_quote;
        let is_newest = report.executed_qty.0 >= order.reported_qty;
        if surface != Surface::Futures || planted!(StatedFillWaits) {
            return false;
        }
        if !states_price || !is_newest {
            return self.fills_from_totals.waiting(seq).is_some();
        }
        self.keep_totals(seq, OrderTotals::of(report));
        if !self.stream_is_trusted(surface) {
            self.book_fill_from_totals(seq);
        }
        true
    }

    /// Handles an event whose total exceeds the booked fills. All parts of a resting order have the
    /// price of the last one, so that the missing part can be booked like the totals in a response.
    pub(super) fn wait_for_skipped_fill(&mut self, seq: OrderSeq, update: &OrderUpdate) {
        let stated = self.evidence().skipped_fill(seq, update);
        if let Some(stated) = stated {
            self.keep_totals(seq, stated);
        }
    }

    fn keep_totals(&mut self, seq: OrderSeq, stated: OrderTotals) {
        self.fills_from_totals.wait_for(seq, stated);
        let timer = Timer::FillFromTotals { order: seq };
        if !self.timers.is_set(timer) {
            self.timers.set(self.now.plus_ms(EVENT_MS), timer);
        }
        self.watch_losses_after_fill();
    }

    /// Books a stated fill from the order's totals, because its event did not arrive in time.
    pub(super) fn book_fill_from_totals(&mut self, seq: OrderSeq) {
        self.timers.cancel(Timer::FillFromTotals { order: seq });
        if let Some(stated) = self.fills_from_totals.take_waiting(seq) {
            self.derive_fill(seq, &stated);
        }
    }

    /// Books one fill for the difference between an order's totals and its booked fills, with an
    /// estimated commission.
    pub(super) fn derive_fill(&mut self, seq: OrderSeq, stated: &OrderTotals) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let qty = stated.executed_qty - order.executed_qty;
        let quote_qty = stated.cum_quote - order.cum_quote;
        if qty <= 0 {
            return;
        }
        let rules = &self.instruments[usize::from(order.instrument().0)];
        let average = average_price(rules, quote_qty, qty).or(order.terms.price);
        let quote = rules.quote;
        order.recovered_qty = stated.executed_qty;
        order.derived_qty += qty;
        let update = OrderUpdate {
            transaction_time: stated.updated,
            event_time: stated.updated,
            ..order.as_update()
        };
        self.recovered_fills += 1;
        let fill = Fill {
            trade_id: TradeId(-self.recovered_fills),
            price: average.unwrap_or_default(),
            qty: Qty(qty),
            quote_qty,
            fee: self.evidence().estimated_fee(quote_qty),
            fee_asset: quote,
            maker: false,
            realized_pnl: None,
        };
        self.fills_from_totals
            .remember_estimate(seq, &fill, stated.updated, self.now);
        self.take_missed_fill(seq, &update, &fill);
    }
}
