//! Replies to queries about the account ([`Subject`]): open orders, balances and positions, account
//! trades. They are copied from the venue's own state; nothing here changes it.
//!
//! Every list is complete, including zeros. So a caller can rely on the absence of an order and on
//! a zero.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::protocol::{Fill, OrderUpdate, Outcome, Reply};
use windvane_model::state_report::{
    AccountSnapshot, AccountTrade, ListedRules, OpenOrder, StateReport, Subject, TradedOrder,
};
use windvane_model::{InstrumentId, Surface, TradeId, VenueOrderId};

use crate::code::Code;
use crate::venue::{Venue, refused};

/// Maximum trades of one reply (`limit` at most 1000: docs/interface/limits.md#other-bounds).
const PAGE: usize = 1_000;
/// Maximum orders in a list of the newest orders.
const ORDERS_PAGE: usize = 100;
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
    fn page(&self, instrument: InstrumentId, from: Option<TradeId>) -> Option<StateReport> {
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

impl Venue {
    pub(crate) fn read(&mut self, subject: Subject) {
        let outcome = match subject {
            Subject::OpenOrders { surface } => Outcome::Done(self.every_open_order(surface)),
            Subject::Account { surface } => {
                Outcome::Done(StateReport::Account(self.whole(surface)))
            }
            Subject::Trades { instrument, from } => match self.trades.page(instrument, from) {
                Some(state_report) => Outcome::Done(state_report),
                None => refused(Code::BadSymbol),
            },
            Subject::Rules { surface } => Outcome::Done(self.rules(surface)),
            // On paper, no balance changes without an event.
            Subject::Income { .. } => Outcome::Done(StateReport::Income {
                entries: Vec::new(),
                more: false,
            }),
            Subject::ForcedOrders { instrument } => Outcome::Done(self.forced_orders(instrument)),
            Subject::OutsideOrder {
                instrument,
                order_id,
            } => self.order_by_id(instrument, order_id),
            Subject::TradedOrder {
                instrument,
                order_id,
            } => self.traded_order(instrument, order_id),
            Subject::NewestOrders { instrument } => Outcome::Done(self.newest_orders(instrument)),
            // Commissions are taken only in the quote asset, so no other price is needed.
            Subject::AssetPrice { .. } => refused(Code::BadSymbol),
        };
        self.reply(Reply::Read { subject, outcome });
    }

    fn rules(&self, surface: Surface) -> StateReport {
        let markets = self.markets.iter();
        let listed = markets.filter(|market| market.instrument.surface == surface);
        let listed = listed.map(|market| ListedRules {
            instrument: market.id,
            rules: Ok(market.instrument.clone()),
        });
        StateReport::Rules(listed.collect())
    }

    /// Orders with which the venue closed positions, oldest first.
    fn forced_orders(&self, instrument: InstrumentId) -> StateReport {
        let orders = self.orders.all().map(|(_, order)| order);
        let orders =
            orders.filter(|order| order.terms.instrument == instrument && order.is_liquidation());
        let mut forced: Vec<_> = orders
            .map(|order| OpenOrder {
                report: order.report(),
                terms: order.terms,
            })
            .collect();
        forced.sort_unstable_by_key(|order| order.report.order_id);
        StateReport::ForcedOrders(forced)
    }

    fn order_by_id(&self, instrument: InstrumentId, id: VenueOrderId) -> Outcome<StateReport> {
        let mut orders = self.orders.all().map(|(_, order)| order);
        let found = orders.find(|order| {
            let report = order.report();
            (report.instrument, report.order_id) == (instrument, id)
        });
        found.map_or_else(
            || refused(Code::NoSuchOrder),
            |order| {
                let order = OpenOrder {
                    report: order.report(),
                    terms: order.terms,
                };
                Outcome::Done(StateReport::OutsideOrder(Box::new(order)))
            },
        )
    }

    /// The newest orders of an instrument, oldest first.
    fn newest_orders(&self, instrument: InstrumentId) -> StateReport {
        let orders = self.orders.all().map(|(_, order)| order);
        let of_instrument = orders.filter(|order| order.terms.instrument == instrument);
        let mut listed: Vec<_> = of_instrument.collect();
        listed.sort_unstable_by_key(|order| order.id);
        let newest = listed.split_off(listed.len().saturating_sub(ORDERS_PAGE));
        let newest = newest.into_iter().map(|order| TradedOrder {
            client_order_id: order.client_order_id,
            placed: order.created,
        });
        StateReport::NewestOrders(newest.collect())
    }

    fn traded_order(&self, instrument: InstrumentId, id: VenueOrderId) -> Outcome<StateReport> {
        let mut orders = self.orders.all().map(|(_, order)| order);
        let found = orders.find(|order| (order.terms.instrument, order.id) == (instrument, id));
        found.map_or_else(
            || refused(Code::NoSuchOrder),
            |order| {
                Outcome::Done(StateReport::TradedOrder(TradedOrder {
                    client_order_id: order.client_order_id,
                    placed: order.created,
                }))
            },
        )
    }

    fn every_open_order(&self, surface: Surface) -> StateReport {
        let orders = self.open_keys(None).map(|key| self.orders.at(key));
        let orders = orders.filter(|order| order.surface == surface);
        let mut open: Vec<_> = orders
            .map(|order| {
                let mut terms = order.terms;
                terms.time_in_force = Some(order.time_in_force);
                OpenOrder {
                    report: order.report(),
                    terms,
                }
            })
            .collect();
        open.sort_unstable_by_key(|order| order.report.order_id);
        StateReport::OpenOrders(open)
    }

    fn whole(&self, surface: Surface) -> AccountSnapshot {
        let of_futures = |setting| (surface == Surface::Futures).then_some(setting);
        let mut account = AccountSnapshot {
            can_trade: Some(true),
            hedge_mode: of_futures(self.hedge),
            multi_assets: of_futures(self.multi_assets),
            lags: false,
            ..AccountSnapshot::default()
        };
        let assets = self.account.assets();
        account.balances = assets.map(|asset| self.balance(surface, asset)).collect();
        if surface == Surface::Futures {
            for balance in &mut account.balances {
                balance.locked = balance.total - self.available(balance.asset);
            }
            let views = self.position_views();
            let positions = views.map(|view| self.position(view.instrument, view.position_side));
            account.positions = positions.collect();
        }
        account
    }
}
