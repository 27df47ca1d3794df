//! The module's side of the contract: one strategy in one slot, and the exports around it.

use std::cell::RefCell;

use crate::ctx::Ctx;
use crate::event::Raw;
use crate::instrument::Instrument;
use crate::json::{Json, write_text};
use crate::number::Time;
use crate::params::Params;
use crate::strategy::{Strategy, dispatch};

/// Holds the one strategy of a module. A module has one thread and the runtime never enters it
/// twice, so the cell is never borrowed twice; the check costs less than a nanosecond.
#[doc(hidden)]
pub struct Slot<S> {
    loaded: RefCell<Option<(S, Ctx)>>,
}

impl<S: Strategy> Slot<S> {
    /// Nothing loaded.
    #[expect(
        clippy::new_without_default,
        reason = "only the macro makes one, in a constant"
    )]
    pub const fn new() -> Self {
        Self {
            loaded: RefCell::new(None),
        }
    }

    /// `describe`: name and version are those of the strategy's own package.
    pub fn describe(name: &str, version: &str) -> Vec<u8> {
        let mut out = String::from("{\"name\":");
        write_text(&mut out, name);
        out.push_str(",\"version\":");
        write_text(&mut out, version);
        out.push_str(",\"state_schema\":");
        out.push_str(&S::STATE_SCHEMA.to_string());
        out.push_str(",\"capabilities\":[");
        for (index, capability) in S::CAPABILITIES.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { "," });
            write_text(&mut out, capability.name());
        }
        out.push_str("]}");
        out.into_bytes()
    }

    /// `start`: empty, or the reason why it cannot start.
    pub fn start(&self, config: &[u8], instruments: &[u8]) -> Vec<u8> {
        answer(self.try_start(config, instruments))
    }

    fn try_start(&self, config: &[u8], instruments: &[u8]) -> Result<(), String> {
        let json = Json::parse(instruments)?;
        let Some(Json::List(entries)) = json.get("instruments") else {
            return Err("start: instruments is not a list".to_owned());
        };
        let list: Result<Vec<_>, _> = entries.iter().map(Instrument::from_json).collect();
        let assets = match json.get("assets") {
            Some(Json::List(names)) => names
                .iter()
                .filter_map(Json::scalar)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        };
        let ctx = Ctx::new(list?, assets);
        let strategy = S::new(Params::parse(config)?, ctx.instruments())?;
        *self.loaded.borrow_mut() = Some((strategy, ctx));
        Ok(())
    }

    /// `on-event`. Events before `start` are passed over.
    #[inline]
    pub fn on_event(&self, ms: i64, ns: u32, sequence: i64, raw: &Raw) {
        if let Some((strategy, ctx)) = &mut *self.loaded.borrow_mut() {
            ctx.enter(Time::from_parts(ms, ns), sequence, raw);
            dispatch(strategy, ctx, raw);
        }
    }

    /// `save`: the schema number, then the strategy's own bytes.
    pub fn save(&self) -> Vec<u8> {
        let mut out = S::STATE_SCHEMA.to_le_bytes().to_vec();
        if let Some((strategy, _)) = &*self.loaded.borrow() {
            out.extend(strategy.save());
        }
        out
    }

    /// `load`: empty, or the reason why the state cannot be used.
    pub fn load(&self, state: &[u8]) -> Vec<u8> {
        let Some((schema, own)) = state.split_first_chunk::<4>() else {
            return answer(Err("the state has no schema number".to_owned()));
        };
        match &mut *self.loaded.borrow_mut() {
            Some((strategy, _)) => answer(strategy.load(u32::from_le_bytes(*schema), own)),
            None => answer(Err("load came before start".to_owned())),
        }
    }
}

/// Most bytes of a panic's message: the runtime keeps no more of a fault.
#[cfg(any(target_arch = "wasm32", test))]
const PANIC_BYTES_MAX: usize = 4_096;

/// From now on a panic reports its message, file and line, which ends the callback. A trap would say
/// neither.
#[cfg(target_arch = "wasm32")]
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let line = panic_line(&panic.to_string());
        crate::imports::fault::report(line.as_bytes());
    }));
}

/// One line of bounded length from `panicked at FILE:LINE:COLUMN:` and the message below it.
#[cfg(any(target_arch = "wasm32", test))]
fn panic_line(text: &str) -> String {
    let mut line = text.replacen('\n', " ", 1);
    let mut end = line.len().min(PANIC_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    line
}

fn answer(result: Result<(), String>) -> Vec<u8> {
    match result {
        Ok(()) => Vec::new(),
        Err(reason) if reason.is_empty() => b"no reason given".to_vec(),
        Err(reason) => reason.into_bytes(),
    }
}

/// Makes a [`Strategy`] the strategy of this module. Name and version are those of the package.
/// Natively it does nothing, so that the same source is tested with `cargo test`.
#[macro_export]
macro_rules! export {
    ($strategy:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            ::std::thread_local! {
                static SLOT: $crate::Slot<$strategy> = const { $crate::Slot::new() };
            }

            struct Module;

            impl $crate::bindings::Guest for Module {
                fn describe() -> ::std::vec::Vec<u8> {
                    $crate::report_panics();
                    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
                    $crate::Slot::<$strategy>::describe(name, version)
                }
                fn start(
                    config: ::std::vec::Vec<u8>,
                    list: ::std::vec::Vec<u8>,
                ) -> ::std::vec::Vec<u8> {
                    $crate::report_panics();
                    SLOT.with(|slot| slot.start(&config, &list))
                }
                #[inline]
                fn on_event(
                    ms: i64,
                    ns: u32,
                    sequence: i64,
                    kind: u32,
                    instrument: u32,
                    flags: u32,
                    a: i64,
                    b: i64,
                    c: i64,
                    d: i64,
                    e: i64,
                    f: i64,
                    id: i64,
                ) {
                    let raw = $crate::Raw {
                        kind,
                        instrument,
                        flags,
                        a,
                        b,
                        c,
                        d,
                        e,
                        f,
                        id,
                    };
                    SLOT.with(|slot| slot.on_event(ms, ns, sequence, &raw));
                }
                fn save() -> ::std::vec::Vec<u8> {
                    SLOT.with(|slot| slot.save())
                }
                fn load(state: ::std::vec::Vec<u8>) -> ::std::vec::Vec<u8> {
                    SLOT.with(|slot| slot.load(&state))
                }
            }

    $crate::bindings::export!(Module with_types_in $crate::bindings);
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_bounded_line() {
        let text = "panicked at src/lib.rs:7:5:\nthe spread is -3";
        assert_eq!(
            panic_line(text),
            "panicked at src/lib.rs:7:5: the spread is -3"
        );
        let long = panic_line(&"\u{20ac}".repeat(5_000));
        assert!(long.len() <= PANIC_BYTES_MAX && long.len() > PANIC_BYTES_MAX - 3);
    }
}
