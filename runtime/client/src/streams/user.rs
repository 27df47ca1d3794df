//! The user stream of a surface: account and order events, with a listen key that is kept alive.

use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_protocol::route::Surface;
use windvane_protocol::user_stream::{self, UserStreamEvent};

use windvane_client_core::streams::{key_rules, rules, user_frame_kind};

use crate::client::Client;

use super::StreamItem;
use super::driver::Driver;
use super::received::Received;
use super::start::{self, StreamStartError};

/// Events of the account; see [`Client::user_stream`].
#[derive(Debug)]
pub struct UserStream {
    surface: Surface,
    items: mpsc::Receiver<StreamItem<Received>>,
    restarts: mpsc::Sender<()>,
}

impl Client {
    /// The user stream of spot or futures. It runs until it is dropped. It creates and renews
    /// listen keys through this client, in the version that the settings choose. Call this function
    /// inside a tokio runtime.
    ///
    /// ```no_run
    /// use windvane_client::streams::StreamItem;
    /// use windvane_protocol::route::Surface;
    ///
    /// # async fn watch(client: windvane_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut stream = client.user_stream(Surface::Spot)?;
    /// while let Some(item) = stream.next().await {
    ///     match item {
    ///         StreamItem::Connected { .. } => println!("now read orders and balances"),
    ///         StreamItem::Gap { reason, .. } => println!("events may be missing: {reason}"),
    ///         StreamItem::Failed { why, .. } => println!("still not connected: {why}"),
    ///         StreamItem::Event(event) => println!("{event:?}"),
    ///         StreamItem::Unreadable { error, .. } => println!("missed an event: {error}"),
    ///         StreamItem::Alive { .. } => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn user_stream(&self, surface: Surface) -> Result<UserStream, StreamStartError> {
        let settings = self.settings();
        let address = start::user_address(settings, surface)?;
        let (items, receiver) = mpsc::channel(settings.streams.capacity.max(1));
        let (restarts, restart_requests) = mpsc::channel(1);
        let driver = Driver {
            connection: 0,
            client: self.clone(),
            surface,
            url: format!("{}/ws/", address.as_str().trim_end_matches('/')),
            tls: self.tls(),
            connect_within: settings.streams.connect_within,
            look: user_frame_kind,
            items,
            restarts: restart_requests,
        };
        let mut rules = rules(&settings.streams, surface as u64);
        rules.key = Some(key_rules(&settings.streams));
        tokio::spawn(driver.run(rules));
        Ok(UserStream {
            surface,
            items: receiver,
            restarts,
        })
    }
}

impl UserStream {
    /// The next item with its event as received, for callers that keep or print frames. `None` only
    /// when the tokio runtime is shutting down.
    pub async fn next_text(&mut self) -> Option<StreamItem<Utf8Bytes>> {
        let item = self.items.recv().await?;
        Some(item.read(0, |received| Ok(received.text)))
    }

    /// The next item. `None` only when the tokio runtime is shutting down.
    pub async fn next(&mut self) -> Option<StreamItem<UserStreamEvent>> {
        let item = self.next_text().await?;
        let surface = engine_surface(self.surface);
        Some(item.read(0, |text| {
            user_stream::decode(surface, &text)
                .map_err(|error| (text.to_string(), error.to_string()))
        }))
    }

    /// Closes the connection and opens a new one. A consumer calls it if it has evidence that the
    /// stream is silent but should not be. [`super::GapReason::Requested`] follows.
    pub fn restart(&self) {
        // One waiting request is enough.
        let _ = self.restarts.try_send(());
    }
}

fn engine_surface(surface: Surface) -> user_stream::Surface {
    match surface {
        Surface::Spot => user_stream::Surface::Spot,
        _ => user_stream::Surface::Futures,
    }
}
