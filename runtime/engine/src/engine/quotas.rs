//! The shares of strategies in the limits of the account, so that one strategy cannot take what
//! another one needs. With one strategy there is nothing to divide.
//!
//! All numbers come from the engine's present state: open orders, the orders of the last minute,
//! and the ledgers. A strategy that is halted or in quarantine keeps its share.

use windvane_model::decimal::{Amount, Decimal};
use windvane_model::holding::Ledger;
use windvane_model::ids::{InstrumentId, StrategyId};
use windvane_model::ledger::value;
use windvane_model::order::{OrderTerms, OrderType, Side};
use windvane_model::planted;
use windvane_model::quota::{Quota, QuotaUse};
use windvane_model::rules::{Rejection, Rule};

use crate::callback::Callback;

use super::{Engine, OpenOrders, StrategyState};

/// An order that asks for a part of the account's limits.
pub(super) struct Asks<'a> {
    pub(super) strategy: StrategyId,
    pub(super) terms: &'a OrderTerms,
    /// The quantity at which it counts in the worst case.
    pub(super) worst_qty: i64,
    /// Whether it only reduces a position.
    pub(super) is_exit: bool,
    pub(super) callback: &'a Callback,
}

/// A limit of the account by number of orders, and what is used of it without the order.
struct Counted {
    rule: Rule,
    quota: Quota,
    account: u32,
    own: u32,
}

impl Engine {
    /// Checks the strategy's shares in the account's limits. The limits themselves were checked
    /// before.
    pub(super) fn check_quotas(&self, asks: &Asks<'_>) -> Result<(), Rejection> {
        if self.strategies.len() < 2 || planted!(AccountLimitsForgotten) {
            return Ok(());
        }
        self.check_instrument_quotas(asks)?;
        self.check_open_orders_quota(asks)?;
        self.check_rate_quota(asks)
    }

    fn check_open_orders_quota(&self, asks: &Asks<'_>) -> Result<(), Rejection> {
        let Some(quota) = self.quota(self.limits.max_open_orders) else {
            return Ok(());
        };
        let counted = Counted {
            rule: Rule::QuotaOpenOrders,
            quota,
            account: self.orders.len() as u32 + asks.callback.submitted,
            own: self.state_of(asks.strategy).open_orders + asks.callback.submitted,
        };
        counted.check(asks.is_exit, || {
            let others = self.others(asks.strategy);
            let unused = others.map(|(_, other)| {
                let own_limit = other.config.limits.max_open_orders;
                quota.unused(other.open_orders.into(), own_limit.map(i128::from))
            });
            unused.sum()
        })
    }

    fn check_rate_quota(&self, asks: &Asks<'_>) -> Result<(), Rejection> {
        let Some(quota) = self.quota(self.limits.max_orders_per_minute) else {
            return Ok(());
        };
        let submitted = asks.callback.submitted;
        let counted = Counted {
            rule: Rule::QuotaOrdersPerMinute,
            quota,
            account: self.rate.used(self.now) as u32 + submitted,
            own: self.state_of(asks.strategy).rate.used(self.now) as u32 + submitted,
        };
        counted.check(asks.is_exit, || {
            let others = self.others(asks.strategy);
            let unused = others.map(|(_, other)| {
                let own_limit = other.config.limits.max_orders_per_minute;
                quota.unused(other.rate.used(self.now) as i128, own_limit.map(i128::from))
            });
            unused.sum()
        })
    }

    /// Checks the shares in the venue's limits of the instrument. Only strategies that trade the
    /// instrument have one.
    fn check_instrument_quotas(&self, asks: &Asks<'_>) -> Result<(), Rejection> {
        let id = asks.terms.instrument;
        let (open, pending) = (
            self.open_orders[usize::from(id.0)],
            asks.callback.orders_added_to(id),
        );
        let rules = &self.rules[usize::from(id.0)];
        let all: fn(&OpenOrders) -> u32 = |orders| orders.all;
        let conditional: fn(&OpenOrders) -> u32 = |orders| orders.conditional;
        for (rule, max, count) in [
            (
                Rule::QuotaInstrumentOrders,
                rules.orders_max_for(asks.terms),
                all,
            ),
            (
                Rule::QuotaInstrumentAlgoOrders,
                rules.algo_orders_max_for(asks.terms),
                conditional,
            ),
        ] {
            let Some(max) = max else { continue };
            let traders = self.strategies.iter().filter(|state| trades(state, id));
            let Some(quota) = Quota::new(max.into(), traders.count(), 1) else {
                continue;
            };
            let account = count(&open) + count(&pending);
            // Counting the orders of each strategy is slow, and seldom necessary.
            if quota.has_plenty(i128::from(account) + 1) {
                continue;
            }
            let used = |strategy| count(&self.open_orders_of(strategy, id));
            let counted = Counted {
                rule,
                quota,
                account,
                own: used(asks.strategy) + count(&pending),
            };
            counted.check(asks.is_exit, || {
                let others = self.others(asks.strategy);
                let traders = others.filter(|(_, other)| trades(other, id));
                let unused = traders.map(|(strategy, other)| {
                    let own_limit = other.config.limits.max_open_orders;
                    quota.unused(used(strategy).into(), own_limit.map(i128::from))
                });
                unused.sum()
            })?;
        }
        Ok(())
    }

    /// Checks the strategy's share in the account's `max_position_notional`, for an order that
    /// increases the account's worst case to `account` and the strategy's own to `own`.
    pub(super) fn check_notional_quota(
        &self,
        strategy: StrategyId,
        max: Amount,
        (account, own): (Amount, Amount),
    ) -> Result<(), Rejection> {
        let Some(quota) = Quota::of_amount(max.0, self.strategies.len()) else {
            return Ok(());
        };
        if quota.has_plenty(account.0) || own.0 <= quota.share() {
            return Ok(());
        }
        let unused = self.others(strategy).map(|(id, other)| {
            let ledger = &self.ledgers.strategies[usize::from(id.0)];
            let own_limit = other.config.limits.max_position_notional;
            quota.unused(self.exposure(ledger).0, own_limit.map(|limit| limit.0))
        });
        let usage = QuotaUse {
            own: own.0,
            account: account.0,
            unused_by_others: unused.sum(),
            // An order that only reduces increases no worst case, so it is not checked at all.
            is_exit: false,
        };
        if quota.admits(&usage) {
            return Ok(());
        }
        let share = Amount(quota.share()).to_decimal();
        Err(Rule::QuotaPositionNotional.with(own.to_decimal(), share))
    }

    /// The worst-case notional of all holdings of a ledger. A holding without a known price counts
    /// as nothing, so the other strategies get less.
    fn exposure(&self, ledger: &Ledger) -> Amount {
        let holdings = ledger.iter().filter_map(|(id, _, holding)| {
            let worst = holding.exposure().worst_qty();
            if worst == 0 {
                return None;
            }
            let any = OrderTerms::new(id, Side::Buy, OrderType::Market);
            let price = self.risk_price(&any)?;
            Some(value(&self.instruments[usize::from(id.0)], worst, price))
        });
        holdings.sum()
    }

    fn quota(&self, limit: Option<u32>) -> Option<Quota> {
        Quota::new(limit?.into(), self.strategies.len(), 1)
    }

    fn state_of(&self, strategy: StrategyId) -> &StrategyState {
        &self.strategies[usize::from(strategy.0)]
    }

    pub(super) fn others(
        &self,
        strategy: StrategyId,
    ) -> impl Iterator<Item = (StrategyId, &StrategyState)> {
        let all = self.strategies.iter().enumerate();
        let all = all.map(|(place, state)| (StrategyId(place as u16), state));
        all.filter(move |(other, _)| *other != strategy)
    }

    fn open_orders_of(&self, strategy: StrategyId, instrument: InstrumentId) -> OpenOrders {
        let mut open = OpenOrders::default();
        for order in self.orders.of(strategy, Some(instrument)) {
            open.all += 1;
            open.conditional += u32::from(order.terms.order_type.is_conditional());
        }
        open
    }
}

impl Counted {
    fn check(
        &self,
        is_exit: bool,
        unused_by_others: impl FnOnce() -> i128,
    ) -> Result<(), Rejection> {
        let (own, account) = (i128::from(self.own) + 1, i128::from(self.account) + 1);
        if self.quota.has_plenty(account) || own <= self.quota.share() {
            return Ok(());
        }
        let usage = QuotaUse {
            own,
            account,
            unused_by_others: unused_by_others(),
            is_exit,
        };
        if self.quota.admits(&usage) {
            return Ok(());
        }
        let share = u64::try_from(self.quota.share()).unwrap_or_default();
        let own = Decimal::from(u64::from(self.own) + 1);
        Err(self.rule.with(own, share.into()))
    }
}

fn trades(state: &StrategyState, instrument: InstrumentId) -> bool {
    let granted = &state.config.subscriptions;
    granted.iter().any(|one| one.instrument == instrument)
}
