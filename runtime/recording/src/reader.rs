//! Reads the lines of a recording. The first bytes of the file select the decompression. This
//! module does not interpret the lines.

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

/// Longest line, bytes. The longest ones are lists of all instruments, with some MiB.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;
/// A file may decompress to this many times its own length, and to [`RATIO_FREE`] bytes more. Market
/// data compresses to a tenth. Without a limit, a file of a few MiB could occupy the program for
/// hours.
const RATIO_MAX: u64 = 250;
/// Decompressed bytes that need no compressed ones.
const RATIO_FREE: u64 = 64 << 20;

/// A line that is longer than [`LINE_BYTES_MAX`]. Its content was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineTooLong;

impl std::fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "is longer than {LINE_BYTES_MAX} bytes")
    }
}

/// Why the text ended too early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The file ends inside its compressed data, because its writer was stopped.
    Cut(String),
    /// The compressed data is damaged before the end of the file.
    Corrupt(String),
}

/// Reads lines of a file of any length. Memory use is one block and the longest line, or twice
/// [`LINE_BYTES_MAX`] if a line is longer than that.
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
    decoded: u64,
}

/// A line without its line end, or that it is too long, and its number from 1.
pub(super) type Line<'a> = (u64, Result<&'a [u8], LineTooLong>);

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, RecordingError> {
        let file = windvane_files::open_regular(path).map_err(RecordingError::io(path))?;
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
            decoded: 0,
        })
    }

    /// Returns the next line. After the last one, [`Self::broken`] shows whether the text is
    /// complete.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        let mut too_long = false;
        let (line, next) = loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &unread[searched..]) {
                let end = self.start + searched + at;
                break (self.start..end, end + 1);
            }
            if self.finished {
                if unread.is_empty() && !too_long {
                    return Ok(None);
                }
                break (self.start..self.end, self.end);
            }
            searched = unread.len();
            if searched > LINE_BYTES_MAX {
                // Keep nothing of this line; only search for its end.
                too_long = true;
                self.start = self.end;
                searched = 0;
            }
            self.fill()?;
        };
        self.start = next;
        self.number += 1;
        if too_long || line.len() > LINE_BYTES_MAX {
            return Ok(Some((self.number, Err(LineTooLong))));
        }
        let line = &self.buffer[line];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some((self.number, Ok(line))))
    }

    /// Whether the last line is incomplete because the text broke off.
    pub(super) fn at_broken_end(&self) -> bool {
        self.finished && self.start == self.end && self.buffer[..self.end].last() != Some(&b'\n')
    }

    pub(super) fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// Number of lines read so far.
    pub(super) fn count(&self) -> u64 {
        self.number
    }

    /// Bytes of the file read so far, and its length in bytes.
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
            Ok(read) => {
                self.end += read;
                self.decoded += read as u64;
                let most = self.taken.get().saturating_mul(RATIO_MAX) + RATIO_FREE;
                if self.decoded > most {
                    self.finished = true;
                    self.broken = Some(Broken::Corrupt(format!(
                        "it decompresses to more than {RATIO_MAX} times its length"
                    )));
                }
            }
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

/// Errors of the operating system have an error number. Decoder errors for bad data have none.
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

/// Reads several zstd frames in sequence: a collector appends a new frame at each start.
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

    /// Starts the next frame. Returns `false` at the end of the file.
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
