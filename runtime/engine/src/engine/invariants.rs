//! Rules of the engine's own books, checked in every build. A broken rule is a bug of this program,
//! and its amounts can no longer be trusted. So the run halts and reports the broken rule.
//!
//! After a fill, the engine checks the holding that changed. A live run checks everything once a
//! second, and when the operator resumes. The checks are part of the engine, so that a replay finds
//! a broken rule at the same record.

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::Notice;
use windvane_model::holding::Ledgers;
use windvane_model::ids::{InstrumentId, StrategyId};
use windvane_model::instrument::Instrument;
use windvane_model::invariant::BrokenInvariant;
use windvane_model::order::PositionSide;

use super::Engine;

impl Engine {
    /// Checks the holding that a fill changed.
    pub(super) fn check_holding(&mut self, id: InstrumentId, side: PositionSide) {
        let broken = broken_holding(&self.ledgers, &self.instruments, id, side);
        self.take_broken(broken);
    }

    /// Checks all books.
    pub(super) fn check_books(&mut self) {
        let broken = self.first_broken();
        self.take_broken(broken);
    }

    /// The first broken rule of the books.
    pub fn first_broken(&self) -> Option<BrokenInvariant> {
        let holdings = self.ledgers.account.iter();
        let of_ledgers = holdings
            .map(|(id, side, _)| (id, side))
            .find_map(|(id, side)| broken_holding(&self.ledgers, &self.instruments, id, side));
        of_ledgers
            .or_else(|| self.broken_open_quantity())
            .or_else(|| self.broken_open_orders())
    }

    fn broken_open_quantity(&self) -> Option<BrokenInvariant> {
        self.ledgers.account.iter().find_map(|(id, side, holding)| {
            let (mut buy, mut sell) = (0_i64, 0_i64);
            for order in self.orders.iter() {
                if (order.terms.instrument, order.terms.position_side) == (id, side) {
                    match order.terms.side {
                        windvane_model::order::Side::Buy => buy += order.reserved_qty,
                        windvane_model::order::Side::Sell => sell += order.reserved_qty,
                    }
                }
            }
            let agree = (buy, sell) == (holding.open_buy, holding.open_sell);
            (!agree).then_some(BrokenInvariant::OpenQuantity(id, side))
        })
    }

    fn broken_open_orders(&self) -> Option<BrokenInvariant> {
        let mut strategies = self.strategies.iter().enumerate();
        strategies.find_map(|(index, state)| {
            let strategy = StrategyId(index as u16);
            let live = self.orders.iter().filter(|one| one.strategy == strategy);
            let agree = live.count() == state.open_orders as usize;
            (!agree).then_some(BrokenInvariant::OpenOrders(strategy))
        })
    }

    /// Halts the run for a broken rule, once. Until the operator resumes, further broken rules are
    /// not reported.
    fn take_broken(&mut self, broken: Option<BrokenInvariant>) {
        let Some(broken) = broken else { return };
        let is_known = match &self.live {
            Some(_) => self
                .degraded_reasons()
                .contains(&DegradedReason::BrokenInvariant),
            None => self.halted(),
        };
        if is_known {
            return;
        }
        self.set_degraded(DegradedReason::BrokenInvariant, true);
        self.notices.push_back(Notice::InvariantBroken {
            time: self.now,
            broken,
        });
        self.halt();
    }
}

fn broken_holding(
    ledgers: &Ledgers,
    instruments: &[Instrument],
    id: InstrumentId,
    side: PositionSide,
) -> Option<BrokenInvariant> {
    if !ledgers.agree_at(instruments, id, side) {
        return Some(BrokenInvariant::Ledgers(id, side));
    }
    let account = &ledgers.account.at(id, side).position;
    let has_cost = account.is_flat() && account.cost != windvane_model::decimal::Amount::ZERO;
    has_cost.then_some(BrokenInvariant::FlatCost(id, side))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use windvane_model::decimal::Amount;
    use windvane_model::effect::Effect;
    use windvane_model::input::{Command, Input};
    use windvane_model::protocol::Request;
    use windvane_model::run_state::KillSwitch;

    use super::*;

    const BTC: InstrumentId = InstrumentId(0);

    /// A run with positions of two strategies and resting orders.
    fn lived() -> Engine {
        let snapshot = include_bytes!("../../tests/snapshots/version-17.bin");
        Engine::restore(snapshot).unwrap()
    }

    fn broken(engine: &mut Engine) -> Vec<BrokenInvariant> {
        let notices = std::iter::from_fn(|| engine.poll_notice());
        let broken = notices.filter_map(|notice| match notice {
            Notice::InvariantBroken { broken, .. } => Some(broken),
            _ => None,
        });
        broken.collect()
    }

    fn cancels(engine: &mut Engine) -> usize {
        let effects = std::iter::from_fn(|| engine.poll_effect());
        let is_cancel = |effect: &Effect| match effect {
            Effect::Send { request, .. } => {
                matches!(
                    **request,
                    Request::Cancel { .. } | Request::CancelBatch { .. }
                )
            }
            _ => false,
        };
        effects.filter(is_cancel).count()
    }

    #[test]
    fn books_that_agree_change_nothing() {
        let mut engine = lived();
        assert_eq!(engine.first_broken(), None);
        engine.check_books();
        assert_eq!(broken(&mut engine), []);
        assert_eq!(engine.kill_switch(), KillSwitch::Clear);
    }

    #[test]
    fn each_rule_of_the_books_is_checked() {
        let at = |engine: &mut Engine, change: fn(&mut windvane_model::holding::Holding)| {
            let own = engine.ledgers.strategies[0].at_mut(BTC, PositionSide::Both);
            change(own);
            engine.first_broken()
        };
        let sums = Some(BrokenInvariant::Ledgers(BTC, PositionSide::Both));
        assert_eq!(at(&mut lived(), |own| own.position.fees += Amount(1)), sums);
        assert_eq!(at(&mut lived(), |own| own.position.qty += 1), sums);
        assert_eq!(at(&mut lived(), |own| own.open_buy += 1), sums);
        let mut engine = lived();
        engine.strategies[0].open_orders += 1;
        let count = Some(BrokenInvariant::OpenOrders(StrategyId(0)));
        assert_eq!(engine.first_broken(), count);
        let mut engine = lived();
        for ledger in [&mut engine.ledgers.account, &mut engine.ledgers.external] {
            ledger.at_mut(BTC, PositionSide::Both).open_buy += 1;
        }
        let open = Some(BrokenInvariant::OpenQuantity(BTC, PositionSide::Both));
        assert_eq!(engine.first_broken(), open);
    }

    #[test]
    fn a_broken_rule_halts_cancels_and_is_reported_once() {
        let mut engine = lived();
        let own = engine.ledgers.strategies[0].at_mut(BTC, PositionSide::Both);
        own.position.fees += Amount(1);
        engine.check_books();
        assert_eq!(engine.kill_switch(), KillSwitch::Halted);
        assert!(
            engine
                .degraded_reasons()
                .contains(&DegradedReason::BrokenInvariant)
        );
        assert!(cancels(&mut engine) > 0, "own orders are cancelled");
        let expected = [BrokenInvariant::Ledgers(BTC, PositionSide::Both)];
        assert_eq!(broken(&mut engine), expected);
        engine.check_books();
        assert_eq!(broken(&mut engine), [], "it is reported once");
        // `resume` checks the books again.
        let now = engine.now().plus_ms(1);
        engine.handle(now, Input::Command(Command::Resume));
        assert_eq!(engine.kill_switch(), KillSwitch::Halted);
        assert_eq!(broken(&mut engine), expected);
    }

    #[test]
    fn a_report_is_a_snapshot_and_changes_nothing() {
        let mut engine = lived();
        let report = engine.report();
        assert_eq!(
            Engine::restore(&report).unwrap().snapshot(),
            engine.snapshot()
        );
    }
}
