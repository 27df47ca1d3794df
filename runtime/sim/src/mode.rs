//! Account settings: position mode, assets mode, leverage.
//!
//! - The documents have no code for a change of the position mode that open orders or positions
//!   forbid. This venue uses the codes of the margin type (-4047, -4048).
//! - Multi-assets mode is only a setting: margin stays per margin asset. It excludes isolated
//!   symbols (-1020 from both sides), and does not change with open orders or positions (-4047,
//!   -4048). Setting the present mode again gives -4059, the only code of the documents for that.
//! - Leverage is at most that of the first bracket (-4028), and at most what the notional of
//!   position and open orders allows (-2027). Lower leverage needs more margin: -2028 if equity
//!   does not carry it, -4161 with an isolated position, whose margin is fixed.

use windvane_model::protocol::{Outcome, Refusal, Reply};
use windvane_model::{InstrumentId, Time};

use crate::code::Code;
use crate::market::Market;
use crate::venue::{Venue, refused};

impl Venue {
    pub(crate) fn set_position_mode(&mut self, hedge: bool) {
        let outcome = match self.check_mode(hedge == self.hedge) {
            Ok(()) => Outcome::Done(()),
            Err(code) => refused(code),
        };
        let done = outcome == Outcome::Done(());
        self.reply(Reply::PositionMode { outcome });
        if done {
            self.hedge = hedge;
            self.emit_config(true);
        }
    }

    /// Checks that the futures account has no order and no position, which a change of a mode
    /// needs.
    fn check_mode(&self, same: bool) -> Result<(), Code> {
        let mut futures = self.markets.iter().filter(|market| market.is_futures());
        if same {
            Err(Code::NoModeChange)
        } else if futures.clone().any(|market| market.open_orders() > 0) {
            Err(Code::OpenOrdersExist)
        } else if futures.any(Market::has_position) {
            Err(Code::PositionExists)
        } else {
            Ok(())
        }
    }

    /// Changes the assets mode (docs/interface/futures.md#multi-assets-mode).
    ///
    /// # Errors
    /// The refusals of [`crate::mode`].
    pub fn set_multi_assets(&mut self, now: Time, on: bool) -> Result<(), Refusal> {
        self.advance(now);
        self.check_mode(on == self.multi_assets)
            .map_err(Code::refusal)?;
        if on && self.markets.iter().any(|market| market.isolated) {
            return Err(Code::IsolatedSymbol.refusal());
        }
        self.multi_assets = on;
        self.emit_config(false);
        Ok(())
    }

    pub(crate) fn set_leverage(&mut self, instrument: InstrumentId, leverage: u32) {
        let result = self.change_leverage(instrument, leverage);
        let outcome = match result {
            Ok(()) => Outcome::Done(leverage),
            Err(code) => refused(code),
        };
        self.reply(Reply::Leverage {
            instrument,
            outcome,
        });
        if result.is_ok() {
            self.emit_leverage(instrument, leverage);
        }
    }

    fn change_leverage(&mut self, instrument: InstrumentId, leverage: u32) -> Result<(), Code> {
        let market = self.known(instrument).ok_or(Code::BadSymbol)?;
        if !market.is_futures() {
            return Err(Code::Unsupported);
        }
        if !(1..=market.brackets.leverage_max()).contains(&leverage) {
            return Err(Code::InvalidLeverage);
        }
        let (before, asset) = (market.leverage, market.instrument.quote);
        if leverage < before && market.isolated && market.has_position() {
            return Err(Code::IsolatedLeverage);
        }
        if !market.within_bracket(leverage) {
            return Err(Code::PositionLimit);
        }
        self.at_mut(instrument).leverage = leverage;
        if leverage < before && !self.margin_suffices(asset) {
            self.at_mut(instrument).leverage = before;
            return Err(Code::LeverageTooSmall);
        }
        Ok(())
    }
}
