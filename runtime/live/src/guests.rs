//! The strategies of a live run as WebAssembly modules in the host.

use std::fmt::Display;
use std::time::Instant;

use windvane_admin::metrics::{Histogram, table};
use windvane_admin::view::CpuUse;
use windvane_engine::Engine;
use windvane_host::FaultKind as HostFault;
use windvane_model::input::FaultKind;
use windvane_model::{Event, Intent, StrategyId, Time};
use windvane_session::{
    EngineLoop, Guests, InitResult, Made, ReloadGuests, STATE_BYTES_MAX, StartFailure,
};

use windvane_build::modules::{Guest, RecentLines, TimeLimits, engine_fault, start_guest};

use super::call_watch::{Begin, CallWatch, CallWatches};
use super::cpu_account::Overuse;

/// All strategies of a run, in the order of the configuration.
pub struct LiveGuests {
    places: Vec<Place>,
    /// Limits the time of callbacks. Only a run on the real clock has it.
    watches: Option<CallWatches>,
}

/// One strategy with its saved state and its counters.
struct Place {
    guest: Guest,
    /// The state that it saved last, kept after a fault.
    saved: Option<Vec<u8>>,
    /// It runs with its own state, so its next save replaces `saved`.
    started: bool,
    /// The measurement of a save whose state is not recorded yet.
    saving: Option<Begin>,
    /// Its last fault, as text.
    trouble: Option<String>,
    watch: Option<CallWatch>,
    callbacks: Histogram,
    /// How many events it received.
    delivered: u64,
    lines: RecentLines,
}

impl LiveGuests {
    /// Strategies that are not started yet, with the states that an earlier process saved.
    pub fn new(guests: Vec<Guest>, states: &[Option<Vec<u8>>]) -> Self {
        let places = guests.into_iter().enumerate().map(|(at, guest)| Place {
            callbacks: table::CALLBACK_SECONDS.of([&guest.name]),
            guest,
            saved: states.get(at).cloned().flatten(),
            started: false,
            saving: None,
            trouble: None,
            watch: None,
            delivered: 0,
            lines: RecentLines::default(),
        });
        Self {
            places: places.collect(),
            watches: None,
        }
    }

    /// Limits the processor time of the strategies from now on. The thread that calls the
    /// strategies is measured.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn limit_time(&mut self) -> std::io::Result<()> {
        let watches = CallWatches::start()?;
        for place in &mut self.places {
            place.watch = Some(watches.watch(&mut place.guest));
        }
        self.watches = Some(watches);
        Ok(())
    }

    /// Applies other time limits, in the order of the strategies. Without a clock they have no
    /// effect.
    pub fn set_time_limits(&mut self, limits: impl Iterator<Item = TimeLimits>) {
        for (place, limits) in self.places.iter_mut().zip(limits) {
            place.guest.time = limits;
            if let Some(watch) = &mut place.watch {
                watch.set_limits(limits);
            }
        }
    }

    /// The use of the processor by each strategy whose time is limited.
    pub fn cpu(&self) -> Vec<CpuUse> {
        let rows = self.places.iter().filter_map(|place| {
            let shown = place.watch.as_ref()?.cpu();
            Some(CpuUse {
                strategy: place.guest.name.clone(),
                used_percent: shown.used_percent,
                limit_percent: shown.limit_percent,
                left_ms: shown.left_ms,
            })
        });
        rows.collect()
    }

    /// The strategies, each with the number of events that it received and its last fault.
    pub fn into_parts(self) -> impl Iterator<Item = (Guest, u64, Option<String>)> {
        let parts = |place: Place| (place.guest, place.delivered, place.trouble);
        self.places.into_iter().map(parts)
    }

    /// The loaded strategy.
    pub fn guest(&self, strategy: StrategyId) -> &Guest {
        &self.places[usize::from(strategy.0)].guest
    }

    fn place(&mut self, strategy: StrategyId) -> &mut Place {
        &mut self.places[usize::from(strategy.0)]
    }
}

impl Place {
    fn fails(&mut self, what: &str, fault: &dyn Display) {
        tracing::error!(strategy = %self.guest.name, %fault, "{what} failed");
        self.started = false;
        self.trouble = Some(format!("{what}: {fault}"));
    }

    /// The strategy used more processor time than its account allows.
    fn overuses(&mut self, overuse: Overuse) -> FaultKind {
        tracing::error!(
            strategy = %self.guest.name,
            %overuse,
            "a strategy used too much processor time: it is not called any more"
        );
        self.started = false;
        self.trouble = Some(overuse.to_string());
        FaultKind::Cpu
    }

    #[inline]
    fn begin(&self, is_save: bool) -> Option<Begin> {
        self.watch.as_ref().map(|watch| watch.begin(is_save))
    }

    /// Books the processor time of a call.
    #[inline]
    fn end(&mut self, begin: Option<Begin>) -> Result<(), Overuse> {
        match (&mut self.watch, begin) {
            (Some(watch), Some(begin)) => watch.end(begin),
            _ => Ok(()),
        }
    }
}

fn too_large(bytes: usize) -> String {
    format!(
        "contract: the saved state has {bytes} bytes, at most {STATE_BYTES_MAX} are allowed. Its last \
         smaller state is kept; save less, then reload and resume the strategy"
    )
}

impl Guests for LiveGuests {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn trouble(&self, strategy: StrategyId) -> Option<&str> {
        self.places.get(usize::from(strategy.0))?.trouble.as_deref()
    }

    fn saved(&self, strategy: StrategyId) -> Option<Vec<u8>> {
        self.places.get(usize::from(strategy.0))?.saved.clone()
    }

    fn started(&mut self, strategy: StrategyId, result: Result<Option<&[u8]>, &str>) {
        let place = self.place(strategy);
        if let Some(watch) = &mut place.watch {
            watch.renew();
        }
        (place.started, place.trouble) = (true, None);
        if let Err(reason) = result {
            place.fails("start", &reason);
            place.trouble = Some(reason.to_owned());
        }
    }

    fn init(&mut self, strategy: StrategyId, engine: Box<Engine>) -> (Box<Engine>, InitResult) {
        let place = self.place(strategy);
        let guest = &mut place.guest;
        let (params, instruments) = (&guest.params, &guest.instruments);
        let (engine, result) = guest.strategy.start(engine, strategy, params, instruments);
        let result = match result {
            Ok(()) => {
                place.started = true;
                InitResult::Ready
            }
            Err(fault) if fault.kind == HostFault::Refused => {
                place.trouble = Some(fault.detail.clone());
                InitResult::Refused(fault.detail)
            }
            Err(fault) => {
                place.fails("start", &fault);
                InitResult::Fault(engine_fault(fault.kind))
            }
        };
        (engine, result)
    }

    fn deliver(
        &mut self,
        strategy: StrategyId,
        engine: Box<Engine>,
        event: &Event,
    ) -> (Box<Engine>, Result<(), FaultKind>) {
        let place = self.place(strategy);
        let (begin, measured) = (Instant::now(), place.begin(false));
        let (engine, result) = place.guest.strategy.deliver(engine, event);
        place.delivered += 1;
        place.callbacks.record(begin.elapsed().as_secs_f64());
        let paid = place.end(measured);
        let result = match (result, paid) {
            (Err(fault), _) => {
                place.fails("a callback", &fault);
                Err(engine_fault(fault.kind))
            }
            (Ok(()), Err(overuse)) => Err(place.overuses(overuse)),
            (Ok(()), Ok(())) => Ok(()),
        };
        (engine, result)
    }

    fn intents(&self, strategy: StrategyId) -> &[Intent] {
        self.guest(strategy).strategy.intents()
    }

    fn save(&mut self, strategy: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        let place = self.place(strategy);
        if place.started {
            place.saving = place.begin(true);
            match place.guest.strategy.save() {
                Ok(state) if state.len() <= STATE_BYTES_MAX => place.saved = Some(state),
                Ok(state) => {
                    place.fails("save", &too_large(state.len()));
                    self.recorded(strategy);
                    return Err(FaultKind::Contract);
                }
                Err(fault) => {
                    place.fails("save", &fault);
                    self.recorded(strategy);
                    return Err(engine_fault(fault.kind));
                }
            }
        }
        Ok(place.saved.clone())
    }

    fn recorded(&mut self, strategy: StrategyId) {
        let place = self.place(strategy);
        let measured = place.saving.take();
        // The account is judged at the next event, so that a save never fails for what an event
        // used.
        let _ = place.end(measured);
    }

    fn fuel_of_save(&self, strategy: StrategyId) -> u64 {
        self.guest(strategy).strategy.fuel_of_save()
    }

    fn load(&mut self, strategy: StrategyId, state: &[u8]) -> Result<(), String> {
        let place = self.place(strategy);
        let loaded = place.guest.strategy.load(state);
        loaded.map_err(|fault| {
            place.fails("load", &fault);
            fault.to_string()
        })
    }

    fn quarantined(&mut self, strategy: StrategyId, why: &str) {
        let place = self.place(strategy);
        place.started = false;
        place.trouble = Some(why.to_owned());
    }

    fn show_output(&mut self, strategy: StrategyId, now: Time) {
        let place = self.place(strategy);
        if place.guest.strategy.has_output() {
            // Writing the lines is work for the strategy too.
            let measured = place.begin(false);
            let output = place.guest.strategy.take_output();
            place.lines.show(&place.guest.name, now, &output.logs);
            let _ = place.end(measured);
        }
    }

    fn made(&self) -> Vec<Made> {
        self.places.iter().map(|place| place.guest.made()).collect()
    }
}

impl ReloadGuests for LiveGuests {
    type Instance = Guest;

    fn instance(&self, strategy: StrategyId) -> &Guest {
        self.guest(strategy)
    }

    fn replace(&mut self, strategy: StrategyId, mut guest: Guest) -> Guest {
        let watches = self.watches.as_ref();
        let watch = watches.map(|watches| watches.watch(&mut guest));
        let place = self.place(strategy);
        place.watch = watch;
        // The new instance has no state of its own before `started`.
        place.started = false;
        std::mem::replace(&mut place.guest, guest)
    }

    fn another(guest: &Guest) -> Guest {
        guest.another()
    }

    /// Drops the instance on a thread of its own: unmapping its memory can take many milliseconds.
    fn retire(&self, guest: Guest) {
        let thread = std::thread::Builder::new().name("retired".to_owned());
        // Without a thread the instance is dropped here.
        drop(thread.spawn(move || drop(guest)));
    }

    fn start(
        guest: &mut Guest,
        strategy: StrategyId,
        engine: &mut EngineLoop,
        state: Option<&[u8]>,
    ) -> Result<Vec<Intent>, StartFailure> {
        start_guest(guest, strategy, engine, state)
    }

    fn module(guest: &Guest) -> [u8; 32] {
        guest.sha256
    }

    fn made_of(guest: &Guest) -> Made {
        guest.made()
    }

    fn take_instruments(guest: &mut Guest, of: &Guest) {
        guest.instruments.clone_from(&of.instruments);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread::ThreadId;
    use std::time::Duration;

    use windvane_build::modules::Loader;
    use windvane_config::Compile;
    use windvane_host::Watch;
    use windvane_model::config::EngineConfig;

    use super::*;

    const ONE: StrategyId = StrategyId(0);

    /// A strategy whose state is 0 in a new instance. Each load of a state adds 1 to the state.
    fn guest() -> Guest {
        let answer =
            r#"{\"name\":\"one\",\"version\":\"1\",\"state_schema\":1,\"capabilities\":[]}"#;
        let length = answer.replace('\\', "").len();
        let text = format!(
            r#"(module
  (memory (export "memory") 1)
  (data (i32.const 1024) "{answer}")
  (data (i32.const 8) "\00\04\00\00")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 4096)
  (func (export "describe") (result i32)
    (i32.store (i32.const 12) (i32.const {length})) i32.const 8)
  (func (export "start") (param i32 i32 i32 i32) (result i32) i32.const 16)
  (func (export "save") (result i32)
    (i32.store (i32.const 24) (i32.const 512)) (i32.store (i32.const 28) (i32.const 1))
    i32.const 24)
  (func (export "load") (param i32 i32) (result i32)
    (i32.store8 (i32.const 512) (i32.add (i32.load8_u (i32.const 512)) (i32.const 1)))
    i32.const 16)
  (func (export "on-event")
    (param i64 i32 i64 i32 i32 i32 i64 i64 i64 i64 i64 i64 i64)))"#
        );
        let module = wat::parse_str(text).unwrap();
        let made = Made {
            params: b"{}".to_vec(),
            instruments: b"{}".to_vec(),
            fuel_per_event: 1_000_000,
            memory_bytes: 16 << 20,
            ..Made::default()
        };
        let loader = Loader::new(Compile::default()).unwrap();
        Guest::load(&loader, "one", Arc::from(module), made).unwrap()
    }

    #[test]
    fn an_instance_that_never_started_leaves_the_saved_state_alone() {
        let guest = guest();
        let next = guest.another();
        let mut guests = LiveGuests::new(vec![guest], &[None]);
        let mut engine = EngineLoop::new(Engine::new(EngineConfig::default()).unwrap());
        engine
            .try_begin(ONE, Some(b"earlier"), &mut guests)
            .unwrap();
        assert_eq!(guests.save(ONE).unwrap(), Some(vec![1]));
        // The engine quarantines a strategy that breaks its loss limit. The module did not fail, so
        // nothing reports that here. A reload then replaces the instance.
        let mut next = next;
        next.strategy.renew().unwrap();
        drop(guests.replace(ONE, next));
        assert_eq!(guests.save(ONE).unwrap(), Some(vec![1]));
        assert_eq!(guests.saved(ONE), Some(vec![1]));
    }

    /// Reports the thread that drops it.
    struct Dropped(Mutex<Sender<ThreadId>>);

    impl Watch for Dropped {
        fn exceeded(&self) -> Option<String> {
            None
        }
    }

    impl Drop for Dropped {
        fn drop(&mut self) {
            let sender = self.0.lock().unwrap();
            sender.send(std::thread::current().id()).unwrap();
        }
    }

    #[test]
    fn instances_are_dropped_on_another_thread() {
        let (sender, receiver) = channel();
        let mut old = guest();
        old.strategy.watch(Arc::new(Dropped(Mutex::new(sender))));
        let mut guests = LiveGuests::new(vec![old], &[None]);
        let next = guests.guest(ONE).another();
        let old = guests.replace(ONE, next);
        guests.retire(old);
        let thread = receiver.recv_timeout(Duration::from_mins(1)).unwrap();
        assert_ne!(thread, std::thread::current().id());
    }
}
