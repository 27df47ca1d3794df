//! The books and what was stated before, as one view that cannot change them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use windvane_model::decimal::Amount;
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::holding::Ledgers;
use windvane_model::ids::{AssetId, InstrumentId, Time};
use windvane_model::instrument::Instrument;
use windvane_model::ledger::{Balance, Balances, balance_of, base_value};
use windvane_model::live::LiveConfig;
use windvane_model::market_state::{Mark, MarketState, mark_of};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::orders::{Order, Orders};
use windvane_model::protocol::BalanceUpdate;
use windvane_model::state_report::AccountSnapshot;
use windvane_model::timer::{Timer, Timers};

use crate::asset_prices::AssetPrices;
use crate::connection::Connection;
use crate::fills_from_totals::FillsFromTotals;
use crate::forced_close_evidence::ForcedCloseEvidence;
use crate::late_fees::LateFees;
use crate::outside_closes::{OutsideCloses, StatedCloses};
use crate::unconfigured_positions::UnconfiguredPositions;

/// The connection of each surface.
pub type Connections = BTreeMap<Surface, Connection>;

/// The connections of a run that is not live.
pub static NO_CONNECTIONS: Connections = Connections::new();

/// The degraded reasons of a run that is not live.
pub static NO_DEGRADED_REASONS: BTreeSet<DegradedReason> = BTreeSet::new();

/// A difference of at most one part in this many of the last fill is the venue's rounding.
const ROUNDING_PARTS: i128 = 1_000_000;

/// Everything that a statement of the venue is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Time of the last input.
    pub now: Time,
    /// Instruments; [`InstrumentId`] is the index.
    pub instruments: &'a [Instrument],
    /// The market of each instrument.
    pub markets: &'a [MarketState],
    /// The ledgers of the account and the strategies, and of unowned positions.
    pub ledgers: &'a Ledgers,
    /// Balances of the account.
    pub balances: &'a Balances,
    /// The epoch of this process's client order ids.
    pub epoch: u64,
    /// Own orders.
    pub orders: &'a Orders,
    /// Timers: an order that will be asked for may have filled.
    pub timers: &'a Timers,
    /// The settings of a live run; `None` in a backtest.
    pub live: Option<&'a LiveConfig>,
    /// The connection of each surface.
    pub connections: &'a Connections,
    /// The degraded reasons of a live run.
    pub degraded_reasons: &'a BTreeSet<DegradedReason>,
    /// When the user stream of each surface last connected.
    pub stream_up: &'a BTreeMap<Surface, Time>,
    /// Fills whose commission is not known.
    pub late_fees: &'a LateFees,
    /// Fills that are known from the totals of orders.
    pub fills_from_totals: &'a FillsFromTotals,
    /// Prices of assets in which commissions are charged.
    pub asset_prices: &'a AssetPrices,
    /// Commissions that were paid in assets of no position.
    pub other_fees: &'a BTreeMap<AssetId, Amount>,
    /// Positions on symbols that are not configured.
    pub unconfigured_positions: &'a UnconfiguredPositions,
    /// Positions that outside parties closed.
    pub outside_closes: &'a OutsideCloses,
    /// Positions that account events alone showed as closed.
    pub stated_closes: &'a StatedCloses,
    /// Evidence from the venue's forced orders.
    pub forced_close_evidence: &'a ForcedCloseEvidence,
}

impl<'a> Evidence<'a> {
    /// The surface of an instrument.
    pub fn surface_of(&self, instrument: InstrumentId) -> Surface {
        self.instruments[usize::from(instrument.0)].surface
    }

    /// An instrument's rules.
    pub fn instrument(&self, instrument: InstrumentId) -> Option<&'a Instrument> {
        self.instruments.get(usize::from(instrument.0))
    }

    /// The instruments of a surface.
    pub fn instruments_of(&self, surface: Surface) -> VecDeque<InstrumentId> {
        let ids = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        ids.filter(|id| self.surface_of(*id) == surface).collect()
    }

    /// The connection of a surface; `None` if it is not in use.
    pub fn connection(&self, surface: Surface) -> Option<&'a Connection> {
        self.connections.get(&surface)
    }

    /// The venue's clock minus ours on a surface, in nanoseconds; `None` before it was read.
    pub fn clock_offset_ns(&self, surface: Surface) -> Option<i64> {
        let (offset_ns, _) = self.connection(surface)?.clock()?;
        Some(offset_ns)
    }

    /// A balance of the account.
    pub fn balance(&self, surface: Surface, asset: AssetId) -> Balance {
        balance_of(self.balances, surface, asset)
    }

    /// Mark price of an instrument.
    pub fn mark(&self, instrument: InstrumentId) -> Option<Mark> {
        mark_of(self.markets, self.instruments, instrument)
    }

    /// The quote asset of the first instrument, in which equity is counted.
    pub fn equity_asset(&self) -> Option<AssetId> {
        Some(self.instruments.first()?.quote)
    }

    /// The account's quantity of a position.
    pub fn account_qty(&self, instrument: InstrumentId, side: PositionSide) -> i64 {
        self.ledgers.account.at(instrument, side).position.qty
    }
}

impl Evidence<'_> {
    /// Whether the venue executed more of an own order than the booked fills, or may have: an order
    /// that is being queried is not settled.
    pub fn misses_fill(&self, surface: Surface) -> bool {
        self.may_miss_fill_of(surface, None)
    }

    /// Like [`Self::misses_fill`], without orders that may never have reached the venue. If the
    /// venue did not have such an order when it was queried after a snapshot, the snapshot contains
    /// no fill of it.
    pub fn may_miss_fill_of(&self, surface: Surface, snapshot_before: Option<Time>) -> bool {
        self.orders.iter().any(|order| {
            let absent = snapshot_before.is_some_and(|at| order.queries.was_absent_at(at));
            let never_there = absent && !order.is_confirmed() && order.reported_qty == 0;
            self.surface_of(order.instrument()) == surface
                && !never_there
                && self.is_unsettled(order)
        })
    }

    /// Whether the venue executed more of an order than is booked, or may have.
    pub(crate) fn is_unsettled(&self, order: &Order) -> bool {
        let asking = Timer::AskForOrder { order: order.seq };
        order.reported_qty > order.executed_qty || self.timers.is_set(asking)
    }

    /// Whether a difference after a fill is the venue's rounding, as in its entry prices.
    pub fn is_rounding(&self, surface: Surface, asset: AssetId, difference: Amount) -> bool {
        let mut rules = self.instruments.iter();
        let difference = if rules.any(|one| one.quote == asset) {
            difference
        } else if let Some(value) = self.value_in_equity(asset, difference) {
            value
        } else {
            return false;
        };
        let connection = self.connection(surface);
        connection.is_some_and(|connection| {
            difference.abs().0.saturating_mul(ROUNDING_PARTS) <= connection.fill_value.abs().0
        })
    }

    /// Whether two balances are equal apart from rounding. Futures round profits; spot rounds
    /// nothing.
    pub(crate) fn is_same(
        &self,
        surface: Surface,
        asset: AssetId,
        reported: Amount,
        known: Amount,
    ) -> bool {
        let rounds = surface == Surface::Futures;
        reported == known || (rounds && self.is_rounding(surface, asset, reported - known))
    }

    /// The balances of a statement that are not equal to the known ones, apart from rounding.
    pub(crate) fn different_balances<'s>(
        &self,
        surface: Surface,
        statement: &'s AccountSnapshot,
    ) -> impl Iterator<Item = &'s BalanceUpdate> {
        let stated = statement.balances.iter();
        stated.filter(move |reported| {
            let known = self.balance(surface, reported.asset).total;
            !self.is_same(surface, reported.asset, reported.total, known)
        })
    }

    /// The value of an amount of a balance in the account's equity.
    pub fn worth(&self, surface: Surface, asset: AssetId, amount: Amount) -> Amount {
        let equity = self.equity_asset();
        if equity == Some(asset) {
            return amount;
        }
        let of_base = |(index, instrument): (usize, &Instrument)| {
            let counts = instrument.surface == surface
                && instrument.base == asset
                && equity == Some(instrument.quote);
            let mark = self.markets[index].mark(instrument.price_scale);
            mark.filter(|_| counts && surface == Surface::Spot)
        };
        let mut mark = self.instruments.iter().enumerate().filter_map(of_base);
        mark.next()
            .map_or(Amount::ZERO, |mark| base_value(amount, mark))
    }

    /// The account's open positions on a surface.
    pub fn held_positions(&self, surface: Surface) -> Vec<((InstrumentId, PositionSide), i64)> {
        let account = self.ledgers.account.iter();
        let held = account.filter(|(id, _, holding)| {
            holding.position.qty != 0 && self.surface_of(*id) == surface
        });
        held.map(|(id, side, holding)| ((id, side), holding.position.qty))
            .collect()
    }
}
