//! The simulated venue as a server on loopback: HTTP and WebSocket around `windvane-sim`.
//!
//! `cli` (`windvane venue`), the end-to-end tests and the fault simulator run it. This crate must
//! not contain code of the client or state of the engine. It interprets the interface
//! independently, from raw bytes to raw bytes.
//!
//! # Shape
//! One `state` is behind one mutex. It does no IO and has no clock; time is an argument. Around it:
//!
//! - `http` receives requests and passes them to `http::dispatch`. That calls `limits`, `auth` and
//!   the handler of the route's family (`orders`, `market_routes`, `wallet`).
//! - `stream` carries events and frames to WebSocket connections.
//! - `control` injects faults on request.
//! - A ticker advances the time.
//!
//! [`Machine`] is the same venue without the sockets.

#![forbid(unsafe_code)]

mod audience;
mod auth;
mod choices;
mod control;
mod figures;
mod http;
mod json;
mod limits;
mod machine;
mod market_routes;
mod orders;
mod settings;
mod start;
mod state;
mod stream;
mod user_events;
mod wallet;

pub use choices::{ChoiceError, Choices, OpenPoint};
pub use http::Port;
pub use limits::LimitSettings;
pub use machine::{Frame, HttpRequest, HttpResult, Machine, Response, StreamId};
pub use settings::Settings;
pub use start::{Addresses, Running, StartError, start};
pub use state::AccountKeys;
pub use stream::StreamLimits;
pub use windvane_sim_market::{Recorded, RecordedEvents, Recording, Source};
