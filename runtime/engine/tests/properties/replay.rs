//! A journal replays: the same inputs to a new engine produce the same effects, without the
//! strategies that made the intents.

use proptest::prelude::*;
use windvane_engine::Engine;
use windvane_model::codec::{Record, RecordBody, RecordedEffect};
use windvane_model::config::{EngineConfig, OnFault};
use windvane_model::record::{self, BLOCK_BYTES, Block, Format, Recorder};
use windvane_model::risk::RiskLimits;
use windvane_model::{Amount, Request, Time};

use super::steps::{Step, step_with_faults};
use super::world::{World, config};

/// A configuration that uses limits, loss limits, flattening and bars.
fn eventful_config() -> EngineConfig {
    let mut config = config();
    config.keep_journal = true;
    config.limits = RiskLimits {
        max_position_notional: Some(Amount(20_000 * 100_000_000)),
        max_open_orders: Some(12),
        max_daily_loss: Some(Amount(100_000_000)),
        ..RiskLimits::default()
    };
    config.strategies[1].on_fault = OnFault::Flatten;
    config.strategies[1].limits.max_orders_per_minute = Some(30);
    config.strategies[1].limits.max_daily_loss = Some(Amount(50_000_000));
    config.strategies[0].subscriptions[0].bars_ms = vec![1_000, 60_000];
    config
}

fn journal(engine: &mut Engine) -> Vec<Block> {
    std::iter::from_fn(|| engine.poll_block()).collect()
}

/// A new engine that handles only the inputs of a journal.
fn replayed(blocks: &[Block], format: Format) -> Engine {
    let mut recorder = Recorder::new(true);
    recorder.set_format(format);
    let mut engine = Engine::recording_to(eventful_config(), recorder).unwrap();
    for block in blocks {
        for (_, record) in block.records() {
            let record = record.unwrap();
            if let RecordBody::Input(input) = &record.body {
                engine.handle(record.time, input.as_input());
                while engine.poll_effect().is_some() {}
            }
        }
    }
    engine
}

/// A new engine that handles only the order records of a journal.
fn without_market(blocks: &[Block]) -> Engine {
    let mut engine = Engine::new(eventful_config()).unwrap();
    let mut inputs = vec![(None, Vec::new())];
    for block in blocks {
        let orders = Block {
            market: None,
            ..block.clone()
        };
        for (_, record) in orders.records() {
            let record = record.unwrap();
            match &record.body {
                RecordBody::Input(_) => inputs.push((Some(record), Vec::new())),
                RecordBody::Effect(effect) => {
                    let (_, followed) = inputs.last_mut().unwrap();
                    followed.push((record.time, effect.clone()));
                }
                _ => {}
            }
        }
    }
    for (input, followed) in &inputs {
        let now = input.as_ref().map_or(Time(0), |record| record.time);
        let input = input.as_ref().map(|record| match &record.body {
            RecordBody::Input(input) => input.as_input(),
            _ => unreachable!("only inputs are kept"),
        });
        engine.handle_without_market(now, input, followed);
        while engine.poll_effect().is_some() {}
        while engine.poll_block().is_some() {}
    }
    engine
}

fn run(steps: &[Step]) -> World {
    let mut world = World::new(eventful_config());
    for step in steps {
        world.step(step);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_replays_to_the_same_fingerprint(
        steps in prop::collection::vec(step_with_faults(), 1..150),
    ) {
        let mut world = run(&steps);
        let fingerprint = world.account.engine.fingerprint();
        let blocks = journal(&mut world.account.engine);
        prop_assert_eq!(record::verify(&blocks), Ok(fingerprint));
        let mut replay = replayed(&blocks, Format::V3);
        prop_assert_eq!(replay.fingerprint(), fingerprint);
        prop_assert_eq!(journal(&mut replay), blocks);
    }

    /// The encoding does not affect decisions: both formats contain the same records in the same
    /// order.
    #[test]
    fn both_formats_have_the_same_records(
        steps in prop::collection::vec(step_with_faults(), 1..100),
    ) {
        let mut world = run(&steps);
        world.account.engine.seal();
        let blocks = journal(&mut world.account.engine);
        let mut old = replayed(&blocks, Format::V1);
        old.seal();
        let old = journal(&mut old);
        prop_assert!(old.iter().all(|block| block.format == Format::V1));
        let records = |blocks: &[Block]| -> Vec<(u64, Record)> {
            let records = blocks.iter().flat_map(Block::records);
            records
                .map(|(sequence, record)| {
                    let mut record = record.unwrap();
                    // Format 1 does not store it.
                    if let RecordBody::Effect(RecordedEffect::Deliver { sequence, .. }) =
                        &mut record.body
                    {
                        *sequence = None;
                    }
                    (sequence, record)
                })
                .collect()
        };
        prop_assert_eq!(records(&blocks), records(&old));
    }

    /// Without market records, every order that was sent is known and every fill is booked.
    #[test]
    fn order_records_alone_give_orders_and_positions(
        steps in prop::collection::vec(step_with_faults(), 1..150),
    ) {
        let mut world = run(&steps);
        world.account.engine.seal();
        let blocks = journal(&mut world.account.engine);
        let recovered = without_market(&blocks);
        for (_, record) in blocks.iter().flat_map(Block::records) {
            if let RecordBody::Effect(RecordedEffect::Send { request, .. }) = record.unwrap().body
                && let Request::Place(order) = request
            {
                let (_, _, seq) = order.client_order_id.parse_own().unwrap();
                let (known, whole) =
                    (recovered.known_order(seq), world.account.engine.known_order(seq));
                prop_assert_eq!(known.is_some(), whole.is_some(), "{:?}", order);
            }
        }
        let filled = |engine: &Engine| -> Vec<_> {
            let orders = engine.orders().iter();
            orders.map(|order| (order.client_order_id, order.executed_qty)).collect()
        };
        let whole = filled(&world.account.engine);
        let recovered = filled(&recovered);
        for order in &whole {
            prop_assert!(recovered.contains(order), "{:?} of {:?}", order, recovered);
        }
    }

    /// Every request names a record of an earlier block, so that a driver can wait for it.
    #[test]
    fn requests_name_a_record_of_an_earlier_block(
        steps in prop::collection::vec(step_with_faults(), 1..100),
    ) {
        let mut world = run(&steps);
        world.account.engine.fingerprint();
        for block in journal(&mut world.account.engine) {
            for (_, record) in block.records() {
                let body = record.unwrap().body;
                let RecordBody::Effect(RecordedEffect::Send { record, request }) = body else {
                    continue;
                };
                if !matches!(request, Request::Query { .. }) {
                    prop_assert!(record < block.first_record, "{record} {request:?}");
                }
            }
        }
    }
}

#[test]
fn a_changed_input_changes_the_fingerprint() {
    let steps = [Step::Pass(5), Step::Mark(1000), Step::Pass(6)];
    let fingerprint = |steps: &[Step]| run(steps).account.engine.fingerprint();
    let whole = fingerprint(&steps);
    assert_eq!(whole, fingerprint(&steps));
    assert_ne!(whole, fingerprint(&steps[..2]));
    let other = [Step::Pass(5), Step::Mark(1001), Step::Pass(6)];
    assert_ne!(whole, fingerprint(&other));
}

#[test]
fn a_long_run_fills_several_blocks_and_replays() {
    let mut steps = Vec::new();
    for i in 0..20_000 {
        steps.push(Step::Mark(990 + i % 20));
    }
    let mut world = run(&steps);
    let fingerprint = world.account.engine.fingerprint();
    let blocks = journal(&mut world.account.engine);
    assert!(blocks.len() > 2, "{} blocks", blocks.len());
    assert!(blocks[0].len() >= BLOCK_BYTES);
    assert_eq!(replayed(&blocks, Format::V3).fingerprint(), fingerprint);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// An engine that was saved and restored continues as if it had not been.
    #[test]
    fn a_snapshot_changes_nothing(
        steps in proptest::collection::vec(step_with_faults(), 1..120),
        at in any::<prop::sample::Index>(),
    ) {
        let at = at.index(steps.len());
        let run = |read_back: bool| {
            let mut world = World::new(eventful_config());
            for (place, step) in steps.iter().enumerate() {
                world.step(step);
                if place == at {
                    let bytes = world.account.engine.snapshot();
                    if read_back {
                        world.account.engine = Engine::restore(&bytes).unwrap();
                    }
                }
            }
            world.account.engine.fingerprint()
        };
        prop_assert_eq!(run(true), run(false));
    }
}

#[test]
fn invalid_snapshots_are_rejected() {
    let mut engine = Engine::new(eventful_config()).unwrap();
    let bytes = engine.snapshot();
    assert!(Engine::restore(&bytes).is_ok());
    for cut in [0, 7, 11, 12, bytes.len() / 2, bytes.len() - 1] {
        assert!(Engine::restore(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    let mut other = bytes;
    other[8] ^= 0x40;
    assert!(Engine::restore(&other).is_err(), "another version");
}
