//! Fills that are booked with an estimated commission (`fills_from_totals`), until an event or the
//! venue's list of trades states the true one.
//!
//! The estimate is in the quote asset. The true commission may be in another asset, and the event
//! of the fill may leave it out. So the venue's balances may differ from the books for
//! [`ESTIMATED_MS`]:
//! - a quote asset by at most the estimates, or the highest rate that listed trades stated;
//! - any other asset is lower by at most the possible commissions.

use std::collections::BTreeMap;

use windvane_model::decimal::Amount;
use windvane_model::ids::{AssetId, InstrumentId, OrderSeq, StrategyId, Time};
use windvane_model::order::{PositionSide, Surface};
use windvane_model::state_report::AccountSnapshot;

use crate::Evidence;
use crate::lag::READ_LAG_MS;
use crate::late_fees::{AGAIN_MS, LateFee, SURFACE};

/// An estimate explains a difference for this long: by then the venue lists the fill's trade, and
/// the engine has read it.
pub(crate) const ESTIMATED_MS: i64 = READ_LAG_MS + 2 * AGAIN_MS;

/// How much estimates may let a balance differ.
#[derive(Clone, Copy, Debug)]
enum Slack {
    /// The estimates are in this asset: by this amount.
    Amount(i128),
    /// The estimates are in another asset: the balance is lower by at most this value in the equity
    /// asset.
    Value(i128),
}

/// A commission that is booked as an estimate and that no accepted snapshot contains yet.
#[derive(Clone, Copy, Debug)]
pub struct EstimatedFee {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Position side.
    pub side: PositionSide,
    /// The owning strategy; unowned fills have no estimate.
    pub owner: Option<StrategyId>,
    /// The asset of the estimate.
    pub quote: AssetId,
    /// The quote amount of the fill.
    pub value: Amount,
    /// The estimate.
    pub estimate: Amount,
    /// When the venue made the fill.
    pub made: Time,
    /// When the fill was booked.
    pub booked: Time,
}

impl LateFee {
    /// The estimate that is booked for this fill, unless an accepted snapshot contains its
    /// commission.
    pub(crate) fn with_estimate(&self, quote: AssetId, estimate: Amount) -> Option<EstimatedFee> {
        (!self.in_snapshot).then_some(EstimatedFee {
            instrument: self.instrument,
            side: self.side,
            owner: self.owner,
            quote,
            value: self.value,
            estimate,
            made: self.made,
            booked: self.booked,
        })
    }
}

impl Evidence<'_> {
    /// The futures commissions that are booked as estimates and that no accepted snapshot contains.
    pub fn estimated_commissions(&self) -> impl Iterator<Item = EstimatedFee> {
        let derived = self.fills_from_totals.derived();
        let derived = derived.filter(|(_, one)| !one.in_snapshot);
        let derived = derived.filter_map(|(seq, one)| {
            let order = self.orders.known(seq)?;
            let instrument = order.instrument();
            (self.surface_of(instrument) == Surface::Futures).then(|| EstimatedFee {
                instrument,
                side: order.terms.position_side,
                owner: Some(order.strategy),
                quote: self.instruments[usize::from(instrument.0)].quote,
                value: one.quote,
                estimate: one.fee,
                made: one.made,
                booked: one.booked,
            })
        });
        let awaiting_fee = self.fills_from_totals.awaiting_estimates();
        let awaiting_fee = awaiting_fee
            .filter_map(|(late, estimate)| late.with_estimate(self.quote_of(late), *estimate));
        derived.chain(awaiting_fee)
    }

    /// Whether a futures fill is booked with an estimate, and no event and no account trade
    /// reported it.
    pub fn has_derived_fill(&self) -> bool {
        let is_futures = |seq: OrderSeq| {
            let order = self.orders.known(seq);
            order.is_some_and(|order| self.surface_of(order.instrument()) == Surface::Futures)
        };
        let mut derived = self.fills_from_totals.derived();
        derived.any(|(seq, one)| !one.in_snapshot && is_futures(seq))
    }

    /// The estimated commission of a fill with this quote amount.
    pub fn estimated_fee(&self, quote_qty: Amount) -> Amount {
        let fee_ppm = self.live.map_or(0, |live| live.fee_estimate_ppm);
        quote_qty.part(fee_ppm, 1_000_000)
    }

    fn young_estimates(&self) -> Vec<EstimatedFee> {
        let is_young = |fee: &EstimatedFee| self.now <= fee.booked.plus_ms(ESTIMATED_MS);
        self.estimated_commissions().filter(is_young).collect()
    }

    /// The venue's time of the newest fill with an estimate.
    fn newest_estimate(&self) -> Option<Time> {
        self.estimated_commissions().map(|fee| fee.made).max()
    }

    /// Whether estimates may explain a difference.
    pub(crate) fn has_young_estimate(&self) -> bool {
        let is_young = |fee: EstimatedFee| self.now <= fee.booked.plus_ms(ESTIMATED_MS);
        self.estimated_commissions().any(is_young)
    }

    /// How much a balance may differ because commissions are booked as estimates. `waiting` are
    /// fills without a booked commission.
    fn slack_of_estimates(&self, waiting: &[LateFee], asset: AssetId) -> Option<Slack> {
        let estimates = self.young_estimates();
        if estimates.is_empty() {
            return None;
        }
        let mut in_quote = estimates.iter().filter(|fee| fee.quote == asset).peekable();
        if in_quote.peek().is_some() {
            let most: i128 = in_quote
                .map(|fee| self.max_difference_from_estimate(fee))
                .sum();
            let waiting = waiting.iter().filter(|late| self.quote_of(late) == asset);
            let waiting: i128 = waiting.map(|late| self.most_fee(late.value)).sum();
            return Some(Slack::Amount(most + waiting));
        }
        let most: i128 = estimates.iter().map(|fee| self.most_fee(fee.value)).sum();
        let waiting: i128 = waiting.iter().map(|late| self.most_fee(late.value)).sum();
        Some(Slack::Value(most + waiting))
    }

    /// The largest difference between the true commission and the estimate. The true commission is
    /// at most twice the estimate, or one and a half times the highest stated rate.
    fn max_difference_from_estimate(&self, fee: &EstimatedFee) -> i128 {
        let known = self.late_fees.highest_ppm.unwrap_or_default();
        let stated = fee.value.abs().part(known.saturating_mul(3) / 2, 1_000_000);
        fee.estimate.abs().max(stated).0
    }

    fn is_within(&self, slack: Slack, asset: AssetId, moved: Amount) -> bool {
        match slack {
            Slack::Amount(most) => moved.abs().0 <= most,
            Slack::Value(most) => {
                let value = self.value_in_equity(asset, moved);
                moved < Amount::ZERO && value.is_none_or(|value| value.abs().0 <= most)
            }
        }
    }

    /// Whether a balance may differ by this amount because commissions are booked as estimates.
    pub(crate) fn may_be_estimates(
        &self,
        waiting: &[LateFee],
        asset: AssetId,
        moved: Amount,
    ) -> bool {
        let slack = self.slack_of_estimates(waiting, asset);
        slack.is_some_and(|slack| self.is_within(slack, asset, moved))
    }

    /// Whether the balance of an account event differs by at most the estimated commissions, from
    /// the present books or from a recent state.
    pub(crate) fn estimates_explain(
        &self,
        surface: Surface,
        asset: AssetId,
        total: Amount,
    ) -> bool {
        let waiting = self.waiting_outside_snapshot();
        let slack = self.slack_of_estimates(&waiting, asset);
        let Some(slack) = slack.filter(|_| surface == SURFACE) else {
            return false;
        };
        let is_explained =
            |known: Amount| total == known || self.is_within(slack, asset, total - known);
        let connection = self.connection(surface);
        is_explained(self.balance(surface, asset).total)
            || connection.is_some_and(|connection| {
                connection
                    .history
                    .had_one_balance(self.now, asset, is_explained)
            })
    }

    /// Whether an account event from before the newest own fill differs from a recent state of the
    /// account by at most the estimated commissions. The venue's list of trades will state the true
    /// ones.
    pub(crate) fn agreed_apart_from_estimates(
        &self,
        surface: Surface,
        statement: &AccountSnapshot,
    ) -> bool {
        if surface != SURFACE || !self.serves_account_trades() || !self.has_young_estimate() {
            return false;
        }
        let waiting = self.waiting_outside_snapshot();
        let slacks = statement.balances.iter().filter_map(|reported| {
            let slack = self.slack_of_estimates(&waiting, reported.asset)?;
            Some((reported.asset, slack))
        });
        let slacks: BTreeMap<AssetId, Slack> = slacks.collect();
        let same = |asset, reported: Amount, known: Amount| {
            let slack = slacks.get(&asset);
            self.is_same(surface, asset, reported, known)
                || slack.is_some_and(|slack| self.is_within(*slack, asset, reported - known))
        };
        let connection = self.connection(surface);
        connection.is_some_and(|connection| {
            let stated = statement.balances.iter();
            let stated =
                stated.filter_map(|reported| connection.newest_events.balance(reported.asset));
            let is_late = stated.max() < self.newest_estimate();
            is_late
                && connection
                    .history
                    .matched_recently(self.now, statement, same)
        })
    }

    /// The part of a change that corrects estimated commissions, if the venue's list of trades does
    /// not state the true ones. Only an increase of at most the estimates counts; a larger one may
    /// be a deposit as a whole.
    pub fn correction_of_estimates(
        &self,
        surface: Surface,
        asset: AssetId,
        moved: Amount,
    ) -> Amount {
        let in_asset = self
            .estimated_commissions()
            .filter(|fee| fee.quote == asset);
        let most: Amount = in_asset.map(|fee| fee.estimate).sum();
        let is_correction = surface == SURFACE
            && !self.serves_account_trades()
            && moved > Amount::ZERO
            && moved <= most;
        if is_correction { moved } else { Amount::ZERO }
    }

    /// The sum of the estimates, if commissions were paid in an asset without a price.
    pub(crate) fn young_sum(&self, paid: Amount) -> Amount {
        if paid > Amount::ZERO {
            self.young_estimates().iter().map(|fee| fee.estimate).sum()
        } else {
            Amount::ZERO
        }
    }
}
