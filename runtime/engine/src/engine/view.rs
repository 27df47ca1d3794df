//! Read-only views of the engine's state: for strategies, reports and people.

use windvane_model::config::StrategyConfig;
use windvane_model::decimal::{AMOUNT_SCALE, Amount, pow10};
use windvane_model::holding::{Ledger, Ledgers};
use windvane_model::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::input::FaultKind;
use windvane_model::instrument::Instrument;
use windvane_model::ledger;
use windvane_model::ledger::{Balance, balance_of, base_value};
use windvane_model::market::Level;
use windvane_model::market_state::{Mark, mark_of};
use windvane_model::order::{Side, Surface};
use windvane_model::orders::{Order, Orders};
use windvane_model::record::Recorder;
use windvane_model::risk::{LossWatch, RiskLimits};
use windvane_model::run_state::{KillSwitch, RunState};

use super::Engine;

/// The account's totals, in the quote asset of the first instrument.
///
/// `equity = start_equity + realized_pnl + unrealized_pnl - fees + funding` holds exactly if fees
/// are paid in the quote asset, or in the base asset of a spot instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountTotals {
    /// Cash: wallet balances of the quote asset on spot and futures.
    pub cash: Amount,
    /// Cash, plus unrealized profit on futures (also of symbols that are not configured), plus base
    /// assets at mid on spot, less the value of commissions in other assets.
    pub equity: Amount,
    /// Realized profit before fees.
    pub realized_pnl: Amount,
    /// Unrealized profit.
    pub unrealized_pnl: Amount,
    /// Fees paid in quote assets.
    pub fees: Amount,
    /// Funding received.
    pub funding: Amount,
}

impl Engine {
    /// Time of the last input.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Whether new orders may be sent.
    pub const fn run_state(&self) -> RunState {
        self.state
    }

    /// The account's kill switch; a halt or a pause holds across restarts.
    pub const fn kill_switch(&self) -> KillSwitch {
        self.kill_switch
    }

    /// The epoch of client order ids.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether hedge mode is on; one-way mode otherwise.
    pub const fn hedge_mode(&self) -> bool {
        self.hedge_mode
    }

    /// An instrument's rules.
    #[inline]
    pub fn instrument(&self, instrument: InstrumentId) -> Option<&Instrument> {
        self.instruments.get(usize::from(instrument.0))
    }

    /// All instruments; [`InstrumentId`] is the index.
    pub fn instruments(&self) -> &[Instrument] {
        &self.instruments
    }

    /// Names of all assets; [`AssetId`] is the index.
    pub fn assets(&self) -> &[String] {
        &self.assets
    }

    /// The configured name of a strategy.
    pub fn strategy_name(&self, strategy: StrategyId) -> Option<&str> {
        let state = self.strategies.get(usize::from(strategy.0))?;
        Some(state.config.name.as_str())
    }

    /// The configuration of a strategy.
    pub fn strategy_config(&self, strategy: StrategyId) -> Option<&StrategyConfig> {
        let state = self.strategies.get(usize::from(strategy.0))?;
        Some(&state.config)
    }

    /// Limits of the account.
    pub const fn limits(&self) -> &RiskLimits {
        &self.limits
    }

    /// Why a strategy is quarantined; `None` while it runs.
    pub fn fault(&self, strategy: StrategyId) -> Option<FaultKind> {
        self.strategies.get(usize::from(strategy.0))?.fault
    }

    /// A level of the book; buys are bids, level 0 is the best.
    #[inline]
    pub fn book_level(&self, instrument: InstrumentId, side: Side, level: usize) -> Option<Level> {
        let market = self.markets.get(usize::from(instrument.0))?;
        market.book.level(side, level)
    }

    /// Price of the last trade.
    #[inline]
    pub fn last_price(&self, instrument: InstrumentId) -> Option<i64> {
        self.markets.get(usize::from(instrument.0))?.last
    }

    /// Mark price and funding terms as recorded; without them, mid counts as the mark price.
    pub fn mark(&self, instrument: InstrumentId) -> Option<Mark> {
        mark_of(&self.markets, &self.instruments, instrument)
    }

    /// Mid at scale 8; `None` while a side of the book is empty.
    pub fn mid(&self, instrument: InstrumentId) -> Option<i64> {
        let price_scale = self.instrument(instrument)?.price_scale;
        self.markets
            .get(usize::from(instrument.0))?
            .mid(price_scale)
    }

    /// A balance of the account.
    pub fn balance(&self, surface: Surface, asset: AssetId) -> Balance {
        balance_of(&self.balances, surface, asset)
    }

    /// All balances, in the order of surface and asset.
    pub fn balances(&self) -> impl Iterator<Item = (Surface, AssetId, Balance)> {
        self.balances
            .iter()
            .map(|((surface, asset), balance)| (*surface, *asset, *balance))
    }

    /// The ledgers of the account and the strategies, and of unowned positions.
    pub const fn ledgers(&self) -> &Ledgers {
        &self.ledgers
    }

    /// Own orders.
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    /// A live own order.
    pub fn order(&self, order: OrderSeq) -> Option<&Order> {
        self.orders.live(order)
    }

    /// An own order that is live or ended recently.
    pub fn known_order(&self, order: OrderSeq) -> Option<&Order> {
        self.orders.known(order)
    }

    /// Number of records written so far.
    pub const fn records(&self) -> u64 {
        Recorder::last_record(&self.recorder)
    }

    /// The equity when every holding had its first price; `None` before that.
    pub const fn start_equity(&self) -> Option<Amount> {
        self.start_equity
    }

    /// The base and state of the account's loss limits.
    pub const fn losses(&self) -> &LossWatch {
        &self.losses
    }

    /// The account's totals; `None` while a holding has no price yet.
    pub fn totals(&self) -> Option<AccountTotals> {
        let mut totals = AccountTotals {
            cash: self.cash(),
            equity: self.equity()?,
            ..AccountTotals::default()
        };
        for (id, _, holding) in self.ledgers.account.iter() {
            let position = &holding.position;
            totals.realized_pnl += position.realized_pnl;
            totals.fees += position.fees;
            totals.funding += position.funding;
            if !position.is_flat() {
                let instrument = &self.instruments[usize::from(id.0)];
                let mark = self.markets[usize::from(id.0)].mark(instrument.price_scale)?;
                totals.unrealized_pnl += position.unrealized_pnl(instrument, mark);
            }
        }
        Some(totals)
    }

    /// Unrealized profit of a ledger; `None` while an open position has no price yet.
    pub fn unrealized(&self, ledger: &Ledger) -> Option<Amount> {
        let mut total = Amount::ZERO;
        for (id, _, holding) in ledger.iter() {
            if !holding.position.is_flat() {
                let instrument = &self.instruments[usize::from(id.0)];
                let mark = self.markets[usize::from(id.0)].mark(instrument.price_scale)?;
                total += holding.position.unrealized_pnl(instrument, mark);
            }
        }
        Some(total)
    }

    /// The quote asset of the first instrument, in which equity is counted.
    pub fn equity_asset(&self) -> Option<AssetId> {
        Some(self.instruments.first()?.quote)
    }

    fn cash(&self) -> Amount {
        let Some(asset) = self.equity_asset() else {
            return Amount::ZERO;
        };
        self.balance(Surface::Spot, asset).total + self.balance(Surface::Futures, asset).total
    }

    /// Cash, unrealized profit of futures, and base assets at mid. Assets without an instrument
    /// against the equity asset do not count.
    pub(super) fn equity(&self) -> Option<Amount> {
        let asset = self.equity_asset()?;
        let mut equity =
            self.cash() + self.unconfigured_positions.unrealized() - self.fee_costs.total;
        for (index, instrument) in self.instruments.iter().enumerate() {
            if instrument.quote != asset {
                continue;
            }
            let id = InstrumentId(index as u16);
            let market = &self.markets[index];
            match instrument.surface {
                Surface::Futures => {
                    if self.ledgers.account.holds(id) {
                        let mark = market.mark(instrument.price_scale)?;
                        for holding in self.ledgers.account.of(id) {
                            equity += holding.position.unrealized_pnl(instrument, mark);
                        }
                    }
                }
                Surface::Spot => {
                    let base = self.balance(Surface::Spot, instrument.base).total;
                    if base != Amount::ZERO {
                        let mark = market.mark(instrument.price_scale)?;
                        equity += base_value(base, mark);
                    }
                }
            }
        }
        Some(equity)
    }

    /// Books base assets that the account holds at the start as unowned positions. Their cost is
    /// set with the first mid price.
    pub(super) fn adopt_start_holdings(&mut self) {
        for index in 0..self.instruments.len() {
            let instrument = &self.instruments[index];
            if instrument.surface != Surface::Spot {
                continue;
            }
            let base = self.balance(Surface::Spot, instrument.base).total;
            let unit = i128::from(pow10(AMOUNT_SCALE.saturating_sub(instrument.qty_scale)));
            let qty = i64::try_from(base.0 / unit).unwrap_or(i64::MAX);
            let id = InstrumentId(index as u16);
            for ledger in [&mut self.ledgers.account, &mut self.ledgers.external] {
                let side = windvane_model::order::PositionSide::Both;
                ledger.at_mut(id, side).position.qty = qty;
            }
        }
    }

    /// Fixes the start equity as soon as a market is known and every holding has a price.
    pub(super) fn fix_start_equity(&mut self) {
        let mut markets = self.markets.iter();
        if markets.any(|market| market.book.mid_twice().is_some()) {
            self.fix_known_equity();
        }
    }

    /// Fixes the start equity even without a known market: an account without holdings needs no
    /// price.
    pub(super) fn fix_known_equity(&mut self) {
        let Some(equity) = self.equity() else { return };
        for index in 0..self.instruments.len() {
            let instrument = &self.instruments[index];
            let (id, side) = (
                InstrumentId(index as u16),
                windvane_model::order::PositionSide::Both,
            );
            let qty = self.ledgers.external.at(id, side).position.qty;
            let mark = self.markets[index].mark(instrument.price_scale);
            if let (Surface::Spot, Some(mark), true) = (instrument.surface, mark, qty != 0) {
                let cost = ledger::value(instrument, qty, mark);
                for ledger in [&mut self.ledgers.account, &mut self.ledgers.external] {
                    ledger.at_mut(id, side).position.cost = cost;
                }
            }
        }
        self.start_equity = Some(equity);
        self.losses = LossWatch::starting_at(equity);
    }
}
