//! Where the host's functions come from: the runtime in a module, the harness's desk natively.

#[cfg(target_arch = "wasm32")]
pub(crate) use crate::bindings::windvane::strategy::{
    account, fault, log, market, orders, plot, timers,
};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::harness::imports::{account, log, market, orders, plot, timers};
