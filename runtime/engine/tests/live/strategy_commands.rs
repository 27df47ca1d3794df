//! Operator commands for one strategy, and changes of the configuration, during a run.

use windvane_engine::{Callback, Engine};
use windvane_model::config::{OnFault, Reconfiguration, StrategyTerms};
use windvane_model::effect::{Cause, Notice};
use windvane_model::event::EventKind;
use windvane_model::input::{Command, FaultKind, StartPhase};
use windvane_model::live::LiveInput;
use windvane_model::order::OrderTerms;
use windvane_model::order_state::OrderState;
use windvane_model::protocol::{AccountReason, AccountUpdate, BalanceUpdate, Refusal};
use windvane_model::risk::RiskLimits;
use windvane_model::rules::Rule;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::state_report::{OpenOrder, StateReport, Subject};
use windvane_model::{
    Amount, ClientOrderId, Input, Intent, OrderSeq, OrderStatus, Outcome, Reply, Request, Side,
    StrategyId, Surface, Time, UserEvent,
};

use super::succession::{killed, next_config};
use super::support::{Account, MM, OTHER, USDT, fill, limit, report, update};
use super::world::ready;

impl Account {
    fn steer(&mut self, strategy: StrategyId, command: Command) {
        self.handle(Input::Steer { strategy, command });
    }

    fn rejection(&mut self, strategy: StrategyId) -> Option<Rule> {
        self.call(strategy, |callback, engine| {
            let rejected = callback.submit(engine, limit(Side::Buy, 990, 10)).err();
            rejected.map(|rejection| rejection.rule)
        })
    }

    /// The states that a strategy received since the last call.
    fn take_delivered(&mut self, strategy: StrategyId) -> Vec<i64> {
        let of = |(to, kind, _): &(StrategyId, EventKind, [i64; 6])| {
            *to == strategy && *kind == EventKind::RuntimeState
        };
        let reported = self.events.iter().filter(|event| of(event));
        let reported = reported.map(|(_, _, fields)| fields[0]).collect();
        self.events.clear();
        reported
    }

    fn cancels(&self) -> usize {
        // A probe of the trading permission cancels no order.
        let probes = |id: &ClientOrderId| id.parse_own().is_some_and(|(.., seq)| seq.0 == u64::MAX);
        let cancels = self.sent.iter();
        cancels
            .filter(|request| {
                matches!(request, Request::Cancel { client_order_id, .. } if !probes(client_order_id))
            })
            .count()
    }

    /// This strategy buys 10 at 100.0.
    fn bought(&mut self, strategy: StrategyId) -> OrderSeq {
        self.traded(strategy, Side::Buy)
    }

    fn sold(&mut self, strategy: StrategyId) -> OrderSeq {
        self.traded(strategy, Side::Sell)
    }

    fn traded(&mut self, strategy: StrategyId, side: Side) -> OrderSeq {
        let order = self.submit(strategy, limit(side, 1000, 10));
        self.confirm_countdowns();
        let id = self.id(strategy, order);
        let trade = i64::try_from(order.0).unwrap();
        self.placed(id, Outcome::Done(report(id, OrderStatus::New, 0)));
        self.update(fill(id, side, trade, 10, 10, OrderStatus::Filled));
        self.sent.clear();
        order
    }

    fn markets(&self) -> usize {
        let places = self.sent.iter();
        places
            .filter(
                |request| matches!(request, Request::Place(order) if order.terms.price.is_none()),
            )
            .count()
    }
}

#[test]
fn a_pause_of_one_strategy_does_not_affect_others() {
    let mut account = ready();
    account.steer(MM, Command::Pause);
    assert_eq!(account.take_delivered(MM), [RunState::Paused as i64]);
    assert_eq!(account.rejection(MM), Some(Rule::Paused));
    assert_eq!(account.rejection(OTHER), None);
    assert_eq!(account.engine.run_state(), RunState::Ready);

    account.handle(Input::Command(Command::Pause));
    account.handle(Input::Command(Command::Resume));
    assert_eq!(
        account.take_delivered(MM),
        [] as [i64; 0],
        "its state did not change"
    );
    assert_eq!(account.rejection(MM), Some(Rule::Paused));
    account.steer(MM, Command::Resume);
    assert_eq!(account.take_delivered(MM), [RunState::Ready as i64]);
    assert_eq!(account.rejection(MM), None);
}

#[test]
fn a_halt_of_one_strategy_cancels_its_orders_and_survives_a_kill() {
    let mut account = ready();
    let order = account.rest();
    let theirs = account.submit(OTHER, limit(Side::Buy, 990, 10));
    account.sent.clear();
    account.steer(MM, Command::Halt);
    let id = account.id(MM, order);
    let cancelled = |request: &Request| matches!(request, Request::Cancel { client_order_id, .. } if *client_order_id == id);
    assert!(matches!(&account.sent[..], [request] if cancelled(request)));
    assert!(account.engine.orders().live(theirs).is_some());
    account.steer(MM, Command::Pause);
    assert_eq!(
        account.engine.kill_switch_of(MM),
        KillSwitch::Halted,
        "the stricter kill switch applies"
    );

    let mut account = killed(account, next_config());
    assert_eq!(account.engine.kill_switch_of(MM), KillSwitch::Halted);
    assert_eq!(account.engine.kill_switch_of(OTHER), KillSwitch::Clear);
    let open = account.open_order(order);
    account.begin();
    account.sync_with(&[open]);
    assert_eq!(account.cancels(), 1, "its open order is cancelled again");
    assert_eq!(account.rejection(MM), Some(Rule::Halted));
}

#[test]
fn a_halted_strategy_cancels_open_orders_that_it_finds() {
    let mut account = ready();
    account.steer(MM, Command::Halt);
    let id = ClientOrderId::new("mm.5.5").unwrap();
    let subject = Subject::OpenOrders {
        surface: Surface::Futures,
    };
    account.wait(31);
    assert_eq!(account.take_question(), Some(subject));
    let open = OpenOrder {
        report: report(id, OrderStatus::New, 0),
        terms: limit(Side::Buy, 990, 10),
    };
    account.tell(subject, StateReport::OpenOrders(vec![open]));
    assert_eq!(account.cancels(), 1);
}

#[test]
fn flatten_of_one_strategy_closes_only_its_position() {
    let mut account = ready();
    account.bought(MM);
    account.bought(OTHER);
    account.steer(MM, Command::Flatten);
    let closing = match &account.sent[..] {
        [Request::Place(order)] => order.terms,
        other => panic!("{other:?}"),
    };
    assert_eq!((closing.side, closing.qty.unwrap().0), (Side::Sell, 10));
    assert!(account.engine.is_flattening(MM) && !account.engine.is_flattening(OTHER));
    account.handle(Input::Command(Command::Resume));
    assert!(
        account.engine.is_flattening(MM),
        "it has its own kill switch"
    );
    assert_eq!(account.rejection(OTHER), None);
}

#[test]
fn resume_withdraws_a_close_that_was_not_sent() {
    let mut account = ready();
    account.bought(MM);
    account.sold(OTHER);
    account.seconds(30);
    account.sent.clear();
    account.steer(MM, Command::Flatten);
    assert!(
        account.take_countdown().is_some(),
        "a close that increases the account's net position waits"
    );
    assert_eq!(account.engine.orders().iter().count(), 1);
    account.steer(MM, Command::Resume);
    account.countdown_reply(Outcome::Done(30_000));
    account.seconds(3);
    assert_eq!(account.markets(), 0, "the close is withdrawn");
    assert_eq!(account.engine.orders().iter().count(), 0);
    assert_eq!(account.rejection(MM), None);
}

#[test]
fn resume_withdraws_the_close_of_a_quarantined_strategy() {
    let commands: [fn(&mut Account, Command); 2] = [
        |account, command| account.handle(Input::Command(command)),
        |account, command| account.steer(MM, command),
    ];
    for command in commands {
        let mut account = ready();
        account.bought(MM);
        let kind = FaultKind::Trap;
        account.handle(Input::Fault { strategy: MM, kind });
        account.seconds(30);
        command(&mut account, Command::Flatten);
        assert!(account.engine.is_flattening(MM));
        command(&mut account, Command::Resume);
        assert!(!account.engine.is_flattening(MM));
    }
}

#[test]
fn a_reducing_close_is_sent_without_a_countdown() {
    let mut account = ready();
    account.bought(MM);
    account.seconds(21);
    account.sent.clear();
    account.steer(MM, Command::Flatten);
    assert_eq!(account.markets(), 1, "the countdown was just disarmed");
    assert_eq!(account.take_countdown(), None);
}

#[test]
fn a_close_against_another_strategy_waits_for_a_countdown() {
    let mut account = ready();
    account.bought(MM);
    account.sold(OTHER);
    account.seconds(21);
    account.sent.clear();
    account.steer(MM, Command::Flatten);
    assert_eq!(
        account.engine.orders().iter().count(),
        0,
        "the countdown was just disarmed"
    );
    account.seconds(8);
    assert_eq!(account.markets(), 1);
}

#[test]
fn closing_waits_for_a_known_account_and_survives_a_kill() {
    let mut account = ready();
    account.bought(MM);
    account.live(LiveInput::StreamDown {
        surface: Surface::Futures,
    });
    account.handle(Input::Command(Command::Flatten));
    assert_eq!(account.markets(), 0, "the account is unknown");
    account.live(LiveInput::StreamUp {
        surface: Surface::Futures,
    });
    account.sync();
    assert_eq!(account.markets(), 1, "the run was halted meanwhile");

    let mut account = ready();
    account.bought(MM);
    account.live(LiveInput::StreamDown {
        surface: Surface::Futures,
    });
    account.steer(MM, Command::Flatten);
    let mut account = killed(account, next_config());
    account.begin();
    account.sync();
    account.confirm_countdowns();
    assert_eq!(account.markets(), 1);
}

#[test]
fn a_new_instance_leaves_quarantine_and_sets_its_own_timers() {
    let mut account = ready();
    let (kind, strategy) = (FaultKind::Fuel, MM);
    account.call(MM, |callback, engine| {
        callback.set_timer(engine, Time::NEVER, 4).unwrap();
    });
    account.handle(Input::Fault { strategy, kind });
    account.steer(MM, Command::Resume);
    assert_eq!(
        account.engine.fault(MM),
        Some(kind),
        "resume does not end a quarantine"
    );
    assert_eq!(account.rejection(MM), Some(Rule::Quarantined));
    account.events.clear();
    account.handle(Input::Renew { strategy });
    assert_eq!(account.engine.fault(MM), None);
    assert_eq!(account.take_delivered(MM), [RunState::Ready as i64]);
    assert_eq!(account.rejection(MM), None);
    let timers = [Intent::SetTimer {
        time: account.now.plus_ms(5),
        token: 4,
    }];
    account.handle(Input::Answer {
        strategy,
        intents: &timers,
    });
    account.handle(Input::Renew { strategy });
    account.events.clear();
    account.pass(10);
    let fired = account.events.iter();
    assert_eq!(
        fired
            .filter(|(_, kind, _)| *kind == EventKind::Timer)
            .count(),
        0
    );
}

#[test]
fn a_new_instance_receives_positions_and_orders_before_ready() {
    let mut account = ready();
    account.bought(MM);
    let order = account.rest();
    account.handle(Input::Saved {
        strategy: MM,
        handled: i64::MAX,
        state: None,
    });
    account.events.clear();
    account.handle(Input::Renew { strategy: MM });
    let reported: Vec<_> = account
        .events
        .iter()
        .map(|(strategy, kind, fields)| (*strategy, *kind, fields[0]))
        .collect();
    assert_eq!(
        reported,
        [
            (MM, EventKind::Rules, 1),
            (MM, EventKind::Position, 10),
            (MM, EventKind::OrderUpdate, OrderState::New as i64),
            (MM, EventKind::RuntimeState, RunState::Ready as i64),
        ]
    );
    assert!(account.engine.order(order).is_some());

    let mut account = killed(account, next_config());
    account.events.clear();
    account.live(LiveInput::Begin);
    let mut of_mm = account.events.iter().filter(|(to, ..)| *to == MM);
    let reported = [of_mm.next(), of_mm.next()];
    let reported = reported.map(|event| event.map(|(_, kind, fields)| (*kind, fields[0])));
    let degraded = (EventKind::RuntimeState, RunState::Degraded as i64);
    let position = (EventKind::Position, 10);
    assert_eq!(
        reported,
        [Some(degraded), Some(position)],
        "also after a restart"
    );
}

#[test]
fn limits_change_during_a_run_if_the_strategies_match() {
    let mut account = ready();
    let terms = |max| StrategyTerms {
        limits: RiskLimits {
            max_open_orders: Some(max),
            ..RiskLimits::default()
        },
        on_fault: OnFault::Keep,
    };
    let mut next = Reconfiguration {
        strategies: vec![terms(0)],
        ..Reconfiguration::default()
    };
    account.handle(Input::Reconfigure(&next));
    assert_eq!(account.rejection(MM), None);
    next.strategies = vec![terms(0), terms(9)];
    account.handle(Input::Reconfigure(&next));
    assert_eq!(account.rejection(MM), Some(Rule::RiskOpenOrders));
    assert_eq!(account.rejection(OTHER), None);
    next.limits.max_open_orders = Some(2);
    account.handle(Input::Reconfigure(&next));
    assert_eq!(
        account.rejection(OTHER),
        Some(Rule::RiskOpenOrders),
        "the account's limit"
    );
}

#[test]
fn external_orders_follow_the_venues_events_and_lists() {
    let mut account = ready();
    let id = ClientOrderId::new("by-hand").unwrap();
    account.update(update(id, Side::Buy, OrderStatus::New, 0));
    let shown: Vec<_> = account.engine.external_orders().copied().collect();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].report.client_order_id, id);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
    assert_eq!(account.engine.external_orders().count(), 0);

    account.wait(31);
    let subject = account.take_question().unwrap();
    account.tell(subject, StateReport::OpenOrders(shown.clone()));
    assert_eq!(account.engine.external_orders().count(), 1);
    account.sync();
    account.wait(31);
    let subject = account.take_question().unwrap();
    account.update(update(id, Side::Buy, OrderStatus::PartiallyFilled, 4));
    account.tell(subject, StateReport::OpenOrders(Vec::new()));
    let shown = account.engine.external_orders().next().unwrap();
    assert_eq!(
        shown.report.executed_qty.0, 4,
        "an event is newer than the list"
    );
    assert_eq!(account.cancels(), 0);
}

#[test]
fn an_account_event_corrects_only_rounding() {
    let mut account = ready();
    account.bought(MM);
    let mut reported = |difference: i128| {
        let balance = account.engine.balance(Surface::Futures, USDT);
        account.notices.clear();
        account.handle(Input::User(&UserEvent::Account(AccountUpdate {
            surface: Surface::Futures,
            reason: AccountReason::Order,
            balances: vec![BalanceUpdate {
                asset: USDT,
                total: balance.total + Amount(difference),
                locked: Amount::ZERO,
                change: Amount::ZERO,
            }],
            positions: Vec::new(),
            transaction_time: Time(0),
            event_time: Time(0),
        })));
        match account.notices[..] {
            [Notice::Adjusted { cause, .. }] => Some(cause),
            [] => None,
            ref other => panic!("{other:?}"),
        }
    };
    // The fill was worth 1 USDT.
    assert_eq!(reported(100), Some(Cause::Rounding));
    assert_eq!(reported(-100), Some(Cause::Rounding));
    assert_eq!(reported(101), None, "another fill may be in flight");
}

#[test]
fn closing_waits_until_the_run_is_healthy_again() {
    let mut account = ready();
    account.bought(MM);
    // No order is open any more, so the countdown is disarmed.
    account.seconds(30);
    account.live(LiveInput::Journal { healthy: false });
    account.handle(Input::Command(Command::Flatten));
    account.seconds(40);
    assert_eq!(account.markets(), 0);
    assert!(account.engine.is_flattening(MM), "no try was used up");
    account.live(LiveInput::Journal { healthy: true });
    account.seconds(3);
    assert_eq!(account.markets(), 1);
}

#[test]
fn closing_continues_after_a_minute_of_rejections() {
    let mut account = ready();
    account.bought(MM);
    account.steer(MM, Command::Flatten);
    for _ in 0..60 {
        let refused = account.sent.iter().rev().find_map(|request| match request {
            Request::Place(order) => Some(order.client_order_id),
            _ => None,
        });
        if let Some(id) = refused {
            let msg = String::new();
            account.placed(id, Outcome::Refused(Refusal { code: -1003, msg }));
        }
        account.seconds(1);
    }
    assert!(account.engine.is_flattening(MM));
    assert!(account.markets() < 10, "{} tries", account.markets());
}

#[test]
fn after_a_halt_a_lost_cancel_is_repeated_without_renewals() {
    let mut account = ready();
    let order = account.rest();
    let id = account.id(MM, order);
    account.sent.clear();
    account.handle(Input::Command(Command::Halt));
    assert_eq!(account.cancels(), 1);
    let mut seen_open = 0;
    for _ in 0..32 {
        account.pass(249);
        while account.queries() > seen_open {
            seen_open += 1;
            let open = report(id, OrderStatus::New, 0);
            account.handle(Input::Reply(&Reply::Queried {
                client_order_id: id,
                outcome: Outcome::Done(open),
            }));
        }
        account.alive();
        account.clock();
    }
    assert!(seen_open >= 2, "it is queried: {seen_open}");
    assert_eq!(account.cancels(), 1 + seen_open);
    let is_renewed = |request: &Request| {
        matches!(
            request,
            Request::Countdown {
                countdown_ms: 1..,
                ..
            }
        )
    };
    assert!(!account.sent.iter().any(is_renewed));
}

#[test]
fn a_start_reports_like_a_renewal_and_its_copy_accepts_no_order() {
    let mut account = ready();
    account.bought(MM);
    let order = account.rest();
    let strategy = MM;
    account.events.clear();
    let phase = StartPhase::Begins;
    account.handle(Input::Start { strategy, phase });
    assert_eq!(account.take_delivered(MM), [RunState::Ready as i64]);
    let copy = Engine::restore_for_start(&account.engine.report()).unwrap();
    let mut callback = Callback::default();
    callback.begin(&copy, MM);
    let refused = callback.submit(&copy, limit(Side::Buy, 990, 10));
    assert_eq!(refused.map_err(|refused| refused.rule), Err(Rule::Degraded));
    // An exit is refused too: the engine may have used its number when the start ends.
    let exit = OrderTerms {
        reduce_only: true,
        ..limit(Side::Sell, 1_010, 10)
    };
    let refused = callback.submit(&copy, exit);
    assert_eq!(refused.map_err(|refused| refused.rule), Err(Rule::Degraded));
    assert_eq!(callback.cancel(&copy, order), Ok(()));
    callback
        .set_timer(&copy, account.now.plus_ms(5), 4)
        .unwrap();
    account.events.clear();
    let phase = StartPhase::Ends;
    account.handle(Input::Start { strategy, phase });
    assert_eq!(account.take_delivered(MM), [RunState::Ready as i64]);
    let intents = callback.intents();
    account.handle(Input::Answer { strategy, intents });
    assert!(account.engine.has_timer(MM, 4));
    let state = account.engine.order(order).map(|order| order.state);
    assert_eq!(state, Some(OrderState::CancelRequested));
}
