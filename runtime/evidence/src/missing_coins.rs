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
use windvane_model::ids::{AssetId, InstrumentId, StrategyId};
use windvane_model::ledger::Grains;
use windvane_model::order::{PositionSide, Surface};

use crate::Evidence;

/// Rounded commissions in the base asset leave less than one part in this many missing.
const ROUNDING_PARTS: i128 = 500;

/// The coins of a strategy in one instrument.
#[derive(Clone, Copy, Debug)]
pub struct CoinHolder {
    /// The strategy.
    pub strategy: StrategyId,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The coins; negative if it sold coins that other strategies hold.
    pub held: Amount,
}

const SIDE: PositionSide = PositionSide::Both;

impl Evidence<'_> {
    /// Whether coins of a strategy that is being flattened are missing while the books are not
    /// certain.
    pub fn waits_for_coins(&self, strategy: StrategyId, is_healthy: bool) -> bool {
        let is_missing = |coin: &InstrumentId| {
            let mut holders = self.holders(*coin).into_iter();
            self.missing_coins(*coin) > Amount::ZERO
                && holders.any(|holder| holder.strategy == strategy && holder.held > Amount::ZERO)
        };
        self.live.is_some() && !self.knows_coins(is_healthy) && self.coins().iter().any(is_missing)
    }

    /// Whether the spot books are as certain as they can be.
    pub fn knows_coins(&self, is_healthy: bool) -> bool {
        is_healthy
            && !self.misses_fill(Surface::Spot)
            && self.pending_account_event(Surface::Spot).is_none()
    }

    /// One instrument for each base asset of spot whose balance is compared with the strategies'
    /// coins. Callers use this instrument as the key of the coin.
    pub fn coins(&self) -> Vec<InstrumentId> {
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

    /// The base asset of an instrument.
    pub fn base_of(&self, id: InstrumentId) -> AssetId {
        self.instruments[usize::from(id.0)].base
    }

    /// The instruments of a coin.
    pub fn instruments_of_coin(
        &self,
        coin: InstrumentId,
    ) -> impl Iterator<Item = InstrumentId> + use<'_> {
        let base = self.base_of(coin);
        let all = self.instruments_of(Surface::Spot).into_iter();
        all.filter(move |id| self.base_of(*id) == base)
    }

    /// The coins of each strategy; negative if it sold coins that other strategies hold.
    pub fn holders(&self, coin: InstrumentId) -> Vec<CoinHolder> {
        let of_instrument = |instrument: InstrumentId| {
            let grains = Grains::of(&self.instruments[usize::from(instrument.0)]);
            let own = self.ledgers.strategies.iter().enumerate();
            own.map(move |(index, ledger)| CoinHolder {
                strategy: StrategyId(index as u16),
                instrument,
                held: grains.amount(ledger.at(instrument, SIDE).position.held(grains)),
            })
        };
        self.instruments_of_coin(coin)
            .flat_map(of_instrument)
            .collect()
    }

    /// The part of all strategies' coins that the balance does not cover. Amounts below the sum of
    /// one step per strategy are ignored, because they cannot be sold anyway.
    pub fn missing_coins(&self, coin: InstrumentId) -> Amount {
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

    /// The smallest amount of the base asset that an order can trade.
    pub(crate) fn step_of(&self, id: InstrumentId) -> Amount {
        let rules = &self.instruments[usize::from(id.0)];
        let step = rules.filters.lot_size.map_or(1, |lot| lot.step_size.max(1));
        let grains = Grains::of(rules);
        grains.amount(grains.of_qty(step))
    }

    /// The quantity that a strategy gives up for coins that are missing, in whole steps.
    pub fn qty_of_coins(&self, holder: &CoinHolder, coins: Amount) -> i64 {
        let (strategy, id) = (holder.strategy, holder.instrument);
        let rules = &self.instruments[usize::from(id.0)];
        let own = self.ledgers.strategies[usize::from(strategy.0)].at(id, SIDE);
        let step = rules.filters.lot_size.map_or(1, |lot| lot.step_size.max(1));
        let grains = Grains::of(rules);
        let mut qty = grains.qty(grains.of_amount(coins));
        if grains.of_qty(qty) < grains.of_amount(coins) || qty % step != 0 {
            qty += step - qty % step;
        }
        qty.min(own.position.qty)
    }
}
