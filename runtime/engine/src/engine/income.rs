//! Money that moved without an event: the engine requests the venue's income history and books what it
//! explains (`windvane_evidence::income`).

use windvane_evidence::connection::RoundStep;
use windvane_evidence::income::{ASK_AGAIN_MS, IncomePlan};
use windvane_model::decimal::Amount;
use windvane_model::effect::{Adjustment, Notice};
use windvane_model::ids::AssetId;
use windvane_model::order::Surface;
use windvane_model::planted;
use windvane_model::protocol::{AccountUpdate, BalanceUpdate};
use windvane_model::state_report::{AccountSnapshot, Income, IncomeKind};

use super::Engine;
use super::comparison::READ_AGAIN_MS;

impl Engine {
    /// Requests the income history before the engine takes a balance that moved without a known
    /// cause. Returns whether the reconciliation round waits for the response.
    pub(super) fn ask_for_income(
        &mut self,
        surface: Surface,
        account: &AccountSnapshot,
        differences: &[Adjustment],
    ) -> bool {
        if surface != Surface::Futures {
            // A running request is about futures.
            return false;
        }
        let agreed = self
            .agreed_at(surface)
            .filter(|_| self.start_equity.is_some());
        let plan = self
            .incomes
            .plan(&evidence!(self), agreed, account, differences);
        match plan {
            IncomePlan::Take => return false,
            IncomePlan::Wait => self.reconcile_later(surface, READ_AGAIN_MS),
            IncomePlan::Ask { again } => {
                if let Some(connection) = self.connection_mut(surface) {
                    connection.round.step = RoundStep::Income;
                }
                if again {
                    self.reconcile_later(surface, ASK_AGAIN_MS);
                } else {
                    self.ask_next(surface);
                }
            }
        }
        true
    }

    pub(super) fn take_income(&mut self, surface: Surface, entries: &[Income], more: bool) {
        if self.incomes.take_page(entries, more) {
            self.compare_again(surface);
        }
        self.ask_next(surface);
    }

    /// Handles a missing history.
    pub(super) fn handle_missing_income(&mut self, surface: Surface, no_route: bool) {
        if self.incomes.note_missing_history(no_route, self.now) {
            self.compare_again(surface);
        }
    }

    fn compare_again(&mut self, surface: Surface) {
        if let Some(connection) = self.connection_mut(surface) {
            connection.round.step = RoundStep::Account;
        }
    }

    /// The part of a change without an event that moves the base of the loss limits.
    pub(super) fn transferred(
        &mut self,
        surface: Surface,
        asset: AssetId,
        moved: Amount,
    ) -> Amount {
        let tolerance = self.evidence().rounding_tolerance(surface);
        let explained = self.incomes.explain(asset, moved, tolerance);
        for income in explained.entries {
            self.take_entry(income);
        }
        let left = explained.left;
        explained.transferred
            + left.map_or(Amount::ZERO, |left| self.unexplained(surface, asset, left))
    }

    /// Handles a change that neither an event nor the history explains. A decrease counts as a
    /// loss. An increase may be a deposit and moves the base, except for profit that positions on
    /// unconfigured symbols realized. Returns the part that moves the base.
    fn unexplained(&mut self, surface: Surface, asset: AssetId, moved: Amount) -> Amount {
        if planted!(FundingIsTransfer) {
            return moved;
        }
        let moved = if self.evidence().is_outside_equity(surface, asset) {
            moved
        } else {
            moved - self.take_unconfigured_profit(moved)
        };
        if moved == Amount::ZERO {
            return moved;
        }
        self.notices.push_back(Notice::Unexplained {
            time: self.now,
            surface,
            asset,
            amount: moved,
        });
        moved.max(Amount::ZERO)
    }

    /// Books a history entry without an event: the balance that is accepted now contains it.
    fn take_entry(&mut self, income: Income) {
        self.incomes.remember(income, true);
        if let (IncomeKind::Funding, Some(instrument)) = (income.kind, income.instrument) {
            self.book_funding_of(instrument, income.asset, income.amount);
        }
    }

    /// Notes a payment that an event reported. Returns whether the history reported it before.
    pub(super) fn note_income(&mut self, update: &AccountUpdate, balance: &BalanceUpdate) -> bool {
        let income = self.evidence().income_of(update, balance);
        income.is_some_and(|income| self.incomes.note(income))
    }
}
