//! The one configuration of wasmtime. Whatever could make two runs differ is off here.

use wasmtime::Config;

/// Stack of a guest where nothing else is asked for.
pub(crate) const WASM_STACK_BYTES: usize = 512 << 10;

/// Fuel only, no epochs: epochs follow the clock, and a replay must stop where the run stopped.
pub(crate) fn wasmtime_config(wasm_stack_bytes: usize) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .max_wasm_stack(wasm_stack_bytes)
        // The bits of a NaN differ between processors.
        .cranelift_nan_canonicalization(true)
        // So do the results of relaxed vector operations.
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(true)
        .wasm_extended_const(true)
        .wasm_tail_call(true)
        .concurrency_support(false)
        // Memory is reserved once, so that growing never copies it.
        .memory_may_move(false);
    config
}
