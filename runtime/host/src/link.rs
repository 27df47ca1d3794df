//! Links the host functions to their names in both linkers, with the fuel cost of each call, from
//! one table for each version of the contract. Functions that are not granted are not linked.
//!
//! There is one exception in contract 0.1: `log` is always linked, because a panic is reported
//! through it. Without the grant its lines are dropped. Contract 0.2 has `fault` for this purpose.

use wasmtime::component::WasmList;
use wasmtime::{AsContextMut, Caller, Extern, StoreContextMut, Trap};

use crate::capability::{Capabilities, Capability};
use crate::context::{Context, report_fault};
use crate::contract::ContractVersion;
use crate::fault::Breach;

/// Fuel of a query to the engine. A tight loop of a guest burns about as much in the same time.
const QUERY: u64 = 50;
/// Fuel of an intent, which is validated and checked against the limits at once.
const INTENT: u64 = 500;
/// Fuel of a log line or plot point, in addition to one unit for each byte.
const OUTPUT: u64 = 200;

/// Charges the guest for work of the host, so that fuel limits the whole callback.
#[inline]
fn charge(store: &mut impl AsContextMut<Data = Context>, cost: u64) -> wasmtime::Result<()> {
    let mut store = store.as_context_mut();
    if !store.data().may_leave {
        return Err(Breach::contract(
            "an import was called while the guest allocated or freed memory for the host",
        ));
    }
    // Some host functions search the intents of this callback.
    let cost = cost + store.data().callback.intents().len() as u64;
    let left = store.get_fuel()?.checked_sub(cost);
    store.set_fuel(left.unwrap_or(0))?;
    left.map(|_| ()).ok_or_else(|| Trap::OutOfFuel.into())
}

macro_rules! integer_imports {
    ($core:ident, $component:ident, {$($interface:literal $capability:ident {
        $($name:literal: $method:ident($($arg:ident: $ty:ty),*), $fuel:ident;)*
    })*}) => {
        fn $core(
            linker: &mut wasmtime::Linker<Context>,
            granted: Capabilities,
        ) -> wasmtime::Result<()> {
            $(if granted.contains(Capability::$capability) {
                $(linker.func_wrap(
                    $interface,
                    $name,
                    |mut caller: Caller<'_, Context>, $($arg: $ty),*| -> wasmtime::Result<i64> {
                        charge(&mut caller, $fuel)?;
                        caller.data_mut().$method($($arg),*)
                    },
                )?;)*
            })*
            Ok(())
        }

        fn $component(
            linker: &mut wasmtime::component::Linker<Context>,
            granted: Capabilities,
        ) -> wasmtime::Result<()> {
            $(if granted.contains(Capability::$capability) {
                let mut instance = linker.instance($interface)?;
                $(instance.func_wrap(
                    $name,
                    |mut store: StoreContextMut<'_, Context>, ($($arg,)*): ($($ty,)*)| {
                        charge(&mut store, $fuel)?;
                        Ok((store.data_mut().$method($($arg),*)?,))
                    },
                )?;)*
            })*
            Ok(())
        }
    };
}

integer_imports! {link_core_0_1, link_component_0_1, {
    "windvane:strategy/orders@0.1.0" Orders {
        "submit": submit_0_1(
            instrument: u32, flags: u32, qty: i64, price: i64, stop_price: i64,
            activation_price: i64, callback_ppm: u32, quote_qty: i64
        ), INTENT;
        "cancel": cancel(order: i64), INTENT;
        "cancel-all": cancel_all(instrument: i32), INTENT;
    }
    "windvane:strategy/account@0.1.0" Account {
        "position": position(instrument: u32, side: u32, field: u32), QUERY;
        "open-orders": open_orders(instrument: i32), QUERY;
        "open-order": open_order(instrument: i32, index: u32), QUERY;
        "order": order_0_1(order: i64, field: u32), QUERY;
        "balance": balance(surface: u32, asset: u32, field: u32), QUERY;
    }
    "windvane:strategy/market@0.1.0" Market {
        "book": book(instrument: u32, side: u32, level: u32, field: u32), QUERY;
        "last": last(instrument: u32, field: u32), QUERY;
        "rule": rule_0_1(instrument: u32, field: u32), QUERY;
    }
    "windvane:strategy/timers@0.1.0" Timers {
        "set": set_timer_0_1(time: i64, token: i64), INTENT;
        "cancel": cancel_timer(token: i64), INTENT;
    }
}}

integer_imports! {link_core_0_2, link_component_0_2, {
    "windvane:strategy/orders@0.2.0" Orders {
        "submit": submit(
            instrument: u32, flags: u32, qty: i64, price: i64, stop_price: i64,
            activation_price: i64, callback_ppm: u32, quote_qty: i64, group: i64, trail: i64
        ), INTENT;
        "cancel": cancel(order: i64), INTENT;
        "cancel-all": cancel_all(instrument: i32), INTENT;
        "amend": amend(
            order: i64, qty: i64, price: i64, stop_price: i64, trail: i64
        ), INTENT;
        "begin-group": begin_group(kind: u32, instrument: u32, flags: u32), INTENT;
        "cancel-group": cancel_group(group: i64, what: u32), INTENT;
    }
    "windvane:strategy/account@0.2.0" Account {
        "position": position(instrument: u32, side: u32, field: u32), QUERY;
        "open-orders": open_orders(instrument: i32), QUERY;
        "open-order": open_order(instrument: i32, index: u32), QUERY;
        "order": order(order: i64, field: u32), QUERY;
        "open-groups": open_groups(instrument: i32), QUERY;
        "open-group": open_group(instrument: i32, index: u32), QUERY;
        "group": group(group: i64, field: u32), QUERY;
        "balance": balance(surface: u32, asset: u32, field: u32), QUERY;
    }
    "windvane:strategy/market@0.2.0" Market {
        "book": book(instrument: u32, side: u32, level: u32, field: u32), QUERY;
        "last": last(instrument: u32, field: u32), QUERY;
        "rule": rule(instrument: u32, field: u32), QUERY;
        "history": history(instrument: u32, interval_ms: i64, count: u32), INTENT;
    }
    "windvane:strategy/timers@0.2.0" Timers {
        "set": set_timer(ms: i64, ns: u32, token: i64), INTENT;
        "cancel": cancel_timer(token: i64), INTENT;
    }
}}

/// Names of the interfaces whose functions take bytes.
struct Names {
    log: &'static str,
    plot: &'static str,
}

impl ContractVersion {
    const fn names(self) -> Names {
        match self {
            Self::V0_1 => Names {
                log: "windvane:strategy/log@0.1.0",
                plot: "windvane:strategy/plot@0.1.0",
            },
            Self::V0_2 => Names {
                log: "windvane:strategy/log@0.2.0",
                plot: "windvane:strategy/plot@0.2.0",
            },
        }
    }

    /// Whether an interface is linked.
    pub(crate) fn links(self, capability: Capability, granted: Capabilities) -> bool {
        let always = self == Self::V0_1 && capability == Capability::Log;
        always || granted.contains(capability)
    }

    /// The first imported capability that is not linked.
    pub(crate) fn unlinked(
        self,
        imported: Capabilities,
        granted: Capabilities,
    ) -> Option<Capability> {
        let mut imported = imported.iter();
        imported.find(|capability| !self.links(*capability, granted))
    }
}

const FAULT: &str = "windvane:strategy/fault@0.2.0";

/// The linker of the direct path.
pub(crate) fn core_linker(
    engine: &wasmtime::Engine,
    contract: ContractVersion,
    granted: Capabilities,
) -> wasmtime::Result<wasmtime::Linker<Context>> {
    let mut linker = wasmtime::Linker::new(engine);
    let names = contract.names();
    match contract {
        ContractVersion::V0_1 => link_core_0_1(&mut linker, granted)?,
        ContractVersion::V0_2 => {
            link_core_0_2(&mut linker, granted)?;
            linker.func_wrap(
                FAULT,
                "report",
                |mut caller: Caller<'_, Context>, pointer: u32, length: u32| {
                    with_bytes(&mut caller, pointer, length, |_, message| {
                        Err(report_fault(message))
                    })
                },
            )?;
        }
    }
    if contract.links(Capability::Log, granted) {
        linker.func_wrap(
            names.log,
            "log",
            |mut caller: Caller<'_, Context>, level: u32, pointer: u32, length: u32| {
                with_bytes(&mut caller, pointer, length, |context, message| {
                    context.log(level, message)
                })
            },
        )?;
    }
    if contract.links(Capability::Plot, granted) {
        linker.func_wrap(
            names.plot,
            "plot",
            |mut caller: Caller<'_, Context>, pointer: u32, length: u32, value: i64, scale: u32| {
                with_bytes(&mut caller, pointer, length, |context, series| {
                    context.plot(series, value, scale)
                })
            },
        )?;
    }
    Ok(linker)
}

/// The linker of the component path.
pub(crate) fn component_linker(
    engine: &wasmtime::Engine,
    contract: ContractVersion,
    granted: Capabilities,
) -> wasmtime::Result<wasmtime::component::Linker<Context>> {
    let mut linker = wasmtime::component::Linker::new(engine);
    let names = contract.names();
    match contract {
        ContractVersion::V0_1 => link_component_0_1(&mut linker, granted)?,
        ContractVersion::V0_2 => {
            link_component_0_2(&mut linker, granted)?;
            linker.instance(FAULT)?.func_wrap(
                "report",
                |mut store: StoreContextMut<'_, Context>, (message,): (WasmList<u8>,)| {
                    charge(&mut store, OUTPUT + message.len() as u64)?;
                    let error = report_fault(message.as_le_slice(&store));
                    Err::<(), _>(error)
                },
            )?;
        }
    }
    if contract.links(Capability::Log, granted) {
        linker.instance(names.log)?.func_wrap(
            "log",
            |mut store: StoreContextMut<'_, Context>, (level, message): (u32, WasmList<u8>)| {
                charge(&mut store, OUTPUT + message.len() as u64)?;
                let message = message.as_le_slice(&store).to_vec();
                store.data_mut().log(level, &message)
            },
        )?;
    }
    if contract.links(Capability::Plot, granted) {
        linker.instance(names.plot)?.func_wrap(
            "plot",
            |mut store: StoreContextMut<'_, Context>,
             (series, value, scale): (WasmList<u8>, i64, u32)| {
                charge(&mut store, OUTPUT + series.len() as u64)?;
                let series = series.as_le_slice(&store).to_vec();
                store.data_mut().plot(&series, value, scale)
            },
        )?;
    }
    Ok(linker)
}

/// Charges for the bytes to which a core module points, and passes them to `use_them`.
fn with_bytes(
    caller: &mut Caller<'_, Context>,
    pointer: u32,
    length: u32,
    use_them: impl FnOnce(&mut Context, &[u8]) -> wasmtime::Result<()>,
) -> wasmtime::Result<()> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        return Err(Breach::contract("the module exports no memory"));
    };
    let (start, length) = (pointer as usize, length as usize);
    if start + length > memory.data_size(&*caller) {
        return Err(Breach::contract(out_of_bounds(pointer, length)));
    }
    charge(caller, OUTPUT + length as u64)?;
    let (memory, context) = memory.data_and_store_mut(caller);
    use_them(context, &memory[start..start + length])
}

/// The message for a pointer outside the guest's memory.
pub(crate) fn out_of_bounds(pointer: u32, length: usize) -> String {
    format!("a list of {length} bytes at {pointer} is out of bounds of the guest's memory")
}
