//! Plays recordings as the market of a simulated venue. It does not know orders or the venue's
//! clock.

use std::path::PathBuf;

use windvane_model::{Instrument, OwnedMarketEvent, Surface};
use windvane_protocol::Assets;
use windvane_sim_server::{Recorded, RecordedEvents, Recording as Market};

use windvane_config::{InstrumentName, InstrumentRules};
use windvane_recording::{self as recording, Chunk, Recording, RecordingError, ResolveError, Tape};

/// Why recordings cannot serve as a market.
#[derive(Debug, thiserror::Error)]
pub enum PlaybackError {
    /// A file does not exist.
    #[error(
        "recording {path} does not exist; `windvane data generate --out {path}` makes one",
        path = .0.display()
    )]
    Missing(PathBuf),
    /// A file cannot be read as a recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// An instrument of the recordings has no rules.
    #[error(transparent)]
    Rules(#[from] ResolveError),
    /// The recordings contain no market event.
    #[error("the recordings contain no market event")]
    Empty,
}

/// How recordings are played.
#[derive(Clone, Debug)]
pub struct Playback {
    /// The files.
    pub files: Vec<PathBuf>,
    /// The folder of decoded caches.
    pub cache: Option<PathBuf>,
    /// Speed in thousandths of the recorded pace.
    pub speed_permille: u32,
    /// Starts again at the end.
    pub looped: bool,
}

impl Playback {
    /// Decodes the recordings and finds the rules of every instrument that has events.
    pub fn open(
        &self,
        rules: &[InstrumentRules],
        progress: recording::Progress<'_>,
    ) -> Result<Market, PlaybackError> {
        let options = recording::Options {
            cache_dir: self.cache.clone(),
            ..Default::default()
        };
        let mut recordings = Vec::new();
        for file in &self.files {
            if !file.exists() {
                return Err(PlaybackError::Missing(file.clone()));
            }
            let opened = Recording::open(file, &options, progress)?;
            for notice in opened.notices() {
                tracing::warn!("{notice}");
            }
            recordings.push(opened);
        }
        let mut assets = Assets::default();
        let instruments = instruments(&recordings, rules, &mut assets)?;
        if instruments.is_empty() {
            return Err(PlaybackError::Empty);
        }
        let wanted = instruments.clone();
        Ok(Market {
            instruments,
            assets,
            open: Box::new(move || events(&recordings, &wanted)),
            speed_permille: self.speed_permille,
            looped: self.looped,
        })
    }
}

/// Every instrument of the recordings that has events, once.
fn instruments(
    recordings: &[Recording],
    rules: &[InstrumentRules],
    assets: &mut Assets,
) -> Result<Vec<Instrument>, PlaybackError> {
    let surveys: Vec<_> = recordings.iter().map(Recording::survey).collect();
    let recorded = surveys.iter().flat_map(|survey| &survey.instruments);
    let recorded = recorded.filter(|survey| survey.has_events());
    let mut names: Vec<(Surface, String)> = recorded
        .map(|survey| (survey.surface, survey.symbol.clone()))
        .collect();
    names.sort();
    names.dedup();
    let resolve = |(surface, symbol): (Surface, String)| {
        let name = InstrumentName { surface, symbol };
        let configured = rules.iter().find(|rules| rules.name == name);
        let resolved = recording::resolve_instrument(&name, configured, &surveys, assets);
        Ok(resolved?.0)
    };
    names.into_iter().map(resolve).collect()
}

/// The events from the first one on, or `None` if the decoded caches can no longer be opened.
fn events(recordings: &[Recording], instruments: &[Instrument]) -> Option<RecordedEvents> {
    match Tape::new(recordings, instruments) {
        Ok(tape) => Some(Box::new(Events {
            tape,
            chunk: Chunk::default(),
            at: 0,
        })),
        Err(error) => {
            tracing::error!("the simulated market stops, no more prices follow: {error}");
            None
        }
    }
}

/// The events of a tape, one by one.
struct Events {
    tape: Tape,
    chunk: Chunk,
    at: usize,
}

impl Iterator for Events {
    type Item = Recorded;

    fn next(&mut self) -> Option<Recorded> {
        if self.at >= self.chunk.events.len() {
            self.at = 0;
            let spare = std::mem::take(&mut self.chunk);
            self.tape.recycle(spare);
            self.chunk = match self.tape.next_chunk() {
                Ok(chunk) => chunk?,
                Err(error) => {
                    tracing::error!("cannot read the rest of the recording, it ends here: {error}");
                    return None;
                }
            };
        }
        let event = self.chunk.events.get(self.at)?;
        self.at += 1;
        Some(Recorded {
            time: event.recv,
            instrument: event.instrument,
            event: OwnedMarketEvent::of(&event.market(&self.chunk.levels)),
        })
    }
}
