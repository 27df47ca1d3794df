//! The market data of a journal as a recording: the events that the engine received, with their
//! times.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use windvane_engine::Engine;
use windvane_journal::Blocks;
use windvane_model::codec::RecordBody;
use windvane_model::{Input, Instrument, InstrumentId};

use windvane_recording::{Chunk, Chunks, RecordingError};
use windvane_session::Checkpoint;

/// The number of events in a chunk, the same as in a recording.
const EVENTS: usize = 16 * 1024;

/// Reads segment by segment, with the instruments of the newest segment.
#[derive(Debug)]
pub struct JournalRecording {
    data_dir: PathBuf,
    numbers: VecDeque<u32>,
    instruments: Vec<Instrument>,
    segment: u32,
    /// The blocks of the current segment, and its instruments as indexes into `instruments`.
    open: Option<(Blocks, Vec<Option<InstrumentId>>)>,
    spare: Chunk,
    notices: Vec<String>,
}

impl JournalRecording {
    /// Starts at the oldest segment. Parts that cannot be read are skipped and listed in the
    /// notices.
    pub fn new(data_dir: &Path, instruments: Vec<Instrument>) -> Self {
        let numbers = windvane_journal::segments(data_dir).unwrap_or_default();
        Self {
            data_dir: data_dir.to_owned(),
            numbers: numbers.into(),
            instruments,
            segment: 0,
            open: None,
            spare: Chunk::default(),
            notices: Vec::new(),
        }
    }

    /// Opens the next segment. Returns `false` after the last.
    fn next_segment(&mut self) -> bool {
        let Some(segment) = self.numbers.pop_front() else {
            return false;
        };
        self.segment = segment;
        let stored = match windvane_journal::segment(&self.data_dir, segment) {
            Ok(stored) => stored,
            Err(error) => {
                self.notices.push(error.to_string());
                return true;
            }
        };
        let checkpoint = Checkpoint::from_bytes(&stored.checkpoint);
        let engine = checkpoint.and_then(|checkpoint| Engine::restore(&checkpoint.engine).ok());
        let Some(engine) = engine else {
            self.notices.push(format!(
                "segment {segment:08x} is skipped: its checkpoint cannot be read"
            ));
            return true;
        };
        let place = |rules: &Instrument| {
            let same = |own: &Instrument| {
                own.name() == rules.name()
                    && (own.price_scale, own.qty_scale) == (rules.price_scale, rules.qty_scale)
            };
            let at = self.instruments.iter().position(same)?;
            Some(InstrumentId(at as u16))
        };
        let places = engine.instruments().iter().map(place).collect();
        self.open = Some((stored.blocks, places));
        true
    }
}

impl Chunks for JournalRecording {
    fn next_chunk(&mut self) -> Result<Option<Chunk>, RecordingError> {
        let mut chunk = std::mem::take(&mut self.spare);
        chunk.events.clear();
        chunk.levels.clear();
        while chunk.events.len() < EVENTS {
            let Some((blocks, places)) = &mut self.open else {
                if self.next_segment() {
                    continue;
                }
                break;
            };
            let Some(block) = blocks.next() else {
                self.open = None;
                continue;
            };
            if block.lacks_market() {
                let segment = self.segment;
                let notice = format!("segment {segment:08x}: market data is lost or was deleted");
                if self.notices.last() != Some(&notice) {
                    self.notices.push(notice);
                }
                continue;
            }
            for (_, record) in block.records() {
                let Ok(record) = record else { break };
                let RecordBody::Input(input) = &record.body else {
                    continue;
                };
                if let Input::Market { instrument, event } = input.as_input()
                    && let Some(Some(id)) = places.get(usize::from(instrument.0))
                {
                    chunk.push(record.time, *id, &event);
                }
            }
        }
        Ok((!chunk.events.is_empty()).then_some(chunk))
    }

    fn recycle(&mut self, chunk: Chunk) {
        self.spare = chunk;
    }

    fn notices(&self) -> &[String] {
        &self.notices
    }
}
