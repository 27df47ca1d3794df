//! Commissions that the event of a fill leaves out. The interface
//! (docs/interface/user-stream.md#order_trade_update) omits both commission fields without a
//! commission. So either the commission is zero, or the venue states it only in the balance and in
//! its list of the account's trades.
//!
//! - The engine remembers a fill without a commission.
//! - If a balance then differs by at most the possible commissions, the engine reads the account
//!   trades of the fills, at most every `AGAIN_MS`. It books each commission once. Until then the
//!   account's loss limits use the balance of the event, and the run stays ready.
//! - If the trade of a fill is not listed after the longest lag, or the account agrees with the
//!   books after the fill, the fill had no commission.
//!
//! If the venue does not list the account's trades, only the balance shows the commissions. So the
//! engine takes the account event of the fills at once, if its balance is lower by at most the
//! possible commissions. Account snapshots may be behind for as long as fills go on; they correct
//! the balance if no account event came. Each fill gets its share of the change in proportion to
//! its value.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::decimal::{Amount, div_half_even};
use windvane_model::ids::{InstrumentId, StrategyId, Time, TradeId, VenueOrderId};
use windvane_model::names::Names;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::planted;
use windvane_model::state_report::AccountTrade;

use crate::lag::READ_LAG_MS;

/// Events of this surface may leave out commissions.
pub const SURFACE: Surface = Surface::Futures;

/// Pause between two reads of the list of the account's trades: one read returns the commissions of
/// all fills in between.
pub(crate) const AGAIN_MS: i64 = 3_000;

/// The largest commission of a fill while no rate is known, in ppm: 1 percent. The documents name
/// no bound.
pub(crate) const FEE_MAX_PPM: i64 = 10_000;

/// At most this many fills are remembered.
const WAITING_MAX: usize = 1_000;

/// Fills whose commission is not known.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LateFees {
    pub(crate) waiting: VecDeque<LateFee>,
    /// A balance differs, so the engine must read the list of the account's trades.
    wanted: bool,
    /// When the list of the account's trades was last requested for commissions.
    asked: Option<Time>,
    /// The highest commission that listed trades stated for such fills, in ppm of the fill.
    pub(crate) highest_ppm: Option<i64>,
}

/// The fills that an account snapshot contains.
#[derive(Clone, Copy, Debug)]
pub enum Contained {
    /// Every booked fill.
    All,
    /// The fills that the venue made up to this time.
    UpTo(Time),
}

impl Contained {
    /// Whether the snapshot contains a fill of this time. A fill of unknown time may be newer.
    pub fn has(self, made: Time) -> bool {
        match self {
            Self::All => true,
            Self::UpTo(taken) => made != Time::default() && made <= taken,
        }
    }
}

/// A fill whose commission is not known.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LateFee {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Position side.
    pub side: PositionSide,
    /// The owning strategy; `None` for a fill of an outside party.
    pub owner: Option<StrategyId>,
    /// The order at the venue.
    pub order_id: VenueOrderId,
    /// The trade.
    pub trade_id: TradeId,
    /// The quote amount of the fill.
    pub value: Amount,
    /// The venue's time of the fill.
    pub made: Time,
    /// When it was booked.
    pub booked: Time,
    /// An account snapshot that contains the fill was accepted: its balance includes the
    /// commission.
    pub in_snapshot: bool,
}

impl LateFee {
    /// Whether a list requested at this time contains the trade.
    pub fn is_listed_by(&self, asked: Time) -> bool {
        asked >= self.booked.plus_ms(READ_LAG_MS)
    }

    /// The identity of the fill.
    pub const fn key(&self) -> (InstrumentId, VenueOrderId, TradeId) {
        (self.instrument, self.order_id, self.trade_id)
    }

    /// This fill with the instrument and strategy ids of another configuration; `None` if that has
    /// no such instrument.
    pub fn renamed(&self, names: &Names) -> Option<Self> {
        let instrument = *names.instruments.get(&self.instrument)?;
        let owner = self.owner;
        let owner = owner.and_then(|owner| names.strategies.get(&owner).copied());
        Some(Self {
            instrument,
            owner,
            ..*self
        })
    }

    /// Notes that an account snapshot which contains these fills was accepted.
    pub fn note_snapshot(&mut self, contained: Contained) {
        self.in_snapshot |= contained.has(self.made);
    }

    /// The order id is compared too, because two own orders that traded with each other share a
    /// trade id.
    pub(crate) fn is_same_fill(&self, other: &Self) -> bool {
        let id = |late: &Self| (late.instrument, late.trade_id, late.order_id);
        id(self) == id(other)
    }
}

impl LateFees {
    /// Remembers a fill that was booked without a commission.
    pub fn wait_for(&mut self, late: LateFee) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(late);
    }

    /// Notes that the engine must read the list of the account's trades, because a balance differs
    /// by at most the possible commissions.
    pub const fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether the engine must read the list of the account's trades for commissions, and may do so
    /// now.
    pub fn is_due(&self, now: Time) -> bool {
        let is_due = |asked: Time| now >= asked.plus_ms(AGAIN_MS);
        self.wanted && self.asked.is_none_or(is_due)
    }

    /// Notes that the engine requests the list of the account's trades for commissions.
    pub const fn note_asked(&mut self, now: Time) {
        self.asked = Some(now);
    }

    /// When the list of the account's trades was last requested for commissions.
    pub fn asked(&self) -> Time {
        self.asked.unwrap_or_default()
    }

    /// Sets whether the engine must read the list of the account's trades once more.
    pub const fn set_wanted(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// Keeps only the fills whose trades the venue may still list.
    pub fn retain(&mut self, may_come: impl Fn(&LateFee) -> bool) {
        self.waiting.retain(may_come);
    }

    /// Takes the fill of a listed trade. A commission of zero sets the rate.
    pub fn take(&mut self, instrument: InstrumentId, trade: &AccountTrade) -> Option<LateFee> {
        let is_same = |late: &LateFee| {
            late.instrument == instrument
                && (late.trade_id, late.order_id) == (trade.fill.trade_id, trade.order_id)
        };
        let place = self.waiting.iter().position(is_same)?;
        let late = if planted!(LateFeeTwice) {
            self.waiting.get(place).copied()
        } else {
            self.waiting.remove(place)
        };
        if trade.fill.fee == Amount::ZERO {
            self.note_rate(Amount::ZERO, trade.fill.quote_qty);
            return None;
        }
        late
    }

    /// Notes the rate of a commission that a trade stated: its cost and the value of its fill.
    pub fn note_rate(&mut self, cost: Amount, value: Amount) {
        let parts = cost.abs().0.saturating_mul(1_000_000);
        let ppm = parts.checked_div(value.abs().0).unwrap_or_default();
        let ppm = i64::try_from(ppm).unwrap_or(FEE_MAX_PPM).min(FEE_MAX_PPM);
        // Rounded up, so that any commission counts as at least one ppm.
        let ppm = ppm + i64::from(cost != Amount::ZERO);
        self.highest_ppm = self.highest_ppm.max(Some(ppm));
    }

    /// Forgets older fills after a snapshot requested at this time agreed with the books: they had
    /// no commission.
    pub fn forget_free(&mut self, asked: Time) {
        self.waiting
            .retain(|late| late.in_snapshot || !late.is_listed_by(asked));
        self.wanted &= !self.waiting.is_empty();
    }

    /// Takes all fills.
    pub fn take_all(&mut self) -> Vec<LateFee> {
        Vec::from(std::mem::take(&mut self.waiting))
    }

    /// Replaces the fills by those that are still without a commission.
    pub fn keep(&mut self, waiting: VecDeque<LateFee>) {
        self.waiting = waiting;
    }

    /// Notes that an account snapshot which contains these fills was accepted.
    pub fn note_snapshot(&mut self, contained: Contained) {
        for late in &mut self.waiting {
            late.note_snapshot(contained);
        }
        self.wanted = !self.waiting.is_empty();
    }

    /// Takes over the fills that an earlier process waited for.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for late in &old.waiting {
            self.waiting.extend(late.renamed(names));
        }
        self.wanted = !self.waiting.is_empty();
        self.highest_ppm = old.highest_ppm;
    }
}

/// Shares an amount among fills in proportion to their value. The shares sum to the amount.
pub fn shares_by_value(values: &[Amount], amount: Amount) -> Vec<Amount> {
    let mut value: Amount = values.iter().map(|value| value.abs()).sum();
    let mut left = amount;
    let share = |own: &Amount| {
        let own = own.abs();
        let share = if value == Amount::ZERO {
            Amount::ZERO
        } else {
            Amount(div_half_even(left.0.saturating_mul(own.0), value.0))
        };
        (value, left) = (value - own, left - share);
        share
    };
    values.iter().map(share).collect()
}
