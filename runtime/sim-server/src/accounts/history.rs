//! The past of an account for the history routes: trades, income and margin movements. Each list is
//! bounded, and the oldest entries are dropped first.

use std::collections::{BTreeMap, VecDeque};

use windvane_model::protocol::{Fill, OrderUpdate};
use windvane_model::{
    Amount, AssetId, InstrumentId, PositionSide, Side, Surface, Time, VenueOrderId,
};

/// Maximum number of entries per list.
const ENTRIES_MAX: usize = 20_000;

/// One fill (docs/interface/account.md#spot-trades, docs/interface/account.md#futures-trades).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TradeRecord {
    pub(crate) surface: Surface,
    pub(crate) instrument: InstrumentId,
    pub(crate) order_id: VenueOrderId,
    pub(crate) side: Side,
    pub(crate) position_side: PositionSide,
    pub(crate) fill: Fill,
    pub(crate) time: Time,
}

/// One entry of GET income (docs/interface/account.md#income).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Income {
    pub(crate) instrument: Option<InstrumentId>,
    pub(crate) kind: &'static str,
    pub(crate) amount: Amount,
    pub(crate) asset: AssetId,
    pub(crate) info: String,
    pub(crate) time: Time,
    pub(crate) tran_id: i64,
    pub(crate) trade_id: Option<i64>,
}

/// One entry of GET positionMargin/history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarginChange {
    pub(crate) instrument: InstrumentId,
    pub(crate) position_side: PositionSide,
    pub(crate) amount: Amount,
    pub(crate) asset: AssetId,
    /// 1 add, 2 reduce.
    pub(crate) kind: i64,
    pub(crate) time: Time,
}

/// The lists, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) trades: VecDeque<TradeRecord>,
    pub(crate) income: VecDeque<Income>,
    pub(crate) margin: VecDeque<MarginChange>,
    /// Time of the last change of a surface's balances or positions.
    changed: [Option<Time>; 2],
    /// Time of the last change of an asset's balance.
    assets: BTreeMap<(Surface, AssetId), Time>,
    tran_id: i64,
}

impl History {
    /// Records the fill of an order update, and on futures its income. The profit is in the quote
    /// asset, and the commission in its own asset.
    pub(crate) fn keep_fill(&mut self, surface: Surface, update: &OrderUpdate, quote: AssetId) {
        let Some(fill) = update.fill else { return };
        let time = update.transaction_time;
        push(
            &mut self.trades,
            TradeRecord {
                surface,
                instrument: update.instrument,
                order_id: update.order_id,
                side: update.side,
                position_side: update.position_side,
                fill,
                time,
            },
        );
        let parts = [
            ("REALIZED_PNL", fill.realized_pnl.unwrap_or_default(), quote),
            ("COMMISSION", -fill.fee, fill.fee_asset),
        ];
        for (kind, amount, asset) in parts {
            if surface == Surface::Futures && amount != Amount::ZERO {
                let trade_id = fill.trade_id.0;
                self.keep_income(Income {
                    instrument: Some(update.instrument),
                    kind,
                    amount,
                    asset,
                    info: trade_id.to_string(),
                    time,
                    tran_id: 0,
                    trade_id: Some(trade_id),
                });
            }
        }
    }

    /// Records the time of a change of balances or positions.
    pub(crate) fn note_change(
        &mut self,
        surface: Surface,
        assets: impl Iterator<Item = AssetId>,
        time: Time,
    ) {
        self.changed[surface as usize] = Some(time);
        self.assets
            .extend(assets.map(|asset| ((surface, asset), time)));
    }

    /// `updateTime` of an account in milliseconds; 0 if nothing has changed yet.
    pub(crate) fn changed_ms(&self, surface: Surface) -> i64 {
        self.changed[surface as usize].map_or(0, Time::millis)
    }

    /// `updateTime` of one balance in milliseconds; 0 if it has not changed yet.
    pub(crate) fn asset_changed_ms(&self, surface: Surface, asset: AssetId) -> i64 {
        let time = self.assets.get(&(surface, asset));
        time.map_or(0, |time| time.millis())
    }

    /// Records an income under an id of its own.
    pub(crate) fn keep_income(&mut self, mut income: Income) {
        self.tran_id += 1;
        income.tran_id = self.tran_id;
        push(&mut self.income, income);
    }

    /// Records a change of an isolated margin.
    pub(crate) fn keep_margin(&mut self, change: MarginChange) {
        push(&mut self.margin, change);
    }
}

fn push<T>(list: &mut VecDeque<T>, entry: T) {
    if list.len() >= ENTRIES_MAX {
        list.pop_front();
    }
    list.push_back(entry);
}
