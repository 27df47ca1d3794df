//! Faults, flattening, lost cancels, and timers.

use windvane_model::config::OnFault;
use windvane_model::effect::Adjustment;
use windvane_model::event::EventKind;
use windvane_model::input::{Command, FaultKind};
use windvane_model::instrument::LotSize;
use windvane_model::market::Level;
use windvane_model::order_state::OrderState;
use windvane_model::rules::Rule;
use windvane_model::{
    Amount, ClientOrderId, Input, InstrumentId, MarketEvent, Notice, OrderSeq, OrderStatus,
    Outcome, PositionSide, Reply, Request, Side, StrategyId, Time,
};

use super::support::{Account, BTC, MM, OTHER, limit, market, refused, report, update};
use super::{fill_all, hold, own_qty, refusal, with};

fn fault(account: &mut Account, strategy: StrategyId) {
    account.sent.clear();
    account.handle(Input::Fault {
        strategy,
        kind: FaultKind::Trap,
    });
}

fn canceled_ids(account: &Account) -> Vec<ClientOrderId> {
    let id = |request: &Request| match request {
        Request::Cancel {
            client_order_id, ..
        } => Some(*client_order_id),
        _ => None,
    };
    account.sent.iter().filter_map(id).collect()
}

/// Numbers, sides and quantities of the orders that were sent.
fn placed(account: &Account) -> Vec<(OrderSeq, Side, i64)> {
    let order = |request: &Request| match request {
        Request::Place(order) => {
            let (_, _, seq) = order.client_order_id.parse_own()?;
            Some((seq, order.terms.side, order.terms.qty?.0))
        }
        _ => None,
    };
    account.sent.iter().filter_map(order).collect()
}

fn faulty(on_fault: OnFault) -> Account {
    with(|config| config.strategies[0].on_fault = on_fault)
}

#[test]
fn a_fault_cancels_only_the_orders_of_that_strategy() {
    let mut account = faulty(OnFault::Cancel);
    let mine = account.submit(MM, limit(Side::Buy, 900, 1));
    account.submit(OTHER, limit(Side::Buy, 900, 1));
    hold(&mut account, MM, 3, 1);
    fault(&mut account, MM);
    assert_eq!(canceled_ids(&account), [account.id(MM, mine)]);
    assert_eq!(placed(&account), [], "its position stays");
    let order = limit(Side::Buy, 900, 1);
    assert_eq!(refusal(&mut account, MM, order), Some(Rule::Quarantined));
    assert_eq!(refusal(&mut account, OTHER, order), None);
    account.events.clear();
    account.top(990, 992);
    let reported: Vec<_> = account
        .events
        .iter()
        .map(|(strategy, ..)| *strategy)
        .collect();
    assert_eq!(
        reported,
        [OTHER],
        "the quarantined strategy receives nothing"
    );
}

#[test]
fn on_fault_keep_leaves_orders_open() {
    let mut account = faulty(OnFault::Keep);
    let order = account.submit(MM, limit(Side::Buy, 900, 1));
    fault(&mut account, MM);
    assert_eq!(account.sent, []);
    fill_all(&mut account, MM, order, 1);
    assert_eq!(own_qty(&account, MM), 1, "its fills still count");
}

#[test]
fn intents_of_a_quarantined_strategy_are_ignored() {
    let mut account = faulty(OnFault::Cancel);
    let mut callback = windvane_engine::Callback::default();
    callback.begin(&account.engine, MM);
    callback
        .submit(&account.engine, market(Side::Buy, 1))
        .unwrap();
    fault(&mut account, MM);
    account.handle(Input::Answer {
        strategy: MM,
        intents: callback.intents(),
    });
    assert!(account.engine.orders().is_empty());
    assert_eq!(account.sent, []);
}

#[test]
fn flatten_waits_for_the_cancels_then_closes() {
    let mut account = faulty(OnFault::Flatten);
    hold(&mut account, MM, -5, 1);
    hold(&mut account, OTHER, 7, 2);
    let open = account.submit(MM, limit(Side::Buy, 900, 2));
    fault(&mut account, MM);
    assert_eq!(placed(&account), [], "the open order may still fill");
    let id = account.id(MM, open);
    let late = super::fill(id, Side::Buy, 3, 1, 1, OrderStatus::PartiallyFilled);
    account.update(late);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 1));
    let [(seq, side, qty)] = placed(&account)[..] else {
        panic!("{:?}", account.sent);
    };
    assert_eq!((side, qty), (Side::Buy, 4));
    fill_all(&mut account, MM, seq, 4);
    assert_eq!((own_qty(&account, MM), own_qty(&account, OTHER)), (0, 7));
    account.sent.clear();
    account.top(990, 991);
    assert_eq!(account.sent, []);
}

#[test]
fn flatten_closes_large_positions_lot_by_lot() {
    let mut account = with(|config| {
        config.strategies[0].on_fault = OnFault::Flatten;
        config.instruments[0].filters.market_lot_size = Some(LotSize {
            min_qty: 2,
            max_qty: 10,
            step_size: 2,
        });
    });
    for trade in 0..15 {
        hold(&mut account, MM, 10, trade);
    }
    let odd = account.submit(MM, limit(Side::Buy, 1000, 1));
    fill_all(&mut account, MM, odd, 50);
    fault(&mut account, MM);
    for lot in 0..15 {
        let (seq, side, qty) = *placed(&account).last().unwrap();
        assert_eq!((side, qty), (Side::Sell, 10));
        fill_all(&mut account, MM, seq, 100 + lot);
    }
    assert_eq!(placed(&account).len(), 15);
    assert_eq!(own_qty(&account, MM), 1, "below the minimum lot");
}

#[test]
fn flatten_gives_up_when_nothing_fills() {
    let mut account = faulty(OnFault::Flatten);
    hold(&mut account, MM, 5, 1);
    fault(&mut account, MM);
    for _ in 0..100 {
        let Some((seq, ..)) = placed(&account).last().copied() else {
            break;
        };
        let id = account.id(MM, seq);
        account.placed(id, refused(-2019));
    }
    assert_eq!(placed(&account).len(), 10);
    assert!(account.engine.orders().is_empty());
    assert_eq!(own_qty(&account, MM), 5);
}

#[test]
fn the_operators_flatten_halts_and_closes_every_own_position() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 5, 1);
    hold(&mut account, OTHER, -2, 2);
    account.handle(Input::Command(Command::Flatten));
    let orders: Vec<_> = placed(&account)
        .iter()
        .map(|order| (order.1, order.2))
        .collect();
    assert_eq!(orders, [(Side::Sell, 3)], "the net position");
    assert_eq!(
        refusal(&mut account, MM, market(Side::Buy, 1)),
        Some(Rule::Halted)
    );
}

/// An outside order fills at 100.0.
fn outside(account: &mut Account, side: Side, trade: i64, qty: i64) {
    let id = ClientOrderId::new("web-1").unwrap();
    account.update(super::fill(id, side, trade, qty, qty, OrderStatus::Filled));
}

/// Sides and quantities of the closes, with their wire flags.
fn closes(account: &Account) -> Vec<(Side, i64, bool)> {
    let order = |request: &Request| match request {
        Request::Place(order) => {
            let terms = &order.terms;
            Some((terms.side, terms.qty?.0, terms.reduce_only))
        }
        _ => None,
    };
    account.sent.iter().filter_map(order).collect()
}

#[test]
fn a_position_closed_by_outside_orders_is_not_closed_again() {
    for side in [Side::Buy, Side::Sell] {
        let mut account = with(|_| {});
        hold(&mut account, MM, 5 * side.sign(), 1);
        let close = if side == Side::Buy {
            Side::Sell
        } else {
            Side::Buy
        };
        outside(&mut account, close, 2, 5);
        account.sent.clear();
        account.handle(Input::Command(Command::Flatten));
        assert_eq!(closes(&account), [], "it would open a position");
        assert!(!account.engine.is_flattening(MM), "it counts as flat");
        assert_eq!(own_qty(&account, MM), 0);
        let reported = account.notices.iter().any(|notice| {
            matches!(notice, Notice::ClosedOutside { strategy: MM, qty, .. } if *qty == 5 * side.sign())
        });
        assert!(reported, "{:?}", account.notices);
    }
}

#[test]
fn a_close_is_limited_to_the_rest_after_outside_orders() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 5, 1);
    hold(&mut account, OTHER, 5, 2);
    outside(&mut account, Side::Sell, 3, 4);
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    let all: i64 = closes(&account).iter().map(|close| close.1).sum();
    assert_eq!(all, 6, "{:?}", closes(&account));
    assert!(closes(&account).iter().all(|close| close.2), "reduceOnly");
    for (trade, (seq, _, qty)) in placed(&account).into_iter().enumerate() {
        let strategy = account.engine.order(seq).unwrap().strategy;
        assert!(qty > 0);
        fill_all(&mut account, strategy, seq, 10 + trade as i64);
    }
    assert_eq!((own_qty(&account, MM), own_qty(&account, OTHER)), (0, 0));
    let position = account.engine.ledgers().account.at(BTC, PositionSide::Both);
    assert_eq!(position.position.qty, 0);
}

#[test]
fn strategies_with_opposite_positions_close_without_the_flag() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 5, 1);
    hold(&mut account, OTHER, -5, 2);
    fault(&mut account, MM);
    assert_eq!(closes(&account), [], "it keeps its position");
    account.handle(Input::Steer {
        strategy: OTHER,
        command: Command::Flatten,
    });
    assert_eq!(closes(&account), [(Side::Buy, 5, false)]);
}

#[test]
fn opposite_positions_are_settled_when_the_account_is_flattened() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 5, 1);
    hold(&mut account, OTHER, -5, 2);
    account.top(1099, 1101);
    let flows = account.engine.totals().unwrap().equity;
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(closes(&account), [], "the account is flat");
    assert_eq!((own_qty(&account, MM), own_qty(&account, OTHER)), (0, 0));
    assert!(!account.engine.is_flattening(MM) && !account.engine.is_flattening(OTHER));
    assert_eq!(account.engine.totals().unwrap().equity, flows);
    let gain = |strategy: usize| {
        let own = &account.engine.ledgers().strategies[strategy];
        own.at(BTC, PositionSide::Both).position.realized_pnl
    };
    assert_eq!(
        gain(0),
        Amount(5_000_000),
        "0.005 sold at 110.0, bought at 100.0"
    );
    assert_eq!(gain(1), Amount(-5_000_000));
    let settled = account.notices.iter().find_map(|notice| match notice {
        Notice::Adjusted {
            adjustment: Adjustment::Settled {
                sold, bought, qty, ..
            },
            ..
        } => Some((*sold, *bought, *qty)),
        _ => None,
    });
    assert_eq!(settled, Some((MM, OTHER, 5)));
}

/// A settlement continues the close of the other strategy. That close settles a second instrument
/// and continues the first close.
#[test]
fn settlements_of_two_instruments_leave_one_close_each() {
    const ETH: InstrumentId = InstrumentId(1);
    let mut account = with(|config| {
        let mut eth = config.instruments[0].clone();
        "ETHUSDT".clone_into(&mut eth.symbol);
        config.instruments.push(eth);
        for strategy in &mut config.strategies {
            let mut subscription = strategy.subscriptions[0].clone();
            subscription.instrument = ETH;
            strategy.subscriptions.push(subscription);
        }
    });
    let held: [(_, _, i64); 4] = [
        (MM, BTC, 5),
        (OTHER, BTC, -2),
        (MM, ETH, 7),
        (OTHER, ETH, -3),
    ];
    for (trade, (strategy, instrument, qty)) in (1..).zip(held) {
        let side = if qty > 0 { Side::Buy } else { Side::Sell };
        let mut terms = market(side, qty.abs());
        terms.instrument = instrument;
        let order = account.submit(strategy, terms);
        fill_all(&mut account, strategy, order, trade);
    }
    for instrument in [BTC, ETH] {
        let level = |price| Level { price, qty: 1_000 };
        account.handle(Input::Market {
            instrument,
            event: MarketEvent::Top {
                update_id: 0,
                bid: level(999),
                ask: level(1_001),
            },
        });
    }
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    let mut sales = closes(&account);
    sales.sort_by_key(|(_, qty, _)| *qty);
    assert_eq!(sales, [(Side::Sell, 3, true), (Side::Sell, 4, true)]);
}

#[test]
fn flatten_closes_only_the_net_position_with_reduce_only() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 5, 1);
    hold(&mut account, OTHER, -2, 2);
    let resting = account.submit(OTHER, limit(Side::Sell, 1100, 1));
    account.sent.clear();
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(closes(&account), [(Side::Sell, 3, true)], "the rest waits");
    let (seq, ..) = placed(&account)[0];
    fill_all(&mut account, MM, seq, 3);
    assert_eq!(own_qty(&account, MM), 2);
    assert!(account.engine.is_flattening(MM), "it waits for the cancel");
    // The order fills before its cancel arrives.
    let id = account.id(OTHER, resting);
    account.update(super::fill(id, Side::Sell, 4, 1, 1, OrderStatus::Filled));
    assert_eq!(own_qty(&account, MM), 0);
    assert_eq!(closes(&account).last(), Some(&(Side::Buy, 1, true)));
    let (seq, ..) = *placed(&account).last().unwrap();
    fill_all(&mut account, OTHER, seq, 5);
    assert_eq!((own_qty(&account, MM), own_qty(&account, OTHER)), (0, 0));
    assert!(!account.engine.is_flattening(MM) && !account.engine.is_flattening(OTHER));
}

#[test]
fn strategies_settle_before_a_manual_position_counts() {
    // Positions of two strategies, the quantity that a person sold, and the expected closes.
    for (own, by_hand, expected) in [
        // The account was flat, so the short position belongs to the person.
        ((5, -5), 5, &[][..]),
        // It was already short, and the person sold more.
        ((-5, 1), 3, &[(Side::Buy, 4, true)]),
        // The person closed the net position of 2, and sold one more.
        ((3, -1), 3, &[]),
        ((3, -1), 1, &[(Side::Sell, 1, true)]),
    ] {
        let mut account = with(|_| {});
        hold(&mut account, MM, own.0, 1);
        hold(&mut account, OTHER, own.1, 2);
        outside(&mut account, Side::Sell, 3, by_hand);
        account.sent.clear();
        account.handle(Input::Command(Command::Flatten));
        assert_eq!(closes(&account), expected, "{own:?} {by_hand}");
        for (trade, (seq, ..)) in placed(&account).into_iter().enumerate() {
            let strategy = account.engine.order(seq).unwrap().strategy;
            fill_all(&mut account, strategy, seq, 10 + trade as i64);
        }
        assert_eq!((own_qty(&account, MM), own_qty(&account, OTHER)), (0, 0));
    }
}

#[test]
fn reduce_only_is_limited_to_the_rest_after_outside_orders() {
    let mut account = with(|_| {});
    hold(&mut account, MM, 5, 1);
    outside(&mut account, Side::Sell, 2, 3);
    let mut exit = market(Side::Sell, 3);
    exit.reduce_only = true;
    let refused = refusal(&mut account, MM, exit);
    assert_eq!(refused, Some(Rule::ReduceOnlyPosition));
    exit.qty = Some(windvane_model::Qty(2));
    assert_eq!(refusal(&mut account, MM, exit), None);
}

#[test]
fn a_lost_cancel_can_be_requested_again() {
    let mut account = with(|_| {});
    let order = account.submit(MM, limit(Side::Buy, 900, 1));
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.cancel(MM, order);
    account.canceled(id, Outcome::Unknown);
    assert_eq!(account.engine.order(order).unwrap().state, OrderState::New);
    account.sent.clear();
    account.pass(1_000);
    assert!(
        matches!(account.sent[..], [Request::Query { .. }]),
        "{:?}",
        account.sent
    );
    account.sent.clear();
    account.cancel(MM, order);
    assert_eq!(canceled_ids(&account), [id]);
}

#[test]
fn during_a_halt_a_lost_cancel_is_repeated_for_an_open_order() {
    let mut account = with(|_| {});
    let order = account.submit(MM, limit(Side::Buy, 900, 1));
    let id = account.id(MM, order);
    account.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
    account.handle(Input::Command(Command::Halt));
    account.canceled(id, Outcome::Unknown);
    account.sent.clear();
    account.handle(Input::Reply(&Reply::Queried {
        client_order_id: id,
        outcome: Outcome::Done(report(id, OrderStatus::New, 0)),
    }));
    assert_eq!(canceled_ids(&account), [id]);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    assert!(account.engine.orders().is_empty());
}

#[test]
fn an_order_number_with_another_strategys_name_is_not_own() {
    let mut account = with(|_| {});
    let order = account.submit(MM, limit(Side::Buy, 900, 1));
    let forged = account.id(OTHER, order);
    account.update(update(forged, Side::Buy, OrderStatus::Canceled, 0));
    account.placed(forged, refused(-2019));
    assert_eq!(
        account.engine.order(order).unwrap().state,
        OrderState::Submitted
    );
    let external = |notice: &Notice| matches!(notice, Notice::External { .. });
    assert!(account.notices.iter().any(external));
}

#[test]
fn timers_fire_in_order_once_and_move_when_set_again() {
    let mut account = with(|_| {});
    let start = account.now;
    account.call(MM, |callback, engine| {
        for (ms, token) in [(30, 1), (20, 2), (20, 1), (500, 3)] {
            callback
                .set_timer(engine, start.plus_ms(ms), token)
                .unwrap();
        }
        callback.cancel_timer(3);
        callback.set_timer(engine, Time(0), 4).unwrap();
    });
    let fired = |account: &Account| -> Vec<i64> {
        let timers = account
            .events
            .iter()
            .filter(|event| event.1 == EventKind::Timer);
        timers.map(|event| event.2[0]).collect()
    };
    account.handle(Input::Timeout);
    assert_eq!(
        fired(&account),
        [4],
        "a time that has passed is due at once"
    );
    account.pass(50);
    assert_eq!(fired(&account), [4, 1, 2]);
    assert_eq!(account.engine.poll_timeout(), None);
    account.call(MM, |callback, engine| {
        callback.set_timer(engine, start.plus_ms(900), 1).unwrap();
    });
    fault(&mut account, MM);
    assert_eq!(
        account.engine.poll_timeout(),
        None,
        "quarantine forgets timers"
    );
    assert_eq!(refusal(&mut account, OTHER, limit(Side::Buy, 900, 1)), None);
    assert_eq!(account.engine.instrument(BTC).unwrap().symbol, "BTCUSDT");
}

#[test]
fn a_timer_set_in_every_timer_event_does_not_stop_time() {
    let mut account = with(|_| {});
    let set_now = |account: &mut Account| {
        account.call(MM, |callback, engine| {
            callback.set_timer(engine, engine.now(), 1).unwrap();
        });
    };
    set_now(&mut account);
    let (due, _) = account.engine.poll_timeout().unwrap();
    assert_eq!(due, account.now.plus_ms(1));
    account.now = due;
    account.engine.handle(due, Input::Timeout);
    set_now(&mut account);
    assert!(account.engine.poll_timeout().unwrap().0 > due);
}
