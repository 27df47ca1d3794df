//! What a segment of the journal begins with: everything that a run goes on from.

use serde::{Deserialize, Serialize};

use crate::strategies::Made;

/// The head of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Version of the program that wrote it.
    pub version: String,
    /// The engine's snapshot.
    pub engine: Vec<u8>,
    /// The strategies, in the order of the configuration.
    pub strategies: Vec<SavedStrategy>,
    /// The simulated account of a paper run.
    pub paper: Option<Vec<u8>>,
}

/// A strategy as it was saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStrategy {
    /// Its id.
    pub name: String,
    /// SHA-256 of its module.
    pub sha256: [u8; 32],
    /// Its state, if it has one.
    pub state: Option<Vec<u8>>,
    /// What its instance is made of beside the module.
    pub made: Made,
}

impl Head {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Writing to memory cannot fail, and every length in the type is known.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// From bytes; `None` if they are no head.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The saved state of the strategy with this id.
    pub fn state_of(&self, name: &str) -> Option<Vec<u8>> {
        let saved = self.strategies.iter().find(|saved| saved.name == name)?;
        saved.state.clone()
    }
}
