//! The simulated venue as a server on loopback: HTTP and WebSocket around `windvane-sim`.
//!
//! What may never enter this crate: code of the client or the engine's state. It reads the
//! documents for itself: raw bytes in, raw bytes out.

#![forbid(unsafe_code)]
