//! The connections of streams. It opens and closes them as the session decides and reports their
//! events. They are read on the engine's thread.
//!
//! This file does not decide when to connect, and does not read the content of events.

use std::collections::BTreeMap;

use tokio::sync::mpsc::UnboundedSender;
use windvane_client::streams::SocketCommand;
use windvane_model::Surface;
use windvane_session::{SocketAction, venue_surface};

use super::http::RuntimeClient;
use super::mailbox::{LoopEvent, Mailbox};

/// The connections by surface and number.
#[derive(Debug)]
pub struct Sockets {
    own: RuntimeClient,
    mailbox: Mailbox,
    open: BTreeMap<(Surface, u64), UnboundedSender<SocketCommand>>,
}

impl Sockets {
    /// Connections on the engine's thread.
    pub const fn new(own: RuntimeClient, mailbox: Mailbox) -> Self {
        Self {
            own,
            mailbox,
            open: BTreeMap::new(),
        }
    }

    /// Performs an action on a connection.
    pub fn act(&mut self, surface: Surface, link: u64, action: SocketAction) {
        let command = match action {
            SocketAction::Open(path) => return self.open(surface, link, &path),
            SocketAction::Close => {
                self.open.remove(&(surface, link));
                return;
            }
            SocketAction::SendText(text) => SocketCommand::Send(text),
            SocketAction::Ping => SocketCommand::Ping,
        };
        if let Some(socket) = self.open.get(&(surface, link)) {
            // A closed socket reports its end by its own event.
            let _ = socket.send(command);
        }
    }

    fn open(&mut self, surface: Surface, link: u64, path: &str) {
        let mailbox = self.mailbox.clone();
        let emit = move |event| {
            let mailbox = mailbox.clone();
            async move {
                mailbox.post(LoopEvent::Socket(surface, link, event)).await;
                true
            }
        };
        let _entered = self.own.handle.enter();
        let venue = venue_surface(surface);
        match self.own.client.socket(venue, (link, path), emit) {
            Ok(commands) => {
                self.open.insert((surface, link), commands);
            }
            // The configuration was checked for this, so it should not happen.
            Err(error) => {
                tracing::error!(
                    %surface,
                    %error,
                    "could not open a stream; its data is missing until the run is restarted"
                );
            }
        }
    }

    /// Removes a connection that ended.
    pub fn ended(&mut self, surface: Surface, link: u64) {
        self.open.remove(&(surface, link));
    }
}
