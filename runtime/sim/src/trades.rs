//! The account's own trades.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::state_report::{AccountTrade, StateReport};
use windvane_model::{InstrumentId, TradeId};

/// Maximum trades of one reply (`limit` at most 1000: docs/interface/limits.md#other-bounds).
const PAGE: usize = 1_000;
/// The number of trades that are kept of an instrument; the oldest are removed first.
const KEPT: usize = 10_000;

/// Own trades by instrument, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Trades(Vec<VecDeque<AccountTrade>>);

impl Trades {
    pub(crate) fn new(instruments: usize) -> Self {
        Self(vec![VecDeque::new(); instruments])
    }

    /// Keeps the fill of an update.
    pub(crate) fn keep(&mut self, update: &OrderUpdate, fill: &Fill) {
        let trades = &mut self.0[usize::from(update.instrument.0)];
        if trades.len() == KEPT {
            trades.pop_front();
        }
        trades.push_back(AccountTrade {
            order_id: update.order_id,
            side: update.side,
            position_side: update.position_side,
            fill: *fill,
            time: update.transaction_time,
        });
    }

    /// These trades with the instruments' new ids.
    pub(crate) fn renamed(
        self,
        instruments: usize,
        place: &impl Fn(InstrumentId) -> Option<InstrumentId>,
    ) -> Self {
        let mut renamed = Self::new(instruments);
        for (old, trades) in self.0.into_iter().enumerate() {
            if let Some(new) = place(InstrumentId(old as u16)) {
                renamed.0[usize::from(new.0)] = trades;
            }
        }
        renamed
    }

    /// The trades from an id on, or the latest ones.
    pub(crate) fn page(
        &self,
        instrument: InstrumentId,
        from: Option<TradeId>,
    ) -> Option<StateReport> {
        let all = self.0.get(usize::from(instrument.0))?;
        let start = match from {
            Some(id) => all.partition_point(|trade| trade.fill.trade_id < id),
            None => all.len().saturating_sub(PAGE),
        };
        let trades: Vec<_> = all.range(start..).take(PAGE).copied().collect();
        Some(StateReport::Trades {
            more: trades.len() == PAGE,
            trades,
        })
    }
}
