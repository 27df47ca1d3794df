//! Ends a callback that takes too long, by the judgement of the caller.
//!
//! The host has no clock. The caller ticks at its own pace ([`Ticker`]), and at each tick the
//! running callback asks the caller's [`Watch`] whether it may go on. Without a watch, only fuel
//! ends a callback.

use std::sync::Arc;

use wasmtime::{Store, UpdateDeadline};

use crate::context::Context;
use crate::fault::Breach;

/// Judges a callback while it runs. It is asked on the thread of the callback.
pub trait Watch: Send + Sync {
    /// The text of the fault if the callback must end now.
    fn exceeded(&self) -> Option<String>;
}

/// Makes running callbacks ask their watch. It does not keep the module's engine alive.
#[derive(Clone)]
pub struct Ticker(wasmtime::EngineWeak);

impl Ticker {
    pub(crate) fn new(engine: &wasmtime::Engine) -> Self {
        Self(engine.weak())
    }

    /// Makes the callbacks that run now ask their watch. Returns `false` if the engine is gone, so
    /// that the ticker can be dropped.
    pub fn tick(&self) -> bool {
        let engine = self.0.upgrade();
        if let Some(engine) = &engine {
            engine.increment_epoch();
        }
        engine.is_some()
    }
}

impl std::fmt::Debug for Ticker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ticker")
    }
}

/// More ticks than any process lives.
const NEVER: u64 = u64::MAX / 2;

/// The next call in this store is not interrupted.
#[inline]
pub(crate) fn unwatched(store: &mut Store<Context>) {
    store.set_epoch_deadline(NEVER);
}

/// The next call in this store asks its watch at each tick.
#[inline]
pub(crate) fn watched(store: &mut Store<Context>) {
    store.set_epoch_deadline(1);
}

/// Installs the watch in a store.
pub(crate) fn install(store: &mut Store<Context>, watch: &Arc<dyn Watch>) {
    let watch = Arc::clone(watch);
    store.epoch_deadline_callback(move |_| match watch.exceeded() {
        Some(text) => Err(wasmtime::Error::new(Breach::Time(text))),
        None => Ok(UpdateDeadline::Continue(1)),
    });
}
