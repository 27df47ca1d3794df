//! Liquidation and ADL: for every mark and every order of the venue's reports, the strategies'
//! positions match the account, and the configured reaction follows.

use windvane_model::event::EventKind;
use windvane_model::forced::{ForcedClose, ForcedCloseReport, OnLiquidation};
use windvane_model::input::Command;
use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, OrderUpdate, PositionUpdate, Refusal,
};
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::state_report::{AccountTrade, OpenOrder, StateReport, Subject};
use windvane_model::{
    Amount, ClientOrderId, ExecutionType, Input, MarketEvent, Notice, OrderStatus, OrderTerms,
    OrderType, Outcome, PositionSide, Price, Qty, Side, StrategyId, Surface, Time, TradeId,
    UserEvent, VenueOrderId,
};

use super::forced_events::delivered_closes;
use super::reconciliation::trade;
use super::succession::{killed, next_config};
use super::support::{
    Account, BTC, MM, OTHER, USDT, fill, instrument, limit, report as order_report,
};
use super::world::{booting, live_config, no_trades, nothing, order_by_hand, position, ready};

const FUTURES: Surface = Surface::Futures;
const ORDER: VenueOrderId = VenueOrderId(500);

/// Buys for a strategy at 100.0.
pub(super) fn buy(account: &mut Account, strategy: StrategyId, qty: i64, trade_id: i64) {
    let order = account.submit(strategy, limit(Side::Buy, 1000, qty));
    account.confirm_countdowns();
    let id = account.id(strategy, order);
    let mut bought = fill(id, Side::Buy, trade_id, qty, qty, OrderStatus::Filled);
    bought.order_id = VenueOrderId(trade_id);
    account.update(bought);
    account.sent.clear();
}

/// A live run whose two strategies hold these quantities.
pub(super) fn holding(mm: i64, other: i64) -> Account {
    let mut account = ready();
    for (strategy, qty, trade_id) in [(MM, mm, 1), (OTHER, other, 2)] {
        if qty > 0 {
            buy(&mut account, strategy, qty, trade_id);
        }
    }
    account.notices.clear();
    account.events.clear();
    account
}

/// An event of the venue's own order that sells at 90.0, without any mark of a forced close.
pub(super) fn sold(trade_id: i64, qty: i64, executed: i64, whole: i64) -> OrderUpdate {
    let id = ClientOrderId::new("x-1").unwrap();
    let status = if executed == whole {
        OrderStatus::Filled
    } else {
        OrderStatus::PartiallyFilled
    };
    let mut event = fill(id, Side::Sell, trade_id, qty, executed, status);
    event.order_id = ORDER;
    event.orig_qty = Qty(whole);
    event.order_type = OrderType::Market;
    if let Some(fill) = &mut event.fill {
        fill.price = Price(900);
        fill.quote_qty = instrument().notional(900, qty);
        fill.fee = Amount(400_000_000);
    }
    event
}

pub(super) fn marked(event: OrderUpdate) -> OrderUpdate {
    OrderUpdate {
        client_order_id: ClientOrderId::new("autoclose-17").unwrap(),
        ..event
    }
}

pub(super) fn held(account: &Account) -> [i64; 3] {
    let ledgers = account.engine.ledgers();
    let qty =
        |ledger: &windvane_model::holding::Ledger| ledger.at(BTC, PositionSide::Both).position.qty;
    [
        qty(&ledgers.account),
        qty(&ledgers.strategies[0]),
        qty(&ledgers.strategies[1]),
    ]
}

pub(super) fn reports(account: &Account) -> Vec<ForcedCloseReport> {
    let reported = account.notices.iter().filter_map(|notice| match notice {
        Notice::ForcedClose { report, .. } => Some((**report).clone()),
        _ => None,
    });
    reported.collect()
}

pub(super) fn react(account: &mut Account, reaction: OnLiquidation) {
    account.handle(Input::OnLiquidation(reaction));
}

/// A client order id, another mark of an event, and what they mean.
type Mark = (&'static str, fn(&mut OrderUpdate), ForcedClose);

#[test]
fn every_mark_in_the_documents_is_recognized() {
    let id = |text| ClientOrderId::new(text).unwrap();
    let marks: [Mark; 5] = [
        ("autoclose-1700000000", |_| {}, ForcedClose::Liquidation),
        ("adl_autoclose", |_| {}, ForcedClose::Adl),
        (
            "x",
            |event| event.order_type = OrderType::Liquidation,
            ForcedClose::Liquidation,
        ),
        (
            "x",
            |event| event.execution = ExecutionType::Calculated,
            ForcedClose::Liquidation,
        ),
        (
            "adl_autoclose",
            |event| {
                event.order_type = OrderType::Liquidation;
                event.execution = ExecutionType::Calculated;
            },
            ForcedClose::Adl,
        ),
    ];
    for (name, mark, kind) in marks {
        let mut account = holding(30, 10);
        let mut event = sold(9, 40, 40, 40);
        event.client_order_id = id(name);
        mark(&mut event);
        account.update(event);
        assert_eq!(held(&account), [0, 0, 0], "{name}");
        assert_eq!(reports(&account)[0].kind, kind);
        assert_eq!(account.engine.run_state(), RunState::Halted);
    }
    for (status, kind) in [
        (OrderStatus::NewInsurance, ForcedClose::Liquidation),
        (OrderStatus::NewAdl, ForcedClose::Adl),
    ] {
        let mut account = holding(30, 10);
        let opened = OrderUpdate {
            status,
            execution: ExecutionType::New,
            executed_qty: Qty(0),
            fill: None,
            ..sold(0, 40, 0, 40)
        };
        account.update(opened);
        let is_halted = account.engine.kill_switch() == KillSwitch::Halted;
        assert!(is_halted, "before it trades");
        account.update(sold(9, 30, 30, 40));
        account.update(sold(10, 10, 40, 40));
        assert_eq!(held(&account), [0, 0, 0], "its fills have no mark");
        assert_eq!(reports(&account)[1].kind, kind);
    }
}

#[test]
fn strategies_share_a_liquidation_in_proportion() {
    let mut account = holding(30, 10);
    account.update(marked(sold(9, 20, 20, 20)));
    assert_eq!(held(&account), [20, 15, 5]);
    let own = account.engine.ledgers().strategies[0].at(BTC, PositionSide::Both);
    // 15 units of 0.001, bought at 100 and sold at 90, and three quarters of a fee of 4.
    assert_eq!(own.position.realized_pnl, Amount(-15_000_000));
    assert_eq!(own.position.fees, Amount(1_000_000 + 300_000_000));
    let report = &reports(&account)[0];
    assert_eq!((report.qty, report.left, report.unowned), (20, 20, 0));
    assert_eq!(report.quote, instrument().notional(900, 20));
    assert_eq!(report.realized_pnl, Amount(-20_000_000));
    let shares: Vec<_> = report
        .shares
        .iter()
        .map(|one| (one.qty, one.left))
        .collect();
    assert_eq!(shares, [(15, 15), (5, 5)]);
    for strategy in [MM, OTHER] {
        let reported = (account.events.iter())
            .any(|(to, kind, _)| *to == strategy && *kind == EventKind::Position);
        assert!(reported, "each strategy receives its position");
    }
}

#[test]
fn the_fills_of_one_order_add_up_to_one_report() {
    let mut account = holding(30, 10);
    account.update(marked(sold(9, 20, 20, 40)));
    let is_halted = account.engine.kill_switch() == KillSwitch::Halted;
    assert!(is_halted, "at the first fill");
    account.update(marked(sold(10, 12, 32, 40)));
    account.update(marked(sold(11, 8, 40, 40)));
    let parts: Vec<_> = reports(&account).iter().map(|one| one.qty).collect();
    assert_eq!(parts, [20, 12, 8]);
    let rows: Vec<_> = account.engine.forced_closes().collect();
    assert_eq!(rows.len(), 1);
    let (_, sum) = rows[0];
    assert_eq!((sum.qty, sum.left, sum.unowned), (40, 0, 0));
    assert_eq!(sum.quote, instrument().notional(900, 40));
    assert_eq!(sum.fee, Amount(3 * 400_000_000));
    assert_eq!(sum.realized_pnl, -instrument().notional(100, 40));
    assert!(sum.kill_switch_changed);
    let shares: Vec<_> = sum.shares.iter().map(|one| (one.qty, one.left)).collect();
    assert_eq!(shares, [(30, 0), (10, 0)]);
    account.update(OrderUpdate {
        order_id: VenueOrderId(501),
        ..marked(sold(12, 8, 8, 8))
    });
    let rows: Vec<_> = account.engine.forced_closes().collect();
    assert_eq!(rows.len(), 2, "another order has its own report");
}

#[test]
fn the_remainder_of_a_liquidation_goes_to_the_largest_holder() {
    let mut account = holding(20, 10);
    account.update(marked(sold(9, 10, 10, 10)));
    assert_eq!(held(&account), [20, 13, 7]);
}

#[test]
fn an_unowned_position_is_closed_in_proportion_too() {
    let mut account = holding(30, 0);
    let by_hand = OrderUpdate {
        side: Side::Buy,
        ..sold(8, 10, 10, 10)
    };
    account.update(by_hand);
    account.update(OrderUpdate {
        order_id: VenueOrderId(501),
        ..marked(sold(9, 20, 20, 20))
    });
    assert_eq!(held(&account), [20, 15, 0]);
    assert_eq!(reports(&account)[0].unowned, 5);
}

#[test]
fn a_close_by_hand_is_not_a_liquidation() {
    let mut account = holding(30, 10);
    account.update(sold(9, 40, 40, 40));
    assert_eq!(held(&account), [0, 30, 10]);
    assert_eq!(reports(&account), []);
    assert_eq!(account.engine.run_state(), RunState::Ready);
}

#[test]
fn the_configured_reaction_holds_until_resume() {
    for (reaction, state) in [
        (OnLiquidation::Halt, RunState::Halted),
        (OnLiquidation::Pause, RunState::Paused),
        (OnLiquidation::Continue, RunState::Ready),
    ] {
        let mut account = holding(30, 10);
        react(&mut account, reaction);
        account.update(marked(sold(9, 40, 40, 40)));
        assert_eq!(account.engine.run_state(), state);
        assert_eq!(account.engine.forced_closes().count(), 1);
        let changed = reaction != OnLiquidation::Continue;
        assert_eq!(reports(&account)[0].kill_switch_changed, changed);

        let mut account = killed(account, next_config());
        assert_eq!(account.engine.on_liquidation(), reaction);
        assert_eq!(account.engine.forced_closes().count(), 1);
        account.begin();
        account.sync();
        assert_eq!(account.engine.run_state(), state, "after a restart");
        account.handle(Input::Command(Command::Resume));
        assert_eq!(account.engine.run_state(), RunState::Ready);
        assert_eq!(account.engine.forced_closes().count(), 0);
    }
}

/// The account event after the whole position was closed.
fn account_event(account: &Account, reason: AccountReason, listed: bool) -> UserEvent {
    let total = account.engine.balance(FUTURES, USDT).total;
    UserEvent::Account(AccountUpdate {
        surface: FUTURES,
        reason,
        balances: vec![BalanceUpdate {
            asset: USDT,
            total: total - Amount(40_000_000 + 400_000_000),
            locked: Amount::ZERO,
            change: Amount::ZERO,
        }],
        positions: if listed {
            vec![position(0)]
        } else {
            Vec::new()
        },
        transaction_time: Time::from_millis(9),
        event_time: Time::from_millis(9),
    })
}

#[test]
fn the_account_event_may_arrive_before_or_after_the_fill() {
    for before in [true, false] {
        let mut account = holding(30, 10);
        let reported = account_event(&account, AccountReason::Order, true);
        let total = account.engine.balance(FUTURES, USDT).total;
        let fill = marked(sold(9, 40, 40, 40));
        if before {
            account.handle(Input::User(&reported));
            account.update(fill);
        } else {
            account.update(fill);
            account.handle(Input::User(&reported));
        }
        assert_eq!(held(&account), [0, 0, 0]);
        assert_eq!(
            account.engine.balance(FUTURES, USDT).total,
            total - Amount(440_000_000)
        );
        assert_eq!(reports(&account).len(), 1);
    }
}

#[test]
fn fills_without_a_trade_id_count_once_by_the_order_total() {
    let mut account = holding(30, 10);
    for _ in 0..2 {
        account.update(marked(sold(0, 30, 30, 40)));
    }
    assert_eq!(held(&account), [10, 7, 3]);
    // Another route reports the trade with its id.
    account.update(marked(sold(77, 30, 30, 40)));
    assert_eq!(held(&account), [10, 7, 3]);
    account.update(marked(sold(0, 10, 40, 40)));
    assert_eq!(held(&account), [0, 0, 0]);
}

/// The wallet balance after the close.
fn wallet_after(account: &Account) -> Amount {
    account.engine.balance(FUTURES, USDT).total - Amount(440_000_000)
}

/// The account trade that belongs to [`sold`].
fn listed_trade(id: i64, qty: i64) -> AccountTrade {
    let mut listed = trade(ORDER.0, id, qty);
    listed.side = Side::Sell;
    listed.fill.price = Price(900);
    listed.fill.quote_qty = instrument().notional(900, qty);
    listed
}

/// The order as `forceOrders` lists it.
pub(super) fn listed_order(account: &Account, qty: i64) -> OpenOrder {
    let id = ClientOrderId::new("autoclose-17").unwrap();
    let mut report = order_report(id, OrderStatus::Filled, qty);
    report.order_id = ORDER;
    report.orig_qty = Qty(qty);
    report.cum_quote = instrument().notional(900, qty);
    report.update_time = account.now;
    let mut terms = OrderTerms::new(BTC, Side::Sell, OrderType::Liquidation);
    terms.qty = Some(Qty(qty));
    OpenOrder { report, terms }
}

/// Answers every query of a reconciliation round: these trades, a closed position with this wallet
/// balance, and these forced orders.
fn tell_round(
    account: &mut Account,
    trades: &[AccountTrade],
    closed: Option<Amount>,
    forced: &Outcome<StateReport>,
) {
    let read = closed.map(|left| (position(0), left));
    answer_with_trades(account, trades, read, forced);
}

/// Answers every query of a reconciliation round. No trades are listed; the account has this
/// position and wallet balance, or its own if `read` is `None`.
fn answer_round(
    account: &mut Account,
    read: Option<(PositionUpdate, Amount)>,
    forced: &Outcome<StateReport>,
) {
    answer_with_trades(account, &[], read, forced);
}

pub(super) fn answer_with_trades(
    account: &mut Account,
    trades: &[AccountTrade],
    read: Option<(PositionUpdate, Amount)>,
    forced: &Outcome<StateReport>,
) {
    let by_hand = StateReport::OutsideOrder(Box::new(order_by_hand(BTC, VenueOrderId(0))));
    answer_with_order(account, trades, read, forced, &Outcome::Done(by_hand));
}

/// Like [`answer_with_trades`], with `order` as the response to a query for an outside order.
pub(super) fn answer_with_order(
    account: &mut Account,
    trades: &[AccountTrade],
    read: Option<(PositionUpdate, Amount)>,
    forced: &Outcome<StateReport>,
    order: &Outcome<StateReport>,
) {
    while let Some(subject) = account.take_question() {
        let state_report = match subject {
            Subject::OpenOrders { .. } => StateReport::OpenOrders(Vec::new()),
            Subject::Trades { from, .. } => {
                let from = from.unwrap_or(TradeId(0));
                let new = trades.iter().filter(|one| one.fill.trade_id >= from);
                match new.copied().collect::<Vec<_>>() {
                    none if none.is_empty() => no_trades(),
                    trades => StateReport::Trades {
                        trades,
                        more: false,
                    },
                }
            }
            Subject::Account { .. } => {
                let mut own = account.own_account();
                if let Some((position, total)) = read {
                    own.positions = vec![position];
                    own.balances[0].total = total;
                }
                StateReport::Account(own)
            }
            Subject::ForcedOrders { .. } => {
                account.answer(subject, forced.clone());
                continue;
            }
            Subject::OutsideOrder { order_id, .. } => {
                let mut order = order.clone();
                if let Outcome::Done(StateReport::OutsideOrder(order)) = &mut order {
                    order.report.order_id = order_id;
                }
                account.answer(subject, order);
                continue;
            }
            Subject::TradedOrder { .. }
            | Subject::NewestOrders { .. }
            | Subject::Rules { .. }
            | Subject::Income { .. }
            | Subject::AssetPrice { .. } => nothing(subject),
        };
        account.tell(subject, state_report);
    }
}

/// Lets a minute pass in which the venue gives these responses to every query.
pub(super) fn minute(
    account: &mut Account,
    trades: &[AccountTrade],
    closed: Option<Amount>,
    forced: &Outcome<StateReport>,
) {
    for _ in 0..120 {
        tell_round(account, trades, closed, forced);
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
}

pub(super) fn refused_route() -> Outcome<StateReport> {
    Outcome::Refused(Refusal {
        code: -1020,
        msg: String::new(),
    })
}

#[test]
fn account_snapshots_find_a_liquidation_without_events() {
    for told_later in [false, true] {
        let mut account = holding(30, 10);
        minute(&mut account, &[], None, &refused_route());
        let left = wallet_after(&account);
        let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 40)]));
        for _ in 0..2 {
            // A snapshot that equals an earlier state of the account may be stale.
            minute(&mut account, &[], Some(left), &forced);
        }
        assert_eq!(held(&account), [0, 0, 0]);
        assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
        assert_eq!(reports(&account).len(), 1);
        if told_later {
            account.update(marked(sold(9, 40, 40, 40)));
            assert_eq!(
                held(&account),
                [0, 0, 0],
                "a late event closes nothing more"
            );
        }
    }
}

#[test]
fn forced_orders_settle_a_liquidation_in_account_trades() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    account.live(windvane_model::live::LiveInput::StreamDown { surface: FUTURES });
    account.live(windvane_model::live::LiveInput::StreamUp { surface: FUTURES });
    let left = wallet_after(&account);
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 40)]));
    minute(&mut account, &[listed_trade(9, 40)], Some(left), &forced);
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
    let report = &reports(&account)[0];
    let shares: Vec<_> = report.shares.iter().map(|share| share.qty).collect();
    assert_eq!((shares, report.unowned), (vec![30, 10], 0));
    assert_eq!(report.fee, listed_trade(9, 40).fill.fee);
    assert!(report.realized_pnl < Amount::ZERO);
    account.update(marked(sold(9, 40, 40, 40)));
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(reports(&account).len(), 1, "its event adds nothing");
}

#[test]
fn a_liquidation_event_settles_trades_that_were_listed_before() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    account.live(windvane_model::live::LiveInput::StreamDown { surface: FUTURES });
    account.live(windvane_model::live::LiveInput::StreamUp { surface: FUTURES });
    let left = wallet_after(&account);
    minute(
        &mut account,
        &[listed_trade(9, 40)],
        Some(left),
        &refused_route(),
    );
    assert_eq!(held(&account), [0, 0, 0]);
    let is_clear = account.engine.kill_switch() == KillSwitch::Clear;
    assert!(is_clear, "nothing shows who closed");
    account.update(marked(sold(9, 40, 40, 40)));
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
}

#[test]
fn a_close_in_snapshots_without_evidence_is_not_a_liquidation() {
    let mut old = ready();
    let before = listed_order(&old, 40);
    old.wait(1);
    for answer in [
        Outcome::Done(StateReport::ForcedOrders(Vec::new())),
        Outcome::Done(StateReport::ForcedOrders(vec![before])),
    ] {
        let mut account = holding(30, 10);
        account.wait(20);
        minute(&mut account, &[], None, &refused_route());
        let left = wallet_after(&account);
        for _ in 0..2 {
            minute(&mut account, &[], Some(left), &answer);
        }
        assert_eq!(held(&account), [0, 0, 0]);
        assert_eq!(account.engine.run_state(), RunState::Ready);
        assert_eq!(reports(&account), []);
    }
}

#[test]
fn a_payment_of_the_insurance_fund_proves_a_liquidation() {
    let mut account = holding(30, 10);
    account.handle(Input::Market {
        instrument: BTC,
        event: MarketEvent::Mark {
            mark: 80 * 100_000_000,
            index: 0,
            funding_rate: 0,
            next_funding: Time::NEVER,
        },
    });
    minute(&mut account, &[], None, &refused_route());
    let left = wallet_after(&account);
    let reported = account_event(&account, AccountReason::InsuranceClear, true);
    account.handle(Input::User(&reported));
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
    for _ in 0..2 {
        minute(&mut account, &[], Some(left), &refused_route());
    }
    assert_eq!(held(&account), [0, 0, 0]);
    let quantities: Vec<_> = reports(&account).iter().map(|report| report.qty).collect();
    assert_eq!(quantities, [0, 40], "the payment, then the close");
}

#[test]
fn a_payment_after_a_reported_liquidation_is_not_a_second_one() {
    let mut account = holding(30, 10);
    account.update(marked(sold(9, 40, 40, 40)));
    let mut reported = account_event(&account, AccountReason::InsuranceClear, false);
    if let UserEvent::Account(update) = &mut reported {
        update.balances[0].total = account.engine.balance(FUTURES, USDT).total + Amount(5);
        update.balances[0].change = Amount(5);
    }
    account.handle(Input::User(&reported));
    assert_eq!(reports(&account).len(), 1);
}

/// An own sale that the venue made at `ms`.
fn sale(account: &mut Account, strategy: StrategyId, qty: i64, ms: i64) -> OrderUpdate {
    let order = account.submit(strategy, limit(Side::Sell, 1000, qty));
    account.confirm_countdowns();
    let id = account.id(strategy, order);
    let mut event = fill(id, Side::Sell, 40, qty, qty, OrderStatus::Filled);
    event.order_id = VenueOrderId(40);
    event.transaction_time = Time::from_millis(ms);
    event
}

fn made(event: OrderUpdate, ms: i64) -> OrderUpdate {
    OrderUpdate {
        transaction_time: Time::from_millis(ms),
        ..event
    }
}

#[test]
fn a_later_own_fill_may_arrive_between_events_of_a_forced_close() {
    let mut account = holding(12, 40);
    let own = sale(&mut account, OTHER, 40, 5_009);
    account.update(made(marked(sold(30, 30, 30, 52)), 5_000));
    account.update(own);
    account.update(made(marked(sold(31, 22, 52, 52)), 5_000));
    assert_eq!(held(&account), [-40, 0, -40]);
    let unowned: i64 = reports(&account).iter().map(|report| report.unowned).sum();
    assert_eq!(unowned, 0);
}

#[test]
fn an_earlier_own_fill_may_arrive_after_a_forced_close() {
    for is_late in [true, false] {
        let mut account = holding(12, 20);
        let order = account.submit(OTHER, limit(Side::Buy, 1000, 20));
        account.confirm_countdowns();
        let id = account.id(OTHER, order);
        let mut own = fill(id, Side::Buy, 41, 20, 20, OrderStatus::Filled);
        own.order_id = VenueOrderId(41);
        let own = made(own, 4_990);
        let forced = made(marked(sold(30, 52, 52, 52)), 5_000);
        let events = if is_late {
            [forced, own]
        } else {
            [own, forced]
        };
        for event in events {
            account.update(event);
        }
        assert_eq!(held(&account), [0, 0, 0], "late: {is_late}");
        let changed = |one: &&ForcedCloseReport| one.kill_switch_changed;
        let changed = reports(&account).iter().filter(changed).count();
        assert_eq!(changed, 1, "the reaction follows once");
        let reported = delivered_closes(&account).into_iter();
        let reported = reported.fold([0, 0], |mut sum, (strategy, event)| {
            sum[usize::from(strategy.0)] += event.fields[1];
            sum
        });
        assert_eq!(reported, [12, 40], "the late share is delivered too");
    }
}

#[test]
fn a_forced_close_shown_by_a_snapshot_closes_its_strategy() {
    let mut account = holding(2, 0);
    minute(&mut account, &[], None, &refused_route());
    // The venue sold 2, and no event reported it. The strategy then sold 10.
    let forced = listed_order(&account, 2);
    let made_ms = forced.report.update_time.millis();
    let own = sale(&mut account, MM, 10, made_ms + 100);
    account.update(own);
    assert_eq!(held(&account), [-8, -8, 0]);
    let left = wallet_after(&account);
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![forced]));
    for _ in 0..60 {
        answer_round(&mut account, Some((position(-10), left)), &forced);
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    assert_eq!(held(&account), [-10, -10, 0]);
    assert_eq!(account.engine.kill_switch(), KillSwitch::Halted);
}

#[test]
fn a_listed_forced_close_may_be_newer_than_the_snapshot() {
    let mut account = holding(40, 0);
    minute(&mut account, &[], None, &refused_route());
    // The venue sold 10, and no event reported it. It sells 5 more after each snapshot.
    let first = listed_order(&account, 10);
    let left = wallet_after(&account);
    let mut reported = false;
    for _ in 0..300 {
        let mut second = listed_order(&account, 5);
        second.report.order_id = VenueOrderId(501);
        let forced = Outcome::Done(StateReport::ForcedOrders(vec![first, second]));
        answer_round(&mut account, Some((position(30), left)), &forced);
        if !reports(&account).is_empty() && !std::mem::replace(&mut reported, true) {
            let mut event = marked(sold(12, 5, 5, 5));
            event.order_id = VenueOrderId(501);
            account.update(event);
            assert_eq!(held(&account), [25, 25, 0]);
            break;
        }
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    assert!(reported, "the snapshot shows the first close");
    let reported: Vec<_> = reports(&account).iter().map(|one| one.qty).collect();
    assert_eq!(reported, [10, 5]);
}

#[test]
fn forced_closes_before_the_first_snapshot_are_ignored() {
    let mut account = booting(live_config());
    account.begin();
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 2)]));
    for _ in 0..60 {
        answer_round(
            &mut account,
            Some((position(6), Amount(1_000_000_000))),
            &forced,
        );
        account.pass(499);
        account.alive();
        account.clock();
    }
    assert_eq!(held(&account), [6, 0, 0]);
    assert_eq!(account.engine.run_state(), RunState::Ready);
    assert_eq!(reports(&account), []);
}

/// Only an account event reported an ADL. Before the engine explained it, a person closed the rest
/// by hand.
#[test]
fn a_close_by_hand_is_not_mistaken_for_the_next_forced_close() {
    let mut account = holding(30, 10);
    minute(&mut account, &[], None, &refused_route());
    let mut by_hand = sold(9, 33, 33, 33);
    by_hand.order_id = VenueOrderId(501);
    account.update(by_hand);
    assert_eq!(held(&account)[0], 7);
    let forced = Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 7)]));
    // The snapshot is still older than the ADL.
    for _ in 0..4 {
        tell_round(&mut account, &[], None, &forced);
        account.pass(499);
    }
    assert_eq!(reports(&account), []);
    let left = wallet_after(&account);
    minute(&mut account, &[], Some(left), &forced);
    assert_eq!(held(&account), [0, 0, 0]);
    assert_eq!(reports(&account).len(), 1);
}

/// Only the list of the account's trades, and in one case the list of forced orders, reports the
/// close. They do so after the fill of an open exit order.
#[test]
fn an_own_fill_keeps_its_strategy_after_a_late_forced_close() {
    for listed in [true, false] {
        close_before_an_own_fill(listed);
    }
}

fn close_before_an_own_fill(listed: bool) {
    let mut account = holding(30, 0);
    minute(&mut account, &[], None, &refused_route());
    let exit = account.submit(MM, limit(Side::Sell, 1100, 10));
    account.confirm_countdowns();
    let forced = if listed {
        Outcome::Done(StateReport::ForcedOrders(vec![listed_order(&account, 30)]))
    } else {
        refused_route()
    };
    let mut closed = listed_trade(9, 30);
    closed.time = account.now;
    account.pass(100);
    let mut sold_later = fill(
        account.id(MM, exit),
        Side::Sell,
        4,
        10,
        10,
        OrderStatus::Filled,
    );
    sold_later.transaction_time = account.now;
    account.update(sold_later);
    assert_eq!(held(&account), [20, 20, 0]);
    account.live(windvane_model::live::LiveInput::StreamDown { surface: FUTURES });
    account.live(windvane_model::live::LiveInput::StreamUp { surface: FUTURES });
    for _ in 0..120 {
        let own = account.own_account();
        let short = (position(-10), own.balances[0].total);
        answer_with_trades(&mut account, &[closed], Some(short), &forced);
        account.pass(499);
        account.alive();
        account.clock();
        account.confirm_countdowns();
    }
    assert_eq!(held(&account), [-10, -10, 0]);
    assert_eq!(reports(&account).len(), usize::from(listed));
}
