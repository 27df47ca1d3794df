//! Coins of strategies that an outside party sold or withdrew on spot.
//!
//! Spot has no list of positions. Strategies hold their coins as long as the balance of the coin
//! covers them. If the balance is smaller, the run is degraded. The engine cannot know at which
//! price the coins were sold, or whether they will come back, so the operator decides. More coins
//! end the state, and `resume` takes the missing coins from the strategies at the present price. A
//! strategy that is being flattened gives them up at the end.
//!
//! A coin that is the quote asset of another instrument is not compared: its balance changes with
//! orders there, and no position shows it. Commissions that were paid in a coin of no configured
//! instrument count as paid out of it.

use std::collections::BTreeSet;

use windvane_model::decimal::Amount;
use windvane_model::doubt::Doubt;
use windvane_model::effect::{Adjustment, Cause, Notice};
use windvane_model::ids::{AssetId, InstrumentId, StrategyId};
use windvane_model::ledger::{Grains, value};
use windvane_model::order::{PositionSide, Side, Surface};
use windvane_model::orders::Order;
use windvane_model::truth::AccountTruth;

use super::Engine;

/// Rounded commissions in the base asset leave less than one part in this many missing.
const ROUNDING_PARTS: i128 = 500;
const SIDE: PositionSide = PositionSide::Both;

/// The coins of a strategy in one instrument.
struct Holder {
    strategy: StrategyId,
    instrument: InstrumentId,
    held: Amount,
}

impl Engine {
    /// Compares the strategies' coins with the balances, after a round that left nothing
    /// unexplained and after an outside fill.
    pub(super) fn review_coins(&mut self) {
        if self.live.is_none() || self.misses_fill(Surface::Spot) {
            return;
        }
        for id in self.instruments_of(Surface::Spot) {
            let is_missing = self.coins().contains(&id) && self.missing_coins(id) > Amount::ZERO;
            self.set_doubt(Doubt::MissingCoins(id), is_missing);
        }
        self.update_state();
    }

    /// Reviews missing coins after an order event, which may have explained them.
    pub(super) fn review_missing_coins(&mut self) {
        let is_missing = |doubt: &Doubt| matches!(doubt, Doubt::MissingCoins(_));
        let live = self.live.as_ref();
        if live.is_some_and(|live| live.doubts().any(|doubt| is_missing(&doubt))) {
            self.review_coins();
        }
    }

    /// Handles a snapshot that lists other balances but not a coin that strategies hold. The next
    /// snapshots show whether the list was only incomplete for a moment.
    pub(super) fn doubt_unlisted_coins(&mut self, surface: Surface, read: &AccountTruth) {
        if surface != Surface::Spot {
            return;
        }
        let unlisted = self.unlisted_balances(surface, read);
        for coin in self.coins() {
            let held: Amount = self.holders(coin).iter().map(|holder| holder.held).sum();
            let sells = |order: &Order| {
                let terms = &order.terms;
                terms.side == Side::Sell && self.of_coin(coin).any(|id| id == terms.instrument)
            };
            // An own sale may be the cause, with its event still in flight.
            if self.orders.iter().any(sells) {
                continue;
            }
            if held > Amount::ZERO && unlisted.contains(&self.base_of(coin)) {
                self.set_doubt(Doubt::MissingCoins(coin), true);
            }
        }
        self.update_state();
    }

    /// Whether coins of a strategy that is being flattened are missing while the books are not
    /// certain.
    pub(super) fn waits_for_coins(&self, strategy: StrategyId) -> bool {
        let is_missing = |coin: &InstrumentId| {
            let mut holders = self.holders(*coin).into_iter();
            self.missing_coins(*coin) > Amount::ZERO
                && holders.any(|holder| holder.strategy == strategy && holder.held > Amount::ZERO)
        };
        self.live.is_some() && !self.knows_coins() && self.coins().iter().any(is_missing)
    }

    /// Whether the spot books are as certain as they can be.
    fn knows_coins(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.healthy(Surface::Spot, self.now))
            && !self.misses_fill(Surface::Spot)
            && self.pending_statement(Surface::Spot).is_none()
    }

    /// One instrument for each compared base asset of spot. It represents the coin.
    fn coins(&self) -> Vec<InstrumentId> {
        let mut coins: Vec<InstrumentId> = self.instruments_of(Surface::Spot).into();
        let quotes = coins
            .iter()
            .map(|id| self.instruments[usize::from(id.0)].quote);
        let quotes: BTreeSet<AssetId> = quotes.collect();
        let mut seen: Vec<AssetId> = Vec::new();
        coins.retain(|id| {
            let base = self.base_of(*id);
            if quotes.contains(&base) {
                return false;
            }
            let is_first = !seen.contains(&base);
            seen.push(base);
            is_first
        });
        coins
    }

    fn base_of(&self, id: InstrumentId) -> AssetId {
        self.instruments[usize::from(id.0)].base
    }

    fn of_coin(&self, coin: InstrumentId) -> impl Iterator<Item = InstrumentId> {
        let base = self.base_of(coin);
        let all = self.instruments_of(Surface::Spot).into_iter();
        all.filter(move |id| self.base_of(*id) == base)
    }

    /// The coins of each strategy; negative if it sold coins that other strategies hold.
    fn holders(&self, coin: InstrumentId) -> Vec<Holder> {
        let of_instrument = |instrument: InstrumentId| {
            let grains = Grains::of(&self.instruments[usize::from(instrument.0)]);
            let own = self.ledgers.strategies.iter().enumerate();
            own.map(move |(index, ledger)| Holder {
                strategy: StrategyId(index as u16),
                instrument,
                held: grains.amount(ledger.at(instrument, SIDE).position.held(grains)),
            })
        };
        self.of_coin(coin).flat_map(of_instrument).collect()
    }

    /// The part of all strategies' coins that the balance does not cover. Amounts below the sum of
    /// one step per strategy are ignored, because they cannot be sold anyway.
    fn missing_coins(&self, coin: InstrumentId) -> Amount {
        let mut holders = self.holders(coin);
        holders.retain(|holder| holder.held != Amount::ZERO);
        let net: Amount = holders.iter().map(|holder| holder.held).sum();
        let steps = holders.iter().map(|holder| self.step_of(holder.instrument));
        let base = self.base_of(coin);
        let paid = self.other_fees.get(&base).copied().unwrap_or_default();
        let missing = net - self.balance(Surface::Spot, base).total - paid.max(Amount::ZERO);
        let is_rounding = missing.0.saturating_mul(ROUNDING_PARTS) < net.0;
        if is_rounding || missing < steps.sum() {
            Amount::ZERO
        } else {
            missing
        }
    }

    fn step_of(&self, id: InstrumentId) -> Amount {
        let rules = &self.instruments[usize::from(id.0)];
        let step = rules.filters.lot_size.map_or(1, |lot| lot.step_size.max(1));
        let grains = Grains::of(rules);
        grains.amount(grains.of_qty(step))
    }

    /// Takes the missing coins from the strategies that hold them, because the operator resumed.
    pub(super) fn give_up_missing_coins(&mut self) {
        if !self.knows_coins() {
            return;
        }
        for coin in self.coins() {
            let mut missing = self.missing_coins(coin);
            if missing == Amount::ZERO {
                continue;
            }
            let mut holders = self.holders(coin);
            holders.retain(|holder| holder.held > Amount::ZERO);
            let mut whole: Amount = holders.iter().map(|holder| holder.held).sum();
            for holder in holders {
                let share = part(missing, holder.held, whole);
                whole -= holder.held;
                missing -= share;
                self.give_up_coins(&holder, share);
            }
            self.book_untold_sale(coin);
        }
        self.review_coins();
    }

    /// Takes the missing coins from a strategy that is flat except for them.
    pub(super) fn give_up_coins_of(&mut self, strategy: StrategyId) {
        if !self.knows_coins() {
            return;
        }
        for coin in self.coins() {
            for holder in self.holders(coin) {
                let missing = self.missing_coins(coin).min(holder.held);
                if holder.strategy == strategy && missing > Amount::ZERO {
                    self.give_up_coins(&holder, missing);
                    self.book_untold_sale(coin);
                }
            }
        }
        self.review_coins();
    }

    /// Takes coins from a strategy, rounded up to whole steps, at the present price.
    fn give_up_coins(&mut self, holder: &Holder, coins: Amount) {
        let (strategy, id) = (holder.strategy, holder.instrument);
        let rules = &self.instruments[usize::from(id.0)];
        let own = self.ledgers.strategies[usize::from(strategy.0)].at(id, SIDE);
        let step = rules.filters.lot_size.map_or(1, |lot| lot.step_size.max(1));
        let grains = Grains::of(rules);
        let mut qty = grains.qty(grains.of_amount(coins));
        if grains.of_qty(qty) < grains.of_amount(coins) || qty % step != 0 {
            qty += step - qty % step;
        }
        let qty = qty.min(own.position.qty);
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
        self.tell_position(strategy, id, SIDE);
        self.cancel_exits(strategy, key, Side::Sell);
    }

    fn price_of_coins(&self, id: InstrumentId, qty: i64) -> Option<Amount> {
        let mark = self.mark(id)?.mark;
        Some(value(&self.instruments[usize::from(id.0)], qty, mark))
    }

    /// Limits the account's position in a coin to its balance. Outside parties sold the rest, and
    /// no event of their orders reported it.
    fn book_untold_sale(&mut self, coin: InstrumentId) {
        let held = |engine: &Self, id: InstrumentId| {
            let grains = Grains::of(&engine.instruments[usize::from(id.0)]);
            grains.amount(engine.ledgers.account.at(id, SIDE).position.held(grains))
        };
        let all: Vec<InstrumentId> = self.of_coin(coin).collect();
        let net: Amount = all.iter().map(|id| held(self, *id)).sum();
        let mut untold = net - self.balance(Surface::Spot, self.base_of(coin)).total;
        for id in all {
            let external = self.ledgers.external.at(id, SIDE).position.qty;
            let grains = Grains::of(&self.instruments[usize::from(id.0)]);
            let qty = grains
                .qty(grains.of_amount(untold.max(Amount::ZERO)))
                .min(external);
            if qty <= 0 {
                continue;
            }
            untold -= grains.amount(grains.of_qty(qty));
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
            self.tell_adjustment(adjustment, Cause::Reconciliation);
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
