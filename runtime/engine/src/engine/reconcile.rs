//! Reconciliation: what the venue says when it is asked, against what we know (promise 3).
//!
//! A round asks for open orders, then for account trades where something may have been missed,
//! then for the account. A difference in the account counts after two reads that agree, with no
//! user event from the first question to the last answer: whatever is on its way explains itself.
//! What is left is taken from the venue, as an adjustment with its cause.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::decimal::Amount;
use crate::effect::{Adjustment, Cause, Effect, Notice};
use crate::ids::{InstrumentId, OrderSeq, Time, TradeId};
use crate::order::{OrderStatus, Surface};
use crate::order_state::OrderMove;
use crate::planted;
use crate::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, OrderUpdate, Outcome, PositionUpdate, Request,
};
use crate::timer::Timer;
use crate::truth::{AccountTrade, AccountTruth, OpenOrder, Subject, Truth};

use super::Engine;
use super::session::{Doubt, Line};

/// From the first read to the second, where the source is the order book's own.
const READ_AGAIN_MS: i64 = 250;
/// An entry that differs by less than this part is what the venue rounds.
const ENTRY_PARTS: i128 = 100_000_000;
/// Where the source may lag.
const READ_AGAIN_LAGGING_MS: i64 = 1_000;
/// From a question that failed to the next try, doubled each time up to the second bound.
const RETRY_MS: (i64, i64) = (500, 8_000);
/// So many reads that never agree leave the account unexplained.
const READS_MAX: u32 = 8;
/// A question without an answer for so long is asked again.
const ANSWER_MS: i64 = 30_000;
/// Refusals that say nothing of the route (spec 1, Errors): the server, the time, the keys.
const OF_ANY_ROUTE: [i32; 10] = [
    -1000, -1001, -1002, -1003, -1006, -1007, -1021, -1022, -2014, -2015,
];
/// The fill that an account event is about comes within this, or is looked for.
const FILL_MS: i64 = 1_000;

/// Where a round stands.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Round {
    step: Step,
    /// The question that waits for its answer, since when.
    asked: Option<(Subject, Time)>,
    /// When open orders were asked for; never, where the round is about missing trades alone.
    orders_asked: Option<Time>,
    failures: u32,
    reads: u32,
    /// The differences of the last read, and the count of user events when it was asked for.
    seen: Option<(Vec<Adjustment>, u64)>,
    pub(super) events_when_asked: u64,
    /// Account trades, or open orders where none are told, were read after this difference was
    /// first seen: they do not explain it.
    looked_for: Option<Vec<Adjustment>>,
}

impl Line {
    /// Ends the running round without a result; what it asked may be answered later.
    pub(super) fn give_up_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        self.given_up.extend(round.asked);
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
enum Step {
    #[default]
    Idle,
    Orders,
    Trades(VecDeque<InstrumentId>),
    Account,
}

impl Engine {
    /// Begins a round, or begins the running one anew.
    pub(super) fn begin_round(&mut self, surface: Surface) {
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        line.give_up_round();
        line.round.step = Step::Orders;
        self.ask_next(surface);
    }

    /// The timer of a surface's reconciliation: the next round, or the next try.
    pub(super) fn reconcile(&mut self, surface: Surface) {
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        match line.round.step {
            Step::Idle => self.begin_round(surface),
            _ => self.ask_next(surface),
        }
    }

    /// Asks again what was not answered at all.
    pub(super) fn retry_round(&mut self, surface: Surface) {
        let now = self.now;
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let overdue = |(_, at): &(Subject, Time)| now > at.plus_ms(ANSWER_MS);
        if line.round.asked.as_ref().is_some_and(overdue) {
            line.round.asked = None;
            self.ask_next(surface);
            return;
        }
        let before = line.given_up.len();
        line.given_up.retain(|question| !overdue(question));
        if line.given_up.len() < before {
            self.ask_next(surface);
        }
    }

    fn ask_next(&mut self, surface: Surface) {
        let now = self.now;
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        if line.round.asked.is_some() {
            return;
        }
        if matches!(&line.round.step, Step::Trades(left) if left.is_empty()) {
            line.round.step = Step::Account;
        }
        let subject = match &line.round.step {
            Step::Idle => return,
            Step::Orders => Subject::OpenOrders { surface },
            Step::Account => Subject::Account { surface },
            Step::Trades(left) => {
                let instrument = left.front().copied().unwrap_or_default();
                let verified = self.verified_trades[usize::from(instrument.0)];
                Subject::Trades {
                    instrument,
                    from: verified.map(|id| TradeId(id.0 + 1)),
                }
            }
        };
        if let Some(line) = self.line_mut(surface) {
            // An answer does not say which of two equal questions it is for.
            if line.given_up.iter().any(|(asked, _)| *asked == subject) {
                return;
            }
            if matches!(subject, Subject::OpenOrders { .. }) {
                line.round.orders_asked = Some(now);
            }
            line.round.asked = Some((subject, now));
            line.round.events_when_asked = line.events;
        }
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(Request::Read(subject)),
        });
    }

    pub(super) fn handle_truth(&mut self, subject: &Subject, outcome: &Outcome<Truth>) {
        let surface = match subject {
            Subject::OpenOrders { surface } | Subject::Account { surface } => *surface,
            Subject::Trades { instrument, .. } => match self.instrument(*instrument) {
                Some(instrument) => instrument.surface,
                None => return,
            },
        };
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        // An answer to what an earlier round asked says nothing of this one.
        let of_earlier = line.given_up.iter().position(|(asked, _)| asked == subject);
        if let Some(place) = of_earlier {
            line.given_up.remove(place);
            self.ask_next(surface);
            return;
        }
        if line.round.asked.is_none_or(|(asked, _)| asked != *subject) {
            return;
        }
        line.round.asked = None;
        match outcome {
            Outcome::Done(truth) => {
                line.round.failures = 0;
                self.take_truth(surface, subject, truth);
            }
            Outcome::Refused(refusal)
                if matches!(subject, Subject::Trades { .. })
                    && !OF_ANY_ROUTE.contains(&refusal.code) =>
            {
                // The venue has no such route: gaps are closed order by order.
                line.no_trades = true;
                line.round.step = Step::Account;
                self.ask_next(surface);
            }
            Outcome::Refused(_) | Outcome::Unknown => {
                let wait_ms = (RETRY_MS.0 << line.round.failures.min(4)).min(RETRY_MS.1);
                line.round.failures += 1;
                self.later(surface, wait_ms);
            }
        }
    }

    fn take_truth(&mut self, surface: Surface, subject: &Subject, truth: &Truth) {
        match (subject, truth) {
            (Subject::OpenOrders { .. }, Truth::OpenOrders(open)) => {
                self.take_open_orders(surface, open);
                self.plan_trades(surface);
                self.ask_next(surface);
            }
            (Subject::Trades { instrument, .. }, Truth::Trades { trades, more }) => {
                self.take_trades(surface, *instrument, trades, *more);
            }
            (Subject::Account { .. }, Truth::Account(account)) => {
                self.take_account(surface, account);
            }
            // An answer to another question: the driver is at fault, and the round tries again.
            _ => self.later(surface, RETRY_MS.1),
        }
    }

    /// The next round begins now, unless one runs.
    pub(super) fn reconcile_soon(&mut self, surface: Surface) {
        let now = self.now;
        let line = self.line_mut(surface);
        if line.is_some_and(|line| line.stream_up && matches!(line.round.step, Step::Idle)) {
            self.timers.set(now, Timer::Reconcile { surface });
        }
    }

    /// When the running round asked for open orders.
    pub(super) fn orders_asked(&mut self, surface: Surface) -> Option<Time> {
        self.line_mut(surface)?.round.orders_asked
    }

    fn later(&mut self, surface: Surface, wait_ms: i64) {
        let at = self.now.plus_ms(wait_ms);
        self.timers.set(at, Timer::Reconcile { surface });
    }

    /// Settles own orders by the list of those that rest: listed ones by what it says, missing
    /// ones by asking for each.
    fn take_open_orders(&mut self, surface: Surface, open: &[OpenOrder]) {
        let mut external = Vec::new();
        for order in open {
            if !self.take_open_order(order) {
                external.push(*order);
            }
        }
        self.list_external(surface, external);
        let listed = |id| open.iter().any(|order| order.report.client_order_id == id);
        let missing: Vec<OrderSeq> = self
            .orders
            .iter()
            .filter(|order| {
                self.surface_of(order.instrument()) == surface
                    && !order.held
                    && !listed(order.client_order_id)
            })
            .map(|order| order.seq)
            .collect();
        for seq in missing {
            if planted!(WipeOnMissing) {
                self.wipe(seq);
            }
            let order = self.orders.known_mut(seq);
            if let Some(denied) = order.and_then(|order| order.denied.as_mut()) {
                denied.unlisted += 1;
            }
            if !planted!(MissingNotAsked) {
                self.ask_for_order(seq);
            }
        }
    }

    /// Where it is planted that what is not listed is gone.
    fn wipe(&mut self, seq: OrderSeq) {
        if let Some(order) = self.orders.live(seq) {
            let before = order.state;
            self.move_order(seq, OrderMove::Cancel, before, false);
        }
    }

    /// Settles an order by what the list says of it; answers whether it is ours.
    fn take_open_order(&mut self, open: &OpenOrder) -> bool {
        let id = open.report.client_order_id;
        if usize::from(open.report.instrument.0) >= self.instruments.len() {
            return true;
        }
        match self.known(&id) {
            Some(seq) if self.orders.live(seq).is_some() => {
                self.take_report(seq, &open.report);
                self.cancel_at_start(seq);
            }
            Some(seq) => self.revive_listed(seq, open),
            None => return self.adopt_open_order(open),
        }
        true
    }

    /// Account trades are read where something may have been missed: in the first round after the
    /// stream came up.
    fn plan_trades(&mut self, surface: Surface) {
        let instruments = self.instruments_of(surface);
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let missed = line.clean.is_none() && !line.no_trades;
        line.round.step = if missed {
            Step::Trades(instruments)
        } else {
            Step::Account
        };
    }

    fn instruments_of(&self, surface: Surface) -> VecDeque<InstrumentId> {
        let ids = (0..self.instruments.len()).map(|index| InstrumentId(index as u16));
        ids.filter(|id| self.surface_of(*id) == surface).collect()
    }

    fn take_trades(
        &mut self,
        surface: Surface,
        instrument: InstrumentId,
        trades: &[AccountTrade],
        more: bool,
    ) {
        // A trade of an order whose id at the venue we do not know yet could be taken for
        // somebody else's: such orders are asked for first.
        let nameless = self.orders.iter().any(|order| {
            order.instrument() == instrument && order.venue_order_id.is_none() && !order.held
        });
        let of_nobody = |trade: &AccountTrade| self.orders.of_venue(trade.order_id).is_none();
        if nameless && trades.iter().any(of_nobody) && !planted!(OwnTradeAsExternal) {
            self.later(surface, RETRY_MS.0);
            return;
        }
        let index = usize::from(instrument.0);
        let verified = self.verified_trades[index];
        for trade in trades {
            // Before the first round everything belongs to the account as it was found.
            if verified.is_some_and(|known| trade.fill.trade_id > known) {
                self.take_trade(instrument, trade);
            }
        }
        let newest = trades.iter().map(|trade| trade.fill.trade_id).max();
        self.verified_trades[index] = verified.max(newest).or(Some(TradeId(0)));
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        if let Step::Trades(left) = &mut line.round.step
            && (!more || verified.is_none())
        {
            left.pop_front();
        }
        self.ask_next(surface);
    }

    /// Books an account trade that the stream may have missed.
    fn take_trade(&mut self, instrument: InstrumentId, trade: &AccountTrade) {
        let owner = self.orders.of_venue(trade.order_id).map(|order| order.seq);
        let Some(update) = self.update_of(instrument, trade, owner) else {
            return;
        };
        match owner {
            None => self.take_external(&update),
            Some(seq) => {
                let mut fill = trade.fill;
                let Some(order) = self.orders.known_mut(seq) else {
                    return;
                };
                let whole = fill.qty.0;
                fill.qty.0 = order.absorb_trade(fill.trade_id, whole);
                if fill.qty.0 == 0 {
                    return;
                }
                if fill.qty.0 < whole {
                    fill.quote_qty = fill.quote_qty.part(fill.qty.0, whole);
                    fill.fee = fill.fee.part(fill.qty.0, whole);
                }
                self.take_missed_fill(seq, &update, &fill);
            }
        }
    }

    /// An account trade in the form of the event that would have told of it.
    fn update_of(
        &mut self,
        instrument: InstrumentId,
        trade: &AccountTrade,
        owner: Option<OrderSeq>,
    ) -> Option<OrderUpdate> {
        let template = match owner {
            Some(seq) => self.orders.known_mut(seq)?.as_update(),
            None => OrderUpdate::external(instrument, trade.order_id),
        };
        Some(OrderUpdate {
            order_id: trade.order_id,
            side: if planted!(PositionSideMixed) {
                template.side
            } else {
                trade.side
            },
            position_side: trade.position_side,
            status: OrderStatus::PartiallyFilled,
            transaction_time: trade.time,
            event_time: trade.time,
            fill: Some(trade.fill),
            ..template
        })
    }

    /// Reads the trades of one instrument out of turn: a fill is missing.
    pub(super) fn read_trades(&mut self, surface: Surface, instrument: InstrumentId) {
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        // A round that runs comes by trades itself where the account differs.
        if matches!(line.round.step, Step::Idle) {
            line.round = Round {
                step: Step::Trades(VecDeque::from([instrument])),
                ..Round::default()
            };
            self.ask_next(surface);
        }
    }

    fn take_account(&mut self, surface: Surface, account: &AccountTruth) {
        self.compare_modes(surface, account);
        self.take_locked(surface, account);
        let differences = self.differences(surface, account);
        let misses_fill = self.misses_fill(surface);
        let is_past = self.is_of_the_past(surface, account);
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let now_events = line.events;
        let quiet = now_events == line.round.events_when_asked;
        let no_trades = line.no_trades;
        if differences.is_empty() {
            // Two fills that we do not know may leave the account as we know it.
            if quiet && !misses_fill {
                self.verify_trades(surface);
                if !account.lags {
                    self.take_entries(account);
                }
            }
            self.end_round(surface);
            return;
        }
        if is_past {
            self.end_round(surface);
            return;
        }
        let agreed = quiet
            && line
                .round
                .seen
                .as_ref()
                .is_some_and(|(seen, events)| *seen == differences && *events == now_events);
        let rash = planted!(AdjustAfterOneRead) && quiet;
        let believed = planted!(OlderAccountRead) && !quiet;
        if rash || believed {
            self.adjust(surface, account);
            self.end_round(surface);
            return;
        }
        if agreed && line.round.looked_for.as_ref() != Some(&differences) {
            // What our own fills explain needs no adjustment. Trades, or orders, that were read for
            // another difference, or before it, may lack the one that explains this.
            line.round.looked_for = Some(differences);
            line.round.seen = None;
            let instruments = self.instruments_of(surface);
            if let Some(line) = self.line_mut(surface) {
                line.round.step = if no_trades {
                    Step::Orders
                } else {
                    Step::Trades(instruments)
                };
            }
            self.ask_next(surface);
            return;
        }
        if agreed && no_trades && misses_fill {
            // It is told late, or made up from the order's totals: taken now, it would count twice.
            self.later(surface, READ_AGAIN_LAGGING_MS);
            return;
        }
        if agreed {
            self.adjust(surface, account);
            self.end_round(surface);
            return;
        }
        line.round.seen = quiet.then_some((differences, now_events));
        line.round.reads += 1;
        let unexplained = line.round.reads >= READS_MAX;
        let wait_ms = match (unexplained, account.lags) {
            (true, _) => RETRY_MS.1,
            (false, true) => READ_AGAIN_LAGGING_MS,
            (false, false) => READ_AGAIN_MS,
        };
        self.later(surface, wait_ms);
        if unexplained {
            self.tell_round(surface, false);
            self.set_doubt(Doubt::Reconciliation(surface), true);
            self.update_state();
        }
    }

    /// Whether the venue executed more of an own order than we know fills of, or may have: one
    /// that is asked for is not settled.
    fn misses_fill(&self, surface: Surface) -> bool {
        self.orders.iter().any(|order| {
            let asking = Timer::AskForOrder { order: order.seq };
            self.surface_of(order.instrument()) == surface
                && (order.reported_qty > order.executed_qty || self.timers.is_set(asking))
        })
    }

    fn compare_modes(&mut self, surface: Surface, account: &AccountTruth) {
        if let Some(can_trade) = account.can_trade {
            self.set_doubt(Doubt::CanTrade(surface), !can_trade);
        }
        if let Some(hedge) = account.hedge_mode {
            self.set_doubt(Doubt::PositionMode, hedge != self.hedge_mode);
        }
        let configured = self.live.as_ref().map(|live| live.config.multi_assets);
        if let (Some(multi), Some(configured)) = (account.multi_assets, configured) {
            self.set_doubt(Doubt::AssetMode, multi != configured);
        }
        self.update_state();
    }

    /// Whether an account event has to wait: the venue tells of a fill twice, by order and by
    /// account, and says nowhere which comes first. Taken before its fill, it would count twice,
    /// whatever else the event is about.
    pub(super) fn waits_for_fill(&mut self, update: &AccountUpdate) -> bool {
        let (surface, now) = (update.surface, self.now);
        let comes_or_goes = surface == Surface::Spot && update.reason != AccountReason::Order;
        let Some(line) = self.line_mut(surface).filter(|_| !comes_or_goes) else {
            return false;
        };
        let explained = |told: &BalanceUpdate| BalanceUpdate {
            change: Amount::ZERO,
            ..*told
        };
        let mut truth = AccountTruth {
            balances: update.balances.iter().map(explained).collect(),
            positions: update.positions.clone(),
            ..AccountTruth::default()
        };
        let mut since = now;
        if let Some((older, at)) = line.told.take() {
            let lines = |truth: &AccountTruth| truth.balances.len() + truth.positions.len();
            let told = lines(&truth);
            truth.complete(older);
            since = if lines(&truth) > told { at } else { now };
        }
        if !self.holds(surface, &truth) && !planted!(AccountBeforeFill) {
            if let Some(line) = self.line_mut(surface) {
                line.told = Some((truth, since));
            }
            return true;
        }
        for balance in truth.balances.iter().skip(update.balances.len()) {
            self.take_balance(surface, balance, Cause::Event);
        }
        false
    }

    /// All fills up to there are booked. On futures positions alone tell: balances may differ in
    /// what the venue rounds. Spot has balances alone, and rounds nothing.
    fn holds(&self, surface: Surface, account: &AccountTruth) -> bool {
        let tells = |one: &Adjustment| match surface {
            Surface::Futures => matches!(one, Adjustment::Position { .. }),
            Surface::Spot => matches!(one, Adjustment::Balance { .. }),
        };
        !self.differences(surface, account).iter().any(tells)
    }

    /// A fill may explain what was told before it, which is then taken.
    pub(super) fn explain_what_was_told(&mut self, surface: Surface) {
        let line = self.live.as_ref().and_then(|live| live.lines.get(&surface));
        let Some((truth, _)) = line.and_then(|line| line.told.as_ref()) else {
            return;
        };
        if !self.holds(surface, truth) {
            return;
        }
        let told = self.line_mut(surface).and_then(|line| line.told.take());
        for balance in told.iter().flat_map(|(truth, _)| &truth.balances) {
            self.shift_by_untold(surface, balance);
            self.take_balance(surface, balance, Cause::Event);
        }
    }

    /// What was told and no fill explained in time is looked into.
    pub(super) fn look_into_what_was_told(&mut self, surface: Surface) {
        let now = self.now;
        let Some(line) = self.line_mut(surface) else {
            return;
        };
        let idle = matches!(line.round.step, Step::Idle);
        let overdue = |(_, at): &(AccountTruth, Time)| now > at.plus_ms(FILL_MS);
        if idle && line.stream_up && line.told.as_ref().is_some_and(overdue) {
            line.told = None;
            self.begin_round(surface);
        }
    }

    /// Where the account differs from ours. What is not listed is not compared.
    fn differences(&self, surface: Surface, account: &AccountTruth) -> Vec<Adjustment> {
        let mut differences = Vec::new();
        for balance in &account.balances {
            let from = self.balance(surface, balance.asset).total;
            if from != balance.total {
                differences.push(Adjustment::Balance {
                    surface,
                    asset: balance.asset,
                    from,
                    to: balance.total,
                });
            }
        }
        for position in &account.positions {
            let (id, side) = (position.instrument, position.position_side);
            if usize::from(id.0) >= self.instruments.len() {
                continue;
            }
            let from = self.ledgers.account.at(id, side).position.qty;
            if from != position.qty.0 {
                differences.push(Adjustment::Position {
                    instrument: id,
                    side,
                    from,
                    to: position.qty.0,
                });
            }
        }
        differences
    }

    /// Whether every position that is told is as we know it.
    pub(super) fn positions_agree(&self, told: &[PositionUpdate]) -> bool {
        told.iter().all(|position| {
            let (id, side) = (position.instrument, position.position_side);
            usize::from(id.0) >= self.instruments.len()
                || self.ledgers.account.at(id, side).position.qty == position.qty.0
        })
    }

    /// Takes the venue's word.
    fn adjust(&mut self, surface: Surface, account: &AccountTruth) {
        let is_transfer = self.positions_agree(&account.positions) && !self.misses_fill(surface);
        for balance in &account.balances {
            if self.balance(surface, balance.asset).total != balance.total {
                if is_transfer {
                    self.shift_by_untold(surface, balance);
                }
                self.take_balance(surface, balance, Cause::Reconciliation);
            }
        }
        for position in &account.positions {
            self.take_position(position, Cause::Reconciliation);
        }
        if !account.lags {
            self.take_entries(account);
        }
        // What it lost counts, whether or not anything is held any more.
        self.watch_losses_after_fill();
    }

    /// The entry of a position is the venue's: fills that were recovered out of their order leave
    /// another average. What it rounds is left alone.
    fn take_entries(&mut self, account: &AccountTruth) {
        for told in &account.positions {
            let (id, side) = (told.instrument, told.position_side);
            if usize::from(id.0) >= self.instruments.len() || told.cost == Amount::ZERO {
                continue;
            }
            let position = &mut self.ledgers.account.at_mut(id, side).position;
            let moved = told.cost - position.cost;
            let is_rounding = moved.0.abs().saturating_mul(ENTRY_PARTS) <= told.cost.0.abs();
            if position.qty == told.qty.0 && !is_rounding {
                position.cost = told.cost;
                self.ledgers.external.at_mut(id, side).position.cost += moved;
            }
        }
    }

    /// Takes what of each balance is not available from a quiet reading. It moves with every order
    /// and every mark, so that it is never a difference.
    fn take_locked(&mut self, surface: Surface, account: &AccountTruth) {
        let is_quiet = |line: &mut Line| line.events == line.round.events_when_asked;
        if !self.line_mut(surface).is_some_and(is_quiet) {
            return;
        }
        for read in &account.balances {
            if let Some(balance) = self.balances.get_mut(&(surface, read.asset))
                && balance.total == read.total
            {
                balance.locked = read.locked;
            }
        }
    }

    /// What was read agrees with what we know, so that no trade up to the newest is missing.
    fn verify_trades(&mut self, surface: Surface) {
        for index in 0..self.instruments.len() {
            if self.instruments[index].surface == surface && self.verified_trades[index].is_some() {
                let newest = self.newest_trades[index];
                self.verified_trades[index] = self.verified_trades[index].max(newest);
            }
        }
    }

    /// Nothing is left unexplained. What was read is as old as the question for open orders; a
    /// round about trades alone makes it no younger.
    fn end_round(&mut self, surface: Surface) {
        let now = self.now;
        let Some(live) = &mut self.live else { return };
        let (reconcile_ms, doubted) = (live.config.reconcile_ms, live.is_unexplained(surface));
        let Some(line) = live.lines.get_mut(&surface) else {
            return;
        };
        let whole = std::mem::take(&mut line.round).orders_asked;
        line.clean = whole.or(line.clean);
        let due = match line.clean {
            _ if whole.is_none() && doubted => now,
            asked => asked.unwrap_or(now).plus_ms(reconcile_ms).max(now),
        };
        if !planted!(ForgetToReconcile) {
            self.timers.set(due, Timer::Reconcile { surface });
        }
        self.tell_round(surface, true);
        if whole.is_some() {
            self.round_is_clean(surface);
        }
    }

    fn tell_round(&mut self, surface: Surface, clean: bool) {
        self.notices.push_back(Notice::Reconciled {
            time: self.now,
            surface,
            clean,
        });
    }

    /// A fill that only the account trades told of.
    pub(super) fn take_missed_fill(
        &mut self,
        seq: OrderSeq,
        update: &OrderUpdate,
        fill: &crate::protocol::Fill,
    ) {
        let Some(order) = self.orders.known_mut(seq) else {
            return;
        };
        let before = order.state;
        let counted = order.count_fill(fill.trade_id, fill.qty.0, fill.quote_qty);
        if !counted && !planted!(TradesNotDeduplicated) {
            return;
        }
        order.reported_qty = order.reported_qty.max(order.executed_qty);
        let complete = order.remaining_qty() == 0 && order.terms.qty.is_some();
        let strategy = order.strategy;
        self.apply_own_fill(seq, strategy, update, fill);
        self.notices.push_back(Notice::Recovered {
            time: self.now,
            order: seq,
            fill: *fill,
        });
        let mv = if complete {
            OrderMove::FillAll
        } else {
            OrderMove::FillPart
        };
        self.move_order(seq, mv, before, true);
    }
}
