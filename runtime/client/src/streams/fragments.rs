//! Counts the fragments of the messages in a WebSocket's byte stream.

use std::io;

/// Most fragments of a message before its last one. The longest message that is accepted may come
/// in fragments of 2 KiB.
const FRAGMENTS_MAX: u32 = 4_096;

/// Follows the bytes of a venue: the head of its response to the handshake, then frames. It keeps
/// no byte of them.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    at: At,
    /// Fragments of the present message, the last one excluded.
    count: u32,
}

/// The kind of the next byte.
#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// The empty lines that may come before the response.
    #[default]
    Start,
    /// The head of the response; whether its present line is still empty.
    Head { is_empty: bool },
    /// The first byte of a frame.
    Frame,
    /// The second byte, which has the length.
    Length { is_data: bool, is_final: bool },
    /// More bytes of the length, then `mask` bytes that are not counted by it.
    LongLength { left: u8, length: u64, mask: u64 },
    /// The rest of a frame.
    Payload { left: u64 },
}

impl Fragments {
    /// Takes the next bytes of the stream.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if let At::Payload { left } = self.at {
                let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                self.at = payload(left - skipped as u64);
                bytes = &bytes[skipped..];
                continue;
            }
            bytes = rest;
            self.at = self.next(byte);
        }
    }

    /// An error once a message has too many fragments.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.count <= FRAGMENTS_MAX {
            return Ok(());
        }
        let text = format!("a message of more than {FRAGMENTS_MAX} fragments");
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    fn next(&mut self, byte: u8) -> At {
        match self.at {
            At::Start if matches!(byte, b'\r' | b'\n') => At::Start,
            At::Start => At::Head { is_empty: false },
            At::Head { is_empty: true } if byte == b'\n' => At::Frame,
            At::Head { is_empty } => At::Head {
                is_empty: byte == b'\n' || (is_empty && byte == b'\r'),
            },
            At::Frame => At::Length {
                is_data: byte & 0x08 == 0,
                is_final: byte & 0x80 != 0,
            },
            At::Length { is_data, is_final } => {
                // A control frame may come between two fragments.
                if is_data {
                    let is_over = is_final && self.count <= FRAGMENTS_MAX;
                    self.count = if is_over {
                        0
                    } else {
                        self.count.saturating_add(1)
                    };
                }
                let mask = if byte & 0x80 == 0 { 0 } else { 4 };
                match byte & 0x7f {
                    126 => long_length(2, mask),
                    127 => long_length(8, mask),
                    length => payload(u64::from(length) + mask),
                }
            }
            At::LongLength { left, length, mask } => {
                let length = length << 8 | u64::from(byte);
                if left > 1 {
                    let left = left - 1;
                    At::LongLength { left, length, mask }
                } else {
                    payload(length.saturating_add(mask))
                }
            }
            At::Payload { left } => payload(left.saturating_sub(1)),
        }
    }
}

fn long_length(left: u8, mask: u64) -> At {
    let length = 0;
    At::LongLength { left, length, mask }
}

fn payload(left: u64) -> At {
    if left == 0 {
        At::Frame
    } else {
        At::Payload { left }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![first];
        match length {
            0..126 => frame.push(length as u8),
            126..65_536 => {
                frame.push(126);
                frame.extend((length as u16).to_be_bytes());
            }
            _ => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.resize(frame.len() + length, 0);
        frame
    }

    fn read(parts: &[Vec<u8>]) -> Fragments {
        let mut fragments = Fragments::default();
        fragments.read(HEAD);
        for part in parts {
            fragments.read(part);
        }
        fragments
    }

    #[test]
    fn a_message_may_have_4096_fragments_and_a_last_one() {
        let mut parts = vec![frame(0x01, 2_048)];
        parts.resize(4_096, frame(0x00, 2_048));
        assert!(read(&parts).check().is_ok());
        parts.push(frame(0x80, 0));
        parts.extend(parts.clone());
        assert!(read(&parts).check().is_ok());
        parts.truncate(4_096);
        parts.push(frame(0x00, 0));
        let error = read(&parts).check().unwrap_err().to_string();
        assert_eq!(error, "a message of more than 4096 fragments");
        // An excess is not forgotten when the message ends in the same read.
        parts.push(frame(0x80, 0));
        assert!(read(&parts).check().is_err());
    }

    #[test]
    fn pings_between_fragments_are_not_fragments_and_end_no_message() {
        let mut parts = Vec::new();
        for _ in 0..4_096 {
            parts.extend([frame(0x01, 0), frame(0x89, 125)]);
        }
        assert!(read(&parts).check().is_ok());
        parts.push(frame(0x00, 0));
        assert!(read(&parts).check().is_err());
    }

    #[test]
    fn the_head_of_a_response_may_end_with_plain_newlines() {
        for head in ["HTTP/1.1 101 \n\n", "\r\nHTTP/1.1 101 \r\nA: b\n\r\n"] {
            let mut fragments = Fragments::default();
            fragments.read(head.as_bytes());
            fragments.read(&frame(0x01, 3));
            assert_eq!(fragments.count, 1, "{head:?}");
        }
    }

    proptest! {
        /// The count depends neither on lengths nor on how the bytes were divided into reads.
        #[test]
        fn every_length_and_every_division_is_followed(
            lengths in vec(prop_oneof![0usize..300, 65_530usize..65_540], 1..8),
            size in 1usize..5_000,
        ) {
            let mut bytes = HEAD.to_vec();
            for length in &lengths {
                bytes.extend(frame(0x02, *length));
                bytes.extend(frame(0x8a, 3));
            }
            let mut fragments = Fragments::default();
            for part in bytes.chunks(size) {
                fragments.read(part);
            }
            prop_assert_eq!(fragments.count as usize, lengths.len());
            fragments.read(&frame(0x80, 0));
            prop_assert_eq!(fragments.count, 0);
        }
    }
}
