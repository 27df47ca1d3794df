//! Reads what the data folder restores of the earlier run. `session/recovery` decides what follows
//! from it.

use windvane_journal::Recovered;
use windvane_session::AccountKind;
use windvane_session::recovery::{JournalContent, OtherAccount, PreviousState, recover_state};

use windvane_config::Mode;

/// The journal belongs to a run of the other mode.
#[derive(Debug, thiserror::Error)]
#[error(
    "run.data_dir contains the journal of a {left} run, but run.mode is \"{mode}\". Nothing was \
     started. Use a separate folder for each mode"
)]
pub struct OtherMode {
    /// The journal's mode.
    left: Mode,
    /// The configuration's mode.
    mode: Mode,
}

/// Makes sure that a simulated account and a venue's account never use the same folder.
///
/// # Errors
/// The folder belongs to the other mode.
pub fn must_be_of(left: &PreviousState, mode: Mode) -> Result<(), OtherMode> {
    let account = match mode {
        Mode::Live => AccountKind::Venue,
        Mode::Paper => AccountKind::Paper,
    };
    left.must_be_of(account).map_err(|OtherAccount(left)| {
        let left = match left {
            AccountKind::Venue => Mode::Live,
            AccountKind::Paper => Mode::Paper,
        };
        OtherMode { left, mode }
    })
}

/// Reads the state that the journal restores.
pub fn previous_state(recovered: Recovered) -> PreviousState {
    let verdict = recovered.verdict.clone();
    tracing::info!(
        ?verdict,
        segment = recovered.segment,
        blocks = recovered.blocks.len(),
        "read the journal"
    );
    let left = recover_state(JournalContent {
        is_authority: verdict.is_authority(),
        checkpoint: recovered.checkpoint,
        blocks: recovered.blocks,
        base: recovered.base,
        next: recovered.next,
    });
    if !verdict.is_authority() {
        let paper = left.paper.is_some();
        tracing::error!(
            ?verdict,
            paper,
            "the journal cannot be trusted and is not used: the run starts from the venue's \
             account, or from the simulated account as far as it was found. Check positions and \
             orders before you resume"
        );
    }
    left
}
