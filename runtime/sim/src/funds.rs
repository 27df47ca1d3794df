//! Changes of balances other than trading: deposits, withdrawals, transfers
//! (docs/interface/account.md#transfers-between-wallets, docs/interface/chain.md#withdrawals). Each
//! is followed by its account event.
//!
//! An amount that is not positive is refused with -4055, an amount above the free balance with
//! -2018. On spot the limit is the free balance; on futures it is `maxWithdrawAmount`, without
//! unrealized profit and without margin in use.

use windvane_model::protocol::Refusal;
use windvane_model::{Amount, AssetId, Surface, Time};

use crate::code::Code;
use crate::stream::Cause;
use crate::venue::Venue;

impl Venue {
    /// Adds to a balance. A new asset is added to the account.
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

    /// Takes an amount from the free part of a balance.
    ///
    /// # Errors
    /// -4055 for an amount that is not positive, -2018 if less is free.
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
    /// As for [`Venue::debit`]; then nothing was moved.
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

    /// The amount that may be withdrawn from a balance.
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
        self.emit_change(surface, cause, &[(asset, change)], &[]);
        self.settle();
    }
}
