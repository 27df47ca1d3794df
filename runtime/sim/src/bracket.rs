//! Leverage brackets of one instrument (docs/interface/futures.md#leverage-brackets): the maximum
//! leverage for a position of some size, and the margin that it must keep. This file has tables
//! only, no account.
//!
//! The maintenance margin of a notional n in bracket k is `rate_k * n - cum_k`, with
//! `cum_k = cum_(k-1) + floor_k * (rate_k - rate_(k-1))`, so that it does not jump at a floor. An
//! instrument without configured brackets has a single one: leverage 125, no cap, and the
//! configured maintenance rate.

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{decimal, exact_mantissa};
use windvane_model::{Amount, Decimal};

use crate::config::{Rate, VenueConfigError};

/// The maximum leverage of every instrument (docs/interface/futures.md#leverage).
pub(crate) const LEVERAGE_MAX: u32 = 125;

/// One bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// `initialLeverage`: the largest leverage in it.
    pub initial_leverage: u32,
    /// `notionalFloor`.
    pub notional_floor: Amount,
    /// `notionalCap`.
    pub notional_cap: Amount,
    /// `maintMarginRatio`, a fraction.
    pub maintenance_rate: Decimal,
    /// `cum`. It follows from the other values, so it is ignored when brackets are set.
    pub cum: Amount,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Tier {
    leverage: u32,
    floor: Amount,
    cap: Amount,
    rate: Rate,
    cum: Amount,
}

/// The table of one instrument; never empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Brackets {
    first: Tier,
    rest: Vec<Tier>,
}

impl Brackets {
    pub(crate) const fn single(rate: Rate) -> Self {
        let first = Tier {
            leverage: LEVERAGE_MAX,
            floor: Amount::ZERO,
            cap: Amount(i128::MAX),
            rate,
            cum: Amount::ZERO,
        };
        Self {
            first,
            rest: Vec::new(),
        }
    }

    /// Checks that each bracket continues the previous one: floors equal caps, leverage falls,
    /// rates do not fall.
    pub(crate) fn new(instrument: &str, brackets: &[Bracket]) -> Result<Self, VenueConfigError> {
        let refuse = |rule| VenueConfigError::Brackets {
            instrument: instrument.to_owned(),
            rule,
        };
        let mut tiers = Vec::with_capacity(brackets.len());
        let mut before = Tier {
            leverage: LEVERAGE_MAX + 1,
            floor: Amount::ZERO,
            cap: Amount::ZERO,
            rate: Rate(0),
            cum: Amount::ZERO,
        };
        for bracket in brackets {
            let rate = exact_mantissa(bracket.maintenance_rate, 8)
                .filter(|rate| (0..Rate::ONE).contains(rate))
                .ok_or_else(|| refuse("maintMarginRatio must lie in 0..1 with 8 decimals"))?;
            let follows = bracket.notional_floor == before.cap;
            if !follows || bracket.notional_cap <= bracket.notional_floor {
                return Err(refuse(
                    "each notionalFloor must be the notionalCap before it",
                ));
            }
            if bracket.initial_leverage == 0 || bracket.initial_leverage >= before.leverage {
                return Err(refuse("initialLeverage must fall, from 125 at most to 1"));
            }
            if rate < before.rate.0 {
                return Err(refuse("maintMarginRatio must not fall"));
            }
            let step = Rate(rate - before.rate.0).of(bracket.notional_floor);
            before = Tier {
                leverage: bracket.initial_leverage,
                floor: bracket.notional_floor,
                cap: bracket.notional_cap,
                rate: Rate(rate),
                cum: before.cum + step,
            };
            tiers.push(before);
        }
        let mut tiers = tiers.into_iter();
        let first = tiers.next().ok_or_else(|| refuse("at least one bracket"))?;
        Ok(Self {
            first,
            rest: tiers.collect(),
        })
    }

    fn last(&self) -> &Tier {
        self.rest.last().unwrap_or(&self.first)
    }

    fn tiers(&self) -> impl Iterator<Item = &Tier> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Maintenance margin for a notional that is not negative.
    #[inline]
    pub(crate) fn maintenance(&self, notional: Amount) -> Amount {
        if self.rest.is_empty() {
            return self.first.rate.of(notional);
        }
        let tier = self.tiers().find(|tier| notional <= tier.cap);
        let tier = tier.unwrap_or_else(|| self.last());
        tier.rate.of(notional) - tier.cum
    }

    /// The rate and `cum` for a notional.
    pub(crate) fn terms(&self, notional: Amount) -> (Rate, Amount) {
        let tier = self.tiers().find(|tier| notional <= tier.cap);
        let tier = tier.unwrap_or_else(|| self.last());
        (tier.rate, tier.cum)
    }

    /// The largest rate: the maintenance margin never grows faster.
    pub(crate) fn steepest(&self) -> Rate {
        self.last().rate
    }

    pub(crate) const fn leverage_max(&self) -> u32 {
        self.first.leverage
    }

    /// The largest notional at a leverage.
    pub(crate) fn notional_max(&self, leverage: u32) -> Amount {
        let allowed = self.tiers().take_while(|tier| tier.leverage >= leverage);
        allowed.last().unwrap_or(&self.first).cap
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = Bracket> {
        self.tiers().map(|tier| Bracket {
            initial_leverage: tier.leverage,
            notional_floor: tier.floor,
            notional_cap: tier.cap,
            maintenance_rate: decimal(i128::from(tier.rate.0), 8),
            cum: tier.cum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bracket(leverage: u32, floor: i128, cap: i128, rate: i64) -> Bracket {
        Bracket {
            initial_leverage: leverage,
            notional_floor: Amount(floor * 100_000_000),
            notional_cap: Amount(cap * 100_000_000),
            maintenance_rate: Decimal::new(rate, 3),
            cum: Amount::ZERO,
        }
    }

    fn table() -> Brackets {
        let brackets = [bracket(50, 0, 50_000, 4), bracket(20, 50_000, 600_000, 10)];
        Brackets::new("futures:BTCUSDT", &brackets).unwrap()
    }

    #[test]
    fn maintenance_does_not_jump_at_a_floor() {
        let floor = Amount(50_000 * 100_000_000);
        let below = table().maintenance(floor);
        assert_eq!(below.to_string(), "200");
        let above = table().maintenance(floor + Amount(100_000_000));
        assert_eq!((above - below).to_string(), "0.01");
        assert_eq!(table().list().nth(1).unwrap().cum.to_string(), "300");
    }

    #[test]
    fn leverage_bounds_the_notional() {
        assert_eq!(table().leverage_max(), 50);
        assert_eq!(table().notional_max(21).to_string(), "50000");
        assert_eq!(table().notional_max(20).to_string(), "600000");
    }

    #[test]
    fn a_gap_between_brackets_is_refused() {
        let brackets = [bracket(50, 0, 10, 4), bracket(20, 11, 20, 10)];
        let error = Brackets::new("futures:X", &brackets).unwrap_err();
        assert!(error.to_string().contains("notionalFloor"), "{error}");
    }
}
