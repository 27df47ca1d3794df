//! The shares of strategies in the request weight and the order limits of the venue. One strategy
//! that places and cancels without pause cannot use up what the orders of another one need. Cancels
//! and closes never wait for a share; cancels count as use of their strategy.

use windvane_client_core::Gateway;
use windvane_client_core::budget::{Cost, Denial, Denied, Lane, LimitKind, RateLimit, Window};
use windvane_model::quota::{Quota, QuotaUse};
use windvane_model::{PositionSide, Request, Side};
use windvane_protocol::route::Surface;

use super::call::Purpose;
use super::state::Requests;

/// A share is tried again after this time at the earliest.
const AGAIN_MS: u64 = 1_000;
/// Limits with a longer interval are not divided: a share of a day would stop a strategy for hours.
const INTERVAL_MAX_MS: u64 = 60_000;

/// What each strategy used lately.
#[derive(Debug, Default)]
pub(super) struct OrderShares {
    /// The number of strategies; below two, nothing is divided.
    strategies: usize,
    used: Vec<Used>,
}

/// What one strategy used of one limit.
#[derive(Debug)]
struct Used {
    surface: Surface,
    limit: RateLimit,
    strategy: String,
    window: Window,
}

/// The strategy of a request, and whether it is an order that only reduces a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    strategy: String,
    is_exit: bool,
    is_sell: bool,
}

impl Owner {
    /// The owner of an order or of a cancel, from its client order id.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let (id, is_exit, is_sell) = match request {
            Request::Place(order) => {
                let terms = &order.terms;
                // In hedge mode and on spot, an exit has no flag of its own on the wire.
                let closes_side = matches!(
                    (terms.position_side, terms.side),
                    (PositionSide::Long, Side::Sell) | (PositionSide::Short, Side::Buy)
                );
                let is_exit = terms.reduce_only || terms.close_position || closes_side;
                (&order.client_order_id, is_exit, terms.side == Side::Sell)
            }
            Request::Cancel {
                client_order_id, ..
            } => (client_order_id, false, false),
            _ => return None,
        };
        let (strategy, ..) = id.parse_own()?;
        Some(Self {
            strategy: strategy.to_owned(),
            is_exit,
            is_sell,
        })
    }
}

impl OrderShares {
    /// Whether an order of this lane may leave as far as the other strategies are concerned.
    fn check(
        &mut self,
        now_ms: u64,
        gateway: &Gateway,
        (surface, owner): (Surface, &Owner),
        cost: &Cost,
    ) -> Result<(), Denied> {
        for limit in limits(gateway, surface) {
            let (cost, account, total) = match limit.kind {
                LimitKind::Weight => {
                    // The reserves of more urgent lanes are not divided.
                    let steady = gateway
                        .with_budgets(|budgets| budgets.of(surface).steady_weight(Lane::Place));
                    // It is for a minute; the window may be shorter.
                    let windows = (60_000 / limit.interval_ms.max(1)).max(1);
                    let steady = steady / u32::try_from(windows).unwrap_or(1);
                    let left = gateway.weight_left(now_ms, surface, Lane::Place);
                    (cost.weight, steady.saturating_sub(left), steady)
                }
                LimitKind::Orders => {
                    let used = gateway.with_budgets(|budgets| {
                        budgets.of(surface).orders_used(now_ms, limit.interval_ms)
                    });
                    (cost.orders, used, limit.limit)
                }
            };
            let Some(quota) = Quota::new(total.into(), self.strategies, 1) else {
                return Ok(());
            };
            if account.saturating_add(cost) > total {
                // The budget refuses it, with its own reason.
                continue;
            }
            let mut own = 0;
            let mut unused_by_others = 0;
            let mut seen = 0;
            for used in &mut self.used {
                if used.surface != surface || used.limit != limit {
                    continue;
                }
                let amount = i128::from(used.window.used(now_ms));
                if used.strategy == owner.strategy {
                    own = amount;
                } else {
                    seen += 1;
                    unused_by_others += quota.unused(amount, None);
                }
            }
            // The other strategies have used nothing yet.
            let rest = (self.strategies - 1).saturating_sub(seen);
            unused_by_others += quota.share() * i128::try_from(rest).unwrap_or_default();
            let usage = QuotaUse {
                own: own + i128::from(cost),
                account: i128::from(account) + i128::from(cost),
                unused_by_others,
                is_exit: owner.is_exit || (surface == Surface::Spot && owner.is_sell),
            };
            if !quota.admits(&usage) {
                return Err(Denied {
                    why: Denial::Share,
                    until_ms: Some(now_ms.saturating_add(AGAIN_MS)),
                });
            }
        }
        Ok(())
    }

    /// Counts a request that leaves.
    fn count(
        &mut self,
        now_ms: u64,
        gateway: &Gateway,
        (surface, owner): (Surface, &Owner),
        cost: &Cost,
    ) {
        let limits = limits(gateway, surface);
        self.used
            .retain(|used| used.surface != surface || limits.contains(&used.limit));
        for limit in limits {
            let cost = match limit.kind {
                LimitKind::Weight => cost.weight,
                LimitKind::Orders => cost.orders,
            };
            let known = self.used.iter().position(|used| {
                used.surface == surface && used.limit == limit && used.strategy == owner.strategy
            });
            let at = known.unwrap_or_else(|| {
                self.used.push(Used {
                    surface,
                    limit,
                    strategy: owner.strategy.clone(),
                    window: Window::new(limit.limit, limit.interval_ms),
                });
                self.used.len() - 1
            });
            self.used[at].window.count(now_ms, Lane::Place, cost);
        }
    }
}

impl Requests {
    /// Divides the venue's limits between this many strategies.
    pub(crate) const fn share_between(&mut self, strategies: usize) {
        self.shares.strategies = strategies;
    }

    /// Whether an order may leave as far as the other strategies are concerned. Every other request
    /// may.
    pub(super) fn check_share(
        &mut self,
        now_ms: u64,
        (surface, lane): (Surface, Lane),
        purpose: &Purpose,
        cost: &Cost,
    ) -> Result<(), Denied> {
        match self.owner(purpose) {
            Some(owner) if lane == Lane::Place => {
                let gateway = self.exchange.gateway();
                self.shares.check(now_ms, gateway, (surface, &owner), cost)
            }
            _ => Ok(()),
        }
    }

    /// Counts an order or a cancel that leaves as use of its strategy.
    pub(super) fn count_share(
        &mut self,
        now_ms: u64,
        surface: Surface,
        purpose: &Purpose,
        cost: &Cost,
    ) {
        if let Some(owner) = self.owner(purpose) {
            let gateway = self.exchange.gateway();
            self.shares.count(now_ms, gateway, (surface, &owner), cost);
        }
    }

    fn owner(&self, purpose: &Purpose) -> Option<Owner> {
        let Purpose::Part(number) = purpose else {
            return None;
        };
        if self.shares.strategies < 2 {
            return None;
        }
        Owner::of(&self.pending.get(number)?.request)
    }
}

fn limits(gateway: &Gateway, surface: Surface) -> Vec<RateLimit> {
    let mut limits = gateway.with_budgets(|budgets| budgets.of(surface).limits());
    limits.retain(|limit| limit.interval_ms <= INTERVAL_MAX_MS);
    limits
}

#[cfg(test)]
mod tests;
