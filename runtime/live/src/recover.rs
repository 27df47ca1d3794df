//! What the data folder gives back of the run before. What follows from it is decided in
//! `session/recovery`.

use windvane_journal::Recovered;
use windvane_session::AccountKind;
use windvane_session::recovery::{Left, OtherAccount, Remembered, left_of};

use windvane_config::Mode;

/// The journal is one of the other mode.
#[derive(Debug, thiserror::Error)]
#[error(
    "run.data_dir holds the journal of a {left} run, and run.mode is \"{mode}\": give each mode \
     a folder of its own"
)]
pub struct OtherMode {
    /// The journal's.
    left: Mode,
    /// The configuration's.
    mode: Mode,
}

/// A simulated account and a venue's are never mixed up.
///
/// # Errors
/// The folder is one of the other mode.
pub fn must_be_of(left: &Left, mode: Mode) -> Result<(), OtherMode> {
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

/// Reads what the journal gives back.
pub fn left(recovered: Recovered) -> Left {
    let verdict = recovered.verdict.clone();
    tracing::info!(
        ?verdict,
        segment = recovered.segment,
        blocks = recovered.blocks.len(),
        "the journal"
    );
    let left = left_of(Remembered {
        is_authority: verdict.is_authority(),
        head: recovered.head,
        blocks: recovered.blocks,
        base: recovered.base,
        next: recovered.next,
    });
    if !verdict.is_authority() {
        let paper = left.paper.is_some();
        tracing::error!(
            ?verdict,
            paper,
            "the journal is not believed: the venue, or the simulated account as far as it was \
             found, is the authority"
        );
    }
    left
}
