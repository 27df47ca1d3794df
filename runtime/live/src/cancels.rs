//! The own orders that a halt or flatten cancels: which ones, and what became of them.

use windvane_admin::{Cancels, StillOpen};
use windvane_engine::Engine;
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::{Instrument, OrderSeq, OrderType, StrategyId};
use windvane_session::{Driver, Guests};

use super::show;

/// The orders that a halt would cancel now: those that may be open at the venue, of one strategy or
/// of all. Market orders are left out: they cannot rest, so they are closes.
pub fn cancelled_by<G: Guests>(driver: &Driver<G>, strategy: Option<StrategyId>) -> Vec<OrderSeq> {
    let orders = show::own_orders(driver).filter(|order| {
        let concerned = strategy.is_none_or(|one| one == order.strategy);
        concerned && order.terms.order_type != OrderType::Market && !order.state.is_final()
    });
    orders.map(|order| order.seq).collect()
}

/// Whether none of the orders may be open at the venue any more.
pub fn are_over(engine: &Engine, orders: &[OrderSeq]) -> bool {
    let mut states = orders.iter().map(|order| state(engine, *order));
    states.all(|state| !matches!(state, State::Open(_)))
}

/// The state of the orders now.
pub fn shown(engine: &Engine, orders: &[OrderSeq]) -> Cancels {
    let mut cancels = Cancels {
        orders: orders.len() as u64,
        ..Cancels::default()
    };
    for order in orders {
        match state(engine, *order) {
            State::Cancelled => cancels.cancelled += 1,
            State::Filled => cancels.filled += 1,
            State::Ended => cancels.ended += 1,
            State::Open(order) => {
                cancels.open += 1;
                if cancels.still_open.len() < Cancels::LISTED_MAX {
                    cancels.still_open.push(still_open(engine, order));
                }
            }
        }
    }
    cancels
}

enum State<'a> {
    Cancelled,
    Filled,
    Ended,
    Open(&'a Order),
}

fn state(engine: &Engine, order: OrderSeq) -> State<'_> {
    // The engine forgets an order some time after its end.
    let Some(order) = engine.known_order(order) else {
        return State::Ended;
    };
    match order.state {
        OrderState::Canceled => State::Cancelled,
        OrderState::Filled => State::Filled,
        // The venue may have reported the end while a fill is still missing.
        state if state.is_final() || order.reported_final.is_some() => State::Ended,
        _ => State::Open(order),
    }
}

fn still_open(engine: &Engine, order: &Order) -> StillOpen {
    let instrument = engine.instrument(order.instrument());
    StillOpen {
        client_order_id: order.client_order_id.as_str().to_owned(),
        instrument: instrument.map(Instrument::name).unwrap_or_default(),
        strategy: engine
            .strategy_name(order.strategy)
            .unwrap_or("unknown")
            .to_owned(),
        side: order.terms.side.as_str().to_owned(),
    }
}
