//! Whether a balance differs from the books because of commissions that are not booked yet
//! (`late_fees`), and by how much they may lower it.

use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, InstrumentId, TradeId};
use windvane_model::order::Surface;
use windvane_model::protocol::BalanceUpdate;
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;
use crate::late_fees::{FEE_MAX_PPM, LateFee, SURFACE};

/// The smallest bound once a rate is known, in ppm: 0.1 percent. A maker's rate says nothing about
/// a taker's.
const FEE_USUAL_PPM: i64 = 1_000;

impl Evidence<'_> {
    /// Whether the account matches the statement, apart from commissions that the venue's list of
    /// trades will state.
    pub fn awaits_fees(&self, surface: Surface, statement: &AccountSnapshot) -> bool {
        self.serves_account_trades() && self.differs_by_fees(surface, statement)
    }

    /// Whether the venue lists the trades of the futures account: it has not refused to since the
    /// user stream connected.
    pub fn serves_account_trades(&self) -> bool {
        let connection = self.connection(SURFACE);
        connection.is_some_and(|connection| !connection.no_trades)
    }

    /// Whether commissions that are not booked yet, and that the venue's list of trades will state,
    /// may explain that a balance is lower by `moved`.
    pub(crate) fn may_lack_fees(&self, surface: Surface, asset: AssetId, moved: Amount) -> bool {
        let is_lower = surface == SURFACE && moved < Amount::ZERO;
        let waiting = || self.waiting_outside_snapshot();
        is_lower && self.serves_account_trades() && self.may_be_fees_of(&waiting(), asset, moved)
    }

    /// Like [`Self::may_lack_fees`]; also true if booked estimates of commissions may explain the
    /// difference, which the venue's list of trades will replace.
    pub(crate) fn may_await_fees(&self, surface: Surface, asset: AssetId, moved: Amount) -> bool {
        let is_possible = surface == SURFACE && self.serves_account_trades();
        self.may_lack_fees(surface, asset, moved)
            || (is_possible
                && self.may_be_estimates(&self.waiting_outside_snapshot(), asset, moved))
    }

    /// Whether the account matches the statement, apart from unknown commissions.
    fn differs_by_fees(&self, surface: Surface, statement: &AccountSnapshot) -> bool {
        let differs = |reported: &BalanceUpdate| {
            let moved = reported.total - self.balance(surface, reported.asset).total;
            (moved != Amount::ZERO).then(|| self.may_be_fees(reported.asset, moved))
        };
        let mut different = statement.balances.iter().filter_map(differs).peekable();
        surface == SURFACE
            && (!self.late_fees.waiting.is_empty() || self.has_young_estimate())
            && self.positions_agree(&statement.positions)
            && different.peek().is_some()
            && different.all(|may_be| may_be)
    }

    fn may_be_fees(&self, asset: AssetId, moved: Amount) -> bool {
        let waiting = self.waiting_outside_snapshot();
        self.may_be_fees_of(&waiting, asset, moved) || self.may_be_estimates(&waiting, asset, moved)
    }

    pub(crate) fn waiting_outside_snapshot(&self) -> Vec<LateFee> {
        let waiting = self.late_fees.waiting.iter();
        waiting.filter(|late| !late.in_snapshot).copied().collect()
    }

    /// The highest possible commission of a fill with this value.
    pub(crate) fn most_fee(&self, value: Amount) -> i128 {
        // The price of another asset changes between the fill and the comparison.
        let known = self.late_fees.highest_ppm;
        let usual = |ppm: i64| (ppm.saturating_mul(3) / 2).max(FEE_USUAL_PPM);
        let most_ppm = known.map_or(FEE_MAX_PPM, usual);
        value.abs().part(most_ppm, 1_000_000).0
    }

    /// Whether the commissions of these fills may change a balance by this amount.
    pub(crate) fn may_be_fees_of(&self, fills: &[LateFee], asset: AssetId, moved: Amount) -> bool {
        let most = |late: &LateFee| self.most_fee(late.value);
        let in_asset = fills.iter().filter(|late| self.quote_of(late) == asset);
        let own: i128 = in_asset.map(most).sum();
        if own > 0 {
            return moved.abs().0 <= own;
        }
        let all: i128 = fills.iter().map(most).sum();
        let value = self.value_in_equity(asset, moved);
        all > 0 && value.is_none_or(|value| value.abs().0 <= all)
    }

    /// The quote asset of a fill's instrument.
    pub fn quote_of(&self, late: &LateFee) -> AssetId {
        self.instruments[usize::from(late.instrument.0)].quote
    }

    /// The change of equity that a pending account event shows for commissions that are not booked
    /// yet.
    pub fn fees_to_come(&self) -> Amount {
        let connection = self.connection(SURFACE);
        let statement = connection.and_then(|connection| connection.pending_event.as_ref());
        let Some((statement, _)) =
            statement.filter(|(reported, _)| self.awaits_fees(SURFACE, reported))
        else {
            return Amount::ZERO;
        };
        // A commission lowers equity. An increase of a balance may be a deposit.
        self.gain_of_fees(statement).min(Amount::ZERO)
    }

    /// The difference of the balances, in the equity asset.
    fn gain_of_fees(&self, statement: &AccountSnapshot) -> Amount {
        let balances = statement.balances.iter().map(|reported| {
            let moved = reported.total - self.balance(SURFACE, reported.asset).total;
            if self.is_outside_equity(SURFACE, reported.asset) {
                let value = self.value_in_equity(reported.asset, moved);
                value.unwrap_or_else(|| -self.estimated_fees(-moved) - self.young_sum(-moved))
            } else {
                self.worth(SURFACE, reported.asset, moved)
            }
        });
        balances.sum()
    }

    /// The estimated value of paid commissions in an asset without a price, from the value of their
    /// fills.
    pub fn estimated_fees(&self, paid: Amount) -> Amount {
        let waiting = self.late_fees.waiting.iter();
        let waiting = waiting.filter(|late| !late.in_snapshot);
        if paid > Amount::ZERO {
            self.estimated_fees_of(waiting)
        } else {
            Amount::ZERO
        }
    }

    /// The estimated commissions of these fills.
    pub fn estimated_fees_of<'a>(&self, fills: impl Iterator<Item = &'a LateFee>) -> Amount {
        let fee_ppm = self.live.map_or(0, |live| live.fee_estimate_ppm);
        fills.map(|late| late.value.part(fee_ppm, 1_000_000)).sum()
    }

    /// The first trade of an instrument to read for commissions.
    pub fn first_late_fee(&self, instrument: InstrumentId) -> Option<TradeId> {
        let of_instrument = self.fee_trades().filter(|(id, _)| *id == instrument);
        of_instrument.map(|(_, trade_id)| trade_id).min()
    }

    /// The fills for which the venue's list of trades may state a commission.
    pub fn fee_trades(&self) -> impl Iterator<Item = (InstrumentId, TradeId)> {
        let fills = self.late_fee_fills();
        fills.map(|late| (late.instrument, late.trade_id))
    }

    /// The fills whose event left out the commission: without a booked commission, or with an
    /// estimate.
    pub fn late_fee_fills(&self) -> impl Iterator<Item = &LateFee> {
        let waiting = self.late_fees.waiting.iter();
        waiting.chain(self.fills_from_totals.awaiting_fee())
    }

    /// Number of such fills.
    pub fn late_fee_count(&self) -> usize {
        self.late_fee_fills().count()
    }

    /// The sum of the commissions shown by a snapshot that is about to be accepted, if account
    /// trades do not state them.
    pub fn fees_by_agreement(&self, surface: Surface, account: &AccountSnapshot) -> Option<Amount> {
        // The part that belongs to fills with an estimate is not known.
        let is_fees = !self.serves_account_trades()
            && !self.has_young_estimate()
            && self.differs_by_fees(surface, account);
        is_fees.then(|| -self.gain_of_fees(account))
    }
}
