//! How a running instance is asked and steered: the admin server, the client of the command line's
//! verbs, the metrics, and the service manager's messages.
//!
//! What may never enter this crate: the engine, the venue's wire, keys, and any decision about
//! orders. The binary fills [`Published`] and answers [`Steer`]; this crate carries them.

#![forbid(unsafe_code)]

mod address_file;
mod beat;
pub mod client;
pub mod metrics;
pub mod server;
pub mod service;
mod steer;
mod token;
pub mod view;
mod write_aside;

pub use beat::Beat;
pub use client::{Admin, AskError, Question, TokenSource};
pub use metrics::Metrics;
pub use server::{Served, Server, Settings, StartError};
pub use service::Notifier;
pub use steer::{Applied, Command, Refused, Steer};
pub use token::{Token, TokenError};
pub use view::Published;
