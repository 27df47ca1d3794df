//! One loaded strategy: calls under their limits, faults that end the instance, and restarts.
//!
//! **Invariant:** after a fault, the failed callback has no visible effect, and the engine that was
//! lent has been returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use wasmtime::Store;
use windvane_engine::Engine;
use windvane_model::{Event, EventKind, Intent, StrategyId, Time};

use crate::cache::{CacheUse, Stored};
use crate::capability::{Capabilities, Capability, Grant};
use crate::context::{Context, FAULT_BYTES_MAX};
use crate::contract::ContractVersion;
use crate::error::LoadError;
use crate::fault::{Fault, FaultKind};
use crate::guest::{Guest, Ready};
use crate::inspect::ModuleInfo;
use crate::limits::Limits;
use crate::output::Output;
use crate::schema::{self, Parameter};
use crate::watch::{self, Ticker, Watch};

/// The description that a strategy gives of itself (`describe`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Description {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Version of the format that `save` writes.
    pub state_schema: u32,
    /// Names of the capabilities that it wants.
    pub capabilities: Vec<String>,
    /// The schema of its parameters, since contract 0.2; empty if it does not describe them.
    #[serde(skip)]
    pub params: Vec<Parameter>,
}

/// Longest answer of `describe`. Its values may take some ten times its length of memory, in the
/// trading process.
const DESCRIPTION_BYTES_MAX: usize = 1 << 20;

impl Description {
    fn read(contract: ContractVersion, answer: &[u8]) -> Result<Self, String> {
        if answer.len() > DESCRIPTION_BYTES_MAX {
            let length = answer.len();
            return Err(format!(
                "it has {length} bytes, and at most {DESCRIPTION_BYTES_MAX} bytes are read"
            ));
        }
        let mut read: Self = serde_json::from_slice(answer).map_err(|e| e.to_string())?;
        if contract >= ContractVersion::V0_2 {
            let all: Value = serde_json::from_slice(answer).map_err(|e| e.to_string())?;
            read.params = all.get("params").map_or(Ok(Vec::new()), schema::read)?;
        }
        Ok(read)
    }
}

/// The path of calls into the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPath {
    /// The core module is called directly.
    Direct,
    /// The component is called through the component model.
    Component,
}

/// One loaded strategy.
pub struct Strategy {
    pub(crate) engine: wasmtime::Engine,
    pub(crate) ready: Ready,
    pub(crate) limits: Limits,
    /// Whether the capability `log` is granted.
    pub(crate) shows_log: bool,
    pub(crate) granted: Capabilities,
    pub(crate) info: ModuleInfo,
    pub(crate) native: Stored,
    description: Description,
    live: Option<Live>,
    start: Option<Start>,
    /// Judges callbacks while they run.
    watch: Option<Arc<dyn Watch>>,
    fuel_used: u64,
    fuel_of_save: u64,
    /// Output of a dead instance that was not taken yet.
    left: Output,
}

struct Live {
    store: Store<Context>,
    guest: Guest,
}

/// The last kind of event in contract 0.1. A module of 0.1 may trap at an event kind that its
/// contract does not have.
const LAST_KIND_OF_0_1: EventKind = EventKind::RuntimeState;

/// `save` may use the fuel of this many events.
const SAVE_EVENTS: u64 = 50;

/// The arguments of `start`, for a restart.
struct Start {
    strategy: StrategyId,
    config: Vec<u8>,
    instruments: Vec<u8>,
}

impl Strategy {
    pub(crate) fn new(
        engine: wasmtime::Engine,
        ready: Ready,
        limits: Limits,
        shows_log: bool,
        info: ModuleInfo,
        native: Stored,
    ) -> Result<Self, LoadError> {
        let mut strategy = Self {
            engine,
            ready,
            limits,
            shows_log,
            granted: Capabilities::NONE,
            info,
            native,
            description: Description::default(),
            live: None,
            start: None,
            watch: None,
            fuel_used: 0,
            fuel_of_save: 0,
            left: Output::default(),
        };
        strategy.instantiate()?;
        let answer = strategy.setup(Guest::describe)?;
        let read = Description::read(strategy.info.contract, &answer);
        strategy.description = read.map_err(|reason| {
            let shown = &answer[..answer.len().min(200)];
            LoadError::Describe {
                answer: String::from_utf8_lossy(shown).into_owned(),
                reason,
            }
        })?;
        Ok(strategy)
    }

    /// Grants it these capabilities.
    ///
    /// # Errors
    /// It imports a capability that its own description does not ask for.
    pub(crate) fn grant(mut self, grant: Grant) -> Result<Self, LoadError> {
        let described = self.described();
        self.granted = match grant {
            Grant::Only(granted) => granted,
            Grant::Described => described,
        };
        let contract = self.info.contract;
        match contract.unlinked(self.info.capabilities, self.granted) {
            Some(capability) => Err(LoadError::NotDescribed {
                capability,
                described,
            }),
            None => Ok(self),
        }
    }

    /// The same compiled module with the same limits, without an instance. Before it can be called,
    /// [`Strategy::renew`] must make one.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            ready: self.ready.clone(),
            limits: self.limits,
            shows_log: self.shows_log,
            granted: self.granted,
            info: self.info,
            native: self.native.clone(),
            description: self.description.clone(),
            live: None,
            start: None,
            watch: None,
            fuel_used: self.fuel_used,
            fuel_of_save: 0,
            left: Output::default(),
        }
    }

    /// The description that the strategy gives of itself.
    pub const fn describe(&self) -> &Description {
        &self.description
    }

    /// SHA-256 of the module file.
    pub const fn sha256(&self) -> [u8; 32] {
        self.info.sha256
    }

    /// The capabilities that the module imports. All of them are granted. The exception is `log` in
    /// contract 0.1: without the grant, its lines are dropped.
    pub const fn capabilities(&self) -> Capabilities {
        self.info.capabilities
    }

    /// The capabilities that it is granted. It may import fewer.
    pub const fn granted(&self) -> Capabilities {
        self.granted
    }

    /// The capabilities that its description asks for. Names that the contract does not have are
    /// left out.
    pub fn described(&self) -> Capabilities {
        let names = self.description.capabilities.iter();
        names
            .filter_map(|name| Capability::from_name(name))
            .collect()
    }

    /// The version of the contract for which it was built.
    pub const fn contract(&self) -> ContractVersion {
        self.info.contract
    }

    /// The path of its calls.
    pub const fn path(&self) -> CallPath {
        match self.ready {
            Ready::Direct(..) => CallPath::Direct,
            Ready::Component(..) => CallPath::Component,
        }
    }

    /// Lets `watch` judge events and saves while they run, at each tick of [`Strategy::ticker`].
    /// Start functions, `describe`, `start` and `load` are not watched.
    pub fn watch(&mut self, watch: Arc<dyn Watch>) {
        if let Some(live) = &mut self.live {
            watch::install(&mut live.store, &watch);
        }
        self.watch = Some(watch);
    }

    /// The ticker of this strategy's engine.
    pub fn ticker(&self) -> Ticker {
        Ticker::new(&self.engine)
    }

    /// The result of the compile cache for it.
    pub const fn cache_use(&self) -> &CacheUse {
        &self.native.used
    }

    /// Fuel that events used, of all instances together.
    pub const fn fuel_used(&self) -> u64 {
        self.fuel_used
    }

    /// Whether it can be called: it is loaded and has not failed since.
    pub const fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Calls `start` (`init` in contract 0.1), which may query the engine and make intents.
    /// `config` and `instruments` are the JSON of the contract. They are kept for a restart.
    ///
    /// # Errors
    /// A fault. It is [`FaultKind::Refused`] with the strategy's reason if the strategy cannot
    /// start.
    pub fn start(
        &mut self,
        engine: Box<Engine>,
        strategy: StrategyId,
        config: &[u8],
        instruments: &[u8],
    ) -> (Box<Engine>, Result<(), Fault>) {
        self.start = Some(Start {
            strategy,
            config: config.to_vec(),
            instruments: instruments.to_vec(),
        });
        self.call_start(engine)
    }

    fn call_start(&mut self, engine: Box<Engine>) -> (Box<Engine>, Result<(), Fault>) {
        let (Some(live), Some(start)) = (&mut self.live, &self.start) else {
            return (engine, Err(Fault::dead()));
        };
        let fuel = self.limits.fuel_per_setup;
        let name = self.info.contract.start();
        watch::unwatched(&mut live.store);
        let (engine, result) = live.lend(
            engine,
            start.strategy,
            Time::default(),
            fuel,
            |guest, store| guest.start(store, &start.config, &start.instruments),
        );
        let result = self
            .settle(result)
            .and_then(|reason| refused(name, &reason));
        (engine, result)
    }

    /// Delivers one event. The engine is lent for the call and is always returned.
    ///
    /// On success [`Strategy::intents`] returns the intents of the strategy. After a fault it is
    /// empty, and the instance is dead until [`Strategy::restart`]. Before [`Strategy::start`] the
    /// instance counts as dead.
    #[inline]
    pub fn deliver(
        &mut self,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), Fault>) {
        let (Some(live), Some(start)) = (&mut self.live, &self.start) else {
            return (engine, Err(Fault::dead()));
        };
        if self.info.contract == ContractVersion::V0_1 && event.kind > LAST_KIND_OF_0_1 {
            live.store.data_mut().callback.clear();
            return (engine, Ok(()));
        }
        let fuel = self.limits.fuel_per_event;
        if self.watch.is_some() {
            watch::watched(&mut live.store);
        }
        let (engine, result) =
            live.lend(engine, start.strategy, event.time, fuel, |guest, store| {
                guest.on_event(store, event)
            });
        self.fuel_used += fuel - live.store.get_fuel().unwrap_or_default();
        match result {
            Ok(()) => (engine, Ok(())),
            failed => (engine, self.settle(failed)),
        }
    }

    /// The intents of the last callback, in order. The driver passes them to the engine as one
    /// input.
    #[inline]
    pub fn intents(&self) -> &[Intent] {
        self.live
            .as_ref()
            .map_or(&[], |live| live.store.data().callback.intents())
    }

    /// Whether [`Strategy::take_output`] would return something.
    #[inline]
    pub fn has_output(&self) -> bool {
        let live = self.live.as_ref();
        !self.left.is_empty() || live.is_some_and(|live| !live.store.data().output.is_empty())
    }

    /// Log lines and plot points since the last call, without those of failed callbacks.
    pub fn take_output(&mut self) -> Output {
        let mut output = std::mem::take(&mut self.left);
        if let Some(live) = &mut self.live {
            let mut fresh = std::mem::take(&mut live.store.data_mut().output);
            output.logs.append(&mut fresh.logs);
            output.plots.append(&mut fresh.plots);
        }
        output
    }

    /// The state to keep across a restart or a reload. This is called during a run, so it gets the
    /// fuel of some events and not the fuel of a setup.
    ///
    /// # Errors
    /// A fault. The instance is dead then.
    pub fn save(&mut self) -> Result<Vec<u8>, Fault> {
        let fuel = self.limits.fuel_per_event.saturating_mul(SAVE_EVENTS);
        let fuel = fuel.min(self.limits.fuel_per_setup);
        let watched = self.watch.is_some();
        let saved = self.call(fuel, watched, Guest::save);
        let left = self.live.as_ref().map(|live| live.store.get_fuel());
        let left = left.and_then(Result::ok).unwrap_or_default();
        self.fuel_of_save = fuel.saturating_sub(left);
        saved
    }

    /// The fuel that the last [`Strategy::save`] used.
    pub const fn fuel_of_save(&self) -> u64 {
        self.fuel_of_save
    }

    /// Gives a saved state to the strategy.
    ///
    /// # Errors
    /// A fault. It is [`FaultKind::Refused`] with the strategy's reason if it cannot use the state.
    pub fn load(&mut self, state: &[u8]) -> Result<(), Fault> {
        let reason = self.setup(|guest, store| guest.load(store, state))?;
        refused("load", &reason)
    }

    /// Makes a new instance. The next call must be [`Strategy::start`].
    ///
    /// # Errors
    /// The module's start function failed. The strategy has no instance then.
    pub fn renew(&mut self) -> Result<(), Fault> {
        self.instantiate()
    }

    /// Makes a new instance, calls `start` with the same arguments as before, and then `load` with
    /// `state`.
    pub fn restart(
        &mut self,
        engine: Box<Engine>,
        state: Option<&[u8]>,
    ) -> (Box<Engine>, Result<(), Fault>) {
        if let Err(fault) = self.instantiate() {
            return (engine, Err(fault));
        }
        let (engine, result) = self.call_start(engine);
        let result = match (result, state) {
            (Ok(()), Some(state)) => self.load(state),
            (result, _) => result,
        };
        (engine, result)
    }

    /// Drops the live instance and makes a new one. Its start function has the fuel of a setup.
    fn instantiate(&mut self) -> Result<(), Fault> {
        self.left = self.take_output();
        self.live = None;
        let mut store = Store::new(
            &self.engine,
            Context::new(&self.limits, self.info.contract, self.shows_log),
        );
        store.limiter(|context| &mut context.limiter);
        // Maximum size of an answer that one call may return.
        store.set_hostcall_fuel(self.limits.answer_bytes);
        watch::unwatched(&mut store);
        if let Some(watch) = &self.watch {
            watch::install(&mut store, watch);
        }
        let fuel = self.limits.fuel_per_setup;
        let ready = &self.ready;
        let result = guarded(&mut store, fuel, |store| ready.instantiate(store));
        let guest = result?;
        self.live = Some(Live { store, guest });
        Ok(())
    }

    /// A call without an engine, with the fuel of a setup.
    fn setup<R>(
        &mut self,
        call: impl FnOnce(&Guest, &mut Store<Context>) -> wasmtime::Result<R>,
    ) -> Result<R, Fault> {
        self.call(self.limits.fuel_per_setup, false, call)
    }

    /// A call without an engine.
    fn call<R>(
        &mut self,
        fuel: u64,
        watched: bool,
        call: impl FnOnce(&Guest, &mut Store<Context>) -> wasmtime::Result<R>,
    ) -> Result<R, Fault> {
        let live = self.live.as_mut().ok_or_else(Fault::dead)?;
        let Live { store, guest } = live;
        store.data_mut().begin(Time::default());
        store.data_mut().callback.clear();
        if watched {
            watch::watched(store);
        } else {
            watch::unwatched(store);
        }
        let result = guarded(store, fuel, |store| call(guest, store));
        self.settle(result)
    }

    /// A fault ends the instance: it must not be called again, and its intents are dropped.
    fn settle<R>(&mut self, result: Result<R, Fault>) -> Result<R, Fault> {
        if result.is_err()
            && let Some(live) = self.live.take()
        {
            self.left = live.store.into_data().output_before();
        }
        result
    }
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strategy")
            .field("description", &self.description)
            .field("path", &self.path())
            .field("live", &self.is_live())
            .finish_non_exhaustive()
    }
}

impl Live {
    /// Calls the guest with the engine in the store for the duration of the call.
    #[inline]
    fn lend<R>(
        &mut self,
        engine: Box<Engine>,
        strategy: StrategyId,
        time: Time,
        fuel: u64,
        call: impl FnOnce(&Guest, &mut Store<Context>) -> wasmtime::Result<R>,
    ) -> (Box<Engine>, Result<R, Fault>) {
        let Self { store, guest } = self;
        store.data_mut().begin_with(engine, strategy, time);
        let result = guarded(store, fuel, |store| call(guest, store));
        (self.take_engine(), result)
    }

    #[inline]
    #[expect(
        clippy::expect_used,
        reason = "`lend` put it there, and host functions only borrow it"
    )]
    fn take_engine(&mut self) -> Box<Engine> {
        let engine = self.store.data_mut().engine.take();
        engine.expect("the engine that was lent must be in the store")
    }
}

/// Runs guest code with this fuel, and turns every kind of failure into a fault.
///
/// A panic of a host function unwinds through the guest to here. The caller drops the store, and
/// the engine was borrowed only for reading, so no invalid state remains.
#[inline]
fn guarded<R>(
    store: &mut Store<Context>,
    fuel: u64,
    call: impl FnOnce(&mut Store<Context>) -> wasmtime::Result<R>,
) -> Result<R, Fault> {
    let attempt = catch_unwind(AssertUnwindSafe(|| {
        store.set_fuel(fuel)?;
        call(&mut *store)
    }));
    match attempt {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            let context = store.data();
            let (contract, words) = (context.contract, context.last_words());
            Err(Fault::from_error(&error, contract, words))
        }
        Err(payload) => Err(Fault::from_panic(payload.as_ref())),
    }
}

/// An empty answer of `start` or `load` means success. Otherwise it is the reason of a refusal.
fn refused(function: &str, reason: &[u8]) -> Result<(), Fault> {
    if reason.is_empty() {
        return Ok(());
    }
    // The reason of a quarantine is stored, so it is cut like a reported fault.
    let reason = String::from_utf8_lossy(&reason[..reason.len().min(FAULT_BYTES_MAX)]);
    Err(Fault::new(
        FaultKind::Refused,
        format!("{function}: {reason}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, HostOptions, Limits, PathChoice};
    use windvane_model::InstrumentId;
    use windvane_model::config::EngineConfig;

    /// Logs a line at each event, and returns minimal answers to all other calls.
    const GUEST: &str = r#"(module
        (import "windvane:strategy/log@0.2.0" "log" (func $log (param i32 i32 i32)))
        (memory (export "memory") 1)
        (data (i32.const 64)
          "{\22name\22:\22a\22,\22version\22:\220\22,\22state_schema\22:0,\22capabilities\22:[]}")
        (func $answer (param i32 i32) (result i32)
          (i32.store (i32.const 16) (local.get 0))
          (i32.store (i32.const 20) (local.get 1))
          (i32.const 16))
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
        (func (export "describe") (result i32) (call $answer (i32.const 64) (i32.const 61)))
        (func (export "start") (param i32 i32 i32 i32) (result i32)
          (call $answer (i32.const 0) (i32.const 0)))
        (func (export "save") (result i32) (call $answer (i32.const 0) (i32.const 0)))
        (func (export "load") (param i32 i32) (result i32)
          (call $answer (i32.const 0) (i32.const 0)))
        (func (export "on-event")
          (param i64 i32 i64 i32 i32 i32 i64 i64 i64 i64 i64 i64 i64)
          (call $log (i32.const 1) (i32.const 64) (i32.const 2))))"#;

    #[test]
    fn a_panic_of_the_host_is_a_fault_and_returns_the_engine() {
        for path in [PathChoice::Direct, PathChoice::Component] {
            let options = HostOptions {
                path,
                ..HostOptions::default()
            };
            let host = Host::new(options).unwrap();
            let module = wat::parse_str(GUEST).unwrap();
            let mut strategy = host
                .load(&module, Limits::default(), Capabilities::ALL)
                .unwrap();
            let engine = Box::new(Engine::new(EngineConfig::default()).unwrap());
            let (engine, result) = strategy.start(engine, StrategyId(0), b"{}", b"{}");
            result.unwrap();
            let event = Event {
                time: Time(1),
                sequence: 1,
                kind: EventKind::Trade,
                instrument: InstrumentId(0),
                flags: 0,
                fields: [0; 6],
                id: 0,
            };
            let (engine, result) = strategy.deliver(engine, &event);
            result.unwrap();
            let live = strategy.live.as_mut().unwrap();
            live.store.data_mut().panic_on_log = true;
            let (engine, result) = strategy.deliver(engine, &event);
            let fault = result.unwrap_err();
            assert_eq!(fault.kind, FaultKind::HostPanic);
            assert!(fault.detail.contains("planted panic"), "{fault}");
            let (engine, result) = strategy.restart(engine, None);
            result.unwrap();
            let (_, result) = strategy.deliver(engine, &event);
            result.unwrap();
        }
    }
}
