//! The simulated venue as a server on loopback: HTTP and WebSocket around `windvane-sim`.
//!
//! `cli` (`windvane venue`), the end-to-end tests and the fault simulator use it. This crate must
//! not contain code of the client or state of the engine. It interprets the interface
//! independently, from raw bytes to raw bytes.
//!
//! # Shape
//! The modules form layers. A module imports only modules of its own line in this list or of the
//! lines before. All but the last two do no IO and have no clock; time is an argument.
//!
//! - Forms and settings: `request` (requests, responses, the route table), `settings`, `choices`,
//!   `figures`, `json`, `account_id`, `user_frame`.
//! - State by area, with the rules that need no other area: `faults` (fault switches), `counters`,
//!   `limits`, `stream` (topics, frames, and the queues of connections), `accounts`, `wallet`.
//! - `state`: all of these together.
//! - Rules over several areas: `audience` (accounts and market), `user_events`, `advance` (the
//!   time), `auth`.
//! - Handlers: `market_routes`, `orders`, `wallet_routes`, `stream_routes`.
//! - `dispatch` takes a request from raw bytes to its handler; `control` injects faults on request.
//! - `machine`: [`Machine`] is the venue in the caller's time.
//! - `http`: listeners, and connections over HTTP and WebSocket. The state is behind one mutex.
//! - `start` binds the ports; a ticker advances the time.

#![forbid(unsafe_code)]

mod account_id;
mod accounts;
mod advance;
mod audience;
mod auth;
mod choices;
mod control;
mod counters;
mod dispatch;
mod faults;
mod figures;
mod http;
mod json;
mod limits;
mod machine;
mod market_routes;
mod orders;
mod request;
mod settings;
mod start;
mod state;
mod stream;
mod stream_routes;
mod user_events;
mod user_frame;
mod wallet;
mod wallet_routes;

pub use accounts::AccountKeys;
pub use choices::{ChoiceError, Choices, OpenPoint};
pub use machine::{Frame, HttpRequest, HttpResult, Machine, Response, StreamId};
pub use request::Port;
pub use settings::{LimitSettings, Settings, StartError, StreamLimits};
pub use start::{Addresses, Running, start};
pub use windvane_sim_market::{Recorded, RecordedEvents, Recording, Source};
