//! Positions with their open orders: the account's, each strategy's, and what belongs to none of
//! ours. The sub-ledgers always sum to the account.

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
    /// Quantity of open buy orders, in flight and unknown ones included.
    pub open_buy: i64,
    /// Quantity of open sell orders, likewise.
    pub open_sell: i64,
}

impl Holding {
    /// As the risk limits see it.
    pub const fn exposure(&self) -> Exposure {
        Exposure {
            position: self.position.qty,
            open_buy: self.open_buy,
            open_sell: self.open_sell,
        }
    }

    /// Adds to (or, negative, takes from) the open quantity of a side.
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
    /// Flat in every instrument.
    pub fn new(instruments: usize) -> Self {
        Self(vec![Holding::default(); instruments * 3])
    }

    const fn index(instrument: InstrumentId, side: PositionSide) -> usize {
        instrument.0 as usize * 3 + side.code() as usize
    }

    /// A holding.
    #[inline]
    pub fn at(&self, instrument: InstrumentId, side: PositionSide) -> &Holding {
        &self.0[Self::index(instrument, side)]
    }

    /// A holding, to be changed.
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

    /// The three holdings of an instrument, to be changed.
    pub fn of_mut(&mut self, instrument: InstrumentId) -> &mut [Holding] {
        let start = Self::index(instrument, PositionSide::Both);
        &mut self.0[start..start + 3]
    }

    /// Whether any position of the instrument is open.
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

/// The account's ledger, the strategies' sub-ledgers, and the rest: positions from before the
/// start and from orders that are not ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledgers {
    /// The account.
    pub account: Ledger,
    /// One per strategy.
    pub strategies: Vec<Ledger>,
    /// What belongs to no strategy.
    pub external: Ledger,
}

impl Ledgers {
    /// All flat.
    pub fn new(instruments: usize, strategies: usize) -> Self {
        Self {
            account: Ledger::new(instruments),
            strategies: vec![Ledger::new(instruments); strategies],
            external: Ledger::new(instruments),
        }
    }

    /// The ledger of a strategy, or the external one.
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
        // Profit may sit in another place than the account's, where strategies net: realized
        // less cost is the money that flowed, whoever realized it.
        let money = |p: &Position| p.realized_pnl - p.cost;
        // The dust of two may be a step together.
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
