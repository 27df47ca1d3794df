//! Public market streams, on as many connections as the venue's limit of streams requires.

use std::time::Instant;

use tokio::sync::mpsc;
use url::Url;
use windvane_protocol::frame::{BookLevels, FrameError};
use windvane_protocol::market_stream::{self, MarketStreamFrame, Topic};
use windvane_protocol::route::Surface;

use windvane_client_core::streams::{
    BATCH, is_documented, market_frame_kind, millis, rules, subscriptions,
};

use crate::client::Client;
use crate::settings::MarketData;

use super::driver::Driver;
use super::received::Received;
use super::start::{self, StreamStartError};
use super::{MarketPath, StreamItem};

/// Public events; see [`Client::market_stream`].
#[derive(Debug)]
pub struct MarketStream {
    items: mpsc::Receiver<StreamItem<Received>>,
    restarts: Vec<mpsc::Sender<()>>,
}

/// One frame of a public stream, as received. It is decoded only on demand, without a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketFrame(pub(super) Received);

impl MarketFrame {
    /// The text of the frame.
    pub fn text(&self) -> &str {
        self.0.as_ref()
    }

    /// The time when it was read from its socket, or when its polled response arrived.
    pub const fn received(&self) -> Instant {
        self.0.at
    }

    /// Decodes the frame; levels of a book go into `levels`.
    pub fn decode<'a>(
        &'a self,
        levels: &mut BookLevels,
    ) -> Result<MarketStreamFrame<'a>, FrameError> {
        market_stream::decode(self.text(), levels)
    }
}

impl Client {
    /// Streams of these topics, in any number. They are split over connections by the venue's
    /// limit, and subscribed no faster than it allows. The stream runs until it is dropped. Call
    /// this function inside a tokio runtime.
    ///
    /// This function only streams: if `market_data` is documented, it allows only `tradepro`.
    /// [`Self::market_feed`] serves any topic by streams or polling.
    ///
    /// ```no_run
    /// use windvane_client::streams::StreamItem;
    /// use windvane_protocol::BookLevels;
    /// use windvane_protocol::route::Surface;
    ///
    /// # async fn watch(client: windvane_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let topics = ["btcusdt@bookTicker".parse()?, "btcusdt@tradepro".parse()?];
    /// let mut stream = client.market_stream(Surface::Futures, &topics)?;
    /// let mut levels = BookLevels::default();
    /// while let Some(item) = stream.next().await {
    ///     if let StreamItem::Event(frame) = item {
    ///         println!("{:?}", frame.decode(&mut levels)?.event);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn market_stream(
        &self,
        surface: Surface,
        topics: &[Topic],
    ) -> Result<MarketStream, StreamStartError> {
        let settings = self.settings();
        let address = start::address(settings, surface)?;
        if topics.is_empty() {
            return Err(StreamStartError::NoTopics);
        }
        if settings.market_data == MarketData::Documented {
            let other = topics.iter().find(|topic| !is_documented(topic));
            if let Some(topic) = other {
                return Err(StreamStartError::NotDocumented(topic.to_string()));
            }
        }
        let path = match settings.market_data {
            MarketData::Documented => MarketPath::Raw,
            MarketData::Auto | MarketData::Streams => settings.streams.path,
        };
        Ok(self.open_market_stream(surface, topics, (address, path)))
    }

    fn open_market_stream(
        &self,
        surface: Surface,
        topics: &[Topic],
        (address, path): (&Url, MarketPath),
    ) -> MarketStream {
        let settings = self.settings();
        let (items, receiver) = mpsc::channel(settings.streams.capacity.max(1));
        let (mut restarts, mut commands) = (Vec::new(), 0);
        for (connection, topics) in topics
            .chunks(settings.streams.streams_max(surface))
            .enumerate()
        {
            let (restart, restart_requests) = mpsc::channel(1);
            restarts.push(restart);
            let driver = Driver {
                connection,
                client: self.clone(),
                surface,
                url: format!("{}{}", address.as_str().trim_end_matches('/'), path.path()),
                tls: self.tls(),
                connect_within: settings.streams.connect_within,
                look: market_frame_kind,
                items: items.clone(),
                restarts: restart_requests,
            };
            let salt = 16 + surface as u64 + 4 * connection as u64;
            let mut rules = rules(&settings.streams, salt);
            rules.link.silence_max_ms = settings.streams.silence_max.map(millis);
            rules.commands = subscriptions(topics, BATCH, commands);
            commands += rules.commands.len();
            tokio::spawn(driver.run(rules));
        }
        MarketStream {
            items: receiver,
            restarts,
        }
    }
}

impl MarketStream {
    /// The next item, of any of the connections. `None` only when the tokio runtime is shutting
    /// down.
    pub async fn next(&mut self) -> Option<StreamItem<MarketFrame>> {
        let item = self.items.recv().await?;
        Some(item.read(0, |received| Ok(MarketFrame(received))))
    }

    /// The number of connections.
    pub const fn connections(&self) -> usize {
        self.restarts.len()
    }

    /// Closes one connection and opens a new one. [`super::GapReason::Requested`] follows.
    pub fn restart(&self, connection: usize) {
        if let Some(restart) = self.restarts.get(connection) {
            // One waiting request is enough.
            let _ = restart.try_send(());
        }
    }
}
