//! Writers and readers against each other, and readers against anything.

use proptest::collection::vec;
use proptest::prelude::*;
use windvane_engine::codec::{self, DecodeError, RecordedEffect, RecordedInput, RecordedNotice};
use windvane_engine::event::Event;
use windvane_engine::{Effect, InstrumentId, Time};

use super::generators::{effect, input, time};
use super::{decode_all, effect_bytes, input_bytes, of_effect, of_input, recorded};

/// The effect that is recorded so. An event's fields are not recorded, so any will do.
fn original(effect: &RecordedEffect) -> Effect {
    match effect.clone() {
        RecordedEffect::Deliver { strategy, kind } => Effect::Deliver {
            strategy,
            event: Event {
                time: Time(1),
                sequence: 2,
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
        RecordedEffect::Beat { number } => Effect::Beat { number },
    }
}

proptest! {
    #[test]
    fn inputs_are_read_as_they_were_written(time in time(), inputs in vec(input(), 1..20)) {
        let bytes = recorded(|recorder| {
            for input in &inputs {
                codec::record_input(recorder, time, &input.as_input());
            }
        });
        let expected: Vec<_> = inputs.into_iter().map(|input| of_input(time, input)).collect();
        prop_assert_eq!(decode_all(&bytes), expected);
    }

    #[test]
    fn effects_are_read_as_they_were_written(time in time(), effect in effect()) {
        let bytes = effect_bytes(time, &original(&effect));
        prop_assert_eq!(decode_all(&bytes), [of_effect(time, effect)]);
    }

    /// A cut is an error that says so, and the records before it are whole.
    #[test]
    fn cut_bytes_are_told(inputs in vec(input(), 1..5), cut in any::<prop::sample::Index>()) {
        let mut ends = vec![0];
        let bytes = recorded(|recorder| {
            for input in &inputs {
                codec::record_input(recorder, Time(7), &input.as_input());
                let end = ends.last().unwrap() + input_bytes(Time(7), &input.as_input()).len();
                ends.push(end);
            }
        });
        prop_assert_eq!(*ends.last().unwrap(), bytes.len());
        let cut = cut.index(bytes.len());
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        let read: Vec<_> = codec::decode(&bytes[..cut]).collect();
        prop_assert!(read[..whole].iter().all(Result::is_ok));
        if ends.contains(&cut) {
            prop_assert_eq!(read.len(), whole);
        } else {
            prop_assert_eq!(read.len(), whole + 1, "nothing comes after an error");
            let truncated = matches!(read[whole], Err(DecodeError::Truncated { .. }));
            prop_assert!(truncated, "{:?}", read[whole]);
        }
    }

    /// Whatever the bytes, the reader ends. What it takes for an input is written back as the
    /// very bytes that it read: no two byte strings mean the same.
    #[test]
    fn garbage_never_panics_and_has_one_reading(
        kind in prop_oneof![1..=13_u8, 64..=65_u8, any::<u8>()],
        rest in vec(prop_oneof![3 => 0..4_u8, 1 => any::<u8>()], 0..400),
    ) {
        let mut bytes = vec![kind];
        bytes.extend(rest);
        check_one_reading(&bytes)?;
    }

    #[test]
    fn a_changed_byte_never_panics_and_has_one_reading(
        input in input(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let mut bytes = input_bytes(Time(7), &input.as_input());
        let at = at.index(bytes.len());
        bytes[at] = byte;
        check_one_reading(&bytes)?;
    }
}

fn check_one_reading(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut written = Vec::new();
    for record in codec::decode(bytes) {
        let Ok(record) = record else { return Ok(()) };
        let again = recorded(|recorder| match &record.body {
            codec::RecordBody::Config(_) => {}
            codec::RecordBody::Input(input) => {
                codec::record_input(recorder, record.time, &input.as_input());
            }
            codec::RecordBody::Effect(effect) => {
                codec::record_effect(recorder, record.time, &original(effect));
            }
            codec::RecordBody::Notice(RecordedNotice::State { from, to, doubts }) => {
                codec::record_state(recorder, record.time, *from, *to, doubts);
            }
            codec::RecordBody::Notice(RecordedNotice::Adjusted { adjustment, cause }) => {
                codec::record_adjustment(recorder, record.time, adjustment, *cause);
            }
            codec::RecordBody::Notice(RecordedNotice::ForcedClose(report)) => {
                codec::record_forced_close(recorder, record.time, report);
            }
        });
        if again.is_empty() {
            return Ok(());
        }
        written.extend(again);
        prop_assert_eq!(&written[..], &bytes[..written.len()]);
    }
    Ok(())
}

#[test]
fn a_count_that_lies_allocates_nothing() {
    let empty = RecordedInput::Depth {
        instrument: InstrumentId(0),
        update_id: 1,
        snapshot: true,
        bids: Vec::new(),
        asks: Vec::new(),
    };
    let mut bytes = input_bytes(Time(7), &empty.as_input());
    let counts = bytes.len() - 8;
    bytes[counts..counts + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let read: Vec<_> = codec::decode(&bytes).collect();
    assert_eq!(
        read,
        [Err(DecodeError::Truncated {
            field: "level price",
            offset: counts + 4,
            needed: 8,
            left: 4,
        })]
    );
}

#[test]
fn a_text_that_is_longer_than_the_bytes_is_cut_off() {
    let mut bytes = vec![codec::kind::CONFIG];
    bytes.extend([0; 8]);
    bytes.extend(u32::MAX.to_le_bytes());
    let error = codec::decode(&bytes).next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "configuration at byte 13 needs 4294967295 more bytes, 0 are left: cut off?"
    );
}

#[test]
fn an_unknown_kind_and_an_unknown_word_are_told_apart() {
    let mut bytes = vec![200];
    bytes.extend([0; 8]);
    let error = codec::decode(&bytes).next().unwrap().unwrap_err();
    assert_eq!(
        error,
        DecodeError::UnknownKind {
            offset: 0,
            kind: 200
        }
    );
    let mut bytes = vec![codec::kind::COMMAND];
    bytes.extend([0; 8]);
    bytes.push(4);
    let error = codec::decode(&bytes).next().unwrap().unwrap_err();
    let expected = DecodeError::Code {
        field: "command",
        offset: 9,
        code: 4,
    };
    assert_eq!(error, expected);
}
