//! The host's functions, implemented by the desk with the signatures of the contract.

use std::cell::RefCell;

use super::desk::Desk;

thread_local! {
    /// The desk of the harness whose strategy runs on this thread. Tests of one process run on
    /// several threads, and each thread has its own desk.
    static DESK: RefCell<Desk> = RefCell::new(Desk::default());
}

/// Makes `desk` answer the strategy's calls to the host while `callback` runs, then takes it back.
pub(super) fn lend(desk: &mut Desk, callback: impl FnOnce()) {
    DESK.with_borrow_mut(|slot| std::mem::swap(slot, desk));
    callback();
    DESK.with_borrow_mut(|slot| std::mem::swap(slot, desk));
}

pub(crate) mod orders {
    use super::DESK;
    use crate::instrument::InstrumentId;
    use crate::order::{Order, OrderId};

    #[expect(clippy::too_many_arguments, reason = "the contract's signature")]
    pub(crate) fn submit(
        instrument: u32,
        flags: u32,
        qty: i64,
        price: i64,
        stop_price: i64,
        activation_price: i64,
        callback_ppm: u32,
        quote_qty: i64,
        _group: i64,
        _trail: i64,
    ) -> i64 {
        let instrument = InstrumentId(instrument);
        let order = Order {
            instrument,
            flags,
            qty,
            price,
            stop_price,
            activation_price,
            callback_ppm,
            quote_qty,
        };
        DESK.with_borrow_mut(|desk| desk.submit(order))
    }

    pub(crate) fn cancel(order: i64) -> i64 {
        DESK.with_borrow_mut(|desk| desk.cancel(OrderId(order)))
    }

    pub(crate) fn cancel_all(instrument: i32) -> i64 {
        let instrument = u32::try_from(instrument).ok().map(InstrumentId);
        DESK.with_borrow_mut(|desk| desk.cancel_all(instrument))
    }
}

pub(crate) mod account {
    use super::DESK;
    use crate::harness::desk::DeskOrder;
    use crate::instrument::InstrumentId;
    use crate::number::NONE;
    use crate::order::{OrderId, Side};

    pub(crate) fn position(instrument: u32, side: u32, field: u32) -> i64 {
        let instrument = InstrumentId(instrument);
        if side != 0 {
            return NONE;
        }
        DESK.with_borrow(|desk| {
            let position = desk.position(instrument);
            match field {
                0 => position.qty,
                1 => position.cost,
                2 => position.realized,
                4 => desk.open_qty(instrument, Side::Buy),
                5 => desk.open_qty(instrument, Side::Sell),
                6 => 0,
                _ => NONE,
            }
        })
    }

    fn is_of(order: &DeskOrder, instrument: i32) -> bool {
        instrument < 0 || i64::from(order.order.instrument.0) == i64::from(instrument)
    }

    pub(crate) fn open_orders(instrument: i32) -> i64 {
        DESK.with_borrow(|desk| desk.open().filter(|o| is_of(o, instrument)).count() as i64)
    }

    pub(crate) fn open_order(instrument: i32, index: u32) -> i64 {
        DESK.with_borrow(|desk| {
            let order = desk
                .open()
                .filter(|o| is_of(o, instrument))
                .nth(index as usize);
            order.map_or(NONE, |order| order.id.0)
        })
    }

    pub(crate) fn order(order: i64, field: u32) -> i64 {
        DESK.with_borrow(|desk| match (desk.find(OrderId(order)), field) {
            (Some(order), 0) => order.state as i64,
            (Some(order), 1) => order.order.price,
            (Some(order), 2) => order.order.qty,
            (Some(order), 3) => order.executed.0,
            (Some(order), 4) => order.order.side() as i64,
            (Some(order), 5) => i64::from(order.order.instrument.0),
            (Some(order), 6) => order.order.stop_price,
            (Some(order), 7) => order.order.order_type() as i64,
            _ => NONE,
        })
    }

    pub(crate) const fn balance(_surface: u32, _asset: u32, _field: u32) -> i64 {
        NONE
    }
}

pub(crate) mod market {
    use super::DESK;
    use crate::instrument::InstrumentId;
    use crate::number::NONE;

    pub(crate) fn book(instrument: u32, side: u32, level: u32, field: u32) -> i64 {
        let level = DESK.with_borrow(|desk| {
            desk.level(InstrumentId(instrument), side as usize, level as usize)
        });
        level.map_or(NONE, |(price, qty)| if field == 0 { price } else { qty })
    }

    pub(crate) fn last(instrument: u32, field: u32) -> i64 {
        DESK.with_borrow(|desk| desk.last(InstrumentId(instrument), field))
            .unwrap_or(NONE)
    }

    /// Implements only the trading status. [`crate::Instrument`] contains all other rules.
    pub(crate) fn rule(instrument: u32, field: u32) -> i64 {
        let stopped = DESK.with_borrow(|desk| desk.is_stopped(InstrumentId(instrument)));
        if field == 12 {
            i64::from(!stopped)
        } else {
            NONE
        }
    }
}

pub(crate) mod timers {
    use super::DESK;
    use crate::number::Time;

    pub(crate) fn set(ms: i64, ns: u32, token: i64) -> i64 {
        DESK.with_borrow_mut(|desk| desk.set_timer(Time::from_parts(ms, ns), token));
        0
    }

    pub(crate) fn cancel(token: i64) -> i64 {
        DESK.with_borrow_mut(|desk| desk.cancel_timer(token));
        0
    }
}

pub(crate) mod log {
    use super::DESK;
    use crate::ctx::Level;

    pub(crate) fn log(level: u32, message: &[u8]) {
        let level = match level {
            1 => Level::Error,
            2 => Level::Warn,
            3 => Level::Info,
            _ => Level::Debug,
        };
        let text = String::from_utf8_lossy(message).into_owned();
        DESK.with_borrow_mut(|desk| desk.logs.push((level, text)));
    }
}

pub(crate) mod plot {
    use super::DESK;

    pub(crate) fn plot(series: &[u8], value: i64, scale: u32) {
        let series = String::from_utf8_lossy(series).into_owned();
        DESK.with_borrow_mut(|desk| desk.plots.push((series, value, scale as u8)));
    }
}
