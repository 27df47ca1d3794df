//! Liquidation and auto-deleveraging: the venue closes a position of the account with an order of
//! its own. The engine takes the closed quantity from the strategies on that side, in proportion to
//! their positions and at the price of the close. Then the configured reaction follows.
//!
//! Usually an order event reports the close. If events were lost, account snapshots and account
//! trades show the close, and `outside_closes` takes it from the strategies. The engine then requests the
//! venue's forced orders (`forced_order_requests`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::Amount;
use windvane_model::forced::{ForcedClose, ForcedCloseReport, ForcedShare, OnLiquidation};
use windvane_model::ids::{InstrumentId, StrategyId, Time, VenueOrderId};
use windvane_model::names::Names;
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::state_report::OpenOrder;

use crate::forced_order_requests::ForcedOrderRequests;
use crate::forced_reports::ForcedReports;

/// At most this many orders of outside parties are remembered.
const ORDERS_MAX: usize = 1_024;

/// Why the venue closed, and its order; 0 if no order is known.
pub type ForcedOrder = (ForcedClose, VenueOrderId);

/// An order of an outside party, or of the venue.
pub type OrderKey = (InstrumentId, VenueOrderId);

/// The state of forced closes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ForcedCloses {
    reaction: OnLiquidation,
    /// Orders of outside parties or of the venue that traded. Also own orders that traded before
    /// they were known as own.
    orders: BTreeMap<(InstrumentId, VenueOrderId), OutsideOrder>,
    /// Pending requests for the forced orders of an instrument.
    pub requests: ForcedOrderRequests,
    /// The venue's time of the last reconciliation round that left nothing unexplained.
    agreed: BTreeMap<Surface, Time>,
    /// Reports since the operator last resumed, the newest at the end.
    pub reports: ForcedReports,
}

/// An outside order: which part of it was booked (or was in the account's initial state), and which
/// part the strategies already gave up from their positions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OutsideOrder {
    forced: Option<ForcedClose>,
    side: Side,
    position_side: PositionSide,
    booked: i64,
    quote: Amount,
    fee: Amount,
    /// The booked part without a trade id: a trade that is reported later may be this part.
    derived: i64,
    /// The quantity that strategies gave up for it, and its value.
    settled: i64,
    settled_quote: Amount,
    settled_fee: Amount,
}

/// A closed quantity that the strategies must give up from their positions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DueClose {
    /// Side of the closing order.
    pub side: Side,
    /// Position side.
    pub position_side: PositionSide,
    /// Its quantity.
    pub qty: i64,
    /// Its value.
    pub quote: Amount,
    /// Its commission.
    pub fee: Amount,
    /// When the venue closed it, by the venue's clock.
    pub made: Time,
}

impl DueClose {
    /// The part with this quantity.
    #[must_use]
    pub fn part(&self, qty: i64) -> Self {
        let whole = self.qty.max(1);
        Self {
            qty,
            quote: self.quote.part(qty, whole),
            fee: self.fee.part(qty, whole),
            ..*self
        }
    }

    /// The part with this quantity, and the remainder.
    pub fn split(&self, qty: i64) -> (Self, Self) {
        let part = self.part(qty);
        let left = Self {
            qty: self.qty - part.qty,
            quote: self.quote - part.quote,
            fee: self.fee - part.fee,
            ..*self
        };
        (part, left)
    }
}

impl ForcedCloses {
    /// The configured reaction to a forced close.
    pub const fn reaction(&self) -> OnLiquidation {
        self.reaction
    }

    /// Sets the reaction.
    pub const fn set_reaction(&mut self, reaction: OnLiquidation) {
        self.reaction = reaction;
    }

    /// Whether an order is known to be the venue's own.
    pub fn orders_by_venue(&self, key: OrderKey) -> bool {
        let known = self.orders.get(&key);
        known.is_some_and(|order| order.forced.is_some())
    }

    /// The kind of forced close of an outside order, by this event or an earlier one; `None` if it
    /// is not forced.
    pub fn kind_of(&self, update: &OrderUpdate) -> Option<ForcedClose> {
        let known = self.orders.get(&(update.instrument, update.order_id));
        ForcedClose::of(update).or_else(|| known?.forced)
    }

    /// The part of a fill without a trade id that is not booked yet: the order's total shows it.
    pub fn new_part(&self, update: &OrderUpdate, fill: &Fill) -> Option<Fill> {
        let (booked, _) = self.counted((update.instrument, update.order_id));
        let new = (update.executed_qty.0 - booked).min(fill.qty.0);
        part_of(fill, new)
    }

    /// The part of a fill that was not counted before its trade id was known.
    pub fn absorb(&mut self, key: OrderKey, fill: &Fill) -> Option<Fill> {
        let Some(order) = self.orders.get_mut(&key) else {
            return Some(*fill);
        };
        let absorbed = order.derived.min(fill.qty.0);
        order.derived -= absorbed;
        part_of(fill, fill.qty.0 - absorbed)
    }

    /// Remembers a booked fill of an outside party, with its fee in the quote asset.
    pub fn remember_fill(&mut self, update: &OrderUpdate, fill: &Fill, fee: Amount) {
        let order = self.order(update);
        order.booked += fill.qty.0;
        order.quote += fill.quote_qty;
        order.fee += fee;
        if fill.trade_id.0 <= 0 {
            order.derived += fill.qty.0;
        }
    }

    /// Remembers a fill in the account's initial state: no strategy gives up anything for it.
    pub fn remember_found_fill(&mut self, update: &OrderUpdate, fill: &Fill, fee: Amount) {
        self.remember_fill(update, fill, fee);
        let order = self.order(update);
        order.settled += fill.qty.0;
        order.settled_quote += fill.quote_qty;
        order.settled_fee += fee;
    }

    /// Adds the commission of an outside fill that arrived later than the fill. Returns the
    /// strategies' shares, if the fill was a forced close.
    pub fn add_fee(&mut self, key: OrderKey, fee: Amount) -> Vec<(StrategyId, Amount)> {
        let Some(order) = self.orders.get_mut(&key) else {
            return Vec::new();
        };
        order.fee += fee;
        if order.settled < order.booked {
            // The settlement will share the fee.
            return Vec::new();
        }
        order.settled_fee += fee;
        self.reports.add_fee(key, fee)
    }

    /// The quantity and value of an order that were counted as an outside party's. It may turn out
    /// to be an own order that was not known yet.
    pub fn counted(&self, key: OrderKey) -> (i64, Amount) {
        let known = self.orders.get(&key);
        known.map_or((0, Amount::ZERO), |order| (order.booked, order.quote))
    }

    /// Whether an order was counted as an outside party's.
    pub fn knows(&self, key: OrderKey) -> bool {
        self.orders.contains_key(&key)
    }

    fn order(&mut self, update: &OrderUpdate) -> &mut OutsideOrder {
        let key = (update.instrument, update.order_id);
        let orders = &mut self.orders;
        if orders.len() >= ORDERS_MAX && !orders.contains_key(&key) {
            // Of one instrument, the oldest order has the lowest number.
            orders.pop_first();
        }
        let new = OutsideOrder::new(update.side, update.position_side);
        orders.entry(key).or_insert(new)
    }

    /// Marks the event's order as forced. Returns whether it was marked before, and its booked part
    /// that was not yet taken from the strategies.
    pub fn take_reported(&mut self, kind: ForcedClose, update: &OrderUpdate) -> (bool, DueClose) {
        let order = self.order(update);
        let known = order.forced.replace(kind).is_some();
        (known, order.take_due())
    }

    /// Whether a listed order is known to be forced, and its booked quantity.
    pub fn known_of(&self, key: OrderKey) -> (bool, i64) {
        let known = self.orders.get(&key);
        known.map_or((false, 0), |order| (order.forced.is_some(), order.booked))
    }

    /// Marks a listed order as forced, and takes its part that is booked and that no strategy gave
    /// up yet. A later event of a fill that the account already contains (`found`) books nothing.
    pub fn take_listed(&mut self, kind: ForcedClose, listed: &OpenOrder, found: i64) -> DueClose {
        let key = (listed.report.instrument, listed.report.order_id);
        let order = self.listed(kind, key, listed);
        order.find(found);
        order.take_due()
    }

    /// Marks a listed order as forced. The account already contains the found quantity.
    pub fn find_listed(&mut self, kind: ForcedClose, listed: &OpenOrder, found: i64) {
        let key = (listed.report.instrument, listed.report.order_id);
        self.listed(kind, key, listed).find(found);
    }

    fn listed(
        &mut self,
        kind: ForcedClose,
        key: OrderKey,
        listed: &OpenOrder,
    ) -> &mut OutsideOrder {
        let new = OutsideOrder::new(listed.terms.side, listed.terms.position_side);
        let order = self.orders.entry(key).or_insert(new);
        order.forced = Some(kind);
        order
    }

    /// Takes the part of an order that the venue does not know, as a forced close.
    pub fn take_unknown(&mut self, key: OrderKey) -> Option<DueClose> {
        let order = self.orders.get_mut(&key)?;
        order.forced = Some(ForcedClose::Unreported);
        Some(order.take_due())
    }

    /// The booked part of an outside order that no strategy gave up yet, with its sides.
    pub fn unsettled_part(&self, key: OrderKey) -> Option<(Side, PositionSide, i64)> {
        let order = self.orders.get(&key)?;
        let qty = order.booked - order.settled;
        Some((order.side, order.position_side, qty))
    }

    /// The venue's time of the last reconciliation round that left nothing unexplained, less the
    /// tolerance of the clocks. Also of an earlier process.
    pub fn agreed_at(&self, surface: Surface) -> Option<Time> {
        self.agreed.get(&surface).copied()
    }

    /// A reconciliation round left nothing unexplained.
    pub fn note_agreed(&mut self, surface: Surface, at: Time) {
        self.agreed.insert(surface, at);
    }

    /// Takes over the state of an earlier process.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        self.reaction = old.reaction;
        self.agreed.clone_from(&old.agreed);
        for ((id, order_id), order) in &old.orders {
            if let Some(id) = names.instruments.get(id) {
                self.orders.insert((*id, *order_id), *order);
            }
        }
        self.requests.inherit(&old.requests, names);
        for (at, report) in old.reports.iter() {
            let Some(instrument) = names.instruments.get(&report.instrument) else {
                continue;
            };
            let shares = report.shares.iter().filter_map(|share| {
                let strategy = *names.strategies.get(&share.strategy)?;
                Some(ForcedShare { strategy, ..*share })
            });
            let report = ForcedCloseReport {
                instrument: *instrument,
                shares: shares.collect(),
                ..report.clone()
            };
            self.reports.add(*at, &report);
        }
    }
}

impl OutsideOrder {
    const fn new(side: Side, position_side: PositionSide) -> Self {
        Self {
            forced: None,
            side,
            position_side,
            booked: 0,
            quote: Amount::ZERO,
            fee: Amount::ZERO,
            derived: 0,
            settled: 0,
            settled_quote: Amount::ZERO,
            settled_fee: Amount::ZERO,
        }
    }

    /// Notes that the account already contains this quantity, without a trade id.
    const fn find(&mut self, qty: i64) {
        self.derived += qty;
        self.booked += qty;
        self.settled += qty;
    }

    /// Returns the booked part that was not yet taken from the strategies, and counts it as taken.
    fn take_due(&mut self) -> DueClose {
        let due = DueClose {
            side: self.side,
            position_side: self.position_side,
            qty: self.booked - self.settled,
            quote: self.quote - self.settled_quote,
            fee: self.fee - self.settled_fee,
            made: Time::default(),
        };
        self.settled = self.booked;
        self.settled_quote = self.quote;
        self.settled_fee = self.fee;
        due
    }
}

/// The part of a fill with this quantity; `None` if nothing is left.
fn part_of(fill: &Fill, qty: i64) -> Option<Fill> {
    let whole = fill.qty.0;
    if qty <= 0 {
        return None;
    }
    if qty >= whole {
        return Some(*fill);
    }
    let mut part = *fill;
    part.qty.0 = qty;
    part.quote_qty = fill.quote_qty.part(qty, whole);
    part.fee = fill.fee.part(qty, whole);
    part.realized_pnl = fill.realized_pnl.map(|pnl| pnl.part(qty, whole));
    Some(part)
}
