//! Which of the account's modes are known (`account_modes`).

use serde::{Deserialize, Serialize};

/// Which modes are known, from this process or an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownModes {
    pub(super) position: bool,
    pub(super) assets: bool,
    /// The next account snapshot lacks them, and a later one contains them.
    pub(super) are_pending: bool,
}

impl KnownModes {
    /// Both are known.
    pub(super) const ALL: Self = Self {
        position: true,
        assets: true,
        are_pending: false,
    };

    /// Whether both are known.
    pub(super) const fn are_known(self) -> bool {
        self.position && self.assets
    }
}
