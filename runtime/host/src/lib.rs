//! The WebAssembly host of strategies.
