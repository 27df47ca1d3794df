//! Conditional orders: when they trigger, and how they continue
//! (docs/interface/futures.md#conditional-orders; the same table applies to spot).
//!
//! - The latest price is the last trade, or the mark price with `workingType` `MARK_PRICE`. The mid
//!   is the mark price if none is recorded. Before the first trade, the latest price is the mark
//!   price.
//! - An order whose condition already holds on arrival is rejected with -2021.
//! - A waiting order reserves nothing. When it triggers, it becomes a LIMIT or MARKET order at
//!   once. If the account cannot carry it then, it ends EXPIRED. No event reports the trigger: the
//!   next event of the order is its fill or its end. [`Triggered`] has the variants in which it
//!   ends EXPIRED and another order continues.
//! - `priceProtect`: if mark price and contract price differ by more than `triggerProtect` of the
//!   mark price at the trigger, the order ends EXPIRED.
//! - `closePosition` closes the position that exists when it triggers. Without a position it ends
//!   EXPIRED.

use windvane_model::{
    ClientOrderId, ExecutionType, InstrumentId, OrderStatus, OrderTerms, OrderType, Side,
    VenueOrderId, WorkingType,
};

use crate::code::Code;
use crate::config::Rate;
use crate::market::{Alert, Market};
use crate::open_terms::Triggered;
use crate::order::{Order, Stage};
use crate::order_key::OrderKey;
use crate::venue::Venue;

/// Whether a stop condition holds at `latest`.
fn reached(terms: &OrderTerms, stop: i64, latest: i64) -> bool {
    if rises(terms) {
        latest >= stop
    } else {
        latest <= stop
    }
}

/// Whether the condition is a price that rises to `stopPrice`.
fn rises(terms: &OrderTerms) -> bool {
    let takes_profit = match terms.order_type {
        OrderType::TakeProfit | OrderType::TakeProfitMarket => true,
        OrderType::Stop
        | OrderType::StopMarket
        | OrderType::TrailingStopMarket
        // These have no condition.
        | OrderType::Limit
        | OrderType::Market
        | OrderType::Liquidation => false,
    };
    (terms.side == Side::Buy) != takes_profit
}

fn working_type(terms: &OrderTerms) -> WorkingType {
    terms.working_type.unwrap_or(WorkingType::ContractPrice)
}

impl Market {
    /// The price that is compared with the condition, at the mark's scale; 0 if unknown.
    fn latest(&self, working: WorkingType) -> i64 {
        match working {
            WorkingType::ContractPrice if self.last > 0 => self.at_mark_scale(self.last),
            _ => self.mark_price(),
        }
    }

    /// Adds the last prices that may trigger this order to the alert.
    fn watch_last(&mut self, terms: &OrderTerms) {
        let (low, high) = &mut self.alert.last;
        match terms.stop_price {
            Some(stop) if rises(terms) => *high = stop.0.min(*high),
            Some(stop) => *low = stop.0.max(*low),
            // A trailing stop follows every price.
            None => *low = i64::MAX,
        }
    }
}

impl Venue {
    /// Rejects an order that would trigger at once.
    pub(crate) fn check_trigger(&self, terms: &OrderTerms) -> Result<(), Code> {
        let market = self.at(terms.instrument);
        let latest = market.latest(working_type(terms));
        if latest == 0 {
            return Ok(());
        }
        let immediate = match (terms.stop_price, terms.activation_price) {
            (Some(stop), _) => reached(terms, market.at_mark_scale(stop.0), latest),
            (None, Some(activation)) => {
                let activation = market.at_mark_scale(activation.0);
                match terms.side {
                    Side::Buy => activation >= latest,
                    Side::Sell => activation <= latest,
                }
            }
            (None, None) => false,
        };
        if immediate {
            Err(Code::WouldTrigger)
        } else {
            Ok(())
        }
    }

    /// Adds an accepted conditional order to the waiting orders.
    pub(crate) fn wait(&mut self, key: OrderKey) {
        let terms = self.orders.at(key).terms;
        let market = self.at_mut(terms.instrument);
        let latest = market.latest(working_type(&terms));
        let activation = terms
            .activation_price
            .map_or(latest, |price| market.at_mark_scale(price.0));
        market.waiting.push(key);
        let order = self.orders.at_mut(key);
        order.activation = activation;
        order.extreme = latest;
        self.watch_triggers(terms.instrument);
    }

    /// Removes an order from the waiting orders.
    pub(crate) fn forget(&mut self, key: OrderKey) {
        let instrument = self.orders.at(key).terms.instrument;
        self.at_mut(instrument).waiting.retain(|k| *k != key);
        self.watch_triggers(instrument);
    }

    /// Recomputes the alerts of the waiting orders.
    pub(crate) fn watch_triggers(&mut self, instrument: InstrumentId) {
        let market = &mut self.markets[usize::from(instrument.0)];
        market.alert.last = Alert::QUIET.last;
        market.by_mark = Alert::QUIET.mid_twice;
        for key in market.waiting.clone() {
            let terms = &self.orders.at(key).terms;
            match working_type(terms) {
                WorkingType::ContractPrice => market.watch_last(terms),
                WorkingType::MarkPrice => match terms.stop_price {
                    Some(stop) if rises(terms) => {
                        market.by_mark.1 = market.by_mark.1.min(2 * stop.0);
                    }
                    Some(stop) => market.by_mark.0 = market.by_mark.0.max(2 * stop.0),
                    None => market.by_mark.0 = i64::MAX,
                },
            }
        }
        market.watch_mid();
    }

    /// Handles a change of a trigger price: triggers every order whose condition holds now, oldest
    /// first.
    pub(crate) fn trigger(&mut self, instrument: InstrumentId, working: WorkingType) {
        let market = &self.markets[usize::from(instrument.0)];
        if market.waiting.is_empty() {
            return;
        }
        let latest = market.latest(working);
        let mut due = Vec::new();
        for key in &market.waiting {
            let order = self.orders.at_mut(*key);
            let stop = order.terms.stop_price.map(|s| market.at_mark_scale(s.0));
            if working_type(&order.terms) != working {
                continue;
            }
            let holds = match stop {
                Some(stop) => reached(&order.terms, stop, latest),
                None => order.trail(latest),
            };
            if holds {
                due.push(*key);
            }
        }
        for key in due {
            self.activate(key);
        }
    }

    fn activate(&mut self, key: OrderKey) {
        self.forget(key);
        let terms = self.orders.at(key).terms;
        let market = self.at(terms.instrument);
        let closable = market.closable(terms.position_side, terms.side);
        let unprotected = terms.price_protect && market.is_dislocated();
        let order = self.orders.at_mut(key);
        order.stage = Stage::Active;
        order.triggered = true;
        if terms.close_position {
            order.qty = closable;
        }
        let carried = {
            let order = self.orders.at(key);
            order.qty > 0 && self.check_funds(order).is_ok()
        };
        if unprotected || !carried {
            return self.end(key, OrderStatus::Expired);
        }
        let key = match self.open_terms.triggered {
            Triggered::GoesOn => key,
            Triggered::NewNumber | Triggered::NewOrder => self.replace_triggered(key),
        };
        self.lock(key);
        self.execute(key);
    }

    /// Ends a triggered order and reports the order that continues in its place.
    fn replace_triggered(&mut self, key: OrderKey) -> OrderKey {
        let mut order = self.orders.at(key).clone();
        // The order that ends here is the conditional order as it was sent.
        self.orders.at_mut(key).triggered = false;
        self.end(key, OrderStatus::Expired);
        self.order_id += 1;
        order.id = VenueOrderId(self.order_id);
        if self.open_terms.triggered == Triggered::NewOrder {
            order.client_order_id =
                ClientOrderId::from_venue(&format!("triggered_{}", self.order_id));
        }
        (order.created, order.updated) = (self.now, self.now);
        let key = self.orders.insert(order);
        self.reserve(key);
        self.emit_order(key, ExecutionType::New, None);
        key
    }
}

impl Order {
    /// Updates a trailing stop with the latest price. Returns true once the price has moved back
    /// from its extreme by the callback rate, if the extreme had reached the activation price.
    fn trail(&mut self, latest: i64) -> bool {
        if self.extreme == 0 {
            // No price was known on arrival, so this is the first price.
            self.extreme = latest;
            self.activation = if self.activation == 0 {
                latest
            } else {
                self.activation
            };
        }
        let part = i128::from(self.terms.callback_ppm.unwrap_or(0));
        let latest_wide = i128::from(latest) * 1_000_000;
        if self.is_buy() {
            self.extreme = self.extreme.min(latest);
            let back = i128::from(self.extreme) * (1_000_000 + part);
            self.extreme <= self.activation && latest_wide >= back
        } else {
            self.extreme = self.extreme.max(latest);
            let back = i128::from(self.extreme) * (1_000_000 - part);
            self.extreme >= self.activation && latest_wide <= back
        }
    }
}

impl Market {
    /// Whether mark price and contract price differ by more than `triggerProtect`.
    fn is_dislocated(&self) -> bool {
        let (Some(Rate(bound)), mark) = (self.fractions.trigger_protect, self.mark_price()) else {
            return false;
        };
        let gap = (self.latest(WorkingType::ContractPrice) - mark).abs();
        i128::from(gap) * i128::from(Rate::ONE) > i128::from(mark) * i128::from(bound)
    }
}
