//! The configuration of the simulated venue, and its rates as integers. No state.

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{AMOUNT_ONE, exact_mantissa};
use windvane_model::{Amount, AssetId, Decimal, Surface};

/// How a resting order advances in the queue of its price level. [`crate::queue`] has the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueModel {
    /// Only trades at the price, and a displayed quantity below the quantity ahead, move it
    /// forward.
    #[default]
    RiskAverse,
    /// A decrease of the quantity at the order's price is split by a power law between the quantity
    /// ahead of the order and the quantity behind it.
    Probabilistic,
    /// No quantity is ahead, so a touch fills.
    None,
}

/// The simulated account: balances, leverage, fees, matching (`[sim]` of the configuration).
#[derive(Clone, Debug)]
pub struct VenueConfig {
    /// Start balances per surface and asset.
    pub start_balance: Vec<(Surface, AssetId, Amount)>,
    /// Initial leverage of every futures instrument, 1 to 125.
    pub leverage: u32,
    /// Maintenance margin as a fraction of the position's notional, 0 to below 1.
    pub maintenance_rate: Decimal,
    /// Fee of resting orders, a fraction of the notional; negative is a rebate.
    pub maker_fee: Decimal,
    /// Fee of crossing orders, a fraction of the notional; negative is a rebate.
    pub taker_fee: Decimal,
    /// Queue model.
    pub queue: QueueModel,
    /// Whether the account starts in hedge mode.
    pub hedge_mode: bool,
    /// Seed of random draws. Matching draws nothing: the seed is for [`crate::latency::Latency`],
    /// which the driver makes from the same configuration.
    pub seed: u64,
}

/// Why a venue cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VenueConfigError {
    /// A rate has more than 8 decimals or is outside its range.
    #[error("{field} = {value} must lie between {min} and {max} and have at most 8 decimals")]
    Rate {
        /// The configuration key.
        field: &'static str,
        /// The value.
        value: Decimal,
        /// Smallest value.
        min: Decimal,
        /// Largest value.
        max: Decimal,
    },
    /// The leverage is outside 1 to 125.
    #[error("leverage = {0} must lie between 1 and 125 (docs/interface/futures.md#leverage)")]
    Leverage(u32),
    /// A start balance is negative.
    #[error("start_balance of {surface} asset {asset} is {amount}: it must not be negative")]
    StartBalance {
        /// Surface.
        surface: Surface,
        /// Index of the asset.
        asset: u16,
        /// The balance.
        amount: Amount,
    },
    /// A scale is too large for the integer arithmetic.
    #[error("{instrument}: {field} = {value} is over {max}; give the instrument a smaller scale")]
    Scale {
        /// The instrument's name.
        instrument: String,
        /// The scale's name.
        field: &'static str,
        /// The scale.
        value: u8,
        /// The largest.
        max: u8,
    },
    /// Leverage brackets do not continue each other.
    #[error("{instrument}: leverage brackets: {rule}")]
    Brackets {
        /// The instrument's name.
        instrument: String,
        /// The rule that is broken.
        rule: &'static str,
    },
    /// New rules of an instrument would change the meaning of its integers.
    #[error("{instrument}: {field} cannot change while the venue runs")]
    Fixed {
        /// The instrument's name.
        instrument: String,
        /// The field.
        field: &'static str,
    },
    /// A fraction of a filter does not fit 8 decimals.
    #[error("{instrument}: {field} = {value} must be positive and have at most 8 decimals")]
    Filter {
        /// The instrument's name.
        instrument: String,
        /// The filter's field.
        field: &'static str,
        /// The value.
        value: Decimal,
    },
}

/// A fraction in units of 1e-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Rate(pub(crate) i64);

impl Rate {
    /// One: 100 percent.
    pub(crate) const ONE: i64 = 100_000_000;

    /// This share of an amount, rounded half to even at 8 decimals.
    #[inline]
    pub(crate) const fn of(self, amount: Amount) -> Amount {
        Amount(windvane_model::decimal::div_half_even(
            amount.0 * self.0 as i128,
            AMOUNT_ONE,
        ))
    }

    fn checked(
        field: &'static str,
        value: Decimal,
        min: Decimal,
        max: Decimal,
    ) -> Result<Self, VenueConfigError> {
        let mantissa = exact_mantissa(value, 8).filter(|_| (min..=max).contains(&value));
        mantissa.map(Self).ok_or(VenueConfigError::Rate {
            field,
            value,
            min,
            max,
        })
    }
}

/// The checked rates of the configuration.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rates {
    pub(crate) maker: Rate,
    pub(crate) taker: Rate,
    pub(crate) maintenance: Rate,
}

impl Rates {
    pub(crate) fn new(config: &VenueConfig) -> Result<Self, VenueConfigError> {
        let fee_max = Decimal::new(1, 1);
        let maintenance_max = Decimal::new(9, 1);
        if !(1..=125).contains(&config.leverage) {
            return Err(VenueConfigError::Leverage(config.leverage));
        }
        Ok(Self {
            maker: Rate::checked("fees.maker", config.maker_fee, -fee_max, fee_max)?,
            taker: Rate::checked("fees.taker", config.taker_fee, -fee_max, fee_max)?,
            maintenance: Rate::checked(
                "maintenance_rate",
                config.maintenance_rate,
                Decimal::ZERO,
                maintenance_max,
            )?,
        })
    }

    /// The fee of a fill.
    #[inline]
    pub(crate) const fn fee(&self, maker: bool, notional: Amount) -> Amount {
        if maker {
            self.maker.of(notional)
        } else {
            self.taker.of(notional)
        }
    }

    /// The largest fee that a spot buy may have to pay, as maker or taker.
    pub(crate) fn fee_bound(&self, notional: Amount) -> Amount {
        Rate(self.maker.0.max(self.taker.0).max(0)).of(notional)
    }
}
