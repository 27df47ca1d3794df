//! The admin interface of a running instance: the admin server, the client for the verbs of the
//! command line, the metrics, and messages to the service manager.
//!
//! `live` serves the admin server and the metrics; `cli` uses the client.
//!
//! This crate must not contain the engine, the venue's protocol, keys, or any decision about
//! orders. The binary fills [`Published`] and answers [`Steer`]; this crate transports them:
//!
//! ```no_run
//! # use std::{path::Path, sync::Arc};
//! # use tokio::sync::watch;
//! # use windvane_admin::*;
//! # async fn run(data_dir: &Path) -> Result<(), Box<dyn std::error::Error>> {
//! let metrics = Metrics::install()?;
//! let (publish, published) = watch::channel(Arc::new(Published::default()));
//! let (steer, mut steered) = steering();
//! let heartbeat = Heartbeat::new();
//! let served = Served {
//!     published: published.clone(),
//!     steer,
//!     heartbeat: heartbeat.clone(),
//!     metrics,
//! };
//! let server = Server::start(Settings::new(data_dir), served).await?;
//! let notifier = Notifier::from_env()?;
//! notifier.ready();
//! let engine_loop = async {
//!     // Also publish every 100 ms or so when something changed, without a command.
//!     while let Some(steer) = steered.recv().await {
//!         heartbeat.mark();
//!         if !steer.is_wanted() {
//!             continue;
//!         }
//!         // Carry it out, publish the new state, and only then answer.
//!         publish.send_replace(Arc::new(Published::default()));
//!         let _ = steer.answer.send(Ok(Applied::default()));
//!     }
//! };
//! tokio::select! {
//!     () = engine_loop => {}
//!     () = notifier.keep(heartbeat.clone(), published) => {}
//! }
//! notifier.stopping();
//! server.stop().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod address_file;
pub mod client;
mod heartbeat;
pub mod metrics;
mod proof;
pub mod server;
pub mod service;
mod socket;
mod steer;
mod steering;
mod token;
pub mod view;

pub use client::{Admin, Query, QueryError, TokenSource, Wait};
pub use heartbeat::Heartbeat;
pub use metrics::Metrics;
pub use server::{Served, Server, Settings, StartError, Tcp};
pub use service::Notifier;
pub use steer::{Applied, Cancels, Command, Refused, Steer, StillOpen, WAIT_MAX};
pub use steering::{LoopEnded, SteerReceiver, SteerSender, steering};
pub use token::{Token, TokenError};
pub use view::Published;
