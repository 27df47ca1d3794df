//! Fills that an order's totals contain before any event reports them.
//!
//! The response to a new order, or to a query, may be ahead of the user stream by seconds.
//! - Usually the event follows at once and is exact, so the engine waits for it for [`EVENT_MS`].
//!   Until then the account's loss limits count the fill at its stated price.
//! - After that, the engine books the fill from the totals, with an estimated commission.
//! - When the event or the account trade of the same fill arrives later, it is not booked again:
//!   its commission replaces the estimate.
//!
//! Spot waits for the account trades instead, because a commission in the base asset changes the
//! position.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{AMOUNT_ONE, Amount, div_half_even, pow10};
use windvane_model::ids::{InstrumentId, OrderSeq, Time, TradeId, VenueOrderId};
use windvane_model::instrument::Instrument;
use windvane_model::ledger::value;
use windvane_model::order::{Price, Qty, Side, Surface};
use windvane_model::planted;
use windvane_model::protocol::{Fill, OrderReport, OrderUpdate};
use windvane_model::timer::Timer;

use super::Engine;
use super::lag::READ_LAG_MS;
use super::late_fees::{Contained, EstimatedFee, LateFee};
use super::snapshot::Names;

/// The event of a fill in a response arrives within this time, or the fill is booked without it.
/// Events of one moment may overtake each other by nearly as much.
const EVENT_MS: i64 = 250;
/// At most this many booked fills are remembered.
const MADE_UP_MAX: usize = 1_000;

/// Fills known from the totals of orders.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StatedFills {
    /// The latest totals of orders whose fills have no event yet.
    waiting: BTreeMap<OrderSeq, Statement>,
    /// Fills that were booked from totals and whose events did not arrive yet.
    made_up: BTreeMap<OrderSeq, MadeUp>,
    /// Fills whose event came without a commission, and the estimates that are booked for them.
    unstated: BTreeMap<(InstrumentId, VenueOrderId, TradeId), (LateFee, Amount)>,
}

impl StatedFills {
    /// The fills whose event came without a commission.
    pub(super) fn unstated(&self) -> impl Iterator<Item = &LateFee> {
        self.unstated.values().map(|(late, _)| late)
    }

    /// Forgets such fills that account trades do not list: their estimates stay booked.
    pub(super) fn retain_unstated(&mut self, may_come: impl Fn(&LateFee) -> bool) {
        self.unstated.retain(|_, (late, _)| may_come(late));
    }
}

/// The totals of an order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Statement {
    executed_qty: i64,
    cum_quote: Amount,
    updated: Time,
}

impl Statement {
    /// The totals of a report.
    pub(super) const fn of(report: &OrderReport) -> Self {
        Self {
            executed_qty: report.executed_qty.0,
            cum_quote: report.cum_quote,
            updated: report.update_time,
        }
    }
}

/// A fill that was booked from totals.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct MadeUp {
    /// The quantity without an event, mantissa.
    qty: i64,
    /// The quote amount of that quantity.
    quote: Amount,
    /// The estimated commission of that quantity, in the quote asset.
    fee: Amount,
    /// The venue's time of the fill.
    made: Time,
    /// When it was booked, by our clock.
    booked: Time,
    /// An account snapshot that contains the fill was accepted: it includes the true commission.
    in_reading: bool,
}

/// An estimated commission that the true one replaces.
pub(super) struct Estimate {
    /// The commission, in the quote asset.
    pub(super) fee: Amount,
    /// When its fill was booked.
    pub(super) booked: Time,
    /// The balance already includes the true commission.
    pub(super) in_reading: bool,
}

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
            return self.stated_fills.waiting.contains_key(&seq);
        }
        self.wait_for_statement(seq, Statement::of(report));
        if !self.stream_is_trusted(surface) {
            self.book_stated_fill(seq);
        }
        true
    }

    /// Handles an event whose total exceeds the booked fills. All parts of a resting order have the
    /// price of the last one, so that the missing part can be booked like the totals in a response.
    pub(super) fn state_skipped_fill(&mut self, seq: OrderSeq, update: &OrderUpdate) {
        let Some(fill) = update.fill.filter(|fill| fill.maker) else {
            return;
        };
        let Some(order) = self.orders.known(seq) else {
            return;
        };
        let rules = &self.instruments[usize::from(order.instrument().0)];
        let skipped = update.executed_qty.0 - order.executed_qty;
        let is_futures = self.surface_of(order.instrument()) == Surface::Futures;
        let is_whole = (order.terms.qty).is_none_or(|qty| update.executed_qty <= qty);
        // Events arrive out of order: a newer event may have reported a larger total.
        let waiting = self.stated_fills.waiting.get(&seq);
        let is_newest = waiting.is_none_or(|known| update.executed_qty.0 > known.executed_qty);
        let is_new = skipped > 0 && is_newest;
        if !is_new || !is_whole || !is_futures || planted!(StatedFillWaits) {
            return;
        }
        let stated = Statement {
            executed_qty: update.executed_qty.0,
            cum_quote: order.cum_quote + rules.notional(fill.price.0, skipped),
            updated: update.transaction_time,
        };
        self.wait_for_statement(seq, stated);
    }

    fn wait_for_statement(&mut self, seq: OrderSeq, stated: Statement) {
        self.stated_fills.waiting.insert(seq, stated);
        let timer = Timer::StatedFill { order: seq };
        if !self.timers.is_set(timer) {
            self.timers.set(self.now.plus_ms(EVENT_MS), timer);
        }
        self.watch_losses_after_fill();
    }

    /// Books a stated fill from the order's totals, because its event did not arrive in time.
    pub(super) fn book_stated_fill(&mut self, seq: OrderSeq) {
        self.timers.cancel(Timer::StatedFill { order: seq });
        if let Some(stated) = self.stated_fills.waiting.remove(&seq) {
            self.make_up_fill(seq, &stated);
        }
    }

    /// Books one fill for the difference between an order's totals and its booked fills, with an
    /// estimated commission.
    pub(super) fn make_up_fill(&mut self, seq: OrderSeq, stated: &Statement) {
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
        order.made_up_qty += qty;
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
            fee: self.estimated_fee(quote_qty),
            fee_asset: quote,
            maker: false,
            realized_pnl: None,
        };
        self.remember_estimate(seq, &fill, stated.updated);
        self.take_missed_fill(seq, &update, &fill);
    }

    fn estimated_fee(&self, quote_qty: Amount) -> Amount {
        let live = self.live.as_ref();
        quote_qty.part(
            live.map_or(0, |live| live.config.fee_estimate_ppm),
            1_000_000,
        )
    }

    fn remember_estimate(&mut self, seq: OrderSeq, fill: &Fill, made: Time) {
        let booked = &mut self.stated_fills.made_up;
        let known = booked.get(&seq);
        let estimate = MadeUp {
            qty: known.map_or(0, |known| known.qty) + fill.qty.0,
            quote: known.map_or(Amount::ZERO, |known| known.quote) + fill.quote_qty,
            fee: known.map_or(Amount::ZERO, |known| known.fee) + fill.fee,
            made: known.map_or(made, |known| known.made),
            booked: known.map_or(self.now, |known| known.booked),
            in_reading: known.is_some_and(|known| known.in_reading),
        };
        booked.insert(seq, estimate);
        if booked.len() > MADE_UP_MAX {
            booked.pop_first();
        }
    }

    /// Takes the estimated commission of a part whose own event or account trade arrived, by its
    /// quantity and quote amount.
    pub(super) fn take_estimate(
        &mut self,
        seq: OrderSeq,
        qty: i64,
        quote: Amount,
    ) -> Option<Estimate> {
        let booked = self.stated_fills.made_up.get_mut(&seq)?;
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
            in_reading: booked.in_reading,
        };
        booked.qty -= qty;
        booked.quote -= quote;
        booked.fee -= fee;
        if is_last {
            self.stated_fills.made_up.remove(&seq);
        }
        Some(estimate)
    }

    /// Keeps an estimate until an account trade states the commission, because the event of the
    /// fill left it out.
    pub(super) fn keep_estimate(&mut self, late: LateFee, estimate: Amount) {
        let unstated = &mut self.stated_fills.unstated;
        unstated.insert(late.key(), (late, estimate));
        if unstated.len() > MADE_UP_MAX {
            unstated.pop_first();
        }
    }

    /// Takes the estimate of a fill whose account trade arrived.
    pub(super) fn take_unstated(
        &mut self,
        key: (InstrumentId, VenueOrderId, TradeId),
    ) -> Option<(LateFee, Amount)> {
        self.stated_fills.unstated.remove(&key)
    }

    /// Notes that an account snapshot which contains these fills was accepted.
    pub(super) fn estimates_are_in_reading(&mut self, surface: Surface, contained: Contained) {
        if surface == Surface::Futures {
            for (late, _) in self.stated_fills.unstated.values_mut() {
                late.note_reading(contained);
            }
        }
        let (orders, instruments) = (&self.orders, &self.instruments);
        for (seq, booked) in &mut self.stated_fills.made_up {
            let order = orders.known(*seq);
            let of = order.map(|order| instruments[usize::from(order.instrument().0)].surface);
            let is_of_surface = of == Some(surface);
            booked.in_reading |= is_of_surface && contained.has(booked.made);
        }
    }

    /// Notes that a snapshot requested at this time agrees with the books: the estimates that it
    /// contains need no correction.
    pub(super) fn confirm_estimates(&mut self, asked: Time) {
        let is_contained = |booked: Time| asked >= booked.plus_ms(READ_LAG_MS);
        let (orders, instruments) = (&self.orders, &self.instruments);
        for (seq, booked) in &mut self.stated_fills.made_up {
            let order = orders.known(*seq);
            let of = order.map(|order| instruments[usize::from(order.instrument().0)].surface);
            booked.in_reading |= of == Some(Surface::Futures) && is_contained(booked.booked);
        }
        for (late, _) in self.stated_fills.unstated.values_mut() {
            if late.is_listed_by(asked) {
                late.note_reading(Contained::All);
            }
        }
    }

    /// The futures commissions that are booked as estimates and that no accepted snapshot contains.
    pub(super) fn estimated_commissions(&self) -> impl Iterator<Item = EstimatedFee> {
        let made_up = self.stated_fills.made_up.iter();
        let made_up = made_up.filter(|(_, one)| !one.in_reading);
        let made_up = made_up.filter_map(|(seq, one)| {
            let order = self.orders.known(*seq)?;
            let instrument = order.instrument();
            (self.surface_of(instrument) == Surface::Futures).then(|| EstimatedFee {
                instrument,
                side: order.terms.position_side,
                owner: Some(order.strategy),
                quote: self.instruments[usize::from(instrument.0)].quote,
                value: one.quote,
                estimate: one.fee,
                made: one.made,
                booked: one.booked,
            })
        });
        let unstated = self.stated_fills.unstated.values();
        let unstated = unstated.filter_map(|(late, estimate)| late.with_estimate(self, *estimate));
        made_up.chain(unstated)
    }

    /// Whether a futures fill is booked with an estimate, and neither an event nor an account trade
    /// reported it.
    pub(super) fn has_made_up_fill(&self) -> bool {
        let is_futures = |seq: &OrderSeq| {
            let order = self.orders.known(*seq);
            order.is_some_and(|order| self.surface_of(order.instrument()) == Surface::Futures)
        };
        let mut made_up = self.stated_fills.made_up.iter();
        made_up.any(|(seq, one)| !one.in_reading && is_futures(seq))
    }

    /// Takes over the estimates of an earlier process. The engine queries orders for fills that it
    /// had not booked.
    pub(super) fn inherit_estimates(&mut self, from: &Self, names: &Names) {
        let is_known = |seq: &OrderSeq| self.orders.known(*seq).is_some();
        let booked = from.stated_fills.made_up.iter();
        let booked = booked.filter(|(seq, _)| is_known(seq));
        self.stated_fills.made_up = booked.map(|(seq, one)| (*seq, *one)).collect();
        for (late, estimate) in from.stated_fills.unstated.values() {
            if let Some(late) = late.renamed(names) {
                self.keep_estimate(late, *estimate);
                self.want_fees();
            }
        }
    }

    /// Whether a fill in this instrument is stated and not booked yet.
    pub(super) fn has_stated_fill(&self, instrument: InstrumentId) -> bool {
        let mut waiting = self.stated_fills.waiting.keys();
        waiting.any(|seq| {
            let order = self.orders.known(*seq);
            order.is_some_and(|order| order.instrument() == instrument)
        })
    }

    /// The change of the account's equity by fills that are stated and not booked yet.
    pub(super) fn gain_of_stated_fills(&self) -> Amount {
        let gain = |(seq, stated): (&OrderSeq, &Statement)| {
            let order = self.orders.known(*seq)?;
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
        self.stated_fills.waiting.iter().filter_map(gain).sum()
    }
}

/// The average price of a quantity for a quote amount, rounded to the decimals of the instrument's
/// prices; `None` if the amount is not known.
fn average_price(rules: &Instrument, quote_qty: Amount, qty: i64) -> Option<Price> {
    let unit = i128::from(pow10(rules.price_scale)) * i128::from(pow10(rules.qty_scale));
    let raw = quote_qty.0.checked_mul(unit).filter(|raw| *raw > 0)?;
    let average = div_half_even(raw, i128::from(qty) * AMOUNT_ONE);
    i64::try_from(average).ok().map(Price)
}
