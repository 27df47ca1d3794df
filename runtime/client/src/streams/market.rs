//! Public market streams, on as many connections as the venue's limit of streams asks for.

use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::mpsc;
use windvane_venue::frame::{BookLevels, FrameError};
use windvane_venue::market_stream::{
    self, Command, Feed, MarketStreamEvent, MarketStreamFrame, Topic,
};
use windvane_venue::route::Surface;

use crate::client::Client;
use crate::settings::MarketData;

use super::StreamItem;
use super::driver::{Driver, Look};
use super::received::Received;
use super::settings::MarketPath;
use super::start::{self, StreamStartError};

/// Topics of one SUBSCRIBE: a few kilobytes.
pub(super) const BATCH: usize = 100;

/// Streams that one connection may subscribe to (spec 1, Limits, rule 8; spec 4, section 5).
pub const fn streams_max(surface: Surface) -> usize {
    match surface {
        Surface::Spot => 1_024,
        _ => 200,
    }
}

/// Public events; see [`Client::market_stream`].
#[derive(Debug)]
pub struct MarketStream {
    items: mpsc::Receiver<StreamItem<Received>>,
    restarts: Vec<mpsc::Sender<()>>,
    /// The topics of each SUBSCRIBE, in the order of the commands' ids, which begin with 1.
    subscribed: Vec<Vec<Topic>>,
}

/// One frame of a public stream, as it came. It is decoded where and when it is needed, without a
/// copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketFrame(pub(super) Received);

impl MarketFrame {
    /// Its text.
    pub fn text(&self) -> &str {
        self.0.as_ref()
    }

    /// When it was read from its socket, or asked for and answered.
    pub const fn received(&self) -> Instant {
        self.0.at
    }

    /// What it says; levels of a book go into `levels`.
    pub fn decode<'a>(
        &'a self,
        levels: &mut BookLevels,
    ) -> Result<MarketStreamFrame<'a>, FrameError> {
        market_stream::decode(self.text(), levels)
    }
}

impl Client {
    /// Streams of these topics, in any number: they are spread over connections by the venue's
    /// limit, and subscribed no faster than it allows. It lives until it is dropped. It must be
    /// called inside a tokio runtime.
    ///
    /// These are streams and nothing else: with `market_data` set to documented, only `tradepro`
    /// is let through. [`Self::market_feed`] serves any topic from wherever the venue tells it.
    ///
    /// ```no_run
    /// use windvane_client::streams::StreamItem;
    /// use windvane_venue::BookLevels;
    /// use windvane_venue::route::Surface;
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
        start::address(settings, surface)?;
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
        self.open_market_stream(surface, topics, path, BATCH)
    }

    /// Streams of any topics; each SUBSCRIBE asks for `batch` of them.
    pub(super) fn open_market_stream(
        &self,
        surface: Surface,
        topics: &[Topic],
        path: MarketPath,
        batch: usize,
    ) -> Result<MarketStream, StreamStartError> {
        let settings = self.settings();
        let address = start::address(settings, surface)?;
        let path = match path {
            MarketPath::Combined => "stream",
            MarketPath::Raw => "ws",
        };
        let (items, receiver) = mpsc::channel(settings.streams.capacity.max(1));
        let (mut restarts, mut subscribed) = (Vec::new(), Vec::new());
        for (connection, topics) in topics.chunks(streams_max(surface)).enumerate() {
            let (restart, restart_requests) = mpsc::channel(1);
            restarts.push(restart);
            let driver = Driver {
                connection,
                client: self.clone(),
                surface,
                url: format!("{}/{path}", address.as_str().trim_end_matches('/')),
                tls: self.tls(),
                connect_within: settings.streams.connect_within,
                look,
                items: items.clone(),
                restarts: restart_requests,
            };
            let salt = 16 + surface as u64 + 4 * connection as u64;
            let mut rules = start::rules(&settings.streams, salt);
            rules.link.silence_max_ms = settings.streams.silence_max.map(start::millis);
            rules.commands = subscriptions(topics, batch, subscribed.len());
            subscribed.extend(topics.chunks(batch).map(<[Topic]>::to_vec));
            tokio::spawn(driver.run(rules));
        }
        Ok(MarketStream {
            items: receiver,
            restarts,
            subscribed,
        })
    }
}

impl MarketStream {
    /// The next item, of any of the connections. `None` only when the tokio runtime is shutting
    /// down.
    pub async fn next(&mut self) -> Option<StreamItem<MarketFrame>> {
        let item = self.items.recv().await?;
        Some(item.read(0, |received| Ok(MarketFrame(received))))
    }

    /// [`Self::next`] for whoever waits for several streams.
    pub(super) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<StreamItem<MarketFrame>>> {
        let item = self.items.poll_recv(context);
        item.map(|item| Some(item?.read(0, |received| Ok(MarketFrame(received)))))
    }

    /// The topics of the command that is answered with this id; none if it is not one of ours.
    pub(super) fn topics_of(&self, id: i64) -> &[Topic] {
        let at = usize::try_from(id - 1).ok();
        at.and_then(|at| self.subscribed.get(at))
            .map_or(&[], Vec::as_slice)
    }

    /// How many connections it has.
    pub const fn connections(&self) -> usize {
        self.restarts.len()
    }

    /// Closes one connection and opens a new one. [`super::GapReason::Asked`] follows.
    pub fn restart(&self, connection: usize) {
        if let Some(restart) = self.restarts.get(connection) {
            // One request that waits is enough.
            let _ = restart.try_send(());
        }
    }
}

/// Documents 1 to 3 show no other public stream.
pub(super) fn is_documented(topic: &Topic) -> bool {
    matches!(
        topic,
        Topic::Of {
            feed: Feed::TradePro,
            ..
        }
    )
}

/// The commands of a connection; `before`: so many ids are other connections'.
fn subscriptions(topics: &[Topic], batch: usize, before: usize) -> Vec<String> {
    let ids = 1 + before as u64..;
    let batches = topics.chunks(batch).zip(ids);
    let messages = batches.map(|(batch, id)| Command::Subscribe(batch.to_vec()).message(id));
    messages.collect()
}

/// Answers to commands are short and have an `id`; events have none.
fn look(text: &str) -> Look {
    if text.len() > 4_096 || !text.contains("\"id\"") {
        return Look::Event;
    }
    let decoded = market_stream::decode(text, &mut BookLevels::default());
    match decoded.map(|frame| frame.event) {
        Ok(MarketStreamEvent::Answer(_)) => Look::Answer,
        _ => Look::Event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_subscribed_in_batches_with_ids() {
        let topics: Vec<Topic> = (0..250)
            .map(|at| Topic::of(&format!("A{at}USDT"), Feed::TradePro))
            .collect();
        let messages = subscriptions(&topics, BATCH, 0);
        assert_eq!(messages.len(), 3);
        assert!(messages[0].starts_with(
            r#"{"method":"SUBSCRIBE","params":["a0usdt@tradepro","a1usdt@tradepro","#
        ));
        assert!(messages[2].ends_with(r#""a249usdt@tradepro"],"id":3}"#));
    }

    #[test]
    fn answers_are_told_from_events() {
        assert_eq!(look(r#"{"result":null,"id":1}"#), Look::Answer);
        assert_eq!(
            look(r#"{"id":1,"error":{"code":-1,"msg":"no"}}"#),
            Look::Answer
        );
        let trade = r#"{"stream":"a@tradepro","data":{"e":"tradepro","E":1,"T":1,"s":"A","t":1,
            "p":"1","q":"1","h":"0x","m":["hidden","hidden"]}}"#;
        assert_eq!(look(trade), Look::Event);
        assert_eq!(look("{\"id\""), Look::Event);
    }
}
