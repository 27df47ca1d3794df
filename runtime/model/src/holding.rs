//! Positions with their open order quantities: of the account, of each strategy, and of no
//! strategy. The sub-ledgers always sum to the account.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{InstrumentId, StrategyId};
use crate::instrument::Instrument;
use crate::ledger::{Grains, Position};
use crate::order::{PositionSide, Side};
use crate::risk::Exposure;

/// A position and the quantities of the orders that may change it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The position.
    pub position: Position,
    /// Quantity of open buy orders, including orders in flight and orders of unknown outcome.
    pub open_buy: i64,
    /// Quantity of open sell orders, counted in the same way.
    pub open_sell: i64,
}

impl Holding {
    /// The exposure as the risk limits count it.
    pub const fn exposure(&self) -> Exposure {
        Exposure {
            position: self.position.qty,
            open_buy: self.open_buy,
            open_sell: self.open_sell,
        }
    }

    /// Adds `qty`, which may be negative, to the open quantity of a side.
    pub fn reserve(&mut self, side: Side, qty: i64) {
        match side {
            Side::Buy => self.open_buy += qty,
            Side::Sell => self.open_sell += qty,
        }
    }
}

/// One ledger: a holding per instrument and position side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledger(Vec<Holding>);

impl Ledger {
    /// A ledger without positions.
    pub fn new(instruments: usize) -> Self {
        Self(vec![Holding::default(); instruments * 3])
    }

    const fn index(instrument: InstrumentId, side: PositionSide) -> usize {
        instrument.0 as usize * 3 + side.code() as usize
    }

    /// The holding of an instrument and position side.
    #[inline]
    pub fn at(&self, instrument: InstrumentId, side: PositionSide) -> &Holding {
        &self.0[Self::index(instrument, side)]
    }

    /// The holding of an instrument and position side, mutable.
    #[inline]
    pub fn at_mut(&mut self, instrument: InstrumentId, side: PositionSide) -> &mut Holding {
        &mut self.0[Self::index(instrument, side)]
    }

    /// The three holdings of an instrument, in the order of [`PositionSide`].
    #[inline]
    pub fn of(&self, instrument: InstrumentId) -> &[Holding] {
        let start = Self::index(instrument, PositionSide::Both);
        &self.0[start..start + 3]
    }

    /// The three holdings of an instrument, mutable.
    pub fn of_mut(&mut self, instrument: InstrumentId) -> &mut [Holding] {
        let start = Self::index(instrument, PositionSide::Both);
        &mut self.0[start..start + 3]
    }

    /// Whether the instrument has an open position.
    #[inline]
    pub fn holds(&self, instrument: InstrumentId) -> bool {
        self.of(instrument)
            .iter()
            .any(|holding| holding.position.qty != 0)
    }

    /// Every holding with its instrument and position side.
    pub fn iter(&self) -> impl Iterator<Item = (InstrumentId, PositionSide, &Holding)> {
        self.0.iter().enumerate().map(|(index, holding)| {
            let side = PositionSide::ALL[index % 3];
            (InstrumentId((index / 3) as u16), side, holding)
        })
    }

    /// Sum of one amount over all positions.
    pub fn total(&self, amount: impl Fn(&Position) -> Amount) -> Amount {
        self.0.iter().map(|holding| amount(&holding.position)).sum()
    }
}

/// The account's ledger, the strategies' sub-ledgers, and the external ledger: positions from
/// before the start and from orders that are not ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledgers {
    /// The account.
    pub account: Ledger,
    /// One per strategy.
    pub strategies: Vec<Ledger>,
    /// Positions that belong to no strategy.
    pub external: Ledger,
}

impl Ledgers {
    /// Ledgers without positions.
    pub fn new(instruments: usize, strategies: usize) -> Self {
        Self {
            account: Ledger::new(instruments),
            strategies: vec![Ledger::new(instruments); strategies],
            external: Ledger::new(instruments),
        }
    }

    /// The ledger of a strategy; for `None`, the external one.
    pub fn owner(&mut self, owner: Option<StrategyId>) -> &mut Ledger {
        match owner {
            Some(strategy) => &mut self.strategies[usize::from(strategy.0)],
            None => &mut self.external,
        }
    }

    /// The first holding whose sub-ledgers do not sum to the account's quantity, money or open
    /// orders; `None` when all agree.
    pub fn first_difference(
        &self,
        instruments: &[Instrument],
    ) -> Option<(InstrumentId, PositionSide)> {
        let holdings = self.account.iter().map(|(id, side, _)| (id, side));
        let mut differ = holdings.filter(|(id, side)| !self.agree_at(instruments, *id, *side));
        differ.next()
    }

    /// Whether the sub-ledgers sum to the account's quantity, money and open orders in one holding.
    pub fn agree_at(
        &self,
        instruments: &[Instrument],
        id: InstrumentId,
        side: PositionSide,
    ) -> bool {
        let account = self.account.at(id, side);
        let parts = || {
            let own = self.strategies.iter().chain([&self.external]);
            own.map(move |ledger| ledger.at(id, side))
        };
        // Where positions of strategies net, the sub-ledgers may split profit and cost in another
        // way than the account. Realized profit less cost is the money that flowed, so its sum is
        // equal.
        let money = |p: &Position| p.realized_pnl - p.cost;
        // Compared in grains, because the dust of two strategies may add up to a whole step.
        let grains = Grains::of(&instruments[usize::from(id.0)]);
        let held = |p: &Position| p.held(grains);
        parts().map(|h| held(&h.position)).sum::<i128>() == held(&account.position)
            && parts().map(|h| money(&h.position)).sum::<Amount>() == money(&account.position)
            && parts().map(|h| h.position.fees).sum::<Amount>() == account.position.fees
            && parts().map(|h| h.position.funding).sum::<Amount>() == account.position.funding
            && parts().map(|h| h.open_buy).sum::<i64>() == account.open_buy
            && parts().map(|h| h.open_sell).sum::<i64>() == account.open_sell
    }
}
