//! The SDK for strategy authors: typed callbacks, orders that are always on the instrument's grid,
//! indicators in integer arithmetic and a native test harness.
//!
//! A strategy is a type that implements [`Strategy`] and is named once in [`export!`]:
//!
//! ```
//! use windvane_sdk::prelude::*;
//!
//! struct BuyOnce {
//!     instrument: Instrument,
//!     qty: Qty,
//!     done: bool,
//! }
//!
//! impl Strategy for BuyOnce {
//!     fn new(params: Params, instruments: &[Instrument]) -> Result<Self, String> {
//!         let instrument = instruments.first().ok_or("an instrument is needed")?.clone();
//!         let qty = params.qty("qty", &instrument)?;
//!         Ok(Self { instrument, qty, done: false })
//!     }
//!
//!     fn on_trade(&mut self, ctx: &Ctx, trade: &Trade) {
//!         if !self.done {
//!             let order = Order::limit(&self.instrument, Side::Buy, trade.price, self.qty);
//!             self.done = ctx.submit(order.post_only()).is_ok();
//!         }
//!     }
//! }
//!
//! windvane_sdk::export!(BuyOnce);
//! ```
//!
//! Use `BTreeMap` and `BTreeSet` as collections. The standard `HashMap` seeds its hash function
//! from addresses in the module. So its iteration order changes with a reload, and a replay would
//! differ.
//!
//! Every strategy in Rust uses this crate. It must not depend on the runtime. It uses only the
//! contract, `sdk/wit/strategy.wit`.

mod ctx;
mod event;
mod export;
mod imports;
mod instrument;
mod json;
mod number;
mod order;
mod params;
mod rejection;
mod state;
mod strategy;

#[cfg(not(target_arch = "wasm32"))]
pub mod harness;
pub mod indicator;

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic)]
#[doc(hidden)]
pub mod bindings {
    //! The bindings that are generated from `strategy.wit`. The generated code passes raw pointers.
    wit_bindgen::generate!({
        path: "../wit",
        world: "strategy",
        pub_export_macro: true,
        default_bindings_module: "windvane_sdk::bindings",
    });
}

pub use ctx::{BalanceQuery, BookQuery, Ctx, Level, OrderQuery, PositionQuery};
pub use event::{
    BalanceUpdate, Bar, BookChange, BookTop, Fill, ForcedClose, ForcedCloseKind, Funding,
    MarkPrice, OrderState, OrderUpdate, PositionUpdate, RulesUpdate, RuntimeState, Trade,
};
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use export::report_panics;
pub use instrument::{Instrument, InstrumentId};
pub use number::{Amount, NumberError, Price, Qty, Time};
pub use order::{Order, OrderId, OrderType, PositionSide, Side, Surface, TimeInForce, WorkingType};
pub use params::Params;
pub use rejection::Rejection;
pub use state::{StateReader, StateWriter};
pub use strategy::{Capability, Strategy};
#[doc(hidden)]
pub use {event::Raw, export::Slot};

/// The names that strategies usually need.
pub mod prelude {
    pub use crate::{
        Amount, BalanceUpdate, Bar, BookChange, BookTop, Capability, Ctx, Fill, ForcedClose,
        ForcedCloseKind, Funding, Instrument, InstrumentId, Level, MarkPrice, Order, OrderId,
        OrderState, OrderUpdate, Params, PositionSide, PositionUpdate, Price, Qty, Rejection,
        RulesUpdate, RuntimeState, Side, StateReader, StateWriter, Strategy, Surface, Time, Trade,
        debug, error, info, warn,
    };
}
