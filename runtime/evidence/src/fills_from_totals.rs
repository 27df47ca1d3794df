//! Fills that an order's totals contain before any event reports them.
//!
//! The response to a new order, or to a query, may be ahead of the user stream by seconds.
//! - Usually the event follows at once and is exact, so the engine waits for it for 250 ms.
//!   Until then the account's loss limits count the fill at its stated price.
//! - After that, the engine books the fill from the totals, with an estimated commission.
//! - When an event or the list of the account's trades reports the same fill later, it is not
//!   booked again: its commission replaces the estimate.
//!
//! On spot the engine waits for the list of the account's trades instead, because a commission in
//! the base asset changes the position.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{AMOUNT_ONE, Amount, div_half_even, pow10};
use windvane_model::ids::{InstrumentId, OrderSeq, Time, TradeId, VenueOrderId};
use windvane_model::instrument::Instrument;
use windvane_model::names::Names;
use windvane_model::order::{Price, Surface};
use windvane_model::orders::Orders;
use windvane_model::protocol::{Fill, OrderReport};

use crate::lag::READ_LAG_MS;
use crate::late_fees::{Contained, LateFee};

/// At most this many booked fills are remembered.
const DERIVED_MAX: usize = 1_000;

/// Fills known from the totals of orders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FillsFromTotals {
    /// The latest totals of orders whose fills have no event yet.
    waiting: BTreeMap<OrderSeq, OrderTotals>,
    /// Fills that were booked from totals and whose events did not arrive yet.
    derived: BTreeMap<OrderSeq, DerivedFill>,
    /// Fills whose event came without a commission, and the estimates that are booked for them.
    awaiting_fee: BTreeMap<(InstrumentId, VenueOrderId, TradeId), (LateFee, Amount)>,
}

impl FillsFromTotals {
    /// The fills whose event came without a commission.
    pub(crate) fn awaiting_fee(&self) -> impl Iterator<Item = &LateFee> {
        self.awaiting_fee.values().map(|(late, _)| late)
    }

    /// The fills whose event came without a commission, and the estimates that are booked for them.
    pub(crate) fn awaiting_estimates(&self) -> impl Iterator<Item = &(LateFee, Amount)> {
        self.awaiting_fee.values()
    }

    /// The fills that were booked from totals and whose events did not arrive yet.
    pub(crate) fn derived(&self) -> impl Iterator<Item = (OrderSeq, &DerivedFill)> {
        self.derived.iter().map(|(seq, fill)| (*seq, fill))
    }

    /// The latest totals of all orders whose fills have no event yet.
    pub(crate) fn all_waiting(&self) -> impl Iterator<Item = (OrderSeq, &OrderTotals)> {
        self.waiting.iter().map(|(seq, totals)| (*seq, totals))
    }

    /// Keeps only the fills whose trades the venue may still list. The estimates of the others stay
    /// booked.
    pub fn retain_awaiting_fee(&mut self, may_come: impl Fn(&LateFee) -> bool) {
        self.awaiting_fee.retain(|_, (late, _)| may_come(late));
    }

    /// The latest totals of an order whose fill has no event yet.
    pub fn waiting(&self, order: OrderSeq) -> Option<&OrderTotals> {
        self.waiting.get(&order)
    }

    /// Waits for the event of a fill.
    pub fn wait_for(&mut self, order: OrderSeq, stated: OrderTotals) {
        self.waiting.insert(order, stated);
    }

    /// Takes the totals of an order whose event did not arrive in time.
    pub fn take_waiting(&mut self, order: OrderSeq) -> Option<OrderTotals> {
        self.waiting.remove(&order)
    }

    /// Remembers a fill that was booked from totals with an estimated commission.
    pub fn remember_estimate(&mut self, seq: OrderSeq, fill: &Fill, made: Time, now: Time) {
        let booked = &mut self.derived;
        let known = booked.get(&seq);
        let estimate = DerivedFill {
            qty: known.map_or(0, |known| known.qty) + fill.qty.0,
            quote: known.map_or(Amount::ZERO, |known| known.quote) + fill.quote_qty,
            fee: known.map_or(Amount::ZERO, |known| known.fee) + fill.fee,
            made: known.map_or(made, |known| known.made),
            booked: known.map_or(now, |known| known.booked),
            in_snapshot: known.is_some_and(|known| known.in_snapshot),
        };
        booked.insert(seq, estimate);
        if booked.len() > DERIVED_MAX {
            booked.pop_first();
        }
    }

    /// Takes the estimated commission of a part whose own event or account trade arrived, by its
    /// quantity and quote amount.
    pub fn take_estimate(&mut self, seq: OrderSeq, qty: i64, quote: Amount) -> Option<Estimate> {
        let booked = self.derived.get_mut(&seq)?;
        let is_last = qty >= booked.qty || quote >= booked.quote;
        let fee = if is_last {
            booked.fee
        } else {
            Amount(div_half_even(
                booked.fee.0.saturating_mul(quote.0),
                booked.quote.0,
            ))
        };
        let estimate = Estimate {
            fee,
            booked: booked.booked,
            in_snapshot: booked.in_snapshot,
        };
        booked.qty -= qty;
        booked.quote -= quote;
        booked.fee -= fee;
        if is_last {
            self.derived.remove(&seq);
        }
        Some(estimate)
    }

    /// Keeps an estimate until the list of the account's trades states the commission, because the
    /// event of the fill left it out.
    pub fn keep_estimate(&mut self, late: LateFee, estimate: Amount) {
        let awaiting_fee = &mut self.awaiting_fee;
        awaiting_fee.insert(late.key(), (late, estimate));
        if awaiting_fee.len() > DERIVED_MAX {
            awaiting_fee.pop_first();
        }
    }

    /// Takes the estimate of a fill that the list of the account's trades now contains.
    pub fn take_awaiting_fee(
        &mut self,
        key: (InstrumentId, VenueOrderId, TradeId),
    ) -> Option<(LateFee, Amount)> {
        self.awaiting_fee.remove(&key)
    }

    /// Notes that an account snapshot which contains these fills was accepted.
    pub fn note_snapshot(
        &mut self,
        surface: Surface,
        contained: Contained,
        orders: &Orders,
        instruments: &[Instrument],
    ) {
        if surface == Surface::Futures {
            for (late, _) in self.awaiting_fee.values_mut() {
                late.note_snapshot(contained);
            }
        }
        for (seq, booked) in &mut self.derived {
            let order = orders.known(*seq);
            let of = order.map(|order| instruments[usize::from(order.instrument().0)].surface);
            let is_of_surface = of == Some(surface);
            booked.in_snapshot |= is_of_surface && contained.has(booked.made);
        }
    }

    /// Notes that a snapshot requested at this time agrees with the books: the estimates that it
    /// contains need no correction.
    pub fn confirm(&mut self, asked: Time, orders: &Orders, instruments: &[Instrument]) {
        let is_contained = |booked: Time| asked >= booked.plus_ms(READ_LAG_MS);
        for (seq, booked) in &mut self.derived {
            let order = orders.known(*seq);
            let of = order.map(|order| instruments[usize::from(order.instrument().0)].surface);
            booked.in_snapshot |= of == Some(Surface::Futures) && is_contained(booked.booked);
        }
        for (late, _) in self.awaiting_fee.values_mut() {
            if late.is_listed_by(asked) {
                late.note_snapshot(Contained::All);
            }
        }
    }

    /// Whether a fill in this instrument is stated and not booked yet.
    #[inline]
    pub fn waits_in(&self, instrument: InstrumentId, orders: &Orders) -> bool {
        let mut waiting = self.waiting.keys();
        waiting.any(|seq| {
            let order = orders.known(*seq);
            order.is_some_and(|order| order.instrument() == instrument)
        })
    }

    /// Takes over the estimates of an earlier process, of orders that this one knows. Returns
    /// whether the engine must read the list of the account's trades for some. The engine queries
    /// orders for fills that it had not booked.
    pub fn inherit(&mut self, old: &Self, orders: &Orders, names: &Names) -> bool {
        let booked = old.derived.iter();
        let booked = booked.filter(|(seq, _)| orders.known(**seq).is_some());
        self.derived = booked.map(|(seq, one)| (*seq, *one)).collect();
        let mut wants = false;
        for (late, estimate) in old.awaiting_fee.values() {
            if let Some(late) = late.renamed(names) {
                self.keep_estimate(late, *estimate);
                wants = true;
            }
        }
        wants
    }
}

/// The totals of an order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct OrderTotals {
    /// Executed quantity.
    pub executed_qty: i64,
    /// Its quote amount.
    pub cum_quote: Amount,
    /// The venue's time of the last change.
    pub updated: Time,
}

impl OrderTotals {
    /// The totals of a report.
    pub const fn of(report: &OrderReport) -> Self {
        Self {
            executed_qty: report.executed_qty.0,
            cum_quote: report.cum_quote,
            updated: report.update_time,
        }
    }
}

/// A fill that was booked from totals.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct DerivedFill {
    /// The quantity without an event, mantissa.
    qty: i64,
    /// The quote amount of that quantity.
    pub(crate) quote: Amount,
    /// The estimated commission of that quantity, in the quote asset.
    pub(crate) fee: Amount,
    /// The venue's time of the fill.
    pub(crate) made: Time,
    /// When it was booked, by our clock.
    pub(crate) booked: Time,
    /// An account snapshot that contains the fill was accepted: it includes the true commission.
    pub(crate) in_snapshot: bool,
}

/// An estimated commission that the true one replaces.
pub struct Estimate {
    /// The commission, in the quote asset.
    pub fee: Amount,
    /// When its fill was booked.
    pub booked: Time,
    /// The balance already includes the true commission.
    pub in_snapshot: bool,
}

/// The average price of a quantity for a quote amount, rounded to the decimals of the instrument's
/// prices; `None` if the amount is not known.
pub fn average_price(rules: &Instrument, quote_qty: Amount, qty: i64) -> Option<Price> {
    let unit = i128::from(pow10(rules.price_scale)) * i128::from(pow10(rules.qty_scale));
    let raw = quote_qty.0.checked_mul(unit).filter(|raw| *raw > 0)?;
    let average = div_half_even(raw, i128::from(qty) * AMOUNT_ONE);
    i64::try_from(average).ok().map(Price)
}
