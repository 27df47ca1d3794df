//! The shares of strategies in the margin of the account. Without them, the positions and opening
//! orders of one strategy could take all of it, and the venue would refuse the opening orders of
//! every strategy.
//!
//! The margin of an order is its worst-case notional divided by the leverage of the symbol; on spot
//! it is the notional itself. What a strategy may use depends on the funds of the surface in the
//! quote asset of the order: the balance, and what is held, at the present price. Nothing is
//! refused where the leverage, a price or the funds are not known.

use windvane_model::config::StrategyConfig;
use windvane_model::decimal::Amount;
use windvane_model::holding::Ledger;
use windvane_model::ids::{AssetId, InstrumentId};
use windvane_model::ledger::{base_value, value};
use windvane_model::order::{OrderTerms, OrderType, Side, Surface};
use windvane_model::planted;
use windvane_model::quota::{Quota, QuotaUse};
use windvane_model::risk::Exposure;
use windvane_model::rules::{Rejection, Rule};

use super::Engine;
use super::limits::{Sized, exposures};
use super::quotas::Asks;

/// The instruments that use the same funds: those of a surface with one quote asset.
#[derive(Clone, Copy)]
struct Funds {
    surface: Surface,
    quote: AssetId,
}

impl Engine {
    /// Checks the strategy's share in the margin, for an order that may open a position.
    pub(super) fn check_margin_share(&self, asks: &Asks<'_>) -> Result<(), Rejection> {
        if asks.is_exit || self.strategies.len() < 2 || planted!(AccountLimitsForgotten) {
            return Ok(());
        }
        let Some((own, account, quota, funds)) = self.margin_use(asks) else {
            return Ok(());
        };
        if own.0 <= quota.share() || quota.has_plenty(account.0) {
            return Ok(());
        }
        let others = self.others(asks.strategy);
        let unused = others
            .filter(|(_, other)| self.draws_on(&other.config, funds))
            .map(|(id, other)| {
                let ledger = &self.ledgers.strategies[usize::from(id.0)];
                let used = self.margin(ledger, funds, None);
                quota.unused(
                    used.0,
                    self.most_margin(&other.config, funds).map(|max| max.0),
                )
            });
        let usage = QuotaUse {
            own: own.0,
            account: account.0,
            unused_by_others: unused.sum(),
            is_exit: false,
        };
        if quota.admits(&usage) {
            return Ok(());
        }
        let share = Amount(quota.share()).to_decimal();
        Err(Rule::QuotaMargin.with(own.to_decimal(), share))
    }

    /// What the strategy and the account would use with the order, and the quota of the funds.
    /// `None` if something that the check needs is not known.
    fn margin_use(&self, asks: &Asks<'_>) -> Option<(Amount, Amount, Quota, Funds)> {
        let instrument = &self.instruments[usize::from(asks.terms.instrument.0)];
        let funds = Funds {
            surface: instrument.surface,
            quote: instrument.quote,
        };
        self.leverage(asks.terms.instrument)?;
        self.risk_price(asks.terms)?;
        let limit = self.funds(funds).filter(|limit| limit.0 > 0)?;
        let all = self.strategies.iter();
        let sharing = all.filter(|state| self.draws_on(&state.config, funds));
        let quota = Quota::of_amount(limit.0, sharing.count())?;
        let own = &self.ledgers.strategies[usize::from(asks.strategy.0)];
        let own = self.margin(own, funds, Some(asks));
        let account = self.margin(&self.ledgers.account, funds, Some(asks));
        Some((own, account, quota, funds))
    }

    /// The balance, and the present value of what is held.
    fn funds(&self, of: Funds) -> Option<Amount> {
        // With several margin assets, this quote asset is not the only source of margin.
        let live = self.live.as_ref();
        if of.surface == Surface::Futures && live.is_some_and(|live| live.config.multi_assets) {
            return None;
        }
        let mut funds = self.balance(of.surface, of.quote).total;
        for (index, instrument) in self.instruments.iter().enumerate() {
            let id = InstrumentId(index as u16);
            if !self.uses(id, of) {
                continue;
            }
            let mark = || self.markets[index].mark(instrument.price_scale);
            match of.surface {
                Surface::Futures if self.ledgers.account.holds(id) => {
                    for holding in self.ledgers.account.of(id) {
                        funds += holding.position.unrealized_pnl(instrument, mark()?);
                    }
                }
                Surface::Futures => {}
                Surface::Spot => {
                    let base = self.balance(Surface::Spot, instrument.base).total;
                    if base != Amount::ZERO {
                        funds += base_value(base, mark()?);
                    }
                }
            }
        }
        Some(funds)
    }

    /// The margin of all holdings of a ledger in the worst case, with the orders of the callback and
    /// the order that asks. A holding counts as nothing without a known price or leverage.
    fn margin(&self, ledger: &Ledger, of: Funds, asks: Option<&Asks<'_>>) -> Amount {
        let mut total = Amount::ZERO;
        for (id, side, holding) in ledger.iter() {
            if !self.uses(id, of) {
                continue;
            }
            let pending = asks.map(|asks| asks.callback.added_to(id, side));
            let (buy, sell) = pending.unwrap_or_default();
            let exposure = Exposure {
                position: holding.position.qty,
                open_buy: holding.open_buy + buy,
                open_sell: holding.open_sell + sell,
            };
            let is_of_order =
                |asks: &&Asks<'_>| (id, side) == (asks.terms.instrument, asks.terms.position_side);
            let any = OrderTerms::new(id, Side::Buy, OrderType::Market);
            total += match asks.filter(is_of_order) {
                Some(_) => Amount::ZERO,
                None => self.margin_of(&any, exposure.worst_qty()),
            };
        }
        let Some(asks) = asks else { return total };
        let order = Sized {
            terms: asks.terms,
            worst_qty: asks.worst_qty,
        };
        let (_, after) = exposures(ledger, &order, asks.callback);
        total + self.margin_of(asks.terms, after.worst_qty())
    }

    fn margin_of(&self, terms: &OrderTerms, qty: i64) -> Amount {
        if qty == 0 {
            return Amount::ZERO;
        }
        let instrument = &self.instruments[usize::from(terms.instrument.0)];
        let known = self.risk_price(terms).zip(self.leverage(terms.instrument));
        known.map_or(Amount::ZERO, |(price, leverage)| {
            Amount(value(instrument, qty, price).0 / leverage)
        })
    }

    /// The leverage of an instrument, as the venue reported it; 1 on spot.
    fn leverage(&self, id: InstrumentId) -> Option<i128> {
        if self.instruments[usize::from(id.0)].surface == Surface::Spot {
            return Some(1);
        }
        let leverage = self.margins.leverage(id)?;
        Some(i128::from(leverage)).filter(|leverage| *leverage > 0)
    }

    /// The most that a strategy can need, by its own limits; `None` without such a limit.
    fn most_margin(&self, strategy: &StrategyConfig, funds: Funds) -> Option<Amount> {
        if strategy.limits.max_open_orders == Some(0) {
            return Some(Amount::ZERO);
        }
        let granted = strategy.subscriptions.iter().map(|one| one.instrument);
        let used = granted.filter(|id| self.uses(*id, funds));
        let leverages = used.map(|id| self.leverage(id).unwrap_or(1));
        let max = strategy.limits.max_position_notional?;
        Some(Amount(max.0 / leverages.min().unwrap_or(1)))
    }

    fn draws_on(&self, strategy: &StrategyConfig, funds: Funds) -> bool {
        let granted = &strategy.subscriptions;
        granted.iter().any(|one| self.uses(one.instrument, funds))
    }

    fn uses(&self, id: InstrumentId, funds: Funds) -> bool {
        let instrument = &self.instruments[usize::from(id.0)];
        instrument.surface == funds.surface && instrument.quote == funds.quote
    }
}
