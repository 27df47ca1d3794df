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
//! # use tokio::sync::{mpsc, watch};
//! # use windvane_admin::*;
//! # async fn run(data_dir: &Path) -> Result<(), Box<dyn std::error::Error>> {
//! let metrics = Metrics::install()?;
//! let token = Token::read_or_create(&data_dir.join("admin.token"))?;
//! let (publish, published) = watch::channel(Arc::new(Published::default()));
//! let (steer, mut steered) = mpsc::channel(16);
//! let heartbeat = Heartbeat::new();
//! let served = Served {
//!     published: published.clone(),
//!     steer,
//!     heartbeat: heartbeat.clone(),
//!     metrics,
//! };
//! let server = Server::start(Settings::new(data_dir), token, served).await?;
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
pub mod server;
pub mod service;
mod steer;
mod token;
pub mod view;

pub use client::{Admin, Query, QueryError, TokenSource};
pub use heartbeat::Heartbeat;
pub use metrics::Metrics;
pub use server::{Served, Server, Settings, StartError};
pub use service::Notifier;
pub use steer::{Applied, Command, Refused, Steer};
pub use token::{Token, TokenError};
pub use view::Published;
