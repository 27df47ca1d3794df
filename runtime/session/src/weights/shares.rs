//! The budget shares of the lanes, from the weight plans.

use windvane_client_core::Gateway;
use windvane_client_core::budget::{Lane, Shares, SharesError};

use super::{Overbooked, Plan, Use, Wants};
use crate::surface::venue_surface;

/// The budget shares that satisfy plans which fit. Each lane gets what it needs, and at least the
/// default share if there is room.
///
/// # Errors
/// The plans do not fit.
pub fn shares(plans: &[Plan]) -> Result<Shares, SharesError> {
    let need = |lane: Lane| {
        let of = |plan: &Plan| {
            let uses = plan.uses.iter().filter(|one| one.lane == lane);
            let sum: u64 = uses.map(Use::sum).sum();
            (sum * 100).div_ceil(u64::from(plan.limit).max(1))
        };
        u8::try_from(plans.iter().map(of).max().unwrap_or_default()).unwrap_or(u8::MAX)
    };
    let usual = |lane: Lane| u8::try_from(Shares::default().reserve(lane, 100)).unwrap_or(u8::MAX);
    // The last lane needs no reserve, because it uses only what is left.
    let with = |part: &dyn Fn(Lane) -> u8| {
        let mut percent = Lane::ALL.map(part);
        percent[Lane::Query as usize] = 0;
        Shares::new(percent)
    };
    with(&|lane| need(lane).max(usual(lane)))
        .or_else(|_| with(&need))
        // Percentages are rounded up, so the sum may exceed 100 by up to 3. The order lane gives up
        // these 3.
        .or_else(|_| {
            with(&|lane| need(lane).saturating_sub(if lane == Lane::Place { 3 } else { 0 }))
        })
}

/// Gives the budget of each surface the shares that its plan needs. The limits must be known from
/// the exchange information.
///
/// # Errors
/// A plan does not fit the limits.
pub fn keep(gateway: &Gateway, wants: impl IntoIterator<Item = Wants>) -> Result<(), Overbooked> {
    for wants in wants {
        let (surface, venue) = (wants.surface, venue_surface(wants.surface));
        let limits = gateway.with_budgets(|budgets| budgets.of(venue).limits());
        let plans = wants.plans(&limits);
        for plan in &plans {
            plan.check()?;
            let (weight, limit, polling) = (plan.sum(), plan.limit, plan.polling.to_string());
            tracing::info!(%surface, weight, limit, polling, "the plan of weights");
        }
        if let Ok(shares) = shares(&plans) {
            gateway.with_budgets(|budgets| budgets.of(venue).set_shares(shares));
        }
    }
    Ok(())
}
