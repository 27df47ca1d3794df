//! Frames of the signer's socket from any bytes. There is no panic; the pieces in which bytes arrive
//! change nothing; and what was read can be written and read again.
//!
//! Input: one byte for the length of the pieces, then the bytes of the socket.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windvane_signer::wire::{
    FRAME_MAX, FrameError, Frames, read_reply, read_request, reply, request,
};

/// All records, and the error that ends them.
fn records(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for part in bytes.chunks(piece) {
        frames.push(part);
        loop {
            match frames.next_record() {
                Ok(Some(record)) => found.push(record.to_vec()),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

/// The record of one frame.
fn record_of(frame: &[u8]) -> Vec<u8> {
    let (found, error) = records(frame, frame.len());
    assert!(found.len() == 1 && error.is_none());
    found.concat()
}

fuzz_target!(|data: &[u8]| {
    let [piece, bytes @ ..] = data else { return };
    let (found, error) = records(bytes, usize::from(*piece) + 1);
    assert_eq!(records(bytes, bytes.len().max(1)), (found.clone(), error));
    for record in found.iter().map(Vec::as_slice).chain([bytes]) {
        assert!(record.len() < FRAME_MAX || record == bytes);
        if let Ok((id, unsigned)) = read_request(record)
            && let Ok(frame) = request(id, &unsigned)
        {
            assert_eq!(read_request(&record_of(&frame)), Ok((id, unsigned)));
        }
        if let Ok((id, result)) = read_reply(record)
            && let Ok(frame) = reply(id, result.clone())
        {
            assert_eq!(read_reply(&record_of(&frame)), Ok((id, result)));
        }
    }
});
