//! What one strategy may use, and the store's limiter that holds it to memory, tables and
//! instances. Everything here is counted, never timed: time would differ from run to run.

use crate::fault::Breach;

/// What one strategy may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fuel of one event: about one unit per WebAssembly instruction, plus the host's calls.
    pub fuel_per_event: u64,
    /// Fuel of one call of `describe`, `start`, `save` or `load`, and of the module's start.
    pub fuel_per_setup: u64,
    /// Linear memory, all memories of the strategy together.
    pub memory_bytes: usize,
    /// Elements of each table.
    pub table_elements: usize,
    /// Core instances; a wrapped Rust module has three.
    pub instances: usize,
    /// Intents of one event, refused ones included.
    pub intents_per_event: usize,
    /// Bytes of log messages of one event.
    pub log_bytes_per_event: usize,
    /// Points of one event.
    pub plots_per_event: usize,
    /// Size of the module file; it bounds the time to compile, which fuel does not.
    pub module_bytes: usize,
    /// Size of an answer of `describe`, `start`, `save` and `load`.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel_per_event: 2_000_000,
            fuel_per_setup: 2_000_000_000,
            memory_bytes: 64 << 20,
            table_elements: 20_000,
            instances: 32,
            intents_per_event: 1_000,
            log_bytes_per_event: 64 << 10,
            plots_per_event: 1_000,
            module_bytes: 64 << 20,
            answer_bytes: 16 << 20,
        }
    }
}

/// Counts what a store's instances hold. Growth beyond a limit is a trap, not a `-1` that a guest
/// may handle: what happens at a limit must not depend on the guest.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_bytes: usize,
    memory_bytes_max: usize,
    table_elements_max: usize,
    instances_max: usize,
}

impl Limiter {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements,
            instances_max: limits.instances,
        }
    }
}

impl wasmtime::ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let grown = self.memory_bytes + desired.saturating_sub(current);
        if grown > self.memory_bytes_max {
            return Err(wasmtime::Error::new(Breach::Memory {
                wanted: grown,
                limit: self.memory_bytes_max,
            }));
        }
        self.memory_bytes = grown;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.table_elements_max {
            return Err(wasmtime::Error::new(Breach::Table {
                wanted: desired,
                limit: self.table_elements_max,
            }));
        }
        Ok(true)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.instances_max
    }

    fn memories(&self) -> usize {
        self.instances_max
    }
}
