//! Lines of a recording, decompressed by what the file's first bytes say. Nothing here knows what
//! a line means.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::RecordingError;

const BLOCK: usize = 256 * 1024;

/// How the text ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The file ends inside its compressed data: the writer was stopped.
    Cut(String),
    /// The compressed data is damaged before the file's end.
    Corrupt(String),
}

/// Reads lines; the file may be of any length, memory is one block and the longest line.
pub(super) struct Lines {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    number: u64,
    finished: bool,
    broken: Option<Broken>,
    taken: Rc<Cell<u64>>,
    total: u64,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, RecordingError> {
        let file = File::open(path).map_err(RecordingError::io(path))?;
        let metadata = file.metadata().map_err(RecordingError::io(path))?;
        let taken = Rc::new(Cell::new(0));
        let counted = Counted {
            file,
            taken: Rc::clone(&taken),
        };
        let mut compressed = BufReader::with_capacity(BLOCK, counted);
        let head = compressed.fill_buf().map_err(RecordingError::io(path))?;
        let source: Box<dyn Read> = match head {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(compressed)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Box::new(ZstdFrames::new(compressed))
            }
            _ => Box::new(compressed),
        };
        Ok(Self {
            source,
            buffer: vec![0; BLOCK],
            start: 0,
            end: 0,
            number: 0,
            finished: false,
            broken: None,
            taken,
            total: metadata.len(),
        })
    }

    /// The next line without its end, and its number from 1. After the last one,
    /// [`Self::broken`] says whether the text ended as it should.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        let mut searched = 0;
        let (line, next) = loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &unread[searched..]) {
                let end = self.start + searched + at;
                break (self.start..end, end + 1);
            }
            if self.finished {
                if unread.is_empty() {
                    return Ok(None);
                }
                break (self.start..self.end, self.end);
            }
            searched = unread.len();
            self.fill()?;
        };
        self.start = next;
        self.number += 1;
        let line = &self.buffer[line];
        Ok(Some((
            self.number,
            line.strip_suffix(b"\r").unwrap_or(line),
        )))
    }

    /// The last line was the rest of a text that broke off.
    pub(super) fn at_broken_end(&self) -> bool {
        self.finished && self.start == self.end && self.buffer[..self.end].last() != Some(&b'\n')
    }

    pub(super) fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// Lines read so far.
    pub(super) fn count(&self) -> u64 {
        self.number
    }

    /// Bytes of the file read so far, and its length.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.taken.get(), self.total)
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        match self.source.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.finished = true,
            Ok(read) => self.end += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_device_error(&error) => return Err(error),
            Err(error) => {
                self.finished = true;
                let at_end = self.taken.get() >= self.total;
                let kind = if at_end { Broken::Cut } else { Broken::Corrupt };
                self.broken = Some(kind(error.to_string()));
            }
        }
        Ok(())
    }
}

/// Decoders report bad data as invalid, cut or other; what the system reports has a number.
fn is_device_error(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
}

struct Counted {
    file: File,
    taken: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

type Compressed = BufReader<Counted>;

/// One zstd frame after the other: collectors append a frame with each start.
struct ZstdFrames {
    source: Compressed,
    decoder: FrameDecoder,
    inside: bool,
}

impl ZstdFrames {
    fn new(source: Compressed) -> Self {
        Self {
            source,
            decoder: FrameDecoder::new(),
            inside: false,
        }
    }

    /// Starts the next frame; `false` at the end of the file.
    fn start_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.source.by_ref().take(u64::from(length));
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl Read for ZstdFrames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.inside && !self.start_frame()? {
                return Ok(0);
            }
            self.inside = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.source, one);
                decoded.map_err(io::Error::other)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.inside = false;
        }
    }
}
