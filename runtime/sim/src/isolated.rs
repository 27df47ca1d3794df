//! Isolated margin: a position has its own wallet and can lose no more than that
//! (docs/interface/futures.md#margin-type, docs/interface/futures.md#position-margin).
//!
//! - The margin type belongs to a symbol. It changes only without open orders (-4047) and positions
//!   (-4048), and cannot become isolated in multi-assets mode (-1020).
//! - A fill that opens moves `notional / leverage` from the cross balance into the position's
//!   isolated wallet. A fill that closes q of Q moves the share q / Q back. Profit and fees go to
//!   the wallet balance, as in cross margin; funding goes through the isolated wallet. The wallet
//!   balance includes the isolated wallets.
//! - The cross balance carries the margin of an isolated symbol's open orders, but not of its
//!   position.
//! - Margin can be added up to the available balance (-2019), and taken back down to the initial
//!   margin at the mark price, with losses counted and profits ignored (-2019). Without a position:
//!   -2024. In cross margin: -1020.
//! - If isolated wallet plus unrealized profit falls below the position's maintenance margin, the
//!   position is liquidated (see [`crate::liquidation`]). `MARGIN_CALL` is sent at 5/4 of it, once
//!   until the position has recovered.

use windvane_model::protocol::Refusal;
use windvane_model::{Amount, AssetId, InstrumentId, OrderStatus, PositionSide, Time};

use crate::code::Code;
use crate::market::Market;
use crate::stream::Cause;
use crate::venue::Venue;

impl Market {
    /// Isolated wallet plus unrealized profit, and the maintenance margin.
    fn isolated_standing(&self, side: PositionSide) -> (Amount, Amount) {
        let slot = side as usize;
        let (mark, scale) = (self.mark_price(), self.instrument.qty_scale);
        let position = &self.positions[slot];
        let equity = self.isolated_wallet[slot] + position.unrealized(mark, scale);
        let notional = position.notional(mark, scale).abs();
        (equity, self.brackets.maintenance(notional))
    }

    fn isolated_sides(&self) -> impl Iterator<Item = PositionSide> + '_ {
        let held = |side: &PositionSide| self.position(*side).qty != 0;
        PositionSide::ALL.iter().copied().filter(held)
    }

    /// The smallest distance of a position to its next margin call or liquidation.
    pub(crate) fn isolated_slack(&self) -> Amount {
        let slack = |side| {
            let (equity, maintenance) = self.isolated_standing(side);
            let called = if self.called { 4 } else { 5 };
            equity - Amount(maintenance.0 * called / 4)
        };
        self.isolated_sides()
            .map(slack)
            .min()
            .unwrap_or(Amount::ZERO)
    }

    /// Moves margin for a fill that changed the position from `held` to its present quantity.
    pub(crate) fn isolate(&mut self, slot: usize, held: i64, signed: i64, price: i64) {
        let opens = held.signum() * signed.signum() >= 0;
        let closed = if opens {
            0
        } else {
            held.abs().min(signed.abs())
        };
        let wallet = &mut self.isolated_wallet[slot];
        if closed > 0 {
            let released = if closed == held.abs() {
                *wallet
            } else {
                wallet.part(closed, held.abs())
            };
            *wallet -= released;
        }
        let opened = signed.abs() - closed;
        let notional = self.instrument.notional(price, opened);
        self.isolated_wallet[slot] += self.at_leverage(notional);
    }
}

impl Venue {
    /// Changes the margin type of a futures symbol.
    ///
    /// # Errors
    /// -4046 if it has that type already, and the refusals of [`crate::isolated`].
    pub fn set_margin_type(
        &mut self,
        now: Time,
        instrument: InstrumentId,
        isolated: bool,
    ) -> Result<(), Refusal> {
        self.advance(now);
        self.change_margin_type(instrument, isolated)
            .map_err(Code::refusal)?;
        let positions: Vec<_> = PositionSide::ALL
            .iter()
            .filter(|side| (**side == PositionSide::Both) != self.hedge)
            .map(|side| (instrument, *side))
            .collect();
        self.emit_change(
            windvane_model::Surface::Futures,
            Cause::MarginTypeChange,
            &[],
            &positions,
        );
        Ok(())
    }

    fn change_margin_type(&mut self, instrument: InstrumentId, isolated: bool) -> Result<(), Code> {
        let multi_assets = self.multi_assets;
        let market = self.futures_mut(instrument)?;
        if market.isolated == isolated {
            return Err(Code::NoMarginTypeChange);
        }
        if market.open_orders() > 0 {
            return Err(Code::OpenOrdersExist);
        }
        if market.has_position() {
            return Err(Code::PositionExists);
        }
        if isolated && multi_assets {
            return Err(Code::Unsupported);
        }
        market.isolated = isolated;
        Ok(())
    }

    /// Adds margin to an isolated position, or takes margin back.
    ///
    /// # Errors
    /// The refusals of [`crate::isolated`]; -4055 for an amount that is not positive.
    pub fn change_position_margin(
        &mut self,
        now: Time,
        instrument: InstrumentId,
        side: PositionSide,
        amount: Amount,
        add: bool,
    ) -> Result<(), Refusal> {
        self.advance(now);
        let change = if add { amount } else { -amount };
        self.check_position_margin(instrument, side, amount, add)
            .map_err(Code::refusal)?;
        let now = self.now;
        let market = self.at_mut(instrument);
        market.isolated_wallet[side as usize] += change;
        market.touched[side as usize] = now;
        let asset = market.instrument.quote;
        self.margin.dirty = Some(asset);
        self.emit_change(
            windvane_model::Surface::Futures,
            Cause::MarginTransfer,
            &[(asset, Amount::ZERO)],
            &[(instrument, side)],
        );
        self.settle();
        Ok(())
    }

    fn check_position_margin(
        &mut self,
        instrument: InstrumentId,
        side: PositionSide,
        amount: Amount,
        add: bool,
    ) -> Result<(), Code> {
        let hedge = self.hedge;
        let market = self.futures_mut(instrument)?;
        if amount.0 <= 0 {
            return Err(Code::AmountNotPositive);
        }
        if (side == PositionSide::Both) == hedge {
            return Err(Code::PositionSideMismatch);
        }
        if !market.isolated {
            return Err(Code::Unsupported);
        }
        let position = market.position(side);
        if position.qty == 0 {
            return Err(Code::PositionNotSufficient);
        }
        let profit = position.unrealized(market.mark_price(), market.instrument.qty_scale);
        let needed = market.position_margin(position) - profit.min(Amount::ZERO);
        let spare = market.isolated_wallet[side as usize] - needed;
        let asset = market.instrument.quote;
        let limit = if add { self.available(asset) } else { spare };
        if amount <= limit {
            Ok(())
        } else {
            Err(Code::MarginNotSufficient)
        }
    }

    /// The market of a futures instrument id from a request.
    pub(crate) fn futures_mut(&mut self, instrument: InstrumentId) -> Result<&mut Market, Code> {
        let market = self.markets.get_mut(usize::from(instrument.0));
        let market = market.ok_or(Code::BadSymbol)?;
        if market.is_futures() {
            Ok(market)
        } else {
            Err(Code::Unsupported)
        }
    }

    /// Checks the isolated positions of a margin asset. Returns true if one was liquidated.
    pub(crate) fn check_isolated(&mut self, asset: AssetId) -> bool {
        for n in 0..self.markets.len() {
            let market = &self.markets[n];
            if !market.isolated || !market.margins(asset) || !market.has_position() {
                continue;
            }
            let instrument = market.id;
            let fallen = market.isolated_sides().find(|side| {
                let (equity, maintenance) = market.isolated_standing(*side);
                equity < maintenance
            });
            if let Some(side) = fallen {
                self.liquidate_isolated(instrument, side);
                return true;
            }
            let in_danger = market.isolated_sides().any(|side| {
                let (equity, maintenance) = market.isolated_standing(side);
                equity.0 * 4 < maintenance.0 * 5
            });
            let called = std::mem::replace(&mut self.markets[n].called, in_danger);
            if in_danger && !called {
                self.emit_margin_call(asset, Some(instrument));
            }
        }
        false
    }

    pub(crate) fn liquidate_isolated(&mut self, instrument: InstrumentId, side: PositionSide) {
        let market = self.at(instrument);
        let (asset, own) = (
            market.instrument.quote,
            market.isolated_wallet[side as usize],
        );
        self.close_all(instrument, OrderStatus::Expired);
        let before = self.account.wallet(asset);
        self.close_out(instrument, side);
        let lost = before - self.account.wallet(asset);
        if lost > own {
            let paid = lost - own;
            *self.account.wallet_mut(asset) += paid;
            self.emit_change(
                windvane_model::Surface::Futures,
                Cause::InsuranceClear,
                &[(asset, paid)],
                &[],
            );
        }
    }
}
