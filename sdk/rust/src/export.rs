//! The module's side of the contract: one strategy in one slot, and the exported functions.

use std::cell::RefCell;

use crate::ctx::Ctx;
use crate::event::Raw;
use crate::instrument::Instrument;
use crate::json::{Json, write_text};
use crate::number::Time;
use crate::params::Params;
use crate::strategy::{Strategy, dispatch};

/// Contains the one strategy of a module. A module has one thread and the runtime never enters it
/// twice, so the cell is never borrowed twice. The check costs less than a nanosecond.
#[doc(hidden)]
pub struct Slot<S> {
    loaded: RefCell<Option<(S, Ctx)>>,
}

impl<S: Strategy> Slot<S> {
    /// A slot without a strategy.
    #[expect(
        clippy::new_without_default,
        reason = "only the macro creates one, in a constant"
    )]
    pub const fn new() -> Self {
        Self {
            loaded: RefCell::new(None),
        }
    }

    /// `describe`: the name and the version come from the strategy's package.
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

    /// `start`: returns nothing, or the reason why the strategy cannot start.
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

    /// `on-event`: events before `start` are ignored.
    #[inline]
    pub fn on_event(&self, ms: i64, ns: u32, sequence: i64, raw: &Raw) {
        if let Some((strategy, ctx)) = &mut *self.loaded.borrow_mut() {
            ctx.enter(Time::from_parts(ms, ns), sequence, raw);
            dispatch(strategy, ctx, raw);
        }
    }

    /// `save`: the schema number, followed by the strategy's own bytes.
    pub fn save(&self) -> Vec<u8> {
        let mut out = S::STATE_SCHEMA.to_le_bytes().to_vec();
        if let Some((strategy, _)) = &*self.loaded.borrow() {
            out.extend(strategy.save());
        }
        out
    }

    /// `load`: returns nothing, or the reason why the state cannot be used.
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

/// Largest length of a panic message, bytes. The runtime stores no more of a fault.
#[cfg(any(target_arch = "wasm32", test))]
const PANIC_BYTES_MAX: usize = 4_096;

/// Installs a panic hook that reports the message, the file and the line. The report ends the
/// callback. A trap would report neither message nor place.
#[cfg(target_arch = "wasm32")]
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let line = panic_line(&panic.to_string());
        crate::imports::fault::report(line.as_bytes());
    }));
}

/// Joins `panicked at FILE:LINE:COLUMN:` and the message after it to one line of limited length.
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

/// Exports a [`Strategy`] as the strategy of this module. The name and the version come from the
/// package. In native builds it does nothing, so the same source can be tested with `cargo test`.
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
