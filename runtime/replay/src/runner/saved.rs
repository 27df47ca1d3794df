//! Compares the states that modules save with the states that were recorded: at the start of each
//! segment, where a block ended by time, and after callbacks about own orders.

use sha2::{Digest, Sha256};
use windvane_engine::Engine;
use windvane_model::codec::RecordedInput;
use windvane_model::input::FaultKind;
use windvane_model::{Event, StrategyId};
use windvane_session::recovery::Difference;
use windvane_session::{Cost, STATE_BYTES_MAX, is_saved_at_once};

use super::super::reader::{self, NextInput};
use super::segment_replay::{SegmentReplay, feed};
use windvane_build::modules::engine_fault;

impl SegmentReplay<'_, '_> {
    /// Handles a new segment of the same process: modules must save the recorded states.
    pub(super) fn compare_states(&mut self, engine: &Engine) {
        for place in 0..self.runner.players.len() {
            let saved = &self.checkpoint.strategies[place];
            let healthy = engine.fault(StrategyId(place as u16)).is_none();
            let player = &mut self.runner.players[place];
            player.saved.clone_from(&saved.state);
            if let Some(shadow) = player.shadow.as_mut().filter(|one| !one.failed) {
                drop(shadow.guest.strategy.save());
            }
            let Some(module) = player.module.as_mut() else {
                continue;
            };
            if module.sha256 != saved.sha256 || module.made() != saved.made {
                let module = self.runner.module(saved);
                self.runner.players[place].module = module;
                continue;
            }
            let state = module.strategy.save().ok();
            if healthy && state != saved.state && self.difference.is_none() {
                let id = &saved.name;
                let chain = engine.chain();
                self.difference = Some(Difference {
                    block: chain.next_block,
                    record: chain.last_record,
                    recorded: saved_text(id, saved.state.as_deref()),
                    made: saved_text(id, state.as_deref()),
                });
            }
        }
    }

    /// A state that was saved within a callback was recorded before the callback's output. Returns
    /// the result of the callback; this is a fault if the save failed.
    pub(super) fn settle_saved(
        &mut self,
        engine: &mut Engine,
        strategy: StrategyId,
        event: &Event,
        made: Option<RecordedInput>,
    ) -> Option<RecordedInput> {
        let player = self.player(strategy)?;
        let answers = match &made {
            Some(RecordedInput::Fault { .. }) => return made,
            Some(_) => true,
            // Without the module the answer is unknown. But then the module is not called either,
            // so it cannot be called too early.
            None => player.module.is_none(),
        };
        if !is_saved_at_once(event, answers, player.cost) {
            return made;
        }
        let is_its = |input: &RecordedInput| matches!(input, RecordedInput::Saved { strategy: of, .. } if *of == strategy);
        if let Some(next) = self.reader.pop_if(is_its) {
            if let RecordedInput::Saved { state, .. } = &next.input {
                reader::seal_before(next.block, engine);
                self.take_saved(engine, &next, strategy, state.as_ref());
            }
            return made;
        }
        match self.reader.peek() {
            Some(NextInput {
                input: RecordedInput::Fault { strategy: of, .. },
                ..
            }) if of == strategy => self.failing_save(strategy).or(made),
            _ => made,
        }
    }

    /// The fault of a module whose save fails, or is larger than a run allows.
    pub(super) fn failing_save(&mut self, strategy: StrategyId) -> Option<RecordedInput> {
        let player = self.runner.players.get_mut(usize::from(strategy.0))?;
        let kind = match player.module.as_mut()?.strategy.save() {
            Err(fault) => engine_fault(fault.kind),
            // The run refuses it. Older programs recorded larger states, so the host of a replay
            // accepts them.
            Ok(state) if state.len() > STATE_BYTES_MAX => FaultKind::Contract,
            Ok(_) => return None,
        };
        Some(RecordedInput::Fault { strategy, kind })
    }

    /// Handles a recorded state: the module must save the same state.
    pub(super) fn take_saved(
        &mut self,
        engine: &mut Engine,
        next: &NextInput,
        strategy: StrategyId,
        state: Option<&Vec<u8>>,
    ) {
        feed(engine, next);
        let Some(player) = self.runner.players.get_mut(usize::from(strategy.0)) else {
            return;
        };
        if let Some(state) = state {
            player.saved = Some(state.clone());
        }
        if let Some(shadow) = player.shadow.as_mut().filter(|one| !one.failed) {
            drop(shadow.guest.strategy.save());
        }
        let Some(module) = player.module.as_mut() else {
            return;
        };
        let made = module.strategy.save().ok();
        player.cost = Cost {
            fuel: module.strategy.fuel_of_save(),
            ..Cost::of(made.as_deref())
        };
        if made.is_some() && made != player.saved && self.difference.is_none() {
            self.difference = Some(Difference {
                block: next.block,
                record: next.record,
                recorded: saved_text(&player.id, player.saved.as_deref()),
                made: saved_text(&player.id, made.as_deref()),
            });
        }
    }
}

/// A saved state as text.
fn saved_text(id: &str, state: Option<&[u8]>) -> Option<String> {
    let state = state?;
    let (bytes, hash) = (state.len(), hex::encode(Sha256::digest(state)));
    Some(format!(
        "{id} saved a state of {bytes} bytes, sha256 {hash}"
    ))
}
