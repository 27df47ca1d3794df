//! The public feed of the documented exchange. It turns frames and depth snapshots into market
//! events, and requests each missing snapshot once.

use std::collections::BTreeSet;

use windvane_client_core::streams::feed::{
    ConnectionId, FeedError, FeedInput, FeedMachine, FeedOutput, FeedTerms, Verdict,
};
use windvane_model::{InstrumentId, Surface, planted};
use windvane_protocol::adapter::{MarketError, MarketReader, Missing, Names};
use windvane_protocol::market_stream::{self, MarketStreamFrame};
use windvane_protocol::{BookLevels, Frame};

use super::{EmitMarket, PublicFeed, Received};

/// Connections and polling of one surface ([`FeedMachine`]), and the books of its instruments.
#[derive(Debug)]
pub struct DocumentedFeed {
    surface: Surface,
    machine: FeedMachine<Received>,
    names: Names,
    reader: MarketReader,
    levels: BookLevels,
    /// Snapshots that were requested and did not arrive yet.
    fetching: BTreeSet<InstrumentId>,
}

impl DocumentedFeed {
    /// A feed of a surface that begins now.
    ///
    /// # Errors
    /// `terms` has no topic, or a topic that must be polled cannot be polled.
    pub fn new(surface: Surface, terms: FeedTerms, names: Names) -> Result<Self, FeedError> {
        Ok(Self {
            surface,
            machine: FeedMachine::new(0, terms)?,
            reader: MarketReader::new(names.clone()),
            names,
            levels: BookLevels::default(),
            fetching: BTreeSet::new(),
        })
    }

    /// Passes a decoded frame to the market reader.
    fn read(
        &mut self,
        decoded: &MarketStreamFrame<'_>,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId> {
        let missing = self
            .reader
            .frame(self.surface, &decoded.event, &self.levels, emit);
        self.snapshot_to_fetch(missing)
    }

    fn snapshot_to_fetch(&mut self, missing: Result<Missing, MarketError>) -> Option<InstrumentId> {
        match missing {
            Ok(Missing::Nothing) => None,
            Ok(Missing::Snapshot(id)) => self.fetching.insert(id).then_some(id),
            Err(error) => {
                tracing::warn!(%error, "a public frame was not used");
                None
            }
        }
    }
}

impl PublicFeed for DocumentedFeed {
    fn handle(&mut self, now_ms: u64, input: FeedInput<Received>) {
        self.machine.handle(now_ms, input);
    }

    fn poll(&mut self) -> Option<FeedOutput<Received>> {
        self.machine.poll()
    }

    fn timeout_ms(&self) -> u64 {
        self.machine.timeout_ms()
    }

    fn frame(
        &mut self,
        now_ms: u64,
        connection: ConnectionId,
        text: &str,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId> {
        let surface = self.surface;
        let decoded = match market_stream::decode(text, &mut self.levels) {
            Ok(decoded) => decoded,
            Err(error) => {
                if self.machine.frame_verdict(now_ms, connection, (text, None)) == Verdict::Pass {
                    tracing::warn!(%surface, %error, text, "a public frame could not be decoded");
                }
                return None;
            }
        };
        let content = (text, Some(&decoded));
        match self.machine.frame_verdict(now_ms, connection, content) {
            Verdict::Pass => self.read(&decoded, emit),
            // A payload without an envelope is identified only by its topic.
            Verdict::PassAs(text) => self.polled(&text, emit),
            Verdict::Drop => None,
        }
    }

    fn polled(&mut self, text: &str, emit: &mut EmitMarket<'_>) -> Option<InstrumentId> {
        match market_stream::decode(text, &mut self.levels) {
            Ok(decoded) => self.read(&decoded, emit),
            Err(error) => {
                let surface = self.surface;
                tracing::warn!(%surface, %error, text, "polled public data could not be decoded");
                None
            }
        }
    }

    fn snapshot(
        &mut self,
        id: InstrumentId,
        text: Option<&str>,
        emit: &mut EmitMarket<'_>,
    ) -> Option<InstrumentId> {
        if text.is_some() || !planted!(SnapshotFetchLost) {
            self.fetching.remove(&id);
        }
        let text = text?;
        let before = planted!(StaleSnapshotUsed).then(|| self.levels.clone());
        let symbol = self.names.rules(id).map_or("", |rules| &rules.symbol);
        let decoded = windvane_protocol::decode(text.as_bytes(), &mut self.levels);
        let snapshot = match decoded.map(|decoded| decoded.frame) {
            Ok(Frame::Snapshot(snapshot)) => snapshot,
            Ok(_) => {
                tracing::warn!(symbol, text, "the depth response is not a snapshot");
                return None;
            }
            Err(error) => {
                tracing::warn!(symbol, %error, "the depth response could not be decoded");
                return None;
            }
        };
        let levels = before.as_ref().unwrap_or(&self.levels);
        let missing = self.reader.snapshot(id, &snapshot, levels, emit);
        self.snapshot_to_fetch(missing)
    }

    fn interrupted(&mut self, symbols: &[String], emit: &mut EmitMarket<'_>) {
        for symbol in symbols {
            if let Some(id) = self.names.instrument(self.surface, symbol) {
                self.reader.interrupted(id, emit);
            }
        }
    }
}
