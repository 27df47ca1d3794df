//! Money that comes and goes other than by trading: deposits, withdrawals, transfers (spec 1 and
//! 2, transfers; spec 3, withdrawals). Each is followed by its account update.
//!
//! An amount that is not positive is refused with -4055, one over what is free with -2018: on
//! spot the free balance, on futures `maxWithdrawAmount`, which leaves out unrealized profit and
//! all margin in use.

use windvane_model::protocol::Refusal;
use windvane_model::{Amount, AssetId, Surface, Time};

use crate::code::Code;
use crate::stream::Cause;
use crate::venue::Venue;

impl Venue {
    /// Adds to a balance. An asset that the account did not know is known from here on.
    ///
    /// # Errors
    /// -4055 for an amount that is not positive.
    pub fn credit(
        &mut self,
        now: Time,
        surface: Surface,
        asset: AssetId,
        amount: Amount,
        cause: Cause,
    ) -> Result<(), Refusal> {
        self.advance(now);
        if amount.0 <= 0 {
            return Err(Code::AmountNotPositive.refusal());
        }
        self.account.admit(asset);
        self.book(surface, asset, amount, cause);
        Ok(())
    }

    /// Takes from a balance what is free of it.
    ///
    /// # Errors
    /// -4055 for an amount that is not positive, -2018 where less is free.
    pub fn debit(
        &mut self,
        now: Time,
        surface: Surface,
        asset: AssetId,
        amount: Amount,
        cause: Cause,
    ) -> Result<(), Refusal> {
        self.advance(now);
        if amount.0 <= 0 {
            return Err(Code::AmountNotPositive.refusal());
        }
        if amount > self.withdrawable(surface, asset) {
            return Err(Code::BalanceNotSufficient.refusal());
        }
        self.book(surface, asset, -amount, cause);
        Ok(())
    }

    /// Moves an amount from one surface to the other (`SPOT_FUTURE`, `FUTURE_SPOT`).
    ///
    /// # Errors
    /// As [`Venue::debit`]; nothing has moved then.
    pub fn transfer(
        &mut self,
        now: Time,
        from: Surface,
        asset: AssetId,
        amount: Amount,
    ) -> Result<(), Refusal> {
        let to = match from {
            Surface::Spot => Surface::Futures,
            Surface::Futures => Surface::Spot,
        };
        self.debit(now, from, asset, amount, Cause::AssetTransfer)?;
        self.credit(now, to, asset, amount, Cause::AssetTransfer)
    }

    /// What may leave a balance.
    pub fn withdrawable(&self, surface: Surface, asset: AssetId) -> Amount {
        if !self.account.knows(asset) {
            return Amount::ZERO;
        }
        match surface {
            Surface::Spot => self.account.spot(asset).free,
            Surface::Futures => self.futures_balance(asset).max_withdraw,
        }
    }

    fn book(&mut self, surface: Surface, asset: AssetId, change: Amount, cause: Cause) {
        match surface {
            Surface::Spot => self.account.spot_mut(asset).free += change,
            Surface::Futures => {
                *self.account.wallet_mut(asset) += change;
                self.margin.dirty = Some(asset);
            }
        }
        self.tell_change(surface, cause, &[(asset, change)], &[]);
        self.settle();
    }
}
