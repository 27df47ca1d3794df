//! The share of large states in the journal over time, checkpoints included.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod guests;
#[path = "../../engine/tests/support/mod.rs"]
mod support;

use guests::{NOW, Script, Scripted};
use support::{BTC, config, live_config};
use windvane_engine::Engine;
use windvane_model::codec::{RecordBody, RecordedInput};
use windvane_model::input::FaultKind;
use windvane_model::live::{LiveConfig, LiveInput};
use windvane_model::{Input, Level, MarketEvent, StrategyId, Time};
use windvane_session::{
    Driver, Input as SessionInput, JournalEvent, Output, STATE_BYTES_MAX, Session,
};

const SECONDS: i64 = 600;
/// The share of the journal that other output of a strategy has too.
const BYTES_PER_SECOND: usize = 256 << 10;

/// A strategy whose state of this many bytes is another one at each `save`.
struct LargeScript {
    bytes: usize,
    saves: usize,
}

type Large = Scripted<LargeScript>;

impl Script for LargeScript {
    fn save(&mut self, _: StrategyId) -> Result<Option<Vec<u8>>, FaultKind> {
        self.saves += 1;
        let mut state = vec![0; self.bytes];
        state[..8].copy_from_slice(&self.saves.to_le_bytes());
        Ok(Some(state))
    }
}

fn session(bytes: usize) -> Session<Large> {
    let mut config = config();
    config.keep_journal = true;
    config.strategies.truncate(1);
    // No instrument is on a surface, so the engine is ready at once.
    config.live = Some(LiveConfig {
        surfaces: Vec::new(),
        ..live_config()
    });
    let guests = Scripted(LargeScript { bytes, saves: 0 });
    let mut driver = Driver::new(Engine::new(config).unwrap(), guests, true);
    driver.start(NOW, &[None], &[]).unwrap();
    driver.handle(NOW, Input::Live(&LiveInput::Begin));
    guests::session(driver, &["one"], [0; 32])
}

/// The number and size of the states in the journal.
#[derive(Debug, Default)]
struct Taken {
    /// Recorded states.
    records: usize,
    segments: usize,
    /// Bytes of recorded states and checkpoints.
    bytes: usize,
}

/// Carries out the outputs with a journal that writes at once.
fn write(session: &mut Session<Large>, now: Time, taken: &mut Taken) {
    while let Some(output) = session.poll_output() {
        let event = match output {
            Output::Append(block) => {
                for (_, record) in block.records() {
                    let body = record.unwrap().body;
                    if let RecordBody::Input(RecordedInput::Saved { state, .. }) = body {
                        taken.records += 1;
                        taken.bytes += state.map_or(0, |state| state.len());
                    }
                }
                JournalEvent::Durable(block.last_record)
            }
            Output::Roll(checkpoint, at) => {
                taken.segments += 1;
                taken.bytes += checkpoint.len();
                JournalEvent::Rolled(at.last_record)
            }
            _ => continue,
        };
        session.handle(now, SessionInput::Journal(event));
    }
}

/// Runs for some minutes with ten book events a second.
fn taken(bytes: usize) -> (Taken, usize) {
    let mut session = session(bytes);
    let mut taken = Taken::default();
    for tenth in 1..=SECONDS * 10 {
        let now = NOW.plus_ms(tenth * 100);
        let level = |price| Level { price, qty: 1 };
        let event = MarketEvent::Top {
            update_id: tenth,
            bid: level(900 + tenth % 2),
            ask: level(902 + tenth % 2),
        };
        let instrument = BTC;
        session.handle(now, SessionInput::Market { instrument, event });
        write(&mut session, now, &mut taken);
        session.handle(now, SessionInput::Timeout);
        write(&mut session, now, &mut taken);
    }
    let saves = session.guests_mut().saves;
    (taken, saves)
}

#[test]
fn large_states_keep_to_a_share_of_the_journal() {
    // Journals of older programs have states of up to 16 MiB.
    for bytes in [64 << 10, 1 << 20, STATE_BYTES_MAX, 16 << 20] {
        let (taken, saves) = taken(bytes);
        assert!(taken.records >= 2, "{bytes}: {taken:?}");
        let most = BYTES_PER_SECOND * SECONDS as usize;
        assert!(taken.bytes <= most, "{bytes}: {taken:?}");
        // The throttle is before the call of `save`.
        assert!(saves * bytes <= most, "{bytes}: {saves} saves");
        assert!(taken.segments <= 20, "{bytes}: {taken:?}");
    }
}
