//! One random step. It contains only numbers; the world in which it happens gives them a meaning.

use proptest::prelude::*;
use proptest::sample::select;
use windvane_model::input::{Command, FaultKind};
use windvane_model::{InstrumentId, OrderStatus, OrderType, Side};

/// The order of a step: an index into the existing orders, newest first.
pub(crate) type Pick = usize;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) instrument: InstrumentId,
    pub(crate) side: Side,
    pub(crate) order_type: OrderType,
    pub(crate) price: i64,
    pub(crate) qty: i64,
    pub(crate) reduce_only: bool,
}

/// The venue's reply to a request about an order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Done,
    Refused,
    Unknown,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One callback of a strategy: cancels, then orders.
    Callback {
        strategy: u16,
        cancels: Vec<Pick>,
        cancel_all: bool,
        wishes: Vec<Wish>,
        timer_ms: Option<i64>,
    },
    Placed(Pick, Answer),
    Canceled(Pick, Answer),
    Queried(Pick, Answer),
    /// The venue executes a part of an order. `tell` is whether the update is delivered.
    Execute {
        pick: Pick,
        qty: i64,
        fee: i64,
        tell: bool,
    },
    /// The venue ends an order.
    End {
        pick: Pick,
        status: OrderStatus,
        tell: bool,
    },
    /// An update is delivered again, or late.
    Again(usize),
    /// An outside fill on the account.
    External {
        instrument: InstrumentId,
        side: Side,
        qty: i64,
        price: i64,
        known: bool,
    },
    Funding(i64),
    Transfer(i64),
    BalanceCorrection(i64),
    PositionCorrection {
        qty: i64,
        cost: i64,
    },
    Top {
        instrument: InstrumentId,
        bid: i64,
        spread: i64,
    },
    Mark(i64),
    Pass(i64),
    Fault {
        strategy: u16,
        kind: FaultKind,
    },
    Command(Command),
}

pub(crate) const FUTURES: InstrumentId = InstrumentId(0);
pub(crate) const SPOT: InstrumentId = InstrumentId(1);

fn instrument() -> impl Strategy<Value = InstrumentId> {
    prop_oneof![3 => Just(FUTURES), 1 => Just(SPOT)]
}

fn price() -> impl Strategy<Value = i64> {
    980..1020_i64
}

fn wish() -> impl Strategy<Value = Wish> {
    let order_type = prop_oneof![
        4 => Just(OrderType::Limit),
        2 => Just(OrderType::Market),
        1 => Just(OrderType::StopMarket),
    ];
    (
        instrument(),
        select(Side::ALL),
        order_type,
        price(),
        1..40_i64,
        prop::bool::weighted(0.2),
    )
        .prop_map(
            |(instrument, side, order_type, price, qty, reduce_only)| Wish {
                instrument,
                side,
                order_type,
                price,
                qty,
                reduce_only,
            },
        )
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        4 => Just(Answer::Done),
        1 => Just(Answer::Refused),
        1 => Just(Answer::Unknown)
    ]
}

fn callback() -> impl Strategy<Value = Step> {
    (
        0..2_u16,
        prop::collection::vec(0..8_usize, 0..3),
        prop::bool::weighted(0.05),
        prop::collection::vec(wish(), 0..4),
        proptest::option::weighted(0.1, -5..50_i64),
    )
        .prop_map(
            |(strategy, cancels, cancel_all, wishes, timer_ms)| Step::Callback {
                strategy,
                cancels,
                cancel_all,
                wishes,
                timer_ms,
            },
        )
}

/// Steps in which the venue answers and executes orders, loses and repeats events, outsiders trade,
/// and strategies place and cancel orders. No strategy fails and no operator intervenes.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let pick = || 0..8_usize;
    let ends = [
        OrderStatus::Canceled,
        OrderStatus::Expired,
        OrderStatus::Rejected,
    ];
    prop_oneof![
        8 => callback(),
        3 => (pick(), answer()).prop_map(|(p, a)| Step::Placed(p, a)),
        2 => (pick(), answer()).prop_map(|(p, a)| Step::Canceled(p, a)),
        1 => (pick(), answer()).prop_map(|(p, a)| Step::Queried(p, a)),
        8 => (pick(), 1..40_i64, -50..5_000_i64, prop::bool::weighted(0.8))
            .prop_map(|(pick, qty, fee, tell)| Step::Execute { pick, qty, fee, tell }),
        3 => (pick(), select(ends.to_vec()), prop::bool::weighted(0.8))
            .prop_map(|(pick, status, tell)| Step::End { pick, status, tell }),
        4 => any::<usize>().prop_map(Step::Again),
        1 => (instrument(), select(Side::ALL), 1..30_i64, price(), any::<bool>()).prop_map(
            |(instrument, side, qty, price, known)| Step::External {
                instrument, side, qty, price, known
            }
        ),
        1 => (-1_000..1_000_i64).prop_map(Step::Funding),
        1 => (-1_000..1_000_i64).prop_map(Step::Transfer),
        1 => (-1_000..1_000_i64).prop_map(Step::BalanceCorrection),
        1 => (-40..40_i64, 1..1_000_000_i64)
            .prop_map(|(qty, cost)| Step::PositionCorrection { qty, cost }),
        3 => (instrument(), price(), 1..5_i64)
            .prop_map(|(instrument, bid, spread)| Step::Top { instrument, bid, spread }),
        1 => price().prop_map(Step::Mark),
        2 => (0..3_000_i64).prop_map(Step::Pass),
    ]
}

/// The steps of [`step`], with rare faults of strategies and operator commands, which end most
/// trading.
pub(crate) fn step_with_faults() -> impl Strategy<Value = Step> {
    let commands = [
        Command::Pause,
        Command::Resume,
        Command::Halt,
        Command::Flatten,
    ];
    prop_oneof![
        40 => step(),
        1 => (0..2_u16, select(FaultKind::ALL.to_vec()))
            .prop_map(|(strategy, kind)| Step::Fault { strategy, kind }),
        2 => select(commands.to_vec()).prop_map(Step::Command),
    ]
}
