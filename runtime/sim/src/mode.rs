//! Account settings: position mode and leverage.
//!
//! The documents give no code for a position mode change that open orders or positions forbid;
//! this venue answers with those that they give for the margin type (-4047, -4048).

use windvane_engine::InstrumentId;
use windvane_engine::protocol::{Outcome, Reply, UserEvent};

use crate::code::Code;
use crate::venue::{Venue, refused};

impl Venue {
    pub(crate) fn set_position_mode(&mut self, hedge: bool) {
        let mut futures = self.markets.iter().filter(|market| market.is_futures());
        let outcome = if hedge == self.hedge {
            refused(Code::NoModeChange)
        } else if futures.clone().any(|market| market.open_orders() > 0) {
            refused(Code::OpenOrdersExist)
        } else if futures.any(|market| market.positions.iter().any(|p| p.qty != 0)) {
            refused(Code::PositionExists)
        } else {
            Outcome::Done(())
        };
        let done = outcome == Outcome::Done(());
        self.reply(Reply::PositionMode { outcome });
        if done {
            self.hedge = hedge;
            self.tell(UserEvent::PositionMode { hedge });
        }
    }

    /// Lower leverage needs more margin: -2028 where equity does not carry it.
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
            self.tell(UserEvent::Leverage {
                instrument,
                leverage,
            });
        }
    }

    fn change_leverage(&mut self, instrument: InstrumentId, leverage: u32) -> Result<(), Code> {
        let market = self.known(instrument).ok_or(Code::BadSymbol)?;
        if !market.is_futures() {
            return Err(Code::Unsupported);
        }
        if !(1..=125).contains(&leverage) {
            return Err(Code::InvalidLeverage);
        }
        let (before, asset) = (market.leverage, market.instrument.quote);
        self.at_mut(instrument).leverage = leverage;
        if leverage < before && !self.margin_suffices(asset) {
            self.at_mut(instrument).leverage = before;
            return Err(Code::LeverageTooSmall);
        }
        Ok(())
    }
}
