//! A live instance, and how it is called on either path. Both paths pass the same bytes. The direct
//! path does by hand what wasmtime does for a component.

use wasmtime::component;
use wasmtime::{Memory, Store, TypedFunc};
use windvane_model::Event;

use crate::context::Context;
use crate::contract::ContractVersion;
use crate::fault::Breach;
use crate::link::out_of_bounds;

/// `on-event` of 0.1: nanoseconds since the epoch, then the parameters that both versions have.
type EventParams01 = (i64, i64, u32, u32, u32, i64, i64, i64, i64, i64, i64, i64);
/// `on-event` of 0.2: milliseconds, and the nanoseconds within that millisecond.
type EventParams02 = (
    i64,
    u32,
    i64,
    u32,
    u32,
    u32,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
);

const NS_PER_MS: i64 = 1_000_000;

#[inline]
fn params_0_1(event: &Event) -> EventParams01 {
    let fields = &event.fields;
    (
        event.time.0,
        event.sequence,
        event.kind as u32,
        u32::from(event.instrument.0),
        event.flags,
        fields[0],
        fields[1],
        fields[2],
        fields[3],
        fields[4],
        fields[5],
        event.id,
    )
}

#[inline]
fn params_0_2(event: &Event) -> EventParams02 {
    let fields = &event.fields;
    (
        event.time.0.div_euclid(NS_PER_MS),
        event.time.0.rem_euclid(NS_PER_MS) as u32,
        event.sequence,
        event.kind as u32,
        u32::from(event.instrument.0),
        event.flags,
        fields[0],
        fields[1],
        fields[2],
        fields[3],
        fields[4],
        fields[5],
        event.id,
    )
}

/// A linked module that can be instantiated any number of times.
#[derive(Clone)]
pub(crate) enum Ready {
    Direct(ContractVersion, wasmtime::InstancePre<Context>),
    Component(ContractVersion, component::InstancePre<Context>),
}

impl Ready {
    pub(crate) fn instantiate(&self, store: &mut Store<Context>) -> wasmtime::Result<Guest> {
        match self {
            Self::Direct(contract, ready) => {
                let instance = ready.instantiate(&mut *store)?;
                Direct::new(*contract, store, &instance).map(Guest::Direct)
            }
            Self::Component(contract, ready) => {
                let instance = ready.instantiate(&mut *store)?;
                ByComponent::new(*contract, store, &instance).map(Guest::Component)
            }
        }
    }
}

/// A live instance.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one per strategy, and the large variant is on the hot path"
)]
pub(crate) enum Guest {
    Direct(Direct),
    Component(ByComponent),
}

impl Guest {
    #[inline]
    pub(crate) fn on_event(
        &self,
        store: &mut Store<Context>,
        event: &Event,
    ) -> wasmtime::Result<()> {
        match self {
            Self::Direct(guest) => match &guest.on_event {
                DirectEvent::V0_2(call) => call.call(store, params_0_2(event)),
                DirectEvent::V0_1(call) => call.call(store, params_0_1(event)),
            },
            Self::Component(guest) => match &guest.on_event {
                ComponentEvent::V0_2(call) => call.call(store, params_0_2(event)),
                ComponentEvent::V0_1(call) => call.call(store, params_0_1(event)),
            },
        }
    }

    pub(crate) fn describe(&self, store: &mut Store<Context>) -> wasmtime::Result<Vec<u8>> {
        match self {
            Self::Direct(guest) => guest.describe.call(guest, store, ()),
            Self::Component(guest) => Ok(guest.describe.call(store, ())?.0),
        }
    }

    pub(crate) fn start(
        &self,
        store: &mut Store<Context>,
        config: &[u8],
        instruments: &[u8],
    ) -> wasmtime::Result<Vec<u8>> {
        match self {
            Self::Direct(guest) => {
                let (config, config_len) = guest.lower(store, config)?;
                let (instruments, instruments_len) = guest.lower(store, instruments)?;
                let params = (config, config_len, instruments, instruments_len);
                guest.start.call(guest, store, params)
            }
            Self::Component(guest) => Ok(guest.start.call(store, (config, instruments))?.0),
        }
    }

    pub(crate) fn save(&self, store: &mut Store<Context>) -> wasmtime::Result<Vec<u8>> {
        match self {
            Self::Direct(guest) => guest.save.call(guest, store, ()),
            Self::Component(guest) => Ok(guest.save.call(store, ())?.0),
        }
    }

    pub(crate) fn load(
        &self,
        store: &mut Store<Context>,
        state: &[u8],
    ) -> wasmtime::Result<Vec<u8>> {
        match self {
            Self::Direct(guest) => {
                let params = guest.lower(store, state)?;
                guest.load.call(guest, store, params)
            }
            Self::Component(guest) => Ok(guest.load.call(store, (state,))?.0),
        }
    }
}

type List = &'static [u8];
type Answer = (Vec<u8>,);

/// `on-event` of a component.
enum ComponentEvent {
    V0_1(component::TypedFunc<EventParams01, ()>),
    V0_2(component::TypedFunc<EventParams02, ()>),
}

/// `on-event` of a core module.
enum DirectEvent {
    V0_1(TypedFunc<EventParams01, ()>),
    V0_2(TypedFunc<EventParams02, ()>),
}

const ON_EVENT: &str = "on-event";

/// The exports of a component.
pub(crate) struct ByComponent {
    on_event: ComponentEvent,
    describe: component::TypedFunc<(), Answer>,
    start: component::TypedFunc<(List, List), Answer>,
    save: component::TypedFunc<(), Answer>,
    load: component::TypedFunc<(List,), Answer>,
}

impl ByComponent {
    fn new(
        contract: ContractVersion,
        store: &mut Store<Context>,
        instance: &component::Instance,
    ) -> wasmtime::Result<Self> {
        let on_event = match contract {
            ContractVersion::V0_1 => {
                ComponentEvent::V0_1(instance.get_typed_func(&mut *store, ON_EVENT)?)
            }
            ContractVersion::V0_2 => {
                ComponentEvent::V0_2(instance.get_typed_func(&mut *store, ON_EVENT)?)
            }
        };
        Ok(Self {
            on_event,
            describe: instance.get_typed_func(&mut *store, "describe")?,
            start: instance.get_typed_func(&mut *store, contract.start())?,
            save: instance.get_typed_func(&mut *store, "save")?,
            load: instance.get_typed_func(&mut *store, "load")?,
        })
    }
}

/// The exports of a core module, by their canonical names.
pub(crate) struct Direct {
    memory: Memory,
    realloc: TypedFunc<(u32, u32, u32, u32), u32>,
    on_event: DirectEvent,
    describe: Answering<()>,
    start: Answering<(u32, u32, u32, u32)>,
    save: Answering<()>,
    load: Answering<(u32, u32)>,
    answer_bytes: usize,
}

impl Direct {
    fn new(
        contract: ContractVersion,
        store: &mut Store<Context>,
        instance: &wasmtime::Instance,
    ) -> wasmtime::Result<Self> {
        // As in `wit-component`: a module's initialiser runs before anything else.
        if let Some(initialize) = instance.get_func(&mut *store, "_initialize") {
            initialize.typed::<(), ()>(&store)?.call(&mut *store, ())?;
        }
        let memory = instance
            .get_memory(&mut *store, "memory")
            .ok_or_else(|| Breach::contract("the module exports no memory"))?;
        let on_event = match contract {
            ContractVersion::V0_1 => {
                DirectEvent::V0_1(instance.get_typed_func(&mut *store, ON_EVENT)?)
            }
            ContractVersion::V0_2 => {
                DirectEvent::V0_2(instance.get_typed_func(&mut *store, ON_EVENT)?)
            }
        };
        Ok(Self {
            memory,
            realloc: instance.get_typed_func(&mut *store, "cabi_realloc")?,
            on_event,
            describe: Answering::new(store, instance, "describe")?,
            start: Answering::new(store, instance, contract.start())?,
            save: Answering::new(store, instance, "save")?,
            load: Answering::new(store, instance, "load")?,
            answer_bytes: store.hostcall_fuel(),
        })
    }

    /// Copies a list into the guest's memory. Returns pointer and length.
    fn lower(&self, store: &mut Store<Context>, bytes: &[u8]) -> wasmtime::Result<(u32, u32)> {
        let length = u32::try_from(bytes.len())
            .map_err(|_| Breach::contract(format!("{} bytes are too many", bytes.len())))?;
        store.data_mut().may_leave = false;
        let pointer = self.realloc.call(&mut *store, (0, 0, 1, length))?;
        store.data_mut().may_leave = true;
        let start = pointer as usize;
        self.memory
            .data_mut(store)
            .get_mut(start..start + bytes.len())
            .ok_or_else(|| Breach::contract(out_of_bounds(pointer, bytes.len())))?
            .copy_from_slice(bytes);
        Ok((pointer, length))
    }

    /// Reads the list to which the pair at `area` points.
    fn lift(&self, store: &mut Store<Context>, area: u32) -> wasmtime::Result<Vec<u8>> {
        if !area.is_multiple_of(4) {
            return Err(Breach::contract(format!(
                "the answer's pointer {area} is not aligned to 4"
            )));
        }
        let memory = self.memory.data(store);
        let word = |at: usize| -> Option<u32> {
            let bytes = memory.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let area_start = area as usize;
        let pair = word(area_start).zip(word(area_start + 4));
        let (pointer, length) = pair.ok_or_else(|| Breach::contract(out_of_bounds(area, 8)))?;
        let (start, length) = (pointer as usize, length as usize);
        let list = memory
            .get(start..start + length)
            .ok_or_else(|| Breach::contract(out_of_bounds(pointer, length)))?;
        if length > self.answer_bytes {
            return Err(Breach::contract(format!(
                "an answer of {length} bytes, at most {} are allowed",
                self.answer_bytes
            )));
        }
        Ok(list.to_vec())
    }
}

/// An export that returns a list, and the function that frees the answer.
struct Answering<P> {
    call: TypedFunc<P, u32>,
    post_return: Option<TypedFunc<u32, ()>>,
}

impl<P: wasmtime::WasmParams> Answering<P> {
    fn new(
        store: &mut Store<Context>,
        instance: &wasmtime::Instance,
        name: &str,
    ) -> wasmtime::Result<Self> {
        let post_return = instance.get_func(&mut *store, &format!("cabi_post_{name}"));
        Ok(Self {
            call: instance.get_typed_func(&mut *store, name)?,
            post_return: post_return.map(|f| f.typed(&store)).transpose()?,
        })
    }

    fn call(
        &self,
        guest: &Direct,
        store: &mut Store<Context>,
        params: P,
    ) -> wasmtime::Result<Vec<u8>> {
        let area = self.call.call(&mut *store, params)?;
        let answer = guest.lift(store, area)?;
        if let Some(post_return) = &self.post_return {
            store.data_mut().may_leave = false;
            post_return.call(&mut *store, area)?;
            store.data_mut().may_leave = true;
        }
        Ok(answer)
    }
}
