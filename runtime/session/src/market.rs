//! Public frames and depth snapshots become market events, and missing snapshots are asked for once.

use std::collections::BTreeSet;

use windvane_client_core::streams::feed::Verdict;
use windvane_engine::{Instrument, InstrumentId, MarketEvent, Surface, planted};
use windvane_venue::market_stream::{self, MarketStreamFrame};
use windvane_venue::speak::{MarketError, MarketReader, Missing, Names};
use windvane_venue::{BookLevels, Frame};

/// Takes events in the order in which the engine is told of them.
pub(crate) type Emit<'a> = dyn FnMut(InstrumentId, MarketEvent<'_>) + 'a;

/// Reads public data.
#[derive(Debug)]
pub(crate) struct Market {
    names: Names,
    reader: MarketReader,
    levels: BookLevels,
    /// Snapshots that were asked for.
    fetching: BTreeSet<InstrumentId>,
}

impl Market {
    pub(crate) fn new(names: Names) -> Self {
        Self {
            reader: MarketReader::new(names.clone()),
            names,
            levels: BookLevels::default(),
            fetching: BTreeSet::new(),
        }
    }

    /// A public frame, once `hear` has heard what it says. Answers the instrument whose snapshot has
    /// to be fetched.
    pub(crate) fn frame(
        &mut self,
        surface: Surface,
        text: &str,
        hear: impl FnOnce(Option<&MarketStreamFrame<'_>>) -> Verdict,
        emit: &mut Emit<'_>,
    ) -> Option<InstrumentId> {
        let decoded = match market_stream::decode(text, &mut self.levels) {
            Ok(decoded) => decoded,
            Err(error) => {
                if hear(None) == Verdict::Pass {
                    tracing::warn!(%surface, %error, text, "a public frame cannot be read");
                }
                return None;
            }
        };
        match hear(Some(&decoded)) {
            Verdict::Pass => {}
            // A bare payload is told apart by its topic alone.
            Verdict::PassAs(text) => {
                return self.read(surface, &text, emit);
            }
            Verdict::Drop => return None,
        }
        let missing = self
            .reader
            .frame(surface, &decoded.event, &self.levels, emit);
        self.snapshot_to_fetch(missing)
    }

    /// The same of a frame that its stream does not have to hear.
    pub(crate) fn read(
        &mut self,
        surface: Surface,
        text: &str,
        emit: &mut Emit<'_>,
    ) -> Option<InstrumentId> {
        let decoded = match market_stream::decode(text, &mut self.levels) {
            Ok(decoded) => decoded,
            Err(error) => {
                tracing::warn!(%surface, %error, text, "public data cannot be read");
                return None;
            }
        };
        let missing = self
            .reader
            .frame(surface, &decoded.event, &self.levels, emit);
        self.snapshot_to_fetch(missing)
    }

    /// The answer of GET depth, or that there is none. Answers the instrument whose snapshot has to
    /// be fetched again.
    pub(crate) fn snapshot(
        &mut self,
        id: InstrumentId,
        instrument: &Instrument,
        text: Option<&str>,
        emit: &mut Emit<'_>,
    ) -> Option<InstrumentId> {
        if text.is_some() || !planted!(SnapshotFetchLost) {
            self.fetching.remove(&id);
        }
        let text = text?;
        let before = planted!(StaleSnapshotUsed).then(|| self.levels.clone());
        let symbol = instrument.symbol.as_str();
        let decoded = windvane_venue::decode(text.as_bytes(), &mut self.levels);
        let snapshot = match decoded.map(|decoded| decoded.frame) {
            Ok(Frame::Snapshot(snapshot)) => snapshot,
            Ok(_) => {
                tracing::warn!(symbol, text, "a depth answer is no snapshot");
                return None;
            }
            Err(error) => {
                tracing::warn!(symbol, %error, "a depth answer cannot be read");
                return None;
            }
        };
        let levels = before.as_ref().unwrap_or(&self.levels);
        let missing = self.reader.snapshot(id, &snapshot, levels, emit);
        self.snapshot_to_fetch(missing)
    }

    /// Events of these symbols may have been missed.
    pub(crate) fn interrupted(
        &mut self,
        surface: Surface,
        symbols: &[String],
        emit: &mut Emit<'_>,
    ) {
        for symbol in symbols {
            if let Some(id) = self.names.instrument(surface, symbol) {
                self.reader.interrupted(id, emit);
            }
        }
    }

    fn snapshot_to_fetch(&mut self, missing: Result<Missing, MarketError>) -> Option<InstrumentId> {
        match missing {
            Ok(Missing::Nothing) => None,
            Ok(Missing::Snapshot(id)) => self.fetching.insert(id).then_some(id),
            Err(error) => {
                tracing::warn!(%error, "a public frame is not used");
                None
            }
        }
    }
}
