//! The user events of one moment, as the venue's choices arrange them: which events are sent, which
//! are merged, and in which order. The history of the account always has all events.

use windvane_model::{ExecutionType, Surface};
use windvane_sim::{Cause, OrderEvent, PositionView, StreamEvent};

use super::{
    AccountEvents, AccountOrder, Choices, FillEvents, LiquidationEvents, LiquidationReason,
    RestExpires, SpotLockEvents, TransferReason, UnfilledAccount,
};

/// A user event to send, and the reason that replaces its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arranged {
    pub(crate) event: StreamEvent,
    pub(crate) reason: Option<&'static str>,
}

/// Whether an order comes from the venue itself: a liquidation or auto-deleveraging.
pub(crate) fn is_forced(event: &OrderEvent) -> bool {
    let id = event.update.client_order_id;
    id.as_str().starts_with("autoclose-") || id.as_str().starts_with("adl_autoclose")
}

/// Arranges the events of one moment of one account.
pub(crate) fn arrange(choices: &Choices, events: Vec<StreamEvent>) -> Vec<Arranged> {
    let mut events = with_reasons(choices, events);
    events.retain(|arranged| is_sent(choices, &arranged.event));
    if choices.of::<SpotLockEvents>() == SpotLockEvents::Fills {
        drop_lock_events(&mut events);
    }
    if choices.of::<FillEvents>() == FillEvents::Last {
        keep_last_fills(&mut events);
    }
    if choices.of::<RestExpires>() == RestExpires::One {
        join_fill_and_expiry(&mut events);
    }
    if choices.of::<AccountEvents>() == AccountEvents::Merged {
        merge_accounts(&mut events);
    }
    match choices.of::<AccountOrder>() {
        AccountOrder::After => events,
        AccountOrder::Before => accounts_first(events),
    }
}

fn with_reasons(choices: &Choices, events: Vec<StreamEvent>) -> Vec<Arranged> {
    let mut forced = false;
    let mut arranged = Vec::with_capacity(events.len());
    for event in events {
        let reason = match &event {
            StreamEvent::Order(order) => {
                forced = order.update.fill.is_some() && is_forced(order);
                None
            }
            StreamEvent::Futures {
                cause: Cause::Order,
                ..
            } if forced => match choices.of::<LiquidationReason>() {
                LiquidationReason::Order => None,
                LiquidationReason::Insurance => Some("INSURANCE_CLEAR"),
                LiquidationReason::Adjustment => Some("ADJUSTMENT"),
            },
            StreamEvent::Futures {
                cause: Cause::AssetTransfer,
                balances,
                ..
            } => match choices.of::<TransferReason>() {
                TransferReason::Asset => None,
                TransferReason::Margin => Some("MARGIN_TRANSFER"),
                TransferReason::Deposit => {
                    let comes = balances.iter().any(|(_, change)| change.0 > 0);
                    Some(if comes { "DEPOSIT" } else { "WITHDRAW" })
                }
            },
            _ => None,
        };
        arranged.push(Arranged { event, reason });
    }
    arranged
}

fn is_sent(choices: &Choices, event: &StreamEvent) -> bool {
    let StreamEvent::Order(order) = event else {
        return true;
    };
    let announced = order.update.execution == ExecutionType::New;
    let silent_start =
        announced && choices.of::<LiquidationEvents>() == LiquidationEvents::FillOnly;
    let silent = choices.of::<UnfilledAccount>() == UnfilledAccount::AccountOnly;
    !(is_forced(order) && (silent_start || silent))
}

fn fill_of(event: &StreamEvent) -> Option<&OrderEvent> {
    match event {
        StreamEvent::Order(order) if order.update.fill.is_some() => Some(order),
        _ => None,
    }
}

const fn is_trading_account(event: &StreamEvent) -> bool {
    matches!(
        event,
        StreamEvent::Futures {
            cause: Cause::Order,
            ..
        } | StreamEvent::Spot {
            cause: Cause::Order,
            ..
        }
    )
}

/// Spot: drops account events that do not follow a fill. They report only that an amount was locked
/// or released.
fn drop_lock_events(events: &mut Vec<Arranged>) {
    let mut filled = false;
    events.retain(|arranged| match &arranged.event {
        StreamEvent::Order(order) => {
            filled = order.update.fill.is_some();
            true
        }
        StreamEvent::Spot {
            cause: Cause::Order,
            ..
        } => filled,
        _ => true,
    });
}

/// Keeps only the last fill of each order.
fn keep_last_fills(events: &mut Vec<Arranged>) {
    let ids: Vec<_> = events
        .iter()
        .map(|arranged| fill_of(&arranged.event).map(|order| order.update.order_id))
        .collect();
    let mut place = 0;
    events.retain(|_| {
        let again = ids[place].is_some() && ids[place + 1..].contains(&ids[place]);
        place += 1;
        !again
    });
}

/// Merges a fill with the following expiry of its order into one event.
fn join_fill_and_expiry(events: &mut Vec<Arranged>) {
    let mut joined = Vec::new();
    for place in 0..events.len() {
        let Some(fill) = fill_of(&events[place].event) else {
            continue;
        };
        let (id, details) = (fill.update.order_id, fill.update.fill);
        let mut later = events.iter_mut().skip(place + 1);
        let expiry = later.find_map(|arranged| match &mut arranged.event {
            StreamEvent::Order(order) if order.update.order_id == id => Some(order),
            _ => None,
        });
        let expiry = expiry.filter(|order| {
            order.update.execution != ExecutionType::Trade && order.update.fill.is_none()
        });
        if let Some(order) = expiry {
            order.update.fill = details;
            joined.push(place);
        }
    }
    let mut place = 0;
    events.retain(|_| {
        place += 1;
        !joined.contains(&(place - 1))
    });
}

/// Keeps only the last account event, with the entries of the earlier ones added.
fn merge_accounts(events: &mut Vec<Arranged>) {
    let mut merged: Vec<Arranged> = Vec::with_capacity(events.len());
    for mut arranged in std::mem::take(events) {
        if is_trading_account(&arranged.event) {
            let same = |earlier: &Arranged| {
                is_trading_account(&earlier.event)
                    && earlier.reason == arranged.reason
                    && surface(&earlier.event) == surface(&arranged.event)
            };
            if let Some(at) = merged.iter().position(same) {
                let earlier = merged.remove(at);
                take_in(&mut arranged.event, earlier.event);
            }
        }
        merged.push(arranged);
    }
    *events = merged;
}

const fn surface(event: &StreamEvent) -> Surface {
    match event {
        StreamEvent::Spot { .. } => Surface::Spot,
        _ => Surface::Futures,
    }
}

fn take_in(last: &mut StreamEvent, earlier: StreamEvent) {
    match (last, earlier) {
        (
            StreamEvent::Futures {
                balances,
                positions,
                ..
            },
            StreamEvent::Futures {
                balances: more,
                positions: held,
                ..
            },
        ) => {
            for entry in more {
                if balances.iter().all(|(own, _)| own.asset != entry.0.asset) {
                    balances.push(entry);
                }
            }
            for view in held {
                let key = (view.instrument, view.position_side);
                let listed = |own: &PositionView| (own.instrument, own.position_side) == key;
                if !positions.iter().any(listed) {
                    positions.push(view);
                }
            }
        }
        (StreamEvent::Spot { balances, .. }, StreamEvent::Spot { balances: more, .. }) => {
            for entry in more {
                if balances.iter().all(|own| own.asset != entry.asset) {
                    balances.push(entry);
                }
            }
        }
        _ => {}
    }
}

/// Moves each account event before the fills that caused it.
fn accounts_first(events: Vec<Arranged>) -> Vec<Arranged> {
    let mut arranged: Vec<Arranged> = Vec::with_capacity(events.len());
    let mut group = 0;
    for event in events {
        if is_trading_account(&event.event) {
            let fills = arranged[group..]
                .iter()
                .position(|earlier| fill_of(&earlier.event).is_some());
            let at = fills.map_or(arranged.len(), |first| group + first);
            arranged.insert(at, event);
            group = arranged.len();
        } else {
            arranged.push(event);
        }
    }
    arranged
}
