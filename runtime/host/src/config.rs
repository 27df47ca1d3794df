//! The only configuration of wasmtime. Every feature that could make two runs differ is off.

use wasmtime::Config;

/// Default stack size of a guest, in bytes.
pub(crate) const WASM_STACK_BYTES: usize = 512 << 10;

/// Fuel limits each call, so that a replay stops at the same point as the run. Epoch checks are
/// compiled into every module, so that all commands share the native code in the cache. They do
/// nothing unless the caller watches the callbacks and ticks (`watch.rs`).
pub(crate) fn wasmtime_config(wasm_stack_bytes: usize) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(wasm_stack_bytes)
        // The bits of a NaN differ between processors.
        .cranelift_nan_canonicalization(true)
        // The results of relaxed vector operations differ between processors.
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
