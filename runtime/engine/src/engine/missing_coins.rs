//! Coins of strategies that an outside party sold or withdrew on spot: the degraded reason, and what the
//! strategies give up (`windvane_evidence::missing_coins`).

use windvane_evidence::missing_coins::CoinHolder;
use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::{Adjustment, Cause, Notice};
use windvane_model::ids::{InstrumentId, StrategyId};
use windvane_model::ledger::{Grains, value};
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::orders::Order;
use windvane_model::state_report::AccountSnapshot;

use super::Engine;

const SIDE: PositionSide = PositionSide::Both;

impl Engine {
    /// Compares the strategies' coins with the balances, after a reconciliation round that left
    /// nothing unexplained and after an outside fill.
    pub(super) fn review_coins(&mut self) {
        if self.live.is_none() || self.evidence().misses_fill(Surface::Spot) {
            return;
        }
        for id in self.instruments_of(Surface::Spot) {
            let is_missing = self.evidence().coins().contains(&id)
                && self.evidence().missing_coins(id) > Amount::ZERO;
            self.set_degraded(DegradedReason::MissingCoins(id), is_missing);
        }
        self.update_state();
    }

    /// Reviews missing coins after an order event, which may have explained them.
    pub(super) fn review_missing_coins(&mut self) {
        let is_missing =
            |reason: &DegradedReason| matches!(reason, DegradedReason::MissingCoins(_));
        let live = self.live.as_ref();
        if live.is_some_and(|live| live.degraded_reasons().any(|reason| is_missing(&reason))) {
            self.review_coins();
        }
    }

    /// Handles a snapshot that lists other balances but not a coin that strategies hold. The next
    /// snapshots show whether the list was only incomplete for a moment.
    pub(super) fn degrade_for_unlisted_coins(&mut self, surface: Surface, read: &AccountSnapshot) {
        if surface != Surface::Spot {
            return;
        }
        let unlisted = self.evidence().unlisted_balances(surface, read);
        for coin in self.evidence().coins() {
            let held: Amount = self
                .evidence()
                .holders(coin)
                .iter()
                .map(|holder| holder.held)
                .sum();
            let sells = |order: &Order| {
                let terms = &order.terms;
                terms.side == Side::Sell
                    && self
                        .evidence()
                        .instruments_of_coin(coin)
                        .any(|id| id == terms.instrument)
            };
            // An own sale may be the cause, with its event still in flight.
            if self.orders.iter().any(sells) {
                continue;
            }
            if held > Amount::ZERO && unlisted.contains(&self.evidence().base_of(coin)) {
                self.set_degraded(DegradedReason::MissingCoins(coin), true);
            }
        }
        self.update_state();
    }

    /// Whether coins of a strategy that is being flattened are missing while the books are not
    /// certain.
    pub(super) fn waits_for_coins(&self, strategy: StrategyId) -> bool {
        let is_healthy = self.is_healthy(Surface::Spot);
        self.evidence().waits_for_coins(strategy, is_healthy)
    }

    fn knows_coins(&self) -> bool {
        let is_healthy = self.is_healthy(Surface::Spot);
        self.evidence().knows_coins(is_healthy)
    }

    fn is_healthy(&self, surface: Surface) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.is_healthy(surface, self.now))
    }

    /// Takes the missing coins from the strategies that hold them, because the operator resumed.
    pub(super) fn give_up_missing_coins(&mut self) {
        if !self.knows_coins() {
            return;
        }
        for coin in self.evidence().coins() {
            let mut missing = self.evidence().missing_coins(coin);
            if missing == Amount::ZERO {
                continue;
            }
            let mut holders = self.evidence().holders(coin);
            holders.retain(|holder| holder.held > Amount::ZERO);
            let mut whole: Amount = holders.iter().map(|holder| holder.held).sum();
            for holder in holders {
                let share = part(missing, holder.held, whole);
                whole -= holder.held;
                missing -= share;
                self.give_up_coins(&holder, share);
            }
            self.book_unreported_sale(coin);
        }
        self.review_coins();
    }

    /// Takes the missing coins from a strategy that is flat except for them.
    pub(super) fn give_up_coins_of(&mut self, strategy: StrategyId) {
        if !self.knows_coins() {
            return;
        }
        for coin in self.evidence().coins() {
            for holder in self.evidence().holders(coin) {
                let missing = self.evidence().missing_coins(coin).min(holder.held);
                if holder.strategy == strategy && missing > Amount::ZERO {
                    self.give_up_coins(&holder, missing);
                    self.book_unreported_sale(coin);
                }
            }
        }
        self.review_coins();
    }

    /// Takes coins from a strategy, rounded up to whole steps, at the present price.
    fn give_up_coins(&mut self, holder: &CoinHolder, coins: Amount) {
        let (strategy, id) = (holder.strategy, holder.instrument);
        let own = self.ledgers.strategies[usize::from(strategy.0)].at(id, SIDE);
        let qty = self.evidence().qty_of_coins(holder, coins);
        if qty <= 0 {
            return;
        }
        let cost = own.position.cost.part(qty, own.position.qty);
        let quote = self.price_of_coins(id, qty).unwrap_or(cost);
        let key = (id, SIDE);
        let realized_pnl = self.move_to_external(strategy, key, Side::Sell, qty, quote);
        self.notices.push_back(Notice::ClosedOutside {
            time: self.now,
            strategy,
            instrument: id,
            qty,
            realized_pnl,
        });
        self.deliver_position(strategy, id, SIDE);
        self.cancel_exits(strategy, key, Side::Sell);
    }

    fn price_of_coins(&self, id: InstrumentId, qty: i64) -> Option<Amount> {
        let mark = self.mark(id)?.mark;
        Some(value(&self.instruments[usize::from(id.0)], qty, mark))
    }

    /// Limits the account's position in a coin to its balance. Outside parties sold the rest, and
    /// no event of their orders reported it.
    fn book_unreported_sale(&mut self, coin: InstrumentId) {
        let held = |engine: &Self, id: InstrumentId| {
            let grains = Grains::of(&engine.instruments[usize::from(id.0)]);
            grains.amount(engine.ledgers.account.at(id, SIDE).position.held(grains))
        };
        let all: Vec<InstrumentId> = self.evidence().instruments_of_coin(coin).collect();
        let net: Amount = all.iter().map(|id| held(self, *id)).sum();
        let mut unreported = net
            - self
                .balance(Surface::Spot, self.evidence().base_of(coin))
                .total;
        for id in all {
            let external = self.ledgers.external.at(id, SIDE).position.qty;
            let grains = Grains::of(&self.instruments[usize::from(id.0)]);
            let qty = grains
                .qty(grains.of_amount(unreported.max(Amount::ZERO)))
                .min(external);
            if qty <= 0 {
                continue;
            }
            unreported -= grains.amount(grains.of_qty(qty));
            let from = self.ledgers.account.at(id, SIDE).position;
            let quote = self.price_of_coins(id, qty);
            let quote = quote.unwrap_or_else(|| from.cost.part(qty, from.qty.max(1)));
            for ledger in [&mut self.ledgers.account, &mut self.ledgers.external] {
                ledger
                    .at_mut(id, SIDE)
                    .position
                    .fill(Side::Sell, qty, quote);
            }
            let adjustment = Adjustment::Position {
                instrument: id,
                side: SIDE,
                from: from.qty,
                to: from.qty - qty,
            };
            self.report_adjustment(adjustment, Cause::Reconciliation);
        }
    }
}

/// One holder's part of the missing coins. Amounts of some coins are too large for an exact ratio.
fn part(missing: Amount, held: Amount, whole: Amount) -> Amount {
    if held == whole {
        return missing;
    }
    let unit = (whole.0 >> 40).max(1);
    let share = missing.0.saturating_mul(held.0 / unit) / (whole.0 / unit).max(1);
    Amount(share).min(held).min(missing)
}
