//! Random inputs and effects of every variant, with every field at any value.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use windvane_model::codec::{RecordedEffect, RecordedInput};
use windvane_model::config::{OnFault, Reconfiguration, StrategyTerms};
use windvane_model::event::EventKind;
use windvane_model::forced::OnLiquidation;
use windvane_model::input::{Command, FaultKind, StartPhase};
use windvane_model::instrument::SymbolStatus;
use windvane_model::live::{LiveInput, OnStop};
use windvane_model::protocol::{
    AccountReason, AccountUpdate, BalanceUpdate, Fill, OrderReport, OrderUpdate, PositionUpdate,
    Refusal,
};
use windvane_model::risk::RiskLimits;
use windvane_model::rules::{Rejection, Rule};
use windvane_model::state_report::{
    AccountSnapshot, AccountTrade, OpenOrder, StateReport, Subject,
};
use windvane_model::{
    Amount, AssetId, ClientOrderId, Decimal, ExecutionType, InstrumentId, Intent, Level,
    MarketEvent, NewOrder, OrderSeq, OrderStatus, OrderTerms, OrderType, Outcome, OwnedMarketEvent,
    PositionSide, Price, Qty, Reply, Request, Side, StrategyId, Surface, Time, TimeInForce,
    TradeId, UserEvent, VenueOrderId, WorkingType,
};

pub(crate) const COMMANDS: [Command; 4] = [
    Command::Pause,
    Command::Resume,
    Command::Halt,
    Command::Flatten,
];

fn instrument() -> impl Strategy<Value = InstrumentId> {
    any::<u16>().prop_map(InstrumentId)
}

fn strategy() -> impl Strategy<Value = StrategyId> {
    any::<u16>().prop_map(StrategyId)
}

pub(crate) fn time() -> impl Strategy<Value = Time> {
    any::<i64>().prop_map(Time)
}

fn amount() -> impl Strategy<Value = Amount> {
    any::<i128>().prop_map(Amount)
}

fn id() -> impl Strategy<Value = ClientOrderId> {
    "[A-Za-z0-9.:/_-]{1,36}".prop_map(|text| ClientOrderId::new(&text).unwrap())
}

fn level() -> impl Strategy<Value = Level> {
    any::<(i64, i64)>().prop_map(|(price, qty)| Level { price, qty })
}

fn status() -> impl Strategy<Value = SymbolStatus> {
    prop_oneof![
        Just(SymbolStatus::Trading),
        "[A-Z_]{0,20}é?"
            .prop_filter("not the text of the other variant", |word| word
                != "TRADING")
            .prop_map(SymbolStatus::Other),
    ]
}

fn terms() -> impl Strategy<Value = OrderTerms> {
    let words = (
        select(Side::ALL),
        select(PositionSide::ALL),
        select(OrderType::ALL),
        option::of(select(TimeInForce::ALL)),
        option::of(select(WorkingType::ALL)),
    );
    let numbers = (
        any::<[Option<i64>; 4]>(),
        option::of(amount()),
        any::<Option<u32>>(),
        any::<[bool; 3]>(),
    );
    (instrument(), words, numbers).prop_map(|(instrument, words, numbers)| {
        let (side, position_side, order_type, time_in_force, working_type) = words;
        let ([qty, price, stop, activation], quote_qty, callback_ppm, flags) = numbers;
        OrderTerms {
            instrument,
            side,
            position_side,
            order_type,
            time_in_force,
            qty: qty.map(Qty),
            quote_qty,
            price: price.map(Price),
            stop_price: stop.map(Price),
            activation_price: activation.map(Price),
            callback_ppm,
            reduce_only: flags[0],
            close_position: flags[1],
            working_type,
            price_protect: flags[2],
        }
    })
}

fn new_order() -> impl Strategy<Value = NewOrder> {
    (id(), terms()).prop_map(|(client_order_id, terms)| NewOrder {
        client_order_id,
        terms,
    })
}

fn decimal() -> impl Strategy<Value = Decimal> {
    (any::<i64>(), 0..=28_u32).prop_map(|(mantissa, scale)| Decimal::new(mantissa, scale))
}

fn intent() -> impl Strategy<Value = Intent> {
    let order = || any::<u64>().prop_map(OrderSeq);
    prop_oneof![
        (order(), terms()).prop_map(|(order, terms)| Intent::Submit { order, terms }),
        (terms(), select(Rule::ALL), decimal(), decimal()).prop_map(
            |(terms, rule, value, limit)| Intent::Rejected {
                terms,
                rejection: Rejection { rule, value, limit },
            }
        ),
        order().prop_map(|order| Intent::Cancel { order }),
        option::of(instrument()).prop_map(|instrument| Intent::CancelAll { instrument }),
        (time(), any::<i64>()).prop_map(|(time, token)| Intent::SetTimer { time, token }),
        any::<i64>().prop_map(|token| Intent::CancelTimer { token }),
    ]
}

fn outcome<T: Clone + std::fmt::Debug>(
    done: impl Strategy<Value = T>,
) -> impl Strategy<Value = Outcome<T>> {
    prop_oneof![
        done.prop_map(Outcome::Done),
        (any::<i32>(), ".{0,40}").prop_map(|(code, msg)| Outcome::Refused(Refusal { code, msg })),
        Just(Outcome::Unknown),
    ]
}

fn report() -> impl Strategy<Value = OrderReport> {
    let numbers = (any::<[i64; 4]>(), amount());
    (id(), instrument(), select(OrderStatus::ALL), numbers).prop_map(
        |(client_order_id, instrument, status, (numbers, cum_quote))| OrderReport {
            client_order_id,
            order_id: VenueOrderId(numbers[0]),
            instrument,
            status,
            orig_qty: Qty(numbers[1]),
            executed_qty: Qty(numbers[2]),
            cum_quote,
            update_time: Time(numbers[3]),
        },
    )
}

fn reply() -> impl Strategy<Value = Reply> {
    let of_order = || (id(), outcome(report()));
    prop_oneof![
        of_order().prop_map(|(client_order_id, outcome)| Reply::Placed {
            client_order_id,
            outcome
        }),
        of_order().prop_map(|(client_order_id, outcome)| Reply::Canceled {
            client_order_id,
            outcome
        }),
        of_order().prop_map(|(client_order_id, outcome)| Reply::Queried {
            client_order_id,
            outcome
        }),
        (instrument(), outcome(Just(()))).prop_map(|(instrument, outcome)| Reply::CanceledAll {
            instrument,
            outcome
        }),
        (instrument(), outcome(any::<u64>())).prop_map(|(instrument, outcome)| {
            Reply::Countdown {
                instrument,
                outcome,
            }
        }),
        outcome(Just(())).prop_map(|outcome| Reply::PositionMode { outcome }),
        (instrument(), outcome(any::<u32>())).prop_map(|(instrument, outcome)| {
            Reply::Leverage {
                instrument,
                outcome,
            }
        }),
        (subject(), outcome(state_report()))
            .prop_map(|(subject, outcome)| Reply::Read { subject, outcome }),
    ]
}

fn subject() -> impl Strategy<Value = Subject> {
    let from = option::of(any::<i64>().prop_map(TradeId));
    prop_oneof![
        select(Surface::ALL).prop_map(|surface| Subject::OpenOrders { surface }),
        select(Surface::ALL).prop_map(|surface| Subject::Account { surface }),
        (instrument(), from).prop_map(|(instrument, from)| Subject::Trades { instrument, from }),
        instrument().prop_map(|instrument| Subject::ForcedOrders { instrument }),
        (instrument(), any::<i64>()).prop_map(|(instrument, id)| Subject::OutsideOrder {
            instrument,
            order_id: VenueOrderId(id),
        }),
        (instrument(), any::<i64>()).prop_map(|(instrument, id)| Subject::TradedOrder {
            instrument,
            order_id: VenueOrderId(id),
        }),
        instrument().prop_map(|instrument| Subject::NewestOrders { instrument }),
        select(Surface::ALL).prop_map(|surface| Subject::Rules { surface }),
        any::<i64>().prop_map(|from| Subject::Income { from: Time(from) }),
        any::<[u16; 2]>().prop_map(|[asset, quote]| Subject::AssetPrice {
            asset: AssetId(asset),
            quote: AssetId(quote),
        }),
    ]
}

fn state_report() -> impl Strategy<Value = StateReport> {
    let open = (report(), terms()).prop_map(|(report, terms)| OpenOrder { report, terms });
    let trade = (
        any::<[i64; 2]>(),
        select(Side::ALL),
        select(PositionSide::ALL),
        fill(),
    );
    let trade = trade.prop_map(
        |([order_id, time], side, position_side, fill)| AccountTrade {
            order_id: VenueOrderId(order_id),
            side,
            position_side,
            fill,
            time: Time(time),
        },
    );
    prop_oneof![
        vec(open, 0..4).prop_map(StateReport::OpenOrders),
        (vec(trade, 0..4), any::<bool>())
            .prop_map(|(trades, more)| StateReport::Trades { trades, more }),
        account_snapshot().prop_map(StateReport::Account),
        any::<i64>().prop_map(|price| StateReport::AssetPrice(Amount(price.into()))),
    ]
}

fn account_snapshot() -> impl Strategy<Value = AccountSnapshot> {
    let flag = || option::of(any::<bool>());
    let lists = (vec(balance(), 0..4), vec(position(), 0..4));
    let source = (any::<bool>(), option::of(any::<i64>().prop_map(Time)));
    (flag(), flag(), flag(), lists, source).prop_map(
        |(can_trade, hedge_mode, multi_assets, (balances, positions), source)| AccountSnapshot {
            can_trade,
            hedge_mode,
            multi_assets,
            balances,
            positions,
            lags: source.0,
            updated: source.1,
        },
    )
}

fn live_input() -> impl Strategy<Value = LiveInput> {
    let surface = || select(Surface::ALL);
    prop_oneof![
        Just(LiveInput::Begin),
        surface().prop_map(|surface| LiveInput::StreamUp { surface }),
        surface().prop_map(|surface| LiveInput::StreamDown { surface }),
        surface().prop_map(|surface| LiveInput::StreamAlive { surface }),
        (surface(), any::<[i64; 2]>()).prop_map(|(surface, [offset_ns, error_ns])| {
            LiveInput::Clock {
                surface,
                offset_ns,
                error_ns,
            }
        }),
        any::<bool>().prop_map(|healthy| LiveInput::Journal { healthy }),
        Just(LiveInput::Stop),
        any::<bool>().prop_map(|armed| LiveInput::Watchdog { armed }),
        any::<u64>().prop_map(|number| LiveInput::HeartbeatAcknowledged { number }),
    ]
}

fn fill() -> impl Strategy<Value = Fill> {
    let amounts = (amount(), amount(), option::of(amount()));
    (any::<[i64; 3]>(), amounts, any::<u16>(), any::<bool>()).prop_map(
        |([trade_id, price, qty], (quote_qty, fee, realized_pnl), asset, maker)| Fill {
            trade_id: TradeId(trade_id),
            price: Price(price),
            qty: Qty(qty),
            quote_qty,
            fee,
            fee_asset: AssetId(asset),
            maker,
            realized_pnl,
        },
    )
}

fn order_update() -> impl Strategy<Value = OrderUpdate> {
    let words = (
        select(Side::ALL),
        select(PositionSide::ALL),
        select(OrderType::ALL),
        select(TimeInForce::ALL),
        select(ExecutionType::ALL),
        select(OrderStatus::ALL),
    );
    let rest = (any::<[i64; 7]>(), any::<bool>(), option::of(fill()));
    (id(), instrument(), words, rest).prop_map(|(client_order_id, instrument, words, rest)| {
        let (side, position_side, order_type, time_in_force, execution, status) = words;
        let (numbers, reduce_only, fill) = rest;
        OrderUpdate {
            client_order_id,
            order_id: VenueOrderId(numbers[0]),
            instrument,
            side,
            position_side,
            order_type,
            time_in_force,
            orig_qty: Qty(numbers[1]),
            price: Price(numbers[2]),
            stop_price: Price(numbers[3]),
            reduce_only,
            execution,
            status,
            executed_qty: Qty(numbers[4]),
            transaction_time: Time(numbers[5]),
            event_time: Time(numbers[6]),
            fill,
        }
    })
}

fn balance() -> impl Strategy<Value = BalanceUpdate> {
    (any::<u16>(), amount(), amount(), amount()).prop_map(|(asset, total, locked, change)| {
        BalanceUpdate {
            asset: AssetId(asset),
            total,
            locked,
            change,
        }
    })
}

fn position() -> impl Strategy<Value = PositionUpdate> {
    let side = select(PositionSide::ALL);
    (instrument(), side, any::<i64>(), amount()).prop_map(
        |(instrument, position_side, qty, cost)| PositionUpdate {
            instrument,
            position_side,
            qty: Qty(qty),
            cost,
        },
    )
}

fn account_update() -> impl Strategy<Value = AccountUpdate> {
    let reasons = [
        AccountReason::Order,
        AccountReason::FundingFee,
        AccountReason::Other,
        AccountReason::Charge,
    ];
    (
        select(Surface::ALL),
        select(reasons.to_vec()),
        vec(balance(), 0..4),
        vec(position(), 0..4),
        (time(), proptest::option::of(time())),
    )
        .prop_map(
            |(surface, reason, balances, positions, (event_time, made))| AccountUpdate {
                surface,
                reason,
                balances,
                positions,
                transaction_time: made.unwrap_or(event_time),
                event_time,
            },
        )
}

fn user_event() -> impl Strategy<Value = UserEvent> {
    prop_oneof![
        order_update().prop_map(UserEvent::Order),
        account_update().prop_map(UserEvent::Account),
        Just(UserEvent::MarginCall),
        (instrument(), any::<u32>()).prop_map(|(instrument, leverage)| UserEvent::Leverage {
            instrument,
            leverage
        }),
        any::<bool>().prop_map(|hedge| UserEvent::PositionMode { hedge }),
        any::<bool>().prop_map(|multi_assets| UserEvent::AssetMode { multi_assets }),
    ]
}

fn market_event() -> impl Strategy<Value = OwnedMarketEvent> {
    let plain = prop_oneof![
        (any::<[i64; 3]>(), any::<bool>()).prop_map(|([price, qty, trade_id], buyer_is_maker)| {
            MarketEvent::Trade {
                price,
                qty,
                trade_id,
                buyer_is_maker,
            }
        }),
        (any::<i64>(), level(), level()).prop_map(|(update_id, bid, ask)| MarketEvent::Top {
            update_id,
            bid,
            ask
        }),
        Just(MarketEvent::Gap),
        any::<[i64; 4]>().prop_map(|[mark, index, funding_rate, next]| MarketEvent::Mark {
            mark,
            index,
            funding_rate,
            next_funding: Time(next),
        }),
    ];
    let levels = (vec(level(), 0..9), vec(level(), 0..9));
    prop_oneof![
        4 => plain.prop_map(OwnedMarketEvent::Plain),
        1 => (any::<(i64, bool)>(), levels).prop_map(|((update_id, snapshot), (bids, asks))| {
            OwnedMarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            }
        }),
    ]
}

/// Any input.
pub(crate) fn input() -> impl Strategy<Value = RecordedInput> {
    prop_oneof![
        (instrument(), market_event())
            .prop_map(|(instrument, event)| RecordedInput::Market { instrument, event }),
        (strategy(), vec(intent(), 1..6))
            .prop_map(|(strategy, intents)| RecordedInput::Answer { strategy, intents }),
        reply().prop_map(RecordedInput::Reply),
        user_event().prop_map(RecordedInput::User),
        Just(RecordedInput::Timeout),
        (strategy(), select(FaultKind::ALL.to_vec()))
            .prop_map(|(strategy, kind)| RecordedInput::Fault { strategy, kind }),
        select(COMMANDS.to_vec()).prop_map(RecordedInput::Command),
        (strategy(), select(COMMANDS.to_vec()))
            .prop_map(|(strategy, command)| RecordedInput::Steer { strategy, command }),
        strategy().prop_map(|strategy| RecordedInput::Renew { strategy }),
        (strategy(), select(StartPhase::ALL.to_vec()))
            .prop_map(|(strategy, phase)| RecordedInput::Start { strategy, phase }),
        (
            strategy(),
            any::<i64>(),
            option::of(vec(any::<u8>(), 0..40))
        )
            .prop_map(|(strategy, handled, state)| RecordedInput::Saved {
                strategy,
                handled,
                state,
            }),
        reconfiguration().prop_map(RecordedInput::Reconfigure),
        live_input().prop_map(RecordedInput::Live),
        (instrument(), status())
            .prop_map(|(instrument, status)| RecordedInput::SymbolStatus { instrument, status }),
        select(OnLiquidation::ALL.to_vec()).prop_map(RecordedInput::OnLiquidation),
    ]
}

fn reconfiguration() -> impl Strategy<Value = Reconfiguration> {
    let limits = || {
        (any::<Option<u32>>(), any::<Option<i64>>()).prop_map(|(orders, loss)| RiskLimits {
            max_open_orders: orders,
            max_daily_loss: loss.map(|loss| Amount(loss.into())),
            ..RiskLimits::default()
        })
    };
    let terms = limits().prop_map(|limits| StrategyTerms {
        limits,
        on_fault: OnFault::Flatten,
    });
    (limits(), vec(terms, 0..3), ".{0,20}").prop_map(|(limits, strategies, circumstances)| {
        Reconfiguration {
            limits,
            strategies,
            on_stop: OnStop::Keep,
            circumstances,
        }
    })
}

fn request() -> impl Strategy<Value = Request> {
    let order = || (instrument(), id());
    prop_oneof![
        new_order().prop_map(Request::Place),
        vec(new_order(), 0..5).prop_map(Request::PlaceBatch),
        order().prop_map(|(instrument, client_order_id)| Request::Cancel {
            instrument,
            client_order_id
        }),
        (instrument(), vec(id(), 0..5)).prop_map(|(instrument, client_order_ids)| {
            Request::CancelBatch {
                instrument,
                client_order_ids,
            }
        }),
        instrument().prop_map(|instrument| Request::CancelAll { instrument }),
        (instrument(), any::<u64>()).prop_map(|(instrument, countdown_ms)| Request::Countdown {
            instrument,
            countdown_ms
        }),
        order().prop_map(|(instrument, client_order_id)| Request::Query {
            instrument,
            client_order_id
        }),
        any::<bool>().prop_map(|hedge| Request::SetPositionMode { hedge }),
        (instrument(), any::<u32>()).prop_map(|(instrument, leverage)| Request::SetLeverage {
            instrument,
            leverage
        }),
        subject().prop_map(Request::Read),
    ]
}

/// Any effect, as it is read back.
pub(crate) fn effect() -> impl Strategy<Value = RecordedEffect> {
    prop_oneof![
        (strategy(), select(EventKind::ALL)).prop_map(|(strategy, kind)| {
            RecordedEffect::Deliver {
                strategy,
                kind,
                sequence: None,
            }
        }),
        (any::<u64>(), request())
            .prop_map(|(record, request)| RecordedEffect::Send { record, request }),
        select(Surface::ALL).prop_map(|surface| RecordedEffect::Reconnect { surface }),
        any::<u64>().prop_map(|number| RecordedEffect::Heartbeat { number }),
    ]
}
