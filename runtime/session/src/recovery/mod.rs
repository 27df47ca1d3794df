//! Recovery: makes the engine of a new process from the journal. The snapshot in the checkpoint is
//! restored, and the inputs recorded after it are replayed. The effects of the replay are dropped:
//! they were carried out before, or reconciliation finds out what became of them. A paper run
//! recovers its simulated account in the same way.
//!
//! The shell reads the journal and passes its content as [`JournalContent`].

mod launch;
mod replay;
mod unowned_positions;

use windvane_engine::engine::{SnapshotError, SuccessionError};
use windvane_engine::{ENGINE_RULES, Engine};
use windvane_model::config::EngineConfig;
use windvane_model::record::{Block, Chain};
use windvane_model::rules::InstrumentError;

use crate::account::AccountKind;
use crate::checkpoint::Checkpoint;
use crate::engine_loop::EngineLoop;
use crate::paper::Paper;

pub use launch::{FirstSegment, LaunchTerms, Launched, States};
pub use replay::{Difference, Pairs, Replay, compare_paper};
pub use unowned_positions::{Configured, UnownedPosition, strategy_positions, unowned_positions};

/// Why a process does not begin.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The present configuration cannot continue the old state.
    #[error(transparent)]
    Succession(#[from] SuccessionError),
    /// The venue's rules cannot be used.
    #[error(transparent)]
    Rules(#[from] InstrumentError),
    /// A strategy refuses its parameters or instruments.
    #[error("strategy {strategy} refuses to start: {reason}")]
    Refused {
        /// Its id.
        strategy: String,
        /// The reason it gave.
        reason: String,
    },
}

/// The journal belongs to a run on the other kind of account.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the journal belongs to a run on {}", .0.as_str())]
pub struct OtherAccount(pub AccountKind);

/// The state left by the previous process.
pub struct PreviousState {
    /// Its engine at the end of the journal; `None` if it is missing or cannot be trusted.
    engine: Option<Engine>,
    /// Its simulated account.
    pub paper: Option<Paper>,
    /// The checkpoint that the journal returned, with the states that were saved after it.
    pub checkpoint: Option<Checkpoint>,
    /// The position at which the journal continues.
    next: Chain,
    /// A problem with the journal that does not prevent the start.
    pub flaw: Option<Flaw>,
    /// A journal existed, but it must not be used.
    is_lost: bool,
}

/// A problem with the content of a journal.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// Its checkpoint does not contain an engine that this program can read.
    #[error(
        "the journal's snapshot cannot be used: {0}. The account's positions belong to no strategy \
         until `windvane resume`; to keep them, stop, and start the program that wrote the journal"
    )]
    Snapshot(SnapshotError),
    /// Its checkpoint is not at the position where its blocks begin.
    #[error(
        "the journal's snapshot is not at the position where its blocks begin; the account is read \
         from the venue"
    )]
    Place,
    /// The recorded events are facts, but this program would have decided differently.
    #[error("replaying the journal gives other records than it has: {0}")]
    Differs(Difference),
}

/// Facts about other processes that a start knows, apart from the journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    /// The epoch of the previous process, which the data folder reserved.
    pub epoch: Option<u64>,
    /// Whether the operator has this instance take over from another one.
    pub take_over: bool,
}

/// The content of a journal.
pub struct JournalContent<B> {
    /// Whether it can be trusted; otherwise the venue is the authority.
    pub is_authority: bool,
    /// The checkpoint of its last segment; empty if the journal has no segment.
    pub checkpoint: Vec<u8>,
    /// The blocks after the checkpoint.
    pub blocks: B,
    /// The position that the first of them continues.
    pub base: Chain,
    /// The position at which the next segment continues.
    pub next: Chain,
}

/// Recovers the state of the previous process from its journal.
pub fn recover_state(remembered: JournalContent<impl IntoIterator<Item = Block>>) -> PreviousState {
    let (is_authority, next) = (remembered.is_authority, remembered.next);
    let mut checkpoint = Checkpoint::from_bytes(&remembered.checkpoint);
    let mut flaw = None;
    let (engine, paper) = match &mut checkpoint {
        Some(checkpoint) => replayed(checkpoint, remembered, &mut flaw),
        None => (None, None),
    };
    if let (Some(flaw), Some(checkpoint)) = (&flaw, &checkpoint) {
        log_flaw(flaw, checkpoint);
    }
    let engine = engine.filter(|_| is_authority);
    PreviousState {
        is_lost: engine.is_none() && (checkpoint.is_some() || !is_authority),
        engine,
        paper,
        checkpoint,
        next,
        flaw,
    }
}

/// Logs a problem. A difference is not a defect if a program with other engine rules wrote the
/// journal.
fn log_flaw(flaw: &Flaw, checkpoint: &Checkpoint) {
    let (version, rules) = (&checkpoint.version, checkpoint.engine_rules);
    match flaw {
        Flaw::Differs(difference) if !checkpoint.has_our_rules() => tracing::warn!(
            version,
            "the journal was written under engine rules {rules}, and this program has engine rules \
             {ENGINE_RULES}: it would have decided differently at {difference}; the orders, fills \
             and positions in the journal are kept"
        ),
        flaw => tracing::error!(version, "{flaw}"),
    }
}

impl PreviousState {
    /// Checks the kind of account. A simulated account and an account of a venue must not be mixed.
    ///
    /// # Errors
    /// The journal belongs to the other kind.
    pub fn must_be_of(&self, account: AccountKind) -> Result<(), OtherAccount> {
        let left = match &self.checkpoint {
            None => return Ok(()),
            Some(checkpoint) if checkpoint.paper.is_some() => AccountKind::Paper,
            Some(_) => AccountKind::Venue,
        };
        if left == account {
            Ok(())
        } else {
            Err(OtherAccount(left))
        }
    }

    /// Positions of strategies and open orders, as text; empty without any.
    pub fn summary(&self) -> String {
        let Some(engine) = &self.engine else {
            return String::new();
        };
        let held = strategy_positions(engine, |_, _| true);
        let mut words: Vec<_> = held.iter().map(ToString::to_string).collect();
        let orders = engine.orders().iter();
        let ids: Vec<_> = orders.map(|order| order.client_order_id.as_str()).collect();
        if !ids.is_empty() {
            words.push(format!("open orders {}", ids.join(" ")));
        }
        words.join(", ")
    }

    /// The positions that belong to no strategy after a start with this configuration, as far as
    /// their owners are known.
    pub fn unowned_positions(&self, configured: &Configured) -> Vec<UnownedPosition> {
        let engine = self.engine.as_ref();
        engine.map_or_else(Vec::new, |engine| unowned_positions(engine, configured))
    }

    /// The engine of this start, before it recorded anything. If a journal existed but cannot be
    /// used, the owners of the account's positions are unknown.
    fn succeed(self, config: EngineConfig, before: &Before) -> Result<Engine, RecoverError> {
        let mut engine = if let Some(engine) = self.engine {
            engine.succeed(config, self.next)?
        } else {
            let mut engine = Engine::continuing(config, self.next)?;
            if self.is_lost {
                engine.degrade_for_lost_state();
            }
            engine
        };
        if let Some(epoch) = before.epoch {
            engine.continue_folder(epoch);
        }
        if before.take_over {
            engine.take_over();
        }
        Ok(engine)
    }
}

/// Engine and simulated account of the previous process, at the end of its journal.
fn replayed(
    checkpoint: &mut Checkpoint,
    remembered: JournalContent<impl IntoIterator<Item = Block>>,
    flaw: &mut Option<Flaw>,
) -> (Option<Engine>, Option<Paper>) {
    let version = &checkpoint.version;
    let paper = checkpoint.paper.as_deref().and_then(Paper::from_bytes);
    if checkpoint.paper.is_some() && paper.is_none() {
        tracing::error!(
            version,
            "the simulated account cannot be read; a new one begins with its start balances"
        );
    }
    let engine = match Engine::restore(&checkpoint.engine) {
        Ok(engine) => engine,
        Err(error) => {
            *flaw = Some(Flaw::Snapshot(error));
            return (None, paper);
        }
    };
    if engine.chain() != remembered.base {
        *flaw = Some(Flaw::Place);
        return (None, paper);
    }
    let mut core = EngineLoop::new(engine);
    let is_paper = paper.is_some();
    let mut replay = Replay::of(paper);
    for block in remembered.blocks {
        // The simulated account is a function of all records, market records included.
        if is_paper && block.lacks_market() {
            tracing::warn!(
                block = block.number,
                "the last market records before the kill are lost; the simulated account continues \
                 from the point before them"
            );
            break;
        }
        replay.block(&mut core, block);
    }
    if let Some(block) = replay.lost {
        tracing::warn!(
            block,
            "the last market records before the kill are lost; orders and fills are complete, and \
             prices come from the venue again"
        );
    }
    *flaw = replay.difference.map(Flaw::Differs);
    for (strategy, instance) in replay.started {
        if let Some(saved) = checkpoint.strategies.get_mut(usize::from(strategy.0)) {
            (saved.sha256, saved.made) = (instance.sha256, instance.made);
        }
    }
    for (strategy, state) in replay.states {
        if let Some(saved) = checkpoint.strategies.get_mut(usize::from(strategy.0)) {
            saved.state = Some(state);
        }
    }
    (Some(core.into_engine()), replay.paper)
}

#[cfg(test)]
mod tests {
    use windvane_model::{Input, StrategyId, Time};

    use super::*;
    use crate::checkpoint::{Made, SavedStrategy};

    #[test]
    fn strategies_continue_from_their_last_saved_states() {
        let config = EngineConfig {
            keep_journal: true,
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(config).unwrap();
        engine.seal();
        while engine.poll_block().is_some() {}
        let strategy = |name: &str| SavedStrategy {
            name: name.to_owned(),
            sha256: [0; 32],
            state: Some(b"head".to_vec()),
            made: Made::default(),
        };
        let checkpoint = Checkpoint {
            version: String::new(),
            engine: engine.snapshot(),
            strategies: ["a", "b", "c"].map(strategy).to_vec(),
            paper: None,
            engine_rules: ENGINE_RULES,
        };
        let base = engine.chain();
        for (place, state) in [
            (1, Some(b"one")),
            (2, Some(b"two")),
            (1, Some(b"six")),
            (2, None),
        ] {
            let strategy = StrategyId(place);
            let state = state.map(<[u8; 3]>::as_slice);
            engine.handle(
                Time(1),
                Input::Saved {
                    strategy,
                    handled: 0,
                    state,
                },
            );
            engine.seal();
        }
        let left = recover_state(JournalContent {
            is_authority: true,
            checkpoint: checkpoint.to_bytes(),
            blocks: std::iter::from_fn(|| engine.poll_block()).collect::<Vec<_>>(),
            base,
            next: engine.chain(),
        });
        assert!(left.flaw.is_none());
        let checkpoint = left.checkpoint.unwrap();
        let states = ["a", "b", "c"].map(|name| checkpoint.state_of(name).unwrap());
        assert_eq!(states, [b"head".to_vec(), b"six".to_vec(), b"two".to_vec()]);
    }
}
