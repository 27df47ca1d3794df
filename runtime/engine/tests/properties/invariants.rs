//! Invariants that are checked after every step.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use windvane_model::order_state::{OrderMove, OrderState};
use windvane_model::{
    InstrumentId, Notice, OrderSeq, OrderStatus, PositionSide, Side, StrategyId, Surface,
};

use super::steps::{FUTURES, SPOT, step, step_with_faults};
use super::support::{MM, OTHER, USDT};
use super::world::{BASE, World, config};

/// The observations of orders so far.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    live: BTreeMap<OrderSeq, OrderState>,
    ended: BTreeSet<OrderSeq>,
    fills: BTreeSet<(InstrumentId, i64)>,
}

/// Whether one or two moves of the table lead from one state to another. There can be two because a
/// fill may also make the engine cancel.
fn reachable(from: OrderState, to: OrderState) -> bool {
    let step = |state: OrderState| {
        let refused = (state == OrderState::CancelRequested).then_some(OrderState::PartiallyFilled);
        OrderMove::ALL
            .into_iter()
            .filter_map(move |mv| state.after(mv))
            .chain(refused)
    };
    from == to || step(from).any(|between| between == to || step(between).any(|end| end == to))
}

impl World {
    pub(crate) fn check(&mut self) {
        self.check_open_quantities();
        self.check_positions();
        self.check_money();
        self.check_orders();
        self.check_notices();
    }

    fn check_open_quantities(&self) {
        let engine = &self.account.engine;
        for instrument in [FUTURES, SPOT] {
            let open = |strategy: Option<StrategyId>, side| {
                let orders = engine.orders().iter().filter(|order| {
                    order.instrument() == instrument
                        && order.terms.side == side
                        && strategy.is_none_or(|strategy| order.strategy == strategy)
                });
                orders
                    .map(|order| {
                        assert!(order.reserved_qty >= 0, "{order:?}");
                        order.reserved_qty
                    })
                    .sum::<i64>()
            };
            let side = PositionSide::Both;
            let account = engine.ledgers().account.at(instrument, side);
            assert_eq!(account.open_buy, open(None, Side::Buy));
            assert_eq!(account.open_sell, open(None, Side::Sell));
            for strategy in [MM, OTHER] {
                let own = &engine.ledgers().strategies[usize::from(strategy.0)];
                let own = own.at(instrument, side);
                assert_eq!(own.open_buy, open(Some(strategy), Side::Buy));
                assert_eq!(own.open_sell, open(Some(strategy), Side::Sell));
            }
        }
    }

    fn check_positions(&self) {
        let engine = &self.account.engine;
        let ledgers = engine.ledgers();
        assert_eq!(ledgers.first_difference(engine.instruments()), None);
        for instrument in [FUTURES, SPOT] {
            let model = self
                .model
                .account
                .get(&instrument)
                .copied()
                .unwrap_or_default();
            let account = &ledgers.account.at(instrument, PositionSide::Both).position;
            assert_eq!(i128::from(account.qty), model.qty);
            assert_eq!(account.cost.0, model.cost);
            assert_eq!(account.realized_pnl.0, model.realized);
            for strategy in [MM, OTHER] {
                let key = (strategy, instrument);
                let model = self.model.own.get(&key).copied().unwrap_or_default();
                let own = &ledgers.strategies[usize::from(strategy.0)];
                let own = &own.at(instrument, PositionSide::Both).position;
                assert_eq!(i128::from(own.qty), model.qty);
                assert_eq!(own.cost.0, model.cost);
                assert_eq!(own.realized_pnl.0, model.realized);
            }
        }
    }

    fn check_money(&self) {
        let engine = &self.account.engine;
        let total = |surface, asset| engine.balance(surface, asset).total.0;
        assert_eq!(total(Surface::Futures, USDT), self.model.futures_quote);
        assert_eq!(total(Surface::Spot, USDT), self.model.spot_quote);
        assert_eq!(total(Surface::Spot, BASE), self.model.spot_base);
        let totals = engine.totals().unwrap();
        assert_eq!(totals.realized_pnl.0, self.model.realized());
        assert_eq!(totals.fees.0, self.model.fees);
        assert_eq!(totals.funding.0, self.model.funding);
        let start = engine.start_equity().unwrap();
        let explained =
            start + totals.realized_pnl + totals.unrealized_pnl - totals.fees + totals.funding;
        assert_eq!(
            totals.equity.0,
            explained.0 + self.model.transfers,
            "equity must be start, profit, fees, funding and transfers: {totals:?}"
        );
    }

    fn check_orders(&mut self) {
        let engine = &self.account.engine;
        for order in engine.orders().iter() {
            assert!(
                !self.watch.ended.contains(&order.seq),
                "order {} is live again",
                order.seq.0
            );
            let executed = self.model.executed.get(order.client_order_id.as_str());
            assert_eq!(order.executed_qty, executed.copied().unwrap_or(0));
            assert!(order.executed_qty <= order.reported_qty, "{order:?}");
            if let Some(before) = self.watch.live.insert(order.seq, order.state) {
                assert!(
                    reachable(before, order.state),
                    "{before:?} to {:?}",
                    order.state
                );
            }
            let placed = self
                .orders
                .iter()
                .find(|placed| placed.seq == order.seq)
                .unwrap();
            assert_eq!(
                (placed.id, placed.strategy),
                (order.client_order_id, order.strategy)
            );
            assert!(
                order.reported_qty <= placed.executed,
                "not more than the venue executed"
            );
        }
    }

    fn check_notices(&mut self) {
        for notice in std::mem::take(&mut self.account.notices) {
            match notice {
                Notice::Filled { order, fill, .. } => {
                    let key = (order.instrument(), fill.trade_id.0);
                    assert!(
                        self.watch.fills.insert(key),
                        "trade {} twice",
                        fill.trade_id.0
                    );
                }
                Notice::Ended { order, .. } => {
                    assert!(order.state.is_final());
                    assert!(
                        self.watch.ended.insert(order.seq),
                        "order {} ended twice",
                        order.seq.0
                    );
                    assert!(self.account.engine.order(order.seq).is_none());
                }
                _ => {}
            }
        }
    }

    /// At the end the venue sends everything once more. Then the engine has counted every fill, and
    /// has ended every order that ended at the venue.
    fn settle(&mut self) {
        self.say_all_again();
        self.check();
        for placed in &self.orders {
            let executed = self.model.executed.get(placed.id.as_str()).copied();
            assert_eq!(executed.unwrap_or(0), placed.executed);
            let ended = self.watch.ended.contains(&placed.seq);
            let refused = placed.status == OrderStatus::Rejected;
            assert!(refused || ended == placed.status.is_final(), "{placed:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn ledgers_balance_for_any_venue_messages(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new(config());
        world.check();
        for step in &steps {
            world.step(step);
            world.check();
        }
        world.settle();
    }

    #[test]
    fn ledgers_balance_with_faults_and_commands(
        steps in prop::collection::vec(step_with_faults(), 1..120),
    ) {
        let mut world = World::new(config());
        for step in &steps {
            world.step(step);
            world.check();
        }
        world.settle();
    }
}
