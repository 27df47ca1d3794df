//! The host's functions: the runtime provides them in a module, the harness's desk in a native
//! build.

#[cfg(target_arch = "wasm32")]
pub(crate) use crate::bindings::windvane::strategy::{
    account, fault, log, market, orders, plot, timers,
};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::harness::imports::{account, log, market, orders, plot, timers};
