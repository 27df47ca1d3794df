//! The limits of one strategy, and the store's limiter for memory, tables and instances. All limits
//! are counts. Time would differ from run to run; see `watch.rs` for callers with a clock.

use serde::{Deserialize, Serialize};

use crate::fault::Breach;

/// The limits of one strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Largest fuel of one event: about one unit for each WebAssembly instruction, plus the cost of host
    /// calls.
    pub fuel_per_event: u64,
    /// Largest fuel of one call of `describe`, `start`, `save` or `load`, and of the module's start
    /// function.
    pub fuel_per_setup: u64,
    /// Largest total size of all linear memories of the strategy, in bytes.
    pub memory_bytes: usize,
    /// Largest number of elements of each table.
    pub table_elements: usize,
    /// Largest number of core instances, and of tables. A wrapped Rust module has three instances;
    /// a component of `componentize-py` has 38. Each costs memory of the host, which
    /// `instance_bytes` limits.
    pub instances: usize,
    /// Largest number of linear memories. Each reserves 4 GiB of address space.
    pub memories: usize,
    /// Largest estimate of the host's memory for all instances without their linear memories:
    /// globals, references to functions and elements, in bytes.
    pub instance_bytes: usize,
    /// Largest number of intents of one event, including refused ones.
    pub intents_per_event: usize,
    /// Largest total size of the log messages of one event, in bytes.
    pub log_bytes_per_event: usize,
    /// Largest number of plot points of one event.
    pub plots_per_event: usize,
    /// Largest size of the module file, in bytes. It limits the compile time, which fuel does not.
    pub module_bytes: usize,
    /// Largest size of an answer of `describe`, `start`, `save` or `load`, in bytes.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel_per_event: 2_000_000,
            fuel_per_setup: 2_000_000_000,
            memory_bytes: 64 << 20,
            table_elements: 20_000,
            instances: 128,
            memories: 32,
            instance_bytes: 128 << 20,
            intents_per_event: 1_000,
            log_bytes_per_event: 64 << 10,
            plots_per_event: 1_000,
            module_bytes: 64 << 20,
            answer_bytes: 16 << 20,
        }
    }
}

/// Counts the memory, tables and instances of a store. Growth beyond a limit is a trap. It must not
/// return `-1`, because a guest could handle that in its own way.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_bytes: usize,
    memory_bytes_max: usize,
    table_elements_max: usize,
    instances_max: usize,
    memories_max: usize,
}

impl Limiter {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements,
            instances_max: limits.instances,
            memories_max: limits.memories,
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
        self.memories_max
    }
}
