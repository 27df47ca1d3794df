//! What an account event tells before the fill that it is about: it waits for it, and is looked
//! into where none comes.

use crate::decimal::Amount;
use crate::effect::{Adjustment, Cause};
use crate::ids::Time;
use crate::order::Surface;
use crate::planted;
use crate::protocol::{AccountReason, AccountUpdate, BalanceUpdate};
use crate::truth::AccountTruth;

use super::Engine;

/// The fill that an account event is about comes within this, or is looked for.
const FILL_MS: i64 = 1_000;

impl Engine {
    /// Whether an account event has to wait: the venue tells of a fill twice, by order and by
    /// account, and says nowhere which comes first. Taken before its fill, it would count twice,
    /// whatever else the event is about.
    pub(super) fn waits_for_fill(&mut self, update: &AccountUpdate) -> bool {
        let (surface, now) = (update.surface, self.now);
        let comes_or_goes = surface == Surface::Spot && update.reason != AccountReason::Order;
        let Some(line) = self.line_mut(surface).filter(|_| !comes_or_goes) else {
            return false;
        };
        let explained = |told: &BalanceUpdate| BalanceUpdate {
            change: Amount::ZERO,
            ..*told
        };
        let mut truth = AccountTruth {
            balances: update.balances.iter().map(explained).collect(),
            positions: update.positions.clone(),
            ..AccountTruth::default()
        };
        let mut since = now;
        if let Some((older, at)) = line.told.take() {
            let lines = |truth: &AccountTruth| truth.balances.len() + truth.positions.len();
            let told = lines(&truth);
            truth.complete(older);
            since = if lines(&truth) > told { at } else { now };
        }
        if !self.holds(surface, &truth) && !planted!(AccountBeforeFill) {
            if let Some(line) = self.line_mut(surface) {
                line.told = Some((truth, since));
            }
            return true;
        }
        for balance in truth.balances.iter().skip(update.balances.len()) {
            self.take_balance(surface, balance, Cause::Event);
        }
        false
    }

    /// All fills up to there are booked. On futures positions alone tell: balances may differ in
    /// what the venue rounds. Spot has balances alone, and rounds nothing.
    fn holds(&self, surface: Surface, account: &AccountTruth) -> bool {
        let tells = |one: &Adjustment| match surface {
            Surface::Futures => matches!(one, Adjustment::Position { .. }),
            Surface::Spot => matches!(one, Adjustment::Balance { .. }),
        };
        !self.differences(surface, account).iter().any(tells)
    }

    /// A fill may explain what was told before it, which is then taken.
    pub(super) fn explain_what_was_told(&mut self, surface: Surface) {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some((truth, _)) = line.and_then(|line| line.told.as_ref()) else {
            return;
        };
        if !self.holds(surface, truth) {
            return;
        }
        let told = self.line_mut(surface).and_then(|line| line.told.take());
        for balance in told.iter().flat_map(|(truth, _)| &truth.balances) {
            self.shift_by_untold(surface, balance);
            self.take_balance(surface, balance, Cause::Event);
        }
    }

    /// What was told and no fill explained in time is looked into.
    pub(super) fn look_into_what_was_told(&mut self, surface: Surface) {
        let now = self.now;
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let idle = line.round.is_idle();
        let overdue = |(_, at): &(AccountTruth, Time)| now > at.plus_ms(FILL_MS);
        if idle && line.stream_up && line.told.as_ref().is_some_and(overdue) {
            line.told = None;
            self.begin_round(surface);
        }
    }
}
