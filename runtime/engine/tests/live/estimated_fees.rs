//! Responses report fills, the user stream is seconds late, and its events lack commissions. Own
//! fills are booked with an estimate, and the balances of account events differ by that estimate.

use std::collections::VecDeque;

use windvane_model::degraded_reason::DegradedReason;
use windvane_model::run_state::RunState;
use windvane_model::{
    Amount, AssetId, Input, OrderStatus, Outcome, Qty, Side, StrategyId, Time, UserEvent,
    VenueOrderId,
};

use super::changes_without_event::usdt;
use super::stated_fees::{Exchange, TOKEN};
use super::support::{MM, OTHER, USDT, market, report};

/// Time between two orders of a strategy.
const PAUSE_MS: i64 = 700;
const STEP_MS: i64 = 100;

/// An exchange whose user stream is later than its responses.
struct LateStream {
    exchange: Exchange,
    stream_ms: i64,
    account_first: bool,
    events: VecDeque<(Time, UserEvent)>,
    /// How often a check of the run, ten times a second, found it degraded, and how often not.
    degraded: usize,
    ready: usize,
}

impl LateStream {
    fn new(fee_asset: AssetId, stream_ms: i64, trades_lag_ms: Option<i64>) -> Self {
        Self {
            exchange: Exchange::with(fee_asset, trades_lag_ms, 5_000),
            stream_ms,
            account_first: false,
            events: VecDeque::new(),
            degraded: 0,
            ready: 0,
        }
    }

    /// A market order that fills at once, as its response reports. The profit is in tenths of the
    /// price.
    fn trade(&mut self, strategy: StrategyId, side: Side, realized: i64) {
        let exchange = &mut self.exchange;
        let order = exchange.account.submit(strategy, market(side, 10_000));
        exchange.account.confirm_countdowns();
        let id = exchange.account.id(strategy, order);
        let at = exchange.account.now;
        let event = exchange.execute(id, side, realized, at);
        let reported = exchange.account_event(at);
        let mut filled = report(id, OrderStatus::Filled, 10_000);
        filled.orig_qty = Qty(10_000);
        filled.order_id = VenueOrderId(exchange.trades.len() as i64);
        filled.cum_quote = event.fill.unwrap().quote_qty;
        filled.update_time = at;
        exchange.account.placed(id, Outcome::Done(filled));
        let mut events = [UserEvent::Order(event), UserEvent::Account(reported)];
        if self.account_first {
            events.reverse();
        }
        let due = at.plus_ms(self.stream_ms);
        self.events.extend(events.map(|event| (due, event)));
    }

    fn pass(&mut self, ms: i64) {
        for _ in 0..ms / STEP_MS {
            self.exchange.pass(STEP_MS - 4);
            while let Some((due, event)) = self.events.pop_front() {
                if due > self.exchange.account.now {
                    self.events.push_front((due, event));
                    break;
                }
                self.exchange.account.handle(Input::User(&event));
            }
            self.exchange.answer();
            match self.exchange.state() {
                RunState::Degraded => self.degraded += 1,
                _ => self.ready += 1,
            }
        }
    }

    /// This many round trips of two strategies in turn, each with this profit.
    fn trade_for(&mut self, trips: usize, realized: i64) {
        for trip in 0..trips {
            let strategy = [MM, OTHER][trip % 2];
            for (side, realized) in [(Side::Buy, 0), (Side::Sell, realized)] {
                // A degraded run may only close.
                let is_allowed = match side {
                    Side::Buy => self.exchange.state() == RunState::Ready,
                    Side::Sell => self.exchange.held != 0,
                };
                if is_allowed {
                    self.trade(strategy, side, realized);
                }
                self.pass(PAUSE_MS);
            }
        }
    }
}

#[test]
fn a_commission_not_reported_yet_does_not_degrade_the_run() {
    for fee_asset in [TOKEN, USDT] {
        // A stream that is even later is not used at all.
        for stream_ms in [1_000, 2_500] {
            for account_first in [false, true] {
                for (lag_ms, trades_lag_ms) in [(0, 0), (5_000, 0), (0, 5_000), (5_000, 10_000)] {
                    let mut late = LateStream::new(fee_asset, stream_ms, Some(trades_lag_ms));
                    late.account_first = account_first;
                    late.exchange.lag_ms = lag_ms;
                    late.trade_for(30, -1);
                    late.pass(60_000);
                    let context = format!(
                        "{fee_asset:?} {stream_ms} {account_first} {lag_ms} {trades_lag_ms}"
                    );
                    assert_eq!(late.degraded, 0, "{context}");
                    assert_eq!(late.exchange.trades.len(), 60, "{context}");
                    late.exchange.assert_exact(&context);
                }
            }
        }
    }
}

/// How long the run trades without a degraded reason after a loss of this balance that no event
/// reports.
fn unseen_ms(place: usize, lists_flat: bool, lost: Amount) -> usize {
    let mut late = LateStream::new(TOKEN, 2_500, Some(0));
    late.exchange.lists_flat = lists_flat;
    late.trade_for(10, 0);
    assert_eq!(late.degraded, 0);
    late.exchange.balances[place] += -lost;
    let before = late.ready;
    for _ in 0..20 {
        if late.degraded == 0 {
            late.trade_for(1, 0);
        }
    }
    let reasons = late.exchange.account.engine.degraded_reasons();
    let has_reason = |reason: &DegradedReason| {
        matches!(
            reason,
            DegradedReason::StatedBalance(_) | DegradedReason::Unlisted(_)
        )
    };
    assert!(
        !reasons.is_empty() && reasons.iter().all(has_reason),
        "{reasons:?}"
    );
    let unseen = late.ready - before;
    late.pass(60_000);
    assert_eq!(late.exchange.state(), RunState::Ready);
    assert_eq!(late.exchange.booked(), late.exchange.balances);
    unseen * STEP_MS as usize
}

#[test]
fn a_loss_beyond_the_estimates_degrades_the_run_soon() {
    for (place, lists_flat) in [(0, false), (0, true), (1, false), (1, true)] {
        // The event with the balance arrives later, and a fill may explain the loss for three
        // seconds.
        let unseen = unseen_ms(place, lists_flat, usdt(80));
        assert!(unseen <= 10_000, "{place} {lists_flat}: {unseen}");
    }
}

#[test]
fn a_small_loss_degrades_the_run_once_commissions_are_known() {
    for (place, lists_flat) in [(0, false), (0, true), (1, false), (1, true)] {
        let unseen = unseen_ms(place, lists_flat, usdt(1));
        assert!(unseen <= 26_000, "{place} {lists_flat}: {unseen}");
    }
}
