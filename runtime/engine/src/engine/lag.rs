//! What may be older than what is known: sources that lag behind the order book (the info
//! endpoint), and account events that arrive out of order. What they say may be what the account
//! was a moment ago, which is evidence of nothing newer and of nothing wrong.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::ids::{AssetId, InstrumentId, Time};
use crate::order::{PositionSide, Surface};
use crate::protocol::AccountUpdate;
use crate::truth::AccountTruth;

use super::Engine;

/// A source that is further behind than this is not believed to be late, but right.
const LAG_MS: i64 = 30_000;
/// So many moments are remembered at most; those of a busier account are nearer to each other.
const MOMENTS: usize = 512;

/// What an account was before each of the last user events.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Past {
    /// A reading of this surface came from a source that lags.
    lags: bool,
    moments: VecDeque<Moment>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Moment {
    until: Time,
    balances: Vec<(AssetId, Amount)>,
    /// Those that are not flat.
    positions: Vec<(InstrumentId, PositionSide, i64)>,
}

/// `E` of the newest account event of each balance and position: events may arrive out of order
/// (spec 2, Events), and an older one says nothing of what a newer one told.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Newest {
    balances: BTreeMap<AssetId, Time>,
    positions: BTreeMap<(InstrumentId, PositionSide), Time>,
}

impl Newest {
    /// Leaves of an event what no newer one told, and remembers when that was.
    pub(super) fn filter(&mut self, update: &mut AccountUpdate) {
        let at = update.event_time;
        (update.balances).retain(|told| is_newest(&mut self.balances, told.asset, at));
        (update.positions).retain(|told| {
            let key = (told.instrument, told.position_side);
            is_newest(&mut self.positions, key, at)
        });
    }
}

fn is_newest<K: Ord>(known: &mut BTreeMap<K, Time>, key: K, at: Time) -> bool {
    let newest = known.entry(key).or_insert(at);
    *newest = at.max(*newest);
    *newest == at
}

impl Moment {
    /// Whether a reading says this: of what it does not list, it says nothing.
    fn is(&self, account: &AccountTruth) -> bool {
        let balances = account.balances.iter().all(|told| {
            let mut known = self.balances.iter();
            let known = known.find(|(asset, _)| *asset == told.asset);
            known.is_some_and(|(_, total)| *total == told.total)
        });
        let positions = account.positions.iter().all(|told| {
            let mut known = self.positions.iter();
            let known =
                known.find(|(id, side, _)| (*id, *side) == (told.instrument, told.position_side));
            known.map_or(0, |(_, _, qty)| *qty) == told.qty.0
        });
        balances && positions
    }
}

impl Engine {
    /// Keeps what the account is before an event changes it.
    pub(super) fn remember_account(&mut self, surface: Surface) {
        let now = self.now;
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        if !line.is_some_and(|line| line.past.lags) {
            return;
        }
        let moment = self.moment(surface);
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let moments = &mut line.past.moments;
        moments.push_back(moment);
        while moments.len() > MOMENTS
            || (moments.front()).is_some_and(|first| now > first.until.plus_ms(LAG_MS))
        {
            moments.pop_front();
        }
    }

    fn moment(&self, surface: Surface) -> Moment {
        let mut positions = Vec::new();
        for index in 0..self.instruments.len() {
            let id = InstrumentId(index as u16);
            for side in PositionSide::ALL.iter().copied() {
                let qty = self.ledgers.account.at(id, side).position.qty;
                if qty != 0 && self.surface_of(id) == surface {
                    positions.push((id, side, qty));
                }
            }
        }
        let balances = self.balances.iter();
        Moment {
            until: self.now,
            balances: balances
                .filter(|((of, _), _)| *of == surface)
                .map(|((_, asset), balance)| (*asset, balance.total))
                .collect(),
            positions,
        }
    }

    /// Whether a reading that lags is what the account was within the last moments.
    pub(super) fn is_of_the_past(&mut self, surface: Surface, account: &AccountTruth) -> bool {
        let now = self.now;
        let Some(line) = self.line_mut(surface).filter(|_| account.lags) else {
            return false;
        };
        line.past.lags = true;
        let mut moments = line.past.moments.iter();
        moments.any(|moment| now <= moment.until.plus_ms(LAG_MS) && moment.is(account))
    }
}
