//! Checks of an intent before it is accepted: the venue's rules with the engine's state, and the
//! risk limits in the worst case.

use windvane_model::decimal::{Amount, Decimal, MARK_SCALE, decimal};
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::holding::Ledger;
use windvane_model::ids::{InstrumentId, OrderSeq, StrategyId};
use windvane_model::ledger::value;
use windvane_model::order::{OrderTerms, OrderType, PositionSide, Side, Surface};
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::risk::{Exposure, RateWindow, RiskLimits};
use windvane_model::rules::{OrderContext, Rejection, Rule};
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::timer::Timer;
use windvane_model::{planted, rules};

use crate::callback::Callback;

use super::closing::{closes_side, covers};
use super::quotas::Asks;
use super::{Engine, OpenOrders};

impl Engine {
    pub(crate) const fn next_order(&self) -> OrderSeq {
        self.next_order
    }

    pub(crate) fn timers_of(&self, strategy: StrategyId) -> usize {
        self.timers.count_of(strategy)
    }

    /// Whether a strategy has set a timer with this token.
    pub fn has_timer(&self, strategy: StrategyId, token: i64) -> bool {
        self.timers.is_set(Timer::Strategy { strategy, token })
    }

    /// Whether an instrument is granted to a strategy.
    #[inline]
    pub(crate) fn grants(&self, strategy: StrategyId, instrument: InstrumentId) -> bool {
        self.strategies
            .get(usize::from(strategy.0))
            .is_some_and(|state| {
                let granted = &state.config.subscriptions;
                granted.iter().any(|s| s.instrument == instrument)
            })
    }

    /// Whether an instrument is granted to another strategy too.
    pub(crate) fn is_shared(&self, strategy: StrategyId, instrument: InstrumentId) -> bool {
        self.others(strategy)
            .any(|(other, _)| self.grants(other, instrument))
    }

    /// Checks the documents' rules. The `pending` orders of the running callback in the instrument
    /// count as open.
    pub(crate) fn check_venue_rules(
        &self,
        terms: &OrderTerms,
        pending: OpenOrders,
    ) -> Result<(), Rejection> {
        let index = usize::from(terms.instrument.0);
        let market = &self.markets[index];
        let open = self.open_orders[index];
        let known = |level: windvane_model::market::Level| (level.qty > 0).then_some(level.price);
        let context = OrderContext {
            hedge_mode: self.hedge_mode,
            mark: market.mark(self.instruments[index].price_scale),
            last: market.last,
            best_bid: known(market.book.bid()),
            best_ask: known(market.book.ask()),
            open_orders: open.all + pending.all,
            open_algo_orders: open.conditional + pending.conditional,
        };
        rules::check(&self.rules[index], terms, &context)
    }

    /// Whether the spot position is certain, so that an order which sells a part of it opens
    /// nothing, whatever other degraded reasons hold. On futures, the venue itself keeps an exit
    /// from opening a position.
    fn may_exit_spot(&self, instrument: InstrumentId) -> bool {
        let reasons = [
            DegradedReason::LostEvents(Surface::Spot),
            DegradedReason::StatedBalance(Surface::Spot),
            DegradedReason::Watchdog,
        ];
        let live = self.live.as_ref();
        self.surface_of(instrument) == Surface::Spot
            && live.is_some_and(|live| {
                live.is_healthy(Surface::Spot, self.now) && !live.is_degraded_for(&reasons)
            })
    }

    /// Checks the account's limits, then the strategy's own.
    pub(crate) fn check_limits(
        &self,
        strategy: StrategyId,
        terms: &OrderTerms,
        reduces: bool,
        worst_qty: i64,
        callback: &Callback,
    ) -> Result<(), Rejection> {
        let state = &self.strategies[usize::from(strategy.0)];
        if state.fault.is_some() {
            return Err(Rule::Quarantined.plain());
        }
        let paused =
            self.kill_switch == KillSwitch::Paused || state.kill_switch == KillSwitch::Paused;
        match self.state.under(state.kill_switch) {
            RunState::Ready => {}
            RunState::Halted => return Err(Rule::Halted.plain()),
            // The venue itself keeps such an order from opening a position.
            RunState::Degraded if terms.reduce_only || terms.close_position => {}
            RunState::Degraded if closes_side(terms) => {}
            // The position is certain: the trading status decides.
            RunState::Degraded
                if self.is_degraded_only_by_trading_status() && (reduces || !paused) => {}
            RunState::Degraded if reduces && self.may_exit_spot(terms.instrument) => {}
            RunState::Degraded if planted!(ExposureWhileDegraded) => {}
            RunState::Degraded | RunState::Syncing | RunState::Booting => {
                return Err(Rule::Degraded.plain());
            }
            RunState::Paused if reduces || terms.close_position => {}
            RunState::Paused => return Err(Rule::Paused.plain()),
        }
        self.check_trading_status(strategy, terms, reduces, callback)?;
        let closes = reduces || terms.reduce_only || terms.close_position;
        if !closes && self.unusable_rules(terms.instrument).is_some() {
            return Err(Rule::RulesUnusable.plain());
        }
        if !closes && self.has_unknown_order(strategy, terms.instrument) {
            return Err(Rule::Degraded.plain());
        }
        let order = Sized { terms, worst_qty };
        let open = self.orders.len() as u32;
        let account = Party {
            shared_by: Some(strategy),
            limits: &self.limits,
            ledger: &self.ledgers.account,
            rate: &self.rate,
            open_orders: open,
        };
        let own = Party {
            shared_by: None,
            limits: &state.config.limits,
            ledger: &self.ledgers.strategies[usize::from(strategy.0)],
            rate: &state.rate,
            open_orders: state.open_orders,
        };
        if !planted!(AccountLimitsForgotten) {
            self.check_party(&account, &order, callback)?;
        }
        self.check_party(&own, &order, callback)?;
        let asks = Asks {
            strategy,
            terms,
            worst_qty,
            is_exit: closes || self.only_reduces_own(strategy, terms, worst_qty, callback),
            callback,
        };
        self.check_quotas(&asks)?;
        self.check_margin_share(&asks)
    }

    /// Whether an order reduces the strategy's own position whatever its other orders do.
    fn only_reduces_own(
        &self,
        strategy: StrategyId,
        terms: &OrderTerms,
        worst_qty: i64,
        callback: &Callback,
    ) -> bool {
        let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
        let order = Sized { terms, worst_qty };
        let (_, after) = exposures(ledger, &order, callback);
        after.side_qty(terms.side) <= 0
    }

    /// Whether an order of a strategy in an instrument has an unknown outcome. The position is then
    /// not certain, and the strategy might send the same intent again and again.
    fn has_unknown_order(&self, strategy: StrategyId, instrument: InstrumentId) -> bool {
        let mut orders = self.orders.of(strategy, Some(instrument));
        self.live.is_some() && orders.any(|order| order.state == OrderState::Unknown)
    }

    /// Whether an order that waited for its countdown may still be sent. An exit always may. Any
    /// other order may if it could be submitted now.
    pub(super) fn may_still_send(&self, order: &Order) -> bool {
        let terms = &order.terms;
        let ledger = &self.ledgers.strategies[usize::from(order.strategy.0)];
        let held = ledger
            .at(terms.instrument, terms.position_side)
            .position
            .qty;
        let is_exit = terms.reduce_only || terms.close_position;
        if is_exit || covers(held, terms.side, order.remaining_qty()) {
            return true;
        }
        let is_certain = match self.state {
            RunState::Ready | RunState::Paused => true,
            RunState::Degraded => self.is_degraded_only_by_trading_status(),
            RunState::Halted | RunState::Syncing | RunState::Booting => {
                self.is_flattening(order.strategy)
            }
        };
        is_certain && !self.is_blocked(terms)
    }

    fn check_party(
        &self,
        party: &Party<'_>,
        order: &Sized<'_>,
        callback: &Callback,
    ) -> Result<(), Rejection> {
        let limits = party.limits;
        if let Some(max) = limits.max_open_orders {
            let open = party.open_orders + callback.submitted;
            if open >= max {
                return Err(Rule::RiskOpenOrders.with((open + 1).into(), max.into()));
            }
        }
        if let Some(max) = limits.max_orders_per_minute
            && !party.rate.fits(self.now, callback.submitted, max)
        {
            return Err(Rule::RiskOrdersPerMinute.with((u64::from(max) + 1).into(), max.into()));
        }
        if let Some(collar_ppm) = limits.price_collar_ppm {
            self.check_collar(order.terms, collar_ppm)?;
        }
        if limits.max_order_notional.is_none() && limits.max_position_notional.is_none() {
            return Ok(());
        }
        self.check_notional(party, order, callback)
    }

    fn check_notional(
        &self,
        party: &Party<'_>,
        order: &Sized<'_>,
        callback: &Callback,
    ) -> Result<(), Rejection> {
        let terms = order.terms;
        let Some(price) = self.risk_price(terms) else {
            return Err(Rule::RiskNoReferencePrice.plain());
        };
        let instrument = &self.instruments[usize::from(terms.instrument.0)];
        let notional = value(instrument, order.worst_qty, price);
        if let Some(max) = party.limits.max_order_notional
            && notional > max
        {
            return Err(amounts(Rule::RiskOrderNotional, notional, max));
        }
        let Some(max) = party.limits.max_position_notional else {
            return Ok(());
        };
        let (before, after) = exposures(party.ledger, order, callback);
        // A larger possible exposure on the other side does not cover this order, because those
        // orders may end without a fill.
        let own_side = after.side_qty(terms.side);
        let covered = planted!(OtherSideCovers) || own_side <= 0;
        let no_worse = after.worst_qty() <= before.worst_qty();
        if no_worse && covered {
            return Ok(());
        }
        let Some(others) = self.worst_notional(party.ledger, callback, terms) else {
            return Err(Rule::RiskNoReferencePrice.plain());
        };
        let worst = if no_worse {
            own_side
        } else {
            after.worst_qty()
        };
        let total = others + value(instrument, worst, price);
        if total > max {
            return Err(amounts(Rule::RiskPositionNotional, total, max));
        }
        let Some(strategy) = party.shared_by.filter(|_| self.strategies.len() > 1) else {
            return Ok(());
        };
        let ledger = &self.ledgers.strategies[usize::from(strategy.0)];
        let (before, after) = exposures(ledger, order, callback);
        if after.worst_qty() <= before.worst_qty() {
            return Ok(());
        }
        let Some(others) = self.worst_notional(ledger, callback, terms) else {
            return Err(Rule::RiskNoReferencePrice.plain());
        };
        let own = others + value(instrument, after.worst_qty(), price);
        self.check_notional_quota(strategy, max, (total, own))
    }

    /// Worst-case notional of every holding except the order's own; `None` while the price of one
    /// of them is not known, as after a restart. Without a price the holding would count as
    /// nothing.
    fn worst_notional(
        &self,
        ledger: &Ledger,
        callback: &Callback,
        terms: &OrderTerms,
    ) -> Option<Amount> {
        let mut total = Amount::ZERO;
        for (id, side, holding) in ledger.iter() {
            if (id, side) == (terms.instrument, terms.position_side) {
                continue;
            }
            let (buy, sell) = callback.added_to(id, side);
            let exposure = Exposure {
                position: holding.position.qty,
                open_buy: holding.open_buy + buy,
                open_sell: holding.open_sell + sell,
            };
            let worst = exposure.worst_qty();
            if worst != 0 {
                let price = self.risk_price(&OrderTerms::new(id, Side::Buy, OrderType::Market))?;
                total += value(&self.instruments[usize::from(id.0)], worst, price);
            }
        }
        Some(total)
    }

    /// The price at which an order counts, at scale 8: the highest of its own prices and the
    /// market's.
    pub(super) fn risk_price(&self, terms: &OrderTerms) -> Option<i64> {
        let index = usize::from(terms.instrument.0);
        let (market, instrument) = (&self.markets[index], &self.instruments[index]);
        let own = terms.price.max(terms.stop_price).map(|price| price.0);
        let known = market
            .last
            .filter(|_| market.mark(instrument.price_scale).is_none());
        let scaled = own.max(known).map(|price| {
            let wide = Amount::notional(price, instrument.price_scale, 1, 0);
            i64::try_from(wide.0).unwrap_or(i64::MAX)
        });
        scaled.max(market.mark(instrument.price_scale))
    }

    /// Checks that limit and stop prices are within the collar around mid.
    fn check_collar(&self, terms: &OrderTerms, collar_ppm: u32) -> Result<(), Rejection> {
        let index = usize::from(terms.instrument.0);
        for price in [terms.price, terms.stop_price].into_iter().flatten() {
            let Some(twice) = self.markets[index].book.mid_twice() else {
                return Err(Rule::RiskNoReferencePrice.plain());
            };
            let distance = (i128::from(price.0) * 2 - i128::from(twice)).abs();
            if distance * 1_000_000 > i128::from(twice) * i128::from(collar_ppm) {
                let instrument = &self.instruments[index];
                let mid = self.markets[index].mid(instrument.price_scale).unwrap_or(0);
                let mid = decimal(i128::from(mid), MARK_SCALE);
                return Err(Rule::RiskPriceCollar.with(instrument.price(price.0), mid));
            }
        }
        Ok(())
    }

    /// `closePosition` closes the whole position of the account when the order triggers. So only a
    /// strategy that owns all of the position may use it, and only where no other strategy can open
    /// one meanwhile.
    pub(crate) fn check_sole_owner(
        &self,
        strategy: StrategyId,
        instrument: InstrumentId,
        side: PositionSide,
    ) -> Result<(), Rejection> {
        let account = self.ledgers.account.at(instrument, side).position.qty;
        let own = self.ledgers.strategies[usize::from(strategy.0)].at(instrument, side);
        if account == own.position.qty && !self.is_shared(strategy, instrument) {
            return Ok(());
        }
        let rule = Rule::ClosePositionShared;
        Err(self.qty_rejection(rule, instrument, account, own.position.qty))
    }

    pub(crate) fn qty_rejection(
        &self,
        rule: Rule,
        instrument: InstrumentId,
        value: i64,
        limit: i64,
    ) -> Rejection {
        let qty = |qty| {
            self.instrument(instrument)
                .map_or(Decimal::ZERO, |instrument| instrument.qty(qty))
        };
        rule.with(qty(value), qty(limit))
    }
}

/// An order with its worst-case quantity.
pub(super) struct Sized<'a> {
    pub(super) terms: &'a OrderTerms,
    pub(super) worst_qty: i64,
}

/// The owner of the limits that are checked: the account or a strategy.
struct Party<'a> {
    /// The strategy that shares the limits with others; `None` for its own limits.
    shared_by: Option<StrategyId>,
    limits: &'a RiskLimits,
    ledger: &'a Ledger,
    rate: &'a RateWindow,
    open_orders: u32,
}

/// The exposure of the order's holding without and with the order.
pub(super) fn exposures(
    ledger: &Ledger,
    order: &Sized<'_>,
    callback: &Callback,
) -> (Exposure, Exposure) {
    let terms = order.terms;
    let holding = ledger.at(terms.instrument, terms.position_side);
    let (buy, sell) = callback.added_to(terms.instrument, terms.position_side);
    let before = Exposure {
        position: holding.position.qty,
        open_buy: holding.open_buy + buy,
        open_sell: holding.open_sell + sell,
    };
    let mut after = before;
    match terms.side {
        Side::Buy => after.open_buy = after.open_buy.saturating_add(order.worst_qty),
        Side::Sell => after.open_sell = after.open_sell.saturating_add(order.worst_qty),
    }
    (before, after)
}

fn amounts(rule: Rule, value: Amount, limit: Amount) -> Rejection {
    rule.with(value.to_decimal(), limit.to_decimal())
}
