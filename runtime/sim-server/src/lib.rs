//! The simulated venue as a server on loopback: HTTP and WebSocket around `windvane-sim`.
//!
//! What may never enter this crate: code of the client or the engine's state. It reads the
//! documents for itself: raw bytes in, raw bytes out.
//!
//! # Shape
//! One `state` behind one mutex, without IO and without a clock: the time is an argument.
//! Around it: `http` takes requests off the wire and gives them to `http::dispatch`, which
//! asks `limits`, `auth` and then the family's handler (`orders`, `market_routes`, `wallet`);
//! `stream` carries events and frames to WebSocket connections; `control` breaks things on
//! request; a ticker lets time pass. [`Machine`] is all of it without the sockets.

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
pub use machine::{Answered, Asked, Frame, Machine, Response, StreamId};
pub use settings::Settings;
pub use start::{Addresses, Running, StartError, start};
pub use state::AccountKeys;
pub use stream::StreamLimits;
pub use windvane_sim_market::{Recorded, RecordedEvent, RecordedEvents, Recording, Source};
