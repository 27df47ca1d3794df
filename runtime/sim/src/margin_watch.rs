//! What the margin checks remember between fills.

use serde::{Deserialize, Serialize};
use windvane_model::AssetId;

/// The state of the margin checks between fills.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Watch {
    /// A margin asset whose account changed, or one of whose markets left its safe range.
    pub(crate) dirty: Option<AssetId>,
    /// Margin assets with a margin call from which equity has not recovered.
    pub(crate) called: Vec<AssetId>,
}

impl Watch {
    /// This state with the assets' new ids.
    pub(crate) fn renamed(self, assets: &[AssetId]) -> Self {
        let name = |old: AssetId| assets.get(usize::from(old.0)).copied();
        Self {
            dirty: self.dirty.and_then(name),
            called: self.called.into_iter().filter_map(name).collect(),
        }
    }
}
