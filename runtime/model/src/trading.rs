//! The trading status as it is shown and kept: what blocks opening orders, and series of refused orders.

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, InstrumentId, Time};
use crate::instrument::Instrument;
use crate::live::StopReason;
use crate::order::{Side, Surface};
use crate::rules::Rule;

/// A reason why opening orders are blocked, and its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TradingBlock {
    /// The venue refuses the key or agent on routes that need the trading right.
    Key(Surface),
    /// The venue accepts no order of the account.
    Account(Surface),
    /// The venue accepts only orders that reduce a position.
    ReduceOnly(Surface),
    /// The last account snapshot has `canTrade` false.
    CanTrade(Surface),
    /// The venue accepts no request: a ban, the firewall, a weight limit, a shutdown.
    Stopped(Surface),
    /// The venue accepts no opening order for the instrument.
    Instrument(InstrumentId),
    /// The balance of the asset is too small for the orders.
    Funds(Surface, AssetId),
    /// The market data of the instrument stopped.
    StaleMarket(InstrumentId),
    /// The venue does not arm the countdown of the instrument.
    Countdown(InstrumentId),
}

impl TradingBlock {
    /// The surface whose whole account is blocked; `None` for an instrument or an asset.
    pub const fn account(self) -> Option<Surface> {
        match self {
            Self::Key(surface)
            | Self::Account(surface)
            | Self::ReduceOnly(surface)
            | Self::CanTrade(surface)
            | Self::Stopped(surface) => Some(surface),
            Self::Instrument(_) | Self::Funds(..) | Self::StaleMarket(_) | Self::Countdown(_) => {
                None
            }
        }
    }

    /// Whether the block concerns orders for one side of an instrument.
    pub fn concerns(self, id: InstrumentId, rules: &Instrument, side: Side) -> bool {
        match self {
            Self::Instrument(blocked) | Self::StaleMarket(blocked) | Self::Countdown(blocked) => {
                blocked == id
            }
            Self::Funds(surface, asset) => surface == rules.surface && asset == spends(rules, side),
            block => block.account() == Some(rules.surface),
        }
    }

    /// The rule with which opening orders are refused.
    pub const fn rule(self) -> Rule {
        match self {
            Self::Instrument(_) | Self::StaleMarket(_) | Self::Countdown(_) => {
                Rule::InstrumentBlocked
            }
            Self::Funds(..) => Rule::FundsBlocked,
            _ => Rule::AccountBlocked,
        }
    }
}

/// The state of a block in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockState {
    /// When it began.
    pub since: Time,
    /// When it ends, if the venue stated it.
    pub until: Option<Time>,
    /// The venue's last code; 0 if the block did not come from a refusal.
    pub code: i32,
    /// Why the venue accepts no request.
    pub stop: Option<StopReason>,
    /// Number of orders that the venue rejected for this reason.
    pub rejected: u64,
    /// Number of opening orders that were not sent because of the block.
    pub not_sent: u64,
    /// When one order may be tried.
    pub trial: Option<Time>,
    /// Number of tries so far.
    pub trials: u32,
    /// The account is blocked, but one opening order may be tried. Strategies see the state `ready`
    /// until the venue answers it; the account stays degraded.
    pub on_trial: bool,
    /// The available balance of the asset when the venue refused.
    pub available: Amount,
}

/// Consecutive refusals of a strategy's orders for one side of an instrument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// Time of the first refusal.
    pub since: Time,
    /// Time of the last refusal.
    pub last: Time,
    /// Number of refusals.
    pub count: u32,
    /// The code of the last refusal; 0 for an order that was not sent.
    pub code: i32,
    /// No similar order is sent before this time: an opening order after refused openings, an exit
    /// after refused exits.
    pub pause_until: Time,
}

/// The asset that an opening order needs.
pub const fn spends(instrument: &Instrument, side: Side) -> AssetId {
    match (instrument.surface, side) {
        (Surface::Spot, Side::Sell) => instrument.base,
        _ => instrument.quote,
    }
}
