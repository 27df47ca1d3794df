//! A chunk of decoded events: its form in memory and its bytes in the cache.
//!
//! Layout, little endian:
//! `magic u32, crc u32, events u32, levels u32, scales u32, reserved u32, first line u64`, then the
//! scales (24 bytes each), the events (64) and the levels (16). The checksum (CRC-32) covers all
//! bytes after itself.

use std::io::{self, Read, Write};

use windvane_model::{InstrumentId, Level, MarketEvent, Time};

use super::tape_event::{Kind, TapeEvent};

/// Events in the order of their receive times, and the levels of the depth events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The events.
    pub events: Vec<TapeEvent>,
    /// Levels of the depth events; see [`TapeEvent::market`].
    pub levels: Vec<Level>,
}

impl Chunk {
    /// Appends an event without an event time. Its receive time is then the best known time.
    pub fn push(&mut self, recv: Time, instrument: InstrumentId, event: &MarketEvent<'_>) {
        let (kind, flag, words) = TapeEvent::payload(event, self.levels.len());
        if let MarketEvent::Depth { bids, asks, .. } = event {
            self.levels.extend_from_slice(bids);
            self.levels.extend_from_slice(asks);
        }
        self.events.push(TapeEvent {
            recv,
            event_time: Time(0),
            instrument,
            kind,
            flag,
            line: 0,
            words,
        });
    }
}

/// Scales of one instrument within a chunk: the smallest scales that hold all its numbers. They are
/// nearly always the instrument's own scales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scales {
    /// Index in the recording's survey.
    pub(super) instrument: u16,
    pub(super) price_scale: u8,
    pub(super) qty_scale: u8,
    /// Largest absolute mantissas, so that one check shows that all numbers fit a larger scale.
    pub(super) price_max: i64,
    pub(super) qty_max: i64,
}

/// A chunk in a cache. Its instrument ids are those of the recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    pub(super) first_line: u64,
    pub(super) scales: Vec<Scales>,
    pub(super) chunk: Chunk,
}

const MAGIC: u32 = u32::from_le_bytes(*b"WVCK");
const HEAD: usize = 32;
const SCALES: usize = 24;
const EVENT: usize = 64;
const LEVEL: usize = 16;

/// Writes a chunk. `bytes` is a reusable buffer.
pub(super) fn write(out: &mut impl Write, stored: &Stored, bytes: &mut Vec<u8>) -> io::Result<()> {
    let Stored {
        first_line,
        scales,
        chunk,
    } = stored;
    bytes.clear();
    bytes.extend_from_slice(&MAGIC.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    for count in [chunk.events.len(), chunk.levels.len(), scales.len(), 0] {
        bytes.extend_from_slice(&(count as u32).to_le_bytes());
    }
    bytes.extend_from_slice(&first_line.to_le_bytes());
    for scale in scales {
        bytes.extend_from_slice(&scale.instrument.to_le_bytes());
        bytes.extend_from_slice(&[scale.price_scale, scale.qty_scale, 0, 0, 0, 0]);
        bytes.extend_from_slice(&scale.price_max.to_le_bytes());
        bytes.extend_from_slice(&scale.qty_max.to_le_bytes());
    }
    for event in &chunk.events {
        bytes.extend_from_slice(&event_bytes(event));
    }
    for level in &chunk.levels {
        bytes.extend_from_slice(&level.price.to_le_bytes());
        bytes.extend_from_slice(&level.qty.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    out.write_all(bytes)
}

/// Reads the next chunk into `stored` and returns its length. `bytes` is a reusable buffer.
///
/// # Errors
/// `InvalidData` for a damaged chunk, or any error of the input.
pub(super) fn read(
    input: &mut impl Read,
    stored: &mut Stored,
    bytes: &mut Vec<u8>,
) -> io::Result<u64> {
    let mut head = [0; HEAD];
    input.read_exact(&mut head)?;
    let word = |at: usize| word32(&head, at);
    let counts = [word(8), word(12), word(16)].map(|count| count as usize);
    let [events, levels, scales] = counts;
    let length = events * EVENT + levels * LEVEL + scales * SCALES;
    // The writer never makes larger chunks. A damaged count must not allocate all memory.
    if word(0) != MAGIC || events > EVENTS_MAX || length > BYTES_MAX || scales > events {
        return Err(damaged("it has no valid chunk header"));
    }
    bytes.clear();
    input.take(length as u64).read_to_end(bytes)?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[8..]);
    crc.update(bytes);
    if bytes.len() != length || crc.finalize() != word(4) {
        return Err(damaged("its checksum is wrong"));
    }
    stored.first_line = word64(&head, 24) as u64;
    let (scale_bytes, rest) = bytes.split_at(scales * SCALES);
    let (event_part, level_part) = rest.split_at(events * EVENT);
    stored.scales.clear();
    stored
        .scales
        .extend(scale_bytes.chunks_exact(SCALES).map(scales_of));
    let chunk = &mut stored.chunk;
    chunk.levels.clear();
    chunk
        .levels
        .extend(level_part.chunks_exact(LEVEL).map(level_of));
    chunk.events.clear();
    for bytes in event_part.as_chunks::<EVENT>().0 {
        let sound = event_of(bytes).filter(|event| event.is_sound(chunk.levels.len()));
        let event = sound.ok_or_else(|| damaged("it contains an invalid event"))?;
        chunk.events.push(event);
    }
    Ok((HEAD + length) as u64)
}

/// The largest number of events in a chunk.
pub(super) const EVENTS_MAX: usize = 16 * 1024;
/// A chunk is full when it has this many levels.
pub(super) const LEVELS_FULL: usize = 128 * 1024;
const BYTES_MAX: usize = 256 << 20;

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}

fn event_bytes(event: &TapeEvent) -> [u8; EVENT] {
    let mut bytes = [0; EVENT];
    bytes[0..8].copy_from_slice(&event.recv.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&event.event_time.0.to_le_bytes());
    bytes[16..18].copy_from_slice(&event.instrument.0.to_le_bytes());
    bytes[18] = event.kind as u8;
    bytes[19] = u8::from(event.flag);
    bytes[20..24].copy_from_slice(&event.line.to_le_bytes());
    for (at, word) in event.words.iter().enumerate() {
        bytes[24 + at * 8..32 + at * 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// `None` if its kind is unknown.
#[inline]
fn event_of(bytes: &[u8; EVENT]) -> Option<TapeEvent> {
    Some(TapeEvent {
        recv: Time(word64(bytes, 0)),
        event_time: Time(word64(bytes, 8)),
        instrument: InstrumentId(u16::from_le_bytes([bytes[16], bytes[17]])),
        kind: Kind::from_code(bytes[18])?,
        flag: bytes[19] != 0,
        line: word32(bytes, 20),
        words: [
            word64(bytes, 24),
            word64(bytes, 32),
            word64(bytes, 40),
            word64(bytes, 48),
            word64(bytes, 56),
        ],
    })
}

#[inline]
fn level_of(bytes: &[u8]) -> Level {
    Level {
        price: word64(bytes, 0),
        qty: word64(bytes, 8),
    }
}

fn scales_of(bytes: &[u8]) -> Scales {
    Scales {
        instrument: u16::from_le_bytes([bytes[0], bytes[1]]),
        price_scale: bytes[2],
        qty_scale: bytes[3],
        price_max: word64(bytes, 8),
        qty_max: word64(bytes, 16),
    }
}

#[inline]
fn word64(bytes: &[u8], at: usize) -> i64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    i64::from_le_bytes(word)
}

#[inline]
fn word32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(levels: i64) -> impl Strategy<Value = TapeEvent> {
        let words = any::<[i64; 5]>();
        (
            words,
            (1..=5_u8).prop_map(|code| Kind::from_code(code).unwrap()),
            any::<(i64, i64, u16, bool, u32)>(),
            0..=levels,
            0..=levels,
        )
            .prop_map(
                |(mut words, kind, (recv, time, instrument, flag, line), x, y)| {
                    if kind == Kind::Depth {
                        let (start, end) = (x.min(y), x.max(y));
                        words[1..4].copy_from_slice(&[
                            start,
                            (end - start) / 2,
                            (end - start) - (end - start) / 2,
                        ]);
                    }
                    TapeEvent {
                        recv: Time(recv),
                        event_time: Time(time),
                        instrument: InstrumentId(instrument),
                        kind,
                        flag,
                        line,
                        words,
                    }
                },
            )
    }

    fn stored() -> impl Strategy<Value = Stored> {
        let scales = any::<(u16, u8, u8, i64, i64)>();
        let level = any::<(i64, i64)>().prop_map(|(price, qty)| Level { price, qty });
        prop::collection::vec(level, 0..20).prop_flat_map(move |levels| {
            let events = prop::collection::vec(event(levels.len() as i64), 1..20);
            (any::<u64>(), scales, events).prop_map(move |(first_line, scales, events)| {
                let (instrument, price_scale, qty_scale, price_max, qty_max) = scales;
                Stored {
                    first_line: first_line >> 1,
                    scales: vec![Scales {
                        instrument,
                        price_scale,
                        qty_scale,
                        price_max,
                        qty_max,
                    }],
                    chunk: Chunk {
                        events,
                        levels: levels.clone(),
                    },
                }
            })
        })
    }

    proptest! {
        #[test]
        fn a_written_chunk_is_read_back_unchanged(before in stored()) {
            let (mut out, mut bytes, mut after) = (Vec::new(), Vec::new(), Stored::default());
            write(&mut out, &before, &mut bytes).unwrap();
            let length = read(&mut &out[..], &mut after, &mut bytes).unwrap();
            prop_assert_eq!(length, out.len() as u64);
            prop_assert_eq!((before.first_line, before.scales), (after.first_line, after.scales));
            prop_assert_eq!(before.chunk, after.chunk);
        }

        #[test]
        fn flipped_bits_and_cut_chunks_are_detected(
            before in stored(), at: prop::sample::Index, bit in 0_u8..8,
        ) {
            let (mut out, mut bytes, mut after) = (Vec::new(), Vec::new(), Stored::default());
            write(&mut out, &before, &mut bytes).unwrap();
            let at = at.index(out.len());
            prop_assert!(read(&mut &out[..at], &mut after, &mut bytes).is_err());
            out[at] ^= 1_u8 << bit;
            prop_assert!(read(&mut &out[..], &mut after, &mut bytes).is_err());
        }
    }
}
