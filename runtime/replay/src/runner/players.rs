//! The modules of a replay, and what it has found so far.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use windvane_build::modules::{self, Guest, Loader};
use windvane_model::StrategyId;
use windvane_model::record::Chain;
use windvane_session::{Cost, SavedStrategy};

use super::super::shadow::{NewModule, Shadow};
use super::report::{ReplayReport, Role};

/// One strategy in the replay.
pub(super) struct Player {
    pub(super) id: String,
    /// The recorded module. Without it, the recorded outputs are used.
    pub(super) module: Option<Guest>,
    /// The state that it saved last.
    pub(super) saved: Option<Vec<u8>>,
    /// The cost of recording that state.
    pub(super) cost: Cost,
    /// The new module beside it.
    pub(super) shadow: Option<Shadow>,
}

/// The replay of a journal so far.
pub(super) struct Runner<'a> {
    pub(super) data_dir: &'a Path,
    pub(super) loader: Loader,
    pub(super) new_module: Option<&'a NewModule>,
    pub(super) players: Vec<Player>,
    /// The end of the previous segment.
    pub(super) ended: Option<Chain>,
    pub(super) result: ReplayReport,
}

impl Runner<'_> {
    /// Loads the module of a saved strategy without starting it, and notes how it is replayed.
    pub(super) fn module(&mut self, saved: &SavedStrategy) -> Option<Guest> {
        let module = modules::kept(self.data_dir, &saved.sha256);
        let altered = module.is_err();
        let loaded = match module {
            Err(why) => Err(why.to_string()),
            Ok(module) => Guest::load(&self.loader, &saved.name, module, saved.made.clone())
                .map_err(|error| error.to_string()),
        };
        self.role(saved, loaded.as_ref().err().cloned(), altered);
        loaded.ok()
    }

    pub(super) fn role(
        &mut self,
        saved: &SavedStrategy,
        from_journal: Option<String>,
        altered: bool,
    ) {
        let role = Role {
            id: saved.name.clone(),
            sha256: hex::encode(saved.sha256),
            from_journal,
            altered,
        };
        if !self.result.roles.contains(&role) {
            self.result.roles.push(role);
        }
    }

    pub(super) fn shadow(&mut self, saved: &SavedStrategy) -> Option<Shadow> {
        let new_module = self.new_module.filter(|one| one.id == saved.name)?;
        let module = Arc::clone(&new_module.module);
        match Guest::load(&self.loader, &saved.name, module, saved.made.clone()) {
            Ok(guest) => Some(Shadow {
                guest,
                timers: BTreeMap::new(),
                failed: false,
            }),
            Err(error) => {
                self.note(format!(
                    "the new module of {} cannot be loaded: {error}",
                    saved.name
                ));
                None
            }
        }
    }

    /// The segment ended during the start of a strategy: the run stopped, or its journal failed. The
    /// next segment has the state of the instance before, and it is not known what the new instance
    /// saw. So the outputs of the strategy are those of the journal until the next process.
    pub(super) fn leave_start(&mut self, strategy: StrategyId) {
        if let Some(player) = self.players.get_mut(usize::from(strategy.0)) {
            (player.module, player.shadow) = (None, None);
        }
    }

    /// Notes market records that a kill or the retention removed. They are not a difference, but
    /// the rest of the segment cannot be replayed.
    pub(super) fn note_lost(&mut self, segment: u32, lost: Option<u64>, dropped: bool) {
        let Some(block) = lost else { return };
        let why = if dropped {
            "were deleted by retention ([journal] retain_market_days)"
        } else {
            "are lost"
        };
        self.note(format!(
            "segment {segment:08x}: market records from block {block} on {why}; this segment was \
             replayed up to there"
        ));
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.result.notes.contains(&note) {
            self.result.notes.push(note);
        }
    }
}
