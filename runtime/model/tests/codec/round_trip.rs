//! Tests readers with the bytes of writers, and readers with arbitrary bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use windvane_model::codec::{
    self, DecodeError, RecordBody, RecordedEffect, RecordedInput, RecordedNotice,
};
use windvane_model::encode;
use windvane_model::event::Event;
use windvane_model::record::{Block, Format, Recorder};
use windvane_model::{Effect, InstrumentId, OwnedMarketEvent, Time};

use super::generators::{effect, input, time};
use super::{block_of, decode_all, effect_block, input_block, of_effect, of_input, recorded};

/// The effect of a record. An event's fields are not recorded, so any values will do.
fn original(effect: &RecordedEffect) -> Effect {
    match effect.clone() {
        RecordedEffect::Deliver {
            strategy,
            kind,
            sequence,
        } => Effect::Deliver {
            strategy,
            event: Event {
                time: Time(1),
                sequence: sequence.unwrap_or(2),
                kind,
                instrument: InstrumentId(3),
                flags: 4,
                fields: [5; 6],
                id: 6,
            },
        },
        RecordedEffect::Send { record, request } => Effect::Send {
            record,
            request: Box::new(request),
        },
        RecordedEffect::Reconnect { surface } => Effect::Reconnect { surface },
        RecordedEffect::Heartbeat { number } => Effect::Heartbeat { number },
    }
}

const FORMATS: [Format; 2] = [Format::V1, Format::V3];

proptest! {
    #[test]
    fn inputs_are_read_as_they_were_written(inputs in vec((time(), input()), 1..20)) {
        for format in FORMATS {
            let block = recorded(format, |recorder| {
                for (time, input) in &inputs {
                    encode::record_input(recorder, *time, &input.as_input());
                }
            });
            let inputs = inputs.iter().cloned();
            let expected: Vec<_> = inputs.map(|(time, input)| of_input(time, input)).collect();
            prop_assert_eq!(decode_all(&block), expected);
            let sequences: Vec<_> = block.records().map(|(sequence, _)| sequence).collect();
            prop_assert_eq!(sequences, (1..=block.last_record).collect::<Vec<_>>());
        }
    }

    /// Order records that are read alone keep their sequences among all records.
    #[test]
    fn order_records_are_read_without_the_market_part(inputs in vec((time(), input()), 1..20)) {
        let mut block = recorded(Format::V3, |recorder| {
            for (time, input) in &inputs {
                encode::record_input(recorder, *time, &input.as_input());
            }
        });
        let of_market = |record: &codec::Record| matches!(
            &record.body,
            RecordBody::Input(RecordedInput::Market { .. })
        );
        let all = block.records().map(|(sequence, record)| (sequence, record.unwrap()));
        let expected: Vec<_> = all.filter(|(_, record)| !of_market(record)).collect();
        block.market = None;
        let read: Vec<_> = block.records().map(|(s, record)| (s, record.unwrap())).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn effects_are_read_as_they_were_written(time in time(), effect in effect()) {
        for format in FORMATS {
            let block = effect_block(format, time, &original(&effect));
            prop_assert_eq!(decode_all(&block), [of_effect(time, effect.clone())]);
        }
    }

    /// The order part alone contains the sequences of its events, whatever is delivered between
    /// them.
    #[test]
    fn the_order_part_has_the_sequences_of_its_events(effects in vec((effect(), any::<i64>()), 1..20)) {
        let mut expected = Vec::new();
        let mut block = recorded(Format::V3, |recorder| {
            for (effect, number) in &effects {
                let mut effect = original(effect);
                if let Effect::Deliver { event, .. } = &mut effect {
                    event.sequence = *number;
                }
                encode::record_effect(recorder, Time(7), &effect);
            }
        });
        for (effect, number) in &effects {
            if let RecordedEffect::Deliver { kind, .. } = effect
                && !kind.is_of_market()
            {
                expected.push(*number);
            }
        }
        block.market = None;
        let read: Vec<_> = block
            .records()
            .filter_map(|(_, record)| match record.unwrap().body {
                RecordBody::Effect(RecordedEffect::Deliver { sequence, .. }) => sequence,
                _ => None,
            })
            .collect();
        prop_assert_eq!(read, expected);
    }

    /// Truncated bytes are an error that names the truncation, and the records before it are
    /// complete.
    #[test]
    fn truncation_is_reported(inputs in vec(input(), 1..5), cut in any::<prop::sample::Index>()) {
        for format in FORMATS {
            let record = |count: usize| {
                recorded(format, |recorder| {
                    for input in &inputs[..count] {
                        encode::record_input(recorder, Time(7), &input.as_input());
                    }
                })
            };
            let block = record(inputs.len());
            let market = block.market.clone().unwrap();
            let cut = cut.index(block.orders.len() + 1);
            let part = block_of(format, &block.orders[..cut], &market);
            let mut read: Vec<_> = part.records().collect();
            if !(0..=inputs.len()).any(|count| record(count).orders.len() == cut) {
                let last = read.pop().unwrap().1;
                let truncated = matches!(last, Err(DecodeError::Truncated { .. }));
                prop_assert!(truncated, "{last:?}");
                let whole: Vec<_> = block.records().take(read.len()).collect();
                prop_assert_eq!(&read, &whole, "records before the cut");
            }
            prop_assert!(read.iter().all(|(_, record)| record.is_ok()));
            // A truncated market part.
            if let Some((_, rest)) = market.split_last() {
                let part = block_of(format, &block.orders, &market[..rest.len()]);
                let last = part.records().last();
                let is_short = last.is_none_or(|(sequence, record)| {
                    record.is_err() || sequence < block.last_record
                });
                prop_assert!(is_short);
            }
        }
    }

    /// The reader ends for any bytes. If it accepts a record, writing the record again gives the
    /// same bytes, so no two byte strings have the same meaning.
    #[test]
    fn random_bytes_never_panic_and_have_one_encoding(
        kind in prop_oneof![1..=13_u8, 64..=65_u8, any::<u8>()],
        rest in vec(prop_oneof![3 => 0..4_u8, 1 => any::<u8>()], 0..400),
        market in vec(prop_oneof![3 => 0..4_u8, 1 => any::<u8>()], 0..60),
    ) {
        let mut bytes = vec![kind];
        bytes.extend(rest);
        check_one_reading(&block_of(Format::V1, &bytes, &[]))?;
        check_one_reading(&block_of(Format::V3, &bytes, &market))?;
        check_one_reading(&block_of(Format::V3, &[], &market))?;
    }

    #[test]
    fn a_changed_byte_never_panics_and_has_one_encoding(
        inputs in vec(input(), 1..4),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        for format in FORMATS {
            let mut block = recorded(format, |recorder| {
                for input in &inputs {
                    encode::record_input(recorder, Time(7), &input.as_input());
                }
            });
            let at = at.index(block.len());
            match at.checked_sub(block.orders.len()) {
                None => block.orders[at] = byte,
                Some(at) => block.market.as_mut().unwrap()[at] = byte,
            }
            check_one_reading(&block)?;
        }
    }
}

/// Checks that records that were read, up to the end or an error, are written as the same bytes.
fn check_one_reading(block: &Block) -> Result<(), TestCaseError> {
    let records: Vec<_> = block.records().map(|(_, record)| record).collect();
    let is_whole = records.iter().all(Result::is_ok);
    let again = recorded(block.format, |recorder| {
        for record in records.into_iter().flatten() {
            record_again(recorder, &record);
        }
    });
    let (read, written) = (&block.orders, &again.orders);
    let market = block.market.clone().unwrap();
    let again = again.market.unwrap_or_default();
    if is_whole {
        prop_assert_eq!(read, written);
        prop_assert_eq!(&market, &again);
    } else {
        prop_assert_eq!(written, &read[..written.len()]);
        prop_assert_eq!(&again, &market[..again.len()]);
    }
    Ok(())
}

fn record_again(recorder: &mut Recorder, record: &codec::Record) {
    match &record.body {
        RecordBody::Config(text) => encode::record_text(recorder, record.time, text),
        RecordBody::Input(input) => {
            encode::record_input(recorder, record.time, &input.as_input());
        }
        RecordBody::Effect(effect) => {
            encode::record_effect(recorder, record.time, &original(effect));
        }
        RecordBody::Notice(RecordedNotice::State { from, to, reasons }) => {
            encode::record_state(recorder, record.time, *from, *to, reasons);
        }
        RecordBody::Notice(RecordedNotice::Adjusted { adjustment, cause }) => {
            encode::record_adjustment(recorder, record.time, adjustment, *cause);
        }
        RecordBody::Notice(RecordedNotice::ForcedClose(report)) => {
            encode::record_forced_close(recorder, record.time, report);
        }
    }
}

#[test]
fn a_wrong_count_allocates_nothing() {
    let empty = RecordedInput::Market {
        instrument: InstrumentId(0),
        event: OwnedMarketEvent::Depth {
            update_id: 1,
            snapshot: true,
            bids: Vec::new(),
            asks: Vec::new(),
        },
    };
    let mut bytes = input_block(Format::V1, Time(7), &empty.as_input()).orders;
    let counts = bytes.len() - 8;
    bytes[counts..counts + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let read: Vec<_> = block_of(Format::V1, &bytes, &[]).records().collect();
    assert_eq!(
        read,
        [(
            1,
            Err(DecodeError::Truncated {
                field: "level price",
                offset: counts + 4,
                needed: 8,
                left: 4,
            })
        )]
    );

    let mut bytes = input_block(Format::V3, Time(7), &empty.as_input())
        .market
        .unwrap();
    bytes.truncate(bytes.len() - 2);
    bytes.extend([0xff; 9]);
    bytes.extend([1, 0]);
    let mut records = block_of(Format::V3, &[], &bytes)
        .records()
        .collect::<Vec<_>>();
    assert_eq!(
        records.pop().unwrap().1.unwrap_err().to_string(),
        format!(
            "level price at byte {} needs 1 bytes, but 0 are left: truncated data?",
            bytes.len()
        )
    );
}

#[test]
fn a_number_with_too_many_bytes_is_damage() {
    let mut block = input_block(Format::V3, Time(7), &windvane_model::Input::Timeout);
    assert_eq!(block.orders, [codec::kind::TIMEOUT, 0, 7]);
    assert_eq!(decode_all(&block).len(), 1);
    block.orders = vec![codec::kind::TIMEOUT, 0, 0x87, 0];
    let error = block.records().next().unwrap().1.unwrap_err();
    let field = "time";
    assert_eq!(error, DecodeError::Text { field, offset: 2 });
}

#[test]
fn a_text_longer_than_the_bytes_is_truncated() {
    let mut bytes = vec![codec::kind::CONFIG];
    bytes.extend([0; 8]);
    bytes.extend(u32::MAX.to_le_bytes());
    let block = block_of(Format::V1, &bytes, &[]);
    let error = block.records().next().unwrap().1.unwrap_err();
    assert_eq!(
        error.to_string(),
        "configuration at byte 13 needs 4294967295 bytes, but 0 are left: truncated data?"
    );
}

#[test]
fn unknown_kinds_and_unknown_codes_are_different_errors() {
    let error = |format, bytes: &[u8]| {
        let block = block_of(format, bytes, &[]);
        block.records().next().unwrap().1.unwrap_err()
    };
    let unknown = DecodeError::UnknownKind {
        offset: 0,
        kind: 200,
    };
    assert_eq!(error(Format::V1, &[200, 0, 0, 0, 0, 0, 0, 0, 0]), unknown);
    assert_eq!(error(Format::V3, &[200, 0, 0]), unknown);
    let expected = |offset| DecodeError::Code {
        field: "command",
        offset,
        code: 4,
    };
    let command = codec::kind::COMMAND;
    let fixed = [command, 0, 0, 0, 0, 0, 0, 0, 0, 4];
    assert_eq!(error(Format::V1, &fixed), expected(9));
    assert_eq!(error(Format::V3, &[command, 0, 0, 4]), expected(3));
}
