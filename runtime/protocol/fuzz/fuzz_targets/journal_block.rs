//! Records of a journal's block from any bytes. There is no panic, the records end, and an input
//! that was read can be recorded and read again.
//!
//! Input: one byte for the format, two for the length of the order part, the order part, and the
//! market part.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windvane_model::codec::RecordBody;
use windvane_model::encode::record_input;
use windvane_model::record::{Block, Chain, Format, Recorder};

fuzz_target!(|data: &[u8]| {
    let [format, high, low, bytes @ ..] = data else {
        return;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low])).min(bytes.len());
    let (orders, market) = bytes.split_at(length);
    let format = [Format::V1, Format::V3][usize::from(format % 2)];
    let block = Block {
        format,
        first_record: 1,
        orders: orders.to_vec(),
        market_len: market.len(),
        market: Some(market.to_vec()),
        ..Block::default()
    };
    let mut read = 0;
    for (_, record) in block.records() {
        read += 1;
        // Each record has at least one byte, and the error is the last one.
        assert!(read <= data.len() + 1);
        let Ok(record) = record else { continue };
        let RecordBody::Input(input) = &record.body else {
            continue;
        };
        let mut recorder = Recorder::from_chain(Chain::default(), true);
        recorder.set_format(format);
        record_input(&mut recorder, record.time, &input.as_input());
        recorder.seal();
        if let Some(written) = recorder.poll_block() {
            let again: Vec<_> = written.records().map(|(_, again)| again).collect();
            assert!(again.len() <= 1, "one input is at most one record");
            if let Some(again) = again.into_iter().next() {
                assert_eq!(again.as_ref().ok(), Some(&record), "{again:?}");
            }
        }
    }
});
