//! Plays one or more recordings as one stream of events, in order of receive time, with the
//! engine's instrument ids and scales. Memory use is one chunk per recording.

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};

use windvane_model::decimal::{decimal, pow10};
use windvane_model::{Decimal, Instrument, InstrumentId, Time};

use super::cache;
use super::chunk::{self, Chunk, EVENTS_MAX, Scales, Stored};
use super::tape_event::{Kind, TapeEvent};
use super::{Recording, RecordingError};

/// A source of market events in chunks, in order of receive time.
pub trait Chunks {
    /// Returns the next events, or `None` at the end. A chunk is never empty.
    ///
    /// # Errors
    /// The events cannot be read.
    fn next_chunk(&mut self) -> Result<Option<Chunk>, RecordingError>;

    /// Takes back a used chunk, so that its memory is reused.
    fn recycle(&mut self, chunk: Chunk);

    /// Messages for the user about problems while reading.
    fn notices(&self) -> &[String];
}

impl Chunks for Tape {
    fn next_chunk(&mut self) -> Result<Option<Chunk>, RecordingError> {
        Self::next_chunk(self)
    }

    fn recycle(&mut self, chunk: Chunk) {
        Self::recycle(self, chunk);
    }

    fn notices(&self) -> &[String] {
        Self::notices(self)
    }
}

/// Several recordings, played as one.
#[derive(Debug)]
pub struct Tape {
    sources: Vec<Source>,
    notices: Vec<String>,
    spare: Chunk,
}

impl Tape {
    /// Plays `recordings` for `instruments`. An instrument's id is its index in the list. Events of
    /// other instruments are left out. Events with the same receive time come in the order of the
    /// recordings.
    pub fn new(
        recordings: &[Recording],
        instruments: &[Instrument],
    ) -> Result<Self, RecordingError> {
        let sources = recordings
            .iter()
            .map(|recording| Source::open(recording, instruments));
        Ok(Self {
            sources: sources.collect::<Result<_, _>>()?,
            notices: Vec::new(),
            spare: Chunk::default(),
        })
    }

    /// Returns the next events, or `None` at the end. A chunk is never empty.
    ///
    /// # Errors
    /// [`RecordingError::Unfit`] for a number that does not fit the instrument's scale;
    /// [`RecordingError::Cache`] for a damaged cache that could not be created again. If a chunk is
    /// damaged and the recording has not changed, it is decoded again and [`Self::notices`] reports
    /// it.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, RecordingError> {
        if let [source] = &mut self.sources[..] {
            source.stored.chunk = std::mem::take(&mut self.spare);
            return Ok(source.load(&mut self.notices)?.then(|| source.take()));
        }
        let mut merged = std::mem::take(&mut self.spare);
        merged.events.clear();
        merged.levels.clear();
        while merged.events.len() < EVENTS_MAX {
            for source in &mut self.sources {
                if source.is_empty() && !source.finished {
                    source.load(&mut self.notices)?;
                }
            }
            if !merge_run(&mut self.sources, &mut merged) {
                break;
            }
        }
        Ok((!merged.events.is_empty()).then_some(merged))
    }

    /// Takes back a used chunk, so that its memory is reused.
    pub fn recycle(&mut self, chunk: Chunk) {
        self.spare = chunk;
    }

    /// Messages for the user: caches that were created again.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

/// Moves events from the source with the earliest event, until another source is earlier or the
/// source needs its next chunk. Returns `false` if all sources are at their end.
fn merge_run(sources: &mut [Source], merged: &mut Chunk) -> bool {
    let heads = sources.iter().enumerate();
    let first = heads
        .filter_map(|(at, source)| Some((source.head()?, at)))
        .min();
    let Some((_, at)) = first else { return false };
    let others = sources.iter().enumerate().filter(|&(other, _)| other != at);
    let limit = others
        .filter_map(|(other, source)| Some((source.head()?, other)))
        .min();
    let source = &mut sources[at];
    while let Some(&event) = source.stored.chunk.events.get(source.position) {
        let is_past = limit.is_some_and(|limit| (event.recv, at) > limit);
        if is_past || merged.events.len() >= EVENTS_MAX {
            break;
        }
        merged.events.push(event);
        if event.kind == Kind::Depth {
            let start = merged.levels.len();
            merged
                .levels
                .extend_from_slice(&source.stored.chunk.levels[event.levels()]);
            if let Some(moved) = merged.events.last_mut() {
                moved.words[1] = start as i64;
            }
        }
        source.position += 1;
    }
    true
}

/// One recording that is being played.
#[derive(Debug)]
struct Source {
    recording: Recording,
    file: File,
    /// Offset of the next chunk, and the end of the chunks.
    offset: u64,
    end: u64,
    /// For each instrument of the recording, the engine's id and scales, if the engine wants it.
    wanted: Vec<Option<Wanted>>,
    all_wanted: bool,
    stored: Stored,
    position: usize,
    bytes: Vec<u8>,
    finished: bool,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    id: InstrumentId,
    price_scale: u8,
    qty_scale: u8,
}

impl Source {
    fn open(recording: &Recording, instruments: &[Instrument]) -> Result<Self, RecordingError> {
        let surveys = &recording.survey().instruments;
        let wanted: Vec<_> = surveys
            .iter()
            .map(|survey| {
                let is_it = |known: &Instrument| {
                    known.surface == survey.surface && known.symbol == survey.symbol
                };
                let id = instruments.iter().position(is_it)?;
                Some(Wanted {
                    id: InstrumentId(id as u16),
                    price_scale: instruments[id].price_scale,
                    qty_scale: instruments[id].qty_scale,
                })
            })
            .collect();
        let path = recording.cache_path();
        let (file, end) = cache::open_chunks(path).map_err(RecordingError::io(path))?;
        Ok(Self {
            recording: recording.clone(),
            file,
            offset: cache::HEAD as u64,
            end,
            all_wanted: wanted.iter().all(Option::is_some),
            wanted,
            stored: Stored::default(),
            position: 0,
            bytes: Vec::new(),
            finished: false,
        })
    }

    fn head(&self) -> Option<Time> {
        self.stored
            .chunk
            .events
            .get(self.position)
            .map(|event| event.recv)
    }

    fn is_empty(&self) -> bool {
        self.position >= self.stored.chunk.events.len()
    }

    fn take(&mut self) -> Chunk {
        std::mem::take(&mut self.stored.chunk)
    }

    /// Loads the next chunk that contains wanted events. Returns `false` at the end.
    fn load(&mut self, notices: &mut Vec<String>) -> Result<bool, RecordingError> {
        self.position = 0;
        while self.offset < self.end {
            self.read(notices)?;
            self.convert()?;
            if !self.stored.chunk.events.is_empty() {
                return Ok(true);
            }
        }
        self.finished = true;
        self.stored.chunk.events.clear();
        Ok(false)
    }

    /// Reads the next chunk. If it is damaged, the text is decoded again, which gives the same
    /// chunks at the same offsets.
    fn read(&mut self, notices: &mut Vec<String>) -> Result<(), RecordingError> {
        let path = self.recording.cache_path().to_owned();
        let first = chunk::read(&mut self.file, &mut self.stored, &mut self.bytes);
        let outcome = match first {
            Err(error) if is_damage(&error) => {
                self.recording.rebuild()?;
                notices.push(format!(
                    "the decoded cache {} was damaged; the recording was decoded again",
                    path.display()
                ));
                (self.file, self.end) =
                    cache::open_chunks(&path).map_err(RecordingError::io(&path))?;
                self.file
                    .seek(SeekFrom::Start(self.offset))
                    .and_then(|_| chunk::read(&mut self.file, &mut self.stored, &mut self.bytes))
            }
            other => other,
        };
        let length = outcome.map_err(|error| match error {
            error if is_damage(&error) => RecordingError::Cache {
                path: path.clone(),
                reason: error.to_string(),
            },
            source => RecordingError::Io {
                path: path.clone(),
                source,
            },
        })?;
        self.offset += length;
        Ok(())
    }

    /// Converts instrument ids and scales of the recording to the engine's.
    fn convert(&mut self) -> Result<(), RecordingError> {
        let mut factors = vec![(1, 1); self.wanted.len()];
        for scales in &self.stored.scales {
            let index = usize::from(scales.instrument);
            if let Some(Some(wanted)) = self.wanted.get(index) {
                factors[index] = self.factors(scales, *wanted)?;
            }
        }
        let chunk = &mut self.stored.chunk;
        if !self.all_wanted {
            let wanted = &self.wanted;
            chunk.events.retain(|event| {
                matches!(wanted.get(usize::from(event.instrument.0)), Some(Some(_)))
            });
        }
        let same_scales = factors.iter().all(|&factor| factor == (1, 1));
        for event in &mut chunk.events {
            let index = usize::from(event.instrument.0);
            let Some(Some(wanted)) = self.wanted.get(index) else {
                continue;
            };
            event.instrument = wanted.id;
            if !same_scales {
                let (price, qty) = factors[index];
                event.scale(&mut chunk.levels, |p, q| (p * price, q * qty));
            }
        }
        Ok(())
    }

    /// Factors for prices and quantities. The chunk's largest numbers prove that all fit.
    fn factors(&self, scales: &Scales, wanted: Wanted) -> Result<(i64, i64), RecordingError> {
        let price = factor(scales.price_scale, wanted.price_scale, scales.price_max);
        let qty = factor(scales.qty_scale, wanted.qty_scale, scales.qty_max);
        match (price, qty) {
            (Some(price), Some(qty)) => Ok((price, qty)),
            (None, _) => Err(self.unfit(scales, wanted, true)),
            _ => Err(self.unfit(scales, wanted, false)),
        }
    }

    /// Finds the first number in the chunk that does not fit.
    fn unfit(&self, scales: &Scales, wanted: Wanted, of_price: bool) -> RecordingError {
        let (what, rule, from, scale) = if of_price {
            ("price", "tick", scales.price_scale, wanted.price_scale)
        } else {
            ("quantity", "step", scales.qty_scale, wanted.qty_scale)
        };
        let value = |mantissa: i64| decimal(i128::from(mantissa), from);
        let does_not_fit = |&mantissa: &i64| {
            windvane_model::decimal::exact_mantissa(value(mantissa), scale).is_none()
        };
        let of_instrument = |event: &&TapeEvent| event.instrument.0 == scales.instrument;
        let mut events = self.stored.chunk.events.iter().filter(of_instrument);
        let found = events.find_map(|event| {
            let pairs = event.pairs(&self.stored.chunk.levels).into_iter();
            let mut numbers = pairs.map(|(price, qty)| if of_price { price } else { qty });
            let bad = numbers.find(does_not_fit)?;
            Some((event.line, value(bad)))
        });
        let (line, value) = found.unwrap_or((0, Decimal::ZERO));
        let name = self.recording.survey().instruments[usize::from(scales.instrument)].name();
        RecordingError::Unfit {
            path: self.recording.path().to_owned(),
            line: self.stored.first_line + u64::from(line),
            instrument: name,
            what,
            value,
            scale,
            rule,
        }
    }
}

/// Ten to the power of the missing decimals, if the largest mantissa times this factor fits.
fn factor(from: u8, to: u8, largest: i64) -> Option<i64> {
    let factor = pow10(to.checked_sub(from)?);
    largest.checked_mul(factor).map(|_| factor)
}

fn is_damage(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof
    )
}
